// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_ORDERS_H
#define FT_DAEMON_API_ORDERS_H
/*
 * Orders that later pages of an answer follow. By rate an order is another one as soon as a window
 * closes: a reader who pages by what comes next would miss flows and see others twice. So the order
 * of the first page is kept, of the last few answers that have more pages. Owner: the caller.
 * Thread: the loop's.
 */
#include <stddef.h>
#include <stdint.h>

/* Of one order, and how many the daemon keeps: of flows, 10 MiB in all. */
#define FT_ORDER_ITEMS_MAX 50000
#define FT_ORDERS          4

struct ft_orders;

struct ft_order {
    uint64_t id;          /* 0: none */
    const uint8_t *items; /* of item_bytes each; good until the next one is kept */
    size_t count;
    size_t item_bytes;
    uint64_t total; /* of the answer */
    uint64_t rest;  /* that come behind all items */
};

/* Room for so many. NULL without memory. */
struct ft_orders *ft_orders_new(size_t max, uint64_t seed);
void ft_orders_free(struct ft_orders *orders);

/* Keeps an order, for which the one that was not asked for the longest goes. Its items are taken
 * over where an id is returned; 0: it is not kept. */
uint64_t ft_orders_take(struct ft_orders *orders, const struct ft_order *order, uint8_t *items);

/* The order of an id; NULL: it is not kept any more. */
const struct ft_order *ft_orders_find(struct ft_orders *orders, uint64_t id);

#endif

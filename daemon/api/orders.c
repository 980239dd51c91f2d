// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/orders.h"

#include <stdlib.h>

struct kept {
    struct ft_order order;
    uint8_t *items;
    uint64_t asked; /* the larger the later */
};

struct ft_orders {
    size_t max;
    uint64_t next, asked;
    struct kept kept[];
};

struct ft_orders *ft_orders_new(size_t max, uint64_t seed)
{
    struct ft_orders *o = calloc(1, sizeof(*o) + max * sizeof(o->kept[0]));

    if (!o)
        return NULL;
    o->max = max;
    /* Those of a run before are no longer known. */
    o->next = seed | 1;
    return o;
}

void ft_orders_free(struct ft_orders *o)
{
    for (size_t i = 0; o && i < o->max; i++)
        free(o->kept[i].items);
    free(o);
}

uint64_t ft_orders_take(struct ft_orders *o, const struct ft_order *order, uint8_t *items)
{
    struct kept *oldest = &o->kept[0];
    uint8_t *fit;

    if (order->count == 0 || order->count > FT_ORDER_ITEMS_MAX)
        return 0;
    for (size_t i = 1; i < o->max; i++)
        if (o->kept[i].asked < oldest->asked)
            oldest = &o->kept[i];
    fit = realloc(items, order->count * order->item_bytes);
    free(oldest->items);
    *oldest = (struct kept){.order = *order, .items = fit ? fit : items, .asked = ++o->asked};
    oldest->order.items = oldest->items;
    oldest->order.id = o->next;
    o->next += 2;
    return oldest->order.id;
}

const struct ft_order *ft_orders_find(struct ft_orders *o, uint64_t id)
{
    for (size_t i = 0; id && i < o->max; i++)
        if (o->kept[i].items && o->kept[i].order.id == id) {
            o->kept[i].asked = ++o->asked;
            return &o->kept[i].order;
        }
    return NULL;
}

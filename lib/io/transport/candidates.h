// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_TRANSPORT_CANDIDATES_H
#define FT_IO_TRANSPORT_CANDIDATES_H
/*
 * The receivers that a sender may connect to, in the order of preference, and which one it is at.
 * Owner: the caller, who sets it to zero. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/endpoint.h"

struct ft_candidate {
    char *endpoint;
    char host[FT_HOST_BYTES];
    uint16_t port;
};

struct ft_candidates {
    struct ft_candidate *items;
    size_t count, at;
};

/* Whether the text is HOST:PORT. */
bool ft_candidate_ok(const char *endpoint);

/* Of one endpoint and a NULL-terminated list of others (NULL: none). -EINVAL with a complaint that
 * names what is not HOST:PORT, -ENOMEM with another; free it also then. */
int ft_candidates_set(struct ft_candidates *candidates, const char *first,
                      const char *const *others, char *error, size_t error_bytes);
void ft_candidates_free(struct ft_candidates *candidates);

const struct ft_candidate *ft_candidates_now(const struct ft_candidates *candidates);

/* Goes to the next; behind the last comes the first. */
void ft_candidates_next(struct ft_candidates *candidates);

#endif

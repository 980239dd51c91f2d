// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport/candidates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool split(const char *endpoint, char host[FT_HOST_BYTES], uint16_t *port)
{
    return ft_endpoint_split(endpoint, host, port) == 0 && host[0] && *port;
}

bool ft_candidate_ok(const char *endpoint)
{
    char host[FT_HOST_BYTES];
    uint16_t port;

    return split(endpoint, host, &port);
}

static int set(struct ft_candidate *candidate, const char *endpoint, char *error,
               size_t error_bytes)
{
    if (!split(endpoint, candidate->host, &candidate->port)) {
        snprintf(error, error_bytes, "'%s' is not HOST:PORT", endpoint);
        return -EINVAL;
    }
    candidate->endpoint = strdup(endpoint);
    if (candidate->endpoint)
        return 0;
    snprintf(error, error_bytes, "no memory");
    return -ENOMEM;
}

int ft_candidates_set(struct ft_candidates *candidates, const char *first,
                      const char *const *others, char *error, size_t error_bytes)
{
    size_t count = 1;
    int rc;

    while (others && others[count - 1])
        count++;
    candidates->items = calloc(count, sizeof(*candidates->items));
    if (!candidates->items) {
        snprintf(error, error_bytes, "no memory");
        return -ENOMEM;
    }
    candidates->count = count;
    rc = set(&candidates->items[0], first, error, error_bytes);
    for (size_t i = 1; rc == 0 && i < count; i++)
        rc = set(&candidates->items[i], others[i - 1], error, error_bytes);
    return rc;
}

void ft_candidates_free(struct ft_candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++)
        free(candidates->items[i].endpoint);
    free(candidates->items);
    *candidates = (struct ft_candidates){0};
}

const struct ft_candidate *ft_candidates_now(const struct ft_candidates *candidates)
{
    return &candidates->items[candidates->at];
}

void ft_candidates_next(struct ft_candidates *candidates)
{
    candidates->at = (candidates->at + 1) % candidates->count;
}

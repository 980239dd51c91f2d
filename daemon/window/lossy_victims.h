// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_LOSSY_VICTIMS_H
#define FT_DAEMON_WINDOW_LOSSY_VICTIMS_H
/*
 * The flows that a link which loses packets hurts, for its event: those alone that cross it and
 * send packets again themselves. How many pairs of hosts they are between is said of all of them;
 * of those that are named one of each pair comes first, then those that send again most often.
 * Pure. Owner: the caller. Thread: one.
 */
#include <stdbool.h>

#include "daemon/window/victim.h"

struct ft_lossy_victims {
    Fabrictrace__Victim victims[FT_VICTIMS_MAX];
    Fabrictrace__Victim *list[FT_VICTIMS_MAX];
    Fabrictrace__Flow flows[FT_VICTIMS_MAX];
    Fabrictrace__Qp qps[FT_VICTIMS_MAX];
    size_t count;   /* that are named */
    uint32_t all;   /* flows that cross the link and send again */
    uint32_t pairs; /* of hosts, of all of these */
};

/* Among the flows at these indices of the join, in the window that closes. max: flows named. */
void ft_lossy_victims_fill(struct ft_lossy_victims *v, const struct ft_join *join, uint32_t link,
                           const uint32_t *ids, size_t count, uint32_t window, int64_t window_ms,
                           uint32_t max);

/* "from h1 to h5, h2 to h6 and 2 other pairs of hosts"; empty where there are none. */
void ft_lossy_victims_text(const struct ft_lossy_victims *v, char *text, size_t size);

#endif

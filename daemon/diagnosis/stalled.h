// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_STALLED_H
#define FT_DAEMON_DIAGNOSIS_STALLED_H
/*
 * The link that loses packets of a job, by which pairs had operations with a step far longer than
 * usual, and which had none (lib/diagnosis/stalls.h).
 *
 * A step of which a packet is lost is over when it was sent again: many times as long as others.
 * That the steps in the middle were as usual says nothing of it. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/diagnosis/recent.h"
#include "daemon/diagnosis/witness.h"
#include "lib/diagnosis/stalls.h"

struct ft_task;

/* Pairs that are compared at a time. */
#define FT_STALLED_PAIRS 16384

struct ft_stalled {
    bool found;
    struct ft_stalls_found what;            /* its link is a port of the present topology */
    const struct ft_recent_rank *from, *to; /* of a pair that stalls: the same as long as it does */
    int64_t since_ms;
    double ratio; /* of what stalls, to what is usual */
};

/* Of one look at a job. Without memory it finds nothing. */
void ft_stalled_find(struct ft_stalled *s, const struct ft_recent *recent,
                     struct ft_recent_job *job, int64_t now_ms, const struct ft_witnesses *w,
                     struct ft_task *task);

/* Whether it may be why steps of the pair take long: their data cross the link, or the answers. */
bool ft_stalled_explains(const struct ft_stalled *s, const struct ft_witnesses *w,
                         const struct ft_recent_rank *from, const struct ft_recent_rank *to);

#endif

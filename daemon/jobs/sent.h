// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOBS_SENT_H
#define FT_DAEMON_JOBS_SENT_H
/* What a rank sent to each peer in an operation, its channels together. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/fabrictrace.pb-c.h"

struct ft_sent {
    uint32_t peer;
    bool mixed; /* it sent and received on one channel: their times cannot be distinguished */
    double messages, bytes;
    double ns;         /* of its network steps, by the median of each channel */
    double longest_ns; /* the longest of them; 0: not known */
};

/* Fills at most max of them, and leaves further peers out. Returns how many. */
size_t ft_sent_add_up(struct ft_sent *sent, size_t max, const Fabrictrace__Collective *c);

#endif

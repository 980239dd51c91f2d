// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_JOB_SENT_H
#define FT_DAEMON_DIAGNOSIS_JOB_SENT_H
/*
 * What the flows of a job sent in a window, by their sampled packets: sums of what the path record
 * of each says of the same window. What no flow of the job has is absent. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/join/join.h"
#include "daemon/publish/emit.h"

/* All zero: of no flow. */
struct ft_job_sent {
    bool has_messages;
    uint64_t messages, bytes; /* of those flows alone whose messages are known */
    uint64_t numbered_samples, back_samples;
    uint64_t nak_samples, rnr_samples, no_credit_samples;
};

/* While a window closes: a flow that sent in it. One that a host gave to another job since the
 * window began is of neither. */
void ft_job_sent_add(struct ft_job_sent *o, const struct ft_flow *flow, const struct ft_span *span);

void ft_job_sent_fill(const struct ft_job_sent *o, Fabrictrace__Rhythm *out);

#endif

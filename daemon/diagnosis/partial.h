// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_PARTIAL_H
#define FT_DAEMON_DIAGNOSIS_PARTIAL_H
/*
 * Hangs in a communicator of which nobody reported some ranks, as those of a host without an agent:
 * one of these may be what all others wait for. Pure. Thread: one.
 */
#include "daemon/diagnosis/recent.h"
#include "lib/diagnosis/report.h"

/* No surer than this is what does not know all ranks. */
#define FT_PARTIAL_CONFIDENCE 0.5

#define FT_PARTIAL_TEXT 192

/* What the report points to. */
struct ft_partial {
    char doubt[FT_PARTIAL_TEXT];
};

/* Adds to a report that knows some ranks alone which it does not know, and bounds its confidence,
 * whatever was found beside the operations. */
void ft_partial_report(const struct ft_recent *recent, struct ft_diagnosis_report *r,
                       struct ft_partial *partial);

#endif

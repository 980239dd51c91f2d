// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_SILENCE_H
#define FT_DAEMON_DIAGNOSIS_SILENCE_H
/*
 * Agents that say nothing any more. A rank that others wait for may have gone with its host, or
 * its agent alone is down, and where the rank is, nobody knows. What others sent to that host and
 * it did not take shows the host; what stands between two ranks that are heard of shows them. Pure.
 * Thread: one.
 */
#include <stdbool.h>

#include "daemon/diagnosis/recent.h"
#include "daemon/diagnosis/stand.h"
#include "lib/diagnosis/report.h"

#define FT_SILENCE_TEXT 256

struct ft_task;

struct ft_silence {
    bool silent;                     /* the host of the rank that is named */
    bool elsewhere;                  /* something stands between others */
    const struct ft_recent_rank *to; /* a rank there to which a transfer stands; NULL: none */
    char reason[FT_SILENCE_TEXT], doubt[FT_SILENCE_TEXT];
};

/* Of a rank that a report says is in no operation while others are in one since then. What stands
 * elsewhere is put into *stand, and takes away what the report has for that rank; where nothing
 * does, *stand is not known, and the report says no more of the rank than is seen. */
void ft_silence_find(const struct ft_recent *recent, const struct ft_recent_job *job,
                     const struct ft_recent_rank *rank, uint64_t since_ns, int64_t now_ms,
                     struct ft_task *task, struct ft_diagnosis_report *r, struct ft_stand *stand,
                     struct ft_silence *silence);

/* Says so in a report, after all that raises its confidence. */
void ft_silence_report(struct ft_silence *silence, struct ft_diagnosis_report *r);

#endif

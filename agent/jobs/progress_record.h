// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_PROGRESS_RECORD_H
#define FT_AGENT_JOBS_PROGRESS_RECORD_H
/*
 * From how far a rank is to a record of fabrictrace.proto. Pure; nothing is allocated. What a job
 * wrote is checked as in collective_record.h.
 */
#include "agent/jobs/collective_record.h"
#include "agent/jobs/progress.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_progress_record {
    Fabrictrace__Record record;
    Fabrictrace__Progress progress;
    Fabrictrace__Transfer transfers[FT_PROGRESS_TRANSFERS];
    Fabrictrace__Transfer *list[FT_PROGRESS_TRANSFERS];
    char comm_id[FT_COMM_ID_BYTES];
    char gpu[FT_SEGMENT_TEXT], op[FT_SEGMENT_TEXT], datatype[FT_SEGMENT_TEXT];
    char algo[FT_SEGMENT_TEXT], proto[FT_SEGMENT_TEXT];
};

/* Fills *out, which stays where it is while the record is used. */
void ft_progress_record_fill(struct ft_progress_record *out, const struct ft_progress_report *r,
                             const struct ft_job_identity *who, int64_t now_ms);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_REPORT_H
#define FT_DIAGNOSIS_REPORT_H
/* A diagnosis as a record of fabrictrace.proto. Pure. */
#include "lib/diagnosis/diagnosis.h"
#include "proto/fabrictrace.pb-c.h"

#define FT_REPORT_MESSAGE 512
#define FT_REPORT_WAITING FT_DIAGNOSIS_WAITING
#define FT_REPORT_TEXTS   16 /* room for what a caller adds to the evidence */

/* The record, and what it points to. */
struct ft_diagnosis_report {
    Fabrictrace__Diagnosis message;
    char text[FT_REPORT_MESSAGE];
    uint32_t waiting[FT_REPORT_WAITING], chain[FT_DIAGNOSIS_CHAIN];
    char *reasons[FT_REPORT_TEXTS], *doubts[FT_REPORT_TEXTS];
};

/* The message borrows from ops, d and r. */
void ft_report_fill(struct ft_diagnosis_report *r, const struct ft_operations *ops,
                    struct ft_diagnosis *d, uint64_t now_ns);

/* A side as records have it. */
Fabrictrace__Side ft_report_side(enum ft_side side);

/* Puts a text before the evidence that there is; it is borrowed. */
void ft_report_add_reason(struct ft_diagnosis_report *r, const char *reason);

/* Writes its text anew, after the message was changed. */
void ft_report_retell(struct ft_diagnosis_report *r);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_WITHDRAWAL_H
#define FT_PROTO_WITHDRAWAL_H
/*
 * That a plan is withdrawn, as the daemon says it to agents whose jobs have ports of it. All that
 * an agent does is to give no more of these ports.
 *
 * Layout, big endian: magic (8), user (4), time of the plan in Unix milliseconds (8), job (64,
 * filled up with zeros). Pure. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/writer.h"
#include "proto/plan_name.h"

enum {
    FT_WITHDRAWAL_BYTES = 8 + 4 + 8 + FT_PLAN_JOB_BYTES,
};

/* A plan, by whose and of when it is. */
struct ft_withdrawal {
    uint32_t uid;
    uint64_t plan_time_ms;
    char job[FT_PLAN_JOB_BYTES]; /* as ft_plan_name_is_good() */
};

void ft_withdrawal_write(struct ft_writer *w, const struct ft_withdrawal *withdrawal);

/* -EBADMSG: it is none. */
int ft_withdrawal_decode(const uint8_t *bytes, size_t len, struct ft_withdrawal *withdrawal);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_LOSS_H
#define FT_PROTO_LOSS_H
/*
 * From a program's account to its Loss record. Pure; nothing is allocated.
 */
#include <stdint.h>

#include "lib/base/account.h"
#include "proto/fabrictrace.pb-c.h"

/* A record and everything it points to: stays where it is while it is used. */
struct ft_loss_record {
    Fabrictrace__Record record;
    Fabrictrace__Loss loss;
    Fabrictrace__Stage stages[FT_ACCOUNT_STAGES];
    Fabrictrace__Stage *stage_list[FT_ACCOUNT_STAGES];
    Fabrictrace__Drop drops[FT_ACCOUNT_STAGES][FT_ACCOUNT_DROPS];
    Fabrictrace__Drop *drop_list[FT_ACCOUNT_STAGES][FT_ACCOUNT_DROPS];
};

/* Fills *out; all names are borrowed. Drops that never happened are left out. */
void ft_loss_record_fill(struct ft_loss_record *out, const struct ft_account *account,
                         const char *program, const char *source, int64_t now_ms);

#endif

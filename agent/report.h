// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_REPORT_H
#define FT_AGENT_REPORT_H
/*
 * From plain reports and accounts to records of fabrictrace.proto. Pure; nothing is allocated.
 */
#include "agent/account.h"
#include "agent/flows.h"
#include "lib/base/clock.h"
#include "proto/record.h"

/* A record and everything it points to. */
struct ft_flow_record {
    Fabrictrace__Record record;
    Fabrictrace__FlowReport report;
    Fabrictrace__Flow flow;
    Fabrictrace__Qp qp;
    struct ft_tuple tuple;
};

struct ft_loss_record {
    Fabrictrace__Record record;
    Fabrictrace__Loss loss;
    Fabrictrace__Stage stages[FT_ACCOUNT_STAGES];
    Fabrictrace__Stage *stage_list[FT_ACCOUNT_STAGES];
    Fabrictrace__Drop drops[FT_ACCOUNT_STAGES][FT_ACCOUNT_DROPS];
    Fabrictrace__Drop *drop_list[FT_ACCOUNT_STAGES][FT_ACCOUNT_DROPS];
};

/* Fills *out, which stays where it is while the record is used. The names are borrowed; an empty
 * interface (a capture file has none) is left out. The queue pair that packets name is the remote
 * one of what the host sends, the local one of what it receives, and the remote one as the source
 * sees it where the direction is not known. */
void ft_report_flow(const struct ft_flow_report *report, const char *host, const char *interface,
                    struct ft_flow_record *out);

/* Fills *out; source and the account are borrowed. Drops that never happened are left out. */
void ft_report_loss(const struct ft_account *account, const char *source, struct ft_wall now,
                    struct ft_loss_record *out);

#endif

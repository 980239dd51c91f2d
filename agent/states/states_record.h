// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_STATES_STATES_RECORD_H
#define FT_AGENT_STATES_STATES_RECORD_H
/*
 * From what NCCL RAS answered, or a dump of Flight Recorder has, to records of fabrictrace.proto.
 * Pure; nothing is allocated.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/flight.h"
#include "lib/diagnosis/ras.h"
#include "proto/fabrictrace.pb-c.h"

#define FT_STATES_MAX 120 /* ranks that differ from the others, of one record */

struct ft_states_record {
    Fabrictrace__Record record;
    Fabrictrace__RankStates states;
    Fabrictrace__RankState list[FT_STATES_MAX];
    Fabrictrace__RankState *list_at[FT_STATES_MAX];
    Fabrictrace__LaunchCount common[FT_RAS_FUNCTIONS];
    Fabrictrace__LaunchCount *common_at[FT_RAS_FUNCTIONS];
    Fabrictrace__LaunchCount counts[FT_STATES_MAX][FT_RAS_FUNCTIONS];
    Fabrictrace__LaunchCount *counts_at[FT_STATES_MAX][FT_RAS_FUNCTIONS];
    char comm_id[17];
};

/* Both fill *out, which stays where it is, with what it borrows, while the record is used. The
 * commonest counts are those of the most ranks, of as many those of the lowest. */
void ft_states_record_ras(struct ft_states_record *out, const struct ft_ras *ras,
                          const struct ft_ras_comm *comm, const char *host, int64_t time_ms);
void ft_states_record_flight(struct ft_states_record *out, const struct ft_flight_group *group,
                             uint32_t rank, const char *host, int64_t time_ms);

#endif

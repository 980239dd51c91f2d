// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_OUTPUT_LOSS_H
#define FT_SWITCHPOLL_OUTPUT_LOSS_H
/*
 * The program's accounting as a Loss record: what came into each stage and what became of it. In
 * every stage received = processed + pending + the sum of drops, also for input that is garbage.
 *  network          datagrams the exporters numbered; dropped: sequence gaps, which include what
 *                   this machine's kernel dropped
 *  network_samples  flow samples the exporters numbered; dropped: gaps of data sources
 *  datagrams        those that reached this machine; dropped also: the kernel's full buffer
 *  samples          in them; counters: interface counters in them
 *  snmp             requests to switches, where there were any
 *  transport        records on their way to the daemon, or to the output
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/account.h"
#include "lib/base/clock.h"
#include "lib/io/snmp/snmp.h"
#include "switchpoll/output/sink.h"
#include "switchpoll/sflow/ingest.h"

/* received = processed + pending + dropped, in records. */
struct ft_loss_transport {
    uint64_t received;
    uint64_t processed;
    uint64_t pending;
    uint64_t dropped;
};

struct ft_loss_facts {
    const char *source_id;
    struct ft_ingest_stats ingest;
    uint64_t kernel_drops;
    uint32_t fold_ms; /* over how long samples are folded; fold_longer: than configured */
    bool fold_longer;
    struct ft_snmp_stats snmp;
    struct ft_loss_transport transport;
};

/* The accounting itself. */
void ft_loss_account(const struct ft_loss_facts *facts, struct ft_account *account);

/* Emits one Loss record. */
void ft_loss_emit(const struct ft_loss_facts *facts, struct ft_wall now,
                  const struct ft_record_sink *sink);

#endif

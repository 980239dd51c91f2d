// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/output/loss.h"

#include "proto/loss.h"

static struct ft_account_stage *add_stage(struct ft_account *account, const char *name,
                                          const char *unit, uint64_t received, uint64_t processed,
                                          uint64_t pending)
{
    struct ft_account_stage *stage = ft_account_stage(account, name, unit);

    stage->received = received;
    stage->processed = processed;
    stage->pending = pending;
    return stage;
}

static void add_network(struct ft_account *account, const struct ft_ingest_stats *s)
{
    const struct ft_sflow_exporters_stats *x = &s->exporters;
    struct ft_account_stage *stage;

    stage = add_stage(account, "network", "datagrams", x->arrived + x->gap, x->arrived, 0);
    ft_account_drop(stage, "sequence_gap", x->gap);
    stage = add_stage(account, "network_samples", "samples",
                      x->flow_samples + x->samples_gap + x->agent_drops, x->flow_samples, 0);
    ft_account_drop(stage, "sequence_gap", x->samples_gap);
    /* Those that agents say they had no resources for; they have no sequence numbers. */
    ft_account_drop(stage, "agent_drops", x->agent_drops);
}

static void add_datagrams(struct ft_account *account, const struct ft_loss_facts *facts)
{
    const struct ft_ingest_stats *s = &facts->ingest;
    struct ft_account_stage *stage;

    stage = add_stage(account, "datagrams", "datagrams", s->datagrams + facts->kernel_drops,
                      s->datagrams_processed, 0);
    ft_account_drop(stage, "kernel_buffer", facts->kernel_drops);
    ft_account_drop(stage, "not_sflow_v5", s->not_sflow_v5);
    ft_account_drop(stage, "malformed", s->malformed);
    ft_account_drop(stage, "truncated", s->truncated);
    ft_account_drop(stage, "duplicate", s->duplicate);
    ft_account_drop(stage, "unlisted", s->unlisted);
}

static void add_samples(struct ft_account *account, const struct ft_ingest_stats *s)
{
    struct ft_account_stage *stage;

    stage = add_stage(account, "samples", "samples", s->samples, s->samples_processed,
                      s->samples_pending);
    ft_account_drop(stage, "unknown_format", s->unknown_format);
    ft_account_drop(stage, "malformed", s->malformed_samples);
    ft_account_drop(stage, "not_ip", s->not_ip);
    ft_account_drop(stage, "header_short", s->header_short);
    ft_account_drop(stage, "header_bad", s->header_bad);
    ft_account_drop(stage, "table_full", s->table_full);
    ft_account_drop(stage, "thinned", s->thinned);
    ft_account_drop(stage, "no_port_counters", s->no_port_counters);
    stage = add_stage(account, "counters", "records", s->ports.received, s->ports.emitted,
                      s->ports.pending);
    ft_account_drop(stage, "superseded", s->ports.superseded);
    ft_account_drop(stage, "table_full", s->ports.refused);
}

static void add_snmp(struct ft_account *account, const struct ft_snmp_stats *s)
{
    struct ft_account_stage *stage;

    if (s->requests == 0)
        return;
    stage = add_stage(account, "snmp", "requests", s->requests, s->answers, s->pending);
    ft_account_drop(stage, "timeout", s->timeouts);
    ft_account_drop(stage, "refused", s->refused);
    ft_account_drop(stage, "error", s->errors);
}

void ft_loss_account(const struct ft_loss_facts *facts, struct ft_account *account)
{
    const struct ft_loss_transport *t = &facts->transport;
    struct ft_account_stage *stage;

    account->stage_count = 0;
    add_network(account, &facts->ingest);
    add_datagrams(account, facts);
    add_samples(account, &facts->ingest);
    add_snmp(account, &facts->snmp);
    stage = add_stage(account, "transport", "records", t->received, t->processed, t->pending);
    ft_account_drop(stage, "queue_full", t->dropped);
}

void ft_loss_emit(const struct ft_loss_facts *facts, struct ft_wall now,
                  const struct ft_record_sink *sink)
{
    struct ft_account account;
    struct ft_loss_record out;

    ft_loss_account(facts, &account);
    ft_loss_record_fill(&out, &account, "fabrictrace-switchpoll", facts->source_id, now.ms);
    out.loss.has_fold_ms = facts->fold_longer;
    out.loss.fold_ms = facts->fold_ms;
    sink->emit(sink->arg, &out.record);
}

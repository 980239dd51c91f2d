// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/loss.h"

#include <assert.h>

#define STAGES_MAX 6
#define DROPS_MAX  8

/* A Loss message with room for all that hangs on it. */
struct form {
    Fabrictrace__Loss loss;
    Fabrictrace__Stage stages[STAGES_MAX];
    Fabrictrace__Stage *stage_list[STAGES_MAX];
    Fabrictrace__Drop drops[STAGES_MAX][DROPS_MAX];
    Fabrictrace__Drop *drop_lists[STAGES_MAX][DROPS_MAX];
};

static void add_stage(struct form *form, const char *name, const char *unit, uint64_t received,
                      uint64_t processed, uint64_t pending)
{
    size_t i = form->loss.n_stages++;
    Fabrictrace__Stage *stage = &form->stages[i];

    assert(i < STAGES_MAX);
    fabrictrace__stage__init(stage);
    stage->name = (char *)(uintptr_t)name;
    stage->unit = (char *)(uintptr_t)unit;
    stage->has_received = true;
    stage->received = received;
    stage->has_processed = true;
    stage->processed = processed;
    stage->has_pending = true;
    stage->pending = pending;
    stage->drops = form->drop_lists[i];
    form->stage_list[i] = stage;
}

/* To the stage added last; reasons without a drop are left out. */
static void add_drop(struct form *form, const char *reason, uint64_t count)
{
    size_t i = form->loss.n_stages - 1;
    Fabrictrace__Stage *stage = &form->stages[i];
    Fabrictrace__Drop *drop;

    if (count == 0)
        return;
    assert(stage->n_drops < DROPS_MAX);
    drop = &form->drops[i][stage->n_drops];
    fabrictrace__drop__init(drop);
    drop->reason = (char *)(uintptr_t)reason;
    drop->has_count = true;
    drop->count = count;
    form->drop_lists[i][stage->n_drops++] = drop;
}

static void add_network(struct form *form, const struct ft_ingest_stats *s)
{
    const struct ft_exporters_stats *x = &s->exporters;

    add_stage(form, "network", "datagrams", x->arrived + x->gap, x->arrived, 0);
    add_drop(form, "sequence_gap", x->gap);
    add_stage(form, "network_samples", "samples", x->flow_samples + x->samples_gap, x->flow_samples,
              0);
    add_drop(form, "sequence_gap", x->samples_gap);
}

static void add_datagrams(struct form *form, const struct ft_loss_facts *facts)
{
    const struct ft_ingest_stats *s = &facts->ingest;

    add_stage(form, "datagrams", "datagrams", s->datagrams + facts->kernel_drops,
              s->datagrams_processed, 0);
    add_drop(form, "kernel_buffer", facts->kernel_drops);
    add_drop(form, "not_sflow_v5", s->not_sflow_v5);
    add_drop(form, "malformed", s->malformed);
    add_drop(form, "truncated", s->truncated);
    add_drop(form, "duplicate", s->duplicate);
}

static void add_samples(struct form *form, const struct ft_ingest_stats *s)
{
    add_stage(form, "samples", "samples", s->samples, s->samples_processed, s->samples_pending);
    add_drop(form, "unknown_format", s->unknown_format);
    add_drop(form, "malformed", s->malformed_samples);
    add_drop(form, "not_ip", s->not_ip);
    add_drop(form, "header_short", s->header_short);
    add_drop(form, "header_bad", s->header_bad);
    add_drop(form, "table_full", s->table_full);
    add_drop(form, "no_port_counters", s->no_port_counters);
    add_stage(form, "counters", "records", s->ports.received, s->ports.emitted, s->ports.pending);
    add_drop(form, "superseded", s->ports.superseded);
    add_drop(form, "table_full", s->ports.refused);
}

void ft_loss_emit(const struct ft_loss_facts *facts, struct ft_wall now, const struct ft_sink *sink)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    const struct ft_loss_transport *t = &facts->transport;
    struct form form = {.loss = FABRICTRACE__LOSS__INIT};

    form.loss.has_time_ms = true;
    form.loss.time_ms = (uint64_t)now.ms;
    form.loss.source = (char *)(uintptr_t)facts->source_id;
    form.loss.program = (char *)(uintptr_t) "fabrictrace-switchpoll";
    form.loss.stages = form.stage_list;
    add_network(&form, &facts->ingest);
    add_datagrams(&form, facts);
    add_samples(&form, &facts->ingest);
    add_stage(&form, "transport", "records", t->received, t->processed, t->pending);
    add_drop(&form, "queue_full", t->dropped);
    record.kind_case = FABRICTRACE__RECORD__KIND_LOSS;
    record.loss = &form.loss;
    sink->emit(sink->arg, &record);
}

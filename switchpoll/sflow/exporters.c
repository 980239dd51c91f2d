// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/exporters.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"

/* An agent stamps the uptime before it hands the datagram to the network, so neighbours may be
 * swapped by about this much. More is a restart. */
#define UPTIME_SWAP_MS 1000
/* How far back the uptime of a missing datagram may lie. */
#define UPTIME_LATE_MS 10000

/* Samples that an agent may have dropped in a row, where it does not count what it samples from. */
#define DROPS_MAX (1u << 16)

/* How much longer than an exporter a data source may be silent: ports that carry little have few
 * samples, those that an exporter numbered anew have none. */
#define HOUR_MS             (INT64_C(3600) * 1000)
#define SOURCE_SILENT_HOURS 24

/* Notifications of discarded packets have numbers of their own. */
#define TYPE_DISCARDS (1u << 31)

struct source_key {
    uint32_t exporter;
    uint32_t type;
    uint32_t index;
};

struct source {
    struct source_key key;
    uint16_t epoch; /* its exporter's, its low bits */
    uint16_t hour;  /* when it was seen, likewise */
    uint32_t drops; /* the agent's own count, as last stated */
    uint32_t pool;  /* packets that could have been sampled, likewise */
    struct ft_sequence sequence;
};

/* A slot per (exporter, index) of the sources last used. */
#define RECENT 1024
/* Likewise of the exporters, by what most differ in. */
#define RECENT_EXPORTERS 256

struct ft_sflow_exporters {
    struct ft_table *exporters;
    struct ft_table *sources;
    struct source *recent[RECENT];
    struct ft_exporter *recent_exporters[RECENT_EXPORTERS];
    bool late;      /* the datagram last noted came late */
    uint16_t hour;  /* of it, since 1970, the low bits */
    uint32_t index; /* of its exporter in the table */
    struct ft_sflow_exporters_stats stats;
};

struct ft_sflow_exporters *ft_sflow_exporters_new(uint64_t exporters_max, uint64_t sources_max,
                                                  uint64_t seed)
{
    struct ft_sflow_exporters *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->exporters = ft_table_new(sizeof(struct ft_exporter), offsetof(struct ft_exporter, uptime_ms),
                                exporters_max, seed);
    x->sources = ft_table_new(sizeof(struct source), sizeof(struct source_key), sources_max, seed);
    if (!x->exporters || !x->sources) {
        ft_sflow_exporters_free(x);
        return NULL;
    }
    return x;
}

void ft_sflow_exporters_free(struct ft_sflow_exporters *x)
{
    if (!x)
        return;
    ft_table_free(x->exporters);
    ft_table_free(x->sources);
    free(x);
}

static uint16_t hour_of(struct ft_wall when)
{
    return (uint16_t)(when.ms / HOUR_MS);
}

/* What a datagram is to its exporter. restart: its numbers begin anew. */
static enum ft_sflow_exporters_verdict
judge(const struct ft_exporter *e, const struct ft_sflow_head *head, uint64_t print, bool *restart)
{
    int32_t later_ms = (int32_t)(head->uptime_ms - e->uptime_ms);
    bool swapped = later_ms <= 0 && later_ms >= -UPTIME_SWAP_MS;

    *restart = false;
    switch (ft_sequence_look(&e->sequence, head->sequence)) {
    case FT_SEQUENCE_AHEAD:
        *restart = later_ms < -UPTIME_SWAP_MS;
        return FT_EXPORTERS_FRESH;
    case FT_SEQUENCE_BACK:
        *restart = (int32_t)(head->uptime_ms - e->before_ms) < -UPTIME_SWAP_MS;
        return FT_EXPORTERS_FRESH;
    case FT_SEQUENCE_LATE:
        if (later_ms <= 0 && later_ms >= -UPTIME_LATE_MS)
            return FT_EXPORTERS_LATE;
        break;
    case FT_SEQUENCE_SEEN:
        if (e->prints[head->sequence % FT_SEQUENCE_WINDOW] == print)
            return FT_EXPORTERS_DUPLICATE;
        break;
    case FT_SEQUENCE_EARLY:
        if (swapped)
            return FT_EXPORTERS_LATE;
        break;
    case FT_SEQUENCE_FAR:
        if (swapped && (int32_t)(head->sequence - e->sequence.last) < 0 && later_ms < 0)
            return FT_EXPORTERS_LATE;
        break;
    }
    *restart = true;
    return FT_EXPORTERS_FRESH;
}

static void begin_anew(struct ft_sflow_exporters *x, struct ft_exporter *e, uint32_t sequence)
{
    ft_sequence_restart(&e->sequence, sequence);
    memset(e->prints, 0, sizeof(e->prints));
    e->epoch++;
    e->restarts++;
    x->stats.restarts++;
}

static struct ft_exporter *exporter_of(struct ft_sflow_exporters *x,
                                       const struct ft_sflow_head *head, bool *fresh)
{
    /* As an exporter begins: agent and sub-agent, without a hole between. */
    struct {
        struct ft_ip agent;
        uint32_t sub_agent;
    } key = {head->agent, head->sub_agent};
    uint8_t slot = (uint8_t)(key.agent.b[15] + key.agent.b[14] * 7 + key.sub_agent * 61);
    struct ft_exporter **recent = &x->recent_exporters[slot % RECENT_EXPORTERS];
    struct ft_exporter *e = *recent;

    *fresh = false;
    if (e && e->sub_agent == key.sub_agent && ft_ip_equal(&e->agent, &key.agent))
        return e;
    e = ft_table_insert(x->exporters, &key, fresh);
    if (e)
        *recent = e;
    return e;
}

enum ft_sflow_exporters_verdict ft_sflow_exporters_datagram(struct ft_sflow_exporters *x,
                                                            const struct ft_sflow_head *head,
                                                            uint64_t print, struct ft_wall when,
                                                            struct ft_exporter **exporter)
{
    enum ft_sflow_exporters_verdict verdict;
    struct ft_exporter *e;
    bool fresh;
    bool restart;
    int64_t skipped;

    x->late = false;
    e = exporter_of(x, head, &fresh);
    *exporter = e;
    if (!e) {
        x->stats.arrived++;
        x->stats.untracked++;
        return FT_EXPORTERS_FRESH;
    }
    x->index = ft_table_index(x->exporters, e);
    x->hour = hour_of(when);
    if (fresh)
        e->uptime_ms = head->uptime_ms;
    e->last_seen = when;
    e->datagrams++;
    verdict = judge(e, head, print, &restart);
    if (verdict == FT_EXPORTERS_DUPLICATE) {
        e->duplicates++;
        x->stats.duplicates++;
        return verdict;
    }
    x->stats.arrived++;
    if (!e->sequence.outlying)
        e->before_ms = e->uptime_ms;
    if (restart)
        begin_anew(x, e, head->sequence);
    skipped = ft_sequence_take(&e->sequence, head->sequence);
    e->gap += (uint64_t)skipped;
    x->stats.gap += (uint64_t)skipped;
    e->prints[head->sequence % FT_SEQUENCE_WINDOW] = print;
    if (verdict == FT_EXPORTERS_LATE) {
        x->late = true;
        e->reordered++;
        x->stats.reordered++;
    } else {
        e->uptime_ms = head->uptime_ms;
    }
    return verdict;
}

/* Follows a data source's sample numbers; returns the samples newly missing, negative when a late
 * one came. */
static int64_t follow(const struct ft_sflow_exporters *x, struct source *s, uint32_t number)
{
    enum ft_sequence_step step = ft_sequence_look(&s->sequence, number);

    if (step == FT_SEQUENCE_AHEAD || step == FT_SEQUENCE_LATE || step == FT_SEQUENCE_BACK)
        return ft_sequence_take(&s->sequence, number);
    if (!x->late)
        ft_sequence_restart(&s->sequence, number);
    return 0;
}

/* The samples that an agent says it dropped since its last sample: none where its count went back,
 * or grew by more than the packets that it took samples from. */
static uint32_t dropped(struct ft_sflow_exporters *x, const struct source *s,
                        const struct ft_sflow_flow *flow)
{
    uint32_t more = flow->drops - s->drops;
    uint32_t most = flow->sample_pool || s->pool ? flow->sample_pool - s->pool : DROPS_MAX;

    /* Notifications of discards are no samples: a limit to their rate is as it should be. */
    if (more == 0 || more >= 1u << 31 || flow->discarded)
        return 0;
    if (more <= most && most < 1u << 31)
        return more;
    x->stats.odd_drops++;
    return 0;
}

/* A sample that is not simply its source's next. */
static __attribute__((noinline)) void note_flow(struct ft_sflow_exporters *x, struct ft_exporter *e,
                                                const struct source_key *key,
                                                struct source **recent,
                                                const struct ft_sflow_flow *flow)
{
    bool fresh;
    struct source *s = ft_table_insert(x->sources, key, &fresh);
    uint32_t more;
    int64_t skipped;

    if (!s) {
        x->stats.untracked_samples++;
        return;
    }
    *recent = s;
    s->hour = x->hour;
    /* The first count of drops only says what was before our time. */
    if (fresh || s->epoch != (uint16_t)e->epoch) {
        s->epoch = (uint16_t)e->epoch;
        s->drops = flow->drops;
        s->pool = flow->sample_pool;
        ft_sequence_restart(&s->sequence, flow->sequence);
        return;
    }
    skipped = follow(x, s, flow->sequence);
    e->samples_gap += (uint64_t)skipped;
    x->stats.samples_gap += (uint64_t)skipped;
    if (x->late)
        return;
    more = dropped(x, s, flow);
    e->agent_drops += more;
    x->stats.agent_drops += more;
    s->drops = flow->drops;
    s->pool = flow->sample_pool;
}

void ft_sflow_exporters_flow(struct ft_sflow_exporters *x, struct ft_exporter *e,
                             const struct ft_sflow_flow *flow)
{
    uint32_t type = flow->source_type | (flow->discarded ? TYPE_DISCARDS : 0);
    uint32_t index = flow->source_index;
    struct source **recent = &x->recent[(x->index * 61 + index + (type >> 31)) % RECENT];
    struct source *s = *recent;

    x->stats.flow_samples++;
    if (!e) {
        x->stats.untracked_samples++;
        return;
    }
    e->flow_samples++;
    /* Nearly always: of a source met before, its next one, and nothing dropped. */
    if (s && s->key.exporter == x->index && s->key.type == type && s->key.index == index &&
        s->epoch == (uint16_t)e->epoch && s->drops == flow->drops &&
        ft_sequence_next(&s->sequence, flow->sequence)) {
        s->pool = flow->sample_pool;
        s->hour = x->hour;
        return;
    }
    note_flow(x, e, &(struct source_key){x->index, type, index}, recent, flow);
}

void ft_sflow_exporters_expire(struct ft_sflow_exporters *x, struct ft_wall now, int64_t silent_ms)
{
    struct ft_wall before = {now.ms - silent_ms};
    uint16_t hour = hour_of(now), oldest = (uint16_t)(hour_of(before) - SOURCE_SILENT_HOURS);
    struct ft_exporter *e;
    struct source *s;
    uint32_t at = 0;

    memset(x->recent, 0, sizeof(x->recent));
    memset(x->recent_exporters, 0, sizeof(x->recent_exporters));
    /* Sources first, while their exporter's index still says whose they are. */
    while ((s = ft_table_next(x->sources, &at))) {
        if ((int16_t)(s->hour - hour) > 0)
            s->hour = hour;
        e = ft_table_at(x->exporters, s->key.exporter);
        if (!e || e->last_seen.ms < before.ms || (int16_t)(s->hour - oldest) < 0)
            ft_table_remove(x->sources, s);
    }
    at = 0;
    while ((e = ft_table_next(x->exporters, &at))) {
        if (e->last_seen.ms > now.ms)
            e->last_seen = now;
        if (e->last_seen.ms < before.ms)
            ft_table_remove(x->exporters, e);
    }
}

void ft_sflow_exporters_stats(const struct ft_sflow_exporters *x,
                              struct ft_sflow_exporters_stats *stats)
{
    *stats = x->stats;
    stats->exporters = ft_table_count(x->exporters);
    stats->sources = ft_table_count(x->sources);
}

const struct ft_exporter *ft_sflow_exporters_next(const struct ft_sflow_exporters *x,
                                                  uint32_t *index)
{
    return ft_table_next(x->exporters, index);
}

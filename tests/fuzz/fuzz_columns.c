// SPDX-License-Identifier: Apache-2.0
/*
 * Observations in columns as a peer sends them: lists that do not fit together are refused, and
 * what is read can be written and read again with the same outcome.
 */
#include "config.h"

#include <string.h>

#include "proto/batch.h"
#include "proto/columns.h"
#include "proto/record.h"
#include "tests/fuzz/fuzz.h"

static void fill_rest(Fabrictrace__Observation *m, const struct ft_observed *o)
{
    m->ce_samples = o->ce_samples;
    m->cnp_samples = o->cnp_samples;
    m->has_queue_max_bytes = o->has_queue;
    m->queue_max_bytes = o->queue_max_bytes;
    m->has_transit_max_ns = o->has_transit;
    m->transit_max_ns = o->transit_max_ns;
    m->has_psn = o->has_psn;
    m->psn = o->psn;
    m->psn_span = o->psn_span;
    m->psn_back_samples = o->psn_back_samples;
    m->message_starts = o->message_starts;
    m->frame_min_bytes = o->frame_min_bytes;
    m->frame_max_bytes = o->frame_max_bytes;
    m->nak_samples = o->nak_samples;
    m->rnr_samples = o->rnr_samples;
    m->no_credit_samples = o->no_credit_samples;
    m->source_routed = o->source_routed;
    m->has_vni = o->has_vni;
    m->vni = o->vni;
}

/* As a message again; borrows from *o and fills *flow and *outer. */
static Fabrictrace__Observation message_of(const struct ft_observed *o, Fabrictrace__Flow *flow,
                                           Fabrictrace__Flow *outer)
{
    Fabrictrace__Observation m = FABRICTRACE__OBSERVATION__INIT;

    ft_flow_from_tuple(flow, &o->tuple);
    ft_flow_from_tuple(outer, &o->outer);
    m.flow = flow;
    m.outer = o->has_outer ? outer : NULL;
    m.has_time_ms = m.has_interval_ms = m.has_first_ms = m.has_last_ms = m.has_agent = true;
    m.has_samples = m.has_packets = m.has_bytes = true;
    m.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&o->agent, &m.agent.len);
    m.time_ms = o->time_ms;
    m.interval_ms = o->interval_ms;
    m.first_ms = o->first_ms;
    m.last_ms = o->last_ms;
    m.in_ifindex = o->in_ifindex;
    m.out_ifindex = o->out_ifindex;
    m.samples = o->samples;
    m.data_samples = o->data_samples;
    m.ack_samples = o->ack_samples;
    m.packets = o->packets;
    m.bytes = o->bytes;
    m.has_dst_qp = o->has_dst_qp;
    m.dst_qp = o->dst_qp;
    m.has_ttl = o->has_ttl;
    m.ttl = o->ttl;
    fill_rest(&m, o);
    return m;
}

struct expected {
    struct ft_observed o;
    uint64_t calls;
};

static void compare(void *arg, const struct ft_observed *o)
{
    struct expected *e = arg;

    e->calls++;
    ft_fuzz_assert(memcmp(&o->tuple, &e->o.tuple, sizeof(o->tuple)) == 0, "the same flow");
    ft_fuzz_assert(memcmp(&o->agent, &e->o.agent, sizeof(o->agent)) == 0, "the same switch");
    ft_fuzz_assert(o->first_ms == e->o.first_ms && o->last_ms == e->o.last_ms, "the same times");
    ft_fuzz_assert(o->packets == e->o.packets && o->bytes == e->o.bytes, "the same volume");
    ft_fuzz_assert(o->samples == e->o.samples && o->data_samples == e->o.data_samples &&
                       o->ack_samples == e->o.ack_samples,
                   "the same samples");
    ft_fuzz_assert(o->has_dst_qp == e->o.has_dst_qp && o->dst_qp == e->o.dst_qp &&
                       o->has_ttl == e->o.has_ttl && o->ttl == e->o.ttl,
                   "the same queue pair and TTL");
    ft_fuzz_assert(o->ce_samples == e->o.ce_samples && o->cnp_samples == e->o.cnp_samples &&
                       o->nak_samples == e->o.nak_samples && o->rnr_samples == e->o.rnr_samples &&
                       o->no_credit_samples == e->o.no_credit_samples,
                   "the same marks and answers");
    ft_fuzz_assert(o->has_queue == e->o.has_queue && o->queue_max_bytes == e->o.queue_max_bytes &&
                       o->has_transit == e->o.has_transit &&
                       o->transit_max_ns == e->o.transit_max_ns,
                   "the same queue and delay");
    ft_fuzz_assert(o->has_psn == e->o.has_psn && o->message_starts == e->o.message_starts,
                   "the same starts of messages");
    ft_fuzz_assert(!o->has_psn || (o->psn == e->o.psn && o->psn_span == e->o.psn_span &&
                                   o->psn_back_samples == e->o.psn_back_samples),
                   "the same sequence");
    ft_fuzz_assert(o->frame_min_bytes == e->o.frame_min_bytes &&
                       o->frame_max_bytes == e->o.frame_max_bytes,
                   "the same lengths of frames");
    ft_fuzz_assert(o->source_routed == e->o.source_routed, "the same kind of path");
    ft_fuzz_assert(o->has_vni == e->o.has_vni && o->vni == e->o.vni, "the same network");
}

static void other(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    (void)record;
    ft_fuzz_assert(false, "nothing else comes out");
}

static void again(struct ft_columns *columns, const struct ft_observed *o)
{
    struct expected expected = {.o = *o};
    const struct ft_batch_sink sink = {other, compare, &expected};
    Fabrictrace__Flow flow, outer;
    Fabrictrace__Observation m = message_of(o, &flow, &outer);
    struct ft_batch *batch;
    struct ft_writer w;
    int rc;

    if (ft_columns_add(columns, &m))
        return;
    ft_writer_init(&w, 1u << 20);
    ft_fuzz_assert(ft_columns_pack(columns, &w) == 0, "one observation fits");
    batch = ft_batch_new(w.len);
    while ((rc = ft_batch_step(batch, w.bytes, 1, &sink)) > 0)
        ;
    ft_fuzz_assert(rc == 0 && expected.calls == 1, "it is read back");
    ft_batch_free(batch);
    ft_writer_free(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    Fabrictrace__Observations *m = fabrictrace__observations__unpack(NULL, len, bytes);
    struct ft_columns *columns;
    struct ft_columns_reader r;
    struct ft_observed o = {.packets = 0};
    size_t rows = 0;

    if (!m)
        return 0;
    columns = ft_columns_new(1u << 16);
    if (columns && ft_columns_open(&r, m) == 0) {
        for (; ft_columns_next(&r, &o); rows++)
            if (rows < 16)
                again(columns, &o);
        ft_fuzz_assert(rows == m->n_source, "every row once");
    }
    ft_columns_free(columns);
    fabrictrace__observations__free_unpacked(m, NULL);
    return 0;
}

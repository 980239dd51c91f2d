// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/service/probers.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/probe/probe_list.h"
#include "daemon/probe/probed.h"
#include "daemon/probe/prober.h"
#include "lib/base/clock.h"
#include "lib/base/writer.h"
#include "lib/io/transport/transport.h"
#include "proto/record.h"

#define AGENT     "fabrictrace-agent"
#define NS_PER_MS 1000000
#define TICK_NS   (INT64_C(100) * NS_PER_MS)
/* Flows that are looked at in a tick, which takes a millisecond or two. */
#define LOOKS 4000

struct ft_probers {
    const struct ft_stages *stages;
    struct ft_receiver *receiver;
    struct ft_watch *tick;
};

/* Until the agent says more. */
static void list(const struct ft_probers *p, const struct ft_prober_question *q, int64_t now_ms)
{
    Fabrictrace__Probe probe = FABRICTRACE__PROBE__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;

    ft_flow_from_tuple(&flow, &q->request.tuple);
    probe.has_time_ms = probe.has_dst_qp = probe.has_dscp = probe.has_switches = true;
    probe.time_ms = (uint64_t)now_ms;
    probe.host = (char *)(uintptr_t)q->host;
    probe.flow = &flow;
    probe.dst_qp = q->request.dst_qp;
    probe.dscp = q->request.dscp;
    probe.switches = q->request.switches;
    probe.has_by_daemon = probe.by_daemon = true;
    probe.has_outcome = true;
    probe.outcome = FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_ASKED;
    /* Without memory its last one stays. */
    (void)ft_probe_list_put(p->stages->probed->list, &probe);
}

static int deliver(const struct ft_probers *p, const struct ft_prober_question *q)
{
    struct ft_writer w;
    int rc = -ENOMEM;

    ft_writer_init(&w, FT_PROBE_REQUEST_BYTES);
    ft_probe_request_write(&w, &q->request);
    if (ft_writer_ok(&w))
        rc = ft_receiver_notify(p->receiver, AGENT, q->source, w.bytes, w.len);
    ft_writer_free(&w);
    return rc;
}

static void on_tick(void *arg)
{
    struct ft_probers *p = arg;
    struct ft_prober_question q;
    int64_t now_ms = ft_wall_now().ms;

    if (!ft_prober_next(p->stages->prober, p->stages->join, now_ms, LOOKS, &q))
        return;
    if (deliver(p, &q))
        ft_prober_undelivered(p->stages->prober, p->stages->join, &q, now_ms);
    else
        list(p, &q, now_ms);
}

struct ft_probers *ft_probers_new(struct ft_loop *loop, const struct ft_stages *stages,
                                  struct ft_receiver *receiver)
{
    struct ft_probers *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->stages = stages;
    p->receiver = receiver;
    p->tick = ft_watch_stage(ft_watch_timer(loop, TICK_NS, on_tick, p), "probes");
    if (p->tick)
        return p;
    ft_probers_free(p);
    return NULL;
}

void ft_probers_free(struct ft_probers *p)
{
    if (!p)
        return;
    ft_watch_free(p->tick);
    free(p);
}

void ft_probers_account(const struct ft_probers *p, struct ft_account *account)
{
    const struct ft_prober_stats *s = p ? ft_prober_stats(p->stages->prober) : NULL;
    struct ft_account_stage *stage;

    if (!p)
        return;
    stage = ft_account_stage(account, "probes", "requests");
    stage->received = s->asked;
    stage->processed = s->answered;
    stage->pending = s->pending;
    ft_account_drop(stage, "refused", s->refused);
    ft_account_drop(stage, "lost", s->lost);
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/downed.h"

#include <inttypes.h>

#include "daemon/diagnosis/answers.h"
#include "daemon/join/flow_path.h"

/* A step that was sent before its link went down took no longer; times are of several hosts. */
#define SLACK_MS 5000

/* What went down under it. */
struct downed {
    const struct ft_witnesses *w;
    int64_t since_ms, now_ms; /* it stands */
    size_t count;
    uint32_t out, in; /* ends of the last */
    uint32_t end;     /* of these: which went down, or was shut */
    bool answer;      /* that is on the path of the answers alone */
    struct ft_port_report state;
};

/* A link from the one port to the other, FT_NONE at a host. */
static void look_at_link(struct downed *d, uint32_t out, uint32_t in, bool answer)
{
    const uint32_t ends[2] = {out, in};
    struct ft_port_report state;
    bool found = false;

    /* In its other direction it is the same link. */
    if (d->count == 1 && (out == d->out || out == d->in))
        return;
    for (int i = 0; i < 2; i++) {
        if (ends[i] == FT_NONE || !ft_counters_state(d->w->counters, ends[i], d->now_ms, &state) ||
            !state.went_down || state.up_ms > d->since_ms + SLACK_MS)
            continue;
        d->count += !found;
        /* A port that was shut takes the other end down, not the other way round. */
        if (found && !state.shut)
            continue;
        found = true;
        d->out = out;
        d->in = in;
        d->answer = answer;
        d->state = state;
        d->end = ends[i];
    }
}

/* The links of the path that is certain; or was, until one of them was taken out. */
static void look_at_flow(struct downed *d, const struct ft_flow *flow, bool answer)
{
    const struct ft_topology *t = ft_join_topology(d->w->join);
    struct ft_path path;

    if (!flow)
        return;
    path = ft_flow_path(t, flow);
    for (uint32_t h = 0; h < path.hop_count; h++) {
        uint32_t out = path.hops[h].out;
        uint32_t in = h + 1 < path.hop_count ? path.hops[h + 1].in : FT_NONE;

        if (flow->state == FT_PATH_RESOLVED ||
            (in != FT_NONE && ft_topology_port(t, out)->peer == FT_NONE))
            look_at_link(d, out, in, answer);
    }
}

static void look(struct downed *d, const struct ft_stand *stand,
                 const struct ft_diagnosis_report *r, const struct ft_testimony *room)
{
    bool sends = stand->known && stand->transfer && stand->transfer->sends && stand->peer;
    bool arrived = sends && ft_stand_arrived(stand->rank, stand->transfer, stand->peer);
    const struct ft_topology *t = ft_join_topology(d->w->join);
    struct ft_tuple tuple;

    for (size_t i = 0; i < r->message.n_links && !arrived; i++)
        look_at_link(d, room->ports[i], ft_topology_port(t, room->ports[i])->peer, false);
    if (!sends || !d->w->pairs ||
        !ft_pair_links_tuple(d->w->pairs, stand->rank->comm_id, stand->rank->rank,
                             stand->peer->rank, &tuple))
        return;
    if (!arrived)
        look_at_flow(d, ft_join_find(d->w->join, &tuple), false);
    look_at_flow(d, ft_answers_flow(d->w->join, &tuple), true);
}

void ft_downed_report(const struct ft_witnesses *w, const struct ft_stand *stand,
                      struct ft_diagnosis_report *r, struct ft_testimony *room, int64_t now_ms)
{
    Fabrictrace__Diagnosis *m = &r->message;
    const struct ft_topology *t;
    const struct ft_port *port;
    struct downed d = {.w = w, .now_ms = now_ms};

    if (!w->join || !w->counters || m->syndrome != FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG)
        return;
    d.since_ms = (int64_t)(m->has_transfer_since_ms ? m->transfer_since_ms : m->since_ms);
    look(&d, stand, r, room);
    if (d.count != 1)
        return;
    t = ft_join_topology(w->join);
    port = ft_topology_port(t, d.out);
    m->switch_ = (char *)(uintptr_t)ft_topology_switch(t, port->switch_id)->name;
    m->port = (char *)(uintptr_t)port->name;
    m->has_side = true;
    m->side = FABRICTRACE__SIDE__SIDE_PAIR;
    m->confidence = 0.95;
    if (d.state.shut) {
        const struct ft_port *shut = ft_topology_port(t, d.end);

        ft_witness_say(room, m->evidence_for, &m->n_evidence_for,
                       "%s %s, under %s, is down since an administrator shut down %s %s, and "
                       "nothing else under them is down",
                       m->switch_, m->port, d.answer ? "the answers to it" : "their flow",
                       ft_topology_switch(t, shut->switch_id)->name, shut->name);
        return;
    }
    ft_witness_say(room, m->evidence_for, &m->n_evidence_for,
                   "%s %s, under %s, is down: reported up for the last time %" PRId64
                   " s before it was reported down, and nothing else under them is down",
                   m->switch_, m->port, d.answer ? "the answers to it" : "their flow",
                   (d.state.down_ms - d.state.up_ms) / 1000);
}

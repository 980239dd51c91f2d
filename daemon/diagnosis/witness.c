// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/witness.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/diagnosis/stand.h"
#include "daemon/publish/emit.h"
#include "proto/json.h"

#define NEEDLESS 8    /* frames that are no reason */
#define FULL     0.95 /* of its speed */
#define DEEP_S   1e-4 /* that a queue takes to send */

static char *own(const char *text)
{
    return (char *)(uintptr_t)text;
}

void ft_witness_say(struct ft_testimony *room, char **list, size_t *count, const char *format, ...)
{
    va_list args;

    if (room->text_count == FT_TESTIMONY_TEXTS || *count == FT_REPORT_TEXTS)
        return;
    va_start(args, format);
    vsnprintf(room->texts[room->text_count], FT_TESTIMONY_BYTES, format, args);
    va_end(args);
    list[(*count)++] = room->texts[room->text_count++];
}

static void say_who(const struct ft_witnesses *w, const struct ft_recent_rank *rank,
                    struct ft_diagnosis_report *r, struct ft_testimony *room)
{
    const struct ft_rank_member *m =
        w->ranks ? ft_ranks_member(w->ranks, rank->comm_id, rank->rank) : NULL;
    Fabrictrace__Diagnosis *d = &r->message;
    char state[FT_JSON_ENUM_BYTES];

    snprintf(room->host, sizeof(room->host), "%s", rank->process->host);
    d->host = room->host;
    d->has_pid = rank->process->pid != 0;
    d->pid = rank->process->pid;
    if (m && m->gpu[0]) {
        snprintf(room->gpu, sizeof(room->gpu), "%s", m->gpu);
        d->gpu = room->gpu;
    }
    if (rank->progress.heard_ms && rank->progress.process) {
        d->has_process = true;
        d->process = rank->progress.process;
        ft_json_enum_text(&fabrictrace__process_state__descriptor, (int32_t)d->process, state);
        if (ft_stand_is_stopped(rank))
            ft_witness_say(room, d->evidence_for, &d->n_evidence_for, "its process is %s", state);
    }
}

/* The deepest queue before a port in the window, and how long it takes to send [s]; -1: not known.
 */
static double queue_of(const struct ft_witnesses *w, uint32_t port, uint64_t speed_bps,
                       Fabrictrace__DiagnosisLink *link)
{
    const struct ft_port_depths *depths = ft_join_depths(w->join, port);
    unsigned slot = w->window % 2;

    if ((depths->window != w->window && depths->window != w->window + 1) ||
        !depths->has_queue[slot])
        return -1;
    link->has_queue_bytes = true;
    link->queue_bytes = depths->queue_max_bytes[slot];
    return speed_bps ? (double)link->queue_bytes * 8 / (double)speed_bps : -1;
}

/* Whether an end of the link went down, by the newest that is known of its state. */
static void note_state(const struct ft_witnesses *w, uint32_t id, uint32_t peer, int64_t now_ms,
                       Fabrictrace__DiagnosisLink *link)
{
    uint32_t ends[2] = {id, peer};
    struct ft_port_report state;

    for (int i = 0; i < 2 && w->counters; i++) {
        if (ends[i] == FT_NONE || !ft_counters_state(w->counters, ends[i], now_ms, &state))
            continue;
        link->has_down = true;
        link->down |= state.went_down;
        link->has_shut |= state.shut;
        link->shut |= state.shut;
    }
}

/* A directed link as the topology has it, with what its far end counted. */
static bool add_link(const struct ft_witnesses *w, uint32_t id, struct ft_diagnosis_report *r,
                     struct ft_testimony *room, int64_t now_ms)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    const struct ft_port *port = ft_topology_port(t, id);
    Fabrictrace__Diagnosis *d = &r->message;
    Fabrictrace__DiagnosisLink *link = &room->links[d->n_links];
    uint64_t speed_bps = w->counters ? ft_counters_speed_bps(w->counters, id) : 0;
    struct ft_counted counted;
    double bad = 0;

    if (!speed_bps)
        speed_bps = port->speed_bps;
    room->ports[d->n_links] = id;
    fabrictrace__diagnosis_link__init(link);
    link->switch_ = own(ft_topology_switch(t, port->switch_id)->name);
    link->port = own(port->name);
    if (port->peer != FT_NONE) {
        const struct ft_port *peer = ft_topology_port(t, port->peer);

        link->peer = own(ft_topology_switch(t, peer->switch_id)->name);
        link->peer_port = own(peer->name);
    }
    note_state(w, id, port->peer, now_ms, link);
    if (w->counters && ft_counters_window(w->counters, id, w->window, &counted)) {
        link->has_discards = counted.has_out_discards;
        link->discards = (uint64_t)counted.out_discards;
        bad += counted.has_out_discards ? counted.out_discards : 0;
        link->has_pauses = counted.has_in_pause || counted.has_in_pfc;
        link->pauses = (uint64_t)((counted.has_in_pause ? counted.in_pause : 0) +
                                  (counted.has_in_pfc ? counted.in_pfc : 0));
        link->has_load = counted.has_out_bytes && speed_bps > 0 && w->window_ms > 0;
        if (link->has_load)
            link->load = counted.out_bytes * 8000 / ((double)speed_bps * (double)w->window_ms);
    }
    if (w->counters && port->peer != FT_NONE &&
        ft_counters_window(w->counters, port->peer, w->window, &counted)) {
        link->has_errors = counted.has_in_errors;
        link->errors = (uint64_t)counted.in_errors;
        bad += counted.has_in_errors ? counted.in_errors : 0;
    }
    link->has_suspect = link->suspect = bad >= NEEDLESS;
    room->queues_s[d->n_links] = queue_of(w, id, speed_bps, link);
    room->link_list[d->n_links++] = link;
    d->links = room->link_list;
    return link->suspect;
}

/* What a link's counters say of it beside errors. */
static void say_load(const Fabrictrace__DiagnosisLink *link, double queue_s,
                     struct ft_diagnosis_report *r, struct ft_testimony *room)
{
    Fabrictrace__Diagnosis *d = &r->message;

    if (link->pauses >= NEEDLESS)
        ft_witness_say(room, d->evidence_for, &d->n_evidence_for,
                       "%s %s: its other end, %s, asked %" PRIu64 " times for a pause",
                       link->switch_, link->port, link->peer ? link->peer : "the host",
                       link->pauses);
    if (link->load >= FULL)
        ft_witness_say(room, d->evidence_for, &d->n_evidence_for,
                       "%s %s is full: %.0f %% of its speed", link->switch_, link->port,
                       link->load * 100);
    if (queue_s >= DEEP_S)
        ft_witness_say(room, d->evidence_for, &d->n_evidence_for,
                       "%s %s: a packet met %" PRIu64 " bytes before it, %.0f us of its speed",
                       link->switch_, link->port, link->queue_bytes, queue_s * 1e6);
}

static void say_links(const struct ft_witnesses *w, const struct ft_pair_path *path,
                      struct ft_diagnosis_report *r, struct ft_testimony *room, int64_t now_ms)
{
    Fabrictrace__Diagnosis *d = &r->message;
    size_t suspects = 0, counted = 0;

    for (uint32_t i = 0; i < path->count && d->n_links < FT_TESTIMONY_LINKS; i++) {
        const Fabrictrace__DiagnosisLink *link = &room->links[d->n_links];

        if (add_link(w, path->ports[i], r, room, now_ms)) {
            suspects++;
            d->switch_ = link->switch_;
            d->port = link->port;
            ft_witness_say(room, d->evidence_for, &d->n_evidence_for,
                           "%s %s, under their flow: %" PRIu64 " damaged and %" PRIu64
                           " dropped frames in the last window",
                           link->switch_, link->port, link->errors, link->discards);
        }
        counted += link->has_errors || link->has_discards;
        say_load(link, room->queues_s[link - room->links], r, room);
    }
    room->suspects = (uint32_t)suspects;
    if (suspects > 1)
        d->switch_ = d->port = NULL;
    if (suspects == 0 && counted == path->count && counted > 0)
        ft_witness_say(room, d->evidence_against, &d->n_evidence_against,
                       "no link under their flow counts damaged or dropped frames");
    if (path->unsure)
        ft_witness_say(room, d->evidence_against, &d->n_evidence_against,
                       "the paths of the flows between them are not certain");
}

static void say_path(const struct ft_witnesses *w, const struct ft_recent_rank *from,
                     const struct ft_recent_rank *to, struct ft_diagnosis_report *r,
                     struct ft_testimony *room, int64_t now_ms)
{
    Fabrictrace__Diagnosis *d = &r->message;
    struct ft_pair_path path;

    if (!w->pairs || !w->join || strcmp(from->comm_id, to->comm_id) != 0 ||
        !ft_pair_links_path(w->pairs, from->comm_id, from->rank, to->rank, &path))
        return;
    ft_emit_tuple(&room->flow, &path.tuple);
    /* The addresses are the pair's own, and may be gone by the time that this is read. */
    memcpy(room->addresses[0], room->flow.src.data, room->flow.src.len);
    memcpy(room->addresses[1], room->flow.dst.data, room->flow.dst.len);
    room->flow.src.data = room->addresses[0];
    room->flow.dst.data = room->addresses[1];
    d->flow = &room->flow;
    d->has_qp = path.qp != UINT32_MAX;
    d->qp = path.qp;
    say_links(w, &path, r, room, now_ms);
}

/* What the ports of both hosts felt. */
static void say_hosts(const struct ft_witnesses *w, const struct ft_recent_rank *from,
                      const struct ft_recent_rank *to, struct ft_diagnosis_report *r,
                      struct ft_testimony *room, int64_t now_ms)
{
    Fabrictrace__Diagnosis *d = &r->message;
    struct ft_congestion_felt sender, receiver;
    uint64_t lost, marked;
    bool known;

    if (!w->congestion)
        return;
    known = ft_congestion_of(w->congestion, from->process->host, now_ms, &sender);
    known &= ft_congestion_of(w->congestion, to->process->host, now_ms, &receiver);
    lost = sender.retransmissions + sender.timeouts + receiver.out_of_sequence;
    marked = sender.cnp_handled + receiver.cnp_sent;
    if (lost >= NEEDLESS)
        ft_witness_say(room, d->evidence_for, &d->n_evidence_for,
                       "packets are lost: %s sent %" PRIu64 " again and timed out %" PRIu64
                       " times, at %s %" PRIu64 " came out of sequence",
                       from->process->host, sender.retransmissions, sender.timeouts,
                       to->process->host, receiver.out_of_sequence);
    if (marked >= NEEDLESS)
        ft_witness_say(
            room, d->evidence_for, &d->n_evidence_for,
            "congestion on the way: %s sent %" PRIu64 " notifications, %s obeyed %" PRIu64,
            to->process->host, receiver.cnp_sent, from->process->host, sender.cnp_handled);
    if (sender.not_ready >= NEEDLESS || receiver.not_ready >= NEEDLESS)
        ft_witness_say(room, d->evidence_for, &d->n_evidence_for,
                       "receivers were not ready: %" PRIu64 " times at %s, %" PRIu64 " at %s",
                       sender.not_ready, from->process->host, receiver.not_ready,
                       to->process->host);
    if (known && lost + marked < NEEDLESS)
        ft_witness_say(room, d->evidence_against, &d->n_evidence_against,
                       "the ports of %s and %s lost nothing and felt no congestion",
                       from->process->host, to->process->host);
}

void ft_witness_report(const struct ft_witnesses *w, const struct ft_recent *recent,
                       const struct ft_recent_rank *rank, const struct ft_recent_rank *peer,
                       struct ft_diagnosis_report *r, struct ft_testimony *room, int64_t now_ms)
{
    Fabrictrace__Diagnosis *d = &r->message;
    bool receives = d->has_side && d->side == FABRICTRACE__SIDE__SIDE_RECEIVER;

    (void)recent;
    if (!rank || !rank->process)
        return;
    say_who(w, rank, r, room);
    if (!peer || !peer->process)
        return;
    snprintf(room->peer_host, sizeof(room->peer_host), "%s", peer->process->host);
    d->peer_host = room->peer_host;
    say_path(w, receives ? peer : rank, receives ? rank : peer, r, room, now_ms);
    say_hosts(w, receives ? peer : rank, receives ? rank : peer, r, room, now_ms);
}

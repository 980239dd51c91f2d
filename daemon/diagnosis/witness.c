// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/witness.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/publish/emit.h"
#include "proto/json.h"

#define NEEDLESS 8    /* frames that are no reason */
#define FULL     0.95 /* of its speed */

static char *own(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* What the transfers of a rank say of it. */
enum role {
    ROLE_SILENT,  /* nothing of it is known */
    ROLE_WAITS,   /* for a peer */
    ROLE_SENDS,   /* something is on the wire */
    ROLE_ITSELF,  /* its own GPU or proxy is what is waited for */
    ROLE_STOPPED, /* its process does not run */
};

bool ft_witness_is_stopped(const struct ft_recent_rank *rank)
{
    const struct ft_recent_progress *p = &rank->progress;

    return p->process == FABRICTRACE__PROCESS_STATE__PROCESS_STATE_STOPPED ||
           p->process == FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE ||
           p->process == FABRICTRACE__PROCESS_STATE__PROCESS_STATE_UNINTERRUPTIBLE;
}

static enum role role_of(const struct ft_recent_rank *r, const struct ft_recent_transfer **transfer)
{
    const struct ft_recent_progress *p = &r->progress;
    enum role role = ROLE_SILENT;

    *transfer = NULL;
    if (!p->heard_ms)
        return ROLE_SILENT;
    if (ft_witness_is_stopped(r))
        return ROLE_STOPPED;
    /* A wait for a peer explains all else: a ring's GPU waits for what it receives, too. */
    for (uint32_t i = 0; i < p->transfer_count; i++) {
        const struct ft_recent_transfer *t = &p->transfers[i];
        enum role its;

        switch (t->state) {
        case FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT:
        case FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_PEER_WAIT:
            its = ROLE_WAITS;
            break;
        case FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT:
            its = ROLE_SENDS;
            break;
        case FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_UNKNOWN:
        case FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_IDLE:
            continue;
        default:
            its = ROLE_ITSELF;
            break;
        }
        /* What was handed to the network and is not completed is what stands, whoever waits. */
        if (role == ROLE_SENDS || (role == ROLE_WAITS && its != ROLE_SENDS))
            continue;
        role = its;
        *transfer = t;
    }
    return role;
}

static void name_state(Fabrictrace__TransferState state, char text[FT_JSON_ENUM_BYTES])
{
    ft_json_enum_text(&fabrictrace__transfer_state__descriptor, (int32_t)state, text);
}

static void stand_process(struct ft_stand *out, const struct ft_recent_rank *r)
{
    char state[FT_JSON_ENUM_BYTES];

    ft_json_enum_text(&fabrictrace__process_state__descriptor, (int32_t)r->progress.process, state);
    *out = (struct ft_stand){.known = true, .rank = r};
    snprintf(out->reason, sizeof(out->reason), "the process of the rank, %" PRIu32 " on %s, is %s",
             r->process->pid, r->process->host, state);
}

static void stand_transfer(struct ft_stand *out, const struct ft_recent *recent,
                           const struct ft_recent_rank *r, const struct ft_recent_transfer *t,
                           bool in_network)
{
    char state[FT_JSON_ENUM_BYTES];

    name_state(t->state, state);
    *out = (struct ft_stand){.known = true, .in_network = in_network, .rank = r, .transfer = t};
    if (in_network)
        out->peer = ft_recent_find(recent, r->comm_id, t->peer);
    snprintf(out->reason, sizeof(out->reason),
             "its transfer %s rank %" PRIu32 " of communicator %s, channel %" PRIu32
             ", is in %s after %" PRIu32 " of %" PRIu32 " steps",
             t->sends ? "to" : "from", t->peer, r->comm_id, t->channel, state, t->steps_done,
             t->steps);
}

void ft_witness_stand(const struct ft_recent *recent, const struct ft_recent_job *job,
                      const char *comm_id, struct ft_stand *out)
{
    const struct ft_recent_rank *stopped = NULL, *itself = NULL, *sends = NULL;
    const struct ft_recent_transfer *t, *own_transfer = NULL, *sent = NULL;
    size_t stopped_count = 0, itself_count = 0, sends_count = 0;

    *out = (struct ft_stand){.known = false};
    for (const struct ft_recent_rank *r = job->first; r; r = r->next) {
        if (!r->process || strcmp(r->comm_id, comm_id) != 0)
            continue;
        switch (role_of(r, &t)) {
        case ROLE_STOPPED:
            stopped = r;
            stopped_count++;
            break;
        case ROLE_ITSELF:
            itself = r;
            own_transfer = t;
            itself_count++;
            break;
        case ROLE_SENDS:
            sends = r;
            sent = t;
            sends_count++;
            break;
        default:
            break;
        }
    }
    /* A process that does not run takes nothing from the network either. */
    if (stopped_count == 1)
        stand_process(out, stopped);
    else if (stopped_count == 0 && sends_count == 1)
        stand_transfer(out, recent, sends, sent, true);
    else if (stopped_count == 0 && sends_count == 0 && itself_count == 1)
        stand_transfer(out, recent, itself, own_transfer, false);
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
    d->has_pid = true;
    d->pid = rank->process->pid;
    if (m && m->gpu[0]) {
        snprintf(room->gpu, sizeof(room->gpu), "%s", m->gpu);
        d->gpu = room->gpu;
    }
    if (rank->progress.heard_ms && rank->progress.process) {
        d->has_process = true;
        d->process = rank->progress.process;
        ft_json_enum_text(&fabrictrace__process_state__descriptor, (int32_t)d->process, state);
        if (ft_witness_is_stopped(rank))
            ft_witness_say(room, d->evidence_for, &d->n_evidence_for, "its process is %s", state);
    }
}

/* A directed link as the topology has it, with what its far end counted. */
static bool add_link(const struct ft_witnesses *w, uint32_t id, struct ft_diagnosis_report *r,
                     struct ft_testimony *room)
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
    room->link_list[d->n_links++] = link;
    d->links = room->link_list;
    return link->suspect;
}

/* What a link's counters say of it beside errors. */
static void say_load(const Fabrictrace__DiagnosisLink *link, struct ft_diagnosis_report *r,
                     struct ft_testimony *room)
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
}

static void say_links(const struct ft_witnesses *w, const struct ft_pair_path *path,
                      struct ft_diagnosis_report *r, struct ft_testimony *room)
{
    Fabrictrace__Diagnosis *d = &r->message;
    size_t suspects = 0, counted = 0;

    for (uint32_t i = 0; i < path->count && d->n_links < FT_TESTIMONY_LINKS; i++) {
        const Fabrictrace__DiagnosisLink *link = &room->links[d->n_links];

        if (add_link(w, path->ports[i], r, room)) {
            suspects++;
            d->switch_ = link->switch_;
            d->port = link->port;
            ft_witness_say(room, d->evidence_for, &d->n_evidence_for,
                           "%s %s, under their flow: %" PRIu64 " damaged and %" PRIu64
                           " dropped frames in the last window",
                           link->switch_, link->port, link->errors, link->discards);
        }
        counted += link->has_errors || link->has_discards;
        say_load(link, r, room);
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
                     struct ft_testimony *room)
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
    say_links(w, &path, r, room);
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
    say_path(w, receives ? peer : rank, receives ? rank : peer, r, room);
    say_hosts(w, receives ? peer : rank, receives ? rank : peer, r, room, now_ms);
}

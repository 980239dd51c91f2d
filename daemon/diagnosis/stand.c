// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/stand.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/json.h"

/* A report is of the same state as its peer's when it was made so much later than the peer moved.
 */
#define LATER_MS 2000

#define RECV_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT
#define PEER_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_PEER_WAIT

/* What the transfers of a rank say of it. */
enum role {
    ROLE_SILENT,  /* nothing of it is known */
    ROLE_WAITS,   /* for a peer */
    ROLE_SENDS,   /* something is on the wire */
    ROLE_ITSELF,  /* its own GPU is what is waited for */
    ROLE_PROXY,   /* its own proxy is */
    ROLE_STOPPED, /* its process does not run */
    ROLES,
};

/* The ranks of a role: how many, the last one, and its transfer. */
struct found {
    size_t count;
    const struct ft_recent_rank *rank;
    const struct ft_recent_transfer *transfer;
};

bool ft_stand_is_stopped(const struct ft_recent_rank *rank)
{
    const struct ft_recent_progress *p = &rank->progress;

    return p->process == FABRICTRACE__PROCESS_STATE__PROCESS_STATE_STOPPED ||
           p->process == FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE ||
           p->process == FABRICTRACE__PROCESS_STATE__PROCESS_STATE_UNINTERRUPTIBLE;
}

/* Than the peer last moved, as its report says. */
static bool is_later(const struct ft_recent_rank *r, const struct ft_recent_rank *peer)
{
    const struct ft_recent_progress *p = &peer->progress;

    return r->progress.standing && p->standing && p->moved_ms > 0 &&
           r->progress.heard_ms > (int64_t)p->moved_ms + LATER_MS;
}

/* The peer's side of a transfer. */
static const struct ft_recent_transfer *other_side(const struct ft_recent_rank *r,
                                                   const struct ft_recent_transfer *t,
                                                   const struct ft_recent_rank *peer)
{
    for (uint32_t i = 0; i < peer->progress.transfer_count; i++) {
        const struct ft_recent_transfer *o = &peer->progress.transfers[i];

        if (o->current && o->peer == r->rank && o->channel == t->channel && o->sends != t->sends)
            return o;
    }
    return NULL;
}

/* Whether both are in the same send and receive: as many between the two came before it, each of
 * which was counted. */
static bool is_same_pair(const struct ft_recent_rank *sender, const struct ft_recent_rank *receiver)
{
    const struct ft_recent_progress *from = &sender->progress, *to = &receiver->progress;

    return !sender->folded_ms && !receiver->folded_ms && to->heard_ms && to->in_flight &&
           to->row.peer == sender->rank && from->row.peer == receiver->rank &&
           from->row.sequence == to->row.sequence;
}

bool ft_stand_arrived(const struct ft_recent_rank *sender, const struct ft_recent_transfer *sent,
                      const struct ft_recent_rank *receiver)
{
    const struct ft_recent_transfer *got;

    if (!sender->progress.row.number)
        return false;
    if (sender->progress.row.peer != FT_RECENT_NO_PEER) {
        got = is_same_pair(sender, receiver) ? other_side(sender, sent, receiver) : NULL;
        return got && got->steps_done > sent->steps_done;
    }
    if (receiver->progress.heard_ms && receiver->progress.finished >= sender->progress.row.number)
        return true;
    got = other_side(sender, sent, receiver);
    return got && got->steps_done > sent->steps_done;
}

/* Whether a rank waits in a transfer for what its peer has done. Sends and receives between two
 * have no number in common. */
static bool is_unnoticed(const struct ft_recent *recent, const struct ft_recent_rank *r,
                         const struct ft_recent_transfer *t)
{
    const struct ft_recent_progress *p = &r->progress;
    const struct ft_recent_rank *peer = ft_recent_find(recent, r->comm_id, t->peer);
    const struct ft_recent_transfer *o;

    if (!t->current || (t->state != RECV_WAIT && t->state != PEER_WAIT) || !p->in_flight ||
        p->row.number == 0 || p->row.peer != FT_RECENT_NO_PEER || !peer || !peer->process ||
        !peer->progress.heard_ms || ft_stand_is_stopped(peer) || !is_later(r, peer))
        return false;
    if (peer->progress.finished >= p->row.number)
        return true;
    if (!peer->progress.in_flight || peer->progress.row.number != p->row.number)
        return false;
    o = other_side(r, t, peer);
    if (!o)
        return false;
    return t->state == RECV_WAIT ? o->steps_done > t->steps_done
                                 : o->state == RECV_WAIT && o->steps_done == t->steps_done;
}

static enum role role_of_state(Fabrictrace__TransferState state)
{
    switch (state) {
    case FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT:
    case FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_PEER_WAIT:
        return ROLE_WAITS;
    case FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT:
        return ROLE_SENDS;
    case FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_QUEUED:
        return ROLE_PROXY;
    case FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_UNKNOWN:
    case FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_IDLE:
        return ROLE_SILENT;
    default:
        return ROLE_ITSELF;
    }
}

static enum role role_of(const struct ft_recent *recent, const struct ft_recent_rank *r,
                         const struct ft_recent_transfer **transfer)
{
    const struct ft_recent_progress *p = &r->progress;
    enum role role = ROLE_SILENT;

    *transfer = NULL;
    if (!p->heard_ms)
        return ROLE_SILENT;
    if (ft_stand_is_stopped(r))
        return ROLE_STOPPED;
    for (uint32_t i = 0; i < p->transfer_count; i++)
        if (is_unnoticed(recent, r, &p->transfers[i])) {
            *transfer = &p->transfers[i];
            return ROLE_PROXY;
        }
    /* A wait for a peer explains all else: a ring's GPU waits for what it receives, too. */
    for (uint32_t i = 0; i < p->transfer_count; i++) {
        enum role its = role_of_state(p->transfers[i].state);

        /* What was handed to the network and is not completed is what stands, whoever waits. */
        if (its == ROLE_SILENT || role == ROLE_SENDS || (role == ROLE_WAITS && its != ROLE_SENDS))
            continue;
        role = its;
        *transfer = &p->transfers[i];
    }
    /* One transfer that was begun shows that the proxy runs. */
    if (role == ROLE_PROXY)
        for (uint32_t i = 0; i < p->transfer_count; i++)
            if (role_of_state(p->transfers[i].state) != ROLE_PROXY)
                return ROLE_ITSELF;
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
    if (r->process->pid)
        snprintf(out->reason, sizeof(out->reason),
                 "the process of the rank, %" PRIu32 " on %s, is %s", r->process->pid,
                 r->process->host, state);
    else
        snprintf(out->reason, sizeof(out->reason), "the process of the rank, on %s, is %s",
                 r->process->host, state);
}

static void stand_transfer(struct ft_stand *out, const struct ft_recent *recent,
                           const struct found *f, bool in_network)
{
    const struct ft_recent_transfer *t = f->transfer;
    const struct ft_recent_rank *r = f->rank;
    char state[FT_JSON_ENUM_BYTES];

    name_state(t->state, state);
    *out = (struct ft_stand){.known = true, .in_network = in_network, .rank = r, .transfer = t};
    if (in_network)
        out->peer = ft_recent_find(recent, r->comm_id, t->peer);
    snprintf(out->reason, sizeof(out->reason),
             "its transfer %s rank %" PRIu32 " of communicator %s, channel %" PRIu32
             ", is in %s after %" PRIu32 " of %" PRIu32 " steps%s",
             t->sends ? "to" : "from", t->peer, r->comm_id, t->channel, state, t->steps_done,
             t->steps,
             in_network && t->sends && out->peer && out->peer->process &&
                     ft_stand_arrived(r, t, out->peer)
                 ? ": that rank has received it, and the answer does not come back"
                 : "");
}

static void stand_proxy(struct ft_stand *out, const struct ft_recent *recent, const struct found *f)
{
    const struct ft_recent_transfer *t = f->transfer;
    const struct ft_recent_rank *r = f->rank;

    *out = (struct ft_stand){
        .known = true, .in_network = true, .proxy = true, .rank = r, .transfer = t};
    if (role_of_state(t->state) == ROLE_PROXY) {
        snprintf(out->reason, sizeof(out->reason),
                 "its proxy has begun with none of its transfers of %s %" PRIu64
                 ": it does not progress",
                 ft_recent_function(recent, r->progress.row.function), r->progress.row.number);
        return;
    }
    out->side = t->sends ? FT_SIDE_SENDER : FT_SIDE_RECEIVER;
    out->peer = ft_recent_find(recent, r->comm_id, t->peer);
    snprintf(out->reason, sizeof(out->reason),
             "on channel %" PRIu32 " it waits after %" PRIu32 " of %" PRIu32
             " steps for rank %" PRIu32 " of communicator %s, which has long %s: its proxy "
             "does not progress, or that was lost",
             t->channel, t->steps_done, t->steps, t->peer, r->comm_id,
             t->sends ? "given room" : "sent more");
}

void ft_stand_of_transfer(const struct ft_recent *recent, const struct ft_recent_rank *rank,
                          const struct ft_recent_transfer *transfer, struct ft_stand *out)
{
    const struct found f = {.count = 1, .rank = rank, .transfer = transfer};

    stand_transfer(out, recent, &f, true);
}

bool ft_stand_open(const struct ft_recent_rank *sender, const struct ft_recent_transfer *sent,
                   const struct ft_recent_rank *receiver)
{
    for (uint32_t i = 0; i < receiver->progress.transfer_count; i++) {
        const struct ft_recent_transfer *o = &receiver->progress.transfers[i];

        if (!o->sends && o->peer == sender->rank && o->channel == sent->channel)
            return true;
    }
    return false;
}

static bool is_sent(const struct ft_recent_rank *from, const struct ft_recent_transfer *t,
                    const struct ft_recent_rank *to)
{
    return t->state == FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT &&
           t->peer == to->rank && (ft_stand_open(from, t, to) || ft_stand_arrived(from, t, to));
}

void ft_stand_between(const struct ft_recent *recent, const struct ft_recent_rank *a,
                      const struct ft_recent_rank *b, struct ft_stand *out)
{
    *out = (struct ft_stand){.known = false};
    if (ft_stand_is_stopped(a) != ft_stand_is_stopped(b)) {
        stand_process(out, ft_stand_is_stopped(a) ? a : b);
        return;
    }
    if (strcmp(a->comm_id, b->comm_id) != 0 || !a->progress.standing || !b->progress.standing ||
        ft_stand_is_stopped(a))
        return;
    for (int turned = 0; turned < 2 && !out->known; turned++) {
        const struct ft_recent_rank *from = turned ? b : a;

        for (uint32_t i = 0; i < from->progress.transfer_count && !out->known; i++)
            if (is_sent(from, &from->progress.transfers[i], turned ? a : b))
                ft_stand_of_transfer(recent, from, &from->progress.transfers[i], out);
    }
}

void ft_stand_find(const struct ft_recent *recent, const struct ft_recent_job *job,
                   const char *comm_id, struct ft_stand *out)
{
    struct found by_role[ROLES] = {{0}};

    *out = (struct ft_stand){.known = false};
    for (const struct ft_recent_rank *r = job->first; r; r = r->next) {
        const struct ft_recent_transfer *t;
        struct found *f;

        if (!r->process || strcmp(r->comm_id, comm_id) != 0)
            continue;
        f = &by_role[role_of(recent, r, &t)];
        f->count++;
        f->rank = r;
        f->transfer = t;
    }
    /* A process that does not run takes nothing from the network either. */
    if (by_role[ROLE_STOPPED].count == 1)
        stand_process(out, by_role[ROLE_STOPPED].rank);
    else if (by_role[ROLE_STOPPED].count > 0)
        return;
    else if (by_role[ROLE_SENDS].count == 1 && by_role[ROLE_PROXY].count == 0)
        stand_transfer(out, recent, &by_role[ROLE_SENDS], true);
    else if (by_role[ROLE_SENDS].count == 0 && by_role[ROLE_PROXY].count == 1)
        stand_proxy(out, recent, &by_role[ROLE_PROXY]);
    else if (by_role[ROLE_SENDS].count == 0 && by_role[ROLE_PROXY].count == 0 &&
             by_role[ROLE_ITSELF].count == 1)
        stand_transfer(out, recent, &by_role[ROLE_ITSELF], false);
}

void ft_stand_report(const struct ft_stand *stand, bool numbered, struct ft_diagnosis_report *r)
{
    const struct ft_recent_rank *rank = stand->rank, *peer = stand->peer;
    Fabrictrace__Diagnosis *m = &r->message;

    if (!stand->known)
        return;
    m->syndrome = stand->in_network ? FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG
                                    : FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG;
    m->advice = (char *)(uintptr_t)ft_syndrome_advice(&(struct ft_diagnosis){
        .syndrome = stand->in_network ? FT_SYNDROME_COMM_HANG : FT_SYNDROME_NONCOMM_HANG});
    m->has_rank = true;
    m->rank = numbered ? rank->process->number : rank->rank;
    m->has_peer = peer && peer->process;
    m->peer = !m->has_peer ? 0 : numbered ? peer->process->number : peer->rank;
    m->has_side = m->has_peer;
    m->side = stand->proxy ? ft_report_side(stand->side) : FABRICTRACE__SIDE__SIDE_ANY;
    m->confidence = stand->proxy ? 0.85 : 0.9;
    /* That start and end do not show it speaks against it no more. */
    m->n_evidence_against = 0;
    ft_report_add_reason(r, stand->reason);
    if (!stand->transfer)
        return;
    m->has_transfer = m->has_transfer_since_ms = m->has_channel = true;
    m->transfer = stand->transfer->state;
    m->transfer_since_ms = stand->transfer->since_ms;
    m->channel = stand->transfer->channel;
}

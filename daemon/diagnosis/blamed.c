// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/blamed.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/diagnosis/diagnosis.h"

#define PAUSES_MIN 8
/* An operation takes as long as the slowest of its transfers. */
#define OF_MANY 1.5
/* What so many of its pairs do, all of a job does, of which there are as many at least. */
#define EVERY     0.9
#define PAIRS_MIN 4

static void links_of(const void *arg, const struct ft_recent_rank *from, uint32_t to,
                     struct ft_blame_cell *cell)
{
    const struct ft_witnesses *w = arg;
    struct ft_pair_path path;

    if (!w->pairs || !ft_pair_links_path(w->pairs, from->comm_id, from->rank, to, &path) ||
        path.unsure)
        return;
    cell->links = path.ports;
    cell->link_count = path.count;
    cell->partly = path.partly;
    cell->last = path.last;
}

/* The link comes first; the pairs and links that it explains are left out, ends are not. */
static void put_stalled(struct ft_blamed *b)
{
    const struct ft_stalled *s = &b->stalled;
    struct ft_delays_verdict verdict = {
        .blame = {.side = FT_SIDE_PAIR,
                  .link = s->what.link,
                  .slow = s->what.pairs_stalled,
                  .all = s->what.pairs,
                  .links_open = 1,
                  .sender_clean = true,
                  .receiver_clean = true,
                  .ratio = s->ratio},
        .from = s->from,
        .to = s->to,
        .since_ms = s->since_ms,
        .stalls = true,
    };
    struct ft_pair_path path;
    size_t kept = 0;

    if (ft_pair_links_path(b->witnesses->pairs, s->from->comm_id, s->from->rank, s->to->rank,
                           &path))
        for (uint32_t k = 0; k < path.count && k < 32; k++)
            verdict.blame.open |= path.ports[k] == s->what.link ? 1U << k : 0;
    for (size_t i = 0; i < b->count; i++)
        if ((b->verdicts[i].blame.slow > 1 && b->verdicts[i].blame.side != FT_SIDE_PAIR) ||
            !ft_stalled_explains(s, b->witnesses, b->verdicts[i].from, b->verdicts[i].to))
            b->verdicts[kept++] = b->verdicts[i];
    b->count = kept < FT_DELAYS_VERDICTS ? kept + 1 : kept;
    memmove(&b->verdicts[1], &b->verdicts[0], (b->count - 1) * sizeof(*b->verdicts));
    b->verdicts[0] = verdict;
}

void ft_blamed_look(struct ft_blamed *b, const struct ft_recent *recent, struct ft_recent_job *job,
                    int64_t now_ms, bool numbered, const struct ft_witnesses *w,
                    struct ft_task *task)
{
    const struct ft_delays_paths paths = {links_of, w};

    memset(b, 0, sizeof(*b));
    b->now_ms = now_ms;
    b->numbered = numbered;
    b->recent = recent;
    b->job = job;
    b->witnesses = w;
    if (ft_delays_judge(recent, job, now_ms, &paths, task, b->verdicts, &b->count, &b->noise,
                        &b->left_out))
        b->count = 0;
    /* As long as nobody knows how much comes and goes, no link is known to. */
    if (!isnan(b->noise.bar))
        ft_stalled_find(&b->stalled, recent, job, now_ms, w, task);
    if (b->stalled.found)
        put_stalled(b);
}

static uint32_t number_of(const struct ft_blamed *b, const struct ft_recent_rank *r)
{
    return b->numbered ? r->process->number : r->rank;
}

static const char *text(struct ft_blamed *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static const char *text(struct ft_blamed *b, const char *format, ...)
{
    char *to = b->texts[b->text_count < FT_BLAMED_TEXTS ? b->text_count++ : FT_BLAMED_TEXTS - 1];
    va_list args;

    va_start(args, format);
    vsnprintf(to, FT_TESTIMONY_BYTES, format, args);
    va_end(args);
    return to;
}

static void add_doubt(struct ft_diagnosis_report *r, const char *doubt)
{
    Fabrictrace__Diagnosis *m = &r->message;

    if (m->n_evidence_against < FT_REPORT_TEXTS)
        r->doubts[m->n_evidence_against++] = (char *)(uintptr_t)doubt;
}

/* Two texts that say whether an end is acquitted. */
static void say_ends(const struct ft_delays_verdict *v, struct ft_diagnosis_report *r)
{
    if (v->blame.sender_clean)
        ft_report_add_reason(r, "the sender is as fast as others to its other peers");
    else
        add_doubt(r, "the sender has no other peer that would acquit it");
    if (v->blame.receiver_clean)
        ft_report_add_reason(r, "the receiver is as fast as others from its other peers");
    else
        add_doubt(r, "the receiver has no other peer that would acquit it");
}

static void say_stalls(struct ft_blamed *b, struct ft_diagnosis_report *r)
{
    const struct ft_stalls_found *f = &b->stalled.what;

    ft_report_add_reason(r, text(b,
                                 "over other links that was so in %" PRIu32 " of %" PRIu32
                                 " operations; no sender, receiver or other link makes it nearly "
                                 "as likely",
                                 f->others_stalled, f->other_operations));
    ft_report_add_reason(r, text(b,
                                 "steps of %" PRIu32 " of the %" PRIu32
                                 " pairs over one link stall now and then, of several senders and "
                                 "receivers: in %" PRIu32 " of %" PRIu32 " operations",
                                 f->pairs_stalled, f->pairs, f->stalled, f->operations));
}

static const char *say_line(struct ft_blamed *b, const struct ft_delays_verdict *v, bool receives)
{
    return text(b,
                "its steps %s %" PRIu32 " of its %" PRIu32
                " peers take %.2f times as long a byte as between others",
                receives ? "from" : "to", v->blame.slow, v->blame.all, v->blame.ratio);
}

static const char *say_pair(struct ft_blamed *b, const struct ft_delays_verdict *v)
{
    return text(b,
                "steps from rank %" PRIu32 " to rank %" PRIu32
                " take %.2f times as long a byte as those of the other %" PRIu32 " pairs",
                number_of(b, v->from), number_of(b, v->to), v->blame.ratio, v->pairs - 1);
}

/* The culprit and the reasons of a verdict; the first of these last. */
static void fill(struct ft_blamed *b, const struct ft_delays_verdict *v,
                 struct ft_diagnosis_report *r)
{
    Fabrictrace__Diagnosis *m = &r->message;
    const struct ft_blame *blame = &v->blame;
    bool receives = blame->side == FT_SIDE_RECEIVER, line = blame->slow > 1;
    const struct ft_recent_rank *rank = receives ? v->to : v->from,
                                *peer = receives ? v->from : v->to;

    b->now = v;
    m->communicator = (char *)(uintptr_t)v->from->comm_id;
    m->has_rank = m->has_side = true;
    m->rank = number_of(b, rank);
    m->has_peer = !line || blame->side == FT_SIDE_PAIR;
    m->peer = m->has_peer ? number_of(b, peer) : 0;
    m->side = ft_report_side(blame->side);
    m->confidence = blame->side == FT_SIDE_ANY ? 0.75 : 0.9;
    m->n_evidence_against = 0;
    if (v->changed)
        ft_report_add_reason(r, "that was not so before");
    if (!line)
        say_ends(v, r);
    if (v->stalls) {
        say_stalls(b, r);
        return;
    }
    if (line && blame->side == FT_SIDE_PAIR)
        ft_report_add_reason(
            r, text(b,
                    "%" PRIu32 " of the %" PRIu32 " pairs over one link take %.2f times as long a "
                    "byte as the others of %" PRIu32 ", of several senders and receivers",
                    blame->slow, blame->all, blame->ratio, v->pairs));
    else if (line)
        ft_report_add_reason(r, say_line(b, v, receives));
    else
        ft_report_add_reason(r, say_pair(b, v));
}

static bool is_member(const struct ft_blamed *b, const char *communicator,
                      const struct ft_recent_rank *rank)
{
    for (const struct ft_recent_rank *r = b->job->first; r && communicator; r = r->next)
        if (rank->process && r->process == rank->process && strcmp(r->comm_id, communicator) == 0)
            return true;
    return false;
}

/* Whether a verdict may be of what a report is of. Of a rank that leaves collectives last nothing
 * is known but that one of its neighbors, or it, is slow, or a neighbor of these: an end of the
 * same communicator that is slow in its steps is why. */
static bool fits(const struct ft_blamed *b, const struct ft_delays_verdict *v,
                 const Fabrictrace__Diagnosis *m)
{
    if (!m->has_rank || m->rank == number_of(b, v->from) || m->rank == number_of(b, v->to))
        return true;
    return m->has_side && m->side == FABRICTRACE__SIDE__SIDE_ANY && !m->has_peer &&
           is_member(b, m->communicator, v->from) && is_member(b, m->communicator, v->to);
}

/* Operations alone know few of an end's pairs, and no links: one all of whose operations cross a
 * slow link looks slow itself. Steps to its other peers may say that it is not, and links in common
 * that it need not be. */
static bool is_doubted(const struct ft_blamed *b, const Fabrictrace__Diagnosis *m,
                       const struct ft_recent_rank *rank)
{
    bool sender = m->side == FABRICTRACE__SIDE__SIDE_SENDER;

    if (!m->has_side || (!sender && m->side != FABRICTRACE__SIDE__SIDE_RECEIVER) || !rank ||
        !rank->process)
        return false;
    for (size_t i = 0; i < b->count; i++) {
        const struct ft_delays_verdict *v = &b->verdicts[i];

        if (sender ? v->blame.sender_or_link && v->from->process == rank->process
                   : v->blame.receiver_or_link && v->to->process == rank->process)
            return true;
    }
    return sender ? rank->process->sends_well : rank->process->receives_well;
}

/* The operations of a pair may be longer than others' for what else its ranks do between steps. The
 * steps themselves are measured in the network: where they are neither slow nor slower than before,
 * one that nothing else speaks for is none. */
static bool is_even(const struct ft_blamed *b, const struct ft_recent_rank *rank,
                    const struct ft_recent_rank *peer)
{
    return rank && peer && ft_delays_even(&rank->delays, peer->rank, b->now_ms);
}

/* Operations of a communicator take as long as the slowest of its steps: where these come and go,
 * they become longer while hardly a pair does. Of a slow communicator most pairs are; where nearly
 * all of the job are, it is not the communicator that is slow. */
static bool are_longer(const struct ft_blamed *b, const Fabrictrace__Diagnosis *m)
{
    size_t longer = 0, all = 0, longer_of_job = 0, all_of_job = 0;

    for (const struct ft_recent_rank *r = b->job->first; r; r = r->next) {
        ft_delays_count(&r->delays, b->now_ms, log(m->slowdown) / 2, &longer_of_job, &all_of_job);
        if (m->communicator && strcmp(r->comm_id, m->communicator) == 0)
            ft_delays_count(&r->delays, b->now_ms, log(m->slowdown) / 2, &longer, &all);
    }
    return 2 * longer >= all &&
           (all_of_job < PAIRS_MIN || (double)longer_of_job < EVERY * (double)all_of_job);
}

/* Whether the link that makes its pairs stall is why the operations are slow: it is said by itself.
 */
static bool is_stalled(const struct ft_blamed *b, const Fabrictrace__Diagnosis *m,
                       const struct ft_recent_rank *rank, const struct ft_recent_rank *peer)
{
    if (!b->stalled.found ||
        (m->has_rank && m->side != FABRICTRACE__SIDE__SIDE_ANY && !m->has_peer))
        return false;
    if (rank && peer)
        return ft_stalled_explains(&b->stalled, b->witnesses, rank, peer) ||
               ft_stalled_explains(&b->stalled, b->witnesses, peer, rank);
    for (const struct ft_recent_rank *r = b->job->first; r && m->communicator; r = r->next)
        for (uint32_t i = 0; i < r->delays.count && strcmp(r->comm_id, m->communicator) == 0; i++) {
            const struct ft_recent_rank *other =
                ft_recent_find(b->recent, r->comm_id, r->delays.cells[i].peer);

            if (other && ft_stalled_explains(&b->stalled, b->witnesses, r, other))
                return true;
        }
    return false;
}

bool ft_blamed_refine(struct ft_blamed *b, struct ft_diagnosis_report *r,
                      const struct ft_recent_rank **rank, const struct ft_recent_rank **peer)
{
    Fabrictrace__Diagnosis *m = &r->message;
    bool vague = !m->has_rank || (m->has_side && m->side == FABRICTRACE__SIDE__SIDE_ANY);
    size_t first = b->count;
    bool said = false;

    b->now = NULL;
    b->text_count = 0;
    if (is_doubted(b, m, *rank) || log(m->slowdown) <= OF_MANY * b->noise.bar ||
        is_stalled(b, m, *rank, *peer))
        return false;
    for (size_t i = 0; i < b->count; i++) {
        if (!fits(b, &b->verdicts[i], m))
            continue;
        said |= b->reported[i];
        if (!b->reported[i] && first == b->count)
            first = i;
        /* Who is named needs no second diagnosis. */
        b->reported[i] |= m->has_rank;
    }
    if (!vague)
        return m->side != FABRICTRACE__SIDE__SIDE_PAIR || !is_even(b, *rank, *peer);
    if (first == b->count)
        return !said && !b->noise.pending && !is_even(b, *rank, *peer) &&
               (m->has_rank || are_longer(b, m));
    b->reported[first] = true;
    fill(b, &b->verdicts[first], r);
    *rank = b->verdicts[first].blame.side == FT_SIDE_RECEIVER ? b->verdicts[first].to
                                                              : b->verdicts[first].from;
    *peer = b->verdicts[first].blame.side == FT_SIDE_RECEIVER ? b->verdicts[first].from
                                                              : b->verdicts[first].to;
    return true;
}

/* Whether it is this rank's end that is slow, or may be: of the one pair whose sender, receiver and
 * links cannot be distinguished, who is slow by its own work is the first to look at. */
static bool is_its_end(const struct ft_delays_verdict *v, const struct ft_recent_rank *rank)
{
    bool from = v->from->process == rank->process, to = v->to->process == rank->process;

    return v->blame.side == FT_SIDE_SENDER     ? from
           : v->blame.side == FT_SIDE_RECEIVER ? to
                                               : v->blame.side == FT_SIDE_ANY && (from || to);
}

/* What its steps say, in the report of its own work. */
static void say_mixed(struct ft_blamed *b, const struct ft_delays_verdict *v,
                      const struct ft_recent_rank *rank, struct ft_diagnosis_report *r)
{
    bool from = v->from->process == rank->process, line = v->blame.slow > 1;
    Fabrictrace__Diagnosis *m = &r->message;

    m->syndrome = FABRICTRACE__SYNDROME__SYNDROME_MIXED;
    m->has_side = true;
    m->side = ft_report_side(v->blame.side);
    m->has_peer = !line;
    m->peer = line ? 0 : number_of(b, from ? v->to : v->from);
    m->slowdown = m->slowdown < v->blame.ratio ? v->blame.ratio : m->slowdown;
    m->advice = (char *)(uintptr_t)ft_syndrome_advice(
        &(struct ft_diagnosis){.syndrome = FT_SYNDROME_MIXED, .side = v->blame.side});
    if (m->n_evidence_for < FT_REPORT_TEXTS)
        r->reasons[m->n_evidence_for++] =
            (char *)(uintptr_t)(line ? say_line(b, v, !from) : say_pair(b, v));
    if (v->blame.side == FT_SIDE_ANY)
        add_doubt(r, "its steps alone do not show whether it, its peer or a link is slow");
}

void ft_blamed_join(struct ft_blamed *b, struct ft_diagnosis_report *r,
                    const struct ft_recent_rank *rank)
{
    Fabrictrace__Diagnosis *m = &r->message;

    b->now = NULL;
    b->text_count = 0;
    for (size_t i = 0; rank && rank->process && i < b->count; i++) {
        const struct ft_delays_verdict *v = &b->verdicts[i];

        if (m->syndrome == FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW && is_its_end(v, rank))
            say_mixed(b, v, rank, r);
        else if (m->syndrome != FABRICTRACE__SYNDROME__SYNDROME_MIXED ||
                 (v->from->process != rank->process && v->to->process != rank->process))
            continue;
        b->reported[i] = true;
    }
}

bool ft_blamed_next(struct ft_blamed *b, struct ft_diagnosis_report *r,
                    const struct ft_recent_rank **rank, const struct ft_recent_rank **peer)
{
    Fabrictrace__Diagnosis *m = &r->message;
    struct ft_delays_verdict *v;
    size_t i = 0;

    while (i < b->count && b->reported[i])
        i++;
    if (i == b->count)
        return false;
    b->reported[i] = true;
    b->text_count = 0;
    v = &b->verdicts[i];
    memset(r, 0, sizeof(*r));
    fabrictrace__diagnosis__init(m);
    m->has_time_ms = m->has_since_ms = m->has_syndrome = m->has_severity = m->has_confidence = 1;
    m->time_ms = (uint64_t)b->now_ms;
    m->since_ms = (uint64_t)v->since_ms;
    m->syndrome = FABRICTRACE__SYNDROME__SYNDROME_COMM_SLOW;
    m->severity = FABRICTRACE__SEVERITY__SEVERITY_WARNING;
    m->has_slowdown = true;
    m->slowdown = v->blame.ratio;
    m->evidence_for = r->reasons;
    m->evidence_against = r->doubts;
    fill(b, v, r);
    m->advice = (char *)(uintptr_t)ft_syndrome_advice(
        &(struct ft_diagnosis){.syndrome = FT_SYNDROME_COMM_SLOW, .side = v->blame.side});
    *rank = v->blame.side == FT_SIDE_RECEIVER ? v->to : v->from;
    *peer = v->blame.side == FT_SIDE_RECEIVER ? v->from : v->to;
    return true;
}

/* The receiver's host asks its switch to wait: it does not take what comes. */
static bool is_receiver(const Fabrictrace__Diagnosis *m)
{
    const Fabrictrace__DiagnosisLink *last = m->n_links ? m->links[m->n_links - 1] : NULL;

    return last && !last->peer_port && last->pauses >= PAUSES_MIN;
}

static void swap_ends(Fabrictrace__Diagnosis *m)
{
    uint32_t rank = m->rank;
    char *host = m->host;

    m->rank = m->peer;
    m->peer = rank;
    m->host = m->peer_host;
    m->peer_host = host;
    /* These were the sender's. */
    m->gpu = NULL;
    m->has_pid = m->has_process = false;
}

/* Which links no other pair acquits; the one that is left is named. */
static void mark_links(const struct ft_blame *blame, struct ft_blamed *b,
                       struct ft_diagnosis_report *r, struct ft_testimony *room)
{
    Fabrictrace__Diagnosis *m = &r->message;

    for (size_t i = 0; i < m->n_links && i < 32; i++) {
        Fabrictrace__DiagnosisLink *link = &room->links[i];

        link->has_acquitted = true;
        link->acquitted = !(blame->open >> i & 1);
        if (room->ports[i] != blame->link)
            continue;
        m->switch_ = link->switch_;
        m->port = link->port;
        ft_report_add_reason(
            r, text(b,
                    b->now->stalls ? "%s %s is the one link that explains which pairs stall"
                    : blame->slow < blame->all
                        ? "%s %s is the one link that nearly all of them have in common"
                        : "%s %s is the one link under it that no pair crosses without delay",
                    link->switch_, link->port));
        /* What is said of a rank begins with its times. */
        if (m->n_evidence_for > 1) {
            char *first = r->reasons[0];

            r->reasons[0] = r->reasons[1];
            r->reasons[1] = first;
        }
    }
    if (m->n_links && blame->links_open == 0)
        ft_witness_say(room, m->evidence_for, &m->n_evidence_for,
                       "every link between them carries pairs that are not slow");
}

void ft_blamed_decide(struct ft_blamed *b, struct ft_diagnosis_report *r, struct ft_testimony *room)
{
    Fabrictrace__Diagnosis *m = &r->message;

    if (!b->now)
        return;
    if (b->now->blame.slow == 1 || b->now->blame.side == FT_SIDE_PAIR)
        mark_links(&b->now->blame, b, r, room);
    if (m->side == FABRICTRACE__SIDE__SIDE_ANY && m->has_peer) {
        if (is_receiver(m)) {
            m->side = FABRICTRACE__SIDE__SIDE_RECEIVER;
            m->confidence = 0.85;
            swap_ends(m);
        } else if (room->suspects == 1) {
            m->side = FABRICTRACE__SIDE__SIDE_PAIR;
            m->confidence = 0.85;
        }
    }
    if (m->side == FABRICTRACE__SIDE__SIDE_ANY)
        ft_witness_say(room, m->evidence_against, &m->n_evidence_against,
                       "sender, receiver and the links between them are all possible");
    b->now = NULL;
}

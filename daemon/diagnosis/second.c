// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/second.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"
#include "lib/base/task.h"

#define PACKED_MAX ((size_t)1 << 20)
#define KEPT_MS    600000
#define SWEEP_MS   10000
#define LATER_MS   3000 /* after which ranks that are only a little later have entered, too */
#define GROUPS_MAX 32
#define DOUBT      0.7 /* of the confidence that was */
#define RAS        FABRICTRACE__STATE_SOURCE__STATE_SOURCE_RAS
#define FLIGHT     FABRICTRACE__STATE_SOURCE__STATE_SOURCE_FLIGHT_RECORDER
#define NONCOMM    FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG
#define COMM       FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG
#define MISMATCH   FABRICTRACE__SYNDROME__SYNDROME_MISMATCH

/* RAS: of a communicator, by host that asked; a dump: of a rank of a host in a group. */
struct key {
    char name[FT_RECENT_NAME], host[FT_RECENT_NAME];
    uint32_t source, rank;
};

struct entry {
    struct key key;
    int64_t said_ms; /* the earlier of when it was said and when it came */
    int64_t heard_ms;
    uint64_t launched, completed; /* of a dump */
    bool any_completed;
    uint8_t *packed; /* RAS */
    size_t packed_bytes;
};

struct ft_second {
    struct ft_table *table;
    size_t packed_bytes;
    int64_t sweep_ms;
    uint64_t refused, agrees, disagrees;
};

struct verdict {
    bool known, agrees;
    uint64_t time_ms;
    char *text; /* room of FT_SECOND_TEXT */
};

struct ft_second *ft_second_new(uint64_t seed)
{
    struct ft_second *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->table = ft_table_new(sizeof(struct entry), sizeof(struct key), FT_SECOND_ENTRIES_MAX, seed);
    if (s->table)
        return s;
    free(s);
    return NULL;
}

static void drop_packed(struct ft_second *s, struct entry *e)
{
    s->packed_bytes -= e->packed_bytes;
    free(e->packed);
    e->packed = NULL;
    e->packed_bytes = 0;
}

void ft_second_free(struct ft_second *s)
{
    struct entry *e;
    uint32_t index = 0;

    if (!s)
        return;
    while ((e = ft_table_next(s->table, &index)))
        drop_packed(s, e);
    ft_table_free(s->table);
    free(s);
}

static void sweep(struct ft_second *s, int64_t now_ms)
{
    struct entry *e;
    uint32_t index = 0;

    if (now_ms >= s->sweep_ms && now_ms < s->sweep_ms + SWEEP_MS)
        return;
    s->sweep_ms = now_ms;
    while ((e = ft_table_next(s->table, &index))) {
        if (e->heard_ms + KEPT_MS > now_ms && e->heard_ms <= now_ms)
            continue;
        drop_packed(s, e);
        ft_table_remove(s->table, e);
    }
}

static bool fill_key(struct key *key, const Fabrictrace__RankStates *m)
{
    const char *name = m->source == RAS ? m->comm_id : m->group;

    if (!m->has_source || (m->source != RAS && m->source != FLIGHT) || !name || !*name ||
        strlen(name) >= sizeof(key->name) || !m->host || strlen(m->host) >= sizeof(key->host) ||
        !m->has_time_ms || m->time_ms > INT64_MAX)
        return false;
    memset(key, 0, sizeof(*key));
    key->source = (uint32_t)m->source;
    snprintf(key->name, sizeof(key->name), "%s", name);
    snprintf(key->host, sizeof(key->host), "%s", m->host);
    if (m->source == RAS)
        return m->has_ranks && m->ranks > 0;
    if (m->n_states != 1 || !m->states[0]->has_rank || m->states[0]->n_counts != 1 ||
        !m->states[0]->counts[0]->has_launched)
        return false;
    key->rank = m->states[0]->rank;
    return true;
}

static int keep(struct ft_second *s, struct entry *e, const Fabrictrace__RankStates *m)
{
    size_t bytes = fabrictrace__rank_states__get_packed_size(m);
    uint8_t *packed;

    drop_packed(s, e);
    if (bytes > PACKED_MAX - s->packed_bytes)
        return -ENOSPC;
    packed = malloc(bytes ? bytes : 1);
    if (!packed)
        return -ENOSPC;
    fabrictrace__rank_states__pack(m, packed);
    e->packed = packed;
    e->packed_bytes = bytes;
    s->packed_bytes += bytes;
    return 0;
}

int ft_second_take(struct ft_second *s, const Fabrictrace__RankStates *m, int64_t now_ms)
{
    struct key key;
    struct entry *e;
    bool fresh;

    if (!fill_key(&key, m))
        return -EINVAL;
    sweep(s, now_ms);
    e = ft_table_insert(s->table, &key, &fresh);
    if (!e) {
        s->refused++;
        return -ENOSPC;
    }
    e->heard_ms = now_ms;
    e->said_ms = (int64_t)m->time_ms < now_ms ? (int64_t)m->time_ms : now_ms;
    if (m->source == FLIGHT) {
        const Fabrictrace__LaunchCount *c = m->states[0]->counts[0];

        e->launched = c->launched;
        e->any_completed = c->has_completed;
        e->completed = c->completed;
        return 0;
    }
    if (keep(s, e, m) == 0)
        return 0;
    ft_table_remove(s->table, e);
    s->refused++;
    return -ENOSPC;
}

static void say(struct verdict *v, bool agrees, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct verdict *v, bool agrees, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(v->text, FT_SECOND_TEXT, format, args);
    va_end(args);
    v->known = true;
    v->agrees = agrees;
}

static struct entry *find(const struct ft_second *s, uint32_t source, const char *name,
                          const char *host, uint32_t rank)
{
    struct key key;

    memset(&key, 0, sizeof(key));
    key.source = source;
    key.rank = rank;
    snprintf(key.name, sizeof(key.name), "%s", name);
    snprintf(key.host, sizeof(key.host), "%s", host);
    return ft_table_find(s->table, &key);
}

static bool is_of(const struct ft_recent_rank *r, const char *comm_id)
{
    return r->process && strcmp(r->comm_id, comm_id) == 0;
}

/* The newest that a host of the communicator asked for since then. */
static const struct entry *newest_ras(const struct ft_second *s, const struct ft_second_case *c,
                                      const char *comm_id, int64_t since_ms)
{
    const struct entry *newest = NULL;

    for (const struct ft_recent_rank *r = c->job->first; r; r = r->next) {
        const struct entry *e =
            is_of(r, comm_id) ? find(s, RAS, comm_id, r->process->host, 0) : NULL;

        ft_task_spend(c->task, 1);
        if (e && e->said_ms >= since_ms && (!newest || e->said_ms > newest->said_ms))
            newest = e;
    }
    return newest;
}

/* The collective that ranks of the communicator stand in; NULL: none is known. */
static const struct ft_recent_row *stands_in(const struct ft_second_case *c, const char *comm_id)
{
    const struct ft_recent_row *first = NULL;

    for (const struct ft_recent_rank *r = c->job->first; r; r = r->next)
        if (is_of(r, comm_id) && r->progress.heard_ms && r->progress.in_flight &&
            r->progress.row.number > 0 && r->progress.row.peer == FT_RECENT_NO_PEER &&
            (!first || r->progress.row.number < first->number))
            first = &r->progress.row;
    return first;
}

static const Fabrictrace__RankState *state_of(const Fabrictrace__RankStates *m, uint32_t rank)
{
    for (size_t i = 0; i < m->n_states; i++)
        if (m->states[i]->rank == rank)
            return m->states[i];
    return NULL;
}

static bool count_in(Fabrictrace__LaunchCount *const *counts, size_t n, const char *function,
                     uint64_t *launched)
{
    for (size_t i = 0; i < n; i++)
        if (counts[i]->function && strcmp(counts[i]->function, function) == 0) {
            *launched = counts[i]->launched;
            return true;
        }
    return false;
}

/* Of a rank that answered; false: not known. */
static bool launched_by(const Fabrictrace__RankStates *m, uint32_t rank, const char *function,
                        uint64_t *launched)
{
    const Fabrictrace__RankState *s = state_of(m, rank);

    if (rank >= m->ranks || (s && s->missing) || (!s && m->states_dropped))
        return false;
    return s && s->n_counts ? count_in(s->counts, s->n_counts, function, launched)
                            : count_in(m->common, m->n_common, function, launched);
}

/* The most that any rank but one has launched; ranks that are like most stand for one. */
static uint64_t most_of_others(const Fabrictrace__RankStates *m, uint32_t rank,
                               const char *function)
{
    const Fabrictrace__RankState *own = state_of(m, rank);
    uint64_t most = 0, n;
    bool alone = m->answered <= 1 + (own && own->n_counts ? 0u : m->n_states);

    /* Where the rank is like most, another one is, too, unless all others are listed. */
    if ((own && own->n_counts) || rank == UINT32_MAX || !alone)
        if (count_in(m->common, m->n_common, function, &n))
            most = n;
    for (size_t i = 0; i < m->n_states; i++)
        if (m->states[i] != own && m->states[i]->n_counts &&
            count_in(m->states[i]->counts, m->states[i]->n_counts, function, &n) && n > most)
            most = n;
    return most;
}

static const Fabrictrace__RankState *silent_one(const Fabrictrace__RankStates *m)
{
    for (size_t i = 0; i < m->n_states; i++)
        if (m->states[i]->missing && (m->states[i]->unresponsive || m->states[i]->dead))
            return m->states[i];
    return NULL;
}

/* What is found wrong with the named rank's process or GPU: it may well have launched all. */
static bool has_entered(const Fabrictrace__Diagnosis *d)
{
    return d->has_transfer ||
           (d->has_process && d->process != FABRICTRACE__PROCESS_STATE__PROCESS_STATE_UNKNOWN &&
            d->process != FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING);
}

static void judge_noncomm(const Fabrictrace__RankStates *m, const Fabrictrace__Diagnosis *d,
                          uint32_t rank, const char *function, uint64_t sequence, struct verdict *v)
{
    const Fabrictrace__RankState *s = state_of(m, rank);
    uint64_t own, most;

    if (s && s->missing && (s->unresponsive || s->dead)) {
        say(v, true, "NCCL RAS: rank %" PRIu32 " of communicator %s %s", rank, m->comm_id,
            s->dead ? "was given up as dead" : "does not answer");
        return;
    }
    if (!function || !launched_by(m, rank, function, &own))
        return;
    most = most_of_others(m, rank, function);
    if (most <= sequence)
        return;
    if (own <= sequence)
        say(v, true,
            "NCCL RAS: rank %" PRIu32 " of communicator %s has launched %s %" PRIu64
            " times, others %" PRIu64,
            rank, m->comm_id, function, own, most);
    else if (!has_entered(d))
        say(v, false,
            "NCCL RAS contradicts it: rank %" PRIu32 " of communicator %s has launched %s %" PRIu64
            " times, and with it the one that the others wait in",
            rank, m->comm_id, function, own);
}

static void judge_comm(const Fabrictrace__RankStates *m, const char *function, uint64_t sequence,
                       struct verdict *v)
{
    const Fabrictrace__RankState *silent = silent_one(m);
    uint64_t common = 0, n;

    if (silent) {
        say(v, false, "NCCL RAS contradicts it: rank %" PRIu32 " of communicator %s %s",
            silent->rank, m->comm_id, silent->dead ? "was given up as dead" : "does not answer");
        return;
    }
    if (!function || m->states_dropped || m->answered < m->ranks ||
        !count_in(m->common, m->n_common, function, &common) ||
        most_of_others(m, UINT32_MAX, function) <= sequence)
        return;
    for (size_t i = 0; i < m->n_states; i++) {
        if (!m->states[i]->n_counts ||
            !count_in(m->states[i]->counts, m->states[i]->n_counts, function, &n) || n > sequence)
            continue;
        say(v, false,
            "NCCL RAS contradicts it: rank %" PRIu32 " of communicator %s has launched %s %" PRIu64
            " times, too few for the one that stands",
            m->states[i]->rank, m->comm_id, function, n);
        return;
    }
    if (common > sequence)
        say(v, true, "NCCL RAS: all ranks of communicator %s have launched that %s", m->comm_id,
            function);
}

/* A function that the named rank alone has called more often. */
static void judge_mismatch(const Fabrictrace__RankStates *m, uint32_t rank, struct verdict *v)
{
    const Fabrictrace__RankState *s = state_of(m, rank);

    if (!s || s->missing || m->answered < m->ranks || m->states_dropped)
        return;
    for (size_t i = 0; i < s->n_counts; i++) {
        const char *function = s->counts[i]->function;
        uint64_t most = function ? most_of_others(m, rank, function) : 0;

        if (!function || s->counts[i]->launched <= most)
            continue;
        say(v, true,
            "NCCL RAS: rank %" PRIu32 " of communicator %s has launched %s %" PRIu64
            " times, others %" PRIu64 " at most",
            rank, m->comm_id, function, s->counts[i]->launched, most);
        return;
    }
}

static void ask_ras(const struct ft_second *s, const struct ft_second_case *c,
                    const Fabrictrace__Diagnosis *d, int64_t since_ms, struct verdict *v)
{
    const struct entry *e = newest_ras(s, c, d->communicator, since_ms);
    const struct ft_recent_row *row = stands_in(c, d->communicator);
    const char *function = row ? ft_recent_function(c->recent, row->function) : NULL;
    const struct ft_recent_rank *rank =
        c->rank && strcmp(c->rank->comm_id, d->communicator) == 0 ? c->rank : NULL;
    Fabrictrace__RankStates *m =
        e ? fabrictrace__rank_states__unpack(NULL, e->packed_bytes, e->packed) : NULL;

    if (!m)
        return;
    v->time_ms = m->time_ms;
    if (d->syndrome == COMM)
        judge_comm(m, function, row ? row->sequence : 0, v);
    else if (rank && d->syndrome == NONCOMM)
        judge_noncomm(m, d, rank->rank, function, row ? row->sequence : 0, v);
    else if (rank && d->syndrome == MISMATCH)
        judge_mismatch(m, rank->rank, v);
    fabrictrace__rank_states__free_unpacked(m, NULL);
}

/* What the dumps of a group say, which are those of the communicator's ranks and of no other. */
struct group {
    uint64_t completed, most; /* of all */
    const struct ft_recent_rank *behind;
    uint64_t own;
    bool has_own;
    int64_t said_ms; /* the oldest dump */
};

static bool gather_group(const struct ft_second *s, const struct ft_second_case *c,
                         const char *comm_id, const char *name, int64_t since_ms, struct group *g)
{
    uint32_t dumps = 0;

    *g = (struct group){.said_ms = INT64_MAX};
    for (const struct ft_recent_rank *r = c->job->first; r; r = r->next) {
        const struct entry *e =
            r->process ? find(s, FLIGHT, name, r->process->host, r->process->number) : NULL;

        ft_task_spend(c->task, 1);
        if (!is_of(r, comm_id))
            continue;
        if (!e || e->said_ms < since_ms || !e->any_completed)
            return false;
        dumps++;
        g->completed = e->completed > g->completed ? e->completed : g->completed;
        g->most = e->launched > g->most ? e->launched : g->most;
        g->said_ms = e->said_ms < g->said_ms ? e->said_ms : g->said_ms;
        if (r == c->rank) {
            g->has_own = true;
            g->own = e->launched;
        }
    }
    for (const struct ft_recent_rank *r = c->job->first; r; r = r->next) {
        bool member = false;

        if (!r->process || is_of(r, comm_id) ||
            !find(s, FLIGHT, name, r->process->host, r->process->number))
            continue;
        for (const struct ft_recent_rank *o = c->job->first; o && !member; o = o->next)
            member = o->process == r->process && is_of(o, comm_id);
        ft_task_spend(c->task, c->job->ranks / 4);
        if (!member)
            return false;
    }
    return dumps > 1 && g->most > g->completed;
}

static void find_behind(const struct ft_second *s, const struct ft_second_case *c,
                        const char *comm_id, const char *name, struct group *g)
{
    for (const struct ft_recent_rank *r = c->job->first; r && !g->behind; r = r->next) {
        const struct entry *e =
            is_of(r, comm_id) ? find(s, FLIGHT, name, r->process->host, r->process->number) : NULL;

        if (e && e->launched <= g->completed)
            g->behind = r;
    }
}

static void judge_group(const struct group *g, const char *name, const Fabrictrace__Diagnosis *d,
                        struct verdict *v)
{
    v->time_ms = (uint64_t)g->said_ms;
    if (d->syndrome == COMM && g->behind)
        say(v, false,
            "Flight Recorder contradicts it: in process group %s rank %" PRIu32
            " has not queued operation %" PRIu64 ", which others wait in",
            name, g->behind->process->number, g->completed + 1);
    else if (d->syndrome == COMM)
        say(v, true,
            "Flight Recorder: in process group %s all ranks have queued operation %" PRIu64, name,
            g->completed + 1);
    else if (d->syndrome == NONCOMM && g->has_own && g->own <= g->completed)
        say(v, true,
            "Flight Recorder: in process group %s it has queued %" PRIu64
            " operations, others wait in number %" PRIu64,
            name, g->own, g->completed + 1);
    else if (d->syndrome == NONCOMM && g->has_own && !has_entered(d))
        say(v, false,
            "Flight Recorder contradicts it: in process group %s it has queued operation %" PRIu64
            ", which the others wait in",
            name, g->completed + 1);
}

/* Groups that a rank of the communicator has a dump of. */
static size_t groups_of(const struct ft_second *s, const struct ft_recent_rank *r,
                        const char *names[GROUPS_MAX])
{
    const struct entry *e;
    uint32_t index = 0;
    size_t count = 0;

    while (count < GROUPS_MAX && (e = ft_table_next(s->table, &index)))
        if (e->key.source == FLIGHT && e->key.rank == r->process->number &&
            strcmp(e->key.host, r->process->host) == 0)
            names[count++] = e->key.name;
    return count;
}

static void ask_flight(const struct ft_second *s, const struct ft_second_case *c,
                       const Fabrictrace__Diagnosis *d, int64_t since_ms, struct verdict *v)
{
    const struct ft_recent_rank *r = c->job->first;
    const char *names[GROUPS_MAX], *name = NULL;
    struct group g = {.said_ms = 0}, one;
    size_t count, found = 0;

    while (r && !is_of(r, d->communicator))
        r = r->next;
    if (!r || !c->numbered)
        return;
    ft_task_spend(c->task, ft_table_count(s->table) / 4);
    count = groups_of(s, r, names);
    for (size_t i = 0; i < count; i++)
        if (gather_group(s, c, d->communicator, names[i], since_ms, &one)) {
            g = one;
            name = names[i];
            found++;
        }
    /* Of two groups of the same ranks it is not known which is the communicator's. */
    if (found != 1)
        return;
    find_behind(s, c, d->communicator, name, &g);
    judge_group(&g, name, d, v);
}

static void add(struct ft_second *s, struct ft_diagnosis_report *r, struct ft_second_opinions *room,
                Fabrictrace__StateSource source, const struct verdict *v)
{
    Fabrictrace__Diagnosis *d = &r->message;
    Fabrictrace__SecondOpinion *o = &room->items[d->n_second_opinions];

    if (!v->known)
        return;
    fabrictrace__second_opinion__init(o);
    o->has_source = o->has_time_ms = o->has_agrees = true;
    o->source = source;
    o->time_ms = v->time_ms;
    o->agrees = v->agrees;
    o->text = v->text;
    room->list[d->n_second_opinions++] = o;
    d->second_opinions = room->list;
    if (v->agrees && d->n_evidence_for < FT_REPORT_TEXTS)
        r->reasons[d->n_evidence_for++] = v->text;
    if (!v->agrees && d->n_evidence_against < FT_REPORT_TEXTS)
        r->doubts[d->n_evidence_against++] = v->text;
    d->evidence_for = r->reasons;
    d->evidence_against = r->doubts;
    if (!v->agrees)
        d->confidence *= DOUBT;
    s->agrees += v->agrees;
    s->disagrees += !v->agrees;
}

void ft_second_report(struct ft_second *s, const struct ft_second_case *c,
                      struct ft_diagnosis_report *r, struct ft_second_opinions *room)
{
    struct verdict ras = {.text = room->texts[0]}, flight = {.text = room->texts[1]};
    Fabrictrace__Diagnosis *d = &r->message;

    if (!s || ft_table_count(s->table) == 0 || !d->communicator ||
        (d->syndrome != NONCOMM && d->syndrome != COMM && d->syndrome != MISMATCH))
        return;
    ask_ras(s, c, d, (int64_t)d->since_ms + LATER_MS, &ras);
    ask_flight(s, c, d, (int64_t)d->since_ms + LATER_MS, &flight);
    add(s, r, room, RAS, &ras);
    add(s, r, room, FLIGHT, &flight);
}

struct ft_second_stats ft_second_stats(const struct ft_second *s)
{
    return (struct ft_second_stats){.entries = ft_table_count(s->table),
                                    .refused = s->refused,
                                    .agrees = s->agrees,
                                    .disagrees = s->disagrees};
}

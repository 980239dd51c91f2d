// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/diagnoser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/apart.h"
#include "daemon/diagnosis/blamed.h"
#include "daemon/diagnosis/cut.h"
#include "daemon/diagnosis/downed.h"
#include "daemon/diagnosis/gather.h"
#include "daemon/diagnosis/numbering.h"
#include "daemon/diagnosis/partial.h"
#include "daemon/diagnosis/resent.h"
#include "daemon/diagnosis/silence.h"
#include "daemon/diagnosis/stand.h"
#include "daemon/diagnosis/standing.h"
#include "lib/base/task.h"
#include "lib/diagnosis/diagnosis.h"
#include "lib/diagnosis/report.h"

/* Of each rank in any case: with fewer, nobody knows what is usual. A look at more rows than usual
 * is as much rarer. */
#define ROWS_RANK  6
#define CHECK_MS   1000  /* between checks whether an operation stands */
#define DUE_MS_MAX 30000 /* further ahead: this host's clock was set back */
#define LOOK_MS    5000  /* between looks at what ended */
/* Without so many operations that ended, nobody knows what is usual: loading takes minutes. */
#define OPERATIONS_MIN 3
#define FIRST_WAIT_MS  300000
/* A host that reported and is silent for so long has gone. */
#define SILENT_MS   15000
#define JOBS_A_STEP 64
#define NS_PER_MS   UINT64_C(1000000)

struct ft_diagnoser {
    struct ft_diagnoser_config config;
    struct ft_recent *recent;
    struct ft_standing *standing;
    struct ft_diagnosis_report *report;
    struct ft_second_opinions opinions; /* of that report */
    uint32_t cursor;                    /* the next job */
    struct look *look;                  /* in progress; NULL */
    struct ft_diagnoser_stats stats;
};

/* One look at a job. */
struct look {
    struct ft_diagnoser *d;
    struct ft_task *task;
    struct ft_diagnoser_surroundings around;
    struct ft_recent_job *job;
    struct ft_gathered g;
    struct ft_blamed blamed;
    int64_t now_ms;
    int64_t lag_ms; /* this host's clock is ahead of the job's by */
    bool hangs;     /* something stands for long */
    bool vain;      /* the program ends: nobody needs what it finds */
};

struct ft_diagnoser *ft_diagnoser_new(const struct ft_diagnoser_config *config)
{
    struct ft_diagnoser *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->config = *config;
    if (!d->config.rows_look)
        d->config.rows_look = FT_DIAGNOSER_ROWS_LOOK;
    d->recent = ft_recent_new(&config->recent);
    d->standing = ft_standing_new(config->standing_max, config->recent.seed);
    d->report = calloc(1, sizeof(*d->report));
    if (!d->recent || !d->standing || !d->report) {
        ft_diagnoser_free(d);
        return NULL;
    }
    return d;
}

/* True: there is more. */
static bool step_look(struct ft_diagnoser *d, uint64_t work)
{
    if (!d->look || ft_task_step(d->look->task, work))
        return d->look != NULL;
    ft_task_free(d->look->task);
    free(d->look);
    d->look = NULL;
    return false;
}

void ft_diagnoser_finish(struct ft_diagnoser *d)
{
    while (step_look(d, UINT64_MAX))
        ;
}

void ft_diagnoser_free(struct ft_diagnoser *d)
{
    if (!d)
        return;
    if (d->look) {
        d->look->vain = true;
        ft_diagnoser_finish(d);
    }
    ft_standing_free(d->standing);
    ft_recent_free(d->recent);
    free(d->report);
    free(d);
}

void ft_diagnoser_collective(struct ft_diagnoser *d, const Fabrictrace__Collective *c,
                             int64_t now_ms)
{
    ft_diagnoser_finish(d);
    ft_recent_collective(d->recent, c, now_ms);
}

void ft_diagnoser_progress(struct ft_diagnoser *d, const Fabrictrace__Progress *p, int64_t now_ms)
{
    ft_diagnoser_finish(d);
    ft_recent_progress(d->recent, p, now_ms);
}

void ft_diagnoser_communicator(struct ft_diagnoser *d, const Fabrictrace__Communicator *c)
{
    ft_diagnoser_finish(d);
    if (c->comm_id && c->host && c->closed)
        ft_recent_leave(d->recent, c->comm_id, c->rank, c->host, c->pid);
}

static struct ft_standing_out out_of(const struct ft_diagnoser_surroundings *around, int64_t now_ms)
{
    return (struct ft_standing_out){.events = around->events,
                                    .emitter = around->emitter,
                                    .window = around->window,
                                    .now_ms = now_ms};
}

/* Counts a look that did not find what stands; hangs alone where only these were looked for. */
static void miss(struct look *l, bool hangs_alone)
{
    const struct ft_standing_out out = out_of(&l->around, l->now_ms);

    ft_standing_miss(l->d->standing, l->job->number, hangs_alone, l->hangs, &out);
}

static void hit(struct look *l, const Fabrictrace__Diagnosis *m)
{
    const struct ft_standing_out out = out_of(&l->around, l->now_ms);

    if (!l->vain && !ft_standing_hit(l->d->standing, l->job->number, m, l->g.numbered, &out))
        l->d->stats.refused++;
}

/* For how long the oldest operation of the job that is in progress is. */
static int64_t standing_ms(const struct ft_recent_job *job, int64_t now_ms)
{
    int64_t oldest_ms = now_ms;

    for (const struct ft_recent_rank *r = job->first; r; r = r->next) {
        const struct ft_recent_progress *p = &r->progress;

        if (r->process && p->standing && p->in_flight && p->since_ms < oldest_ms &&
            p->state == FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT &&
            p->process != FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE)
            oldest_ms = p->since_ms;
    }
    return now_ms - oldest_ms;
}

/* Whether it is known of a rank that it is not in the operation that others wait in since then: its
 * agent says so, or its host, which reported how far its ranks are, is silent. */
static bool is_away(const struct look *l, const struct ft_recent_rank *r, uint64_t since_ns)
{
    int64_t since_ms = (int64_t)(since_ns / NS_PER_MS);

    /* One that stands is reported again when it continues. */
    if (r->progress.heard_ms > 0 &&
        (r->progress.heard_ms >= since_ms || r->progress.standing || ft_stand_is_stopped(r)))
        return true;
    if (l->now_ms - r->process->heard_ms < SILENT_MS)
        return false;
    for (const struct ft_recent_rank *o = l->job->first; o; o = o->next)
        if (o->process && strcmp(o->process->host, r->process->host) == 0 &&
            l->now_ms - o->process->heard_ms < SILENT_MS)
            return false;
    return r->count > 0 && ft_recent_row(r, r->count - 1)->number > 0;
}

/* An operation that all have entered: what its transfers wait for leads to the culprit. */
static void refine_hang(const struct look *l, struct ft_diagnosis_report *r, struct ft_stand *stand,
                        struct ft_cut *cut)
{
    ft_stand_find(l->d->recent, l->job, r->message.communicator, stand);
    if (!stand->known || (stand->in_network && !stand->proxy)) {
        ft_cut_find(l->d->recent, l->job, &l->around.witnesses, l->task, cut);
        if (!stand->known)
            ft_cut_stand(cut, r->message.communicator, stand);
    }
    ft_stand_report(stand, l->g.numbered, r);
}

/* Ranks that wait for each other in a circle: one that has sent what the other waits for does not,
 * nor does one whose process does not run. False: it is not known whether they do. */
static bool refine_circle(const struct look *l, const struct ft_recent_rank *rank,
                          const struct ft_recent_rank *peer, struct ft_diagnosis_report *r,
                          struct ft_stand *stand, struct ft_cut *cut)
{
    if (!rank || !peer || !rank->process || !peer->process)
        return true;
    ft_stand_between(l->d->recent, rank, peer, stand);
    if (!stand->known)
        return ft_numbering_is_known(rank, peer->rank) && ft_numbering_is_known(peer, rank->rank);
    r->message.n_evidence_for = 0;
    ft_cut_find(l->d->recent, l->job, &l->around.witnesses, l->task, cut);
    ft_stand_report(stand, l->g.numbered, r);
    return true;
}

/* A diagnosis of the operations with all that is known beside them; false where it does not hold.
 */
static void report(struct look *l, struct ft_diagnosis *found)
{
    struct ft_diagnosis_report *r = l->d->report;
    Fabrictrace__Diagnosis *m = &r->message;
    const struct ft_recent_rank *rank = NULL, *peer = NULL;
    struct ft_testimony room = {.text_count = 0};
    struct ft_stand stand = {.known = false};
    struct ft_cut cut = {.edges = 0};
    struct ft_silence silence = {.silent = false};
    struct ft_partial partial;

    ft_task_spend(l->task, 1 + l->job->ranks / 4);
    /* From here on all is by this host's clock. */
    if (found->since_ns)
        found->since_ns += (uint64_t)l->lag_ms * NS_PER_MS;
    ft_report_fill(r, l->g.ops, found, (uint64_t)l->now_ms * NS_PER_MS);
    m->fabric = (char *)(uintptr_t)l->around.fabric;
    m->job = l->job->named ? l->job->name : NULL;
    if (m->has_rank)
        rank = ft_gathered_rank(&l->g, l->d->recent, l->job, m->communicator, m->rank);
    if (m->has_rank && !rank)
        rank = ft_gathered_rank(&l->g, l->d->recent, l->job, NULL, m->rank);
    if (m->has_peer)
        peer = ft_gathered_rank(&l->g, l->d->recent, l->job, m->communicator, m->peer);
    /* Whoever is found has its own. */
    if (l->g.apart)
        m->host = m->peer_host = NULL;
    if (found->syndrome == FT_SYNDROME_COMM_HANG && m->communicator)
        refine_hang(l, r, &stand, &cut);
    if (found->syndrome == FT_SYNDROME_MISMATCH && found->chain_count &&
        !refine_circle(l, rank, peer, r, &stand, &cut))
        return;
    if (found->syndrome == FT_SYNDROME_NONCOMM_HANG && rank && !is_away(l, rank, found->since_ns))
        return;
    if (found->syndrome == FT_SYNDROME_NONCOMM_HANG && rank) {
        ft_silence_find(l->d->recent, l->job, rank, found->since_ns, l->now_ms, l->task, r, &stand,
                        &silence);
        ft_stand_report(&stand, l->g.numbered, r);
    }
    if (stand.known) {
        rank = stand.rank;
        peer = stand.peer;
    }
    if (found->syndrome == FT_SYNDROME_COMM_SLOW && !ft_blamed_refine(&l->blamed, r, &rank, &peer))
        return;
    if (found->syndrome == FT_SYNDROME_NONCOMM_SLOW || found->syndrome == FT_SYNDROME_MIXED)
        ft_blamed_join(&l->blamed, r, rank);
    ft_witness_report(&l->around.witnesses, l->d->recent, rank, peer, r, &room, l->now_ms);
    ft_blamed_decide(&l->blamed, r, &room);
    ft_cut_report(&cut, &l->around.witnesses, &stand, r, &room);
    ft_downed_report(&l->around.witnesses, &stand, r, &room, l->now_ms);
    ft_resent_report(&l->around.witnesses, r, &room);
    ft_second_report(l->around.second,
                     &(struct ft_second_case){l->d->recent, l->job, rank, l->g.numbered, l->task},
                     r, &l->d->opinions);
    ft_partial_report(l->d->recent, r, &partial);
    ft_silence_report(&silence, r);
    ft_report_retell(r);
    hit(l, m);
}

/* Who is slow by the matrix alone: what the operations do not show, or nobody could compare. */
static void report_blamed(struct look *l)
{
    struct ft_diagnosis_report *r = l->d->report;
    const struct ft_recent_rank *rank, *peer;

    while (ft_blamed_next(&l->blamed, r, &rank, &peer)) {
        struct ft_testimony room = {.text_count = 0};

        ft_task_spend(l->task, 1 + l->job->ranks / 4);
        r->message.fabric = (char *)(uintptr_t)l->around.fabric;
        r->message.job = l->job->named ? l->job->name : NULL;
        ft_witness_report(&l->around.witnesses, l->d->recent, rank, peer, r, &room, l->now_ms);
        ft_blamed_decide(&l->blamed, r, &room);
        ft_resent_report(&l->around.witnesses, r, &room);
        ft_report_retell(r);
        hit(l, &r->message);
    }
}

/* Whether enough has ended to know what is usual. */
static bool knows_usual(const struct look *l)
{
    size_t operations = l->g.rows / (l->job->ranks ? l->job->ranks : 1);

    return operations >= OPERATIONS_MIN || standing_ms(l->job, l->now_ms) >= FIRST_WAIT_MS;
}

static size_t rows_of_look(const struct look *l)
{
    size_t least = ROWS_RANK * l->job->ranks;

    return least > l->d->config.rows_look ? least : l->d->config.rows_look;
}

/* Who is slow by its own work comes first: what the matrix says of the same rank belongs to that.
 */
static void report_all(struct look *l, struct ft_diagnoses *found, bool own)
{
    for (size_t i = 0; i < found->count; i++) {
        struct ft_diagnosis *d = &found->items[i];
        bool slow = d->slowdown > 0;

        if (own == (d->syndrome == FT_SYNDROME_COMM_SLOW) ||
            (l->hangs ? slow : ft_standing_is_hang((uint32_t)d->syndrome)))
            continue;
        report(l, d);
    }
}

static void look_at(void *arg)
{
    struct look *l = arg;
    struct ft_diagnoses found = {0};

    l->d->stats.looks++;
    if (ft_gather(l->d->recent, l->job, rows_of_look(l), l->now_ms, l->task, &l->g))
        return;
    l->lag_ms = ft_apart_lag_ms(l->job, l->task);
    l->d->stats.folded += l->g.folded;
    l->d->stats.gaps += l->g.gaps;
    if (!l->hangs)
        ft_blamed_look(&l->blamed, l->d->recent, l->job, l->now_ms, l->g.numbered,
                       &l->around.witnesses, l->task);
    if (!l->g.folded && l->g.rows > 0 && (!l->hangs || knows_usual(l)) &&
        ft_diagnose(l->g.ops, (uint64_t)(l->now_ms - l->lag_ms) * NS_PER_MS, false, &found) == 0) {
        report_all(l, &found, true);
        report_all(l, &found, false);
    }
    report_blamed(l);
    l->d->stats.refused += found.left_out;
    l->d->stats.pairs_left_out += l->blamed.left_out;
    ft_diagnoses_free(&found);
    ft_operations_free(l->g.ops);
    if (!l->vain)
        miss(l, false);
}

/* Without memory there is none. */
static void begin_look(const struct look *l)
{
    struct look *look = malloc(sizeof(*look));

    if (!look)
        return;
    *look = *l;
    if ((look->task = ft_task_new(look_at, look)))
        l->d->look = look;
    else
        free(look);
}

/* True where a look at the job in full begins. */
static bool check(struct look *l)
{
    struct ft_recent_job *job = l->job;
    int64_t times = (int64_t)(rows_of_look(l) / l->d->config.rows_look);

    job->due_ms = l->now_ms + times * CHECK_MS;
    ft_recent_doubt(l->d->recent, job);
    l->hangs = standing_ms(job, l->now_ms) >= l->d->config.hang_ms;
    if (l->hangs) {
        begin_look(l);
        return true;
    }
    if (ft_standing_has_hang(l->d->standing, job->number))
        miss(l, true);
    if (l->now_ms < job->looked_ms + times * LOOK_MS && l->now_ms >= job->looked_ms)
        return false;
    if (job->fresh == 0)
        return false;
    job->looked_ms = l->now_ms;
    job->fresh = 0;
    begin_look(l);
    return true;
}

struct ending {
    struct ft_diagnoser *d;
    const struct ft_diagnoser_surroundings *around;
    int64_t now_ms;
};

/* A job that is gone takes along what stood. */
static void on_over(void *arg, const struct ft_recent_job *job)
{
    const struct ending *end = arg;
    const struct ft_standing_out out = out_of(end->around, end->now_ms);

    ft_standing_over(end->d->standing, job->number, &out);
}

bool ft_diagnoser_step(struct ft_diagnoser *d, int64_t now_ms, uint64_t work,
                       const struct ft_diagnoser_surroundings *around)
{
    struct ending end = {d, around, now_ms};
    struct ft_recent_job *job;

    if (d->look) {
        step_look(d, work);
        return true;
    }
    if (ft_recent_age(d->recent, now_ms, work, on_over, &end))
        return true;
    for (size_t i = 0; i < JOBS_A_STEP; i++) {
        struct look l = {.d = d, .around = *around, .now_ms = now_ms};

        job = ft_recent_next(d->recent, &d->cursor);
        if (!job) {
            d->cursor = 0;
            return false;
        }
        /* This host's clock was set back. */
        if (job->due_ms > now_ms + DUE_MS_MAX)
            job->due_ms = now_ms;
        if (job->due_ms > now_ms)
            continue;
        l.job = job;
        if (check(&l)) {
            step_look(d, work);
            return true;
        }
    }
    return true;
}

bool ft_diagnoser_looking(const struct ft_diagnoser *d)
{
    return d->look != NULL;
}

void ft_diagnoser_raise(struct ft_diagnoser *d, const struct ft_diagnoser_surroundings *around,
                        int64_t now_ms)
{
    const struct ft_standing_out out = out_of(around, now_ms);

    ft_standing_offer(d->standing, ft_resent_name, &around->witnesses, &out);
    ft_standing_raise(d->standing, around->events, around->window);
}

bool ft_diagnoser_next(const struct ft_diagnoser *d, uint32_t *index,
                       const struct ft_emitter *emitter)
{
    return ft_standing_next(d->standing, index, emitter);
}

size_t ft_diagnoser_count(const struct ft_diagnoser *d, Fabrictrace__Syndrome syndrome)
{
    return ft_standing_count(d->standing, syndrome);
}

const struct ft_recent *ft_diagnoser_recent(const struct ft_diagnoser *d)
{
    return d->recent;
}

const struct ft_diagnoser_stats *ft_diagnoser_stats(const struct ft_diagnoser *d)
{
    return &d->stats;
}

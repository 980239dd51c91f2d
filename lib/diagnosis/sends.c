// SPDX-License-Identifier: Apache-2.0
/*
 * Ranks that are slow outside of communication in jobs that only send and receive.
 *
 * No collective says there which times of several ranks are of the same step. So the n-th operation
 * of a rank is compared with the n-th of its like: of the same stage in copies of a pipeline, which
 * may each go at their own pace, or of all ranks where they exchange and are no stages; of who
 * calls so many times as many operations in each step, as in a tree, with so many. A rank is late
 * where its own time is longer than that of its like, through a stretch and beyond their noise;
 * those that it sends to and receives from wait for it more than for its like, or it waits less
 * than these, and not more.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/ahead.h"
#include "lib/diagnosis/found.h"
#include "lib/diagnosis/lost.h"
#include "lib/diagnosis/roles.h"
#include "lib/diagnosis/stats.h"
#include "lib/diagnosis/suspects.h"

#define GROUPS_MAX 12 /* more collectives, and ranks are compared between these: late.c */
#define ALIKE_MIN  3  /* of a role */
#define BLOCKS_MIN 8
#define EXCESS     0.10
#define RELEVANT   0.03
#define OFTEN      0.8
#define OTHERS     5   /* times what its like differ by */
#define FELT       0.3 /* of its excess, that others wait */
#define BEHIND     0.5 /* of its excess, that it waits for others */
#define ODD        3   /* times what any differs by throughout, where all are taken to be alike */
#define STEPS      2   /* a spread of more than so many times that of the steps is a trend */
#define PAUSE      1.3 /* times what most of it takes: it does not repeat */
#define MOSTLY     0.8
#define CULPRITS   2

/* Processes of one role; rows of the matrices are these, columns blocks of so many operations. */
struct role {
    const struct ft_matched *m;
    struct ft_member *member; /* comm 0 */
    uint64_t *felt_ns;        /* of a row: how long others waited for its process before it */
    uint64_t *waits_ns;       /* how long it waited for others */
    bool odd;                 /* its members may not be alike */
    bool uneven;              /* some have more rows than others in each step */
    size_t *stride;           /* rows of a member for each one of who has the fewest */
    size_t members, period, blocks;
    double base, wall;
    double *own, *excess, *room, *others;
};

static size_t rows_of(const struct ft_matched *m, uint32_t process)
{
    return m->first[process + 1] - m->first[process];
}

static size_t row_at(const struct role *r, size_t position, size_t block)
{
    return r->m->first[r->member[position].process] + block * r->period * r->stride[position];
}

/* Of the rows of a process, one after the other: how much longer than it the others were in them,
 * the one that was longest in each launch. */
static uint64_t *sum_felt(const struct ft_matched *m)
{
    uint64_t *felt = calloc(m->op_count + 1, sizeof(*felt));

    for (size_t p = 0; felt && p < m->process_count; p++) {
        uint64_t sum = 0, most = 0;

        ft_task_spend(m->task, 1 + rows_of(m, (uint32_t)p) / 8);
        for (size_t i = m->first[p]; i < m->first[p + 1]; i++) {
            const struct ft_pair *pair =
                m->pair_of[i] == FT_OPERATIONS_NONE ? NULL : &m->pairs[m->pair_of[i]];
            uint32_t other = !pair ? FT_OPERATIONS_NONE : pair->send == i ? pair->recv : pair->send;
            uint64_t mine = m->op[i].end_ns - m->op[i].start_ns, its;

            if (i > m->first[p] && m->op[i].start_ns != m->op[i - 1].start_ns) {
                sum += most;
                most = 0;
            }
            felt[i] = sum;
            if (other == FT_OPERATIONS_NONE || m->op[i].end_ns == FT_OPERATIONS_NEVER ||
                m->op[other].end_ns == FT_OPERATIONS_NEVER)
                continue;
            its = m->op[other].end_ns - m->op[other].start_ns;
            if (its > mine && its - mine > most)
                most = its - mine;
        }
    }
    return felt;
}

/* The times of blocks, and what they exceed those of its like by. */
static void fill(struct role *r)
{
    for (size_t i = 0; i < r->members; i++)
        for (size_t b = 0; b < r->blocks; b++)
            r->own[i * r->blocks + b] =
                (double)(r->m->own_ns[row_at(r, i, b + 1)] - r->m->own_ns[row_at(r, i, b)]);
    ft_task_spend(r->m->task, 1 + r->members * r->blocks / 8);
    for (size_t b = 0; b < r->blocks; b++) {
        for (size_t i = 0; i < r->members; i++)
            r->room[i] = r->own[i * r->blocks + b];
        r->others[b] = ft_median(r->room, r->members);
    }
    memcpy(r->room, r->others, r->blocks * sizeof(*r->room));
    r->base = ft_median(r->room, r->blocks);
    for (size_t i = 0; i < r->members; i++)
        for (size_t b = 0; b < r->blocks; b++) {
            size_t likes = 0;

            for (size_t j = 0; j < r->members; j++)
                if (j != i)
                    r->room[likes++] = r->own[j * r->blocks + b];
            ft_task_spend(r->m->task, 1 + likes / 8);
            r->excess[i * r->blocks + b] =
                (r->own[i * r->blocks + b] - ft_median(r->room, likes)) / r->base;
        }
}

static double middle_of(const struct role *r, size_t position, size_t first, size_t end,
                        double *spread)
{
    double median;

    memcpy(r->room, r->excess + position * r->blocks + first, (end - first) * sizeof(*r->room));
    median = ft_median(r->room, end - first);
    if (spread)
        *spread = ft_spread(r->room, end - first, median);
    return median;
}

/* Of a member in a block of the stretch, the median of what is counted. */
static double usual_of(const struct role *r, size_t position, size_t first, size_t end,
                       const uint64_t *counted)
{
    size_t n = 0;

    ft_task_spend(r->m->task, 1 + (end - first) / 8);
    for (size_t b = first; b < end; b++)
        r->room[n++] =
            (double)(counted[row_at(r, position, b + 1)] - counted[row_at(r, position, b)]);
    return ft_median(r->room, n);
}

/* How much more of it than its like, or than before where others call other operations. */
static double more_of(const struct role *r, size_t position, size_t first, size_t end,
                      const uint64_t *counted)
{
    size_t likes = 0;

    if (r->uneven)
        return usual_of(r, position, first, end, counted) -
               usual_of(r, position, 0, first, counted);
    for (size_t j = 0; j < r->members; j++)
        if (j != position)
            r->others[likes++] = usual_of(r, j, first, end, counted);
    return usual_of(r, position, first, end, counted) - ft_median(r->others, likes);
}

/* What is noise of a member's excess: one that grows has a large spread, and steps from one block
 * to the next that are small. */
static double noise_of(const struct role *r, const double *excess, size_t count, double spread)
{
    size_t n = 0;

    for (size_t b = 1; b < count; b++)
        r->room[n++] = excess[b] - excess[b - 1];
    return fmin(spread, STEPS * ft_spread(r->room, n, 0) / sqrt(2));
}

/* Whether all others are, and it was as they are before if it calls other operations than they do.
 */
static bool are_alike(const struct role *r, size_t position, const struct ft_suspect *c)
{
    for (size_t j = 0; j < r->members; j++)
        if (j != position &&
            r->m->process[r->member[j].process].host !=
                r->m->process[r->member[position].process].host &&
            fabs(middle_of(r, j, 0, r->blocks, NULL)) * ODD > c->excess)
            return false;
    return !r->uneven || (c->first >= BLOCKS_MIN &&
                          fabs(middle_of(r, position, 0, c->first, NULL)) * ODD < c->excess);
}

static bool is_late(const struct role *r, size_t position, struct ft_suspect *c)
{
    const double *excess = r->excess + position * r->blocks;
    size_t n, often = 0, likes = 0;
    double spread, usual, late_ns, waits_ns;

    ft_task_spend(r->m->task, 1 + r->blocks / 16);
    ft_stretch(excess, r->blocks, EXCESS / 2, 0.5, &c->first, &c->end);
    n = c->end - c->first;
    if (n < BLOCKS_MIN)
        return false;
    c->excess = middle_of(r, position, c->first, c->end, &spread);
    for (size_t b = c->first; b < c->end; b++)
        often += excess[b] > EXCESS / 2;
    late_ns = c->excess * r->base;
    if (c->excess < EXCESS || (double)often < OFTEN * (double)n || late_ns < RELEVANT * r->wall)
        return false;
    for (size_t j = 0; j < r->members; j++) {
        double its;

        if (j == position)
            continue;
        r->others[likes] = middle_of(r, j, c->first, c->end, &its);
        r->others[r->members + likes++] = its;
    }
    if (r->uneven)
        spread = noise_of(r, excess + c->first, n, spread);
    spread = fmax(spread, ft_median(r->others + r->members, likes));
    usual = ft_spread(r->others, likes, ft_median(r->others, likes));
    c->sigmas = c->excess / (1.2533 * fmax(spread, 1e-3) / sqrt((double)n));
    if (c->sigmas < FT_SUSPECTS_SIGMAS || c->excess < OTHERS * usual ||
        (r->odd && !are_alike(r, position, c)))
        return false;
    /* In a circle all wait for the one before them, but for the one that is late. */
    waits_ns = more_of(r, position, c->first, c->end, r->waits_ns);
    c->felt_ns = fmax(more_of(r, position, c->first, c->end, r->felt_ns), -waits_ns);
    return c->felt_ns >= FELT * late_ns && waits_ns <= BEHIND * late_ns;
}

/* Who is late of a role, and what the others of it reach by chance. */
static int search(struct role *r, struct ft_suspects *seen)
{
    struct ft_wander_pace pace = {
        .member = r->member, .members = r->members, .blocks = r->blocks, .wall_ns = r->wall};
    int rc = 0;

    for (size_t i = 0; i < r->members && rc == 0; i++) {
        struct ft_suspect c = {.process = r->member[i].process, .position = (uint32_t)i};

        if (!is_late(r, i, &c))
            continue;
        c.row = (uint32_t)row_at(r, i, c.first) + 1;
        c.comm = r->m->op[c.row].comm;
        c.wall_ns = r->wall;
        c.blocks = r->blocks;
        c.members = r->members;
        rc = ft_suspects_add(seen, &c);
    }
    if (rc)
        return rc;
    pace.rows = calloc(r->members, sizeof(*pace.rows));
    if (!pace.rows)
        return -ENOMEM;
    memset(pace.rows, r->members > 2 * CULPRITS ? FT_WANDER_BOTH : FT_WANDER_ABOVE, r->members);
    pace.excess = r->excess;
    rc = ft_wander_take(seen->wander, &pace);
    if (rc == 0)
        r->excess = NULL;
    free(pace.rows);
    return rc;
}

/* Pauses of all do not repeat as steps do. */
static void level(struct role *r, size_t steps)
{
    size_t n = 0;
    double most;

    for (size_t k = 0; k < steps; k++)
        if (r->others[k] > 0)
            r->room[n++] = r->others[k];
    most = PAUSE * ft_quantile(r->room, n, MOSTLY);
    for (size_t k = 0; k < steps; k++)
        r->others[k] = fmin(r->others[k], most);
}

/* Their operations one by one, to find how many repeat. */
static int judge(struct role *r, size_t rows, struct ft_suspects *seen)
{
    size_t most = rows > 2 * r->members ? rows : 2 * r->members, steps = rows - 1;
    int rc = -ENOMEM;

    r->own = calloc(r->members * steps, sizeof(*r->own));
    r->excess = calloc(r->members * steps, sizeof(*r->excess));
    r->room = calloc(most, sizeof(*r->room));
    r->others = calloc(most, sizeof(*r->others));
    if (r->own && r->excess && r->room && r->others) {
        r->period = 1;
        for (size_t k = 0; k < steps; k++) {
            ft_task_spend(r->m->task, 1 + r->members / 4);
            for (size_t i = 0; i < r->members; i++)
                r->room[i] =
                    (double)(r->m->own_ns[row_at(r, i, k + 1)] - r->m->own_ns[row_at(r, i, k)]);
            r->others[k] = ft_nth(r->room, r->members, (r->members - 1) / 2);
        }
        if (r->uneven)
            level(r, steps);
        r->period = ft_period(r->others, steps, BLOCKS_MIN, r->room);
        r->blocks = steps / r->period;
        for (size_t i = 0; i < r->members; i++)
            r->room[i] = (double)(r->m->op[row_at(r, i, r->blocks)].start_ns -
                                  r->m->op[row_at(r, i, 0)].start_ns);
        r->wall = ft_median(r->room, r->members) / (double)r->blocks;
        fill(r);
        rc = r->base > 0 ? search(r, seen) : 0;
    }
    free(r->own);
    free(r->excess);
    free(r->room);
    free(r->others);
    return rc;
}

static size_t divisor(size_t a, size_t b)
{
    while (b) {
        size_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The rows of who has so many times as many as another are compared with so many of that one's.
 * Returns by how many steps all of them are. */
static size_t set_strides(struct role *r, size_t rows)
{
    for (size_t i = 0; r->odd && i < r->members; i++)
        rows = divisor(rows, rows_of(r->m, r->member[i].process));
    r->uneven = false;
    for (size_t i = 0; i < r->members; i++) {
        r->stride[i] = r->odd ? rows_of(r->m, r->member[i].process) / rows : 1;
        r->uneven |= r->stride[i] != r->stride[0];
    }
    return rows;
}

/* Each role, or all processes as one. */
static int look(struct role *r, const uint64_t *roles, struct ft_suspects *seen)
{
    bool *done = calloc(r->m->process_count + 1, sizeof(*done));
    int rc = done ? 0 : -ENOMEM;

    for (uint32_t p = 0; p < r->m->process_count && rc == 0; p++) {
        size_t rows = SIZE_MAX, most = 0;

        if (done[p])
            continue;
        r->member += r->members; /* the wander keeps them */
        r->members = 0;
        ft_task_spend(r->m->task, 1 + r->m->process_count / 16);
        for (uint32_t q = p; q < r->m->process_count; q++) {
            if (done[q] || roles[q] != roles[p])
                continue;
            done[q] = true;
            r->member[r->members++] = (struct ft_member){.process = q};
            rows = rows_of(r->m, q) < rows ? rows_of(r->m, q) : rows;
            most = rows_of(r->m, q) > most ? rows_of(r->m, q) : most;
        }
        /* One that is slow in a table that ends has fewer, but still as many of the first ones. */
        if (r->members < ALIKE_MIN || rows <= BLOCKS_MIN || (!r->odd && 2 * rows < most))
            continue;
        rows = set_strides(r, rows);
        if (rows > BLOCKS_MIN)
            rc = judge(r, rows, seen);
    }
    free(done);
    return rc;
}

/* Those that it sends to and receives from in its first block. */
static int add_peers(const struct ft_matched *m, const struct ft_suspect *c, struct ft_diagnosis *d)
{
    d->waiting = calloc(FT_DIAGNOSIS_WAITING, sizeof(*d->waiting));
    if (!d->waiting)
        return -ENOMEM;
    for (size_t i = m->first[c->process]; i < m->first[c->process + 1]; i++) {
        bool known = m->op[i].peer == FT_OPERATIONS_NONE;

        ft_task_spend(m->task, 1 + d->waiting_count / 16);
        for (size_t k = 0; k < d->waiting_count && !known; k++)
            known = d->waiting[k] == m->op[i].peer;
        if (!known && d->waiting_count < FT_DIAGNOSIS_WAITING)
            d->waiting[d->waiting_count++] = m->op[i].peer;
    }
    return 0;
}

static int describe(const struct ft_matched *m, const struct ft_suspect *c,
                    struct ft_diagnoses *found)
{
    struct ft_diagnosis *d = ft_suspects_describe(m, c, found);

    if (!d)
        return -ENOMEM;
    ft_texts_add(&d->reasons,
                 "those that it sends to and receives from wait for it, %.3f ms of each %.3f ms",
                 c->felt_ns / 1e6, c->wall_ns / 1e6);
    return add_peers(m, c, d);
}

/* More than a few at once, on several hosts, are another kind of rank. */
static int report(const struct ft_matched *m, const struct ft_suspects *seen,
                  struct ft_diagnoses *found)
{
    bool one_host = true;
    int rc = 0;

    for (size_t i = 1; i < seen->count; i++)
        one_host = one_host && m->process[seen->items[i].process].host ==
                                   m->process[seen->items[0].process].host;
    for (size_t i = 0; i < seen->count && rc == 0 && (one_host || seen->count <= CULPRITS); i++) {
        const struct ft_suspect *c = &seen->items[i];
        rc = ft_suspects_stands_out(seen, c);
        if (rc > 0)
            rc = describe(m, c, found);
    }
    return rc;
}

static int look_once(struct role *r, const uint64_t *roles, struct ft_diagnoses *found)
{
    struct ft_member *all = calloc(r->m->process_count + 1, sizeof(*all));
    struct ft_suspects seen = {.wander = ft_wander_new(r->m)};
    int rc = -ENOMEM;

    r->member = all;
    r->members = 0;
    r->stride = calloc(r->m->process_count + 1, sizeof(*r->stride));
    if (all && r->stride && seen.wander)
        rc = look(r, roles, &seen);

    if (rc == 0)
        rc = report(r->m, &seen, found);
    ft_wander_free(seen.wander);
    free(seen.items);
    free(r->stride);
    free(all);
    return rc;
}

int ft_find_late_senders(const struct ft_matched *m, struct ft_diagnoses *found)
{
    struct role r = {.m = m};
    uint64_t *roles, *alike;
    int rc = -ENOMEM;

    if (m->pair_count == 0 || m->group_count >= GROUPS_MAX || ft_called_ahead(m))
        return 0;
    roles = ft_roles_new(m);
    alike = calloc(m->process_count + 1, sizeof(*alike));
    r.felt_ns = sum_felt(m);
    r.waits_ns = ft_pair_waits_new(m);
    if (roles && alike && r.felt_ns && r.waits_ns) {
        rc = look_once(&r, roles, found);
        r.odd = true;
        if (rc == 0 && found->count == 0 && !ft_roles_may_be_stages(m))
            rc = look_once(&r, alike, found);
    }
    free(roles);
    free(alike);
    free(r.felt_ns);
    free(r.waits_ns);
    return rc;
}

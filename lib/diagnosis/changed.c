// SPDX-License-Identifier: Apache-2.0
/*
 * A rank without its like, such as the stage of a single pipeline, is slow where its own time grew
 * against its past by more than those of other ranks do by chance, that of no other rank did as
 * much, and the others wait more than it does.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/found.h"
#include "lib/diagnosis/lost.h"
#include "lib/diagnosis/roles.h"
#include "lib/diagnosis/slowness.h"
#include "lib/diagnosis/stats.h"
#include "lib/diagnosis/wander.h"

#define BLOCKS_MIN 16
#define RANKS_MIN  2
#define OF_MANY    1.25 /* nobody does the same: chance alone changes the one or other by less */
#define OF_TWO     1.6  /* between two ranks chance alone lets one change more than the other */
#define RELEVANT   0.03 /* of the total time */
#define FRESH      0.25 /* of a table: in the beginning of it what is longer is how jobs begin */
#define LONGER     1.1
#define KINDS_MAX  32

struct change {
    const struct ft_matched *m;
    const uint64_t *lost_ns;
    double *values, *room, *usual;
    uint8_t *kinds;
    uint32_t process;
    size_t first, end; /* rows */
    struct ft_wander_stretch stretch;
    double ratio;
};

/* A number for the kind of each row of a process: by function and peer. All are of one where there
 * are too many. */
static void find_kinds(struct change *c, size_t first, size_t count)
{
    const struct ft_operation *op = c->m->op + first;
    size_t kind[KINDS_MAX], kinds = 0, k;

    for (size_t i = 0; i < count; i++) {
        for (k = 0; k < kinds; k++) {
            const struct ft_operation *other = &op[kind[k]];

            if (op[i].comm == other->comm && op[i].function == other->function &&
                op[i].peer == other->peer)
                break;
        }
        if (k == KINDS_MAX) {
            memset(c->kinds, 0, count);
            return;
        }
        if (k == kinds)
            kind[kinds++] = i;
        c->kinds[i] = (uint8_t)k;
        ft_task_spend(c->m->task, 1);
    }
}

/* A process's own time before each of its operations, into the values, and what is usual before
 * those of its kind; one that forwards has less to do than one that computes. */
static void own_times(struct change *c, size_t first, size_t count)
{
    const struct ft_matched *m = c->m;
    size_t done = 0;

    find_kinds(c, first, count);
    for (size_t i = 1; i < count; i++)
        c->values[i - 1] = (double)(m->own_ns[first + i] - m->own_ns[first + i - 1]);
    for (size_t k = 0; done + 1 < count && k < KINDS_MAX; k++) {
        size_t n = 0;
        double usual;

        for (size_t i = 1; i < count; i++)
            if (c->kinds[i] == k)
                c->room[n++] = c->values[i - 1];
        usual = ft_quantile(c->room, n, FT_SLOWNESS_PAST);
        for (size_t i = 1; i < count && n > 0; i++)
            if (c->kinds[i] == k)
                c->usual[i - 1] = usual;
        ft_task_spend(m->task, 1 + count / 4);
        done += n;
    }
}

/* A process's own time in blocks of so many of its operations, over what is usual for these, into
 * the values; 0: too few. usual_ns: of the blocks, the median. */
static size_t blocks_of(struct change *c, uint32_t process, size_t *period, double *usual_ns)
{
    size_t first = c->m->first[process], count = c->m->first[process + 1] - first, blocks;

    ft_task_spend(c->m->task, 1 + count);
    if (count < BLOCKS_MIN + 1)
        return 0;
    own_times(c, first, count);
    *period = ft_period(c->values, count - 1, BLOCKS_MIN, c->room);
    blocks = (count - 1) / *period;
    for (size_t b = 0; b < blocks; b++) {
        double sum = 0, usual = 0;

        for (size_t i = b * *period; i < (b + 1) * *period; i++) {
            sum += c->values[i];
            usual += c->usual[i];
        }
        c->values[b] = usual > 0 ? fmax(sum, 1) / usual : 1;
        c->room[b] = usual;
    }
    *usual_ns = ft_median(c->room, blocks);
    memcpy(c->room, c->values, blocks * sizeof(*c->room));
    return blocks;
}

static double wall_of(const struct ft_matched *m, uint32_t process, size_t blocks)
{
    return (double)(m->op[m->first[process + 1] - 1].start_ns - m->op[m->first[process]].start_ns) /
           (double)blocks;
}

/* Blocks at the beginning that are longer than usual, as all is that runs for the first time. */
static size_t fresh_blocks(const double *values, size_t blocks)
{
    size_t n = 0;

    while ((double)n < FRESH * (double)blocks && values[n] > log(LONGER))
        n++;
    return n;
}

/* Whether a process's own time grew; the rows from when on. */
static bool grew(struct change *c, uint32_t process)
{
    const struct ft_matched *m = c->m;
    size_t first = m->first[process], period, fresh, blocks;
    struct ft_slowness slow;
    double usual, usual_ns = 0, wall;

    blocks = blocks_of(c, process, &period, &usual_ns);
    usual = blocks ? ft_quantile(c->room, blocks, FT_SLOWNESS_PAST) : 0;
    if (!(usual > 0) || !(usual_ns > 0))
        return false;
    for (size_t b = 0; b < blocks; b++)
        c->values[b] = log(c->values[b] / usual);
    fresh = fresh_blocks(c->values, blocks);
    if (!ft_slowness_of(c->values + fresh, blocks - fresh, 0, c->room, &slow))
        return false;
    slow.first += fresh;
    slow.end += fresh;
    wall = wall_of(m, process, blocks);
    c->process = process;
    c->first = first + slow.first * period;
    c->end = first + slow.end * period;
    c->ratio = slow.ratio;
    c->stretch = (struct ft_wander_stretch){.process = process,
                                            .members = 1,
                                            .blocks = slow.end - slow.first,
                                            .of = blocks,
                                            .wall_ns = wall,
                                            .excess = log(slow.ratio)};
    return (slow.ratio - 1) * usual_ns >= RELEVANT * wall;
}

/* Within the stretch, whether others waited more than the process itself. */
static bool others_wait(const struct change *c)
{
    const struct ft_matched *m = c->m;
    uint64_t since = m->op[c->first].start_ns, until = m->op[c->end].start_ns;
    double own = (double)(c->lost_ns[c->end] - c->lost_ns[c->first]);
    size_t n = 0;

    for (uint32_t p = 0; p < m->process_count; p++) {
        size_t first = m->first[p], end = m->first[p + 1] - 1;

        ft_task_spend(m->task, 1 + (end - first) / 16);
        while (first < end && m->op[first].start_ns < since)
            first++;
        while (end > first && m->op[end].start_ns > until)
            end--;
        if (p != c->process && end > first)
            c->room[n++] = (double)(c->lost_ns[end] - c->lost_ns[first]);
    }
    return n > 0 && own < ft_median(c->room, n);
}

/* What a process's own time differs from its usual one by, for the comparison. */
static int take(struct change *c, struct ft_wander *wander, struct ft_member *member)
{
    double usual_ns;
    size_t period, blocks = blocks_of(c, member->process, &period, &usual_ns);
    double usual = blocks ? ft_median(c->room, blocks) : 0;
    struct ft_wander_pace pace = {.member = member, .members = 1, .blocks = blocks};
    int rc = -ENOMEM;

    if (!(usual > 0))
        return 0;
    pace.wall_ns = wall_of(c->m, member->process, blocks);
    pace.excess = calloc(blocks, sizeof(*pace.excess));
    pace.rows = calloc(1, sizeof(*pace.rows));
    if (pace.excess && pace.rows) {
        pace.rows[0] = FT_WANDER_BOTH;
        for (size_t b = 0; b < blocks; b++)
            pace.excess[b] = log(c->values[b] / usual);
        rc = ft_wander_take(wander, &pace);
    }
    free(pace.excess);
    free(pace.rows);
    return rc;
}

/* Whether it grew by more than the own times of others do by chance. 0, 1, or -ENOMEM. */
static int stands_out(struct change *c, const struct ft_wander_stretch *stretch)
{
    struct ft_member *members = calloc(c->m->process_count, sizeof(*members));
    struct ft_wander *wander = ft_wander_new(c->m);
    int rc = members && wander ? 0 : -ENOMEM;

    for (uint32_t p = 0; p < c->m->process_count && rc == 0; p++) {
        members[p].process = p;
        rc = take(c, wander, &members[p]);
    }
    if (rc == 0)
        rc = ft_wander_stands_out(wander, stretch);
    ft_wander_free(wander);
    free(members);
    return rc;
}

static int describe(const struct change *c, struct ft_diagnoses *found)
{
    struct ft_diagnosis *d = ft_diagnoses_add(found, FT_SYNDROME_NONCOMM_SLOW);

    if (!d)
        return -ENOMEM;
    d->process = c->process;
    d->comm = c->m->op[c->first].comm;
    d->function = c->m->op[c->first].function;
    d->since_ns = c->m->op[c->first].start_ns;
    d->slowdown = c->ratio;
    d->confidence = 0.8;
    ft_texts_add(&d->reasons, "outside of operations it takes %.2f times as long as before",
                 c->ratio);
    ft_texts_add(&d->reasons, "no other rank changed, and the others wait more than it does");
    ft_texts_add(&d->doubts, "no rank does the same work, so it is compared with its past alone");
    return 0;
}

/* Whether another process does the same work: such are compared with each other instead, since
 * chance alone changes one of many (sequences of uneven length). */
static bool has_like(const uint64_t *roles, uint32_t processes, uint32_t process)
{
    for (uint32_t p = 0; p < processes; p++)
        if (p != process && roles[p] == roles[process])
            return true;
    return false;
}

int ft_find_changed(const struct ft_matched *m, struct ft_diagnoses *found)
{
    struct change c = {.m = m}, culprit = {0};
    uint64_t *lost = ft_lost_new(m), *roles = ft_roles_new(m);
    size_t count = 0;
    int rc = -ENOMEM;

    c.lost_ns = lost;
    c.values = calloc(m->op_count + m->process_count + 1, sizeof(*c.values));
    c.room = calloc(m->op_count + m->process_count + 1, sizeof(*c.room));
    c.usual = calloc(m->op_count + 1, sizeof(*c.usual));
    c.kinds = calloc(m->op_count + 1, sizeof(*c.kinds));
    if (lost && roles && c.values && c.room && c.usual && c.kinds) {
        rc = 0;
        for (uint32_t p = 0; p < m->process_count && count < 2; p++) {
            if (!grew(&c, p))
                continue;
            culprit = c;
            count++;
        }
        if (count == 1 && m->process_count >= RANKS_MIN &&
            culprit.ratio >= (m->process_count > RANKS_MIN ? OF_MANY : OF_TWO) &&
            !has_like(roles, (uint32_t)m->process_count, culprit.process) &&
            others_wait(&culprit)) {
            rc = stands_out(&c, &culprit.stretch);
            if (rc > 0)
                rc = describe(&culprit, found);
        }
    }
    free(lost);
    free(roles);
    free(c.values);
    free(c.room);
    free(c.usual);
    free(c.kinds);
    return rc;
}

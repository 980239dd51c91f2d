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
#define OF_TWO     1.6  /* between two ranks chance alone lets one change more than the other */
#define RELEVANT   0.03 /* of the total time */

struct change {
    const struct ft_matched *m;
    const uint64_t *lost_ns;
    double *values, *room;
    uint32_t process;
    size_t first, end; /* rows */
    struct ft_wander_stretch stretch;
    double ratio;
};

/* A process's own time in blocks of so many of its operations, into the values; 0: too few. */
static size_t blocks_of(struct change *c, uint32_t process, size_t *period)
{
    const struct ft_matched *m = c->m;
    size_t first = m->first[process], count = m->first[process + 1] - first, blocks;

    ft_task_spend(m->task, 1 + count);
    if (count < BLOCKS_MIN + 1)
        return 0;
    for (size_t i = 1; i < count; i++)
        c->values[i - 1] = (double)(m->own_ns[first + i] - m->own_ns[first + i - 1]);
    *period = ft_period(c->values, count - 1, BLOCKS_MIN, c->room);
    blocks = (count - 1) / *period;
    for (size_t b = 0; b < blocks; b++)
        c->values[b] =
            (double)(m->own_ns[first + (b + 1) * *period] - m->own_ns[first + b * *period]);
    memcpy(c->room, c->values, blocks * sizeof(*c->room));
    return blocks;
}

static double wall_of(const struct ft_matched *m, uint32_t process, size_t blocks)
{
    return (double)(m->op[m->first[process + 1] - 1].start_ns - m->op[m->first[process]].start_ns) /
           (double)blocks;
}

/* Whether a process's own time grew; the rows from when on. */
static bool grew(struct change *c, uint32_t process)
{
    const struct ft_matched *m = c->m;
    size_t first = m->first[process], period, blocks = blocks_of(c, process, &period);
    struct ft_slowness slow;
    double usual, wall;

    usual = blocks ? ft_quantile(c->room, blocks, FT_SLOWNESS_PAST) : 0;
    if (!(usual > 0))
        return false;
    for (size_t b = 0; b < blocks; b++)
        c->values[b] = log(fmax(c->values[b], 1) / usual);
    if (!ft_slowness_of(c->values, blocks, 0, c->room, &slow))
        return false;
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
    return (slow.ratio - 1) * usual >= RELEVANT * wall;
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
    size_t period, blocks = blocks_of(c, member->process, &period);
    double usual = ft_median(c->room, blocks);
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
            pace.excess[b] = log(fmax(c->values[b], 1) / usual);
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
    if (lost && roles && c.values && c.room) {
        rc = 0;
        for (uint32_t p = 0; p < m->process_count && count < 2; p++) {
            if (!grew(&c, p))
                continue;
            culprit = c;
            count++;
        }
        if (count == 1 && m->process_count >= RANKS_MIN &&
            (m->process_count > RANKS_MIN || culprit.ratio >= OF_TWO) &&
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
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Ranks that are slow outside of communication.
 *
 * The own time of a rank between two collectives of a communicator is the time that it was in no
 * operation; it is measured by one clock, and a victim's does not grow, because it waits inside of
 * operations. A rank is late where its own time is longer than that of its like between the same
 * two collectives, through a stretch of them and beyond their noise, and the others wait for it.
 *
 * Of many ranks, whose own times wander, one is late by chance: who is late has to be so by more
 * than others become at any time (wander.h).
 *
 * Where operations cover nearly all the time, work runs beside them, and the own time is all in
 * which a rank does not wait. Transfers are in it, so that all ranks of a slow communicator, and
 * both ends of a slow transfer, have more of it than others: who has no more of it without what its
 * operations take is not late.
 *
 * Where some operations run beside the work and others do not, as with shards that are gathered and
 * gradients that are summed with copies on other hosts, ranks that wait for a late one have more
 * time outside of operations than others, too: who waits for another in a second communicator, for
 * those it sends to and receives from, or for transfers, for what it is late by is not named. So in
 * a pipeline whose gradients are summed beside the work: the rank that enters last, because it has
 * waited for a late one of its pipeline, is in no operation while the others are in that sum.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/behind.h"
#include "lib/diagnosis/found.h"
#include "lib/diagnosis/lost.h"
#include "lib/diagnosis/roles.h"
#include "lib/diagnosis/stats.h"
#include "lib/diagnosis/suspects.h"
#include "lib/diagnosis/wander.h"
#include "lib/diagnosis/work_pace.h"

#define GROUPS_MIN   12
#define GROUPS_FEW   5    /* of a table that has ended: more do not come */
#define EXCESS       0.10 /* of the own time of its like */
#define EXCESS_TWO   0.20 /* where there is one like it alone, over BLOCKS_TWO */
#define EXCESS_SOON  0.60 /* and over fewer: lengths of inputs differ by chance */
#define EXCESS_SURE  0.30 /* which varies by so little, over few or many, that it is not chance */
#define SURE         30
#define BRIEF_MIN    4 /* blocks of a table that has hardly more of them */
#define BRIEF_MOST   16
#define BRIEF_GROUPS 1024 /* with more, there are more blocks */
#define EXCESS_BRIEF 0.5  /* of its excess in any block is more than that of any other */
#define BLOCKS_TWO   24
#define RELEVANT     0.03 /* of the total time */
#define OFTEN        0.8
#define SIGMAS_LIKE  5
#define ODD          3   /* times what any other differs by throughout */
#define STEPS        2   /* a spread of more than so many times that of the steps is a trend */
#define FELT         0.3 /* of its excess, that others wait */
#define ALIKE_MIN    4   /* members that show whether they are alike */
#define ABOUT        0.5 /* as late as another, or more */
#define CULPRITS     2   /* more at once, on several hosts, are another kind of rank */

static bool complete(const struct ft_gathering *group, size_t members)
{
    return group->count == members && group->unfinished == 0;
}

/* Of a stretch of a member's values: their median and spread. */
static double middle_of(const struct ft_work_pace *p, const double *values, size_t position,
                        size_t first, size_t end, double *spread)
{
    double median;

    ft_task_spend(p->m->task, 1 + (end - first) / 8);
    memcpy(p->room, values + position * p->blocks + first, (end - first) * sizeof(*p->room));
    median = ft_median(p->room, end - first);
    if (spread)
        *spread = ft_spread(p->room, end - first, median);
    return median;
}

/* What is noise of a member's excess in a stretch. One that grows has a large spread, and steps
 * from one block to the next that are small. Where those of its like wander, too, their medians
 * differ by more than chance leaves of as many blocks. */
static double noise_of(const struct ft_work_pace *p, const struct ft_suspect *c, double spread,
                       double usual)
{
    const double *excess = p->excess + c->position * p->blocks;
    double steps, wander = usual * sqrt((double)(c->end - c->first));
    size_t n = 0;

    ft_task_spend(p->m->task, 1 + (c->end - c->first) / 8);
    for (size_t b = c->first + 1; b < c->end; b++)
        p->room[n++] = excess[b] - excess[b - 1];
    steps = ft_spread(p->room, n, 0) / sqrt(2);
    return fmin(spread, fmax(STEPS * steps, wander));
}

/* How much less a member waits than the others, in all operations between those of the
 * communicator: where ranks exchange before they are together, they wait for a late one there. */
static double spared_of(const struct ft_work_pace *p, const struct ft_suspect *c)
{
    for (size_t i = 0; i < p->members; i++)
        p->others[i] = middle_of(p, p->lost, i, c->first, c->end, NULL);
    return ft_median(p->others, p->members) -
           middle_of(p, p->lost, c->position, c->first, c->end, NULL);
}

/* Where all are taken to be alike: whether they are, but for this one and others of its host, and
 * it was as they are before if it may be a stage. */
static bool are_alike(const struct ft_work_pace *p, const struct ft_suspect *c)
{
    const struct ft_member *member = &p->m->members[p->m->comm_members[p->comm]];
    size_t likes = 0;

    for (size_t j = 0; j < p->members; j++) {
        if (j != c->position && p->apart[member[j].process] == p->apart[c->process] && ++likes > 1)
            return false;
        if (p->m->process[member[j].process].host != p->m->process[c->process].host &&
            fabs(middle_of(p, p->excess, j, 0, p->blocks, NULL)) * ODD > c->excess)
            return false;
    }
    return !p->stages || (c->first >= FT_WORK_PACE_BLOCKS_MIN &&
                          middle_of(p, p->excess, c->position, 0, c->first, NULL) < EXCESS / 2);
}

/* What others wait for it, of so many like it. With one alone, which of the two is odd shows by
 * their clocks alone. */
static double felt_of(const struct ft_work_pace *p, struct ft_suspect *c, size_t likes)
{
    double felt = middle_of(p, p->late, c->position, c->first, c->end, NULL);

    if (p->m->pair_count > 0 && !p->beside)
        felt = fmax(felt, spared_of(p, c));
    c->felt_ns = felt;
    if (likes >= 2)
        return felt;
    return fmin(felt, middle_of(p, p->later, c->position, c->first, c->end, NULL));
}

/* Whether a member is late through the stretch, beyond what is noise and what its like differ by.
 */
static bool is_late(const struct ft_work_pace *p, struct ft_suspect *c)
{
    const struct ft_member *member = &p->m->members[p->m->comm_members[p->comm]];
    double excess, spread, usual, felt, sum = 0, need = EXCESS;
    size_t often = 0, n = c->end - c->first, likes = 0;

    excess = middle_of(p, p->excess, c->position, c->first, c->end, &spread);
    for (size_t b = c->first; b < c->end; b++) {
        double x = p->excess[c->position * p->blocks + b];

        sum += fmin(x, 1 + 2 * excess);
        often += x > EXCESS / 2;
    }
    /* What is not enough in any case: with many members, most need not be compared. */
    if (n < FT_WORK_PACE_BLOCKS_MIN || excess < EXCESS || sum / (double)n < EXCESS ||
        (double)often < OFTEN * (double)n || excess * p->base < RELEVANT * p->wall_base)
        return false;
    ft_task_spend(p->m->task, 1 + p->members / 16);
    for (size_t j = 0; j < p->members; j++) {
        double other;

        if (j == c->position ||
            p->roles[member[j].process] != p->roles[member[c->position].process])
            continue;
        p->others[likes] = middle_of(p, p->excess, j, c->first, c->end, &other);
        p->others[p->members + likes++] = other;
    }
    if (likes < 2)
        need = n < BLOCKS_TWO ? EXCESS_SOON : EXCESS_TWO;
    /* With one like it alone, that one's values are its own, negative. */
    usual = likes < 2 ? 0 : ft_spread(p->others, likes, ft_median(p->others, likes));
    if (likes >= 2)
        spread = noise_of(p, c, spread, usual);
    spread = fmax(spread, ft_median(p->others + p->members, likes));
    felt = felt_of(p, c, likes);
    c->excess = excess;
    c->sigmas = excess / (1.2533 * fmax(spread, 1e-3) / sqrt((double)n));
    if (likes < 2 && c->sigmas >= SURE)
        need = fmin(need, EXCESS_SURE);
    return excess >= need && sum / (double)n >= need && c->sigmas >= FT_SUSPECTS_SIGMAS &&
           excess >= SIGMAS_LIKE * usual && felt >= FELT * excess * p->base &&
           (!p->apart || are_alike(p, c));
}

/* Few blocks have no spread to speak of: a member is late where its own time is longer in each of
 * them, by far, than that of any of its like is in any. */
static bool is_late_briefly(const struct ft_work_pace *p, struct ft_suspect *c)
{
    const struct ft_member *member = &p->m->members[p->m->comm_members[p->comm]];
    const double *excess = p->excess + c->position * p->blocks;
    double least = INFINITY, most = 0, felt;
    size_t likes = 0;

    c->excess = middle_of(p, p->excess, c->position, c->first, c->end, NULL);
    while (c->first < c->end && excess[c->first] < EXCESS_BRIEF * c->excess)
        c->first++;
    while (c->end > c->first && excess[c->end - 1] < EXCESS_BRIEF * c->excess)
        c->end--;
    if (c->end - c->first < BRIEF_MIN)
        return false;
    for (size_t b = c->first; b < c->end; b++)
        least = fmin(least, excess[b]);
    for (size_t j = 0; j < p->members; j++) {
        if (j == c->position ||
            p->roles[member[j].process] != p->roles[member[c->position].process])
            continue;
        likes++;
        ft_task_spend(p->m->task, 1 + p->blocks / 16);
        for (size_t b = 0; b < p->blocks; b++)
            most = fmax(most, p->excess[j * p->blocks + b]);
    }
    felt = felt_of(p, c, likes);
    c->sigmas = FT_SUSPECTS_SIGMAS;
    return least >= EXCESS_SURE && most < EXCESS_BRIEF * least && likes > 0 &&
           felt >= FELT * c->excess * p->base && c->excess * p->base >= RELEVANT * p->wall_base;
}

/* How many others do the same work, counted up to most. */
static size_t likes_of(const struct ft_work_pace *p, size_t position, size_t most)
{
    const struct ft_member *member = &p->m->members[p->m->comm_members[p->comm]];
    size_t likes = 0;

    for (size_t j = 0; j < p->members && likes < most; j++) {
        if (j % 64 == 0)
            ft_task_spend(p->m->task, 1);
        likes += j != position && p->roles[member[j].process] == p->roles[member[position].process];
    }
    return likes;
}

/* So many are late: the median of more than twice as many hides them. */
static void set_rows(struct ft_work_pace *p, size_t late)
{
    size_t most = 2 * (late > 0 ? late : 1) + 1;

    for (size_t i = 0; i < p->members; i++) {
        size_t likes = likes_of(p, i, most);

        p->rows[i] = likes == most ? FT_WANDER_BOTH : likes ? FT_WANDER_ABOVE : FT_WANDER_NONE;
    }
}

/* Of a member in a block of the stretch, the median: what is counted, less what is not to be. */
static double usual_of(const struct ft_work_pace *p, const struct ft_suspect *c, size_t position,
                       const uint64_t *counted, const uint64_t *less)
{
    size_t n = 0;

    ft_task_spend(p->m->task, 1 + (c->end - c->first) / 4);
    for (size_t b = c->first; b < c->end; b++) {
        uint32_t from = ft_work_pace_row(p, b * p->period, position);
        uint32_t to = ft_work_pace_row(p, (b + 1) * p->period, position);

        p->room[n] = (double)counted[to] - (double)counted[from];
        if (less)
            p->room[n] -= (double)less[to] - (double)less[from];
        n++;
    }
    return ft_median(p->room, n);
}

/* The same of the stretch as one, for each of its blocks. */
static double mean_of(const struct ft_work_pace *p, const struct ft_suspect *c, size_t position,
                      const uint64_t *counted, const uint64_t *less)
{
    uint32_t from = ft_work_pace_row(p, c->first * p->period, position);
    uint32_t to = ft_work_pace_row(p, c->end * p->period, position);
    double sum = (double)counted[to] - (double)counted[from];

    if (less)
        sum -= (double)less[to] - (double)less[from];
    return sum / (double)(c->end - c->first);
}

typedef double (*per_block)(const struct ft_work_pace *, const struct ft_suspect *, size_t,
                            const uint64_t *, const uint64_t *);

/* Whether a member has more of that than its like, by most of what it is late by. */
static bool has_more(const struct ft_work_pace *p, const struct ft_suspect *c, double late_ns,
                     const uint64_t *counted, const uint64_t *less, per_block taken)
{
    const struct ft_member *member = &p->m->members[p->m->comm_members[p->comm]];
    double its = taken(p, c, c->position, counted, less);
    size_t likes = 0;

    for (size_t j = 0; j < p->members; j++)
        if (j != c->position && p->roles[member[j].process] == p->roles[c->process])
            p->others[likes++] = taken(p, c, j, counted, less);
    return likes > 0 && its - ft_median(p->others, likes) > FT_BEHIND_MOST * late_ns;
}

/* Whether a member's operations take longer once all have entered, or it waits longer for those it
 * sends to and receives from. */
static bool by_operations(const struct ft_work_pace *p, const struct ft_suspect *c, double late_ns)
{
    const double *excess = p->excess + c->position * p->blocks;
    double mean_ns = 0;

    for (size_t b = c->first; b < c->end; b++)
        mean_ns += excess[b] * p->base / (double)(c->end - c->first);
    mean_ns = fmax(fmin(late_ns, mean_ns), 0);
    return has_more(p, c, late_ns, p->inside_ns, p->lost_ns, usual_of) ||
           has_more(p, c, mean_ns, p->inside_ns, p->lost_ns, mean_of) ||
           has_more(p, c, late_ns, p->waits_ns, NULL, usual_of);
}

/* Whether a member is late because it waits for another in a second communicator, or for transfers.
 * 0, 1, or -ENOMEM. */
static int is_behind(const struct ft_work_pace *p, const struct ft_suspect *c)
{
    size_t blocks = c->end - c->first;
    uint64_t *starts = calloc(blocks + 1, sizeof(*starts));
    struct ft_behind late = {.comm = p->comm,
                             .process = c->process,
                             .starts = starts,
                             .blocks = blocks,
                             .late_ns = fmin(c->felt_ns, c->excess * p->base)};
    int rc = -ENOMEM;

    ft_task_spend(p->m->task, 1 + blocks / 4);
    for (size_t b = 0; starts && b <= blocks; b++)
        starts[b] = p->m->op[ft_work_pace_row(p, (c->first + b) * p->period, c->position)].start_ns;
    if (starts)
        rc = by_operations(p, c, late.late_ns) ? 1 : ft_behind_another(p->m, p->roles, &late);
    free(starts);
    return rc;
}

/* Whether others waited longer for a member as its stretch began than in all of the rest: it was
 * late once, and they had called by then what comes in the stretch. */
static bool follows_stall(const struct ft_work_pace *p, const struct ft_suspect *c)
{
    const double *late = p->late + c->position * p->blocks;
    double most = late[c->first], rest = 0;

    for (size_t b = c->first + 1; b < c->end; b++)
        rest += fmax(late[b], 0);
    if (c->first > 0 && late[c->first - 1] > most) {
        rest += fmax(most, 0);
        most = late[c->first - 1];
    }
    return most > rest;
}

/* Whether others seem to wait for a member for longer than the time that passes, but wait for what
 * is queued. */
static bool only_queues(const struct ft_work_pace *p, const struct ft_suspect *c)
{
    return c->felt_ns > p->wall_base &&
           ft_work_pace_waited(p, c->position, c->first, c->end) < FELT * c->excess * p->base;
}

/* Whether more ranks of other hosts than can be late at once are later than their like by about as
 * much, and waited for as long: they wait for each other somewhere, and which of them is why does
 * not show. */
static bool is_common(const struct ft_work_pace *p, const struct ft_suspect *c)
{
    const struct ft_member *member = &p->m->members[p->m->comm_members[p->comm]];
    double late = middle_of(p, p->late, c->position, c->first, c->end, NULL);
    size_t others = 0;

    for (size_t j = 0; j < p->members; j++)
        others += p->m->process[member[j].process].host != p->m->process[c->process].host &&
                  middle_of(p, p->excess, j, c->first, c->end, NULL) > ABOUT * c->excess &&
                  middle_of(p, p->late, j, c->first, c->end, NULL) > ABOUT * late;
    return others >= CULPRITS;
}

static int search(struct ft_work_pace *p, struct ft_suspects *seen)
{
    const struct ft_member *member = &p->m->members[p->m->comm_members[p->comm]];
    struct ft_suspect culprits[64];
    size_t count = 0;
    bool one_host = true;
    int rc;

    for (size_t i = 0; i < p->members && count < sizeof(culprits) / sizeof(culprits[0]); i++) {
        struct ft_suspect c = {
            .comm = p->comm, .process = member[i].process, .position = (uint32_t)i};

        ft_task_spend(p->m->task, 1 + p->blocks / 16);
        if (likes_of(p, i, 1) == 0)
            continue;
        ft_stretch(p->excess + i * p->blocks, p->blocks, EXCESS / 2, 0.5, &c.first, &c.end);
        if (c.end <= c.first || !(p->brief ? is_late_briefly(p, &c) : is_late(p, &c)) ||
            follows_stall(p, &c) || only_queues(p, &c))
            continue;
        one_host = one_host && p->m->process[c.process].host ==
                                   p->m->process[count ? culprits->process : c.process].host;
        c.row = ft_work_pace_row(p, c.first * p->period + 1, i);
        c.wall_ns = p->wall_base;
        c.blocks = p->blocks;
        c.members = p->members;
        c.common = is_common(p, &c);
        culprits[count++] = c;
    }
    set_rows(p, count);
    if (count > CULPRITS && !one_host)
        return 0;
    for (size_t i = 0; i < count; i++) {
        rc = is_behind(p, &culprits[i]);
        if (rc < 0)
            return rc;
        culprits[i].behind = rc > 0;
        rc = ft_suspects_add(seen, &culprits[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* For the comparison with all others. */
static int take(struct ft_work_pace *p, struct ft_suspects *seen)
{
    struct ft_wander_pace pace = {.member = &p->m->members[p->m->comm_members[p->comm]],
                                  .members = p->members,
                                  .blocks = p->blocks,
                                  .wall_ns = p->wall_base,
                                  .excess = p->excess,
                                  .rows = p->rows};
    int rc = ft_wander_take(seen->wander, &pace);

    p->excess = pace.excess;
    p->rows = pace.rows;
    return rc;
}

/* With blocks of so many groups. */
static int judge_by(struct ft_work_pace *p, size_t period, struct ft_suspects *seen)
{
    p->period = period;
    p->blocks = (p->groups - 1) / period;
    ft_work_pace_fill(p);
    return p->base > 0 ? search(p, seen) : 0;
}

/* Blocks of several groups, of which there are too few to know more of them than their order. */
static int judge_briefly(struct ft_work_pace *p, struct ft_suspects *seen)
{
    size_t before = seen->count, usual = p->period, period;
    int rc;

    if (!p->ended || p->apart || p->groups - 1 > BRIEF_GROUPS)
        return 0;
    period = ft_work_pace_period(p, false, BRIEF_MIN);
    if ((p->groups - 1) / period > BRIEF_MOST)
        return 0;
    p->brief = true;
    rc = judge_by(p, period, seen);
    p->brief = false;
    if (rc == 0 && seen->count == before && period != usual)
        rc = judge_by(p, usual, seen);
    return rc;
}

static int judge(struct ft_work_pace *p, struct ft_suspects *seen)
{
    size_t steps = p->groups - 1, most = steps > p->members ? steps : p->members;
    size_t before = seen->count;
    int rc = -ENOMEM;

    p->own = calloc(p->members * steps, sizeof(*p->own));
    p->late = calloc(p->members * steps, sizeof(*p->late));
    p->later = calloc(p->members * steps, sizeof(*p->later));
    p->excess = calloc(p->members * steps, sizeof(*p->excess));
    p->outside = calloc(p->members * steps, sizeof(*p->outside));
    p->lost = calloc(p->members * steps, sizeof(*p->lost));
    p->wall = calloc(steps, sizeof(*p->wall));
    p->room = calloc(most, sizeof(*p->room));
    p->others = calloc(2 * most, sizeof(*p->others));
    p->rows = calloc(p->members, sizeof(*p->rows));
    if (p->own && p->late && p->later && p->excess && p->outside && p->lost && p->wall && p->room &&
        p->others && p->rows) {
        p->beside = ft_work_pace_works_beside(p);
        rc = judge_by(p, ft_work_pace_period(p, false, FT_WORK_PACE_BLOCKS_MIN), seen);
        if (rc == 0 && seen->count == before) {
            size_t first = p->period, other = ft_work_pace_period(p, true, FT_WORK_PACE_BLOCKS_MIN);

            rc = other == first ? 0 : judge_by(p, other, seen);
            if (rc == 0 && seen->count == before && other != first)
                rc = judge_by(p, first, seen);
            if (rc == 0 && seen->count == before)
                rc = judge_briefly(p, seen);
        }
        if (rc == 0 && p->base > 0)
            rc = take(p, seen);
    }
    free(p->own);
    free(p->late);
    free(p->later);
    free(p->excess);
    free(p->outside);
    free(p->lost);
    free(p->wall);
    free(p->room);
    free(p->others);
    free(p->rows);
    return rc;
}

/* What is known of all ranks. */
struct ranks {
    uint64_t *roles, *alike, *lost, *inside, *waits;
    uint32_t *groups;
};

/* Looks at each communicator: at ranks of one role, or at all, if those that have no like may be
 * alike. */
static int look(const struct ft_matched *m, const struct ranks *r, bool all, bool ended,
                struct ft_diagnoses *found)
{
    struct ft_suspects seen = {.wander = ft_wander_new(m)};
    bool stages = all && ft_roles_may_be_stages(m);
    int rc = seen.wander ? 0 : -ENOMEM;

    for (uint32_t comm = 0; comm < m->comm_count && rc == 0; comm++) {
        struct ft_work_pace p = {.m = m,
                                 .roles = all ? r->alike : r->roles,
                                 .apart = all ? r->roles : NULL,
                                 .stages = stages,
                                 .ended = ended,
                                 .lost_ns = r->lost,
                                 .inside_ns = r->inside,
                                 .waits_ns = r->waits,
                                 .comm = comm,
                                 .group = r->groups};

        p.members = ft_matched_size(m, comm);
        for (size_t g = m->comm_groups[comm]; g < m->comm_groups[comm + 1]; g++) {
            if (g % 16 == 0)
                ft_task_spend(m->task, 1);
            if (complete(&m->groups[g], p.members))
                r->groups[p.groups++] = (uint32_t)g;
        }
        if (p.members >= (all ? ALIKE_MIN : 2) && p.groups >= (ended ? GROUPS_FEW : GROUPS_MIN))
            rc = judge(&p, &seen);
    }
    if (rc == 0)
        rc = ft_suspects_report(m, &seen, found);
    ft_wander_free(seen.wander);
    free(seen.items);
    return rc;
}

int ft_find_late(const struct ft_matched *m, bool ended, struct ft_diagnoses *found)
{
    struct ranks r = {.roles = ft_roles_new(m),
                      .alike = calloc(m->process_count + 1, sizeof(*r.alike)),
                      .lost = ft_lost_new(m),
                      .inside = ft_inside_new(m),
                      .waits = ft_pair_waits_new(m),
                      .groups = calloc(m->group_count + 1, sizeof(*r.groups))};
    int rc = r.roles && r.alike && r.lost && r.inside && r.waits && r.groups ? 0 : -ENOMEM;

    if (rc == 0)
        rc = look(m, &r, false, ended, found);
    if (rc == 0 && found->count == 0 && m->pair_count > 0)
        rc = look(m, &r, true, ended, found);
    free(r.roles);
    free(r.alike);
    free(r.lost);
    free(r.inside);
    free(r.waits);
    free(r.groups);
    return rc;
}

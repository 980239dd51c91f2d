// SPDX-License-Identifier: Apache-2.0
/*
 * A rank without its like, such as the stage of a single pipeline, is slow where its own time grew
 * against its past, that of no other rank did, and the others wait more than it does.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/task.h"
#include "lib/diagnosis/found.h"
#include "lib/diagnosis/lost.h"
#include "lib/diagnosis/roles.h"
#include "lib/diagnosis/slowness.h"
#include "lib/diagnosis/stats.h"

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
    double ratio;
};

/* Whether a process's own time, in blocks of its operations, grew; the rows from when on. */
static bool grew(struct change *c, uint32_t process)
{
    const struct ft_matched *m = c->m;
    size_t first = m->first[process], count = m->first[process + 1] - first, period, blocks;
    struct ft_slowness slow;
    double usual, wall;

    ft_task_spend(m->task, 1 + count);
    if (count < BLOCKS_MIN + 1)
        return false;
    for (size_t i = 1; i < count; i++)
        c->values[i - 1] = (double)(m->own_ns[first + i] - m->own_ns[first + i - 1]);
    period = ft_period(c->values, count - 1, BLOCKS_MIN, c->room);
    blocks = (count - 1) / period;
    for (size_t b = 0; b < blocks; b++)
        c->values[b] =
            (double)(m->own_ns[first + (b + 1) * period] - m->own_ns[first + b * period]);
    for (size_t b = 0; b < blocks; b++)
        c->room[b] = c->values[b];
    usual = ft_quantile(c->room, blocks, FT_SLOWNESS_PAST);
    if (!(usual > 0))
        return false;
    for (size_t b = 0; b < blocks; b++)
        c->values[b] = log(fmax(c->values[b], 1) / usual);
    if (!ft_slowness_of(c->values, blocks, 0, c->room, &slow))
        return false;
    wall = (double)(m->op[first + count - 1].start_ns - m->op[first].start_ns) / (double)blocks;
    c->process = process;
    c->first = first + slow.first * period;
    c->end = first + slow.end * period;
    c->ratio = slow.ratio;
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
            !has_like(roles, (uint32_t)m->process_count, culprit.process) && others_wait(&culprit))
            rc = describe(&culprit, found);
    }
    free(lost);
    free(roles);
    free(c.values);
    free(c.room);
    return rc;
}

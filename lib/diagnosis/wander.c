// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/wander.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/base/task.h"
#include "lib/diagnosis/stats.h"

#define ALPHA     1e-4 /* the share of tables without a fault in which a rank stands out */
#define BLOCKS    4    /* of a stretch: the median of fewer is that of single odd values */
#define OTHERS    4    /* of fewer the latest is not left out */
#define APART     4    /* ranks of other hosts, so that suspects of the same host are left out */
#define FAR_OFF   12   /* times what the others reach: sufficient, however few they are */
#define FAR_BUILT 6    /* the same, with what they differ by throughout: they may be built so */
#define FAR_TWO   3    /* times what one or two reach: they say little */
#define SHORTER   1    /* times half as long */
#define FINENESS  4    /* lengths of stretches by which time doubles */

enum figure {
    REACHED, /* what a process exceeds its like by */
    MOVED,   /* the same, less what it exceeds them by throughout the table */
    FIGURES,
};

/* Of a process: mean squares of stretches, and the part of them that the noise of blocks makes. */
struct scale {
    double square[FIGURES], white, count;
};

/* What processes reach in stretches of one length, in communicators of one size. */
struct reached {
    size_t members;
    long length;
    struct scale *scale; /* of each process */
};

struct ft_wander {
    const struct ft_matched *m;
    struct ft_wander_pace *paces;
    struct reached *reached;
    size_t count, size, reached_count, reached_size;
    bool *suspects; /* of the processes */
    double *room;
};

struct ft_wander *ft_wander_new(const struct ft_matched *m)
{
    struct ft_wander *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->m = m;
    w->suspects = calloc(m->process_count + 1, sizeof(*w->suspects));
    if (!w->suspects) {
        free(w);
        return NULL;
    }
    return w;
}

void ft_wander_free(struct ft_wander *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->count; i++) {
        free(w->paces[i].excess);
        free(w->paces[i].rows);
    }
    for (size_t i = 0; i < w->reached_count; i++)
        free(w->reached[i].scale);
    free(w->paces);
    free(w->reached);
    free(w->suspects);
    free(w->room);
    free(w);
}

int ft_wander_take(struct ft_wander *w, struct ft_wander_pace *pace)
{
    struct ft_wander_pace *paces = ft_grow(w->paces, w->count, &w->size, sizeof(*paces));

    if (!paces)
        return -ENOMEM;
    w->paces = paces;
    paces[w->count++] = *pace;
    pace->excess = NULL;
    pace->rows = NULL;
    return 0;
}

static double middle_of(struct ft_wander *w, const double *values, size_t count)
{
    ft_task_spend(w->m->task, 1 + count / 8);
    memcpy(w->room, values, count * sizeof(*values));
    return ft_median(w->room, count);
}

/* The variance of a median of n blocks of a member where only noise is in them. */
static double white_of(struct ft_wander *w, const double *excess, size_t blocks, size_t n)
{
    double steps;

    ft_task_spend(w->m->task, 1 + blocks / 8);
    for (size_t b = 1; b < blocks; b++)
        w->room[b - 1] = excess[b] - excess[b - 1];
    steps = ft_spread(w->room, blocks - 1, 0);
    return M_PI / 2 * steps * steps / 2 / (double)n;
}

/* Adds what a member exceeds its like by in stretches of n blocks, which overlap by half. */
static void add_stretches(struct ft_wander *w, const struct ft_wander_pace *pace, size_t j,
                          size_t n, struct scale *scale)
{
    const double *excess = pace->excess + j * pace->blocks;
    double white = white_of(w, excess, pace->blocks, n), usual = 0;

    if (pace->rows[j] == FT_WANDER_BOTH)
        usual = middle_of(w, excess, pace->blocks);
    for (size_t b = 0; b + n <= pace->blocks; b += n / 2) {
        double middle = middle_of(w, excess + b, n);

        /* Half of what chance does is above. */
        if (pace->rows[j] == FT_WANDER_ABOVE)
            middle = fmax(middle, 0) * sqrt(2);
        scale->square[REACHED] += middle * middle;
        scale->square[MOVED] += (middle - usual) * (middle - usual);
        scale->white += white;
        scale->count += 1;
    }
}

static void reach(struct ft_wander *w, struct reached *r)
{
    double length_ns = exp2((double)r->length / FINENESS);

    for (size_t i = 0; i < w->count; i++) {
        const struct ft_wander_pace *pace = &w->paces[i];
        double n = round(length_ns / pace->wall_ns);

        if (pace->members != r->members || !(n >= BLOCKS) || n > (double)pace->blocks)
            continue;
        for (size_t j = 0; j < pace->members; j++)
            if (pace->rows[j] != FT_WANDER_NONE)
                add_stretches(w, pace, j, (size_t)n, &r->scale[pace->member[j].process]);
    }
    for (size_t p = 0; p < w->m->process_count; p++) {
        struct scale *scale = &r->scale[p];

        for (int f = 0; f < FIGURES; f++)
            scale->square[f] /= fmax(scale->count, 1);
        scale->white /= fmax(scale->count, 1);
    }
}

/* NULL without memory. */
static const struct reached *reached_in(struct ft_wander *w, size_t members, long length)
{
    struct reached *r;
    size_t most = w->m->process_count;

    for (size_t i = 0; i < w->reached_count; i++)
        if (w->reached[i].members == members && w->reached[i].length == length)
            return &w->reached[i];
    r = ft_grow(w->reached, w->reached_count, &w->reached_size, sizeof(*r));
    if (!r)
        return NULL;
    w->reached = r;
    for (size_t i = 0; i < w->count; i++)
        most = most > w->paces[i].blocks ? most : w->paces[i].blocks;
    if (!w->room)
        w->room = calloc(most, sizeof(*w->room));
    r += w->reached_count;
    *r = (struct reached){.members = members, .length = length};
    r->scale = calloc(w->m->process_count, sizeof(*r->scale));
    if (!w->room || !r->scale) {
        free(r->scale);
        return NULL;
    }
    w->reached_count++;
    reach(w, r);
    return r;
}

void ft_wander_suspect(struct ft_wander *w, uint32_t process)
{
    w->suspects[process] = true;
}

/* What those reach that a process is compared with: the root of the mean square, and their number.
 */
static double others_of(const struct ft_wander *w, const struct reached *r, uint32_t process,
                        enum figure f, size_t *others)
{
    const struct ft_actor *actor = w->m->process;
    double square = 0, white = 0;
    const struct scale *top = NULL;
    size_t away = 0, n = 0;

    ft_task_spend(w->m->task, 1 + w->m->process_count / 16);
    for (size_t p = 0; p < w->m->process_count; p++)
        away += r->scale[p].count > 0 && actor[p].host != actor[process].host;
    for (size_t p = 0; p < w->m->process_count; p++) {
        const struct scale *scale = &r->scale[p];

        if (!(scale->count > 0) || p == process ||
            (away >= APART && w->suspects[p] && actor[p].host == actor[process].host))
            continue;
        square += scale->square[f];
        white += scale->white;
        top = !top || scale->square[f] > top->square[f] ? scale : top;
        n++;
    }
    if (n >= OTHERS) {
        square -= top->square[f];
        white -= top->white;
        n--;
    }
    *others = n;
    return n ? sqrt(fmax(square - white, 0) / (double)n) : 0;
}

/* How many times what the others reach the greatest of so many draws would hardly ever be: the
 * tail of the normal distribution, and that of Student's t from it by Wallace's approximation. */
static double far_off(double draws, double others)
{
    double l, z;

    if (others < 3)
        return FAR_TWO;
    l = -2 * log(ALPHA / draws);
    z = sqrt(l - log(2 * M_PI * l));
    z *= (8 * others + 3) / (8 * others + 1);
    return fmin(FAR_OFF, sqrt(others * expm1(z * z / others)));
}

int ft_wander_stands_out(struct ft_wander *w, const struct ft_wander_stretch *stretch)
{
    double draws = (double)stretch->of / (double)stretch->blocks * (double)w->m->process_count;
    long length = lround(FINENESS * log2((double)stretch->blocks * stretch->wall_ns));

    if (!(stretch->wall_ns > 0))
        return true;
    /* Those that go up and down sooner reach it in less time. */
    for (long shorter = 0; shorter <= SHORTER; shorter++) {
        const struct reached *r = reached_in(w, stretch->members, length - shorter * FINENESS);
        double reached, moved, far;
        size_t others;

        if (!r)
            return -ENOMEM;
        reached = others_of(w, r, stretch->process, REACHED, &others);
        moved = others_of(w, r, stretch->process, MOVED, &others);
        far = far_off(draws, (double)others);
        if (stretch->excess < fmax(far * moved, fmin(far, FAR_BUILT) * reached))
            return false;
    }
    return true;
}

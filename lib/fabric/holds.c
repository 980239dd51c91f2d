// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/holds.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/table.h"

#define MOMENTS 64 /* that are remembered */
#define ENOUGH  4  /* with fewer nothing is known */
#define FLOWS   16 /* of a moment: those with the closest samples */
/* Of the second difference, halved, of three lags: 1 + 1/4 + 1/4. */
#define OF_LAGS 1.5
/* The number at a moment is that in the middle of the gap around it, which is the longer the more
 * likely it is met: its variance is half of the mean gap squared. */
#define OF_GAPS 0.75
/* Median of the square of a standard normal number is 0.455; gaps have longer tails. */
#define MEDIAN 0.40

/* The gap around a moment is two mean gaps long, in the mean. Longer ones than this are taken for
 * as long. */
#define GAP_AROUND 2.0
#define GAPS_MOST  40.0
/* Of so many moments, one in which samples overtook each other shows that they do. */
#define OVERTAKES_ONE_IN 30.0

struct source {
    uint32_t id;
    uint32_t moment;
    uint8_t flows, count, next;
    bool stale; /* known_ms is of before */
    float known_ms, spread_ms;
    /* Means over the last moments: how much shorter than two gaps the one around a moment was, of
     * flows whose gaps were so long, and how often samples overtook each other at it. */
    float short_ms, short_gap_ms, overtaken;
    struct ft_hold of[FLOWS];
    struct ft_hold common[MOMENTS]; /* of all flows of a moment */
    struct ft_hold each[MOMENTS];   /* of a flow */
};

struct ft_holds {
    struct ft_table *sources;
};

struct ft_holds *ft_holds_new(size_t max, uint64_t seed)
{
    struct ft_holds *holds = calloc(1, sizeof(*holds));

    if (!holds)
        return NULL;
    holds->sources = ft_table_new(sizeof(struct source), sizeof(uint32_t), max, seed);
    if (!holds->sources) {
        free(holds);
        return NULL;
    }
    return holds;
}

void ft_holds_free(struct ft_holds *holds)
{
    if (!holds)
        return;
    ft_table_free(holds->sources);
    free(holds);
}

static int by_off(const void *a, const void *b)
{
    const struct ft_hold *x = a, *y = b;

    return x->off_ms < y->off_ms ? -1 : x->off_ms > y->off_ms;
}

static int by_size(const void *a, const void *b)
{
    const struct ft_hold *x = a, *y = b;
    float left = fabsf(x->off_ms), right = fabsf(y->off_ms);

    return left < right ? -1 : left > right;
}

static double weight(const struct ft_hold *o)
{
    return 1 / (o->gap_ms * o->gap_ms + FT_HOLD_LEAST_MS * FT_HOLD_LEAST_MS);
}

/* The median by weight. */
static float weighted(struct source *s, int (*order)(const void *, const void *), double all)
{
    double part = 0;
    unsigned i = 0;

    qsort(s->of, s->flows, sizeof(*s->of), order);
    for (; i < s->flows - 1u; i++) {
        part += weight(&s->of[i]);
        if (part >= all / 2)
            break;
    }
    return s->of[i].off_ms;
}

/* Dense flows count most: what is missing in theirs is the least by chance. For delays that are
 * short against gaps it is as their inverse, of which the gap here is the mean. */
static void note_short(struct source *s)
{
    double sum = 0, squares = 0, cubes = 0, overtaken = 0;
    float part = 1.0f / (float)(s->count < MOMENTS ? s->count + 1 : MOMENTS);

    for (unsigned i = 0; i < s->flows; i++) {
        double gap = s->of[i].gap_ms, between = s->of[i].between_ms;

        between = fmin(fmax(between, -GAPS_MOST * gap), GAPS_MOST * gap);
        sum += (GAP_AROUND * gap - between) / (gap * gap);
        squares += 1 / (gap * gap);
        cubes += 1 / (gap * gap * gap);
        overtaken += between < 0;
    }
    s->short_ms += part * ((float)(sum / squares) - s->short_ms);
    s->short_gap_ms += part * ((float)(squares / cubes) - s->short_gap_ms);
    s->overtaken += part * ((float)overtaken / s->flows - s->overtaken);
}

/* A median has pi/2 times the variance of a mean. */
static void finish_moment(struct source *s)
{
    double all = 0;

    if (s->flows == 0)
        return;
    note_short(s);
    for (unsigned i = 0; i < s->flows; i++)
        all += weight(&s->of[i]);
    s->common[s->next] = (struct ft_hold){
        .off_ms = weighted(s, by_off, all),
        .gap_ms = s->flows == 1 ? s->of[0].gap_ms : (float)sqrt(M_PI_2 / all),
    };
    s->each[s->next] = (struct ft_hold){
        .off_ms = weighted(s, by_size, all),
        .gap_ms = s->flows == 1 ? s->of[0].gap_ms : (float)sqrt(s->flows / all),
    };
    s->next = (uint8_t)((s->next + 1) % MOMENTS);
    s->count += s->count < MOMENTS;
    s->flows = 0;
    s->stale = true;
}

void ft_holds_note(struct ft_holds *holds, uint32_t id, uint32_t moment, const struct ft_hold *lag)
{
    struct source *s;
    unsigned widest = 0;
    bool fresh;

    if (!holds || !(s = ft_table_insert(holds->sources, &id, &fresh)))
        return;
    if (s->moment != moment) {
        if ((int32_t)(moment - s->moment) < 0 && s->flows)
            return;
        finish_moment(s);
        s->moment = moment;
    }
    if (s->flows < FLOWS) {
        s->of[s->flows++] = *lag;
        return;
    }
    for (unsigned i = 1; i < FLOWS; i++)
        if (s->of[i].gap_ms > s->of[widest].gap_ms)
            widest = i;
    if (lag->gap_ms < s->of[widest].gap_ms)
        s->of[widest] = *lag;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* The median of the squares, each by the variance that it has if lags have this one. */
static double median(const struct source *s, const struct ft_hold *moments, double variance)
{
    double squares[MOMENTS];

    for (unsigned i = 0; i < s->count; i++) {
        const struct ft_hold *o = &moments[i];

        squares[i] = (double)o->off_ms * o->off_ms /
                     (OF_LAGS * variance + OF_GAPS * (double)o->gap_ms * o->gap_ms);
    }
    qsort(squares, s->count, sizeof(*squares), by_value);
    return s->count % 2 ? squares[s->count / 2]
                        : (squares[s->count / 2 - 1] + squares[s->count / 2]) / 2;
}

/* What is shorter than gaps does not show. */
static double least(const struct source *s)
{
    double gap = 0;

    for (unsigned i = 0; i < s->count; i++)
        gap += s->common[i].gap_ms / s->count;
    return fmax(FT_HOLD_SEEN_MS, fmin(gap, FT_HOLD_LEAST_MS));
}

static double learn(const struct source *s, const struct ft_hold *moments)
{
    double lo = least(s), hi = FT_HOLD_UNKNOWN_MS;

    if (median(s, moments, lo * lo) <= MEDIAN)
        return lo;
    for (int i = 0; i < 20; i++) {
        double middle = (lo + hi) / 2;

        if (median(s, moments, middle * middle) > MEDIAN)
            lo = middle;
        else
            hi = middle;
    }
    return fmin(hi * (1 + 2.0 / s->count), FT_HOLD_UNKNOWN_MS);
}

/* What is missing of two gaps, in gaps, where each sample comes up to `spread` gaps late by itself:
 * of those sent at random, the last that came before a moment and the first that came after it lie
 * that much closer, in the mean. */
static double missing(double spread)
{
    return GAP_AROUND + spread -
           2 * (sqrt(spread * M_PI_2) * erf(sqrt(spread / 2)) + exp(-spread / 2));
}

/* In gaps; grows with what is missing. */
static double spread_of(double part)
{
    double lo = 0, hi = 4 * GAPS_MOST;

    for (int i = 0; i < 30 && part > 0; i++) {
        double middle = (lo + hi) / 2;

        if (missing(middle) < part)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

static const struct source *known(struct ft_holds *holds, uint32_t id)
{
    struct source *s = holds ? ft_table_find(holds->sources, &id) : NULL;

    if (!s || s->count < ENOUGH)
        return NULL;
    if (s->stale) {
        s->known_ms = (float)fmax(learn(s, s->common), learn(s, s->each));
        s->spread_ms = (float)(spread_of(s->short_ms / s->short_gap_ms) * s->short_gap_ms);
    }
    s->stale = false;
    return s;
}

double ft_holds_ms(struct ft_holds *holds, uint32_t id)
{
    const struct source *s = known(holds, id);

    return s ? s->known_ms : FT_HOLD_UNKNOWN_MS;
}

double ft_holds_known_ms(struct ft_holds *holds, uint32_t id)
{
    const struct source *s = known(holds, id);

    return s ? s->known_ms : 0;
}

double ft_holds_overlap_ms(struct ft_holds *holds, uint32_t id, double gap_ms)
{
    const struct source *s = known(holds, id);

    return s ? missing(s->spread_ms / gap_ms) * gap_ms : 0;
}

double ft_holds_overtaken(struct ft_holds *holds, uint32_t id)
{
    const struct source *s = known(holds, id);

    return s ? fmin(1, s->overtaken * OVERTAKES_ONE_IN) : 0;
}

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
/* A median of what gaps make of several flows has this times the variance of their mean. */
#define OF_MEDIAN 1.2
/* Median of a square by its mean: of what gaps alone make of it, which have long tails, and of
 * lags, 0.455 if they are normal and 0.51 if uniform. */
#define MEDIAN_GAPS 0.36
#define MEDIAN_LAGS 0.48

/* The gap around a moment is two mean gaps long, in the mean. Longer ones than this are taken for
 * as long. */
#define GAP_AROUND 2.0
#define GAPS_MOST  40.0
/* A lag of this part of the gap between samples shows in so many moments, the smaller the more. */
#define SHOWS         0.1
#define SHOWS_MOMENTS MOMENTS
/* Standard errors. */
#define CLEARLY_SHORT 1.5
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
    float short_ms2; /* and the variance of the first, of one moment, where none overtakes */
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

/* Where each sample comes up to `spread` gaps late by itself: how far, in gaps, the last of those
 * that came before a moment was sent before it, or the first that came after it was after the
 * earliest that could. Of those sent u gaps away u / spread came, so that none is within s with
 * exp(-s^2 / (2 spread)), and beyond `spread` with exp(-(s - spread / 2)). */
static double mean_end(double spread)
{
    return sqrt(spread * M_PI_2) * erf(sqrt(spread / 2)) + exp(-spread / 2);
}

/* Its variance, 1 where none comes late, and third moment, 2. */
static double end_variance(double spread)
{
    double mean = mean_end(spread);

    return 2 * spread + 2 * exp(-spread / 2) - mean * mean;
}

static double end_third(double spread)
{
    double mean = mean_end(spread), none = exp(-spread / 2);
    double square = 2 * spread + 2 * none;
    double cube = 3 * spread * (mean - none) + 6 * none * (spread + 1);

    return cube - 3 * mean * square + 2 * mean * mean * mean;
}

/* How much closer these two lie than two gaps, in gaps, in the mean. */
static double missing(double spread)
{
    return GAP_AROUND + spread - 2 * mean_end(spread);
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
    s->short_ms2 += part * ((float)(GAP_AROUND / squares) - s->short_ms2);
    s->short_gap_ms += part * ((float)(squares / cubes) - s->short_gap_ms);
    s->overtaken += part * ((float)overtaken / s->flows - s->overtaken);
}

/* [0 to 1] */
static double overtakes(const struct source *s)
{
    return fmin(1, s->overtaken * OVERTAKES_ONE_IN);
}

/* What is shorter by chance does not count, unless samples are known to overtake each other. */
static void note_spread(struct source *s)
{
    bool clear =
        s->overtaken > 0 || s->short_ms > CLEARLY_SHORT * sqrt(s->short_ms2 / fmax(1, s->count));

    s->spread_ms = clear ? (float)(spread_of(s->short_ms / s->short_gap_ms) * s->short_gap_ms) : 0;
}

static double apart_ms2(const struct source *s, double gap_ms)
{
    return overtakes(s) * (end_variance(s->spread_ms / gap_ms) - 1) * gap_ms * gap_ms;
}

/* Where samples overtake each other, gaps are as long as would make the number at a moment vary as
 * much. */
static void widen_gaps(struct source *s)
{
    if (s->overtaken <= 0)
        return;
    note_spread(s);
    for (unsigned i = 0; i < s->flows; i++) {
        double gap = s->of[i].gap_ms;

        s->of[i].gap_ms = (float)sqrt(gap * gap + apart_ms2(s, gap));
    }
}

/* What the flows of a moment have in common: the median by weight, of two their mean. */
static struct ft_hold common_of(struct source *s, double all)
{
    const struct ft_hold *of = s->of;

    if (s->flows == 1)
        return of[0];
    if (s->flows == 2)
        return (struct ft_hold){
            .off_ms =
                (float)((weight(&of[0]) * of[0].off_ms + weight(&of[1]) * of[1].off_ms) / all),
            .gap_ms = (float)sqrt(1 / all),
        };
    return (struct ft_hold){
        .off_ms = weighted(s, by_off, all),
        .gap_ms = (float)sqrt(OF_MEDIAN / all),
    };
}

static void finish_moment(struct source *s)
{
    double all = 0;

    if (s->flows == 0)
        return;
    note_short(s);
    widen_gaps(s);
    for (unsigned i = 0; i < s->flows; i++)
        all += weight(&s->of[i]);
    s->common[s->next] = common_of(s, all);
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

/* Whether the median of the squares, each by the variance that it has if lags have this one, is
 * larger than it would be then. */
static bool is_more(const struct source *s, const struct ft_hold *moments, double variance)
{
    double squares[MOMENTS], gaps = 0, lags = OF_LAGS * variance, median, part;

    for (unsigned i = 0; i < s->count; i++) {
        const struct ft_hold *o = &moments[i];
        double gap = OF_GAPS * (double)o->gap_ms * o->gap_ms;

        squares[i] = (double)o->off_ms * o->off_ms / (lags + gap);
        gaps += gap / s->count;
    }
    qsort(squares, s->count, sizeof(*squares), by_value);
    median = s->count % 2 ? squares[s->count / 2]
                          : (squares[s->count / 2 - 1] + squares[s->count / 2]) / 2;
    part = lags / (lags + gaps);
    return median > MEDIAN_GAPS + (MEDIAN_LAGS - MEDIAN_GAPS) * part * part;
}

/* What is much shorter than gaps does not show; what each sample has by itself, where samples
 * overtake each other, less so. */
static double least(const struct source *s)
{
    double gap = 0, part = fmax(SHOWS * sqrt((double)SHOWS_MOMENTS / s->count), overtakes(s));

    for (unsigned i = 0; i < s->count; i++)
        gap += s->common[i].gap_ms / s->count;
    return fmax(FT_HOLD_SEEN_MS, fmin(gap * part, FT_HOLD_LEAST_MS));
}

static double learn(const struct source *s, const struct ft_hold *moments)
{
    double lo = least(s), hi = FT_HOLD_UNKNOWN_MS;

    if (!is_more(s, moments, lo * lo))
        return lo;
    for (int i = 0; i < 20; i++) {
        double middle = (lo + hi) / 2;

        if (is_more(s, moments, middle * middle))
            lo = middle;
        else
            hi = middle;
    }
    return fmin(hi * (1 + 2.0 / s->count), FT_HOLD_UNKNOWN_MS);
}

static const struct source *known(struct ft_holds *holds, uint32_t id)
{
    struct source *s = holds ? ft_table_find(holds->sources, &id) : NULL;

    if (!s || s->count < ENOUGH)
        return NULL;
    if (s->stale) {
        s->known_ms = (float)fmax(learn(s, s->common), learn(s, s->each));
        note_spread(s);
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

    return s ? overtakes(s) : 0;
}

double ft_holds_apart_ms2(struct ft_holds *holds, uint32_t id, double gap_ms, double *third_ms3)
{
    const struct source *s = known(holds, id);

    *third_ms3 =
        s ? overtakes(s) * (end_third(s->spread_ms / gap_ms) - 2) * gap_ms * gap_ms * gap_ms : 0;
    return s ? apart_ms2(s, gap_ms) : 0;
}

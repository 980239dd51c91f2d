// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/pair_rate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "lib/base/task.h"
#include "lib/diagnosis/stats.h"

#define BINS  FT_PAIR_RATE_BINS
#define SPANS FT_PAIR_RATE_SPANS
/* Samples come out of order by as much. */
#define EARLIER      20
#define SAMPLES_MIN  60
#define PRODUCTS_MIN 200.0
#define PAIRS_MIN    4
#define PAST_MIN     5
#define PAST_MAX     20
#define LEAST        1.5
#define EVEN         1.25
#define SIGMAS       5.0
#define WOBBLES      2.5
#define FORGETS      0.97
/* Of pairs that are passed over and of those that are compared, as many are one piece of work. */
#define PASSED   64
#define COMPARED 4
#define OF_USUAL 0.05 /* of the bytes of the middle pair: one with less passes nothing on */

void ft_pair_rate_take(struct ft_pair_rate *p, int64_t first_ms, int64_t last_ms, uint64_t samples,
                       double bytes)
{
    int64_t from = first_ms / FT_PAIR_RATE_BIN_MS, to = last_ms / FT_PAIR_RATE_BIN_MS;
    double one = samples ? bytes / (double)samples : 0,
           inner = samples > 2 ? (double)samples - 2 : 0;
    double width = (double)(to - from + 1);
    uint64_t room;

    if (p->first_bin == 0)
        p->first_bin = from > EARLIER ? from - EARLIER : 1;
    if (samples == 0 || to < from || from < p->first_bin || to >= p->first_bin + BINS)
        return;
    room = UINT16_MAX - p->counts[from % BINS];
    p->counts[from % BINS] += (uint16_t)(samples < room ? samples : room);
    for (int64_t b = from; b <= to && inner > 0; b++) {
        p->bytes[b % BINS] += (float)(inner * one / width);
        p->squares[b % BINS] += (float)(inner * one * one / width / width);
    }
    p->bytes[from % BINS] += (float)one;
    p->squares[from % BINS] += (float)(one * one);
    if (samples == 1)
        return;
    p->bytes[to % BINS] += (float)one;
    p->squares[to % BINS] += (float)(one * one);
}

void ft_pair_rate_fold(struct ft_pair_rate *p, int64_t end_ms, bool begins)
{
    int64_t end = end_ms / FT_PAIR_RATE_BIN_MS, stop = p->first_bin + BINS;
    uint32_t at = p->newest % SPANS;

    if (begins) {
        at = ++p->newest % SPANS;
        p->sums[at] = p->spans[at] = 0;
        p->taken[at] = 0;
    }
    if (p->first_bin == 0 || end <= p->first_bin)
        return;
    for (int64_t b = p->first_bin; b < end && b < stop; b++) {
        float bytes = p->bytes[b % BINS];

        p->sums[at] += bytes;
        p->spans[at] += bytes * bytes - p->squares[b % BINS];
        p->taken[at] += p->counts[b % BINS];
        p->bytes[b % BINS] = p->squares[b % BINS] = 0;
        p->counts[b % BINS] = 0;
    }
    p->first_bin = end;
}

void ft_pair_rate_choose(struct ft_pair_rate *p, uint32_t spans)
{
    p->sum = p->products = 0;
    p->samples = 0;
    /* A pair that is newer has fewer of them. */
    for (uint32_t i = 0; i < spans && i < SPANS && i <= p->newest; i++) {
        uint32_t at = (p->newest - i) % SPANS;

        p->sum += (double)p->sums[at];
        p->products += (double)p->spans[at];
        p->samples += p->taken[at];
    }
}

/* The same as number of pairs of samples. */
static double pairs_of(const struct ft_pair_rate *p)
{
    double one = p->samples ? p->sum / (double)p->samples : 0;

    return one > 0 ? p->products / (one * one) : 0;
}

bool ft_pair_rate_suffices(const struct ft_pair_rate *p)
{
    return p->samples >= SAMPLES_MIN && pairs_of(p) >= PRODUCTS_MIN;
}

/* What its samples say; false: too few, or it sends for too short a time for bins to show. */
static bool measure(struct ft_pair_rate *p, double bins, double least_share)
{
    p->state = FT_PAIR_RATE_UNKNOWN;
    p->off = 0;
    if (!ft_pair_rate_suffices(p))
        return false;
    p->rate = log(p->products / p->sum);
    p->share = log(p->sum * p->sum / p->products / bins);
    /* Of counts that are Poisson's. */
    p->noise = sqrt(2 / pairs_of(p) + 1 / (double)p->samples);
    return (p->known ? p->usual_share : p->share) >= log(least_share);
}

static void learn(struct ft_pair_rate *p, double common)
{
    /* What was off and is not any more comes and goes. */
    if (p->known >= PAST_MIN)
        p->wobble = fmax(FORGETS * p->wobble, fmax(p->away, fabs(p->off)));
    p->away = 0;
    p->known += p->known < PAST_MAX;
    p->usual_rate += (p->rate - p->usual_rate) / p->known;
    p->usual_share += (p->share - common - p->usual_share) / p->known;
}

/* By how much a pair must be off for it not to be chance. What is usual for it was measured, too.
 */
static double bar_of(const struct ft_pair_rate *p)
{
    return fmax(fmax(log(LEAST), WOBBLES * p->wobble),
                SIGMAS * p->noise * sqrt(1 + 1.0 / p->known));
}

/* What a look at the pairs has found so far. */
struct judging {
    struct ft_pair_rate *const *pairs;
    size_t count;
    bool *measured;
    double *room;
    double common;  /* what the times of all have in common */
    double fastest; /* of the rates of slow pairs */
    struct ft_task *task;
};

/* Compares pairs with a past to it. Too few of them, or the middle of their rates has changed: none
 * is judged. */
static enum ft_pair_rate_outcome compare(struct judging *j)
{
    struct ft_pair_rate *const *pairs = j->pairs;
    double *room = j->room;
    size_t n = 0;

    for (size_t i = 0; i < j->count; i++)
        if (j->measured[i] && pairs[i]->known >= PAST_MIN)
            room[n++] = pairs[i]->share - pairs[i]->usual_share;
    if (n < PAIRS_MIN)
        return FT_PAIR_RATE_NOT_JUDGED;
    j->common = ft_median(room, n);
    n = 0;
    for (size_t i = 0; i < j->count; i++)
        if (j->measured[i] && pairs[i]->known >= PAST_MIN)
            room[n++] = pairs[i]->usual_rate - pairs[i]->rate;
    if (fabs(ft_median(room, n)) > log(EVEN))
        return FT_PAIR_RATE_OTHER_WORK;
    for (size_t i = 0; i < j->count; i++) {
        struct ft_pair_rate *p = pairs[i];
        double longer = p->share - p->usual_share - j->common;

        if (!j->measured[i] || p->known < PAST_MIN)
            continue;
        p->off = fmin(p->usual_rate - p->rate, longer);
        p->middle = (p->usual_rate - p->rate + longer) / 2;
        p->state = p->off <= log(EVEN)   ? FT_PAIR_RATE_EVEN
                   : p->off <= bar_of(p) ? FT_PAIR_RATE_UNDECIDED
                                         : FT_PAIR_RATE_SLOW;
        if (p->state != FT_PAIR_RATE_EVEN)
            p->away = fmax(p->away, p->off);
    }
    return FT_PAIR_RATE_JUDGED;
}

/* Bytes of a pair that is as large as most. */
static double usual_bytes(struct ft_pair_rate *const *pairs, size_t count, double *room)
{
    for (size_t i = 0; i < count; i++)
        room[i] = pairs[i]->sum;
    return ft_median(room, count);
}

/* Whether a pair brings its sender what a slow one passes on, or takes on what a slow one brings,
 * and is slow itself, or may be. */
static bool in_chain(struct ft_pair_rate *const *pairs, size_t count, size_t i, double least_bytes,
                     struct ft_task *task)
{
    ft_task_spend(task, 1 + count / PASSED);
    for (size_t k = 0; k < count; k++)
        if (k != i && pairs[k]->state != FT_PAIR_RATE_EVEN && pairs[k]->sum > least_bytes &&
            (pairs[k]->to_host == pairs[i]->from_host || pairs[k]->from_host == pairs[i]->to_host))
            return true;
    return false;
}

/* Whether a verdict is of this pair. */
static bool is_of(const struct ft_blame *b, const struct ft_pair_rate *p,
                  const struct ft_pair_rate *worst)
{
    bool over = false;

    if (b->side == FT_SIDE_SENDER && b->slow > 1)
        return p->from == b->from;
    if (b->side == FT_SIDE_RECEIVER && b->slow > 1)
        return p->to == b->to;
    if (b->slow == 1)
        return p == worst;
    for (uint32_t k = 0; k < p->link_count; k++)
        for (uint32_t n = 0; n < worst->link_count; n++)
            over |= p->links[k] == worst->links[n] &&
                    (b->link == FT_BLAME_NONE || p->links[k] == b->link);
    return over;
}

/* Whether another pair of the same sender or receiver may be slow, too: then it is not yet known
 * whether this one alone is, or that end. */
static bool is_unsettled(struct ft_pair_rate *const *pairs, size_t count,
                         const struct ft_pair_rate *p, struct ft_task *task)
{
    ft_task_spend(task, 1 + count / PASSED);
    for (size_t k = 0; k < count; k++)
        if (pairs[k] != p && pairs[k]->state >= FT_PAIR_RATE_UNDECIDED &&
            (pairs[k]->from == p->from || pairs[k]->to == p->to))
            return true;
    return false;
}

/* Whether it says of what it crosses that this does not limit a slow one. */
static bool acquits(const struct judging *j, const struct ft_pair_rate *p)
{
    return p->state == FT_PAIR_RATE_EVEN && p->rate >= j->fastest;
}

static bool crosses_partly(const struct ft_pair_rate *p, uint32_t k)
{
    return k < 32 && p->partly >> k & 1;
}

/* Whether all traffic of a pair that is as fast as ever crosses the link. */
static bool is_passed(const struct judging *j, uint32_t link)
{
    ft_task_spend(j->task, 1 + j->count / COMPARED);
    for (size_t i = 0; i < j->count; i++) {
        const struct ft_pair_rate *p = j->pairs[i];

        for (uint32_t k = 0; k < p->link_count; k++)
            if (p->links[k] == link && !crosses_partly(p, k) && acquits(j, p))
                return true;
    }
    return false;
}

/* Whether it counts for or against a verdict of several pairs, as far as it was compared: those
 * that acquit nothing do, too. */
static bool is_counted(const struct ft_blame *b, const struct ft_pair_rate *p)
{
    if (p->state == FT_PAIR_RATE_UNKNOWN)
        return false;
    if (b->side == FT_SIDE_SENDER)
        return p->from == b->from;
    if (b->side == FT_SIDE_RECEIVER)
        return p->to == b->to;
    for (uint32_t k = 0; k < p->link_count; k++)
        if (p->links[k] == b->link)
            return !crosses_partly(p, k) || p->state == FT_PAIR_RATE_SLOW;
    return false;
}

/* Takes out verdicts of pairs of which one may be slow for another's sake. How slow the others are:
 * what counts as slow is the less of rate and time, which of both by chance. */
static void finish(const struct judging *j, struct ft_blames *out)
{
    struct ft_pair_rate *const *pairs = j->pairs;
    double least_bytes = OF_USUAL * usual_bytes(pairs, j->count, j->room);
    size_t kept = 0;

    for (size_t i = 0; i < out->count; i++) {
        struct ft_blame *b = &out->items[i];
        bool doubtful = b->slow == 1 ? is_unsettled(pairs, j->count, pairs[b->cell], j->task)
                                     : b->link != FT_BLAME_NONE && is_passed(j, b->link);
        bool several = b->slow > 1 && (b->side != FT_SIDE_PAIR || b->link != FT_BLAME_NONE);
        size_t n = 0;

        ft_task_spend(j->task, 1 + j->count / COMPARED);
        b->all = several ? 0 : b->all;
        for (size_t k = 0; k < j->count; k++) {
            b->all += several && is_counted(b, pairs[k]);
            if (pairs[k]->state != FT_PAIR_RATE_SLOW || !is_of(b, pairs[k], pairs[b->cell]))
                continue;
            doubtful = doubtful || in_chain(pairs, j->count, k, least_bytes, j->task);
            j->room[n++] = pairs[k]->middle;
        }
        b->ratio = n ? exp(ft_median(j->room, n)) : b->ratio;
        if (!doubtful)
            out->items[kept++] = *b;
    }
    out->count = kept;
}

/* Pairs that chance may have made slow neither accuse nor acquit. */
static int blame(struct judging *j, uint32_t ends, struct ft_blames *out)
{
    struct ft_blame_cell *cells = calloc(j->count, sizeof(*cells));
    uint32_t *pair_of = calloc(j->count, sizeof(*pair_of)), n = 0;
    int rc = -ENOMEM;

    for (size_t i = 0; cells && pair_of && i < j->count; i++) {
        const struct ft_pair_rate *p = j->pairs[i];

        if (p->state != FT_PAIR_RATE_SLOW && !acquits(j, p))
            continue;
        cells[n] = (struct ft_blame_cell){.value = p->off,
                                          .from = p->from,
                                          .to = p->to,
                                          .links = p->links,
                                          .link_count = p->link_count,
                                          .partly = p->partly,
                                          .last = p->last};
        pair_of[n++] = (uint32_t)i;
    }
    if (cells && pair_of)
        rc = ft_blame_find(cells, n, ends, log(LEAST), NAN, out, j->task);
    for (size_t i = 0; rc == 0 && i < out->count; i++)
        out->items[i].cell = pair_of[out->items[i].cell];
    if (rc == 0)
        finish(j, out);
    free(cells);
    free(pair_of);
    return rc;
}

int ft_pair_rate_judge(struct ft_pair_rate *const *pairs, size_t count, uint32_t ends, double bins,
                       double least_share, bool learns, enum ft_pair_rate_outcome *outcome,
                       struct ft_blames *out, struct ft_task *task)
{
    struct judging j = {pairs,
                        count,
                        calloc(count + 1, sizeof(*j.measured)),
                        calloc(count + 1, sizeof(*j.room)),
                        0,
                        -INFINITY,
                        task};
    int rc = j.measured && j.room ? 0 : -ENOMEM;
    bool slow = false;

    *outcome = FT_PAIR_RATE_NOT_JUDGED;
    *out = (struct ft_blames){0};
    for (size_t i = 0; rc == 0 && i < count; i++)
        j.measured[i] = measure(pairs[i], bins, least_share);
    ft_task_spend(task, 1 + count / COMPARED);
    if (rc == 0)
        *outcome = compare(&j);
    ft_task_spend(task, 1 + count / COMPARED);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        bool is_slow = pairs[i]->state == FT_PAIR_RATE_SLOW;

        slow |= is_slow;
        j.fastest = is_slow ? fmax(j.fastest, pairs[i]->rate) : j.fastest;
        if (learns && j.measured[i] && *outcome != FT_PAIR_RATE_OTHER_WORK &&
            pairs[i]->state <= FT_PAIR_RATE_EVEN)
            learn(pairs[i], j.common);
    }
    if (rc == 0 && slow)
        rc = blame(&j, ends, out);
    free(j.measured);
    free(j.room);
    return rc;
}

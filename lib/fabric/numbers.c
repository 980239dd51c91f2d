// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/numbers.h"

#include <math.h>

#define PSN_MASK 0xffffffu
#define PSNS     (PSN_MASK + 1)
/* As folds have it: what is lower by less was sent again, or overtaken. */
#define BACK_MAX (PSNS / 4)
/* The numbers begin anew every 2^24, and a gap of 3/4 of that or more looks like one that went back
 * (BACK_MAX). Three samples in 2^24 would do if they came in equal gaps; they are drawn at random,
 * and of n samples in 2^24 one gap in exp(3 n / 4) is so long: one in nine with three, one in
 * 160,000 with 16. Of what the other limits below would let pass with six samples, half was wrong.
 * The mean of a second's few gaps may be twice as long. */
#define GAP_MAX (PSNS / 16)
/* Between seconds there is one gap alone. Where it is long for the rate so far, samples may be
 * missing, and the numbers may have begun anew. */
#define PAUSE_MAX     (PSNS / 4)
#define PAUSE_MS      200
#define RATE_KNOWN_MS 500
/* That a row counts. */
#define ROW_BACK_MAX 0x7fffu
/* Length of an acknowledgement's frame. */
#define ACK_BYTES 70.0
/* Counting contradicts from so many of its standard errors on. */
#define CONTRADICTED 5.0
#define Z            1.959963984540054
/* By so much of the skewness both ends of the interval are moved (Cornish and Fisher). */
#define SKEWED ((Z * Z - 1) / 6)
/* Of longer intervals nothing is learnt. */
#define LEARN_MAX_MS 5000
/* The longest that a sample is held back (sFlow v5 section 3.1). */
#define LAG_MAX_MS 1000.0
/* Variances differ by more than chance makes those of lags differ. */
#define CLEARLY 2.0
/* A flow continues unless it pauses for so many of its gaps between samples and so long. */
#define EDGE_GAPS 4.0
#define EDGE_MS   1000.0

static bool later(uint32_t ms, uint32_t than)
{
    return (int32_t)(ms - than) > 0;
}

static void widen(struct ft_numbers *n, const struct ft_numbered *more)
{
    uint16_t min = more->frame_min < UINT16_MAX ? (uint16_t)more->frame_min : UINT16_MAX;
    uint16_t max = more->frame_max < UINT16_MAX ? (uint16_t)more->frame_max : UINT16_MAX;

    if (n->samples == 0 || min < n->frame_min)
        n->frame_min = min;
    if (max > n->frame_max)
        n->frame_max = max;
}

/* The numbers of samples that came in between two others are known to be in one row. */
static bool is_row(const struct ft_numbered *more)
{
    if (more->packets / (more->samples + (uint64_t)more->acks) > GAP_MAX)
        return false;
    return more->samples == 1 ? more->span == 0 : more->span / (more->samples - 1) <= 2 * GAP_MAX;
}

static bool may_have_turned(const struct ft_numbers_row *r, const struct ft_numbered *more)
{
    uint32_t pause_ms = (uint32_t)more->first_ms - r->last_ms;
    uint32_t known_ms = r->last_ms - r->first_ms;

    return pause_ms > PAUSE_MS && known_ms > RATE_KNOWN_MS &&
           (double)r->span / known_ms * pause_ms > 2.0 * PAUSE_MAX;
}

/* Where they begin, after low; below 0 where that is before it. What begins after all others lies
 * ahead of them. Of what began in their time, at another port, the numbers are near those that
 * began with it. */
static int64_t position_of(const struct ft_numbers_row *r, const struct ft_numbered *more,
                           bool *ahead)
{
    uint32_t from;

    *ahead = later((uint32_t)more->first_ms, r->last_ms);
    if (*ahead) {
        from = (more->low - (r->low + r->span)) & PSN_MASK;
        return (int64_t)r->span + (from > PSN_MASK - BACK_MAX ? (int64_t)from - PSNS : from);
    }
    from = (more->low - (r->low + r->at)) & PSN_MASK;
    return (int64_t)r->at + (from > PSNS / 2 ? (int64_t)from - PSNS : from);
}

/* Two intervals that follow on each other are complete when a third begins: the number at the
 * moment between them lies between their samples. */
static void learn(struct ft_numbers_row *r, struct ft_holds *holds)
{
    uint32_t middle, sent = 0;

    if (r->in[1] == 0) {
        r->middle = r->sent = 0;
        return;
    }
    middle = (uint32_t)(((uint64_t)r->before_to + r->from) / 2);
    if (r->middle && middle > r->middle)
        sent = middle - r->middle;
    if (sent && r->sent && r->in[2]) {
        double all = (double)r->sent + sent, ms = r->interval_ms;
        struct ft_hold lag = {
            .off_ms = (float)(ms * ((double)r->sent - sent) / all),
            .gap_ms = (float)(2 * ms / (r->in[1] + r->in[2] + 1)),
            .between_ms = (float)(2 * ms * ((double)r->from - r->before_to) / all),
        };

        /* More comes of a clock that was set back. */
        if (lag.between_ms >= -LAG_MAX_MS)
            ft_holds_note(holds, r->source, r->start_ms, &lag);
    }
    r->sent = sent;
    r->middle = middle;
}

static uint16_t plus(uint16_t samples, uint32_t more)
{
    return more > (uint32_t)(UINT16_MAX - samples) ? UINT16_MAX : (uint16_t)(samples + more);
}

static void take_interval(struct ft_numbers_row *r, const struct ft_numbered *more, uint32_t from,
                          uint32_t to, struct ft_holds *holds)
{
    uint32_t start = (uint32_t)more->start_ms;

    if (start == r->first_start_ms)
        r->first_in = plus(r->first_in, more->samples);
    if (start == r->start_ms) {
        r->in[0] = plus(r->in[0], more->samples);
        r->from = from < r->from ? from : r->from;
        r->to = to > r->to ? to : r->to;
        return;
    }
    learn(r, holds);
    r->in[2] = r->in[1];
    r->in[1] = r->interval_ms && start - r->start_ms == r->interval_ms &&
                       more->interval_ms == r->interval_ms
                   ? r->in[0]
                   : 0;
    r->before_to = r->to;
    r->start_ms = start;
    r->interval_ms = more->interval_ms <= LEARN_MAX_MS ? (uint16_t)more->interval_ms : 0;
    r->in[0] = plus(0, more->samples);
    r->from = from;
    r->to = to;
}

static void put_in_row(struct ft_numbers_row *r, const struct ft_numbered *more,
                       struct ft_holds *holds)
{
    bool ahead;
    int64_t at = position_of(r, more, &ahead), end = at + more->span, span;
    uint32_t before = at < 0 ? (uint32_t)-at : 0;

    span = (end > r->span ? end : r->span) + before;
    if ((ahead && (at - (int64_t)r->span > PAUSE_MAX || may_have_turned(r, more))) ||
        span >= UINT32_MAX) {
        r->broken = true;
        return;
    }
    r->low = (r->low - before) & PSN_MASK;
    r->span = (uint32_t)span;
    r->at = ahead ? (uint32_t)(at + before) : r->at + before;
    r->from += before;
    r->to += before;
    r->before_to += before;
    r->middle += r->middle ? before : 0;
    take_interval(r, more, (uint32_t)(at + before),
                  (uint32_t)(end > -(int64_t)before ? end + before : 0), holds);
    if (later((uint32_t)more->last_ms, r->last_ms))
        r->last_ms = (uint32_t)more->last_ms;
}

static void begin_row(struct ft_numbers_row *r, const struct ft_numbered *more)
{
    *r = (struct ft_numbers_row){
        .source = more->source,
        .low = more->low,
        .span = more->span,
        .first_ms = (uint32_t)more->first_ms,
        .last_ms = (uint32_t)more->last_ms,
        .start_ms = (uint32_t)more->start_ms,
        .first_start_ms = (uint32_t)more->start_ms,
        .to = more->span,
        .interval_ms = more->interval_ms <= LEARN_MAX_MS ? (uint16_t)more->interval_ms : 0,
        .in = {plus(0, more->samples)},
        .first_in = plus(0, more->samples),
    };
}

/* Of more sources than there are rows the first have one: a row that began later would be of a part
 * of the window. NULL: none for this. */
static struct ft_numbers_row *row_of(struct ft_numbers *n, const struct ft_numbered *more)
{
    for (unsigned i = 0; i < FT_NUMBERS_ROWS; i++)
        if (n->rows[i].samples == 0 || n->rows[i].source == more->source)
            return &n->rows[i];
    return NULL;
}

void ft_numbers_add(struct ft_numbers *n, const struct ft_numbered *more, struct ft_holds *holds)
{
    struct ft_numbers_row *r;

    n->naks = plus(n->naks, more->naks);
    n->rnrs = plus(n->rnrs, more->rnrs);
    n->no_credits = plus(n->no_credits, more->no_credits);
    n->acks += more->acks;
    n->bytes += more->bytes;
    n->requests |= more->requests;
    n->responses |= more->responses;
    n->reads |= more->reads;
    if (more->odd || (more->samples && (more->low > PSN_MASK || (n->samples && n->qp != more->qp))))
        n->broken = true;
    if (more->samples == 0 || n->broken)
        return;
    if (n->samples == 0)
        n->qp = more->qp & PSN_MASK;
    if (n->samples == 0 || later(n->first_ms, (uint32_t)more->first_ms))
        n->first_ms = (uint32_t)more->first_ms;
    if (n->samples == 0 || later((uint32_t)more->last_ms, n->last_ms))
        n->last_ms = (uint32_t)more->last_ms;
    widen(n, more);
    n->samples += more->samples;
    n->back += more->back;
    n->starts += more->starts;
    n->packets += more->packets * more->samples / (more->samples + more->acks);
    r = row_of(n, more);
    if (!r)
        return;
    if (r->samples == 0)
        begin_row(r, more);
    else if (!r->broken)
        put_in_row(r, more, holds);
    r->samples += more->samples;
    r->back =
        more->back > ROW_BACK_MAX - r->back ? ROW_BACK_MAX : (r->back + more->back) & ROW_BACK_MAX;
    r->broken = r->broken || !is_row(more);
}

double ft_span_quantile(uint64_t c, double p)
{
    double n = (double)c, lo = 0, hi = 1;

    /* P(x) = c x^(c-1) - (c-1) x^c, which grows. */
    for (int i = 0; i < 60; i++) {
        double x = (lo + hi) / 2, power = exp((n - 1) * log(x));

        if (n * power - (n - 1) * power * x < p)
            lo = x;
        else
            hi = x;
    }
    return (lo + hi) / 2;
}

/* Standard error of the mean length of a packet, as a part of it. Lengths of a mean between two
 * bounds vary most when they are all one of the two: full packets and the last ones of messages. */
static double length_error(const struct ft_numbers *n, double mean)
{
    double c = n->samples, acks = n->acks * ACK_BYTES / c, data = mean - acks, varies = 0;

    data = fmin(fmax(data, n->frame_min), n->frame_max);
    varies = (n->frame_max - data) * (data - n->frame_min) / c;
    if (n->acks)
        varies += acks * acks * (1.0 / n->acks + 1 / c);
    return sqrt(varies) / mean;
}

/* What a row says: its error has a variance and a third moment, and may be that much to one side.
 */
struct estimate {
    double packets, variance, third, below, above;
};

/* The samples of an interval at an end of the window, a second of it, as far as they are not there
 * by chance. */
static double edge(const struct ft_numbers_row *r, uint16_t in, double mean)
{
    double rate = r->interval_ms ? (in - sqrt(in)) / r->interval_ms : 0;

    return rate > mean ? rate : mean;
}

static double mean_per_ms(const struct ft_numbers_row *r)
{
    return (r->samples - 1) / ((double)(r->last_ms - r->first_ms) + 1);
}

/* What the lag adds at an end of the window where the flow has so many samples per ms,
 * each of which stands for `each`. */
static void widen_end(const struct ft_numbers_row *r, struct ft_holds *holds, double rate,
                      double each, struct estimate *t)
{
    double lag = rate * ft_holds_ms(holds, r->source), third, variance;

    if (rate <= 0)
        return;
    variance = ft_holds_apart_ms2(holds, r->source, 1 / rate, &third);
    t->variance += (lag * lag + variance * rate * rate) * each * each;
    t->third += third * pow(rate * each, 3);
}

/* Packets that the lag moves into the window or out of it. Where the flow sends at both ends it
 * does so with what differs between them; at one end alone with all of it, and that is not known
 * but for its longest. Where samples overtake each other, what comes in a window begins before the
 * end of what came in the one before: by so much its span is too long. */
static void widen_by_lag(const struct ft_numbers_row *r, struct ft_holds *holds,
                         struct ft_numbers_beside beside, struct estimate *t)
{
    double mean = mean_per_ms(r), each = t->packets / r->samples;
    double overlap_ms = ft_holds_overlap_ms(holds, r->source, 1 / mean);
    double a = beside.before ? edge(r, r->first_in, mean) : 0;
    double b = beside.after ? edge(r, r->in[0], mean) : 0;

    widen_end(r, holds, a, each, t);
    widen_end(r, holds, b, each, t);
    if (beside.before && beside.after)
        t->packets -= overlap_ms * mean * each;
    t->below = beside.after ? 0 : LAG_MAX_MS * a * each;
    t->above = beside.before ? 0 : LAG_MAX_MS * b * each;
}

/* The moments are those whose quantiles, by Cornish and Fisher, are those of the span. */
static bool estimate_of(const struct ft_numbers_row *r, struct estimate *t)
{
    double c = r->samples, span = r->span, below, above;

    if (r->broken || r->samples < FT_NUMBERS_MIN || r->span < r->samples)
        return false;
    *t = (struct estimate){.packets = span * (c + 1) / (c - 1)};
    below = t->packets - span / ft_span_quantile(r->samples, 0.975);
    above = span / ft_span_quantile(r->samples, 0.025) - t->packets;
    t->variance = pow((below + above) / (2 * Z), 2);
    t->third = (above - below) / 2 / SKEWED * t->variance;
    return true;
}

/* Of two rows, that of more samples: how far lags differ is an estimate, and the lower of two is
 * the more likely to be too low. The other one where it says it clearly more exactly, as a part of
 * what it says: else the lower of two would count. */
static bool is_better(const struct estimate *t, const struct estimate *than, bool more_samples)
{
    double part = t->variance / (t->packets * t->packets);
    double other = than->variance / (than->packets * than->packets);

    return more_samples ? part < CLEARLY * other : CLEARLY * part < other;
}

/* Whether others have samples where this row has none, at an end of the window. */
static bool is_part(const struct ft_numbers *n, const struct ft_numbers_row *r)
{
    double away_ms = EDGE_GAPS / mean_per_ms(r) + EDGE_MS;

    return (double)(r->first_ms - n->first_ms) > away_ms ||
           (double)(n->last_ms - r->last_ms) > away_ms;
}

/* What the row says that counts. */
static bool best_of(const struct ft_numbers *n, struct ft_holds *holds,
                    struct ft_numbers_beside beside, struct estimate *best)
{
    uint32_t samples = 0;

    for (unsigned i = 0; i < FT_NUMBERS_ROWS; i++) {
        struct estimate t;

        if (beside.away & 1u << i || !estimate_of(&n->rows[i], &t) || is_part(n, &n->rows[i]))
            continue;
        widen_by_lag(&n->rows[i], holds, beside, &t);
        if (samples && !is_better(&t, best, n->rows[i].samples > samples))
            continue;
        *best = t;
        samples = n->rows[i].samples;
    }
    if (samples == 0)
        return false;
    best->below += Z * sqrt(best->variance) - SKEWED * best->third / best->variance;
    best->above += Z * sqrt(best->variance) + SKEWED * best->third / best->variance;
    return true;
}

bool ft_numbers_are_own(const struct ft_numbers *n, const struct ft_numbers *reverse)
{
    if (n->responses)
        return !n->requests && !(reverse && reverse->requests);
    return !n->reads && !(reverse && reverse->responses);
}

bool ft_numbers_go_on(const struct ft_numbers *n, const struct ft_numbers *next)
{
    for (unsigned i = 0; i < FT_NUMBERS_ROWS; i++) {
        const struct ft_numbers_row *r = &n->rows[i];

        for (unsigned k = 0; k < FT_NUMBERS_ROWS && r->samples > 1; k++) {
            const struct ft_numbers_row *s = &next->rows[k];

            if (s->samples && s->source == r->source)
                return (double)(s->first_ms - r->last_ms) < EDGE_GAPS / mean_per_ms(r) + EDGE_MS;
        }
    }
    return false;
}

bool ft_numbers_sent(const struct ft_numbers *n, struct ft_holds *holds,
                     struct ft_numbers_beside beside, double counted_bytes, uint64_t counted,
                     struct ft_numbers_sent *out)
{
    struct ft_numbers_sent sent;
    struct estimate all;
    double mean, length, lo, hi, each, most;

    if (n->broken || n->packets == 0 || !best_of(n, holds, beside, &all))
        return false;
    mean = (double)n->bytes / (double)n->packets;
    length = length_error(n, mean);
    sent.packets = all.packets;
    sent.packets_lo = fmax(0, all.packets - all.below);
    sent.packets_hi = all.packets + all.above;
    lo = all.below / all.packets;
    hi = all.above / all.packets;
    sent.bytes = sent.packets * mean;
    sent.bytes_lo = sent.bytes * fmax(0, 1 - hypot(lo, Z * length));
    sent.bytes_hi = sent.bytes * (1 + hypot(hi, Z * length));
    sent.error = hypot((lo + hi) / (2 * Z), length);
    /* What is counted varies by the root of how many samples there would be. */
    most = fmax(sent.bytes, counted_bytes);
    each = counted ? counted_bytes / (double)counted : 0;
    if (counted && fabs(sent.bytes - counted_bytes) >
                       CONTRADICTED * hypot(sqrt(most * each), sent.error * most))
        return false;
    *out = sent;
    return true;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/numbers.h"

#include <math.h>

#define PSN_MASK 0xffffffu
#define PSNS     (PSN_MASK + 1)
/* As folds have it: what is lower by less was sent again, or overtaken. */
#define BACK_MAX (PSNS / 4)
/* The numbers begin anew every 2^24. With gaps of this many between samples, one in exp(12) would
 * leave out so much that it looks like one that went back; with three samples in 2^24 it would be
 * one in four. The mean of a second's few gaps may be twice as long. */
#define GAP_MAX (PSNS / 16)
/* Between seconds there is one gap alone. Where it is long for the rate so far, samples may be
 * missing, and the numbers may have begun anew. */
#define PAUSE_MAX     (PSNS / 4)
#define PAUSE_MS      200
#define RATE_KNOWN_MS 500
/* Length of an acknowledgement's frame. */
#define ACK_BYTES 70.0
/* Counting contradicts from so many of its standard errors on. */
#define CONTRADICTED 5.0
#define Z            1.959963984540054

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

static bool is_row(const struct ft_numbers *n, const struct ft_numbered *more)
{
    if (more->low > PSN_MASK || (n->samples && n->qp != more->qp))
        return false;
    if (more->packets / (more->samples + (uint64_t)more->acks) > GAP_MAX)
        return false;
    return more->samples == 1 ? more->span == 0 : more->span / (more->samples - 1) <= 2 * GAP_MAX;
}

static bool may_have_turned(const struct ft_numbers *n, const struct ft_numbered *more)
{
    uint32_t pause_ms = (uint32_t)more->first_ms - n->last_ms;
    uint32_t known_ms = n->last_ms - n->first_ms;

    return pause_ms > PAUSE_MS && known_ms > RATE_KNOWN_MS &&
           (double)n->span / known_ms * pause_ms > 2.0 * PAUSE_MAX;
}

/* Where they begin, after low; below 0 where that is before it. What begins after all others lies
 * ahead of them. Of what began in their time, at another port or switch, the numbers are near those
 * that began with it. */
static int64_t position_of(const struct ft_numbers *n, const struct ft_numbered *more, bool *ahead)
{
    uint32_t from;

    *ahead = later((uint32_t)more->first_ms, n->last_ms);
    if (*ahead) {
        from = (more->low - (n->low + n->span)) & PSN_MASK;
        return (int64_t)n->span + (from > PSN_MASK - BACK_MAX ? (int64_t)from - PSNS : from);
    }
    from = (more->low - (n->low + n->at)) & PSN_MASK;
    return (int64_t)n->at + (from > PSNS / 2 ? (int64_t)from - PSNS : from);
}

static void put_in_row(struct ft_numbers *n, const struct ft_numbered *more)
{
    bool ahead;
    int64_t at = position_of(n, more, &ahead), end = at + more->span;

    int64_t before = at < 0 ? -at : 0;

    if (ahead && (at - (int64_t)n->span > PAUSE_MAX || may_have_turned(n, more))) {
        n->broken = true;
        return;
    }
    end = (end > n->span ? end : n->span) + before;
    if (end >= UINT32_MAX) {
        n->broken = true;
        return;
    }
    n->low = (n->low - (uint32_t)before) & PSN_MASK;
    n->at = (uint32_t)((ahead ? at : (int64_t)n->at) + before);
    n->span = (uint32_t)end;
}

void ft_numbers_add(struct ft_numbers *n, const struct ft_numbered *more)
{
    n->naks = more->naks > (uint32_t)(UINT16_MAX - n->naks) ? UINT16_MAX
                                                            : (uint16_t)(n->naks + more->naks);
    n->rnrs = more->rnrs > (uint32_t)(UINT16_MAX - n->rnrs) ? UINT16_MAX
                                                            : (uint16_t)(n->rnrs + more->rnrs);
    n->acks += more->acks;
    n->bytes += more->bytes;
    if (more->odd || (more->samples && !is_row(n, more)))
        n->broken = true;
    if (more->samples == 0 || n->broken)
        return;
    if (n->samples == 0) {
        n->qp = more->qp & PSN_MASK;
        n->low = more->low;
        n->span = more->span;
        n->first_ms = (uint32_t)more->first_ms;
        n->last_ms = (uint32_t)more->last_ms;
    } else {
        put_in_row(n, more);
    }
    widen(n, more);
    if (later((uint32_t)more->last_ms, n->last_ms))
        n->last_ms = (uint32_t)more->last_ms;
    n->samples += more->samples;
    n->back += more->back;
    n->starts += more->starts;
    n->packets += more->packets * more->samples / (more->samples + more->acks);
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

bool ft_numbers_sent(const struct ft_numbers *n, double counted_bytes, uint64_t counted,
                     struct ft_numbers_sent *out)
{
    struct ft_numbers_sent sent;
    double c = n->samples, span = n->span, mean, length, lo, hi;

    if (n->broken || n->samples < FT_NUMBERS_MIN || n->packets == 0 || n->span < n->samples)
        return false;
    mean = (double)n->bytes / (double)n->packets;
    length = length_error(n, mean);
    sent.packets = span * (c + 1) / (c - 1);
    sent.packets_lo = span / ft_span_quantile(n->samples, 0.975);
    sent.packets_hi = span / ft_span_quantile(n->samples, 0.025);
    lo = 1 - sent.packets_lo / sent.packets;
    hi = sent.packets_hi / sent.packets - 1;
    sent.bytes = sent.packets * mean;
    sent.bytes_lo = sent.bytes * fmax(0, 1 - hypot(lo, Z * length));
    sent.bytes_hi = sent.bytes * (1 + hypot(hi, Z * length));
    sent.error = hypot(sqrt(2) / c, length);
    if (counted && fabs(sent.bytes - counted_bytes) >
                       CONTRADICTED * (hypot(1 / sqrt((double)counted), sent.error)) *
                           fmax(sent.bytes, counted_bytes))
        return false;
    *out = sent;
    return true;
}

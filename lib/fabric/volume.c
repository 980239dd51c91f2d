// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/volume.h"

#include <math.h>
#include <string.h>

#include "lib/fabric/evidence_impl.h"

/* Standard deviations, one-sided: 1 in 1000, and 1 in 20. */
#define DIFFER_Z  3.09
#define UNSURE_Z  1.645
#define TOLERANCE 0.02
/* Where N is known to 6 % alone. */
#define TOLERANCE_ROUGH 0.05

/* Doubt is kept in 16ths of a natural logarithm. */
#define DOUBT_UNIT 16
#define DOUBT_OUT  (3 * DOUBT_UNIT)
#define DOUBT_MAX  (6 * DOUBT_UNIT)
#define UNSURE     (1 * DOUBT_UNIT)
#define PART       0.7

#define NO_STAGE 0xff

/* Groups are summed at their first. */
static bool is_first(const struct ft_sighting *list, uint16_t i, unsigned in)
{
    for (uint16_t k = 0; k < i; k++)
        if (ft_sightings_alike(&list[k], &list[i], in))
            return false;
    return true;
}

/* The most that one source has of the group that begins at i. */
static struct ft_volume best_source(const struct ft_sighting *list, uint16_t count, uint16_t i,
                                    unsigned in, unsigned slot)
{
    struct ft_volume best = {0};

    for (uint16_t k = i; k < count; k++) {
        struct ft_volume own = {.source = list[k].source};

        if (!ft_sightings_alike(&list[k], &list[i], in) || !is_first(list, k, in | FT_ALIKE_SOURCE))
            continue;
        for (uint16_t m = k; m < count; m++)
            if (ft_sightings_alike(&list[m], &list[k], in | FT_ALIKE_SOURCE)) {
                own.samples += ft_sighting_samples(&list[m], slot);
                own.bytes += ft_sighting_bytes(&list[m], slot);
            }
        if (own.samples > best.samples)
            best = own;
    }
    return best;
}

/* Over the ports in or out of the switch of sighting i, of each the best source. What names an
 * aggregate is left out: another source may name the member. */
static struct ft_volume sum_over_ports(const struct ft_sighting *list, uint16_t count, uint16_t i,
                                       enum ft_sighting_part port, unsigned slot)
{
    struct ft_volume sum = {0};
    uint64_t most = 0;

    for (uint16_t k = i; k < count; k++) {
        struct ft_volume own;

        if (ft_sighting_switch(&list[k]) != ft_sighting_switch(&list[i]) ||
            !is_first(list, k, port) ||
            !ft_is_port(port == FT_ALIKE_IN ? ft_sighting_in(&list[k]) : ft_sighting_out(&list[k])))
            continue;
        own = best_source(list, count, k, port, slot);
        if (own.samples > most)
            sum.source = own.source;
        most = own.samples > most ? own.samples : most;
        sum.samples += own.samples;
        sum.bytes += own.bytes;
    }
    return sum;
}

static bool has_sources(const struct ft_sighting *list, uint16_t count, uint16_t i)
{
    for (uint16_t k = i; k < count; k++)
        if (ft_sighting_switch(&list[k]) == ft_sighting_switch(&list[i]) &&
            list[k].source != list[i].source)
            return true;
    return false;
}

/* At the switch of sighting i, the first of it. */
static struct ft_volume at_switch(const struct ft_sighting *list, uint16_t count, uint16_t i,
                                  unsigned slot)
{
    struct ft_volume v[3] = {best_source(list, count, i, 0, slot)};
    int most = 0;

    if (has_sources(list, count, i)) {
        v[1] = sum_over_ports(list, count, i, FT_ALIKE_IN, slot);
        v[2] = sum_over_ports(list, count, i, FT_ALIKE_OUT, slot);
    }
    for (int k = 1; k < 3; k++)
        if (v[k].samples > v[most].samples)
            most = k;
    return v[most];
}

struct ft_volume ft_volume_best(const struct ft_evidence *ev, unsigned slot)
{
    const struct ft_sighting *list = ft_evidence_list(ev);
    struct ft_volume most = {0};

    for (uint16_t i = 0; i < ev->count; i++) {
        struct ft_volume v;

        if (!is_first(list, i, 0))
            continue;
        v = at_switch(list, ev->count, i, slot);
        if (v.samples > most.samples)
            most = v;
    }
    return most;
}

/* What the switches of a stage have, together. */
struct stage {
    double samples, bytes;
    double period;  /* packets that a sample stands for; 0: none of them counts */
    double weight;  /* 1 / period */
    double packets; /* that the samples stand for */
    double periods; /* sum over the switches, */
    unsigned known; /* of so many */
    unsigned seen;  /* so many have samples */
    uint8_t code;   /* of the period, where all have the same; 0: they do not */
    uint8_t doubt;
    bool outage;     /* of one of them */
    uint64_t most;   /* samples of one of them, */
    uint32_t source; /* and who took these */
};

struct stages {
    struct stage of[FT_PATH_HOPS_MAX];
    uint8_t at[FT_SIGHTINGS_MAX]; /* of a sighting; NO_STAGE */
    struct ft_volume other;       /* the best switch at no stage */
    double other_period;
};

/* What is asked for. */
struct asked {
    const struct ft_topology *t;
    uint32_t src_nic, dst_nic;
    unsigned slot;
    const bool *outages;
};

static uint8_t stage_of(const struct asked *a, const struct ft_sighting *s)
{
    uint32_t stage;

    if (ft_sighting_switch(s) & FT_SWITCH_UNKNOWN)
        return NO_STAGE;
    stage = ft_paths_stage(a->t, a->src_nic, a->dst_nic, ft_sighting_switch(s),
                           (struct ft_hop){ft_sighting_in(s), ft_sighting_out(s)});
    return stage < FT_PATH_HOPS_MAX ? (uint8_t)stage : NO_STAGE;
}

static void add_switch(struct stage *to, const struct ft_volume *v, uint8_t code, double period,
                       uint8_t doubt)
{
    to->samples += (double)v->samples;
    to->bytes += (double)v->bytes;
    to->packets += (double)v->samples * period;
    to->periods += period;
    to->code = to->known == 0 || to->code == code ? code : 0;
    to->known++;
    to->seen += v->samples > 0;
    to->doubt = doubt > to->doubt ? doubt : to->doubt;
    if (v->samples > to->most) {
        to->most = v->samples;
        to->source = v->source;
    }
}

/* Whether a sighting says nothing of the window: it is of the next one. */
static bool is_later(const struct ft_sighting *s, unsigned slot)
{
    return !ft_sighting_in_time(s) && ft_sighting_samples(s, slot) == 0;
}

/* False: a switch has samples, and nobody says what they stand for. */
static bool gather(const struct ft_evidence *ev, const struct asked *a, struct stages *out)
{
    const struct ft_sighting *list = ft_evidence_list(ev);

    memset(out, 0, sizeof(*out));
    for (uint16_t i = 0; i < ev->count; i++) {
        const struct ft_sighting *at = &list[i];
        struct ft_volume v;
        uint8_t stage, code = 0, doubt = 0;
        bool present = false;
        double period;

        if (!is_first(list, i, 0))
            continue;
        for (uint16_t k = i; k < ev->count; k++)
            if (ft_sightings_alike(&list[k], &list[i], 0) && !is_later(&list[k], a->slot)) {
                code = list[k].period ? list[k].period & 255u : code;
                if (list[k].past != FT_PRESENT)
                    continue;
                at = &list[k];
                present = true;
                doubt = ft_sighting_doubt(at) > doubt ? ft_sighting_doubt(at) : doubt;
            }
        stage = stage_of(a, at);
        for (uint16_t k = i; k < ev->count; k++)
            if (ft_sightings_alike(&list[k], &list[i], 0))
                out->at[k] =
                    list[k].past == FT_PRESENT && !is_later(&list[k], a->slot) ? stage : NO_STAGE;
        v = at_switch(list, ev->count, i, a->slot);
        if (v.samples == 0 && (!present || code == 0))
            continue;
        period = ft_sighting_period(&(struct ft_sighting){.period = code});
        if (stage != NO_STAGE) {
            if (code == 0)
                return false;
            add_switch(&out->of[stage], &v, code, period, doubt);
            out->of[stage].outage |= a->outages && a->outages[ft_sighting_switch(at)];
        } else if (v.samples > out->other.samples) {
            out->other = v;
            out->other_period = period;
        }
    }
    return true;
}

/* Of some stages, a bit for each. */
static struct stage sum_of(const struct stages *s, unsigned in)
{
    struct stage sum = {0};

    for (unsigned k = 0; k < FT_PATH_HOPS_MAX; k++)
        if (in & 1u << k) {
            sum.samples += s->of[k].samples;
            sum.weight += s->of[k].weight;
        }
    return sum;
}

/* The quantile of chi-square (Wilson and Hilferty 1931). */
static double critical(unsigned freedom, double z)
{
    double a = 2.0 / (9 * freedom), root = 1 - a + z * sqrt(a);

    return freedom * root * root * root;
}

static double difference(double samples, double expected, double tolerance)
{
    double off = samples - expected;

    return off * off / (expected + tolerance * tolerance * expected * expected);
}

static bool agree(const struct stages *s, unsigned in, double z)
{
    struct stage sum = sum_of(s, in);
    unsigned count = (unsigned)__builtin_popcount(in);
    const struct stage *first = &s->of[__builtin_ctz(in)];
    double tolerance = TOLERANCE, sum_of_squares = 0;

    if (count == 1 || sum.samples <= 0)
        return true;
    for (unsigned k = 0; k < FT_PATH_HOPS_MAX; k++)
        if (in & 1u << k && (s->of[k].code == 0 || s->of[k].code != first->code))
            tolerance = TOLERANCE_ROUGH;
    for (unsigned k = 0; k < FT_PATH_HOPS_MAX; k++)
        if (in & 1u << k)
            sum_of_squares +=
                difference(s->of[k].samples, sum.samples * s->of[k].weight / sum.weight, tolerance);
    return sum_of_squares <= critical(count - 1, z);
}

/* The stage with the least packets, or with the most. */
static unsigned extreme(const struct stages *s, unsigned in, bool least)
{
    unsigned at = (unsigned)__builtin_ctz(in);

    for (unsigned k = at + 1; k < FT_PATH_HOPS_MAX; k++)
        if (in & 1u << k &&
            (least ? s->of[k].packets < s->of[at].packets : s->of[k].packets > s->of[at].packets))
            at = k;
    return at;
}

static unsigned choose(const struct stages *s, unsigned in)
{
    while (!agree(s, in, DIFFER_Z)) {
        unsigned most = extreme(s, in, false);

        if (s->of[most].seen > 1 && __builtin_popcount(in) > 2 &&
            agree(s, in & ~(1u << most), UNSURE_Z))
            in &= ~(1u << most);
        else
            in &= ~(1u << extreme(s, in, true));
    }
    return in;
}

/* By how much more likely a stage sees a part of what others see than all of it. */
static double part_of(const struct stage *stage, const struct stage *others)
{
    double all = stage->weight / (stage->weight + others->weight);
    double part = PART * stage->weight / (PART * stage->weight + others->weight);

    return stage->samples * log(part / all) + others->samples * log((1 - part) / (1 - all));
}

/* Notes in the sightings what the window says of the stages that they are at; chosen: those that
 * count. */
static void note_doubts(struct ft_evidence *ev, const struct stages *s, unsigned chosen)
{
    struct ft_sighting *list = ft_evidence_list(ev);
    uint8_t doubt[FT_PATH_HOPS_MAX] = {0};

    for (unsigned k = 0; k < FT_PATH_HOPS_MAX; k++) {
        struct stage others = sum_of(s, chosen & ~(1u << k));
        double sum = s->of[k].doubt;

        if (s->of[k].period > 0 && others.weight > 0 && !s->of[k].outage)
            sum += round(part_of(&s->of[k], &others) * DOUBT_UNIT);
        doubt[k] = (uint8_t)fmin(fmax(sum, 0), DOUBT_MAX);
    }
    for (unsigned i = 0; i < ev->count; i++)
        if (s->at[i] != NO_STAGE)
            ft_sighting_set_doubt(&list[i], doubt[s->at[i]]);
}

/* As many samples as have the error of the figure, where one of the stages that count may see a
 * part alone. */
static double effective(const struct stages *s, unsigned in)
{
    struct stage sum = sum_of(s, in), others;
    const struct stage *least = &s->of[extreme(s, in, true)];
    double off;

    others = sum_of(s, in & ~(1u << extreme(s, in, true)));
    if (others.weight <= 0 ||
        (least->doubt + part_of(least, &others) * DOUBT_UNIT <= UNSURE && agree(s, in, UNSURE_Z)))
        return sum.samples;
    off = others.samples / others.weight / (sum.samples / sum.weight) - 1;
    return 1 / (1 / sum.samples + off * off);
}

static struct ft_volume mean_of(const struct stages *s, unsigned in)
{
    struct ft_volume mean = {.samples = 0};
    double bytes = 0, weight = 0, largest = 0;
    uint64_t most = 0;

    for (unsigned k = 0; k < FT_PATH_HOPS_MAX; k++)
        if (in & 1u << k)
            largest = fmax(largest, s->of[k].weight);
    for (unsigned k = 0; k < FT_PATH_HOPS_MAX; k++) {
        const struct stage *stage = &s->of[k];

        if (!(in & 1u << k))
            continue;
        /* Equal weights are 1, so that the sums are exact. */
        bytes += stage->bytes * (stage->weight / largest);
        weight += stage->weight / largest;
        if (stage->most > most) {
            most = stage->most;
            mean.source = stage->source;
        }
    }
    mean.bytes = (uint64_t)(bytes / weight + 0.5);
    mean.samples = (uint64_t)fmax(effective(s, in) + 0.5, 1);
    return mean;
}

/* Whether the best switch on no equal-cost path saw more than those on them. */
static bool is_exceeded(const struct stages *s, unsigned in)
{
    struct stage sum = sum_of(s, in);
    double samples, weight, expected;

    if (s->other.samples == 0 || s->other_period <= 0)
        return false;
    samples = sum.samples + (double)s->other.samples;
    weight = sum.weight + 1 / s->other_period;
    expected = samples / s->other_period / weight;
    return (double)s->other.samples > expected &&
           difference((double)s->other.samples, expected, TOLERANCE_ROUGH) +
                   difference(sum.samples, samples - expected, TOLERANCE_ROUGH) >
               critical(1, DIFFER_Z);
}

static struct ft_volume of_all(struct ft_evidence *ev, const struct asked *asked)
{
    struct stages s;
    unsigned all = 0, whole = 0, in = 0;

    if (ev->count < 2 || asked->src_nic == FT_NONE || asked->dst_nic == FT_NONE ||
        !gather(ev, asked, &s))
        return ft_volume_best(ev, asked->slot);
    for (unsigned k = 0; k < FT_PATH_HOPS_MAX; k++) {
        struct stage *stage = &s.of[k];

        if (stage->known == 0)
            continue;
        stage->period =
            stage->samples > 0 ? stage->packets / stage->samples : stage->periods / stage->known;
        stage->weight = 1 / stage->period;
        all |= 1u << k;
        whole |= stage->outage ? 0 : 1u << k;
        in |= stage->doubt < DOUBT_OUT && !stage->outage ? 1u << k : 0;
    }
    if (in == 0 || sum_of(&s, in).samples <= 0)
        in = whole;
    if (in == 0 || sum_of(&s, in).samples <= 0)
        in = all;
    if (in == 0 || sum_of(&s, in).samples <= 0)
        return s.other;
    in = choose(&s, in);
    note_doubts(ev, &s, in);
    return is_exceeded(&s, in) ? s.other : mean_of(&s, in);
}

struct ft_volume ft_volume_close(struct ft_evidence *ev, const struct ft_topology *t,
                                 uint32_t src_nic, uint32_t dst_nic, unsigned slot,
                                 const bool *outages)
{
    const struct ft_volume volume = of_all(ev, &(struct asked){t, src_nic, dst_nic, slot, outages});

    for (unsigned i = 0; i < ev->count; i++)
        ft_sighting_set_in_time(&ft_evidence_list(ev)[i]);
    return volume;
}

double ft_volume_end(uint64_t samples, double z)
{
    double shape = (double)samples + 0.5, root = 1 - 1 / (9 * shape) + z / (3 * sqrt(shape));

    return shape * root * root * root / (double)samples;
}

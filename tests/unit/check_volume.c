// SPDX-License-Identifier: Apache-2.0
/*
 * The volume of a flow by the samples of the switches on its path, against the truth: packets are
 * drawn, and each switch samples one in N of those that it sees. Seeds are fixed, and bounds are at
 * least five standard errors wide.
 */
#include "config.h"

#include <math.h>

#include "lib/fabric/chance.h"
#include "lib/fabric/evidence_impl.h"
#include "lib/fabric/volume.h"
#include "tests/unit/judge_rig.h"

#define WINDOW_MS   10000
#define EVIDENCE_MS 30000
#define FRAME_BYTES 1000
#define SEEN_MAX    8
#define TRIALS      (FT_SANITIZED ? 100 : 4000)

/* Switches of the stages of the path, and of others of the same tiers. */
enum { LEAF = 0, A = 2, A_ELSE = 3, SUPER = 6, B = 4, B_ELSE = 5, OTHER_LEAF = 1 };

struct seen {
    uint32_t at;     /* switch */
    uint32_t period; /* N, of the packets */
    double part;     /* of the flow's packets that it sees */
    double later;    /* likewise from window `changes` on, if that is not 0 */
};

struct flow {
    struct seen by[SEEN_MAX];
    double samples;       /* in a window, of a switch with N = 1000 that sees all */
    bool mixed;           /* frames of 100 and of 1900 bytes */
    unsigned first, last; /* windows that count */
    unsigned changes;
    const bool *outages; /* by switch */
};

struct outcome {
    double mean, off,
        covered; /* of the truth: estimates, root of the mean square error, intervals */
};

static struct ft_random dice;

static double uniform(void)
{
    return (double)(ft_random_next(&dice) >> 11) / 9007199254740992.0;
}

static uint32_t poisson(double mean)
{
    double left = 1, least = exp(-mean);
    uint32_t n = 0;

    if (mean > 30)
        return poisson(mean / 2) + poisson(mean - mean / 2);
    while ((left *= uniform()) > least)
        n++;
    return n;
}

static void see_samples(const struct flow *f, const struct seen *by, double part, unsigned window)
{
    uint32_t samples = poisson(f->samples * part * 1000 / by->period);
    int64_t ms = (int64_t)(window + 1) * WINDOW_MS - 1, before_ms;
    struct ft_sighting *s;
    uint64_t bytes = 0;

    if (samples == 0)
        return;
    for (uint32_t i = 0; i < samples; i++)
        bytes += by->period * (f->mixed ? uniform() < 0.5 ? 100 : 1900 : FRAME_BYTES);
    s = ft_evidence_see(&ev,
                        &(struct ft_seen){by->at, FT_NONE, FT_NONE, by->at, ms - 9000, ms, false},
                        INT64_MIN, &before_ms);
    ck_assert_ptr_nonnull(s);
    ft_sighting_note_period(s, (uint64_t)by->period * samples, samples);
    ft_sighting_add_samples(s, window & 1, samples);
    ft_sighting_add_bytes(s, window & 1, bytes);
}

static struct ft_volume next_window(const struct flow *f, unsigned window)
{
    struct ft_volume volume;

    for (uint16_t i = 0; i < ev.count; i++) {
        ft_sighting_set_samples(&ft_evidence_list(&ev)[i], window & 1, 0);
        ft_sighting_set_bytes(&ft_evidence_list(&ev)[i], window & 1, 0);
    }
    for (int i = 0; i < SEEN_MAX && f->by[i].period; i++)
        see_samples(f, &f->by[i],
                    f->changes && window >= f->changes ? f->by[i].later : f->by[i].part, window);
    volume = ft_volume_close(&ev, t, 0, 1, window & 1, f->outages);
    ft_evidence_forget(&ev, (int64_t)(window + 1) * WINDOW_MS - EVIDENCE_MS);
    return volume;
}

/* Means over so many flows. */
static struct outcome measure(const struct flow *f, unsigned flows)
{
    double truth = f->samples * 1000 * FRAME_BYTES, seen = 0, all = 0;
    struct outcome sum = {0};

    dice.state = 1;
    for (unsigned n = 0; n < flows; n++) {
        ft_evidence_free(&ev);
        for (unsigned window = 0; window <= f->last; window++) {
            struct ft_volume v = next_window(f, window);
            double off = (double)v.bytes / truth - 1;

            if (window < f->first)
                continue;
            all++;
            sum.mean += off + 1;
            sum.off += off * off;
            if (v.samples == 0)
                continue;
            seen++;
            sum.covered += (off + 1) * ft_volume_end(v.samples, -1.96) <= 1 &&
                           (off + 1) * ft_volume_end(v.samples, 1.96) >= 1;
        }
    }
    return (struct outcome){sum.mean / all, sqrt(sum.off / all), sum.covered / seen};
}

static void assert_near(const struct flow *f, const char *what, double mean, double off, double lo,
                        double hi)
{
    struct outcome o = measure(f, TRIALS);

    if (FT_SANITIZED)
        return;
    ck_assert_msg(fabs(o.mean - 1) < mean, "%s, %g samples: mean %f", what, f->samples, o.mean);
    ck_assert_msg(o.off < off, "%s, %g samples: error %f", what, f->samples, o.off);
    ck_assert_msg(o.covered > lo && o.covered < hi, "%s, %g samples: %f covered", what, f->samples,
                  o.covered);
}

/* 1 to 5 switches, from the fourth window on: by then each has had a sample. */
START_TEST(the_mean_over_switches_is_the_truth)
{
    static const struct seen path[] = {{LEAF, 1000, 1, 1},
                                       {OTHER_LEAF, 1000, 1, 1},
                                       {SUPER, 1000, 1, 1},
                                       {A, 1000, 1, 1},
                                       {B, 1000, 1, 1}};
    static const double samples[] = {4, 8, 20, 50, 100, 400};

    setup();
    for (int switches = 1; switches <= 5; switches++)
        for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
            struct flow f = {.samples = samples[i], .first = 3, .last = 6};
            double error = 1 / sqrt(samples[i] * switches);

            memcpy(f.by, path, (size_t)switches * sizeof(*path));
            assert_near(&f, "equal N", 0.01, 1.05 * error, 0.935, 0.985);
        }
    teardown();
}
END_TEST

START_TEST(unequal_n_has_the_error_of_all_samples)
{
    struct flow f = {.by = {{LEAF, 1000, 1, 1}, {A, 4000, 1, 1}, {B, 500, 1, 1}},
                     .samples = 8,
                     .first = 3,
                     .last = 6};

    setup();
    assert_near(&f, "unequal N", 0.01, 1.1 / sqrt(8 * 3.25), 0.935, 0.97);
    f.samples = 100;
    assert_near(&f, "unequal N", 0.01, 1.05 / sqrt(100 * 3.25), 0.935, 0.97);
    teardown();
}
END_TEST

START_TEST(frames_of_any_length_are_right_on_average)
{
    struct flow f = {.by = {{LEAF, 1000, 1, 1}, {A, 1000, 1, 1}, {OTHER_LEAF, 1000, 1, 1}},
                     .samples = 4,
                     .mixed = true,
                     .first = 3,
                     .last = 6};

    setup();
    /* Their lengths are not known: the error is larger than that of the count. */
    assert_near(&f, "mixed frames", 0.015, 1.05 * sqrt((1 + 0.81) / 12), 0.8, 0.97);
    teardown();
}
END_TEST

/* Sprayed over what each sees a share of: they add up. */
START_TEST(shares_of_a_tier_add_up)
{
    struct flow f = {.by = {{LEAF, 1000, 1, 1},
                            {A, 1000, 0.7, 1},
                            {A_ELSE, 1000, 0.3, 1},
                            {B, 1000, 0.5, 1},
                            {B_ELSE, 1000, 0.5, 1},
                            {OTHER_LEAF, 1000, 1, 1}},
                     .samples = 12,
                     .first = 3,
                     .last = 6};

    setup();
    assert_near(&f, "sprayed", 0.01, 1.05 / sqrt(12 * 4), 0.935, 0.97);
    /* Spines alone. */
    f = (struct flow){
        .by = {{A, 1000, 0.6, 1}, {A_ELSE, 1000, 0.4, 1}}, .samples = 12, .first = 3, .last = 6};
    assert_near(&f, "spines alone", 0.01, 1.05 / sqrt(12), 0.935, 0.98);
    teardown();
}
END_TEST

/* Its samples come all in one half of the window, it loses datagrams, its line cards do not all
 * sample. */
START_TEST(a_switch_that_sees_a_part_is_left_out)
{
    struct flow f = {.by = {{LEAF, 1000, 1, 1}, {A, 1000, 0.5, 1}, {OTHER_LEAF, 1000, 1, 1}},
                     .samples = 400,
                     .last = 3};

    setup();
    assert_near(&f, "much", 0.01, 1.05 / sqrt(800), 0.935, 0.97);
    /* Of fewer samples no window shows it, and all do. */
    f.samples = 20;
    f.first = 12;
    f.last = 15;
    assert_near(&f, "few", 0.01, 0.17, 0.935, 0.97);
    f.samples = 8;
    f.first = 25;
    f.last = 28;
    assert_near(&f, "very few", 0.02, 0.28, 0.93, 0.98);
    /* Two of three. */
    f.by[2].part = 0.5;
    f.samples = 20;
    assert_near(&f, "most", 0.02, 0.25, 0.93, 0.97);
    teardown();
}
END_TEST

/* Until it shows the figure is too low, and its interval is the wider for it. */
START_TEST(a_part_that_does_not_show_is_in_the_interval)
{
    struct flow f = {.by = {{LEAF, 1000, 1, 1}, {A, 1000, 0.5, 1}, {OTHER_LEAF, 1000, 1, 1}},
                     .samples = 50};
    struct outcome o;

    setup();
    o = measure(&f, TRIALS);
    ck_assert_double_gt(o.mean, 0.87);
    ck_assert_double_gt(o.covered, 0.9);
    teardown();
}
END_TEST

START_TEST(a_switch_that_falls_silent_is_left_out_and_counts_again)
{
    struct flow f = {.by = {{LEAF, 1000, 1, 1}, {A, 1000, 1, 0}, {OTHER_LEAF, 1000, 1, 1}},
                     .samples = 20,
                     .first = 6,
                     .last = 7,
                     .changes = 6};

    setup();
    assert_near(&f, "silent", 0.02, 0.18, 0.93, 0.97);
    f.by[1] = (struct seen){A, 1000, 0.5, 1};
    f.first = 12;
    f.last = 15;
    /* All three count again: 60 samples. */
    assert_near(&f, "again", 0.01, 1.05 / sqrt(20 * 2.9), 0.935, 0.97);
    teardown();
}
END_TEST

/* Of a window in which others of its flows show it: 50, 50 and 25 samples are within chance. */
START_TEST(a_switch_that_had_an_outage_does_not_count)
{
    const bool outages[] = {[A] = true, [7] = false};
    struct flow f = {.by = {{LEAF, 1000, 1, 1}, {A, 1000, 0.5, 1}, {OTHER_LEAF, 1000, 1, 1}},
                     .samples = 25,
                     .last = 0};

    setup();
    ck_assert_double_lt(measure(&f, TRIALS).mean, 0.93);
    f.outages = outages;
    assert_near(&f, "outage", 0.01, 1.05 / sqrt(25 * 2), 0.935, 0.97);
    /* Nothing of it is held against the switch: it counts in the next window. */
    f.by[1].part = 0.2;
    f.last = 3;
    measure(&f, 1);
    for (uint16_t i = 0; i < ev.count; i++)
        if (ft_sighting_switch(&ft_evidence_list(&ev)[i]) == A)
            ck_assert_uint_eq(ft_sighting_doubt(&ft_evidence_list(&ev)[i]), 0);
    /* Of the only switch it is better than nothing. */
    f = (struct flow){.by = {{A, 1000, 1, 1}}, .samples = 25, .last = 0, .outages = outages};
    assert_near(&f, "alone", 0.01, 1.05 / sqrt(25), 0.93, 0.97);
    teardown();
}
END_TEST

/* What is on no equal-cost path, and what nobody says the N of. */
START_TEST(what_cannot_be_averaged_is_of_the_best_switch)
{
    struct flow f = {.by = {{LEAF, 1000, 0.2, 1}, {FT_SWITCH_UNKNOWN | 7, 1000, 1, 1}},
                     .samples = 100,
                     .last = 3};

    setup();
    assert_near(&f, "elsewhere", 0.01, 0.11, 0.935, 0.97);
    f.by[0].part = 1;
    assert_near(&f, "on the path", 0.01, 0.11, 0.935, 0.97);
    ft_evidence_free(&ev);
    next_window(&f, 0);
    ck_assert_uint_eq(ft_volume_close(&ev, t, FT_NONE, 1, 0, NULL).bytes,
                      ft_volume_best(&ev, 0).bytes);
    for (uint16_t i = 0; i < ev.count; i++)
        ft_evidence_list(&ev)[i].period = 0;
    ck_assert_uint_eq(ft_volume_close(&ev, t, 0, 1, 0, NULL).bytes, ft_volume_best(&ev, 0).bytes);
    teardown();
}
END_TEST

/* Each has its own bits. */
START_TEST(counts_doubts_and_periods_do_not_touch)
{
    static const uint32_t periods[] = {1, 2, 3, 1000, 4096, 65536, 1000000, INT32_MAX};
    struct ft_sighting s = {.lasted_ms = FT_LASTED_MAX_MS};

    ft_sighting_add_samples(&s, 0, 5);
    ft_sighting_set_doubt(&s, 0x57);
    ft_sighting_set_in_time(&s);
    ft_sighting_add_samples(&s, 1, UINT32_MAX);
    ft_sighting_add_samples(&s, 1, 1);
    ck_assert_uint_eq(ft_sighting_samples(&s, 0), 5);
    ck_assert_uint_eq(ft_sighting_samples(&s, 1), FT_SIGHTING_SAMPLES_MAX);
    ck_assert_uint_eq(ft_sighting_doubt(&s), 0x57);
    ft_sighting_set_samples(&s, 1, 0);
    ck_assert_uint_eq(ft_sighting_doubt(&s), 0x57);
    ck_assert(ft_sighting_in_time(&s));
    ft_sighting_set_doubt(&s, FT_SIGHTING_DOUBT_MAX);
    ck_assert(ft_sighting_in_time(&s));
    ck_assert_uint_eq(ft_sighting_doubt(&s), FT_SIGHTING_DOUBT_MAX);
    s.counts[1] = 0;
    ft_sighting_set_doubt(&s, FT_SIGHTING_DOUBT_MAX);
    ck_assert(!ft_sighting_in_time(&s));
    ck_assert_double_eq(ft_sighting_period(&s), 0);
    for (size_t i = 0; i < sizeof(periods) / sizeof(*periods); i++) {
        ft_sighting_note_period(&s, UINT64_C(3) * periods[i], 3);
        ck_assert_double_eq_tol(ft_sighting_period(&s) / periods[i], 1, 0.0626);
    }
    ft_sighting_note_period(&s, UINT64_MAX, 1);
    ck_assert_double_gt(ft_sighting_period(&s), 2e9);
    ck_assert_uint_eq(s.lasted_ms, FT_LASTED_MAX_MS);
}
END_TEST

FT_UNIT_MAIN("volume", the_mean_over_switches_is_the_truth, unequal_n_has_the_error_of_all_samples,
             frames_of_any_length_are_right_on_average, shares_of_a_tier_add_up,
             a_switch_that_sees_a_part_is_left_out, a_part_that_does_not_show_is_in_the_interval,
             a_switch_that_falls_silent_is_left_out_and_counts_again,
             a_switch_that_had_an_outage_does_not_count,
             what_cannot_be_averaged_is_of_the_best_switch, counts_doubts_and_periods_do_not_touch)

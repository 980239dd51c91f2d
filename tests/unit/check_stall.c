// SPDX-License-Identifier: Apache-2.0
/* Jobs that stand still or have become slow, by when their flows are sampled alone. */
#include "config.h"

#include "daemon/diagnosis/rhythms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/stall.h"
#include "tests/unit/unit.h"

/* On paper: 16 flows are sampled at random while the job sends, folded by flow and second as
 * pollers do, and taken in windows of ten seconds; agents report its queue pairs every 15 s. */
#define FLOWS     16
#define RATE      60 /* samples a second */
#define WINDOW_MS 10000
#define ALIVE_MS  15000
#define START_MS  INT64_C(1700000000000)
#define HOUR_S    3600

static uint64_t dice_state;
static struct ft_rhythms *rhythms;
static struct ft_observation folds[FLOWS];
static int64_t window_ms; /* start of the open one */
static double now_s;
static bool alive, polled, plugin;
static unsigned raised, cleared;
static Fabrictrace__Diagnosis last;
static char message[FT_STALL_TEXT];
static unsigned in_a_row; /* windows that were slow, as is said */

static double chance(void)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(dice_state >> 11) / 9007199254740992.0;
}

static double wait_of(double mean)
{
    return -mean * log(1 - chance());
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    if (record->kind_case != FABRICTRACE__RECORD__KIND_DIAGNOSIS)
        return;
    last = *record->diagnosis;
    snprintf(message, sizeof(message), "%s", last.message);
    in_a_row = 0;
    if (last.syndrome == FABRICTRACE__SYNDROME__SYNDROME_SLOWDOWN)
        ck_assert_int_eq(sscanf(last.evidence_for[2], "in %u windows in a row", &in_a_row), 1);
    raised += !last.cleared;
    cleared += last.cleared;
    ck_assert(!last.has_rank && !last.host && !last.has_peer);
    ck_assert_int_eq(last.source, FABRICTRACE__DIAGNOSIS_SOURCE__DIAGNOSIS_SOURCE_FLOWS);
}

static const struct ft_emitter emitter = {on_record, NULL};

static void begin(uint64_t seed)
{
    dice_state = seed * 2654435761u + 1;
    for (int i = 0; i < 4; i++)
        chance();
    rhythms = ft_rhythms_new(seed);
    ck_assert_ptr_nonnull(rhythms);
    memset(folds, 0, sizeof(folds));
    window_ms = START_MS;
    now_s = 0;
    alive = polled = true;
    plugin = false;
    raised = cleared = 0;
}

static void hand_on(struct ft_observation *fold)
{
    if (fold->samples && polled) {
        ft_rhythms_take(rhythms, "88", fold);
        ft_rhythms_sampled(rhythms, fold->last_ms);
    }
    fold->samples = 0;
}

static void close_until(int64_t ms)
{
    while (window_ms + WINDOW_MS <= ms) {
        struct ft_span span = {window_ms, window_ms + WINDOW_MS};

        for (size_t i = 0; i < FLOWS; i++)
            hand_on(&folds[i]);
        if (alive && window_ms / ALIVE_MS != (window_ms + WINDOW_MS) / ALIVE_MS)
            ft_rhythms_alive(rhythms, "88", window_ms);
        if (polled)
            ft_rhythms_sampled(rhythms, window_ms);
        if (plugin)
            ft_rhythms_plugin(rhythms, "88", window_ms);
        ft_rhythms_begin(rhythms);
        while (ft_rhythms_step(rhythms, "small", &span, &emitter, NULL, 0))
            ;
        window_ms += WINDOW_MS;
    }
}

static void sample(double at_s)
{
    struct ft_observation *fold = &folds[(size_t)(chance() * FLOWS)];
    int64_t ms = START_MS + (int64_t)(at_s * 1000);

    close_until(ms);
    if (fold->samples && fold->first_ms / 1000 != ms / 1000)
        hand_on(fold);
    if (!fold->samples)
        *fold = (struct ft_observation){.first_ms = ms};
    fold->last_ms = ms;
    fold->samples++;
    fold->bytes += 4096;
}

static void pass(double seconds)
{
    now_s += seconds;
    close_until(START_MS + (int64_t)(now_s * 1000));
}

/* What a job is like; of 0 it has none. */
struct habit {
    double period_s, jitter;
    double checkpoint_every_s, checkpoint_s;
    unsigned evaluate_every; /* steps; then a quarter as many without a backward pass */
};

/* One step, that takes and sends so many times as long as usual. */
static void one_step(const struct habit *h, double longer, double part)
{
    double send_s = part * h->period_s * 0.35 * (1 + h->jitter * (2 * chance() - 1));

    now_s += longer * part * h->period_s * 0.65 * (1 + h->jitter * (2 * chance() - 1));
    /* As many bytes, over a longer time. */
    for (double t = wait_of(longer / RATE); t < longer * send_s; t += wait_of(longer / RATE))
        sample(now_s + t);
    pass(longer * send_s);
}

static void train(const struct habit *h, double until_s, double longer)
{
    double next_s = now_s + h->checkpoint_every_s;
    unsigned steps = 0;

    while (now_s < until_s) {
        bool evaluates = h->evaluate_every && steps % h->evaluate_every > h->evaluate_every * 3 / 4;

        one_step(h, longer, evaluates ? 0.4 : 1);
        steps++;
        if (h->checkpoint_every_s > 0 && now_s > next_s) {
            pass(h->checkpoint_s * (0.7 + 0.6 * chance()));
            next_s = now_s + h->checkpoint_every_s;
        }
    }
}

static void end(void)
{
    ft_rhythms_free(rhythms);
}

/* FT_STALL_HOURS: so many of each. */
START_TEST(hours_without_a_fault_are_left_alone)
{
    static const struct habit habits[] = {
        {4, 0.05, 0, 0, 0},       {4, 0.05, 600, 30, 0},  {3, 0.3, 900, 40, 0},
        {6, 0.1, 0, 0, 20},       {2.5, 0.15, 300, 8, 0}, {12, 0.2, 1200, 60, 0},
        {20, 0.05, 1800, 90, 12},
    };
    const char *text = getenv("FT_STALL_HOURS");
    uint64_t hours = text ? strtoull(text, NULL, 10) : 1;

    for (uint64_t seed = 1; seed <= hours; seed++)
        for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
            begin(1000 * seed + i);
            train(&habits[i], HOUR_S, 1);
            ck_assert_msg(raised == 0, "habit %d, seed %d: %s", (int)i, (int)seed, message);
            end();
        }
}
END_TEST

START_TEST(a_standstill_is_said_until_it_goes_on)
{
    const struct habit habit = {4, 0.1, 300, 12, 0};

    for (uint64_t seed = 1; seed <= 10; seed++) {
        begin(seed);
        train(&habit, 900, 1);
        ck_assert_uint_eq(raised, 0);
        pass(110);
        ck_assert_uint_eq(raised, 0);
        pass(40);
        ck_assert_uint_eq(raised, 1);
        ck_assert_int_eq(last.syndrome, FABRICTRACE__SYNDROME__SYNDROME_STANDSTILL);
        ck_assert(fabs((double)((int64_t)last.since_ms - START_MS) / 1000 - 900) < 15);
        ck_assert_uint_eq(ft_rhythms_stalls(rhythms, last.syndrome), 1);
        /* For as long as it stands, though none of its samples is kept any more. */
        pass(1200);
        ck_assert_uint_eq(raised, 1);
        ck_assert_uint_eq(cleared, 0);
        train(&habit, now_s + 30, 1);
        ck_assert_uint_eq(cleared, 1);
        ck_assert_uint_eq(ft_rhythms_stalls(rhythms, FABRICTRACE__SYNDROME__SYNDROME_STANDSTILL),
                          0);
        end();
    }
}
END_TEST

/* Its queue pairs are gone with it; or nothing at all is sampled; or the plugin says more. */
START_TEST(an_end_or_blindness_is_no_standstill)
{
    const struct habit habit = {4, 0.1, 300, 12, 0};

    for (int i = 0; i < 3; i++) {
        begin(20 + (uint64_t)i);
        train(&habit, 900, 1);
        alive = i != 0;
        polled = i != 1;
        plugin = i == 2;
        pass(1500);
        ck_assert_uint_eq(raised, 0);
        end();
    }
}
END_TEST

/* It ends while it is said to stand: that is over. */
START_TEST(a_job_that_is_gone_stands_no_more)
{
    const struct habit habit = {4, 0.1, 300, 12, 0};

    begin(40);
    train(&habit, 900, 1);
    pass(300);
    ck_assert_uint_eq(raised, 1);
    alive = false;
    pass(130);
    ck_assert_uint_eq(cleared, 1);
    pass(700);
    ck_assert_uint_eq(raised, 1);
    end();
}
END_TEST

/* What is known of the job is of a time that does not come again soon. */
START_TEST(a_clock_that_was_set_back_ends_it)
{
    const struct habit habit = {4, 0.1, 300, 12, 0};

    begin(40);
    train(&habit, 900, 1);
    pass(300);
    ck_assert_uint_eq(raised, 1);
    now_s -= HOUR_S;
    window_ms -= HOUR_S * 1000;
    pass(20);
    ck_assert_uint_eq(cleared, 1);
    ck_assert_uint_eq(ft_rhythms_stalls(rhythms, FABRICTRACE__SYNDROME__SYNDROME_STANDSTILL), 0);
    end();
}
END_TEST

START_TEST(a_slower_job_is_said_until_it_is_faster)
{
    static const double longer[] = {1.5, 2, 3};
    const struct habit habit = {4, 0.1, 300, 12, 0};

    for (size_t i = 0; i < sizeof(longer) / sizeof(longer[0]); i++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            begin(100 * i + seed);
            train(&habit, 900, 1);
            train(&habit, 1140, longer[i]);
            ck_assert_msg(raised == 1, "%g times, seed %d: %u", longer[i], (int)seed, raised);
            ck_assert_int_eq(last.syndrome, FABRICTRACE__SYNDROME__SYNDROME_SLOWDOWN);
            ck_assert_msg(fabs(last.slowdown / longer[i] - 1) < 0.2, "%g: %g", longer[i],
                          last.slowdown);
            ck_assert_uint_eq(in_a_row, 3);
            train(&habit, 1500, 1);
            ck_assert_uint_eq(raised, 1);
            ck_assert_uint_eq(cleared, 1);
            ck_assert_uint_ge(in_a_row, 10);
            end();
        }
}
END_TEST

/* The first minutes of a job take longer: they are not what is usual. */
START_TEST(a_job_that_becomes_faster_is_slow_against_what_it_became)
{
    static const double first[] = {2.5, 1.25, 0.8};
    const struct habit habit = {4, 0.1, 300, 12, 0};

    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            begin(300 + 10 * i + seed);
            train(&habit, 240, first[i]);
            train(&habit, 1200, 1);
            ck_assert_uint_eq(raised, 0);
            train(&habit, 1440, 1.6);
            ck_assert_msg(raised == 1, "first %g, seed %d: %u", first[i], (int)seed, raised);
            ck_assert_msg(fabs(last.slowdown / 1.6 - 1) < 0.2, "first %g: %g", first[i],
                          last.slowdown);
            end();
        }
}
END_TEST

/* What begins under the name of one that is gone has habits of its own: with more work for each
 * step it is no slower job. */
START_TEST(a_job_that_begins_anew_is_another)
{
    const struct habit habit = {4, 0.1, 300, 12, 0};

    for (uint64_t seed = 1; seed <= 4; seed++) {
        begin(500 + seed);
        train(&habit, 900, 1);
        alive = false;
        pass(150);
        /* Queue pairs are reported before it sends. */
        alive = true;
        pass(30);
        train(&habit, now_s + 600, 1.75);
        ck_assert_msg(raised == 0, "seed %d: %s", (int)seed, message);
        /* Of itself it is known what is usual. */
        train(&habit, now_s + 240, 1.75 * 1.6);
        ck_assert_msg(raised == 1, "seed %d: %u", (int)seed, raised);
        ck_assert_msg(fabs(last.slowdown / 1.6 - 1) < 0.2, "seed %d: %g", (int)seed, last.slowdown);
        end();
    }
}
END_TEST

/* As an evaluation of some minutes. */
START_TEST(to_return_to_what_was_usual_is_no_slowdown)
{
    const struct habit habit = {4, 0.1, 300, 12, 0};

    for (uint64_t seed = 1; seed <= 4; seed++) {
        begin(400 + seed);
        for (int i = 0; i < 3; i++) {
            train(&habit, now_s + 900, 1);
            train(&habit, now_s + 600, 0.5);
        }
        ck_assert_msg(raised == 0, "seed %d: %s", (int)seed, message);
        end();
    }
}
END_TEST

FT_UNIT_MAIN("stall", a_job_that_begins_anew_is_another, hours_without_a_fault_are_left_alone,
             a_standstill_is_said_until_it_goes_on, an_end_or_blindness_is_no_standstill,
             a_job_that_is_gone_stands_no_more, a_clock_that_was_set_back_ends_it,
             a_slower_job_is_said_until_it_is_faster,
             a_job_that_becomes_faster_is_slow_against_what_it_became,
             to_return_to_what_was_usual_is_no_slowdown)

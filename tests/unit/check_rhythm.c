// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/rhythms.h"

#include <math.h>
#include <string.h>

#include "tests/unit/unit.h"

/* Jobs on paper: 16 flows are sampled at random while the job sends, folded by flow and second as
 * pollers do, and taken in windows of ten seconds. */

#define FLOWS     16
#define RATE      60 /* samples a second */
#define LOOKED_S  512
#define WINDOW_MS 10000
#define START_MS  INT64_C(1700000000000)

static uint64_t dice_state;
static struct ft_rhythms *rhythms;
static struct ft_observation folds[FLOWS];
static int64_t window_ms; /* start of the open one */
static Fabrictrace__Rhythm last;
static unsigned emitted, periods;

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
    last = *record->rhythm;
    emitted++;
    periods += last.has_period_ms;
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
    emitted = periods = 0;
}

static void hand_on(struct ft_observation *fold)
{
    if (fold->samples)
        ft_rhythms_take(rhythms, "88", fold);
    fold->samples = 0;
}

static void close_until(int64_t ms)
{
    while (window_ms + WINDOW_MS <= ms) {
        struct ft_span span = {window_ms, window_ms + WINDOW_MS};

        for (size_t i = 0; i < FLOWS; i++)
            hand_on(&folds[i]);
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

static void exchange(double from_s, double until_s)
{
    for (double t = from_s + wait_of(1.0 / RATE); t < until_s; t += wait_of(1.0 / RATE))
        sample(t);
}

/* Steps of compute and exchange, each a little longer or shorter; a checkpoint now and then. The
 * mean time from one exchange to the next in the time that is looked at. */
static double steps(double period_s, double share, double jitter, double total_s,
                    double checkpoint_every_s, double checkpoint_s)
{
    double t = 0, next_s = checkpoint_every_s, first_s = -1, last_s = 0;
    unsigned count = 0;

    while (t < total_s) {
        double send_s = period_s * share * (1 + jitter * (2 * chance() - 1));

        t += period_s * (1 - share) * (1 + jitter * (2 * chance() - 1));
        if (checkpoint_s > 0 && t > next_s) {
            t += checkpoint_s;
            next_s = t + checkpoint_every_s;
        }
        exchange(t, t + send_s);
        if (t > total_s - LOOKED_S) {
            count += first_s >= 0;
            first_s = first_s < 0 ? t : first_s;
            last_s = t;
        }
        t += send_s;
    }
    close_until(START_MS + (int64_t)(total_s * 1000));
    return count ? (last_s - first_s) / count : 0;
}

static void end(void)
{
    ft_rhythms_free(rhythms);
}

START_TEST(a_period_is_found)
{
    static const double seconds[] = {2.5, 3, 4, 6, 9, 14, 20, 30, 45, 60};

    for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            double mean_s;

            begin(100 * seed + i);
            mean_s = steps(seconds[i], 0.35, 0.06, 640, 0, 0);
            ck_assert_msg(last.has_period_ms, "%g s, seed %d: none", seconds[i], (int)seed);
            ck_assert_msg(fabs((double)last.period_ms / 1000 - mean_s) < 0.05 * mean_s,
                          "%g s, seed %d: %llu ms", seconds[i], (int)seed,
                          (unsigned long long)last.period_ms);
            end();
        }
}
END_TEST

/* Shorter than folding shows: none rather than a wrong one. */
START_TEST(a_short_period_is_not_known)
{
    static const double seconds[] = {0.5, 0.8, 1.1, 1.5};

    for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
        for (uint64_t seed = 1; seed <= 10; seed++) {
            double mean_s;

            begin(100 * seed + i);
            mean_s = steps(seconds[i], 0.5, 0.08, 640, 0, 0);
            ck_assert_msg(!last.has_period_ms ||
                              fabs((double)last.period_ms / 1000 - mean_s) < 0.05 * mean_s,
                          "%g s, seed %d: %llu ms", seconds[i], (int)seed,
                          (unsigned long long)last.period_ms);
            end();
        }
}
END_TEST

/* 16 s in every two minutes nothing is sent; the steps between are still found. */
START_TEST(checkpoints_do_not_hide_it)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        begin(seed);
        steps(6, 0.35, 0.04, 640, 120, 16);
        ck_assert_msg(last.has_period_ms, "seed %d: none", (int)seed);
        ck_assert_int_le(llabs((long long)last.period_ms - 6000), 300);
        ck_assert_uint_ge(last.longest_pause_ms, 16000);
        end();
    }
}
END_TEST

enum traffic { STEADY, SHORT, LONG, RARE, HEAVY, UNIFORM, KINDS };

static void draw(enum traffic kind, double *on_s, double *off_s)
{
    switch (kind) {
    case SHORT:
        *on_s = wait_of(1);
        *off_s = wait_of(1);
        break;
    case LONG:
        *on_s = wait_of(5);
        *off_s = wait_of(5);
        break;
    case RARE:
        *on_s = wait_of(10);
        *off_s = wait_of(20);
        break;
    case HEAVY:
        *on_s = 0.5 * pow(1 - chance(), -1 / 1.5);
        *off_s = pow(1 - chance(), -1 / 1.5);
        break;
    case UNIFORM:
        *on_s = 2 + 3 * chance();
        *off_s = 2 + 18 * chance();
        break;
    default:
        *on_s = 10;
        *off_s = 0;
    }
}

/* Six kinds, 40 seeds of 640 s each: 42 hours. */
START_TEST(what_does_not_repeat_has_none)
{
    unsigned wrong = 0, windows = 0;

    for (int kind = 0; kind < KINDS; kind++)
        for (uint64_t seed = 1; seed <= 40; seed++) {
            begin(1000 * seed + (uint64_t)kind);
            for (double t = 0, on_s, off_s; t < 640; t += on_s + off_s) {
                draw((enum traffic)kind, &on_s, &off_s);
                exchange(t, fmin(t + on_s, 640));
            }
            close_until(START_MS + 640000);
            wrong += periods;
            windows += emitted;
            end();
        }
    /* Windows overlap: a run by chance is in several. */
    ck_assert_msg(wrong * 200 < windows, "%u of %u windows", wrong, windows);
}
END_TEST

START_TEST(the_share_of_exchange)
{
    static const double shares[] = {0.15, 0.3, 0.5, 0.8};

    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        begin(i + 1);
        steps(12, shares[i], 0.05, 640, 0, 0);
        ck_assert(last.has_exchange);
        ck_assert_msg(fabs(last.exchange - shares[i]) < 0.06, "%g: %g", shares[i], last.exchange);
        end();
    }
}
END_TEST

/* One sample in two seconds on average: pauses between samples are no pauses of the job. */
START_TEST(few_samples_say_nothing)
{
    begin(7);
    for (double t = wait_of(2); t < 640; t += wait_of(2))
        sample(t);
    close_until(START_MS + 640000);
    ck_assert(!last.has_exchange);
    ck_assert(!last.has_period_ms);
    ck_assert_uint_gt(last.samples, 100);
    end();
}
END_TEST

START_TEST(a_job_that_ended_is_forgotten)
{
    uint32_t index = 0;

    begin(3);
    steps(6, 0.35, 0.04, 120, 0, 0);
    ck_assert_uint_eq(emitted, 12);
    close_until(START_MS + 640000);
    ck_assert_uint_lt(emitted, 65);
    emitted = 0;
    close_until(START_MS + 800000);
    ck_assert_uint_eq(emitted, 0);
    ck_assert(!ft_rhythms_next(rhythms, "small", &index, &emitter));
    end();
}
END_TEST

START_TEST(too_many_jobs_are_counted)
{
    struct ft_observation o = {.first_ms = START_MS, .last_ms = START_MS, .samples = 1};
    char job[16];

    begin(3);
    for (int i = 0; i < FT_RHYTHMS_JOBS_MAX + 5; i++) {
        snprintf(job, sizeof(job), "%d", i);
        ft_rhythms_take(rhythms, job, &o);
    }
    ck_assert_uint_eq(ft_rhythms_refused(rhythms), 5);
    end();
}
END_TEST

/* Times that no poller sends, and a clock that was set back. */
START_TEST(odd_times_do_no_harm)
{
    static const int64_t times[][2] = {{INT64_MIN, INT64_MAX},
                                       {-5000, 5000},
                                       {START_MS, START_MS - 1},
                                       {0, 0},
                                       {START_MS, START_MS},
                                       {INT64_MAX - 1, INT64_MAX},
                                       {START_MS - 900000, START_MS - 900000},
                                       {START_MS, START_MS + 3600000}};

    begin(3);
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
            struct ft_observation o = {
                .first_ms = times[i][0], .last_ms = times[i][1], .samples = 1, .bytes = 1};

            ft_rhythms_take(rhythms, "88", &o);
        }
    close_until(START_MS + 30000);
    end();
}
END_TEST

FT_UNIT_MAIN("rhythm", a_period_is_found, a_short_period_is_not_known, checkpoints_do_not_hide_it,
             what_does_not_repeat_has_none, the_share_of_exchange, few_samples_say_nothing,
             a_job_that_ended_is_forgotten, too_many_jobs_are_counted, odd_times_do_no_harm)

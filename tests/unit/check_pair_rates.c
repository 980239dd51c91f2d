// SPDX-License-Identifier: Apache-2.0
/* Pairs of a job that become slow, by samples of its flows alone. */
#include "config.h"

#include "lib/diagnosis/pair_rate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/pair_rates.h"
#include "daemon/diagnosis/rhythms.h"
#include "tests/unit/unit.h"

/* On paper: each pair of hosts has a rate and so many bytes a step. It is sampled at random while
 * it sends, folded by pair and second as pollers do, and taken in windows of ten seconds. The next
 * step begins when the last pair has ended. Which pair is slow is known here alone. */
#define HOSTS_MAX 8
#define WINDOW_MS 10000
#define START_MS  INT64_C(1700000000000)
#define HOUR_S    3600.0

enum shape { ALL_TO_ALL, RING };

/* What a job is like; of 0 it has none. */
struct habit {
    enum shape shape;
    uint32_t hosts;
    double period_s, share; /* of the period, for an exchange without faults */
    double rate;            /* samples a second of a pair that sends */
    double jitter, uneven;  /* of each step; of the bytes of pairs, for good */
    double shuffle;         /* of the bytes of pairs, each step anew */
    double checkpoint_every_s, checkpoint_s;
    uint32_t evaluate_every; /* steps; then a quarter as many with two fifths of the bytes */
};

static uint64_t dice_state;
static struct ft_rhythms *rhythms;
static struct ft_observation folds[HOSTS_MAX][HOSTS_MAX];
static double slower[HOSTS_MAX][HOSTS_MAX], more[HOSTS_MAX][HOSTS_MAX], sizes[HOSTS_MAX][HOSTS_MAX];
static double sampled[HOSTS_MAX][HOSTS_MAX];
static int64_t window_ms; /* start of the open one */
static double now_s;
static bool plugin;
static unsigned raised, cleared, others, raised_at_s;
static Fabrictrace__Side side;
static double ratio;
static char message[512], host[64], peer[64];

static double chance(void)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(dice_state >> 11) / 9007199254740992.0;
}

static double wait_of(double mean)
{
    return -mean * log(1 - chance());
}

static double about(double jitter)
{
    return 1 + jitter * (2 * chance() - 1);
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Diagnosis *m = record->diagnosis;

    (void)arg;
    if (record->kind_case != FABRICTRACE__RECORD__KIND_DIAGNOSIS)
        return;
    if (m->syndrome != FABRICTRACE__SYNDROME__SYNDROME_COMM_SLOW) {
        others++;
        return;
    }
    ck_assert_int_eq(m->source, FABRICTRACE__DIAGNOSIS_SOURCE__DIAGNOSIS_SOURCE_FLOWS);
    ck_assert(!m->has_rank && !m->has_peer && m->has_side && m->has_since_ms);
    ck_assert(m->n_evidence_against > 0 && strstr(m->evidence_against[0], "plugin"));
    cleared += m->cleared;
    if (m->cleared)
        return;
    raised++;
    raised_at_s = (unsigned)now_s;
    side = m->side;
    ratio = m->slowdown;
    snprintf(message, sizeof(message), "%s", m->message);
    snprintf(host, sizeof(host), "%s", m->host ? m->host : "");
    snprintf(peer, sizeof(peer), "%s", m->peer_host ? m->peer_host : "");
}

static const struct ft_emitter emitter = {on_record, NULL};

static void begin(const struct habit *h, uint64_t seed)
{
    dice_state = seed * 2654435761u + 1;
    for (int i = 0; i < 4; i++)
        chance();
    rhythms = ft_rhythms_new(seed);
    ck_assert_ptr_nonnull(rhythms);
    memset(folds, 0, sizeof(folds));
    for (int i = 0; i < HOSTS_MAX; i++)
        for (int k = 0; k < HOSTS_MAX; k++) {
            slower[i][k] = more[i][k] = sampled[i][k] = 1;
            sizes[i][k] = about(h->uneven);
        }
    window_ms = START_MS;
    now_s = 0;
    plugin = false;
    raised = cleared = others = 0;
}

static void end(void)
{
    ft_rhythms_free(rhythms);
}

static void hand_on(struct ft_observation *fold)
{
    if (fold->samples) {
        ft_rhythms_take(rhythms, "88", fold);
        ft_rhythms_sampled(rhythms, fold->last_ms);
    }
    fold->samples = fold->data_samples = 0;
    fold->bytes = 0;
}

static void close_until(int64_t ms)
{
    while (window_ms + WINDOW_MS <= ms) {
        struct ft_span span = {window_ms, window_ms + WINDOW_MS};

        for (int i = 0; i < HOSTS_MAX; i++)
            for (int k = 0; k < HOSTS_MAX; k++)
                hand_on(&folds[i][k]);
        ft_rhythms_alive(rhythms, "88", window_ms);
        if (plugin)
            ft_rhythms_plugin(rhythms, "88", window_ms);
        ft_rhythms_begin(rhythms);
        while (ft_rhythms_step(rhythms, "small", &span, &emitter, NULL, 0))
            ;
        window_ms += WINDOW_MS;
    }
}

static void sample(int i, int k, double at_s)
{
    struct ft_observation *fold = &folds[i][k];
    int64_t ms = START_MS + (int64_t)(at_s * 1000);

    if (fold->samples && fold->first_ms / 1000 != ms / 1000)
        hand_on(fold);
    if (!fold->samples) {
        const uint8_t src[4] = {10, 0, 0, (uint8_t)i}, dst[4] = {10, 0, 0, (uint8_t)k};

        *fold = (struct ft_observation){.first_ms = ms};
        fold->tuple = (struct ft_tuple){.src = ft_ip4(src),
                                        .dst = ft_ip4(dst),
                                        .sport = (uint16_t)(50000 + k),
                                        .dport = FT_ROCE_PORT,
                                        .proto = FT_PROTO_UDP};
    }
    fold->last_ms = ms;
    fold->samples++;
    fold->data_samples++;
    fold->bytes += 4096;
}

/* Samples of all pairs in order of time: bursts are walked second by second. */
static void exchange(const struct habit *h, double part)
{
    double until[HOSTS_MAX][HOSTS_MAX] = {{0}}, next[HOSTS_MAX][HOSTS_MAX] = {{0}}, last = 0;
    double base = part * h->period_s * h->share * about(h->jitter), worst = 1;
    int n = (int)h->hosts;

    for (int i = 0; i < n; i++)
        worst = fmax(worst, slower[i][(i + 1) % n]);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            double slow = h->shape == RING ? worst : slower[i][k];

            if (i == k || (h->shape == RING && k != (i + 1) % n))
                continue;
            until[i][k] = base * slow * sizes[i][k] * more[i][k] * about(h->shuffle);
            next[i][k] = wait_of(slow / (h->rate * sampled[i][k]));
            last = fmax(last, until[i][k]);
        }
    for (double t = 0.05; t < last + 0.05; t += 0.05) {
        close_until(START_MS + (int64_t)((now_s + t - 0.05) * 1000));
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++)
                for (; next[i][k] < t && next[i][k] < until[i][k];
                     next[i][k] +=
                     wait_of((h->shape == RING ? worst : slower[i][k]) / (h->rate * sampled[i][k])))
                    sample(i, k, now_s + next[i][k]);
    }
    now_s += last;
}

static void pass(double seconds)
{
    now_s += seconds;
    close_until(START_MS + (int64_t)(now_s * 1000));
}

static void train(const struct habit *h, double until_s)
{
    double next_s = now_s + h->checkpoint_every_s;
    unsigned steps = 0;

    while (now_s < until_s) {
        bool evaluates = h->evaluate_every && steps % h->evaluate_every > h->evaluate_every * 3 / 4;
        double part = evaluates ? 0.4 : 1;

        pass(part * h->period_s * (1 - h->share) * about(h->jitter));
        exchange(h, part);
        steps++;
        if (h->checkpoint_every_s > 0 && now_s > next_s) {
            pass(h->checkpoint_s * about(0.3));
            next_s = now_s + h->checkpoint_every_s;
        }
    }
}

static const struct habit habits[] = {
    {ALL_TO_ALL, 4, 6, 0.4, 20, 0.05, 0, 0, 0, 0, 0},
    {ALL_TO_ALL, 4, 5, 0.4, 20, 0.15, 0.3, 0.1, 600, 30, 0},
    {ALL_TO_ALL, 6, 6, 0.4, 12, 0.3, 0.5, 0.2, 900, 40, 0},
    {ALL_TO_ALL, 4, 8, 0.3, 15, 0.1, 0.3, 0, 0, 0, 20},
    {ALL_TO_ALL, 8, 12, 0.4, 8, 0.1, 0.4, 0.3, 1200, 60, 12},
    {RING, 8, 5, 0.4, 30, 0.1, 0, 0, 300, 8, 0},
    {RING, 6, 8, 0.4, 12, 0.2, 0.2, 0.1, 900, 60, 16},
    {ALL_TO_ALL, 4, 4, 0.35, 3, 0.1, 0.2, 0.1, 0, 0, 0},   /* too few samples */
    {ALL_TO_ALL, 5, 4, 0.25, 60, 0.1, 0.6, 0.1, 0, 0, 15}, /* bursts as short as bins */
};

/* FT_PAIR_RATE_HOURS: so many of each. */
START_TEST(hours_without_a_fault_are_left_alone)
{
    const char *text = getenv("FT_PAIR_RATE_HOURS");
    uint64_t hours = text ? strtoull(text, NULL, 10) : 1;

    for (uint64_t seed = 1; seed <= hours; seed++)
        for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
            begin(&habits[i], 1000 * seed + i);
            train(&habits[i], HOUR_S);
            ck_assert_msg(raised == 0, "habit %d, seed %d: %s", (int)i, (int)seed, message);
            end();
        }
}
END_TEST

enum fault { PAIR, SENDER, RECEIVER };

static void set_fault(enum fault fault, double factor)
{
    for (int k = 0; k < HOSTS_MAX; k++)
        if (fault == SENDER)
            slower[1][k] = factor;
        else if (fault == RECEIVER)
            slower[k][2] = factor;
    if (fault == PAIR)
        slower[1][2] = factor;
}

static void check_named(enum fault fault, double factor)
{
    static const Fabrictrace__Side sides[] = {FABRICTRACE__SIDE__SIDE_PAIR,
                                              FABRICTRACE__SIDE__SIDE_SENDER,
                                              FABRICTRACE__SIDE__SIDE_RECEIVER};

    ck_assert_msg(side == sides[fault], "fault %d, %g times: %s", (int)fault, factor, message);
    ck_assert_str_eq(host, fault == RECEIVER ? "10.0.0.2" : "10.0.0.1");
    ck_assert_str_eq(peer, fault == PAIR ? "10.0.0.2" : "");
    ck_assert_msg(ratio > 0.7 * factor && ratio < 1.3 * factor, "%g for %g", ratio, factor);
    ck_assert_uint_eq(ft_rhythms_stalls(rhythms, FABRICTRACE__SYNDROME__SYNDROME_COMM_SLOW), 1);
}

/* FT_PAIR_RATE_RUNS: so many of each. Where samples are few and steps unlike each other, one that
 * is twice as slow may not stand out; none is ever named but who is slow. */
START_TEST(who_is_slow_is_named_until_it_is_not)
{
    const char *text = getenv("FT_PAIR_RATE_RUNS");
    uint64_t runs = text ? strtoull(text, NULL, 10) : 6;
    unsigned worst_s = 0, found = 0, found_3 = 0, all = 0;
    double sum_s = 0;

    for (int fault = PAIR; fault <= RECEIVER; fault++)
        for (int factor = 2; factor <= 3; factor++)
            for (uint64_t seed = 1; seed <= runs; seed++, all++) {
                const struct habit *h = &habits[seed % 3];
                unsigned said;

                begin(h, 1000 * seed + 10 * (uint64_t)factor + (uint64_t)fault);
                train(h, 900);
                ck_assert_uint_eq(raised, 0);
                set_fault((enum fault)fault, factor);
                train(h, 1300);
                ck_assert_msg(raised <= 1, "fault %d, %d times: %u, seed %d: %s", fault, factor,
                              raised, (int)seed, message);
                said = raised;
                if (said) {
                    check_named((enum fault)fault, factor);
                    sum_s += raised_at_s - 900;
                    worst_s = raised_at_s - 900 > worst_s ? raised_at_s - 900 : worst_s;
                    found++;
                    found_3 += factor == 3;
                }
                set_fault((enum fault)fault, 1);
                train(h, 1700);
                ck_assert_msg(raised == said, "then, seed %d: %s", (int)seed, message);
                ck_assert_uint_eq(cleared, said);
                end();
            }
    printf("named %u of %u, three times as slow %u of %u; after %.0f s on average, %u s at most\n",
           found, all, found_3, all / 2, sum_s / found, worst_s);
    ck_assert_uint_ge(found * 10, all * 9);
    ck_assert_uint_ge(found_3 * 50, all / 2 * 49);
}
END_TEST

/* In a ring all pairs are as slow as the slowest. */
START_TEST(who_waits_in_a_ring_is_not_named)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        const struct habit *h = &habits[5 + seed % 2];

        begin(h, 50 + seed);
        train(h, 900);
        slower[1][2] = seed < 4 ? 3 : 1.6;
        train(h, 2400);
        ck_assert_msg(raised == 0, "seed %d: %s", (int)seed, message);
        end();
    }
}
END_TEST

/* One that has more to send takes longer at the same rate; one that fewer switches sample has a
 * lower rate in the same time; and where the plugin reports, it says more. */
START_TEST(more_bytes_or_fewer_samples_are_not_slow)
{
    for (uint64_t seed = 1; seed <= 9; seed++) {
        begin(&habits[0], 70 + seed);
        train(&habits[0], 900);
        if (seed % 3 == 0)
            more[1][2] = 2.5;
        if (seed % 3 == 1)
            sampled[1][2] = 0.5;
        if (seed % 3 == 2) {
            plugin = true;
            slower[1][2] = 3;
        }
        train(&habits[0], 2400);
        ck_assert_msg(raised == 0, "seed %d: %s", (int)seed, message);
        end();
    }
}
END_TEST

/* No flow is sampled any more, though agents report the job. Once it is forgotten nothing says how
 * its pairs are. */
START_TEST(what_stands_ends_with_what_is_known_of_its_job)
{
    begin(&habits[0], 60);
    train(&habits[0], 900);
    slower[1][2] = 3;
    train(&habits[0], 1500);
    ck_assert_uint_eq(raised, 1);
    /* All wait for it, and the job is slow, too. */
    ck_assert_uint_eq(others, 1);
    pass(480);
    ck_assert_uint_eq(cleared, 0);
    ck_assert_uint_eq(others, 1);
    pass(60);
    ck_assert_uint_eq(cleared, 1);
    ck_assert_uint_eq(others, 2);
    ck_assert_uint_eq(ft_rhythms_stalls(rhythms, FABRICTRACE__SYNDROME__SYNDROME_SLOWDOWN), 0);
    end();
}
END_TEST

/* A pair whose bytes are passed on by another one: which of both is slow does not show. */
START_TEST(of_a_chain_none_is_named)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        begin(&habits[0], 90 + seed);
        train(&habits[0], 900);
        slower[1][2] = slower[2][3] = 2.5;
        train(&habits[0], 1500);
        ck_assert_msg(raised == 0, "seed %d: %s", (int)seed, message);
        end();
    }
}
END_TEST

FT_UNIT_MAIN("pair_rates", hours_without_a_fault_are_left_alone,
             who_is_slow_is_named_until_it_is_not, who_waits_in_a_ring_is_not_named,
             more_bytes_or_fewer_samples_are_not_slow,
             what_stands_ends_with_what_is_known_of_its_job, of_a_chain_none_is_named)

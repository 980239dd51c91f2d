// SPDX-License-Identifier: Apache-2.0
/* Which elephants agents are asked to probe, and that no switch is met by two at once. */
#include "config.h"

#include "daemon/probe/prober.h"

#include <string.h>

#include "daemon/join/hints.h"
#include "daemon/probe/probe_list.h"
#include "proto/record.h"
#include "tests/unit/join_rig.h"

#define NOW_MS  JOIN_RIG_END_MS
#define REST_MS 300000
#define FLOWS   3

static struct join_rig rig;
static struct ft_hints *hints;
static struct ft_prober *prober;
static struct ft_prober_question q;

static void report(uint16_t sport, uint64_t bytes)
{
    const struct ft_host_report r = {.tuple = join_rig_tuple(sport),
                                     .time_ms = JOIN_RIG_START_MS + 9000,
                                     .interval_ms = 8000,
                                     .sending = true,
                                     .host = "h0-0",
                                     .bytes = bytes,
                                     .data_packets = 250,
                                     .qp_local = 7,
                                     .qp_remote = 0x123};

    ck_assert_int_eq(ft_join_report(rig.join, &r), FT_JOIN_OK);
}

static void say(const char *host, const char *source, bool probes)
{
    Fabrictrace__HostStatus status = FABRICTRACE__HOST_STATUS__INIT;

    status.host = (char *)(uintptr_t)host;
    status.source = (char *)(uintptr_t)source;
    status.has_interval_ms = true;
    status.interval_ms = 100000;
    status.has_probes = status.probes = probes;
    ft_prober_agent(prober, &status, NOW_MS);
}

/* Flows of 100 Mb in the window, from one host; of the second of them there may be samples. */
static void begin_with(unsigned samples)
{
    const struct ft_prober_config config = {
        .elephant = 1e-6, .window_ms = JOIN_RIG_WINDOW_MS, .rest_ms = REST_MS, .seed = 1};

    join_rig_open(&rig);
    hints = ft_hints_new(REST_MS, 1);
    ck_assert_ptr_nonnull(hints);
    ft_join_set_hints(rig.join, hints);
    for (uint16_t i = 0; i < FLOWS; i++)
        report((uint16_t)(100 + i), 125000000);
    if (samples)
        join_rig_sample(&rig, 101, 0, 500000000, samples);
    join_rig_seal(&rig);
    prober = ft_prober_new(&config);
    ck_assert_ptr_nonnull(prober);
    say("h0-0", "agent-of-h0-0", true);
}

static void begin(void)
{
    begin_with(0);
}

static void end(void)
{
    const struct ft_prober_stats *s = ft_prober_stats(prober);

    ck_assert_uint_eq(s->asked, s->answered + s->refused + s->lost + s->pending);
    ft_prober_free(prober);
    ft_join_set_hints(rig.join, NULL);
    ft_hints_free(hints);
    join_rig_close(&rig);
}

static bool next(int64_t now_ms)
{
    return ft_prober_next(prober, rig.join, now_ms, 1000, &q);
}

static void answer(const char *refused, bool by_daemon, int64_t now_ms)
{
    Fabrictrace__Probe probe = FABRICTRACE__PROBE__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;

    ft_flow_from_tuple(&flow, &q.request.tuple);
    probe.flow = &flow;
    probe.refused = (char *)(uintptr_t)refused;
    probe.has_by_daemon = probe.by_daemon = by_daemon;
    ft_prober_take(prober, rig.join, &probe, now_ms);
}

START_TEST(an_elephant_without_evidence_is_asked_for)
{
    begin();
    ck_assert(next(NOW_MS));
    ck_assert_str_eq(q.source, "agent-of-h0-0");
    ck_assert_str_eq(q.host, "h0-0");
    ck_assert_uint_eq(q.request.dst_qp, 0x123);
    ck_assert_uint_eq(q.request.switches, 3);
    ck_assert_uint_eq(ft_prober_stats(prober)->pending, 1);
    end();
}
END_TEST

/* All of them leave by one leaf. */
START_TEST(a_switch_is_met_by_one_flow_at_a_time)
{
    struct ft_tuple seen[FLOWS];
    int64_t now_ms = NOW_MS;

    begin();
    for (unsigned i = 0; i < FLOWS; i++) {
        ck_assert(next(now_ms));
        for (unsigned k = 0; k < i; k++)
            ck_assert(memcmp(&seen[k], &q.request.tuple, sizeof(seen[k])) != 0);
        seen[i] = q.request.tuple;
        ck_assert(!next(now_ms));
        ck_assert(!next(now_ms + 5000));
        /* What a tool's user asked for ends nothing. */
        answer(NULL, false, now_ms + 5000);
        ck_assert(!next(now_ms + 5001));
        answer(NULL, true, now_ms + 5001);
        ck_assert(!next(now_ms + 5001 + FT_PROBER_PAUSE_MS - 1));
        now_ms += 5001 + FT_PROBER_PAUSE_MS;
    }
    /* None of them again, before it has rested. */
    ck_assert(!next(now_ms));
    ck_assert(!next(NOW_MS + REST_MS - 1));
    ck_assert_uint_eq(ft_prober_stats(prober)->answered, FLOWS);
    end();
}
END_TEST

START_TEST(what_nothing_came_of_is_lost)
{
    begin();
    ck_assert(next(NOW_MS));
    ck_assert(!next(NOW_MS + FT_PROBE_LIST_LOST_MS - 1));
    ck_assert(next(NOW_MS + FT_PROBE_LIST_LOST_MS + 2000));
    ck_assert_uint_eq(ft_prober_stats(prober)->lost, 1);
    ck_assert_uint_eq(ft_prober_stats(prober)->pending, 1);
    /* A late answer is of nothing that is waited for. */
    answer(NULL, true, NOW_MS + FT_PROBE_LIST_LOST_MS + 2001);
    answer(NULL, true, NOW_MS + FT_PROBE_LIST_LOST_MS + 2002);
    ck_assert_uint_eq(ft_prober_stats(prober)->answered, 1);
    end();
}
END_TEST

START_TEST(a_refusal_lets_others_be_asked_for_at_once)
{
    struct ft_tuple first;

    begin();
    ck_assert(next(NOW_MS));
    first = q.request.tuple;
    answer("another flow is being probed", true, NOW_MS + 100);
    ck_assert(next(NOW_MS + 101));
    ck_assert(memcmp(&first, &q.request.tuple, sizeof(first)) != 0);
    ft_prober_undelivered(prober, rig.join, &q, NOW_MS + 101);
    ck_assert(next(NOW_MS + 102));
    ck_assert_uint_eq(ft_prober_stats(prober)->refused, 1);
    ck_assert_uint_eq(ft_prober_stats(prober)->lost, 1);
    end();
}
END_TEST

START_TEST(only_agents_that_offer_it_are_asked)
{
    begin();
    say("h0-0", "another", false);
    ck_assert(next(NOW_MS));
    answer(NULL, true, NOW_MS + 1);
    say("h0-0", "agent-of-h0-0", false);
    ck_assert(!next(NOW_MS + 10000));
    say("h1-0", "agent-of-h1-0", true);
    ck_assert(!next(NOW_MS + 20000));
    ck_assert_uint_ge(ft_prober_stats(prober)->no_agent, 2);
    say("h0-0", "agent-of-h0-0", true);
    ck_assert(next(NOW_MS + 30000));
    answer(NULL, true, NOW_MS + 30001);
    /* One that says nothing for three of its intervals has gone. */
    ck_assert(!next(NOW_MS + 300001));
    end();
}
END_TEST

/* This host's clock is set back by minutes: nothing rests for that time, and what was waited for is
 * lost. */
START_TEST(a_clock_that_was_set_back)
{
    begin();
    ck_assert(next(NOW_MS + 200000));
    ck_assert(!next(NOW_MS + 201000));
    say("h0-0", "agent-of-h0-0", true);
    ck_assert(!next(NOW_MS));
    ck_assert(!next(NOW_MS + FT_PROBE_LIST_LOST_MS - 1));
    ck_assert_uint_eq(ft_prober_stats(prober)->lost, 1);
    ck_assert(next(NOW_MS + FT_PROBE_LIST_LOST_MS));
    answer(NULL, true, NOW_MS + FT_PROBE_LIST_LOST_MS + 1);
    ck_assert(next(NOW_MS + FT_PROBE_LIST_LOST_MS + 1 + FT_PROBER_PAUSE_MS));
    end();
}
END_TEST

START_TEST(evidence_and_mice_are_left_alone)
{
    const struct ft_tuple tuple = join_rig_tuple(100);

    begin_with(5);
    /* Samples resolve one, hints show another, the third is small. */
    ft_hints_advance(hints, NOW_MS);
    ft_hints_put(hints, &tuple,
                 &(struct ft_hint){0, join_rig_port(&rig, "leaf0", "up1"), FT_BY_PROBE, 0});
    join_rig_flow(&rig, 102)->bytes = 10;
    ck_assert(!next(NOW_MS));
    /* The hint is of the past, and it is asked for again. */
    ft_hints_advance(hints, NOW_MS + REST_MS + 1);
    ck_assert(next(NOW_MS + 1));
    ck_assert(memcmp(&q.request.tuple, &tuple, sizeof(tuple)) == 0);
    end();
}
END_TEST

FT_UNIT_MAIN("prober", a_clock_that_was_set_back, an_elephant_without_evidence_is_asked_for,
             a_switch_is_met_by_one_flow_at_a_time, what_nothing_came_of_is_lost,
             a_refusal_lets_others_be_asked_for_at_once, only_agents_that_offer_it_are_asked,
             evidence_and_mice_are_left_alone)

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/unit/judge_rig.h"

/* A sample in the first pod, and long after it one in the second: the flow may have moved. */
START_TEST(samples_far_apart_make_no_path)
{
    struct ft_judgement j;

    setup();
    sample("a0", "leaf0", "super1", 1000);
    sample("leaf1", "b0", "h1", 1000 + FT_APART_MS + 1);
    j = judge(20000);
    ck_assert_int_eq(j.state, FT_PATH_PARTIAL);
    ck_assert_int_eq(j.reason, FT_REASON_AMBIGUOUS);
    /* What is certain is of the newer one. */
    ck_assert_uint_eq(j.path.hops[1].in, FT_NONE);
    ck_assert_uint_eq(j.path.hops[4].in, port("leaf1", "b0"));
    /* The first is seen again: now they overlap. */
    sample("a0", "leaf0", "super1", 4000);
    j = judge(4000);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    teardown();
}
END_TEST

START_TEST(samples_close_together_wait_for_word_of_a_move)
{
    struct ft_judgement j;

    setup();
    sample("a0", "leaf0", "super1", 1000);
    sample("leaf1", "b0", "h1", 1000 + FT_APART_MS);
    j = judge(3000 + policy.tolerance_ms - 1);
    ck_assert_int_eq(j.state, FT_PATH_PARTIAL);
    j = judge(3000 + policy.tolerance_ms);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    teardown();
}
END_TEST

/* Others leave leaf0's uplink: a flow that was seen there before may have moved with them. */
START_TEST(others_that_move_make_older_samples_doubtful)
{
    struct ft_judgement j;

    setup();
    sample("super1", "a0", "b0", 1000);
    j = judge(1000);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    ft_trust_mark_uncertain(&trust, port("leaf0", "a0"), 5000);
    j = judge(9000);
    ck_assert_int_eq(j.state, FT_PATH_PARTIAL);
    ck_assert_int_eq(j.reason, FT_REASON_CHANGING);
    /* The last leaf alone does not tell. */
    sample("leaf1", "b0", "h1", 9500);
    j = judge(9500);
    ck_assert_int_eq(j.state, FT_PATH_PARTIAL);
    sample("super1", "a0", "b0", 10000);
    j = judge(10000);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    ck_assert_int_eq(j.since_ms, 10000);
    teardown();
}
END_TEST

/* A flow that is sampled all the time shows by itself that it stayed. */
START_TEST(who_is_seen_all_the_time_is_not_in_doubt)
{
    struct ft_judgement j;

    setup();
    for (int64_t ms = 1000; ms <= 3000; ms += 500) {
        sample("super1", "a0", "b0", ms);
        judge(ms);
    }
    ft_trust_mark_uncertain(&trust, port("leaf0", "a0"), 5000);
    j = judge(4000);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    ck_assert_int_eq(j.since_ms, 1000);
    teardown();
}
END_TEST

/* Two samples are no proof that the flow stayed when others moved: it is not known to be back. */
START_TEST(who_is_sampled_seldom_is_in_doubt)
{
    for (int known_before = 0; known_before < 2; known_before++) {
        struct ft_judgement j;

        setup();
        sample("super1", "a0", "b0", 1000);
        judge(1000);
        sample("super1", "a0", "b0", 3000);
        ft_trust_mark_uncertain(&trust, port("leaf0", "a0"), 5000);
        is_known = known_before;
        j = judge(4000);
        ck_assert_int_eq(j.state, known_before ? FT_PATH_RESOLVED : FT_PATH_PARTIAL);
        teardown();
    }
}
END_TEST

/* A link goes down for half a second: hundreds of samples before, some elsewhere, then as before.
 */
START_TEST(a_bounce_is_over_once_it_is_over)
{
    struct ft_judgement j;
    int64_t ms;

    setup();
    for (ms = 0; ms < 20000; ms += 50) {
        sample("super1", "a0", "b0", ms);
        j = judge(ms);
        ck_assert_str_eq(over(&j), "a0 super1 b0");
    }
    for (; ms < 20500; ms += 50) {
        sample("super0", "a1", "b1", ms);
        j = judge(ms);
        ck_assert_int_eq(j.reason, FT_REASON_CHANGING);
    }
    for (; ms < 30000; ms += 50) {
        sample("super1", "a0", "b0", ms);
        j = judge(ms);
        ck_assert_int_ne(j.state, FT_PATH_MULTIPATH);
        if (ms >= 20500 + 2500)
            ck_assert_str_eq(over(&j), "a0 super1 b0");
    }
    /* It was elsewhere in between: its path is known from then on. */
    ck_assert_int_ge(known_since_ms, 20450);
    teardown();
}
END_TEST

START_TEST(two_moves_soon_after_each_other_settle)
{
    static const char *const spines[] = {"a0", "a1", "a0"};
    static const char *const supers[] = {"super0", "super1", "super1"};
    struct ft_judgement j;

    setup();
    for (int64_t ms = 0; ms < 30000; ms += 50) {
        int at = ms < 20000 ? 0 : ms < 20700 ? 1 : 2;

        sample(supers[at], spines[at], "b0", ms);
        j = judge(ms);
        ck_assert_int_ne(j.state, FT_PATH_MULTIPATH);
        if (ms >= 20700 + 5000) {
            ck_assert_str_eq(over(&j), "a0 super1 b0");
            ck_assert_int_ge(j.since_ms, 20650);
            ck_assert_int_le(j.since_ms, 20750);
        }
    }
    teardown();
}
END_TEST

/* Known on a0 super1 b0, it is seen once at b1. Where it goes since is certain when it is
 * seen behind that hop again, or on every link. */
START_TEST(who_was_seen_elsewhere_is_back_when_seen_there_again)
{
    struct ft_judgement j;
    int64_t ms;

    setup();
    confirm_all();
    for (ms = 0; ms < 20000; ms += 500) {
        sample("leaf0", "h0", "a0", ms);
        sample("a0", "leaf0", "super1", ms);
        sample("b0", "super1", "leaf1", ms);
        all_sample(ms);
        j = judge_by(ms, true);
    }
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    sample("b1", "super1", "leaf1", ms);
    for (ms += 500; ms < 25000; ms += 500) {
        sample("super1", "a0", "b0", ms);
        j = judge_by(ms, true);
        ck_assert_int_eq(j.state, FT_PATH_PARTIAL);
        ck_assert_int_eq(j.reason, FT_REASON_CHANGING);
    }
    sample("b0", "super1", "leaf1", ms);
    j = judge_by(ms, true);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    teardown();
}
END_TEST

/* A sample in each pod, and then others in the first: the path is told of while both go on. */
START_TEST(a_path_is_reported_while_all_that_it_takes_goes_on)
{
    struct ft_judging by = {.src_nic = 0, .dst_nic = 1};

    setup();
    by.t = t;
    sample("a0", "leaf0", "super1", 1000);
    sample("leaf1", "b0", "h1", 2000);
    /* They do not overlap: it may have left the first pod's part before it was seen in the other.
     */
    ck_assert_int_eq(ft_evidence_certain_ms(&ev, &by), 1000);
    sample("a0", "leaf0", "super1", 4500);
    ck_assert_int_eq(ft_evidence_certain_ms(&ev, &by), 2000);
    sample("leaf1", "b0", "h1", 5000);
    ck_assert_int_eq(ft_evidence_certain_ms(&ev, &by), 4500);
    teardown();
}
END_TEST

/* Samples of a link that is taken for down are on no path. What began before the last of them is no
 * proof of another way. */
START_TEST(a_path_is_not_known_from_before_the_flow_went_astray)
{
    struct ft_judgement j;

    setup();
    for (int64_t ms = 1000; ms <= 8000; ms += 500) {
        sample("super1", "a0", "b0", ms);
        if (ms <= 4000)
            sample("a0", "leaf0", "leaf0", ms);
        j = judge(ms);
    }
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    ck_assert_int_gt(j.since_ms, 4000);
    /* Nor later, when nobody remembers the path any more. */
    known.hop_count = 0;
    is_known = false;
    j = judge(8000);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    ck_assert_int_gt(j.since_ms, 4000);
    teardown();
}
END_TEST

/* A sprayed flow that takes one way for a while: what it was sampled on all the time is no proof
 * that it left the others. A flow that moved has not been seen on its path before. */
START_TEST(samples_from_before_a_move_are_no_proof_of_it)
{
    for (int sprayed = 0; sprayed < 2; sprayed++) {
        struct ft_judgement j;

        setup();
        for (int64_t ms = 1000; ms <= 9000; ms += 500) {
            if (ms <= 6500 && (!sprayed || ms % 1000 == 0))
                sample("leaf0", "h0", "a1", ms);
            if (sprayed ? ms % 1000 != 0 : ms > 6500) {
                sample("leaf0", "h0", "a0", ms);
                sample("super1", "a0", "b0", ms);
            }
        }
        j = judge(9000);
        ck_assert_int_eq(j.state == FT_PATH_RESOLVED, !sprayed);
        teardown();
    }
}
END_TEST

/* Of a path that is not known whole, what was sampled long before the newest sample is not certain
 * any more. */
START_TEST(what_is_certain_of_a_partial_path_was_sampled_of_late)
{
    struct ft_judgement j;

    setup();
    all_sample(1000);
    sample("super1", "a0", "b0", 1000);
    sample("b0", "super1", "leaf1", 1000 + FT_NEAR_MS);
    j = judge_by(1000 + FT_NEAR_MS, true);
    ck_assert_int_eq(j.reason, FT_REASON_UNCONFIRMED);
    ck_assert_uint_eq(j.path.hops[2].in, port("super1", "a0"));
    sample("b0", "super1", "leaf1", 1000 + FT_NEAR_MS + 1);
    j = judge_by(1000 + FT_NEAR_MS + 1, true);
    ck_assert_int_eq(j.reason, FT_REASON_UNCONFIRMED);
    ck_assert_uint_eq(j.path.hops[2].in, FT_NONE);
    ck_assert_uint_eq(j.path.hops[3].in, port("b0", "super1"));
    teardown();
}
END_TEST

/* Around a move of others two samples may be of two paths, however soon one came after the other.
 */
START_TEST(around_a_move_the_newest_sample_alone_is_certain)
{
    struct ft_judgement j;

    for (int moved = 0; moved < 2; moved++) {
        setup();
        all_sample(1000);
        sample("leaf0", "h0", "a1", 1000);
        sample("b0", "super1", "leaf1", 1400);
        if (moved)
            ft_trust_mark_uncertain(&trust, port("leaf0", "a0"), 1200);
        j = judge_by(3400, true);
        ck_assert_int_eq(j.state, FT_PATH_PARTIAL);
        ck_assert_uint_eq(j.path.hops[3].in, port("b0", "super1"));
        ck_assert_uint_eq(j.path.hops[0].out, moved ? FT_NONE : port("leaf0", "a1"));
        teardown();
    }
}
END_TEST

/* Packets that all take the same of eight ways, sampled once at each hop a second. */
static int64_t seconds_until_resolved(int64_t from_ms)
{
    for (int64_t ms = from_ms; ms < from_ms + 20000; ms += 1000) {
        sample("leaf0", "h0", "a0", ms);
        sample("a0", "leaf0", "super1", ms);
        sample("super1", "a0", "b0", ms);
        sample("b0", "super1", "leaf1", ms);
        sample("leaf1", "b0", "h1", ms);
        if (judge(ms).state == FT_PATH_RESOLVED)
            return (ms - from_ms) / 1000;
    }
    return -1;
}

/* Where flows are sprayed a few samples may be of one path by chance. With eight ways one sample at
 * each hop leaves 4, 2, 1, 2 and 4 of them: 6.2 of the ln(8) + ln(10^4) = 11.3 that are needed, and
 * two of them 12.5. */
START_TEST(where_flows_are_sprayed_few_samples_are_no_path)
{
    struct ft_judgement j;

    setup();
    ck_assert_int_eq(seconds_until_resolved(1000), 0);
    teardown();
    setup();
    trust.sprayed_ms = 500;
    ck_assert_int_eq(seconds_until_resolved(1000), 1);
    teardown();
    setup();
    trust.sprayed_ms = 500;
    sample("super1", "a0", "b0", 1000);
    j = judge(1000);
    ck_assert_int_eq(j.state, FT_PATH_PARTIAL);
    ck_assert_int_eq(j.reason, FT_REASON_FEW_SAMPLES);
    ck_assert_str_eq(ft_reason_name(j.reason), "few_samples");
    teardown();
    /* What was seen ten minutes ago says nothing of now. */
    setup();
    trust.sprayed_ms = 500;
    ck_assert_int_eq(seconds_until_resolved(601000), 0);
    teardown();
}
END_TEST

/* One that was seen on another path needs more: ln(8) + ln(10^6) = 15.9, eight samples at a hop
 * that leaves one way of eight. */
START_TEST(who_was_elsewhere_needs_more_where_flows_are_sprayed)
{
    for (int sprayed = 0; sprayed < 2; sprayed++) {
        struct ft_judgement j;

        setup();
        trust.sprayed_ms = sprayed ? 500 : INT64_MIN;
        sample("super0", "a1", "b1", 1000);
        for (int i = 0; i < 7; i++)
            sample("super1", "a0", "b0", 4100 + 100 * i);
        j = judge(4700);
        ck_assert_int_eq(j.state == FT_PATH_RESOLVED, !sprayed);
        sample("super1", "a0", "b0", 4800);
        j = judge(4800);
        ck_assert_str_eq(over(&j), "a0 super1 b0");
        teardown();
    }
}
END_TEST

/* One exporter holds its samples back longer than another: those of the path before come in when
 * the new one has been sampled for some time. The move was then, not when it was believed. */
START_TEST(a_path_is_known_from_the_move_on)
{
    struct ft_judgement j;

    setup();
    for (int64_t ms = 1000; ms <= 5000; ms += 100) {
        sample("super0", "a1", "b1", ms);
        judge(ms);
    }
    for (int64_t ms = 4700; ms <= 8000; ms += 100)
        sample("super1", "a0", "b0", ms);
    j = judge(8000);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    ck_assert_int_eq(j.since_ms, 5001);
    teardown();
    /* A sample a second may have missed that the flow was elsewhere for a while. */
    setup();
    for (int64_t ms = 1000; ms <= 5000; ms += 100) {
        sample("super0", "a1", "b1", ms);
        judge(ms);
    }
    for (int64_t ms = 4700; ms <= 13700; ms += 1000)
        sample("super1", "a0", "b0", ms);
    j = judge(13700);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    ck_assert_int_gt(j.since_ms, 5001);
    teardown();
}
END_TEST

FT_UNIT_MAIN("judge", a_path_is_known_from_the_move_on,
             where_flows_are_sprayed_few_samples_are_no_path,
             who_was_elsewhere_needs_more_where_flows_are_sprayed,
             who_is_sampled_seldom_is_in_doubt, samples_far_apart_make_no_path,
             samples_close_together_wait_for_word_of_a_move,
             others_that_move_make_older_samples_doubtful, who_is_seen_all_the_time_is_not_in_doubt,
             a_bounce_is_over_once_it_is_over, two_moves_soon_after_each_other_settle,
             who_was_seen_elsewhere_is_back_when_seen_there_again,
             a_path_is_reported_while_all_that_it_takes_goes_on,
             a_path_is_not_known_from_before_the_flow_went_astray,
             what_is_certain_of_a_partial_path_was_sampled_of_late,
             samples_from_before_a_move_are_no_proof_of_it,
             around_a_move_the_newest_sample_alone_is_certain)

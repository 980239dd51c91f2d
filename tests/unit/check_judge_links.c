// SPDX-License-Identifier: Apache-2.0
/*
 * What the judge asks for before it believes in the links of a path.
 */
#include "config.h"

#include "tests/unit/judge_rig.h"

START_TEST(a_link_that_nobody_confirmed_needs_samples_of_both_ends)
{
    struct ft_judgement j;

    setup();
    all_sample(1000);
    sample("super1", "a0", "b0", 1000);
    j = judge_by(1000, true);
    ck_assert_int_eq(j.state, FT_PATH_PARTIAL);
    ck_assert_int_eq(j.reason, FT_REASON_UNCONFIRMED);
    ck_assert_uint_eq(j.candidates, 1);
    /* What was sampled is certain, and what the file says of its other ends is not. */
    ck_assert_uint_eq(j.path.hops[2].out, port("super1", "b0"));
    ck_assert_uint_eq(j.path.hops[3].in, FT_NONE);
    sample("a0", "leaf0", "super1", 1100);
    sample("b0", "super1", "leaf1", 1200);
    sample("leaf0", "h0", "a0", 1300);
    j = judge_by(1300, true);
    ck_assert_int_eq(j.reason, FT_REASON_UNCONFIRMED);
    sample("leaf1", "b0", "h1", 1400);
    j = judge_by(1400, true);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    teardown();
}
END_TEST

/* A link came or went, and so may others of which nobody has told yet: that the topology leaves but
 * one path is no proof where its links were sampled long ago. */
START_TEST(in_unquiet_times_links_are_sampled_of_late)
{
    struct ft_judgement j;

    for (int unquiet = 0; unquiet < 2; unquiet++) {
        setup();
        confirm_all();
        all_sample(30000);
        sample("leaf0", "h0", "a0", 30000);
        sample("b0", "super1", "leaf1", 30000);
        sample("super1", "a0", "b0", 30000 + FT_STRETCH_GAP_MS + 1);
        if (unquiet)
            ft_trust_mark_uncertain(&trust, port("leaf1", "b1"), 29000);
        j = judge_by(40000, true);
        ck_assert_int_eq(j.state, unquiet ? FT_PATH_PARTIAL : FT_PATH_RESOLVED);
        teardown();
    }
}
END_TEST

/* Samples that leave no other path may do so for a link that the topology lacks. */
START_TEST(in_unquiet_times_a_path_is_of_when_all_its_links_were_sampled)
{
    for (int unquiet = 0; unquiet < 2; unquiet++) {
        struct ft_judging by;

        setup();
        by = (struct ft_judging){.t = t,
                                 .trust = &trust,
                                 .verify = true,
                                 .policy = policy,
                                 .src_nic = 0,
                                 .dst_nic = 1,
                                 .now_ms = 40000};
        confirm_all();
        all_sample(30000);
        sample("leaf0", "h0", "a0", 30000);
        sample("b0", "super1", "leaf1", 30100);
        sample("super1", "a0", "b0", 30000);
        sample("super1", "a0", "b0", 33500);
        trust.loses_links = true;
        if (unquiet)
            ft_trust_mark_uncertain(&trust, port("leaf1", "b1"), 29000);
        ck_assert_int_eq(ft_evidence_certain_ms(&ev, &by), unquiet ? 30100 : 33500);
        teardown();
    }
}
END_TEST

/* Where links that fail are followed, the topology may lack one that is back: samples of another
 * path then agree with the only one that is left. */
START_TEST(where_links_may_be_lacking_samples_are_of_one_stretch)
{
    static const struct {
        bool loses_links;
        int64_t last_ms, now_ms;
        enum ft_path_state state;
    } cases[] = {{false, 33000, 33000, FT_PATH_RESOLVED},
                 {true, 33000, 40000, FT_PATH_PARTIAL},
                 {true, 31500, 32000, FT_PATH_PARTIAL},
                 {true, 31500, 33500, FT_PATH_RESOLVED}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ft_judgement j;

        setup();
        confirm_all();
        all_sample(30000);
        trust.loses_links = cases[i].loses_links;
        ft_trust_mark_uncertain(&trust, port("leaf1", "b1"), 29000);
        sample("b0", "super1", "leaf1", 30000);
        sample("leaf0", "h0", "a0", 30000);
        sample("super1", "a0", "b0", cases[i].last_ms);
        j = judge_by(cases[i].now_ms, true);
        ck_assert_int_eq(j.state, cases[i].state);
        teardown();
    }
}
END_TEST

/* Few samples before and after a moment leave time to be elsewhere in between. */
START_TEST(a_pause_is_covered_by_many_samples)
{
    struct ft_judgement j;

    setup();
    sample("super1", "a0", "b0", 1000);
    sample("super1", "a0", "b0", 4000);
    j = judge(4000);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    ck_assert(ft_evidence_covers(&ev, t, &known, 2000, 0, 2));
    ck_assert(!ft_evidence_covers(&ev, t, &known, 2000, 0, 3));
    ck_assert(!ft_evidence_covers(&ev, t, &known, 5000, 0, 2));
    teardown();
}
END_TEST

static uint32_t links_of(bool verify, uint8_t past, unsigned slot)
{
    struct ft_judging by = {
        .t = t, .trust = &trust, .verify = verify, .src_nic = 0, .dst_nic = 1, .now_ms = 40000};

    return ft_evidence_links(&ev, &by, &known, past, slot);
}

/* The links that a flow took for certain in a window are those on which it was sampled in it; what
 * they imply counts where nobody samples. */
START_TEST(a_window_has_the_links_on_which_the_flow_was_sampled)
{
    struct ft_judgement j;

    setup();
    confirm_all();
    all_sample(30000);
    sample("super1", "a0", "b0", 30000);
    sample("leaf0", "h0", "a0", 30000);
    sample("leaf1", "b0", "h1", 30000);
    j = judge_by(30000, true);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    ck_assert_uint_eq(links_of(true, FT_PRESENT, 0), 0x1f);
    ck_assert_uint_eq(links_of(true, FT_PRESENT, 1), 0);
    ck_assert_uint_eq(links_of(true, 7, 0), 0);
    ev.size ? (ev.list[0].past = 7) : (ev.own[0].past = 7);
    /* Without the super: what leaf0 sent, what leaf1 got and handed to the host. */
    ck_assert_uint_eq(links_of(true, FT_PRESENT, 0), 0x19);
    ck_assert_uint_eq(links_of(true, 7, 0), 0x16);
    ck_assert_uint_eq(links_of(false, 7, 0), 0x1f);
    ck_assert_uint_eq(links_of(false, FT_PRESENT, 0), 0x19);
    teardown();
}
END_TEST

/* Single samples one soon after the other: which of them are of the present path is not known. */
START_TEST(samples_that_do_not_overlap_are_not_certain_together)
{
    struct ft_judgement j;

    setup();
    all_sample(1000);
    confirm_all();
    sample("leaf0", "h0", "a0", 1000);
    sample("leaf1", "b0", "h1", 1100);
    sample("super1", "a0", "b0", 900);
    sample("a0", "leaf0", "super1", 1200);
    j = judge_by(1300, true);
    ck_assert_int_eq(j.state, FT_PATH_RESOLVED);
    teardown();
    setup();
    all_sample(1000);
    sample("a0", "leaf0", "super1", 1000);
    sample("leaf1", "b0", "h1", 1100);
    j = judge_by(1300, true);
    ck_assert_int_eq(j.reason, FT_REASON_AMBIGUOUS);
    ck_assert_uint_eq(j.path.hops[1].in, FT_NONE);
    ck_assert_uint_eq(j.path.hops[4].in, port("leaf1", "b0"));
    teardown();
}
END_TEST

/* One end is enough where the link is confirmed, and none where it may be another way round. */
START_TEST(a_confirmed_link_needs_one_end)
{
    struct ft_judgement j;

    setup();
    all_sample(1000);
    confirm_all();
    sample("super1", "a0", "b0", 1000);
    j = judge_by(1000, true);
    /* leaf0 samples what it sends, so that a sample there will come. */
    ck_assert_int_eq(j.reason, FT_REASON_UNCONFIRMED);
    sample("leaf0", "h0", "a0", 1100);
    sample("b0", "super1", "leaf1", 1200);
    j = judge_by(1200, true);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    teardown();
}
END_TEST

/* Nobody ever samples at the supers: what the spines say of their own ends has to do. */
START_TEST(a_blind_switch_does_not_blind_the_rest)
{
    struct ft_judgement j;

    setup();
    all_sample(1000);
    trust.switches[6] = trust.switches[7] = (struct ft_switch_trust){INT64_MIN, INT64_MIN};
    sample("leaf0", "h0", "a0", 1000);
    sample("a0", "leaf0", "super1", 1000);
    sample("b0", "super1", "leaf1", 1000);
    sample("leaf1", "b0", "h1", 1000);
    j = judge_by(1000, true);
    ck_assert_int_eq(j.reason, FT_REASON_UNCONFIRMED);
    j = judge_by(6000, true);
    ck_assert_str_eq(over(&j), "a0 super1 b0");
    teardown();
}
END_TEST

/* A flow comes and goes between two spines. Where their cables are swapped this is how one path
 * looks: sampled at a leaf by one, and at the spine by the other. */
START_TEST(several_paths_at_once_cross_links_that_are_confirmed)
{
    for (int confirmed = 0; confirmed < 2; confirmed++) {
        struct ft_judgement j;
        int64_t ms;

        setup();
        all_sample(1000);
        if (confirmed)
            confirm_all();
        for (ms = 1000; ms < 20000; ms += 500) {
            sample("leaf0", "h0", ms / 500 & 1 ? "a0" : "a1", ms);
            j = judge_by(ms, true);
        }
        ck_assert(j.sprayed);
        ck_assert_int_eq(j.state, confirmed ? FT_PATH_MULTIPATH : FT_PATH_PARTIAL);
        ck_assert_int_eq(j.reason, confirmed ? FT_REASON_NONE : FT_REASON_UNCONFIRMED);
        /* Nobody samples what comes into the spines: then nothing could confirm it. */
        trust.switches[2].names_in_ms = trust.switches[3].names_in_ms = INT64_MIN;
        ck_assert_int_eq(judge_by(ms, true).state, FT_PATH_MULTIPATH);
        teardown();
    }
}
END_TEST

FT_UNIT_MAIN("judge, links", a_link_that_nobody_confirmed_needs_samples_of_both_ends,
             a_confirmed_link_needs_one_end, in_unquiet_times_links_are_sampled_of_late,
             in_unquiet_times_a_path_is_of_when_all_its_links_were_sampled,
             a_window_has_the_links_on_which_the_flow_was_sampled,
             where_links_may_be_lacking_samples_are_of_one_stretch,
             a_pause_is_covered_by_many_samples,
             samples_that_do_not_overlap_are_not_certain_together,
             a_blind_switch_does_not_blind_the_rest,
             several_paths_at_once_cross_links_that_are_confirmed)

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/evidence_impl.h"
#include "tests/unit/evidence_rig.h"

START_TEST(one_sample_anywhere_fixes_a_two_tier_path)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);

    for (uint32_t stage = 0; stage < 3; stage++) {
        for (uint32_t spine = 0; spine < SPINES; spine++) {
            struct ft_evidence ev;
            struct ft_judgement j;

            begin(&ev);
            sample(&ev, t, hop(t, stage, spine), 1000, 1);
            j = judge(&ev, t);
            assert_over(&j, t, spine);
            ft_evidence_free(&ev);
        }
    }
    ft_topology_free(t);
}
END_TEST

START_TEST(says_why_it_does_not_know)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_evidence ev;
    struct ft_judgement j;
    struct ft_hop wrong;
    struct ft_judging by;
    struct ft_seen unknown = {FT_SWITCH_UNKNOWN | 7, FT_NONE, FT_NONE, 0, 0, 0, false};
    int64_t before_ms;

    begin(&ev);
    j = judge(&ev, t);
    ck_assert_int_eq(j.state, FT_PATH_UNRESOLVED);
    ck_assert_int_eq(j.reason, FT_REASON_NO_SAMPLES);
    by = judging(t);
    by.src_nic = FT_NONE;
    ft_evidence_judge(&ev, &by, &j);
    ck_assert_int_eq(j.reason, FT_REASON_UNKNOWN_SOURCE);
    ck_assert_uint_eq(j.path.hop_count, 0);
    by = judging(t);
    by.dst_nic = FT_NONE;
    ft_evidence_judge(&ev, &by, &j);
    ck_assert_int_eq(j.reason, FT_REASON_UNKNOWN_DESTINATION);
    /* There is only one way, and yet nobody saw the flow take it. */
    by = judging(t);
    by.dst_nic = 1;
    ft_evidence_judge(&ev, &by, &j);
    ck_assert_int_eq(j.state, FT_PATH_UNRESOLVED);
    ck_assert_int_eq(j.reason, FT_REASON_NO_SAMPLES);

    ft_evidence_see(&ev, &unknown, INT64_MIN, &before_ms);
    j = judge(&ev, t);
    ck_assert_int_eq(j.reason, FT_REASON_UNKNOWN_SWITCH);
    ft_evidence_free(&ev);

    /* leaf1 is on no path from leaf0 to leaf2. */
    sample(&ev, t, (struct ft_hop){port(t, 1, 100), port(t, 1, 101)}, 0, 1);
    j = judge(&ev, t);
    ck_assert_int_eq(j.state, FT_PATH_UNRESOLVED);
    ck_assert_int_eq(j.reason, FT_REASON_OFF_PATH);
    ft_evidence_free(&ev);

    /* The source enters leaf0 by another port than the topology says. */
    wrong = hop(t, 0, 1);
    wrong.in = port(t, 0, 2);
    sample(&ev, t, wrong, 0, 50);
    j = judge(&ev, t);
    ck_assert_int_eq(j.state, FT_PATH_UNRESOLVED);
    ck_assert_int_eq(j.reason, FT_REASON_OFF_PATH);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* What was seen where no path leads any more does not hold against what is seen since. */
START_TEST(old_samples_off_the_path_are_set_aside)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_hop lost = hop(t, 0, 1);
    struct ft_evidence ev;
    struct ft_judgement j;

    begin(&ev);
    lost.in = port(t, 0, 2);
    sample(&ev, t, lost, 1000, 5);
    sample(&ev, t, (struct ft_hop){port(t, 1, 100), port(t, 1, 101)}, 1200, 5);
    sample(&ev, t, hop(t, 0, 3), 2000, 1);
    j = judge(&ev, t);
    ck_assert_int_eq(j.reason, FT_REASON_OFF_PATH);
    sample(&ev, t, hop(t, 0, 3), 3200, 1);
    j = judge(&ev, t);
    assert_over(&j, t, 3);
    /* It goes on: then something is wrong. */
    sample(&ev, t, lost, 3300, 1);
    j = judge(&ev, t);
    ck_assert_int_eq(j.reason, FT_REASON_OFF_PATH);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* Their way is forgotten. Who saw the flow without being known, and what is of the past, stand in
 * the way of nothing. */
START_TEST(samples_off_the_path_alone_are_set_aside)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_seen unknown = {FT_SWITCH_UNKNOWN | 7, FT_NONE, FT_NONE, 0, 3200, 3200, false};
    struct ft_hop lost = hop(t, 0, 1);
    struct ft_evidence ev;
    struct ft_judgement j;
    int64_t before_ms;

    begin(&ev);
    lost.in = port(t, 0, 2);
    sample(&ev, t, lost, 1000, 5);
    sample(&ev, t, (struct ft_hop){port(t, 1, 100), port(t, 1, 101)}, 1200, 5);
    sample(&ev, t, hop(t, 0, 3), 3200, 1);
    sample(&ev, t, hop(t, 1, 2), 3200, 1);
    ft_evidence_list(&ev)[3].past = 1;
    ck_assert_ptr_nonnull(ft_evidence_see(&ev, &unknown, INT64_MIN, &before_ms));
    j = judge(&ev, t);
    assert_over(&j, t, 3);
    ck_assert_int_eq(j.stray_ms, 1200);
    for (uint16_t i = 0; i < ev.count; i++)
        ck_assert_int_eq(j.stray[i], i < 2);
    ck_assert_uint_eq(ft_sighting_out(&ft_evidence_list(&ev)[0]), FT_NONE);
    ck_assert_uint_eq(ft_sighting_out(&ft_evidence_list(&ev)[2]), hop(t, 0, 3).out);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* A flow leaves a spine whose link is lost, and one exporter's last word of it comes after that.
 * When the link is back, the flow still has one path. */
START_TEST(a_link_that_comes_up_again_makes_no_second_path)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_topology *less = leafspine_without(LEAVES, SPINES, HOSTS, 0, 1);
    struct ft_evidence ev;
    struct ft_judgement j;

    begin(&ev);
    sample(&ev, less, hop(t, 0, 3), 0, 1);
    sample(&ev, less, hop(t, 0, 1), 2500, 5);
    j = judge(&ev, less);
    ck_assert_int_eq(j.reason, FT_REASON_OFF_PATH);
    for (int64_t ms = 100; ms <= 4500; ms += 100)
        sample(&ev, less, hop(t, 0, 3), ms, 1);
    j = judge(&ev, less);
    assert_over(&j, t, 3);
    for (int64_t ms = 4600; ms <= 12000; ms += 100) {
        sample(&ev, t, hop(t, 0, 3), ms, 1);
        j = judge(&ev, t);
        assert_over(&j, t, 3);
    }
    ft_evidence_free(&ev);
    ft_topology_free(less);
    ft_topology_free(t);
}
END_TEST

START_TEST(an_unknown_port_leaves_candidates)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_evidence ev;
    struct ft_judgement j;
    struct ft_hop h = hop(t, 0, 1);

    begin(&ev);
    h.out = FT_NONE;
    sample(&ev, t, h, 0, 10);
    j = judge(&ev, t);
    ck_assert_int_eq(j.state, FT_PATH_PARTIAL);
    ck_assert_int_eq(j.reason, FT_REASON_AMBIGUOUS);
    ck_assert_uint_eq(j.candidates, SPINES);
    ck_assert_uint_eq(j.path.hops[0].in, hop(t, 0, 1).in);
    ck_assert_uint_eq(j.path.hops[0].out, FT_NONE);
    ck_assert_uint_eq(j.path.hops[2].out, hop(t, 2, 1).out);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

START_TEST(a_change_is_believed_once_settled)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_evidence ev;
    struct ft_judgement j;

    begin(&ev);
    for (int64_t ms = 0; ms <= 10000; ms += 500)
        for (uint32_t stage = 0; stage < 3; stage++)
            sample(&ev, t, hop(t, stage, 1), ms, 1);
    j = judge(&ev, t);
    assert_over(&j, t, 1);
    /* Spine 3 from now on; its first sample says only that something changes. */
    sample(&ev, t, hop(t, 1, 3), 10500, 1);
    j = judge(&ev, t);
    ck_assert_int_eq(j.state, FT_PATH_PARTIAL);
    ck_assert_int_eq(j.reason, FT_REASON_CHANGING);
    ck_assert_uint_eq(j.candidates, 2);
    for (int64_t ms = 11000; ms < 12000; ms += 100)
        for (uint32_t stage = 0; stage < 3; stage++)
            sample(&ev, t, hop(t, stage, 3), ms, 1);
    j = judge(&ev, t);
    ck_assert_int_eq(j.reason, FT_REASON_CHANGING);
    sample(&ev, t, hop(t, 0, 3), 12100, 1);
    j = judge(&ev, t);
    assert_over(&j, t, 3);
    ck_assert(j.contradicted);
    /* What it sent until then stays of the old path, as long as its windows are open. */
    ck_assert_uint_eq(ft_evidence_samples_of(&ev, FT_PRESENT, 0, 0), 11);
    ck_assert_uint_eq(ft_evidence_samples_of(&ev, FT_PAST_NONE, 0, 0), 21);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* One exporter is a second late: its first word of the flow, about the old path, comes after
 * another's first word about the new one. */
START_TEST(a_late_word_of_the_old_path_is_no_second_path)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_evidence ev;
    struct ft_judgement j;

    begin(&ev);
    for (int64_t ms = 0; ms <= 10000; ms += 1000)
        sample(&ev, t, hop(t, 0, 1), ms, 1);
    sample(&ev, t, hop(t, 0, 3), 10200, 1);
    sample(&ev, t, hop(t, 2, 1), 11000, 1);
    j = judge(&ev, t);
    ck_assert_int_eq(j.reason, FT_REASON_CHANGING);
    for (int64_t ms = 11200; ms <= 15200; ms += 1000)
        sample(&ev, t, hop(t, 0, 3), ms, 1);
    j = judge(&ev, t);
    assert_over(&j, t, 3);
    ck_assert(j.contradicted);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* The same, where nothing was seen of the flow before it changed. */
START_TEST(a_late_word_alone_is_no_second_path)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_evidence ev;
    struct ft_judgement j;

    begin(&ev);
    sample(&ev, t, hop(t, 0, 3), 0, 1);
    sample(&ev, t, hop(t, 2, 1), 100, 1);
    sample(&ev, t, hop(t, 2, 1), 800, 1);
    for (int64_t ms = 200; ms <= 2700; ms += 100) {
        sample(&ev, t, hop(t, 0, 3), ms, 1);
        j = judge(&ev, t);
        ck_assert_int_eq(j.reason, FT_REASON_CHANGING);
    }
    for (int64_t ms = 2800; ms <= 9000; ms += 100) {
        sample(&ev, t, hop(t, 0, 3), ms, 1);
        j = judge(&ev, t);
        assert_over(&j, t, 3);
    }
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* A link goes down and up again, too soon for a flow of few packets to be sure of its other path;
 * that is seen at a leaf, or by which spine it is that samples. */
START_TEST(a_flow_that_comes_back_has_one_path)
{
    static const int64_t away_ms[] = {7000, 3000};
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);

    for (uint32_t stage = 0; stage < 2; stage++) {
        int64_t back_ms = 10000 + away_ms[stage];
        struct ft_evidence ev;
        struct ft_judgement j;

        begin(&ev);
        for (int64_t ms = 0; ms <= 60000; ms += 2000 - 1000 * stage) {
            sample(&ev, t, hop(t, stage, ms >= 10000 && ms < back_ms ? 3 : 1), ms, 1);
            ft_evidence_forget(&ev, ms - 20000);
            j = judge(&ev, t);
            ck_assert_int_ne(j.state, FT_PATH_MULTIPATH);
            if (ms < 10000 || ms >= back_ms + 5000)
                assert_over(&j, t, 1);
            else if (j.state == FT_PATH_RESOLVED)
                assert_over(&j, t, ms < back_ms ? 3 : 1);
        }
        ft_evidence_free(&ev);
    }
    ft_topology_free(t);
}
END_TEST

START_TEST(few_samples_do_not_make_a_change)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_evidence ev;
    struct ft_judgement j;

    begin(&ev);
    sample(&ev, t, hop(t, 0, 1), 0, 1);
    sample(&ev, t, hop(t, 0, 3), 20000, 2);
    sample(&ev, t, hop(t, 0, 3), 25000, 1);
    /* Three in a row on one of four paths happens to a sprayed flow too. */
    j = judge(&ev, t);
    ck_assert_int_eq(j.reason, FT_REASON_CHANGING);
    sample(&ev, t, hop(t, 0, 3), 26000, 2);
    j = judge(&ev, t);
    assert_over(&j, t, 3);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

static uint32_t dice(uint64_t *state, uint32_t sides)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % sides;
}

/* A packet is sampled at a random switch of its true path; each switch's exporter holds samples
 * back by up to 1.2 s; the path changes at random moments at least 12 s apart. Whatever is then
 * called resolved must have been the truth within the last seconds. */
START_TEST(what_is_resolved_was_true)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    uint64_t state = 20241120;
    uint32_t resolved = 0, changes = 0;

    for (int round = 0; round < 400; round++) {
        struct ft_evidence ev;
        uint32_t spine = dice(&state, SPINES), before = spine;
        int64_t changed_ms = 0, next_ms = 12000 + dice(&state, 20000);
        int64_t delay_ms[3] = {dice(&state, 1200), dice(&state, 1200), dice(&state, 1200)};
        int64_t step_ms = 50 + dice(&state, 500);

        begin(&ev);
        for (int64_t now = 0; now < 60000; now += step_ms) {
            uint32_t stage = dice(&state, 3);
            int64_t sent = now - delay_ms[stage];
            struct ft_judgement j;

            if (now >= next_ms) {
                before = spine;
                spine = dice(&state, SPINES);
                changed_ms = now;
                next_ms = now + 12000 + dice(&state, 20000);
                changes += spine != before;
            }
            sample(&ev, t, hop(t, stage, sent < changed_ms ? before : spine), now, 1);
            ft_evidence_forget(&ev, now - 30000);
            j = judge(&ev, t);
            ck_assert_int_ne(j.state, FT_PATH_MULTIPATH);
            if (j.state != FT_PATH_RESOLVED)
                continue;
            resolved++;
            if (j.path.hops[0].out == hop(t, 0, spine).out)
                continue;
            ck_assert_uint_eq(j.path.hops[0].out, hop(t, 0, before).out);
            ck_assert_int_lt(now - changed_ms, 4 * step_ms + 1200);
        }
        ft_evidence_free(&ev);
    }
    ck_assert_uint_gt(resolved, 10000);
    ck_assert_uint_gt(changes, 400);
    ft_topology_free(t);
}
END_TEST

FT_UNIT_MAIN("evidence", one_sample_anywhere_fixes_a_two_tier_path, says_why_it_does_not_know,
             old_samples_off_the_path_are_set_aside, samples_off_the_path_alone_are_set_aside,
             a_link_that_comes_up_again_makes_no_second_path, an_unknown_port_leaves_candidates,
             a_change_is_believed_once_settled, a_late_word_of_the_old_path_is_no_second_path,
             a_late_word_alone_is_no_second_path, a_flow_that_comes_back_has_one_path,
             few_samples_do_not_make_a_change, what_is_resolved_was_true)

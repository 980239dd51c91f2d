// SPDX-License-Identifier: Apache-2.0
/*
 * What is kept of samples as sightings, and what others ask of them besides the path.
 */
#include "config.h"

#include "lib/fabric/evidence_impl.h"
#include "tests/unit/evidence_rig.h"

/* A moment of these years: seconds are counted by it. */
#define MOMENT_MS INT64_C(1764000000000)

static struct ft_path path_over(const struct ft_topology *t, uint32_t spine)
{
    struct ft_path path = {.hop_count = 3};

    for (uint32_t stage = 0; stage < 3; stage++)
        path.hops[stage] = hop(t, stage, spine);
    return path;
}

/* Many samples of one second say no more than one of them. */
START_TEST(a_flow_that_stays_is_counted_once_a_second)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_evidence ev;

    begin(&ev);
    for (int64_t ms = 0; ms < 1000; ms += 100)
        sample(&ev, t, hop(t, 0, 1), MOMENT_MS + ms, 1);
    ck_assert_uint_eq(ev.stays, 0);
    sample(&ev, t, hop(t, 0, 1), MOMENT_MS + 1000, 1);
    ck_assert_uint_eq(ev.stays, 1);
    ck_assert_uint_eq(ev.returns, 0);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* The volume of either open window keeps evidence of the past, and its end takes none of the
 * present. */
START_TEST(the_past_is_kept_for_its_volume)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);

    for (uint32_t slot = 0; slot < 2; slot++) {
        struct ft_evidence ev;

        begin(&ev);
        sample(&ev, t, hop(t, 0, 1), 1000, 0);
        sample(&ev, t, hop(t, 0, 2), 2000, 0);
        ft_evidence_list(&ev)[0].past = ft_evidence_list(&ev)[1].past = 3;
        ft_sighting_set_samples(&ft_evidence_list(&ev)[1], slot, 1);
        sample(&ev, t, hop(t, 0, 3), 3000, 0);
        ck_assert(!ft_evidence_forget(&ev, 0));
        ck_assert_uint_eq(ev.count, 2);
        ck_assert_uint_eq(ft_sighting_out(&ft_evidence_list(&ev)[0]), hop(t, 0, 2).out);
        ck_assert_uint_eq(ft_sighting_out(&ft_evidence_list(&ev)[1]), hop(t, 0, 3).out);
        ft_evidence_free(&ev);
    }
    ft_topology_free(t);
}
END_TEST

START_TEST(what_was_on_no_part_of_the_path_left_is_of_no_path)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_path path = path_over(t, 1);
    struct ft_left left = {t, &path, 7};
    struct ft_judgement j = {.past = {true, true, true, false}};
    struct ft_evidence ev;

    begin(&ev);
    sample(&ev, t, hop(t, 0, 1), 1000, 1);
    sample(&ev, t, hop(t, 1, 2), 2000, 1);
    sample(&ev, t, hop(t, 2, 1), 3000, 1);
    sample(&ev, t, hop(t, 1, 3), 4000, 1);
    ft_evidence_apply(&ev, &j, &left);
    ck_assert_uint_eq(ft_evidence_list(&ev)[0].past, 7);
    ck_assert_uint_eq(ft_evidence_list(&ev)[1].past, FT_PAST_NONE);
    ck_assert_uint_eq(ft_evidence_list(&ev)[2].past, 7);
    ck_assert_uint_eq(ft_evidence_list(&ev)[3].past, FT_PRESENT);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* Those that do not name the egress may have taken it. */
START_TEST(samples_at_a_hop_are_those_of_its_switch)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_hop mute = {port(t, 0, 1), FT_NONE}, at = hop(t, 0, 1);
    struct ft_evidence ev;
    uint64_t here, by_hop;

    begin(&ev);
    sample(&ev, t, hop(t, 1, 1), 1000, 100);
    sample(&ev, t, hop(t, 0, 2), 1000, 5);
    sample(&ev, t, mute, 1000, 2);
    sample(&ev, t, hop(t, 0, 1), 1000, 3);
    ft_sighting_set_samples(&ft_evidence_list(&ev)[3], 1, 10);
    sample(&ev, t, hop(t, 0, 3), 1000, 50);
    ft_evidence_list(&ev)[4].past = 1;
    ft_evidence_at_hop(&ev, t, &at, &here, &by_hop);
    ck_assert_uint_eq(here, 20);
    ck_assert_uint_eq(by_hop, 15);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* The link to the host is none of those that a path chooses. */
START_TEST(links_are_attested_from_either_end)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_path path = path_over(t, 1);
    struct ft_hop last = hop(t, 2, 1);
    struct ft_evidence ev;
    int64_t first_ms, last_ms;

    begin(&ev);
    ft_evidence_attested(&ev, t, &path, &first_ms, &last_ms);
    ck_assert_int_eq(first_ms, INT64_MAX);
    ck_assert_int_eq(last_ms, INT64_MIN);
    sample(&ev, t, (struct ft_hop){FT_NONE, last.out}, 9000, 1);
    ft_evidence_attested(&ev, t, &path, &first_ms, &last_ms);
    ck_assert_int_eq(first_ms, INT64_MAX);
    ck_assert_int_eq(last_ms, INT64_MIN);
    sample(&ev, t, hop(t, 0, 1), 1000, 1);
    ft_evidence_attested(&ev, t, &path, &first_ms, &last_ms);
    ck_assert_int_eq(first_ms, 1000);
    ck_assert_int_eq(last_ms, 1000);
    sample(&ev, t, last, 3000, 1);
    ft_evidence_attested(&ev, t, &path, &first_ms, &last_ms);
    ck_assert_int_eq(first_ms, 1000);
    ck_assert_int_eq(last_ms, 3000);
    ft_evidence_free(&ev);

    /* Below one leaf it is the only one. */
    path = (struct ft_path){.hop_count = 1, .hops = {{port(t, 0, 1), port(t, 0, 2)}}};
    sample(&ev, t, path.hops[0], 5000, 1);
    ft_evidence_attested(&ev, t, &path, &first_ms, &last_ms);
    ck_assert_int_eq(first_ms, 5000);
    ck_assert_int_eq(last_ms, 5000);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* What an exporter that nobody knows saw says neither. */
START_TEST(a_window_agrees_with_a_path_or_differs)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_path path = path_over(t, 1);
    struct ft_seen unknown = {FT_SWITCH_UNKNOWN | 7, FT_NONE, FT_NONE, 0, 1000, 1000, false};
    struct ft_evidence ev;
    int64_t before_ms;

    begin(&ev);
    ft_sighting_set_samples(ft_evidence_see(&ev, &unknown, INT64_MIN, &before_ms), 0, 1);
    ck_assert(!ft_evidence_agrees(&ev, t, &path, 0));
    ck_assert(!ft_evidence_differs(&ev, t, &path, 0));
    sample(&ev, t, hop(t, 1, 1), 1000, 1);
    ck_assert(ft_evidence_agrees(&ev, t, &path, 0));
    ck_assert(!ft_evidence_agrees(&ev, t, &path, 1));
    ck_assert(!ft_evidence_differs(&ev, t, &path, 0));
    sample(&ev, t, hop(t, 1, 2), 2000, 1);
    ck_assert(!ft_evidence_agrees(&ev, t, &path, 0));
    ck_assert(ft_evidence_differs(&ev, t, &path, 0));
    ck_assert(!ft_evidence_differs(&ev, t, &path, 1));
    /* The flow has left it: it is not on it now, and was in this window. */
    ft_evidence_list(&ev)[2].past = 1;
    ck_assert(!ft_evidence_agrees(&ev, t, &path, 0));
    ck_assert(!ft_evidence_differs(&ev, t, &path, 0));
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* leaf0 and spine0 are joined by an aggregate of two links. */
static struct ft_topology *with_aggregate(void)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology_builder *b = ft_topology_builder_new("lab");
    struct ft_topology *t;
    uint32_t lag;

    for (uint32_t l = 0; l < 2; l++)
        leafspine_switch(b, "leaf", l, l, diag);
    leafspine_switch(b, "spine", 0, 2, diag);
    ft_topology_add_link(b, "leaf0", "up1", "spine0", "a1", diag);
    ft_topology_add_link(b, "leaf0", "up2", "spine0", "a2", diag);
    ft_topology_add_link(b, "leaf1", "up1", "spine0", "b1", diag);
    lag = ft_topology_add_lag(b, 2, "po1", 900, diag);
    ft_topology_add_member(b, lag, "a1", diag);
    ft_topology_add_member(b, lag, "a2", diag);
    for (uint32_t l = 0; l < 2; l++) {
        uint32_t nic =
            ft_topology_add_nic(b, ft_topology_add_host(b, l ? "h1" : "h0", diag), FT_NONE, diag);

        ft_topology_attach(b, nic, l ? "leaf1" : "leaf0", "host", diag);
    }
    t = ft_topology_build(b, diag);
    ck_assert_msg(t != NULL, "%s", ft_diag_text(diag, 0));
    ft_topology_builder_free(b);
    ft_diag_free(diag);
    return t;
}

/* Others moved elsewhere: what came in by an aggregate is judged as before. */
START_TEST(samples_that_name_an_aggregate_are_in_no_doubt_by_its_members)
{
    struct ft_topology *t = with_aggregate();
    uint32_t po1 = ft_topology_find_lag(t, 2, "po1"), b1 = ft_topology_find_port(t, 2, "b1");
    struct ft_trust trust;
    struct ft_evidence ev;
    struct ft_seen seen = {2, po1, b1, 0, 1000, 1000, false};
    struct ft_judging by = {
        .t = t, .trust = &trust, .policy = policy, .src_nic = 0, .dst_nic = 1, .now_ms = 90000};
    struct ft_judgement j;
    int64_t before_ms;

    ck_assert(ft_is_lag(po1));
    ck_assert_int_eq(ft_trust_init(&trust, t), 0);
    begin(&ev);
    ck_assert_ptr_nonnull(ft_evidence_see(&ev, &seen, INT64_MIN, &before_ms));
    ft_trust_mark_uncertain(&trust, ft_topology_find_port(t, 1, "host"), 50000);
    ft_evidence_judge(&ev, &by, &j);
    ck_assert_int_eq(j.state, FT_PATH_PARTIAL);
    ck_assert_int_eq(j.reason, FT_REASON_AMBIGUOUS);
    ck_assert_uint_eq(j.candidates, 2);
    ck_assert_uint_eq(j.path.hops[1].in, po1);
    ck_assert_uint_eq(j.path.hops[1].out, b1);
    ft_evidence_free(&ev);
    ft_trust_free(&trust);
    ft_topology_free(t);
}
END_TEST

/* The variance is the sum of rate x rate x length x length over the samples: as many at one rate,
 * worked out by hand, are (sum of rates)^2 / sum of rates^2. */
START_TEST(samples_of_two_rates_count_by_their_error)
{
    static const struct {
        uint32_t samples[3], rate[3];
        uint32_t as_many;
    } cases[] = {
        {{100, 50, 7}, {100, 100, 100}, 157}, /* of one rate: their number */
        {{10, 100}, {1000, 100}, 36},         /* 20,000^2 / 11,000,000 = 36.4 */
        {{100, 10}, {100, 1000}, 36},
        {{100, 1}, {100, 100000}, 1}, /* 110,000^2 / 10,001,000,000 = 1.2 */
        {{16, 1}, {1, 16}, 4},        /* 32^2 / 272 = 3.8 */
        {{40, 40}, {2000, 1000}, 72}, /* 120,000^2 / 200,000,000 */
        {{40, 20, 20}, {2000, 1000, 1000}, 72},
        {{20, 40, 20}, {1000, 2000, 1000}, 72},
        {{5, 5}, {0, 1000}, 10}, /* nobody says what those stand for */
    };

    for (unsigned slot = 0; slot < 2; slot++)
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            struct ft_sighting s = {.period = 0};
            uint64_t bytes = 0, packets = 0;

            for (int k = 0; k < 3 && cases[i].samples[k]; k++) {
                uint64_t stands = (uint64_t)cases[i].samples[k] * cases[i].rate[k];

                ft_sighting_add(&s, slot, stands, cases[i].samples[k], 1000 * stands);
                packets += stands;
                bytes += 1000 * stands;
            }
            ck_assert_uint_eq(ft_sighting_bytes(&s, slot), bytes);
            ck_assert_uint_eq(ft_sighting_bytes(&s, !slot), 0);
            ck_assert_msg(abs((int)ft_sighting_samples(&s, slot) - (int)cases[i].as_many) <=
                              (i > 5),
                          "case %zu: %u", i, ft_sighting_samples(&s, slot));
            /* What a sample stands for then is what all do, in as many parts. */
            if (packets && cases[i].rate[0])
                ck_assert_double_eq_tol(ft_sighting_period(&s) * ft_sighting_samples(&s, slot),
                                        (double)packets, 0.15 * (double)packets);
        }
}
END_TEST

FT_UNIT_MAIN("sightings", samples_of_two_rates_count_by_their_error,
             a_flow_that_stays_is_counted_once_a_second, the_past_is_kept_for_its_volume,
             what_was_on_no_part_of_the_path_left_is_of_no_path,
             samples_at_a_hop_are_those_of_its_switch, links_are_attested_from_either_end,
             a_window_agrees_with_a_path_or_differs,
             samples_that_name_an_aggregate_are_in_no_doubt_by_its_members)

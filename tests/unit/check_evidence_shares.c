// SPDX-License-Identifier: Apache-2.0
/*
 * How much of a flow goes over which path, and how often its packets were sampled.
 */
#include "config.h"

#include "lib/fabric/volume.h"
#include "tests/unit/evidence_rig.h"
#include "tests/unit/wide_pods.h"

START_TEST(spraying_is_multipath_with_shares)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_path_share shares[8];
    struct ft_evidence ev;
    struct ft_judgement j;
    double sum = 0;
    size_t n;

    begin(&ev);
    for (int64_t ms = 0; ms < 20000; ms += 100)
        for (uint32_t stage = 0; stage < 3; stage++)
            sample(&ev, t, hop(t, stage, (uint32_t)(ms / 100 % 10) < 7 ? 0 : 2), ms, 1);
    j = judge(&ev, t);
    ck_assert_int_eq(j.state, FT_PATH_MULTIPATH);
    n = ft_evidence_shares(&ev, t, SRC, DST, FT_SLOTS_BOTH, shares, 8);
    ck_assert_uint_eq(n, 2);
    for (size_t i = 0; i < n; i++) {
        sum += shares[i].share;
        ck_assert_double_eq_tol(shares[i].share,
                                shares[i].path.hops[0].out == hop(t, 0, 0).out ? 0.7 : 0.3, 1e-9);
    }
    ck_assert_double_eq_tol(sum, 1, 1e-9);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* No switch sees more than one of the paths. */
START_TEST(spraying_is_seen_where_spines_alone_sample)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_evidence ev;
    struct ft_judgement j;

    begin(&ev);
    for (int64_t ms = 0; ms < 8000; ms += 100) {
        sample(&ev, t, hop(t, 1, (uint32_t)(ms / 100 % SPINES)), ms, 1);
        j = judge(&ev, t);
        ck_assert(ms == 0 || j.state == FT_PATH_MULTIPATH || j.reason == FT_REASON_CHANGING);
    }
    ck_assert_int_eq(j.state, FT_PATH_MULTIPATH);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

START_TEST(forgets_what_is_old)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_evidence ev;
    struct ft_judgement j;

    begin(&ev);
    sample(&ev, t, hop(t, 0, 1), 1000, 5);
    sample(&ev, t, hop(t, 0, 2), 9000, 1);
    ck_assert(!ft_evidence_forget(&ev, 1000));
    ck_assert(ft_evidence_forget(&ev, 1001));
    j = judge(&ev, t);
    assert_over(&j, t, 2);
    ck_assert(ft_evidence_forget(&ev, 10000));
    j = judge(&ev, t);
    ck_assert_int_eq(j.reason, FT_REASON_NO_SAMPLES);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

START_TEST(volume_is_of_the_best_sampled_point)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_evidence ev;
    struct ft_sighting *s;
    struct ft_volume volume;
    int64_t before_ms;

    begin(&ev);
    sample(&ev, t, hop(t, 0, 1), 0, 40);
    sample(&ev, t, hop(t, 0, 2), 0, 30);
    sample(&ev, t, hop(t, 1, 1), 0, 60);
    /* The same packets once more, where they leave leaf0. */
    s = ft_evidence_see(&ev,
                        &(struct ft_seen){0, hop(t, 0, 1).in, hop(t, 0, 1).out, 2, 0, 0, false},
                        INT64_MIN, &before_ms);
    ft_sighting_set_samples(s, 0, 38);
    ft_sighting_set_bytes(s, 0, 38000);
    volume = ft_volume_best(&ev, 0);
    ck_assert_uint_eq(volume.samples, 70);
    ck_assert_uint_eq(volume.bytes, 70000);
    ck_assert_uint_eq(ft_volume_best(&ev, 1).samples, 0);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

static void seen_by(struct ft_evidence *ev, uint32_t source, uint32_t in, uint32_t out,
                    uint32_t samples)
{
    int64_t before_ms;
    struct ft_sighting *s = ft_evidence_see(ev, &(struct ft_seen){0, in, out, source, 0, 0, false},
                                            INT64_MIN, &before_ms);

    ft_sighting_set_samples(s, 0, samples);
    ft_sighting_set_bytes(s, 0, samples * 1000);
}

/* Two sources at one switch, in and out; which packets they share decides what adds up. */
START_TEST(no_packet_counts_twice)
{
    static const struct {
        uint32_t source, in, out, samples;
    } cases[][4] = {
        /* At entry and at exit. */
        {{1, 10, 20, 40}, {2, 10, 20, 45}},
        /* Where each names its own port alone. */
        {{1, 10, FT_NONE, 40}, {2, FT_NONE, 20, 45}},
        /* At both ends, over two ports. */
        {{1, 10, 20, 30}, {1, 10, 21, 20}, {2, 10, 20, 28}, {2, 10, 21, 22}},
        /* Line cards that sample what enters by their ports, or what leaves. */
        {{1, 10, 20, 30}, {2, 11, 20, 20}},
        {{1, 10, 20, 30}, {2, 10, 21, 20}},
        /* One does both, the other one end. */
        {{1, 10, 20, 30}, {1, 11, 20, 20}, {2, 11, 20, 19}},
        /* One source with ways that it names in part. */
        {{1, 10, 20, 30}, {1, FT_NONE, 20, 7}},
    };
    static const uint64_t expected[] = {45, 45, 52, 50, 50, 50, 37};
    static const uint32_t most[] = {2, 2, 1, 1, 1, 1, 1};

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct ft_evidence ev;
        struct ft_volume volume;

        begin(&ev);
        for (int i = 0; i < 4 && cases[c][i].source; i++)
            seen_by(&ev, cases[c][i].source, cases[c][i].in, cases[c][i].out, cases[c][i].samples);
        volume = ft_volume_best(&ev, 0);
        ck_assert_uint_eq(volume.samples, expected[c]);
        ck_assert_uint_eq(volume.bytes, expected[c] * 1000);
        ck_assert_uint_eq(volume.source, most[c]);
        ft_evidence_free(&ev);
    }
}
END_TEST

START_TEST(shares_count_no_packet_twice)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_path_share shares[8];
    struct ft_evidence ev;
    int64_t before_ms;
    size_t n;

    begin(&ev);
    for (int64_t ms = 0; ms < 20000; ms += 100) {
        struct ft_hop h = hop(t, 0, ms / 100 % 10 < 7 ? 0 : 2);

        sample(&ev, t, h, ms, 1);
        /* The card behind one of the two ports samples what leaves by it once more. */
        if (ms / 100 % 10 >= 7)
            ft_sighting_add_samples(
                ft_evidence_see(&ev, &(struct ft_seen){0, h.in, h.out, 5, ms, ms, false}, INT64_MIN,
                                &before_ms),
                0, 1);
    }
    n = ft_evidence_shares(&ev, t, SRC, DST, FT_SLOTS_BOTH, shares, 8);
    ck_assert_uint_eq(n, 2);
    for (size_t i = 0; i < n; i++)
        ck_assert_double_eq_tol(shares[i].share,
                                shares[i].path.hops[0].out == hop(t, 0, 0).out ? 0.7 : 0.3, 1e-9);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

static void wide_sample(struct ft_evidence *ev, const struct ft_topology *t, uint32_t at,
                        uint32_t from, uint32_t to, uint32_t samples)
{
    int64_t before_ms;
    struct ft_sighting *s =
        ft_evidence_see(ev,
                        &(struct ft_seen){at, from == FT_NONE ? from : wide_port(t, at, from),
                                          wide_port(t, at, to), 0, 1000, 1000, false},
                        INT64_MIN, &before_ms);

    ck_assert_ptr_nonnull(s);
    ft_sighting_add_samples(s, 0, samples);
}

/* Of each uplink of leaf a its part, and no hop beyond the link. */
static void check_uplinks(const struct ft_evidence *ev, const struct ft_topology *t,
                          const double *parts, bool leaf_sampled)
{
    struct ft_path_share shares[64];
    size_t n = ft_evidence_shares(ev, t, 0, 1, FT_SLOTS_BOTH, shares, 64);

    ck_assert_uint_eq(n, WIDE_SPINES);
    for (uint32_t s = 0; s < WIDE_SPINES; s++) {
        const struct ft_path *p = &shares[s].path;

        ck_assert_double_eq_tol(shares[s].share, parts[s], 1e-9);
        ck_assert_uint_eq(p->hop_count, 5);
        ck_assert_uint_eq(p->hops[0].in == FT_NONE, !leaf_sampled);
        ck_assert_uint_eq(p->hops[0].out, wide_port(t, wide_leaf(0), wide_spine(0, s)));
        ck_assert_uint_eq(p->hops[1].in, wide_port(t, wide_spine(0, s), wide_leaf(0)));
        ck_assert_uint_eq(p->hops[1].out, FT_NONE);
        for (uint32_t h = 2; h < 5; h++)
            ck_assert(p->hops[h].in == FT_NONE && p->hops[h].out == FT_NONE);
    }
}

/* 128 paths, of which 64 have room: those would pass for all. */
START_TEST(shares_of_too_many_paths_are_of_their_first_links)
{
    const double parts[WIDE_SPINES] = {0.4, 0.3, 0.2, 0.1};
    struct ft_topology *t = wide_pods();
    struct ft_evidence leaf, spines;

    begin(&leaf);
    begin(&spines);
    for (uint32_t s = 0; s < WIDE_SPINES; s++) {
        wide_sample(&leaf, t, wide_leaf(0), WIDE_HOST - 1, wide_spine(0, s), 1000 * (4 - s));
        for (uint32_t i = 0; i < WIDE_SUPERS; i++) {
            wide_sample(&leaf, t, wide_spine(0, s), wide_leaf(0), wide_super(s, i), 1);
            wide_sample(&spines, t, wide_spine(0, s), wide_leaf(0), wide_super(s, i), 4 - s);
        }
    }
    check_uplinks(&leaf, t, parts, true);
    check_uplinks(&spines, t, parts, false);
    ft_evidence_free(&leaf);
    ft_evidence_free(&spines);
    ft_topology_free(t);
}
END_TEST

/* Samples that do not name the links that there are too many paths by say nothing of any path. */
START_TEST(shares_of_too_many_paths_need_a_link)
{
    struct ft_topology *t = wide_pods();
    struct ft_path_share shares[64];
    struct ft_evidence ev;

    begin(&ev);
    for (uint32_t s = 0; s < WIDE_SPINES; s++)
        for (uint32_t i = 0; i < WIDE_SUPERS; i++)
            wide_sample(&ev, t, wide_spine(0, s), FT_NONE, wide_super(s, i), 1);
    ck_assert_uint_eq(ft_evidence_shares(&ev, t, 0, 1, FT_SLOTS_BOTH, shares, 64), 0);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

START_TEST(too_many_labels_are_refused)
{
    struct ft_evidence ev;
    int64_t before_ms;

    begin(&ev);
    for (uint32_t i = 0; i < FT_SIGHTINGS_MAX + 10; i++)
        ck_assert(!!ft_evidence_see(&ev, &(struct ft_seen){i, i, i, 0, 0, 0, false}, INT64_MIN,
                                    &before_ms) == (i < FT_SIGHTINGS_MAX));
    ft_evidence_free(&ev);
}
END_TEST

/* As many as there may be are no reason to forget any. */
START_TEST(what_is_new_is_kept_however_much_it_is)
{
    struct ft_evidence ev;
    int64_t before_ms;

    begin(&ev);
    for (uint32_t i = 0; i < FT_SIGHTINGS_MAX; i++)
        ft_evidence_see(&ev, &(struct ft_seen){i, i, i, 0, 5000, 5000 + i, false}, INT64_MIN,
                        &before_ms);
    ck_assert(!ft_evidence_forget(&ev, 5000));
    ck_assert_uint_eq(ev.count, FT_SIGHTINGS_MAX);
    ck_assert(ft_evidence_forget(&ev, 5001));
    ck_assert_uint_eq(ev.count, FT_SIGHTINGS_MAX - 1);
    ft_evidence_free(&ev);
}
END_TEST

/* Each window's sum has its own bits, and stays at the most that fits. */
START_TEST(volumes_of_two_windows_do_not_touch)
{
    struct ft_sighting s = {.last_ms = INT64_C(1) << 42, .past = FT_PAST_NONE, .counts = {1, 2}};

    ck_assert_uint_eq(sizeof(s), 44);
    ft_sighting_add_bytes(&s, 0, UINT64_C(0x123456789abc));
    ft_sighting_add_bytes(&s, 1, UINT64_C(0xffffffff));
    ft_sighting_add_bytes(&s, 1, 1);
    ck_assert_uint_eq(ft_sighting_bytes(&s, 0), UINT64_C(0x123456789abc));
    ck_assert_uint_eq(ft_sighting_bytes(&s, 1), UINT64_C(0x100000000));
    ft_sighting_add_bytes(&s, 1, UINT64_MAX);
    ft_sighting_add_bytes(&s, 1, 1);
    ck_assert_uint_eq(ft_sighting_bytes(&s, 1), FT_SIGHTING_BYTES_MAX);
    ft_sighting_set_bytes(&s, 1, 0);
    ck_assert_uint_eq(ft_sighting_bytes(&s, 1), 0);
    ck_assert_uint_eq(ft_sighting_bytes(&s, 0), UINT64_C(0x123456789abc));
    ck_assert_int_eq(s.last_ms, INT64_C(1) << 42);
    ck_assert_uint_eq(s.past, FT_PAST_NONE);
}
END_TEST

static void check_hop(uint32_t switch_id, uint32_t in, uint32_t out)
{
    struct ft_sighting s = {.last_ms = 1, .seconds = 0xa5};

    ft_sighting_set_hop(&s, switch_id, in, out);
    ck_assert_uint_eq(ft_sighting_switch(&s), switch_id);
    ck_assert_uint_eq(ft_sighting_in(&s), in);
    ck_assert_uint_eq(ft_sighting_out(&s), out);
    ck_assert_uint_eq(s.seconds, 0xa5);
    ck_assert_int_eq(s.last_ms, 1);
    ck_assert_uint_eq(s.past, FT_PRESENT);
    ck_assert_uint_eq(s.source, 0);
}

/* Ports, aggregates and what is neither; and switches that nobody knows, by all of their number. */
START_TEST(hops_and_seconds_do_not_touch)
{
    const uint32_t last = FT_LAG_BIT - 1, lag = FT_LAG_BIT | (FT_LAG_BIT - 2);

    check_hop(0, 0, last);
    check_hop(16383, last, 0);
    check_hop(1, lag, FT_LAG_BIT);
    check_hop(1, FT_LAG_BIT, lag);
    check_hop(2, FT_NONE, FT_NONE);
    check_hop(FT_SWITCH_UNKNOWN, FT_NONE, FT_NONE);
    check_hop(FT_SWITCH_UNKNOWN | 0x7fffffff, FT_NONE, FT_NONE);
    check_hop(FT_SWITCH_UNKNOWN | 0x12345678, FT_NONE, FT_NONE);
}
END_TEST

FT_UNIT_MAIN("evidence, shares", spraying_is_multipath_with_shares,
             spraying_is_seen_where_spines_alone_sample, forgets_what_is_old,
             volume_is_of_the_best_sampled_point, no_packet_counts_twice,
             shares_count_no_packet_twice, shares_of_too_many_paths_are_of_their_first_links,
             shares_of_too_many_paths_need_a_link, too_many_labels_are_refused,
             what_is_new_is_kept_however_much_it_is, volumes_of_two_windows_do_not_touch,
             hops_and_seconds_do_not_touch)

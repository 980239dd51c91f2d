// SPDX-License-Identifier: Apache-2.0
/* What was learnt of switches and links that are no longer in the topology: how long it stays, and
 * for whom it makes room. */
#include "config.h"

#include "daemon/hashes/hashes.h"
#include "lib/fabric/hash_model.h"

#include "tests/unit/join_rig.h"

#define HOUR_MS INT64_C(3600000)

static struct ft_hashes *hashes;
static struct join_rig rig;

/* One flow, sampled by the leaf that sends it to one of so many spines; outer: in a tunnel, whose
 * header is learnt from in a set of its own. */
static void learn(uint32_t spines, bool outer)
{
    const struct ft_observed_rest rest = {.has_outer = outer,
                                          .outer = {.src = ft_ip4((uint8_t[4]){10, 255, 0, 1}),
                                                    .dst = ft_ip4((uint8_t[4]){10, 255, 0, 2}),
                                                    .sport = 7,
                                                    .dport = 4789,
                                                    .proto = FT_PROTO_UDP}};
    struct ft_observation o = join_rig_seen(77, 0, 1000000, 5);

    join_rig_open_wide(&rig, spines);
    o.rest = &rest;
    join_rig_take(&rig, &o);
    join_rig_seal(&rig);
    ck_assert_int_eq(join_rig_flow(&rig, 77)->state, FT_PATH_RESOLVED);
    ft_hashes_begin(hashes, rig.t, JOIN_RIG_END_MS);
    ft_hashes_flow(hashes, rig.join, join_rig_flow(&rig, 77), JOIN_RIG_START_MS);
    join_rig_close(&rig);
}

/* A switch of another name alone. */
static struct ft_topology *elsewhere(void)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology_builder *b = ft_topology_builder_new("lab");
    struct ft_topology *t;

    ck_assert_uint_eq(ft_topology_add_switch(b, "other", FT_TIER_LEAF, diag), 0);
    t = ft_topology_build(b, diag);
    ck_assert_msg(t != NULL, "%s", ft_diag_text(diag, 0));
    ft_topology_builder_free(b);
    ft_diag_free(diag);
    return t;
}

static size_t count_at(const struct ft_topology *t, int64_t ms)
{
    ft_hashes_begin(hashes, t, JOIN_RIG_END_MS + ms);
    return ft_hashes_count(hashes);
}

/* A day, in which it may return. */
START_TEST(a_switch_that_left_is_forgotten)
{
    struct ft_topology *here = leafspine(2, 2, 2), *other = elsewhere();

    hashes = ft_hashes_new(16, 1);
    learn(2, true);
    ck_assert_uint_eq(ft_hashes_count(hashes), 2);
    ck_assert_uint_eq(count_at(here, 100 * HOUR_MS), 2);
    ck_assert_uint_eq(count_at(other, 101 * HOUR_MS), 2);
    ck_assert_uint_eq(count_at(here, 102 * HOUR_MS), 2);
    /* It was there meanwhile: the time begins anew. */
    ck_assert_uint_eq(count_at(other, 103 * HOUR_MS), 2);
    ck_assert_uint_eq(count_at(other, 127 * HOUR_MS - 1), 2);
    ck_assert_uint_eq(ft_hashes_removed(hashes), 0);
    /* That of the tunnels' headers goes with it. */
    ck_assert_uint_eq(count_at(other, 127 * HOUR_MS), 0);
    ck_assert_uint_eq(ft_hashes_removed(hashes), 2);
    learn(2, false);
    ck_assert_uint_eq(ft_hashes_count(hashes), 1);
    ft_hashes_free(hashes);
    ft_topology_free(here);
    ft_topology_free(other);
}
END_TEST

/* The switch stays, and the port, without one of the links; more of them change nothing. */
START_TEST(a_group_that_left_is_forgotten)
{
    struct ft_topology *less = leafspine_without(2, 3, 2, 0, 2), *more = leafspine(2, 4, 2);

    hashes = ft_hashes_new(16, 1);
    learn(3, false);
    ck_assert_uint_eq(count_at(more, 0), 1);
    ck_assert_uint_eq(count_at(more, 1000 * HOUR_MS), 1);
    ck_assert_uint_eq(count_at(less, 1001 * HOUR_MS), 1);
    ck_assert_uint_eq(count_at(less, 1025 * HOUR_MS), 0);
    ck_assert_uint_eq(ft_hashes_removed(hashes), 1);
    ft_hashes_free(hashes);
    ft_topology_free(less);
    ft_topology_free(more);
}
END_TEST

/* Who is there keeps its place, and what finds none is counted. */
START_TEST(where_it_is_full_those_that_left_make_room)
{
    struct ft_topology *less = leafspine(2, 2, 2);

    hashes = ft_hashes_new(1, 1);
    learn(2, false);
    learn(3, false);
    ck_assert_uint_eq(ft_hashes_refused(hashes), 1);
    ck_assert_uint_eq(ft_hashes_removed(hashes), 0);
    ft_hashes_free(hashes);
    hashes = ft_hashes_new(1, 1);
    learn(3, false);
    ck_assert_uint_eq(count_at(less, 1), 1);
    learn(2, false);
    ck_assert_uint_eq(ft_hashes_count(hashes), 1);
    ck_assert_uint_eq(ft_hashes_removed(hashes), 1);
    ck_assert_uint_eq(ft_hashes_refused(hashes), 0);
    /* The one that is there now. */
    ck_assert_uint_eq(count_at(less, 1000 * HOUR_MS), 1);
    ft_hashes_free(hashes);
    ft_topology_free(less);
}
END_TEST

/* Of as many links as are learnt there is a set; of more there is none, which is counted. */
START_TEST(more_links_than_are_learnt_are_counted)
{
    hashes = ft_hashes_new(16, 1);
    learn(FT_HASH_MEMBERS_MAX, false);
    ck_assert_uint_eq(ft_hashes_count(hashes), 1);
    ck_assert_uint_eq(ft_hashes_wide(hashes), 0);
    learn(FT_HASH_MEMBERS_MAX + 1, false);
    ck_assert_uint_eq(ft_hashes_count(hashes), 1);
    ck_assert_uint_eq(ft_hashes_wide(hashes), 1);
    ft_hashes_free(hashes);
}
END_TEST

FT_UNIT_MAIN("hashes_gone", a_switch_that_left_is_forgotten, a_group_that_left_is_forgotten,
             where_it_is_full_those_that_left_make_room, more_links_than_are_learnt_are_counted)

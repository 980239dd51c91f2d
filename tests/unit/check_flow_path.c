// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/flow_path.h"

#include <string.h>

#include "daemon/join/flow_follow.h"
#include "daemon/join/flow_parts.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define SPINES 2

static struct ft_topology *t, *cut;
static struct ft_flow flow;
static struct ft_path paths[SPINES]; /* of host 0 of leaf0 to that of leaf1 */

/* In the second topology the link from leaf0 to the first spine is gone, of which all ports stay.
 */
static void begin(void)
{
    t = leafspine(2, SPINES, 1);
    cut = leafspine_without(2, SPINES, 1, 0, 0);
    flow = (struct ft_flow){.src_nic = 0, .dst_nic = 1};
    ft_evidence_init(&flow.evidence);
    ck_assert_uint_eq(ft_paths_walk(t, 0, 1, NULL, NULL, paths, SPINES, SPINES), SPINES);
}

static void end(void)
{
    free(flow.parts);
    ft_topology_free(t);
    ft_topology_free(cut);
}

static void follow(const struct ft_topology *from, const struct ft_topology *to)
{
    struct ft_follow *f = ft_follow_new(from, to);

    ck_assert_ptr_nonnull(f);
    ft_flow_follow(&flow, f);
    ft_follow_free(f);
}

static void assert_path(const struct ft_topology *of, const struct ft_path *expected)
{
    struct ft_path path = ft_flow_path(of, &flow);

    ck_assert_uint_eq(path.hop_count, expected->hop_count);
    ck_assert_uint_eq(flow.path.hop_count, expected->hop_count);
    for (uint32_t h = 0; h < path.hop_count; h++) {
        ck_assert_uint_eq(path.hops[h].in, expected->hops[h].in);
        ck_assert_uint_eq(path.hops[h].out, expected->hops[h].out);
        ck_assert_uint_eq(flow.path.hops[h].out, expected->hops[h].out);
    }
}

START_TEST(a_path_follows_from_its_links)
{
    begin();
    assert_path(t, &(struct ft_path){.hop_count = 0});
    for (int i = 0; i < SPINES; i++) {
        ft_flow_set_path(t, &flow, &paths[i]);
        assert_path(t, &paths[i]);
        ck_assert_ptr_null(flow.parts);
    }
    end();
}
END_TEST

/* Where its link led is known no more to the topology, but it is of the path: diagnosis asks. */
START_TEST(a_path_whose_link_is_gone_is_kept_completely)
{
    begin();
    for (int i = 0; i < SPINES; i++) {
        ft_flow_set_path(t, &flow, &paths[i]);
        follow(t, cut);
        /* Ports are added in the same order. */
        assert_path(cut, &paths[i]);
        ck_assert_int_eq(ft_flow_part(&flow, FT_FLOW_PATH) != NULL,
                         ft_topology_port(cut, paths[i].hops[0].out)->peer == FT_NONE);
        follow(cut, t);
        assert_path(t, &paths[i]);
        ck_assert_ptr_null(ft_flow_part(&flow, FT_FLOW_PATH));
    }
    end();
}
END_TEST

/* As many sightings as a flow may have, all of one hop by different sources. */
START_TEST(sightings_follow_however_many_there_are)
{
    int64_t before_ms;

    begin();
    for (uint32_t i = 0; i < FT_SIGHTINGS_MAX; i++)
        ft_evidence_see(
            &flow.evidence,
            &(struct ft_seen){0, paths[1].hops[0].in, paths[1].hops[0].out, i, 1000, 1000, false},
            INT64_MIN, &before_ms);
    ck_assert_uint_eq(flow.evidence.count, FT_SIGHTINGS_MAX);
    follow(t, cut);
    ck_assert_uint_eq(flow.evidence.count, FT_SIGHTINGS_MAX);
    ft_evidence_free(&flow.evidence);
    end();
}
END_TEST

/* A judgement without samples says that a path is since ever. */
START_TEST(moments_keep_their_order)
{
    static const int64_t moments[] = {INT64_MIN, -1, 0, 1, INT64_C(1) << 42};

    for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
        flow.path_since_ms = ft_flow_moment(moments[i]);
        flow.published = 15;
        flow.learnt = true;
        ck_assert(i == 0 || flow.path_since_ms == moments[i]);
        ck_assert(i > 0 || flow.path_since_ms < moments[1]);
    }
}
END_TEST

FT_UNIT_MAIN("flow_path", a_path_follows_from_its_links,
             a_path_whose_link_is_gone_is_kept_completely, sightings_follow_however_many_there_are,
             moments_keep_their_order)

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "lib/fabric/evidence.h"
#include "lib/fabric/paths.h"
#include "tests/unit/unit.h"

static const struct ft_hop NO_ENDS = {FT_NONE, FT_NONE};

static struct ft_diag *diag;
static struct ft_topology_builder *b;

static void begin(void)
{
    diag = ft_diag_new();
    b = ft_topology_builder_new("lab");
    ck_assert(diag && b);
}

static struct ft_topology *finish(void)
{
    struct ft_topology *t = ft_topology_build(b, diag);

    if (!t)
        ck_abort_msg("%s", ft_diag_text(diag, 0));
    ft_topology_builder_free(b);
    ft_diag_free(diag);
    return t;
}

static void add_switch(const char *name, enum ft_tier tier)
{
    ck_assert_uint_ne(ft_topology_add_switch(b, name, tier, diag), FT_NONE);
}

/* Ports are named after the other end. */
static void add_link(const char *a, const char *z)
{
    static unsigned serial;
    char a_port[64], z_port[64];

    snprintf(a_port, sizeof(a_port), "to-%s-%u", z, serial);
    snprintf(z_port, sizeof(z_port), "to-%s-%u", a, serial++);
    ck_assert_int_eq(ft_topology_add_link(b, a, a_port, z, z_port, diag), 0);
}

static uint32_t add_nic(const char *leaf, const char *other_leaf)
{
    static unsigned serial;
    char name[32];
    uint32_t nic;

    snprintf(name, sizeof(name), "h%u", serial++);
    nic = ft_topology_add_nic(b, ft_topology_add_host(b, name, diag), FT_NONE, diag);
    ck_assert_int_eq(ft_topology_attach(b, nic, leaf, name, diag), 0);
    if (other_leaf)
        ck_assert_int_eq(ft_topology_attach(b, nic, other_leaf, name, diag), 0);
    return nic;
}

enum { PODS = 3, POD_LEAVES = 2, POD_SPINES = 2, SUPERSPINES = 4 };

/* Three tiers: spine k of each pod reaches the superspines of plane k (half of them). */
static void add_pods(void)
{
    char a[32], z[32];

    for (int i = 0; i < SUPERSPINES; i++) {
        snprintf(a, sizeof(a), "super%d", i);
        add_switch(a, FT_TIER_SUPERSPINE);
    }
    for (int p = 0; p < PODS; p++) {
        for (int s = 0; s < POD_SPINES; s++) {
            snprintf(a, sizeof(a), "spine%d-%d", p, s);
            add_switch(a, FT_TIER_SPINE);
            for (int i = s; i < SUPERSPINES; i += POD_SPINES) {
                snprintf(z, sizeof(z), "super%d", i);
                add_link(a, z);
            }
        }
        for (int l = 0; l < POD_LEAVES; l++) {
            snprintf(z, sizeof(z), "leaf%d-%d", p, l);
            add_switch(z, FT_TIER_LEAF);
            for (int s = 0; s < POD_SPINES; s++) {
                snprintf(a, sizeof(a), "spine%d-%d", p, s);
                add_link(z, a);
            }
            add_nic(z, NULL);
        }
    }
}

/* Every simple way up, then down, by brute force: how many of the least length there are. */
struct brute {
    const struct ft_topology *t;
    const struct ft_nic *dst;
    uint32_t best;
    uint64_t count;
};

static void brute_step(struct brute *w, uint32_t at, bool up, uint32_t hops)
{
    const struct ft_switch *s = ft_topology_switch(w->t, at);

    if (hops > 6)
        return;
    for (uint32_t i = 0; i < s->port_count; i++) {
        const struct ft_port *p = ft_topology_port(w->t, s->ports[i]);

        if (p->nic != FT_NONE && ft_topology_nic(w->t, p->nic) == w->dst) {
            if (hops < w->best)
                w->count = 0, w->best = hops;
            w->count += hops == w->best;
        } else if (p->peer != FT_NONE && (up || p->direction == FT_DIRECTION_DOWN)) {
            brute_step(w, ft_topology_port(w->t, p->peer)->switch_id,
                       p->direction == FT_DIRECTION_UP, hops + 1);
        }
    }
}

static void check_path(const struct ft_topology *t, uint32_t src, uint32_t dst,
                       const struct ft_path *path)
{
    uint32_t at;

    ck_assert_uint_eq(ft_topology_port(t, path->hops[0].in)->nic, src);
    ck_assert_uint_eq(ft_topology_port(t, path->hops[path->hop_count - 1].out)->nic, dst);
    for (uint32_t i = 0; i < path->hop_count; i++) {
        at = ft_topology_port(t, path->hops[i].in)->switch_id;
        ck_assert_uint_eq(ft_topology_port(t, path->hops[i].out)->switch_id, at);
        ck_assert_uint_eq(ft_paths_stage(t, src, dst, at, path->hops[i]), i);
        if (i > 0)
            ck_assert_uint_eq(ft_topology_port(t, path->hops[i].in)->peer, path->hops[i - 1].out);
    }
}

struct wanted {
    const struct ft_topology *t;
    const uint32_t *via;
};

static bool by_wanted(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    const struct wanted *w = arg;

    return w->via[stage] == FT_NONE || ft_topology_port(w->t, hop->in)->switch_id == w->via[stage];
}

/* What a walk by certain switches finds is what the others find that are turned away elsewhere. */
static void check_via(const struct ft_topology *t, uint32_t src, uint32_t dst)
{
    static struct ft_path paths[256], all[256];

    for (uint32_t stage = 0; stage < FT_PATH_HOPS_MAX; stage++)
        for (uint32_t s = 0; s < ft_topology_switches(t); s++) {
            uint32_t via[FT_PATH_HOPS_MAX] = {FT_NONE, FT_NONE, FT_NONE, FT_NONE, FT_NONE};
            struct wanted w = {t, via};
            uint64_t n, expected;

            via[stage] = s;
            expected = ft_paths_walk(t, src, dst, by_wanted, &w, all, 256, 256);
            n = ft_paths_walk_via(t, src, dst, via, by_wanted, &w, paths, 256, 256);
            ck_assert_uint_eq(n, expected);
            for (uint64_t i = 0; i < n; i++) {
                ck_assert_uint_eq(paths[i].hop_count, all[i].hop_count);
                ck_assert_mem_eq(paths[i].hops, all[i].hops,
                                 all[i].hop_count * sizeof(all[i].hops[0]));
            }
        }
}

static void check_pairs(const struct ft_topology *t)
{
    static struct ft_path paths[256];

    for (uint32_t src = 0; src < ft_topology_nics(t); src++) {
        for (uint32_t dst = 0; dst < ft_topology_nics(t); dst++) {
            const struct ft_nic *from = ft_topology_nic(t, src);
            struct brute w = {t, ft_topology_nic(t, dst), 100, 0};
            uint64_t found = ft_paths_walk(t, src, dst, NULL, NULL, paths, 256, 256);

            check_via(t, src, dst);
            if (src == dst) {
                ck_assert_uint_eq(found, 0);
                continue;
            }
            brute_step(&w, ft_topology_port(t, from->attach[0])->switch_id, true, 1);
            ck_assert_uint_eq(found, w.count);
            ck_assert_uint_eq(ft_paths_length(t, src, dst), found ? w.best : 0);
            for (uint64_t i = 0; i < found; i++) {
                ck_assert_uint_eq(paths[i].hop_count, w.best);
                check_path(t, src, dst, &paths[i]);
                for (uint64_t k = 0; k < i; k++)
                    ck_assert(memcmp(paths[i].hops, paths[k].hops,
                                     w.best * sizeof(paths[i].hops[0])) != 0);
            }
        }
    }
}

START_TEST(agrees_with_brute_force_in_three_tiers)
{
    struct ft_topology *t;

    begin();
    add_pods();
    t = finish();
    /* leaf - spine (2) - superspine (2 of its plane) - spine - leaf */
    ck_assert_uint_eq(ft_paths_walk(t, 0, 2, NULL, NULL, NULL, 0, UINT64_MAX), 4);
    ck_assert_uint_eq(ft_paths_length(t, 0, 2), 5);
    ck_assert_uint_eq(ft_paths_length(t, 0, 1), 3);
    check_pairs(t);
    ft_topology_free(t);
}
END_TEST

START_TEST(counts_parallel_links_and_skips_dead_planes)
{
    struct ft_topology *t;

    begin();
    add_switch("leaf0", FT_TIER_UNKNOWN);
    add_switch("leaf1", FT_TIER_UNKNOWN);
    add_switch("spine0", FT_TIER_UNKNOWN);
    add_switch("spine1", FT_TIER_UNKNOWN);
    add_switch("spine2", FT_TIER_UNKNOWN);
    add_link("leaf0", "spine0");
    add_link("leaf0", "spine0");
    add_link("leaf1", "spine0");
    add_link("spine0", "leaf1");
    add_link("leaf1", "spine0");
    add_link("leaf0", "spine1");
    add_link("spine1", "leaf1");
    /* spine2 hangs on leaf0 only: no way through it. */
    add_link("leaf0", "spine2");
    add_nic("leaf0", NULL);
    add_nic("leaf0", NULL);
    add_nic("leaf1", NULL);
    t = finish();
    ck_assert_uint_eq(ft_paths_walk(t, 0, 2, NULL, NULL, NULL, 0, UINT64_MAX), 7);
    ck_assert_uint_eq(ft_paths_walk(t, 0, 1, NULL, NULL, NULL, 0, UINT64_MAX), 1);
    ck_assert_uint_eq(ft_paths_walk(t, 0, 2, NULL, NULL, NULL, 0, 5), 5);
    ck_assert_uint_eq(ft_paths_stage(t, 0, 2, 4, NO_ENDS), FT_NONE);
    check_pairs(t);
    ft_topology_free(t);
}
END_TEST

START_TEST(never_goes_down_and_up_again)
{
    struct ft_topology *t;

    begin();
    for (int i = 0; i < 3; i++)
        add_switch((const char *[]){"leaf0", "leaf1", "leaf2"}[i], FT_TIER_LEAF);
    add_switch("spine0", FT_TIER_SPINE);
    add_switch("spine1", FT_TIER_SPINE);
    add_link("leaf0", "spine0");
    add_link("leaf1", "spine0");
    add_link("leaf1", "spine1");
    add_link("leaf2", "spine1");
    add_nic("leaf0", NULL);
    add_nic("leaf1", NULL);
    add_nic("leaf2", NULL);
    t = finish();
    ck_assert_uint_eq(ft_paths_walk(t, 0, 2, NULL, NULL, NULL, 0, 9), 0);
    ck_assert_uint_eq(ft_paths_length(t, 0, 2), 0);
    ck_assert_uint_eq(ft_topology_distance(t, 0, 2), FT_NONE);
    ck_assert_uint_eq(ft_paths_stage(t, 0, 2, 1, NO_ENDS), FT_NONE);
    check_pairs(t);
    ft_topology_free(t);
}
END_TEST

START_TEST(walks_from_and_to_both_leaves_of_a_dual_nic)
{
    struct ft_path paths[16];
    struct ft_topology *t;
    uint32_t dual, single, other, near;

    begin();
    for (int l = 0; l < 4; l++)
        add_switch((const char *[]){"leaf0", "leaf1", "leaf2", "leaf3"}[l], FT_TIER_LEAF);
    add_switch("spine0", FT_TIER_SPINE);
    add_switch("spine1", FT_TIER_SPINE);
    for (int l = 0; l < 4; l++) {
        add_link((const char *[]){"leaf0", "leaf1", "leaf2", "leaf3"}[l], "spine0");
        add_link((const char *[]){"leaf0", "leaf1", "leaf2", "leaf3"}[l], "spine1");
    }
    dual = add_nic("leaf0", "leaf1");
    single = add_nic("leaf1", NULL);
    other = add_nic("leaf2", "leaf3");
    near = add_nic("leaf0", NULL);
    t = finish();
    /* 2 leaves here, 2 spines, 2 leaves there. */
    ck_assert_uint_eq(ft_paths_walk(t, dual, other, NULL, NULL, paths, 16, 99), 8);
    for (int i = 0; i < 8; i++)
        check_path(t, dual, other, &paths[i]);
    /* To a NIC on leaf1 only: at once from leaf1, by a spine from leaf0. */
    ck_assert_uint_eq(ft_paths_walk(t, dual, single, NULL, NULL, paths, 16, 99), 3);
    ck_assert_uint_eq(paths[0].hop_count, 3);
    ck_assert_uint_eq(paths[2].hop_count, 1);
    ck_assert_uint_eq(ft_paths_length(t, dual, single), 3);
    /* leaf1 is the first of the one and the last of the other: the ends through it tell which. */
    for (int i = 0; i < 3; i++)
        check_path(t, dual, single, &paths[i]);
    ck_assert_uint_eq(ft_paths_walk(t, dual, near, NULL, NULL, paths, 16, 99), 3);
    for (int i = 0; i < 3; i++)
        check_path(t, dual, near, &paths[i]);
    /* Back the near leaf takes it. */
    ck_assert_uint_eq(ft_paths_walk(t, single, dual, NULL, NULL, paths, 16, 99), 1);
    ft_topology_free(t);
}
END_TEST

static bool by_first_spine(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    const struct ft_topology *t = arg;
    const struct ft_port *out = ft_topology_port(t, hop->out);

    if (stage != 0)
        return true;
    return strcmp(ft_topology_switch(t, ft_topology_port(t, out->peer)->switch_id)->name,
                  "spine0-1") == 0;
}

START_TEST(prunes_by_what_the_caller_accepts)
{
    struct ft_path paths[4];
    struct ft_topology *t;

    begin();
    add_pods();
    t = finish();
    ck_assert_uint_eq(ft_paths_walk(t, 0, 5, by_first_spine, t, paths, 4, 99), 2);
    ck_assert_uint_eq(ft_topology_port(t, paths[1].hops[1].in)->switch_id,
                      ft_topology_find_switch(t, "spine0-1"));
    ft_topology_free(t);
}
END_TEST

/* From a leaf in the destination's pod and from one in another: the spines between are further on
 * from the one than from the other. */
START_TEST(knows_where_a_dual_nic_in_two_pods_is)
{
    struct ft_path paths[32];
    struct ft_topology *t;
    uint32_t dual, near;
    uint64_t n;

    begin();
    add_pods();
    dual = add_nic("leaf1-0", "leaf0-0");
    near = add_nic("leaf0-1", NULL);
    t = finish();
    n = ft_paths_walk(t, dual, near, NULL, NULL, paths, 32, 99);
    ck_assert_uint_gt(n, 2);
    ck_assert_uint_le(n, 32);
    ck_assert_uint_ne(paths[0].hop_count, paths[n - 1].hop_count);
    /* But for the last leaf, which is the same to both. */
    for (uint64_t i = 0; i < n; i++)
        for (uint32_t h = 0; h + 1 < paths[i].hop_count; h++) {
            uint32_t at = ft_topology_port(t, paths[i].hops[h].in)->switch_id;

            ck_assert_uint_eq(ft_paths_stage(t, dual, near, at, paths[i].hops[h]), h);
        }
    ft_topology_free(t);
}
END_TEST

/* Its samples agree with the further leaf, each of them with one of the two. */
START_TEST(follows_a_flow_from_the_leaf_that_it_came_from)
{
    struct ft_path paths[32];
    struct ft_topology *t;
    uint32_t dual, near;
    uint64_t n;

    begin();
    add_pods();
    dual = add_nic("leaf1-0", "leaf0-0");
    near = add_nic("leaf0-1", NULL);
    t = finish();
    n = ft_paths_walk(t, dual, near, NULL, NULL, paths, 32, 99);
    for (uint64_t i = 0; i < n; i++) {
        const struct ft_judging by = {.t = t, .src_nic = dual, .dst_nic = near, .now_ms = 9000};
        struct ft_evidence ev;
        struct ft_judgement j;

        ft_evidence_init(&ev);
        for (uint32_t h = 0; h < paths[i].hop_count; h++) {
            const struct ft_hop *hop = &paths[i].hops[h];
            const struct ft_seen seen = {
                ft_topology_port(t, hop->in)->switch_id, hop->in, hop->out, 0, 1000, 9000, false};
            int64_t before_ms;

            ck_assert_ptr_nonnull(ft_evidence_see(&ev, &seen, INT64_MIN, &before_ms));
        }
        ft_evidence_judge(&ev, &by, &j);
        ck_assert_int_eq(j.state, FT_PATH_RESOLVED);
        ck_assert_uint_eq(j.path.hop_count, paths[i].hop_count);
        ck_assert_mem_eq(j.path.hops, paths[i].hops, j.path.hop_count * sizeof(*paths[i].hops));
        ft_evidence_free(&ev);
    }
    ft_topology_free(t);
}
END_TEST

FT_UNIT_MAIN("paths", follows_a_flow_from_the_leaf_that_it_came_from,
             knows_where_a_dual_nic_in_two_pods_is, agrees_with_brute_force_in_three_tiers,
             counts_parallel_links_and_skips_dead_planes, never_goes_down_and_up_again,
             walks_from_and_to_both_leaves_of_a_dual_nic, prunes_by_what_the_caller_accepts)

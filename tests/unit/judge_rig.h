// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_JUDGE_RIG_H
#define FT_TESTS_JUDGE_RIG_H
/*
 * Which samples may speak for one path together. Three tiers: leaf0 and leaf1, each below two
 * spines (a0 a1, b0 b1), all spines below both of super0 and super1: 8 paths, and most samples
 * leave several of them. Ports are named by what they lead to.
 */
#include <stdio.h>

#include "lib/fabric/evidence.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

static const struct ft_evidence_policy policy = {.hold_down_ms = 2000, .tolerance_ms = 2000};

static const char *const names[] = {"leaf0", "leaf1", "a0", "a1", "b0", "b1", "super0", "super1"};

static const enum ft_tier tiers[] = {FT_TIER_LEAF,       FT_TIER_LEAF,      FT_TIER_SPINE,
                                     FT_TIER_SPINE,      FT_TIER_SPINE,     FT_TIER_SPINE,
                                     FT_TIER_SUPERSPINE, FT_TIER_SUPERSPINE};

static const char *const links[][2] = {{"leaf0", "a0"},  {"leaf0", "a1"},  {"leaf1", "b0"},
                                       {"leaf1", "b1"},  {"a0", "super0"}, {"a0", "super1"},
                                       {"a1", "super0"}, {"a1", "super1"}, {"b0", "super0"},
                                       {"b0", "super1"}, {"b1", "super0"}, {"b1", "super1"}};

static struct ft_topology *t;
static struct ft_trust trust;
static struct ft_evidence ev;
static struct ft_path known;
static int64_t known_since_ms;
static bool is_known;

static inline void setup(void)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology_builder *b = ft_topology_builder_new("pods");

    for (uint32_t i = 0; i < 8; i++)
        ck_assert_uint_eq(ft_topology_add_switch(b, names[i], tiers[i], diag), i);
    for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
        ck_assert_int_eq(
            ft_topology_add_link(b, links[i][0], links[i][1], links[i][1], links[i][0], diag), 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct ft_ip ip = leafspine_host_ip(i, 0);
        char name[8];
        uint32_t nic;

        snprintf(name, sizeof(name), "h%u", i);
        nic = ft_topology_add_nic(b, ft_topology_add_host(b, name, diag), FT_NONE, diag);
        ft_topology_add_nic_address(b, nic, &ip, diag);
        ck_assert_int_eq(ft_topology_attach(b, nic, names[i], name, diag), 0);
    }
    t = ft_topology_build(b, diag);
    ck_assert_msg(t != NULL, "%s", ft_diag_text(diag, 0));
    ft_topology_builder_free(b);
    ft_diag_free(diag);
    ck_assert_int_eq(ft_trust_init(&trust, t), 0);
    ft_evidence_init(&ev);
    known.hop_count = 0;
    is_known = false;
}

static inline void teardown(void)
{
    ft_evidence_free(&ev);
    ft_trust_free(&trust);
    ft_topology_free(t);
}

static inline uint32_t port(const char *from, const char *to)
{
    uint32_t p = ft_topology_find_port(t, ft_topology_find_switch(t, from), to);

    ck_assert_uint_ne(p, FT_NONE);
    return p;
}

static inline void sample(const char *at, const char *in, const char *out, int64_t ms)
{
    struct ft_seen seen = {
        ft_topology_find_switch(t, at), port(at, in), port(at, out), 0, ms, ms, false};
    int64_t before_ms;
    struct ft_sighting *s = ft_evidence_see(&ev, &seen, INT64_MIN, &before_ms);

    ck_assert_ptr_nonnull(s);
    ft_sighting_add_samples(s, 0, 1);
}

static inline struct ft_judgement judge_by(int64_t now_ms, bool verify)
{
    struct ft_judging by = {.t = t,
                            .trust = &trust,
                            .verify = verify,
                            .policy = policy,
                            .src_nic = 0,
                            .dst_nic = 1,
                            .known = &known,
                            .known_since_ms = known_since_ms,
                            .is_known = is_known,
                            .now_ms = now_ms};
    struct ft_judgement j;

    ft_evidence_judge(&ev, &by, &j);
    ft_evidence_apply(&ev, &j, NULL);
    is_known = j.state == FT_PATH_RESOLVED;
    if (is_known) {
        known = j.path;
        known_since_ms = j.since_ms;
    }
    return j;
}

static inline struct ft_judgement judge(int64_t now_ms)
{
    return judge_by(now_ms, false);
}

/* "a0 super1 b0": what a resolved path crosses above the leaves. */
static inline const char *over(const struct ft_judgement *j)
{
    static char text[64];

    ck_assert_int_eq(j->state, FT_PATH_RESOLVED);
    ck_assert_uint_eq(j->path.hop_count, 5);
    snprintf(text, sizeof(text), "%s %s %s",
             names[ft_topology_port(t, j->path.hops[1].in)->switch_id],
             names[ft_topology_port(t, j->path.hops[2].in)->switch_id],
             names[ft_topology_port(t, j->path.hops[3].in)->switch_id]);
    return text;
}

static inline void confirm_all(void)
{
    for (uint32_t i = 0; i < ft_topology_ports(t); i++)
        trust.links[i].confirmed = true;
}

/* Every switch samples. */
static inline void all_sample(int64_t ms)
{
    trust.since_ms = ms;
    for (uint32_t i = 0; i < 8; i++)
        trust.switches[i] = (struct ft_switch_trust){ms, ms};
}

#endif

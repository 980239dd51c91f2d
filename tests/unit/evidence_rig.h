// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_EVIDENCE_RIG_H
#define FT_TESTS_EVIDENCE_RIG_H
/*
 * Samples of a flow in a leaf-spine fabric as evidence for its path.
 */
#include <string.h>

#include "lib/fabric/evidence.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

/* 4 leaves, 4 spines, 2 hosts a leaf; flows go from leaf0's first host to leaf2's second. */
#define LEAVES 4
#define SPINES 4
#define HOSTS  2
#define SRC    0
#define DST    (2 * HOSTS + 1)

static const struct ft_evidence_policy policy = {.hold_down_ms = 2000, .tolerance_ms = 2000};

static inline uint32_t port(const struct ft_topology *t, uint32_t switch_id, uint32_t ifindex)
{
    uint32_t p = ft_topology_port_at(t, switch_id, ifindex);

    ck_assert_uint_ne(p, FT_NONE);
    return p;
}

/* The hop of a flow SRC -> DST over a spine: stage 0, 1 or 2. */
static inline struct ft_hop hop(const struct ft_topology *t, uint32_t stage, uint32_t spine)
{
    switch (stage) {
    case 0:
        return (struct ft_hop){port(t, 0, 1), port(t, 0, 100 + spine)};
    case 1:
        return (struct ft_hop){port(t, LEAVES + spine, 1), port(t, LEAVES + spine, 3)};
    default:
        return (struct ft_hop){port(t, 2, 100 + spine), port(t, 2, 2)};
    }
}

/* What the flow's path was judged to be last, and when its last sample was. */
static struct ft_path known;

static int64_t known_since_ms, now_ms;

static inline struct ft_judging judging(const struct ft_topology *t)
{
    return (struct ft_judging){.t = t,
                               .policy = policy,
                               .src_nic = SRC,
                               .dst_nic = DST,
                               .known = &known,
                               .known_since_ms = known_since_ms,
                               .now_ms = now_ms};
}

static inline void begin(struct ft_evidence *ev)
{
    known.hop_count = 0;
    ft_evidence_init(ev);
}

static inline void sample(struct ft_evidence *ev, const struct ft_topology *t, struct ft_hop h,
                          int64_t ms, uint32_t samples)
{
    uint32_t end = h.in != FT_NONE ? h.in : h.out;
    struct ft_seen seen = {.switch_id = ft_topology_port(t, end)->switch_id,
                           .in = h.in,
                           .out = h.out,
                           .first_ms = ms,
                           .last_ms = ms};
    uint8_t returns = ev->returns;
    int64_t before_ms;
    struct ft_sighting *s = ft_evidence_see(ev, &seen, INT64_MIN, &before_ms);

    ck_assert_ptr_nonnull(s);
    if (before_ms != INT64_MIN && ev->returns == returns) {
        struct ft_judging by = judging(t);

        ft_evidence_recount(ev, &by, s, before_ms, INT64_MIN);
    }
    now_ms = ms;
    ft_sighting_add_samples(s, 0, samples);
    ft_sighting_add_bytes(s, 0, 1000 * (uint64_t)samples);
}

static inline struct ft_judgement judge(struct ft_evidence *ev, const struct ft_topology *t)
{
    struct ft_judging by = judging(t);
    struct ft_judgement j;

    ft_evidence_judge(ev, &by, &j);
    ft_evidence_apply(ev, &j, NULL);
    if (j.state == FT_PATH_RESOLVED) {
        known = j.path;
        known_since_ms = j.since_ms;
    }
    return j;
}

static inline void assert_over(const struct ft_judgement *j, const struct ft_topology *t,
                               uint32_t spine)
{
    ck_assert_int_eq(j->state, FT_PATH_RESOLVED);
    ck_assert_uint_eq(j->candidates, 1);
    ck_assert_uint_eq(j->path.hop_count, 3);
    for (uint32_t stage = 0; stage < 3; stage++) {
        struct ft_hop h = hop(t, stage, spine);

        ck_assert_uint_eq(j->path.hops[stage].in, h.in);
        ck_assert_uint_eq(j->path.hops[stage].out, h.out);
    }
}

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_CROSSINGS_RIG_H
#define FT_TESTS_CROSSINGS_RIG_H
/*
 * Fabrics made by dice: flows cross them, switches sample them, and what is found is held against
 * the cables each second. Two tiers, or three with pods and planes; FT_CROSSINGS_TABLE=1 prints the
 * table of right, missing and wrong links.
 */
#include <stdio.h>
#include <string.h>

#include "lib/fabric/crossings.h"
#include "tests/unit/unit.h"

#define START_MS   INT64_C(1700000000000)
#define SWITCHES   128
#define PORTS      64
#define HOPS       5
#define SEEDS      (FT_SANITIZED ? 1 : 10)
#define NO_SWITCH  UINT32_MAX
#define HOST_PORT  1
#define UP_PORT    20
#define SUPER_PORT 40

#define RIG_PORTS_MAX 4096

struct world {
    const char *name;
    uint32_t leaves, pods, spines, supers; /* spines a pod, superspines a plane; 0: two tiers */
    uint32_t parallel;
    uint32_t flows;
    double rate; /* samples a second at each switch */
    uint32_t seconds;
    uint32_t move_s;      /* a flow moves as often; 0: never */
    uint32_t flap_s;      /* each uplink of leaf 0 to spine 0 is down every other time as long */
    uint32_t silent;      /* a switch without samples, NO_SWITCH */
    uint32_t few;         /* only so many leaves have traffic; 0: all */
    bool no_ttl;          /* samples do not tell it */
    uint32_t bridging;    /* levels that do not count the TTL down: 1 leaves, 2 spines, 4 supers */
    uint32_t sent;        /* every so manieth switch samples after the countdown; 0: none */
    uint32_t from_uplink; /* swapped with the next one of leaf 0 from this second on; 0: never */
    double least;         /* share of the links with traffic both ways that has to be found */
};

struct hop {
    uint32_t node, in, out;
};

static struct world w;
static uint64_t dice_state;
static uint32_t dealt; /* which dice */

static inline uint32_t dice(uint32_t sides)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((dice_state >> 33) % sides);
}

static inline uint64_t mix(uint64_t h)
{
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

static inline uint32_t pod_of(uint32_t leaf)
{
    return leaf / (w.leaves / w.pods);
}

static inline uint32_t spine_of(uint32_t pod, uint32_t s)
{
    return w.leaves + pod * w.spines + s;
}

static inline uint32_t super_of(uint32_t s, uint32_t c)
{
    return w.leaves + w.pods * w.spines + s * w.supers + c;
}

static inline uint32_t switches(void)
{
    return w.leaves + w.pods * w.spines + w.spines * w.supers;
}

/* The uplink at whose other end a leaf's uplink is plugged in. */
static inline uint32_t plugged(uint32_t leaf, uint32_t up, int64_t ms)
{
    if (w.from_uplink && leaf == 0 && up < 2 && ms >= START_MS + w.from_uplink * 1000)
        return 1 - up;
    return up;
}

static inline struct ft_ip agent_of(uint32_t node)
{
    return ft_ip4((uint8_t[4]){192, 0, 2, (uint8_t)(node + 1)});
}

static inline uint32_t up_port(uint32_t up)
{
    return UP_PORT + up;
}

static inline uint32_t down_port(uint32_t leaf, uint32_t up)
{
    return 1 + (leaf % (w.leaves / w.pods)) * w.parallel + up % w.parallel;
}

/* Whether a leaf's uplink is down: both ways. */
static inline bool is_down(uint32_t leaf, uint32_t up, int64_t ms)
{
    return w.flap_s && leaf == 0 && up == 0 && (ms / 1000 / w.flap_s) % 2;
}

static inline uint32_t choose_up(uint64_t seed, uint32_t leaf, int64_t ms)
{
    for (uint64_t i = 0;; i++) {
        uint32_t up = (uint32_t)(mix(seed + i) % (w.spines * w.parallel));

        if (!is_down(leaf, up, ms))
            return up;
    }
}

/* The leaf's uplink by which a spine sends down to it. */
static inline uint32_t choose_down(uint64_t seed, uint32_t leaf, uint32_t s, int64_t ms)
{
    for (uint64_t i = 0; i < 64; i++) {
        uint32_t up = s * w.parallel + (uint32_t)(mix(seed + 77 + i) % w.parallel);

        if (!is_down(leaf, up, ms))
            return up;
    }
    return NO_SWITCH;
}

static inline bool path_from(uint64_t seed, uint32_t src, uint32_t dst, int64_t ms,
                             struct hop *path, uint32_t *count)
{
    uint32_t up = choose_up(seed, src, ms), end = plugged(src, up, ms);
    uint32_t s = end / w.parallel, n = 0;
    uint32_t down = choose_down(seed, dst, s, ms);
    uint32_t there = down == NO_SWITCH ? 0 : plugged(dst, down, ms);

    if (down == NO_SWITCH)
        return false;
    path[n++] = (struct hop){src, 0, up_port(up)};
    if (pod_of(src) == pod_of(dst)) {
        path[n++] =
            (struct hop){spine_of(pod_of(src), s), down_port(src, end), down_port(dst, down)};
    } else {
        uint32_t c = (uint32_t)(mix(seed + 999) % w.supers);

        path[n++] = (struct hop){spine_of(pod_of(src), s), down_port(src, end), SUPER_PORT + c};
        path[n++] = (struct hop){super_of(s, c), 1 + pod_of(src), 1 + pod_of(dst)};
        path[n++] = (struct hop){spine_of(pod_of(dst), s), SUPER_PORT + c, down_port(dst, down)};
    }
    /* Cables swapped at the far leaf: what leaves for one port comes in by the other. */
    path[n++] = (struct hop){dst, up_port(there), 0};
    *count = n;
    return true;
}

/* The path of a flow at a moment; even flows are answered by the odd ones after them. */
static inline bool path_at(uint32_t flow, int64_t ms, struct hop *path, uint32_t *count)
{
    uint64_t pair = mix(flow / 2 + UINT64_C(1000) * dealt);
    uint32_t leaves = w.few ? w.few : w.leaves;
    uint32_t a = (uint32_t)(pair % leaves), b = (uint32_t)((pair >> 20) % (leaves - 1));
    uint64_t epoch =
        w.move_s ? (uint64_t)(ms + (int64_t)(pair >> 40) % 100000) / 1000 / w.move_s : 0;
    uint32_t src, dst;

    b = b >= a ? b + 1 : b;
    src = flow % 2 ? b : a;
    dst = flow % 2 ? a : b;
    if (!path_from(mix(flow * 31 + 7) + epoch * 1000003, src, dst, ms, path, count))
        return false;
    path[0].in = HOST_PORT + (uint32_t)(pair >> 33) % 4;
    path[*count - 1].out = HOST_PORT + (uint32_t)(pair >> 36) % 4;
    return true;
}

/* Whether two ports are the ends of a cable. */
static inline bool is_cable(const struct ft_crossing_port *a, const struct ft_crossing_port *b,
                            int64_t ms)
{
    uint32_t m = a->agent.b[15] - 1u, n = b->agent.b[15] - 1u;
    uint32_t up;

    if (m > n)
        return is_cable(b, a, ms);
    if (m >= w.leaves)
        return w.supers && a->ifindex >= SUPER_PORT &&
               n == super_of((m - w.leaves) % w.spines, a->ifindex - SUPER_PORT) &&
               b->ifindex == 1 + (m - w.leaves) / w.spines;
    if (a->ifindex < UP_PORT)
        return false;
    up = plugged(m, a->ifindex - UP_PORT, ms);
    return n == spine_of(pod_of(m), up / w.parallel) && b->ifindex == down_port(m, up);
}

static inline uint8_t ttl_at(const struct hop *path, uint32_t hop)
{
    bool sent = w.sent && path[hop].node % w.sent == 0;
    uint32_t counted = 0;

    for (uint32_t h = 0; h < hop + sent; h++) {
        uint32_t level = (path[h].node >= w.leaves) + (path[h].node >= super_of(0, 0));

        counted += !(w.bridging >> level & 1);
    }
    return (uint8_t)(64 - counted);
}

struct crossed {
    bool out[SWITCHES][PORTS], in[SWITCHES][PORTS];
};

/* The samples of a flow within a second, folded. */
static inline void sample(struct ft_crossings *x, uint32_t flow, int64_t second_ms,
                          struct crossed *seen)
{
    struct ft_crossing sums[16];
    uint32_t count = 0, hops = 0;
    struct hop path[HOPS];

    for (uint32_t h = 0; h < HOPS; h++) {
        uint32_t whole = (uint32_t)w.rate;
        uint32_t n = whole + (dice(1000) < (w.rate - whole) * 1000);

        for (uint32_t i = 0; i < n; i++) {
            int64_t ms = second_ms + dice(1000);
            struct ft_crossing *c = NULL;
            uint32_t node;

            if (!path_at(flow, ms, path, &hops) || h >= hops || path[h].node == w.silent)
                continue;
            node = path[h].node;
            seen->out[node][path[h].out] = seen->in[node][path[h].in] = true;
            ms += node * 131 % 700; /* its exporter takes as long */
            for (uint32_t k = 0; k < count; k++)
                if (sums[k].agent.b[15] == node + 1 && sums[k].in == path[h].in &&
                    sums[k].out == path[h].out)
                    c = &sums[k];
            if (!c) {
                ck_assert_uint_lt(count, 16);
                c = &sums[count++];
                *c = (struct ft_crossing){.agent = agent_of(node),
                                          .in = path[h].in,
                                          .out = path[h].out,
                                          .flow = mix(flow + 5),
                                          .first_ms = ms,
                                          .last_ms = ms};
            }
            c->samples++;
            c->first_ms = ms < c->first_ms ? ms : c->first_ms;
            c->last_ms = ms > c->last_ms ? ms : c->last_ms;
            if (!w.no_ttl)
                c->ttl = ttl_at(path, h);
        }
    }
    for (uint32_t k = 0; k < count; k++)
        if (ft_crossings_follows(x, sums[k].flow, second_ms + 1500))
            ft_crossings_observe(x, &sums[k]);
}

struct score {
    uint32_t right, wrong, all;
};

static inline struct score judge(const struct ft_crossings *x, const struct crossed *seen,
                                 int64_t ms)
{
    struct score score = {0};
    struct ft_crossing_found f;
    uint32_t index = 0;

    while (ft_crossings_next(x, &index, &f)) {
        if (!f.linked || memcmp(&f.port, &f.peer, sizeof(f.port)) > 0)
            continue;
        if (is_cable(&f.port, &f.peer, ms))
            score.right++;
        else
            score.wrong++;
    }
    /* Cables that samples of both ends show in both directions: others cannot be found. */
    for (uint32_t m = 0; m < switches(); m++)
        for (uint32_t p = 1; p < PORTS; p++)
            for (uint32_t n = m + 1; n < switches(); n++)
                for (uint32_t q = 1; q < PORTS; q++) {
                    const struct ft_crossing_port a = {agent_of(m), p}, b = {agent_of(n), q};

                    if (seen->out[m][p] && seen->in[n][q] && seen->in[m][p] && seen->out[n][q])
                        score.all += is_cable(&a, &b, ms);
                }
    return score;
}

static inline struct ft_crossings *make(void)
{
    const struct ft_crossings_config config = {
        .flows_max = 4096, .ports_max = RIG_PORTS_MAX, .rate_max = 100000};
    struct ft_crossings *x = ft_crossings_new(&config);

    ck_assert_ptr_nonnull(x);
    return x;
}

/* What whoever asks for changes alone knows of the ports. */
struct followed {
    struct ft_crossing_found ports[RIG_PORTS_MAX];
};

static inline void tell(const struct ft_crossings *x, struct followed *known, uint32_t index)
{
    known->ports[index] = (struct ft_crossing_found){.linked = false};
    ft_crossings_found(x, index, &known->ports[index]);
}

/* Takes the changes; then it is what there is. */
static inline void follow_changes(struct ft_crossings *x, struct followed *all)
{
    enum ft_crossings_changed changed;
    struct ft_crossing_found f;
    uint32_t index;

    while ((changed = ft_crossings_take_changed(x, &index)) == FT_CROSSINGS_ONE)
        tell(x, all, index);
    for (index = 0; changed == FT_CROSSINGS_ALL && index < ft_crossings_limit(x); index++)
        tell(x, all, index);
    for (index = 0; index < ft_crossings_limit(x); index++) {
        const struct ft_crossing_found *known = &all->ports[index];

        if (!ft_crossings_found(x, index, &f))
            f = (struct ft_crossing_found){.linked = false};
        ck_assert_int_eq(known->linked, f.linked);
        ck_assert_int_eq(known->has_hosts, f.has_hosts);
        ck_assert_mem_eq(&known->peer, &f.peer, sizeof(f.peer));
    }
}

static inline void run(const struct world *world, uint32_t seed)
{
    static struct followed known;
    static struct crossed seen;
    struct ft_crossings *x = make();
    struct score score = {0};
    uint32_t after_s = 0, wrong = 0, last = 0;

    w = *world;
    memset(&seen, 0, sizeof(seen));
    memset(&known, 0, sizeof(known));
    dice_state = mix(seed + 1);
    dealt = seed;
    for (uint32_t s = 0; s < w.seconds; s++) {
        int64_t ms = START_MS + s * INT64_C(1000);
        uint32_t index = 0, right = 0;
        struct ft_crossing_found f;

        for (uint32_t flow = 0; flow < w.flows; flow++)
            sample(x, flow, ms, &seen);
        ft_crossings_step(x, ms + 2000);
        follow_changes(x, &known);
        while (ft_crossings_next(x, &index, &f)) {
            if (!f.linked)
                continue;
            /* What was true until the cables were swapped takes a while to be given up. */
            wrong += !is_cable(&f.port, &f.peer, ms) && !is_cable(&f.port, &f.peer, START_MS);
            right += is_cable(&f.port, &f.peer, ms);
        }
        if (right != last)
            after_s = s + 1;
        last = right;
    }
    score = judge(x, &seen, START_MS + w.seconds * INT64_C(1000));
    if (getenv("FT_CROSSINGS_TABLE"))
        printf("%-34s seed %2u: %3u of %3u right, %u wrong at the end, %u at any time, last after "
               "%u s\n",
               w.name, seed, score.right, score.all, score.wrong, wrong, after_s);
    ck_assert_msg(wrong == 0 && score.wrong == 0, "%s, seed %u: %u wrong links", w.name, seed,
                  wrong);
    ck_assert_msg(score.right >= w.least * score.all, "%s, seed %u: %u of %u links", w.name, seed,
                  score.right, score.all);
    ft_crossings_free(x);
}

static inline void run_seeds(const struct world *world)
{
    for (uint32_t seed = 0; seed < SEEDS; seed++)
        run(world, seed);
}

#define TWO_TIERS .leaves = 8, .pods = 1, .spines = 4, .parallel = 1, .silent = NO_SWITCH

#endif

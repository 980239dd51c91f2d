// SPDX-License-Identifier: Apache-2.0
/*
 * Why no flow is predicted, and how many more are needed at least. Flows come one by one to hashes
 * that are computed here, and each bound that was said on the way is held against how many it took.
 */
#include "config.h"

#include "daemon/hashes/hashes_impl.h"

#include <string.h>

#include "daemon/hashes/hashes.h"
#include "lib/base/mix.h"
#include "tests/unit/switch_hashes.h"
#include "tests/unit/unit.h"

#define FLOWS   3000
#define LATER   470
#define REASONS (FT_HASH_WHY_CONTRADICTED + 1)

enum qps {
    QPS_UNKNOWN,
    QPS_OWN,
    QPS_FOLLOW, /* from the source port */
    QPS_LATER,  /* at first they follow */
};

struct population {
    const char *name;
    uint32_t (*hash)(const uint8_t *bytes, size_t len, uint32_t seed);
    uint32_t members, hosts;
    size_t hashed; /* bytes of source, destination and port, in this order */
    enum qps qps;
    uint32_t change; /* after so many flows it has another seed; 0: never */
    uint32_t odd;    /* one flow in so many is on another link; 0: none */
    uint32_t slow;   /* another host sends and receives after so many flows each; 0: all at once */
};

static const struct population populations[] = {
    {"CRC-16, 4 links", crc16, 4, 32, 12, QPS_UNKNOWN, 0, 0, 0},
    {"CRC-32, 64 links", crc32, 64, 200, 12, QPS_OWN, 0, 0, 0},
    {"XOR, 8 links, 2 hosts", fold, 8, 2, 12, QPS_UNKNOWN, 0, 0, 0},
    {"CRC-16 of addresses, 8 links", crc16, 8, 12, 8, QPS_UNKNOWN, 0, 0, 0},
    {"CRC-16 of addresses of 2 hosts", crc16, 4, 2, 8, QPS_UNKNOWN, 0, 0, 0},
    {"CRC-16 of addresses, few at first", crc16, 8, 24, 8, QPS_UNKNOWN, 0, 0, 300},
    {"CRC-32, queue pairs follow", crc32, 4, 32, 12, QPS_FOLLOW, 0, 0, 0},
    {"CRC-32, queue pairs follow at first", crc32, 4, 32, 12, QPS_LATER, 0, 0, 0},
    {"keyed, 8 links", keyed, 8, 32, 12, QPS_UNKNOWN, 0, 0, 0},
    {"CRC-16 that changes", crc32, 8, 32, 12, QPS_UNKNOWN, 700, 0, 0},
    {"CRC-16, one in 60 elsewhere", crc16, 4, 32, 12, QPS_UNKNOWN, 0, 60, 0},
};

static const char *const names[REASONS] = {"",      "few flows", "few values",  "few predicted",
                                           "wrong", "few agree", "queue pairs", "contradicted"};

/* Of one reason, over all populations. */
struct seen {
    uint32_t said, bounded, gone, exact;
} seen[REASONS];

static struct ft_hash_flow draw(const struct population *p, uint32_t n)
{
    uint64_t x = ft_mix(n + (uint64_t)p->hosts * 7919 + p->members);
    uint32_t hosts = p->slow && 2 + n / p->slow < p->hosts ? 2 + n / p->slow : p->hosts;
    uint8_t b[12] = {10, 1, 0, (uint8_t)(1 + x % hosts), 10, 2, 0, (uint8_t)(1 + x / 256 % hosts)};
    uint16_t sport = (uint16_t)(0xc000 | (x >> 40 & 0x3fff));
    struct ft_tuple tuple = {.src = ft_ip4(b),
                             .dst = ft_ip4(b + 4),
                             .sport = sport,
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
    struct ft_hash_flow flow = {.qp = 0};
    uint32_t seed = p->change && n >= p->change ? 0xbeef : 0xffff;

    b[8] = (uint8_t)(sport >> 8);
    b[9] = (uint8_t)sport;
    ft_hash_input(&flow.in, &tuple, (uint32_t)(x % hosts));
    flow.member = p->hash(b, p->hashed, seed) % p->members;
    /* A seed that is only added to the sum leaves all but the numbers of links as they were. */
    if (p->change && n >= p->change)
        flow.member = crc16(b, p->hashed, seed) % p->members;
    if (p->odd && ft_mix(x) % p->odd == 0)
        flow.member = (flow.member + 1) % p->members;
    if (p->qps == QPS_OWN || (p->qps == QPS_LATER && n >= LATER))
        flow.qp = (uint32_t)(ft_mix(x) & 0xffffff) | 1;
    else if (p->qps != QPS_UNKNOWN)
        flow.qp = sport ^ 0x5a0000u;
    return flow;
}

/* A bound of values holds where no other part of the header chooses: of hashes of addresses alone.
 */
static bool is_bound(const struct population *p, const struct ft_hash_why *why)
{
    return why->more_least && (why->reason != FT_HASH_WHY_FEW_VALUES || p->hashed == 8);
}

struct told {
    uint32_t offered;
    struct ft_hash_why why;
};

static void hold(const struct population *p, const struct told *told, uint32_t offered)
{
    struct seen *of = &seen[told->why.reason];
    uint32_t took = offered - told->offered;

    if (!is_bound(p, &told->why))
        return;
    of->gone++;
    of->exact += took == told->why.more_least;
    ck_assert_msg(took >= told->why.more_least,
                  "%s: '%s' at %u flows: at least %u more, and it took %u", p->name,
                  names[told->why.reason], told->offered, told->why.more_least, took);
}

/* Not those that came because flows were on another link than the model says. */
static bool is_progress(enum ft_hash_reason from, enum ft_hash_reason to)
{
    return to == FT_HASH_WHY_NONE || (to > from && to != FT_HASH_WHY_WRONG);
}

/* Each bound is held against the next reason, and against the moment when flows are predicted. */
static void check_run(const struct population *p)
{
    struct ft_hash_set set = {.member_count = p->members};
    struct ft_hash_why why = ft_hash_set_why(&set);
    struct told told[FLOWS];
    uint32_t first = 0, untrusted = 0, learnt = 0;

    ck_assert_uint_eq(why.reason, FT_HASH_WHY_FEW_FLOWS);
    for (uint32_t n = 0; n < FLOWS; n++) {
        struct ft_hash_flow flow = draw(p, n);

        /* Values are counted from when it was last learnt. */
        told[n] = (struct told){
            why.reason == FT_HASH_WHY_FEW_VALUES ? learnt : (uint32_t)set.offered, why};
        seen[why.reason].said++;
        seen[why.reason].bounded += why.more_least > 0;
        ft_hash_set_keep(&set, &flow);
        if (ft_hash_set_due_in(&set) == 0) {
            ft_hash_set_learn(&set);
            learnt = (uint32_t)set.offered;
        }
        why = ft_hash_set_why(&set);
        ck_assert(ft_hash_set_is_trusted(&set) <= (why.reason == FT_HASH_WHY_NONE));
        if (why.reason == told[n].why.reason)
            continue;
        for (uint32_t k = first; k <= n && is_progress(told[n].why.reason, why.reason); k++)
            hold(p, &told[k], (uint32_t)set.offered);
        first = n + 1;
        for (; untrusted <= n && ft_hash_set_is_trusted(&set); untrusted++)
            hold(p, &told[untrusted], (uint32_t)set.offered);
    }
    printf("%-36s ends: %s, %s, %s %u\n", p->name,
           ft_hash_set_kind(&set) == FT_HASH_LINEAR  ? "linear"
           : ft_hash_set_kind(&set) == FT_HASH_TABLE ? "table"
                                                     : "unknown",
           ft_hash_set_is_trusted(&set) ? "trusted" : "not trusted", names[why.reason],
           why.more_least);
    ft_hash_set_free(&set);
}

START_TEST(a_bound_is_never_more_than_it_takes)
{
    memset(seen, 0, sizeof(seen));
    for (size_t i = 0; i < sizeof(populations) / sizeof(populations[0]); i++)
        check_run(&populations[i]);
    for (unsigned r = 1; r < REASONS; r++) {
        printf("%-14s said %6u times, %6u with a bound; held against what it took %6u, exact %u\n",
               names[r], seen[r].said, seen[r].bounded, seen[r].gone, seen[r].exact);
        ck_assert_msg(seen[r].said > 0, "%s: never said", names[r]);
    }
    /* It says something: where flows are lacking it is what it took in some cases. */
    ck_assert_uint_gt(seen[FT_HASH_WHY_FEW_FLOWS].exact, 0);
    ck_assert_uint_gt(seen[FT_HASH_WHY_FEW_PREDICTED].exact, 0);
    ck_assert_uint_gt(seen[FT_HASH_WHY_FEW_AGREE].exact, 0);
    ck_assert_uint_gt(seen[FT_HASH_WHY_FEW_VALUES].gone, 0);
    ck_assert_uint_gt(seen[FT_HASH_WHY_QUEUE_PAIRS].gone, 0);
}
END_TEST

/* Between four pairs of hosts a hash of addresses fits any linear one, however many ports are seen:
 * it is said that addresses are lacking, and neither ports nor flows. */
START_TEST(what_is_lacking_is_named)
{
    const struct population *p = &populations[4];
    struct ft_hash_set set = {.member_count = p->members};
    struct ft_hash_why why;

    for (uint32_t n = 0; n < 400; n++) {
        struct ft_hash_flow flow = draw(p, n);

        ft_hash_set_keep(&set, &flow);
        if (ft_hash_set_due_in(&set) == 0)
            ft_hash_set_learn(&set);
    }
    why = ft_hash_set_why(&set);
    ck_assert_uint_eq(why.reason, FT_HASH_WHY_FEW_VALUES);
    ck_assert_uint_eq(why.fields, 1u << FT_HASH_SRC | 1u << FT_HASH_ENTRY | 1u << FT_HASH_DST);
    ck_assert_uint_gt(why.more_least, 0);
    ft_hash_set_free(&set);
}
END_TEST

FT_UNIT_MAIN("hashes_why", a_bound_is_never_more_than_it_takes, what_is_lacking_is_named)

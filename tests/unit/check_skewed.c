// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/skewed.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define G UINT64_C(1000000000)

static struct ft_topology_builder *b;
static struct ft_diag *diag;
static struct ft_topology *t;
static struct ft_skewed *skewed;

static void begin(void)
{
    diag = ft_diag_new();
    b = ft_topology_builder_new("lab");
}

static void build(void)
{
    t = ft_topology_build(b, diag);
    ck_assert_msg(t != NULL, "%s", ft_diag_count(diag) ? ft_diag_text(diag, 0) : "");
    skewed = ft_skewed_new(t);
    ck_assert_ptr_nonnull(skewed);
}

static void end(void)
{
    ft_skewed_free(skewed);
    ft_topology_free(t);
    ft_topology_builder_free(b);
    ft_diag_free(diag);
}

static void add_link(const char *low, const char *high, unsigned number, uint64_t speed)
{
    char up[64], down[64];

    ft_topology_speed(b, speed);
    snprintf(up, sizeof(up), "%s-%u", high, number);
    snprintf(down, sizeof(down), "%s-%u", low, number);
    ck_assert_int_eq(ft_topology_add_link(b, low, up, high, down, diag), 0);
}

static uint32_t port(const char *at, const char *name)
{
    return ft_topology_find_port(t, ft_topology_find_switch(t, at), name);
}

static bool is_skewed(const char *at, enum ft_direction direction)
{
    return ft_skewed_group(skewed,
                           ft_topology_find_group(t, ft_topology_find_switch(t, at), direction));
}

/* Whether the last hop by these switches was chosen by other weights before. */
static bool before(const char *const *names, uint32_t count)
{
    struct ft_path path = {.hop_count = count};
    char text[64];

    for (uint32_t i = 0; i < count; i++) {
        snprintf(text, sizeof(text), "%s-0", names[i + 1]);
        path.hops[i] = (struct ft_hop){FT_NONE, port(names[i], text)};
        ck_assert_uint_ne(path.hops[i].out, FT_NONE);
    }
    return ft_skewed_before(skewed, t, &path, count - 1);
}

#define BEFORE(...)                                                                                \
    before((const char *const[]){__VA_ARGS__},                                                     \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *) - 1)

static void add_leaves(const uint64_t speed[3][2])
{
    char leaf[16], spine[16];

    for (uint32_t s = 0; s < 2; s++) {
        snprintf(spine, sizeof(spine), "spine%u", s);
        ft_topology_add_switch(b, spine, FT_TIER_SPINE, diag);
    }
    for (uint32_t l = 0; l < 3; l++) {
        snprintf(leaf, sizeof(leaf), "leaf%u", l);
        ft_topology_add_switch(b, leaf, FT_TIER_LEAF, diag);
        for (uint32_t s = 0; s < 2; s++) {
            snprintf(spine, sizeof(spine), "spine%u", s);
            add_link(leaf, spine, 0, speed[l][s]);
        }
    }
}

START_TEST(a_sender_that_weighs_its_links)
{
    begin();
    add_leaves((const uint64_t[3][2]){{400 * G, 100 * G}, {400 * G, 400 * G}, {800 * G, 200 * G}});
    build();
    ck_assert(is_skewed("leaf0", FT_DIRECTION_UP));
    ck_assert(is_skewed("leaf0", FT_DIRECTION_DOWN));
    ck_assert(!is_skewed("leaf1", FT_DIRECTION_UP));
    /* From 400 and 100 to 400 and 400. */
    ck_assert(BEFORE("leaf0", "spine0", "leaf1"));
    /* From those to 800 and 200: as the weights of these are. */
    ck_assert(!BEFORE("leaf0", "spine0", "leaf2"));
    /* Of a sender that has no other choice than even, and of the choice itself. */
    ck_assert(!BEFORE("leaf1", "spine0", "leaf0"));
    ck_assert(!BEFORE("leaf0", "spine0"));
    end();
}
END_TEST

START_TEST(equal_links_are_weighed_by_nobody)
{
    begin();
    add_leaves((const uint64_t[3][2]){{G, G}, {G, G}, {0, G}});
    build();
    for (int l = 0; l < 3; l++) {
        const char *const leaf[] = {"leaf0", "leaf1", "leaf2"};

        ck_assert(!is_skewed(leaf[l], FT_DIRECTION_UP));
        ck_assert(!is_skewed(leaf[l], FT_DIRECTION_DOWN));
    }
    ck_assert(!BEFORE("leaf0", "spine0", "leaf1"));
    end();
}
END_TEST

/* An aggregate of two, and what is left of one. */
START_TEST(aggregates_of_other_sizes)
{
    uint32_t leaf, lag;

    begin();
    ft_topology_add_switch(b, "spine0", FT_TIER_SPINE, diag);
    ft_topology_add_switch(b, "spine1", FT_TIER_SPINE, diag);
    leaf = ft_topology_add_switch(b, "leaf0", FT_TIER_LEAF, diag);
    ft_topology_add_switch(b, "leaf1", FT_TIER_LEAF, diag);
    add_link("leaf0", "spine0", 0, G);
    add_link("leaf0", "spine0", 1, G);
    add_link("leaf0", "spine1", 0, G);
    add_link("leaf1", "spine0", 0, G);
    add_link("leaf1", "spine1", 0, G);
    lag = ft_topology_add_lag(b, leaf, "bond0", 7, diag);
    ft_topology_add_member(b, lag, "spine0-0", diag);
    ft_topology_add_member(b, lag, "spine0-1", diag);
    build();
    ck_assert_uint_eq(ft_skewed_bundle(t, port("leaf0", "spine0-0")),
                      ft_skewed_bundle(t, port("leaf0", "spine0-1")));
    ck_assert_uint_ne(ft_skewed_bundle(t, port("leaf0", "spine0-0")),
                      ft_skewed_bundle(t, port("leaf0", "spine1-0")));
    ck_assert_uint_eq(ft_skewed_bundle(t, port("spine0", "leaf0-0")),
                      ft_skewed_bundle(t, port("spine0", "leaf0-1")));
    ck_assert(is_skewed("leaf0", FT_DIRECTION_UP));
    ck_assert(is_skewed("leaf0", FT_DIRECTION_DOWN));
    ck_assert(!is_skewed("leaf1", FT_DIRECTION_UP));
    ck_assert(BEFORE("leaf0", "spine0", "leaf1"));
    ck_assert(!BEFORE("leaf1", "spine0", "leaf0"));
    end();
}
END_TEST

/* The leaf's choice is of the spine; that spine's of the superspine. */
START_TEST(each_tier_chooses_for_itself)
{
    begin();
    ft_topology_add_switch(b, "core0", FT_TIER_SUPERSPINE, diag);
    ft_topology_add_switch(b, "core1", FT_TIER_SUPERSPINE, diag);
    for (int pod = 0; pod < 2; pod++) {
        char leaf[16], spine[16];

        snprintf(leaf, sizeof(leaf), "leaf%d", pod);
        ft_topology_add_switch(b, leaf, FT_TIER_LEAF, diag);
        for (int s = 0; s < 2; s++) {
            snprintf(spine, sizeof(spine), "spine%d%d", pod, s);
            ft_topology_add_switch(b, spine, FT_TIER_SPINE, diag);
            add_link(leaf, spine, 0, pod == 0 && s == 1 ? 100 * G : 400 * G);
            add_link(spine, "core0", 0, 400 * G);
            add_link(spine, "core1", 0, 400 * G);
        }
    }
    build();
    ck_assert(!BEFORE("leaf0", "spine00", "core0", "spine10"));
    ck_assert(BEFORE("leaf0", "spine00", "core0", "spine10", "leaf1"));
    ck_assert(!BEFORE("leaf1", "spine10", "core0", "spine00", "leaf0"));
    end();
}
END_TEST

FT_UNIT_MAIN("skewed", a_sender_that_weighs_its_links, equal_links_are_weighed_by_nobody,
             aggregates_of_other_sizes, each_tier_chooses_for_itself)

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/trust.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

static uint32_t port_of(const struct ft_topology *t, const char *sw, const char *port)
{
    uint32_t p = ft_topology_find_port(t, ft_topology_find_switch(t, sw), port);

    ck_assert_uint_ne(p, FT_NONE);
    return p;
}

START_TEST(nothing_is_trusted_or_in_doubt_at_first)
{
    struct ft_topology *t = leafspine(2, 2, 1);
    struct ft_trust trust;

    ck_assert_int_eq(ft_trust_init(&trust, t), 0);
    for (uint32_t i = 0; i < ft_topology_ports(t); i++) {
        ck_assert(!trust.links[i].confirmed);
        ck_assert_int_eq(trust.links[i].uncertain_ms, INT64_MIN);
    }
    for (uint32_t i = 0; i < ft_topology_switches(t); i++) {
        ck_assert_int_eq(trust.switches[i].names_in_ms, INT64_MIN);
        ck_assert_int_eq(trust.switches[i].names_out_ms, INT64_MIN);
    }
    ck_assert_int_eq(trust.uncertain_ms, INT64_MIN);
    ft_trust_free(&trust);
    ft_topology_free(t);
}
END_TEST

/* A doubt is not shortened by an older one, and the newest of all is known. */
START_TEST(the_newest_doubt_stands)
{
    struct ft_topology *t = leafspine(2, 2, 1);
    struct ft_trust trust;

    ck_assert_int_eq(ft_trust_init(&trust, t), 0);
    ft_trust_mark_uncertain(&trust, 3, 2000);
    ft_trust_mark_uncertain(&trust, 3, 1000);
    ft_trust_mark_uncertain(&trust, 4, 1500);
    ck_assert_int_eq(trust.links[3].uncertain_ms, 2000);
    ck_assert_int_eq(trust.links[4].uncertain_ms, 1500);
    ck_assert_int_eq(trust.uncertain_ms, 2000);
    trust.links[4].confirmed = true;
    ft_trust_restart(&trust, t);
    ck_assert_int_eq(trust.links[3].uncertain_ms, INT64_MIN);
    ck_assert_int_eq(trust.uncertain_ms, INT64_MIN);
    ck_assert(trust.links[4].confirmed);
    ft_trust_free(&trust);
    ft_topology_free(t);
}
END_TEST

/* Host ports say nothing of the links of the fabric. */
START_TEST(samples_name_links_between_switches)
{
    struct ft_topology *t = leafspine(2, 2, 1);
    uint32_t leaf = ft_topology_find_switch(t, "leaf0");
    uint32_t up = port_of(t, "leaf0", "up1"), host = FT_NONE;
    struct ft_trust trust;

    for (uint32_t i = 0; i < ft_topology_ports(t); i++)
        if (ft_topology_port(t, i)->switch_id == leaf && ft_topology_port(t, i)->nic != FT_NONE)
            host = i;
    ck_assert_uint_ne(host, FT_NONE);
    ck_assert_int_eq(ft_trust_init(&trust, t), 0);
    ft_trust_named(&trust, t, leaf, host, up, 5000);
    ck_assert_int_eq(trust.switches[leaf].names_in_ms, INT64_MIN);
    ck_assert_int_eq(trust.switches[leaf].names_out_ms, 5000);
    ft_trust_named(&trust, t, leaf, up, host, 4000);
    ck_assert_int_eq(trust.switches[leaf].names_in_ms, 4000);
    ck_assert_int_eq(trust.switches[leaf].names_out_ms, 5000);
    ft_trust_named(&trust, t, leaf, FT_NONE, FT_NONE, 9000);
    ck_assert_int_eq(trust.switches[leaf].names_out_ms, 5000);
    /* The first sample of all. */
    ck_assert_int_eq(trust.since_ms, 4000);
    ft_trust_free(&trust);
    ft_topology_free(t);
}
END_TEST

/* leaf0 loses its link to spine0: its other uplink, and spine0's other links, may have taken over.
 */
START_TEST(a_lost_link_puts_the_sets_of_both_its_ends_in_doubt)
{
    struct ft_topology *from = leafspine(2, 2, 1), *to = leafspine_without(2, 2, 1, 0, 0);
    struct ft_trust before, trust;

    ck_assert_int_eq(ft_trust_init(&before, from), 0);
    ck_assert_int_eq(ft_trust_init(&trust, to), 0);
    before.switches[ft_topology_find_switch(from, "spine1")].names_in_ms = 7000;
    before.links[port_of(from, "leaf1", "up1")].uncertain_ms = 3000;
    before.links[port_of(from, "leaf1", "up1")].confirmed = true;
    ft_trust_follow(&trust, to, &before, from, 9000);
    ck_assert_int_eq(trust.links[port_of(to, "leaf0", "up1")].uncertain_ms, 9000);
    ck_assert_int_eq(trust.links[port_of(to, "spine0", "down1")].uncertain_ms, 9000);
    /* Elsewhere nothing changed: what was in doubt is, for as long as it was. */
    ck_assert_int_eq(trust.links[port_of(to, "leaf1", "up0")].uncertain_ms, INT64_MIN);
    ck_assert_int_eq(trust.links[port_of(to, "leaf1", "up1")].uncertain_ms, 3000);
    ck_assert_int_eq(trust.links[port_of(to, "spine1", "down0")].uncertain_ms, INT64_MIN);
    ck_assert_int_eq(trust.switches[ft_topology_find_switch(to, "spine1")].names_in_ms, 7000);
    /* Links are to be confirmed anew, and new ones have time to show what samples name. */
    ck_assert(!trust.links[port_of(to, "leaf1", "up1")].confirmed);
    ck_assert_int_eq(trust.since_ms, 9000);
    ft_trust_free(&before);
    ft_trust_free(&trust);
    ft_topology_free(from);
    ft_topology_free(to);
}
END_TEST

START_TEST(the_same_topology_again_changes_nothing)
{
    struct ft_topology *from = leafspine(2, 2, 1), *to = leafspine(2, 2, 1);
    struct ft_trust before, trust;

    ck_assert_int_eq(ft_trust_init(&before, from), 0);
    ck_assert_int_eq(ft_trust_init(&trust, to), 0);
    ft_trust_follow(&trust, to, &before, from, 9000);
    for (uint32_t i = 0; i < ft_topology_ports(to); i++)
        ck_assert_int_eq(trust.links[i].uncertain_ms, INT64_MIN);
    ck_assert_int_eq(trust.uncertain_ms, INT64_MIN);
    ft_trust_free(&before);
    ft_trust_free(&trust);
    ft_topology_free(from);
    ft_topology_free(to);
}
END_TEST

/* As `from` becomes `to` at 9000, with nothing in doubt before. */
static struct ft_trust followed(const struct ft_topology *to, const struct ft_topology *from)
{
    struct ft_trust before, trust;

    ck_assert_int_eq(ft_trust_init(&before, from), 0);
    ck_assert_int_eq(ft_trust_init(&trust, to), 0);
    ft_trust_follow(&trust, to, &before, from, 9000);
    ft_trust_free(&before);
    return trust;
}

static int64_t doubt(const struct ft_trust *trust, const struct ft_topology *t, const char *sw,
                     const char *port)
{
    return trust->links[port_of(t, sw, port)].uncertain_ms;
}

/* That a topology loses links stays known, and is not said of one that gains them. */
START_TEST(a_topology_that_loses_links_is_known)
{
    struct ft_topology *whole = leafspine(2, 2, 1), *less = leafspine_without(2, 2, 1, 0, 0);
    struct ft_trust lost = followed(less, whole), found = followed(whole, less), later, old;

    ck_assert(lost.loses_links);
    ck_assert(!found.loses_links);
    ck_assert_int_eq(ft_trust_init(&later, whole), 0);
    ck_assert_int_eq(ft_trust_init(&old, whole), 0);
    ck_assert(!old.loses_links);
    ft_trust_follow(&later, whole, &lost, less, 9500);
    ck_assert(later.loses_links);
    ft_trust_follow(&old, whole, &later, whole, 9700);
    ck_assert(old.loses_links);
    ft_trust_restart(&old, whole);
    ck_assert(!old.loses_links);
    ft_trust_free(&lost);
    ft_trust_free(&found);
    ft_trust_free(&later);
    ft_trust_free(&old);
    ft_topology_free(whole);
    ft_topology_free(less);
}
END_TEST

/* Ten within some seconds, as of many short flows; a few every ten seconds are of links that flap.
 */
START_TEST(flows_that_come_back_at_once_are_sprayed)
{
    struct ft_topology *t = leafspine(2, 2, 1);
    struct ft_trust trust;

    ck_assert_int_eq(ft_trust_init(&trust, t), 0);
    for (int64_t ms = 0; ms < 600000; ms += 10000)
        for (int i = 0; i < 5; i++)
            ft_trust_returned(&trust, ms + 100 * i);
    ck_assert_int_eq(trust.sprayed_ms, INT64_MIN);
    ft_trust_restart(&trust, t);
    for (int i = 0; i < 12; i++) {
        ft_trust_returned(&trust, 700000 + 200 * i);
        if (i == 8)
            ck_assert_int_eq(trust.sprayed_ms, INT64_MIN);
    }
    ck_assert_int_eq(trust.sprayed_ms, 702200);
    /* Exporters differ: an older one is no step back. */
    ft_trust_returned(&trust, 701000);
    ck_assert_int_eq(trust.sprayed_ms, 702200);
    ft_trust_free(&trust);
    ft_topology_free(t);
}
END_TEST

START_TEST(what_was_sprayed_is_known_of_the_next_topology)
{
    struct ft_topology *t = leafspine(2, 2, 1);
    struct ft_trust before, trust;

    ck_assert_int_eq(ft_trust_init(&before, t), 0);
    ck_assert_int_eq(ft_trust_init(&trust, t), 0);
    ck_assert_int_eq(before.sprayed_ms, INT64_MIN);
    before.sprayed_ms = 4000;
    ft_trust_follow(&trust, t, &before, t, 9000);
    ck_assert_int_eq(trust.sprayed_ms, 4000);
    ft_trust_restart(&trust, t);
    ck_assert_int_eq(trust.sprayed_ms, INT64_MIN);
    ft_trust_free(&before);
    ft_trust_free(&trust);
    ft_topology_free(t);
}
END_TEST

/* The sets that it joins are in doubt, as they are where one leaves. */
START_TEST(a_new_link_puts_the_sets_of_both_its_ends_in_doubt)
{
    struct ft_topology *from = leafspine_without(2, 2, 1, 0, 0), *to = leafspine(2, 2, 1);
    struct ft_trust trust = followed(to, from);

    ck_assert_int_eq(doubt(&trust, to, "leaf0", "up0"), 9000);
    ck_assert_int_eq(doubt(&trust, to, "leaf0", "up1"), 9000);
    ck_assert_int_eq(doubt(&trust, to, "spine0", "down0"), 9000);
    ck_assert_int_eq(doubt(&trust, to, "spine0", "down1"), 9000);
    /* A host's port is in none of them. */
    ck_assert_int_eq(doubt(&trust, to, "leaf0", "host0"), INT64_MIN);
    ck_assert_int_eq(doubt(&trust, to, "leaf1", "up0"), INT64_MIN);
    ck_assert_int_eq(doubt(&trust, to, "leaf1", "up1"), INT64_MIN);
    ck_assert_int_eq(doubt(&trust, to, "spine1", "down0"), INT64_MIN);
    ft_trust_free(&trust);
    ft_topology_free(from);
    ft_topology_free(to);
}
END_TEST

/* leaf0 and leaf1, each with a link to a spine: leaf0's port has a name and a number, 0: none. */
static struct ft_topology *with_port(const char *port, uint32_t number, const char *spine)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology_builder *b = ft_topology_builder_new("lab");
    struct ft_topology *t;

    ft_topology_add_switch(b, "leaf0", FT_TIER_LEAF, diag);
    ft_topology_add_switch(b, "leaf1", FT_TIER_LEAF, diag);
    ft_topology_add_switch(b, "spine0", FT_TIER_SPINE, diag);
    ft_topology_add_switch(b, "spine1", FT_TIER_SPINE, diag);
    ft_topology_add_port(b, 0, port, number, LINK_BPS, diag);
    ck_assert_int_eq(ft_topology_add_link(b, "leaf0", port, spine, "down0", diag), 0);
    ck_assert_int_eq(ft_topology_add_link(b, "leaf1", "up0", "spine0", "down1", diag), 0);
    t = ft_topology_build(b, diag);
    ck_assert_msg(t, "%s", ft_diag_text(diag, 0));
    ft_topology_builder_free(b);
    ft_diag_free(diag);
    return t;
}

static int64_t kept_doubt(const char *port, uint32_t number, const char *later,
                          uint32_t later_number)
{
    struct ft_topology *from = with_port(port, number, "spine0");
    struct ft_topology *to = with_port(later, later_number, "spine0");
    struct ft_trust before, trust;
    int64_t ms;

    ck_assert_int_eq(ft_trust_init(&before, from), 0);
    ck_assert_int_eq(ft_trust_init(&trust, to), 0);
    before.links[port_of(from, "leaf0", port)].uncertain_ms = 3000;
    ft_trust_follow(&trust, to, &before, from, 9000);
    ms = doubt(&trust, to, "leaf0", later);
    ck_assert_int_eq(doubt(&trust, to, "leaf1", "up0"), INT64_MIN);
    ft_trust_free(&before);
    ft_trust_free(&trust);
    ft_topology_free(from);
    ft_topology_free(to);
    return ms;
}

/* The doubt of a port is kept under its name, or else its number: then its link is the same. A port
 * that is not known again is another one, whose link is not the other end's before. */
START_TEST(a_port_with_another_name_is_known_by_its_number)
{
    ck_assert_int_eq(kept_doubt("up0", 100, "up0", 100), 3000);
    ck_assert_int_eq(kept_doubt("up0", 100, "Ethernet1", 100), 3000);
    ck_assert_int_eq(kept_doubt("up0", 100, "up0", 101), 3000);
    ck_assert_int_eq(kept_doubt("up0", 0, "up0", 0), 3000);
    ck_assert_int_eq(kept_doubt("up0", 0, "Ethernet1", 100), INT64_MIN);
    ck_assert_int_eq(kept_doubt("up0", 100, "Ethernet1", 101), INT64_MIN);
}
END_TEST

/* The link of one and the same port leads elsewhere: nothing is lost by that, and both are in
 * doubt. */
START_TEST(a_link_that_moves_is_in_doubt)
{
    struct ft_topology *from = with_port("up0", 100, "spine0"),
                       *to = with_port("up0", 100, "spine1");
    struct ft_trust trust = followed(to, from);

    ck_assert_int_eq(doubt(&trust, to, "leaf0", "up0"), 9000);
    ck_assert_int_eq(doubt(&trust, to, "leaf1", "up0"), INT64_MIN);
    ck_assert(!trust.loses_links);
    ft_trust_free(&trust);
    ft_topology_free(from);
    ft_topology_free(to);
}
END_TEST

/* Its ports are of no number in the next topology. */
START_TEST(a_switch_that_is_gone_takes_its_doubts_with_it)
{
    struct ft_topology *from = leafspine(2, 3, 1), *to = leafspine(2, 2, 1);
    struct ft_trust before, trust;

    ck_assert_int_eq(ft_trust_init(&before, from), 0);
    ck_assert_int_eq(ft_trust_init(&trust, to), 0);
    before.links[port_of(from, "spine2", "down0")].uncertain_ms = 3000;
    before.switches[ft_topology_find_switch(from, "spine2")].names_in_ms = 8000;
    ft_trust_follow(&trust, to, &before, from, 9000);
    ck_assert_int_eq(trust.uncertain_ms, INT64_MIN);
    for (uint32_t i = 0; i < ft_topology_switches(to); i++)
        ck_assert_int_eq(trust.switches[i].names_in_ms, INT64_MIN);
    ft_trust_free(&before);
    ft_trust_free(&trust);
    ft_topology_free(from);
    ft_topology_free(to);
}
END_TEST

FT_UNIT_MAIN("trust", nothing_is_trusted_or_in_doubt_at_first, the_newest_doubt_stands,
             samples_name_links_between_switches,
             a_lost_link_puts_the_sets_of_both_its_ends_in_doubt,
             the_same_topology_again_changes_nothing, a_topology_that_loses_links_is_known,
             flows_that_come_back_at_once_are_sprayed,
             what_was_sprayed_is_known_of_the_next_topology,
             a_new_link_puts_the_sets_of_both_its_ends_in_doubt,
             a_port_with_another_name_is_known_by_its_number, a_link_that_moves_is_in_doubt,
             a_switch_that_is_gone_takes_its_doubts_with_it)

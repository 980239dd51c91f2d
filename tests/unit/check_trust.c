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

FT_UNIT_MAIN("trust", nothing_is_trusted_or_in_doubt_at_first, the_newest_doubt_stands,
             samples_name_links_between_switches,
             a_lost_link_puts_the_sets_of_both_its_ends_in_doubt,
             the_same_topology_again_changes_nothing)

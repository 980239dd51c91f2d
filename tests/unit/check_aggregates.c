// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/capture/aggregates.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static char root[64];
static struct ft_aggregates *aggregates;

static void make(void)
{
    snprintf(root, sizeof(root), "/tmp/fabrictrace-net-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    aggregates = ft_aggregates_new(root);
    ck_assert_ptr_nonnull(aggregates);
}

static void drop(void)
{
    char command[128];

    ft_aggregates_free(aggregates);
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

static void put(const char *file, const char *line)
{
    char command[PATH_MAX];

    snprintf(command, sizeof(command),
             "f='%s/%s'; mkdir -p \"${f%%/*}\" && printf '%%s\\n' '%s' >\"$f\"", root, file, line);
    ck_assert_int_eq(system(command), 0);
}

/* A member of bond0 as the bonding driver shows it. */
static void put_member(const char *name, const char *mii, const char *state, const char *aggregator,
                       const char *mbps)
{
    char file[128];

    snprintf(file, sizeof(file), "%s/bonding_slave/mii_status", name);
    put(file, mii);
    snprintf(file, sizeof(file), "%s/bonding_slave/state", name);
    put(file, state);
    snprintf(file, sizeof(file), "%s/bonding_slave/ad_aggregator_id", name);
    put(file, aggregator);
    snprintf(file, sizeof(file), "%s/operstate", name);
    put(file, mii);
    snprintf(file, sizeof(file), "%s/speed", name);
    put(file, mbps);
    snprintf(file, sizeof(file), "bond0/lower_%s/ifindex", name);
    put(file, "7");
}

/* Names of those that send, and that receive, each behind a blank. */
static void check_picked(const struct ft_aggregate *a, const char *sending, const char *receiving)
{
    char text[256] = "";

    ck_assert_ptr_nonnull(a);
    for (size_t i = 0; i < a->sending_count; i++)
        strcat(strcat(text, " "), a->sending[i]);
    ck_assert_str_eq(text, sending);
    text[0] = '\0';
    for (size_t i = 0; i < a->receiving_count; i++)
        strcat(strcat(text, " "), a->receiving[i]);
    ck_assert_str_eq(text, receiving);
}

static void put_bond(const char *mode)
{
    put("bond0/bonding/mode", mode);
    put("bond0/bonding/slaves", "eth1 eth0");
    put("bond0/uevent", "DEVTYPE=bond");
    put_member("eth0", "up", "active", "1", "100000");
    put_member("eth1", "up", "active", "1", "100000");
}

START_TEST(what_is_no_aggregate)
{
    make();
    put("eth0/operstate", "up");
    put("eth0.100/lower_eth0/ifindex", "2");
    put("br0/lower_eth0/ifindex", "2");
    put("br0/lower_eth1/ifindex", "3");
    put("br0/uevent", "DEVTYPE=bridge");
    put("vrf0/lower_eth0/ifindex", "2");
    put("vrf0/lower_eth1/ifindex", "3");
    put("vrf0/uevent", "DEVTYPE=vrf");
    ck_assert_ptr_null(ft_aggregates_get(aggregates, "eth0"));
    ck_assert_ptr_null(ft_aggregates_get(aggregates, "eth0.100"));
    ck_assert_ptr_null(ft_aggregates_get(aggregates, "br0"));
    ck_assert_ptr_null(ft_aggregates_get(aggregates, "vrf0"));
    ck_assert_ptr_null(ft_aggregates_get(aggregates, "none"));
    ck_assert_ptr_null(ft_aggregates_get(aggregates, ""));
    ck_assert_ptr_null(ft_aggregates_get(aggregates, "../net/eth0"));
    ck_assert_ptr_null(ft_aggregates_at(aggregates, 0));
    drop();
}
END_TEST

START_TEST(a_bond_that_hashes_may_use_any)
{
    const struct ft_aggregate *a;

    make();
    put_bond("802.3ad 4");
    put("bond0/bonding/ad_aggregator", "1");
    a = ft_aggregates_get(aggregates, "bond0");
    check_picked(a, " eth1 eth0", " eth1 eth0");
    ck_assert_str_eq(a->mode, "802.3ad");
    ck_assert_uint_eq(a->members[0].speed_bps, 100000000000);
    ck_assert(a->members[0].up && a->members[0].has_used && a->members[0].used);
    /* A VLAN on it is as good. */
    put("bond0.7/lower_bond0/ifindex", "9");
    check_picked(ft_aggregates_get(aggregates, "bond0.7"), " eth1 eth0", " eth1 eth0");
    ck_assert_str_eq(ft_aggregates_get(aggregates, "bond0.7")->name, "bond0");
    /* A member whose link went down: seen at the next look. */
    put_member("eth1", "down", "backup", "2", "-1");
    ft_aggregates_look(aggregates);
    a = ft_aggregates_get(aggregates, "bond0");
    check_picked(a, " eth0", " eth0");
    ck_assert(!a->members[0].up && !a->members[0].used);
    ck_assert_uint_eq(a->members[0].speed_bps, 0);
    /* Up, but its partner did not join: it takes part in nothing. */
    put_member("eth1", "up", "backup", "2", "100000");
    ft_aggregates_look(aggregates);
    check_picked(ft_aggregates_get(aggregates, "bond0"), " eth0", " eth1 eth0");
    drop();
}
END_TEST

START_TEST(a_bond_with_a_backup_uses_one)
{
    make();
    put_bond("active-backup 1");
    put("bond0/bonding/active_slave", "eth0");
    check_picked(ft_aggregates_get(aggregates, "bond0"), " eth0", " eth1 eth0");
    /* Without an active one nothing is sent. */
    put("bond0/bonding/active_slave", "");
    ft_aggregates_look(aggregates);
    check_picked(ft_aggregates_get(aggregates, "bond0"), "", " eth1 eth0");
    drop();
}
END_TEST

START_TEST(other_modes_go_by_the_state)
{
    make();
    put_bond("balance-xor 2");
    put_member("eth0", "up", "backup", "", "25000");
    check_picked(ft_aggregates_get(aggregates, "bond0"), " eth1", " eth1 eth0");
    drop();
}
END_TEST

/* A team tells neither its mode nor whom it uses: any that is up may be. */
START_TEST(a_team_is_its_lower_interfaces)
{
    const struct ft_aggregate *a;

    make();
    put("team0/lower_eth3/ifindex", "5");
    put("team0/lower_eth2/ifindex", "4");
    put("team0/uevent", "INTERFACE=team0");
    put("eth2/operstate", "up");
    put("eth2/speed", "10000");
    put("eth3/operstate", "up");
    a = ft_aggregates_get(aggregates, "team0");
    check_picked(a, " eth2 eth3", " eth2 eth3");
    ck_assert_str_eq(a->mode, "");
    ck_assert(!a->members[0].has_used);
    put("eth2/operstate", "down");
    ft_aggregates_look(aggregates);
    check_picked(ft_aggregates_get(aggregates, "team0"), " eth3", " eth3");
    drop();
}
END_TEST

START_TEST(what_nobody_asks_for_is_forgotten)
{
    char name[16];

    make();
    put_bond("802.3ad 4");
    put("bond0/bonding/ad_aggregator", "1");
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "eth%d", i + 10);
        ck_assert_ptr_null(ft_aggregates_get(aggregates, name));
    }
    /* Full: nothing is said. */
    ck_assert_ptr_null(ft_aggregates_get(aggregates, "bond0"));
    ft_aggregates_look(aggregates);
    ft_aggregates_look(aggregates);
    ck_assert_ptr_nonnull(ft_aggregates_get(aggregates, "bond0"));
    ck_assert_str_eq(ft_aggregates_at(aggregates, 0)->name, "bond0");
    ck_assert_ptr_null(ft_aggregates_at(aggregates, 1));
    drop();
}
END_TEST

FT_UNIT_MAIN("aggregates", what_is_no_aggregate, a_bond_that_hashes_may_use_any,
             a_bond_with_a_backup_uses_one, other_modes_go_by_the_state,
             a_team_is_its_lower_interfaces, what_nobody_asks_for_is_forgotten)

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/topology_diff.h"
#include "tests/unit/unit.h"

enum {
    SAME,
    FABRIC,
    SWITCH_NAME,
    SWITCH_TIER,
    SWITCH_ADDRESS,
    PORT_NAME,
    PORT_IFINDEX,
    PORT_SPEED,
    LINK_GONE,
    LINK_ELSEWHERE,
    MORE_PORTS,
    LAG_NAME,
    LAG_IFINDEX,
    LAG_MEMBERS,
    LAG_ONE_MEMBER,
    HOST_NAME,
    HOST_MORE_NICS,
    NIC_RAIL,
    NIC_ADDRESS,
    NIC_PORT,
    NIC_GONE,
    DIFFERENCES,
};

static struct ft_topology_builder *b;
static struct ft_diag *diag;

static void address(const char *text, struct ft_ip *ip)
{
    ck_assert_int_eq(ft_ip_parse(text, ip), 0);
}

static void add_lag(uint32_t leaf, int differs)
{
    uint32_t lag = ft_topology_add_lag(b, leaf, differs == LAG_NAME ? "po2" : "po1",
                                       differs == LAG_IFINDEX ? 901 : 900, diag);

    ft_topology_add_member(b, lag, differs == LAG_MEMBERS ? "spare" : "up1", diag);
    if (differs != LAG_ONE_MEMBER)
        ft_topology_add_member(b, lag, "up2", diag);
}

static void add_hosts(int differs)
{
    uint32_t host = ft_topology_add_host(b, differs == HOST_NAME ? "n9" : "n1", diag);
    uint32_t nic = ft_topology_add_nic(b, host, differs == NIC_RAIL ? 1 : 0, diag);
    struct ft_ip ip;

    address(differs == NIC_ADDRESS ? "10.0.0.9" : "10.0.0.1", &ip);
    ck_assert_int_eq(ft_topology_add_nic_address(b, nic, &ip, diag), 0);
    if (differs != NIC_GONE)
        ck_assert_int_eq(
            ft_topology_attach(b, nic, "leaf1", differs == NIC_PORT ? "spare" : "h1", diag), 0);
    if (differs == HOST_MORE_NICS)
        ft_topology_add_nic(b, host, 5, diag);
}

static struct ft_topology *make(int differs, bool links_last)
{
    static const char *const ports[] = {"h1", "spare", "up1", "up2"};
    struct ft_topology *t;
    struct ft_ip ip;
    uint32_t leaf, spine;

    diag = ft_diag_new();
    b = ft_topology_builder_new(differs == FABRIC ? "other" : "lab");
    leaf = ft_topology_add_switch(b, "leaf1", FT_TIER_LEAF, diag);
    spine =
        ft_topology_add_switch(b, differs == SWITCH_NAME ? "spine9" : "spine1",
                               differs == SWITCH_TIER ? FT_TIER_SUPERSPINE : FT_TIER_SPINE, diag);
    address(differs == SWITCH_ADDRESS ? "192.0.2.9" : "192.0.2.1", &ip);
    ck_assert_int_eq(ft_topology_add_address(b, leaf, &ip, diag), 0);
    for (uint32_t i = 0; i < 4; i++)
        ft_topology_add_port(b, leaf, ports[i], differs == PORT_IFINDEX && i == 0 ? 99 : i + 1,
                             differs == PORT_SPEED ? 2000 : 1000, diag);
    if (!links_last)
        add_hosts(differs);
    ft_topology_add_link(b, "leaf1", differs == LINK_ELSEWHERE ? "spare" : "up1",
                         differs == SWITCH_NAME ? "spine9" : "spine1",
                         differs == PORT_NAME ? "d9" : "d1", diag);
    if (differs != LINK_GONE)
        ft_topology_add_link(b, "leaf1", "up2", differs == SWITCH_NAME ? "spine9" : "spine1", "d2",
                             diag);
    if (differs == MORE_PORTS)
        ft_topology_add_port(b, spine, "d3", 3, 0, diag);
    add_lag(leaf, differs);
    if (links_last)
        add_hosts(differs);
    t = ft_topology_build(b, diag);
    ck_assert_ptr_nonnull(t);
    ft_topology_builder_free(b);
    ft_diag_free(diag);
    return t;
}

START_TEST(whatever_differs_is_seen)
{
    struct ft_topology *first = make(SAME, false);

    for (int differs = FABRIC; differs < DIFFERENCES; differs++) {
        struct ft_topology *t = make(differs, false), *again = make(differs, false);

        ck_assert_msg(!ft_topology_same(first, t) && !ft_topology_same(t, first),
                      "difference %d is not seen", differs);
        ck_assert_msg(ft_topology_same(t, again), "difference %d differs from itself", differs);
        ft_topology_free(t);
        ft_topology_free(again);
    }
    ft_topology_free(first);
}
END_TEST

START_TEST(the_order_of_links_and_hosts_is_no_difference)
{
    struct ft_topology *first = make(SAME, false), *second = make(SAME, true);

    ck_assert(ft_topology_same(first, second));
    ck_assert_uint_eq(ft_topology_diff(first, second, NULL, NULL), 0);
    ft_topology_free(first);
    ft_topology_free(second);
}
END_TEST

FT_UNIT_MAIN("topology_diff", whatever_differs_is_seen,
             the_order_of_links_and_hosts_is_no_difference)

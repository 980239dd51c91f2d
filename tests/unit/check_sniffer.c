// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/sniffer.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/io/capture/pcap.h"
#include "tests/unit/unit.h"

static char root[64], net[80], rdma[80];
static const char *asked;

static void put(const char *file, const char *line)
{
    char command[PATH_MAX];

    snprintf(command, sizeof(command),
             "f='%s/%s'; mkdir -p \"${f%%/*}\" && printf '%%s\\n' '%s' >\"$f\"", root, file, line);
    ck_assert_int_eq(system(command), 0);
}

static void make(void)
{
    snprintf(root, sizeof(root), "/tmp/fabrictrace-sniffer-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(net, sizeof(net), "%s/net", root);
    snprintf(rdma, sizeof(rdma), "%s/infiniband", root);
    put("net/eth0/ifindex", "2");
    put("infiniband/mlx5_0/node_type", "1: CA");
    put("infiniband/eth0/node_type", "1: CA");
    for (int port = 1; port <= 2; port++) {
        char file[96], gid[64];

        snprintf(file, sizeof(file), "infiniband/mlx5_0/ports/%d/gid_attrs/types/3", port);
        put(file, "RoCE v2");
        snprintf(file, sizeof(file), "infiniband/mlx5_0/ports/%d/gids/3", port);
        snprintf(gid, sizeof(gid), "0000:0000:0000:0000:0000:ffff:0a0%d:0001", port);
        put(file, gid);
    }
}

static void drop(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

static bool lists(const char *device)
{
    asked = device;
    ck_assert_str_eq(device, "mlx5_0");
    return true;
}

static bool lists_none(const char *device)
{
    asked = device;
    return false;
}

START_TEST(rdma_devices_need_the_sniffer)
{
    static const char *const others[] = {"eth0",    "any", "lo",       "mlx5_1",
                                         "mlx5_0:", "",    "mlx5_0:0", "mlx5_0:1x",
                                         ":1",      "..",  "../net",   "mlx5_0:-1"};

    make();
    ck_assert_int_eq(ft_sniffer_choose("mlx5_0", net, rdma, lists), FT_SNIFFER_USED);
    ck_assert_int_eq(ft_sniffer_choose("mlx5_0:1", net, rdma, lists), FT_SNIFFER_USED);
    ck_assert_int_eq(ft_sniffer_choose("mlx5_0:2", net, rdma, lists_none), FT_SNIFFER_MISSING);
    asked = NULL;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        ck_assert_int_eq(ft_sniffer_choose(others[i], net, rdma, lists_none), FT_SNIFFER_NONE);
    ck_assert_ptr_null(asked);
    drop();
}
END_TEST

/* Both ends of a flow between two ports of one host are local: the port tells the direction. */
START_TEST(the_addresses_of_the_port_are_its_own)
{
    struct ft_interfaces *interfaces = ft_interfaces_new();
    uint32_t one, two;
    struct ft_ip a, b;

    make();
    ck_assert_int_eq(ft_ip_parse("10.1.0.1", &a), 0);
    ck_assert_int_eq(ft_ip_parse("10.2.0.1", &b), 0);
    ck_assert_int_eq(ft_interfaces_intern(interfaces, "mlx5_0:1", &one), 0);
    ck_assert_int_eq(ft_interfaces_intern(interfaces, "mlx5_0:2", &two), 0);
    ck_assert_int_eq(ft_interfaces_direction(interfaces, one, &a, &b), FT_FLOW_UNKNOWN);
    ck_assert_int_eq(ft_sniffer_add_addresses("mlx5_0:1", rdma, interfaces), 0);
    ck_assert_int_eq(ft_sniffer_add_addresses("mlx5_0:2", rdma, interfaces), 0);
    ck_assert_int_eq(ft_sniffer_add_addresses("eth9", rdma, interfaces), 0);
    ck_assert_int_eq(ft_interfaces_direction(interfaces, one, &a, &b), FT_FLOW_TX);
    ck_assert_int_eq(ft_interfaces_direction(interfaces, two, &a, &b), FT_FLOW_RX);
    ft_interfaces_free(interfaces);
    drop();
}
END_TEST

START_TEST(libpcap_lists_what_it_can)
{
    /* It lists what the caller may open. */
    ck_assert(!ft_pcap_lists("no such device"));
    if (ft_pcap_lists("any"))
        ck_assert(ft_pcap_lists("lo"));
}
END_TEST

FT_UNIT_MAIN("sniffer", rdma_devices_need_the_sniffer, the_addresses_of_the_port_are_its_own,
             libpcap_lists_what_it_can)

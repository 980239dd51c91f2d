// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/capture/interfaces.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>

#include "tests/unit/unit.h"

static struct ft_ip ip(const char *text)
{
    struct ft_ip value;

    ck_assert_int_eq(ft_ip_parse(text, &value), 0);
    return value;
}

static void add(struct ft_interfaces *x, uint32_t number, const char *text)
{
    struct ft_ip value = ip(text);

    ck_assert_int_eq(ft_interfaces_add(x, number, &value), 0);
}

static enum ft_flow_direction direction(const struct ft_interfaces *x, uint32_t number,
                                        const char *from, const char *to)
{
    struct ft_ip src = ip(from);
    struct ft_ip dst = ip(to);

    return ft_interfaces_direction(x, number, &src, &dst);
}

START_TEST(numbers_names_up_to_its_cap)
{
    struct ft_interfaces *x = ft_interfaces_new();
    uint32_t number;
    char name[16];

    for (uint32_t i = 0; i < FT_INTERFACES_MAX; i++) {
        snprintf(name, sizeof(name), "eth%u", i);
        ck_assert_int_eq(ft_interfaces_intern(x, name, &number), 0);
        ck_assert_uint_eq(number, i);
    }
    ck_assert_int_eq(ft_interfaces_intern(x, "eth7", &number), 0);
    ck_assert_uint_eq(number, 7);
    ck_assert_str_eq(ft_interfaces_name(x, 7), "eth7");
    ck_assert_int_eq(ft_interfaces_intern(x, "one-more", &number), -ENOSPC);
    ck_assert_uint_eq(number, 7);
    ft_interfaces_free(x);
}
END_TEST

START_TEST(tells_directions)
{
    struct ft_interfaces *x = ft_interfaces_new();
    uint32_t eth0, eth1;

    ck_assert_int_eq(ft_interfaces_intern(x, "eth0", &eth0), 0);
    ck_assert_int_eq(ft_interfaces_intern(x, "eth1", &eth1), 0);
    add(x, eth0, "10.0.1.1");
    add(x, eth0, "fd00::1");
    add(x, eth1, "10.1.1.1");
    add(x, FT_INTERFACE_NONE, "10.9.9.9");

    ck_assert_int_eq(direction(x, eth0, "10.0.1.1", "10.0.3.1"), FT_FLOW_TX);
    ck_assert_int_eq(direction(x, eth0, "10.0.3.1", "10.0.1.1"), FT_FLOW_RX);
    ck_assert_int_eq(direction(x, eth0, "fd00::2", "fd00::1"), FT_FLOW_RX);
    ck_assert_int_eq(direction(x, eth0, "10.0.3.1", "10.0.3.2"), FT_FLOW_UNKNOWN);
    /* Addresses of the host behind another device: a VLAN or a bond. */
    ck_assert_int_eq(direction(x, eth0, "10.9.9.9", "10.0.3.1"), FT_FLOW_TX);
    ck_assert_int_eq(direction(x, eth0, "10.0.3.1", "10.9.9.9"), FT_FLOW_RX);
    /* From one NIC of the host to the other, each sees its own side. */
    ck_assert_int_eq(direction(x, eth0, "10.0.1.1", "10.1.1.1"), FT_FLOW_TX);
    ck_assert_int_eq(direction(x, eth1, "10.0.1.1", "10.1.1.1"), FT_FLOW_RX);

    ft_interfaces_forget(x);
    ck_assert_int_eq(direction(x, eth0, "10.0.1.1", "10.0.3.1"), FT_FLOW_UNKNOWN);
    ft_interfaces_free(x);
}
END_TEST

START_TEST(finds_the_kernels_addresses)
{
    struct ft_interfaces *x = ft_interfaces_new();
    uint32_t lo;

    ck_assert_int_eq(ft_interfaces_intern(x, "lo", &lo), 0);
    ck_assert_int_eq(ft_interfaces_scan(x), 0);
    ck_assert_int_eq(direction(x, lo, "127.0.0.1", "192.0.2.1"), FT_FLOW_TX);
    ck_assert_int_eq(direction(x, lo, "192.0.2.1", "127.0.0.1"), FT_FLOW_RX);
    ft_interfaces_free(x);
}
END_TEST

START_TEST(refuses_addresses_over_its_cap)
{
    struct ft_interfaces *x = ft_interfaces_new();
    int err = 0;

    for (uint32_t i = 0; i <= FT_INTERFACE_ADDRESSES; i++) {
        struct ft_ip value = ft_ip4((uint8_t[]){10, 0, (uint8_t)(i >> 8), (uint8_t)i});

        ck_assert_int_eq(err, 0);
        err = ft_interfaces_add(x, FT_INTERFACE_NONE, &value);
    }
    ck_assert_int_eq(err, -ENOSPC);
    ft_interfaces_free(x);
}
END_TEST

/* As where kube-proxy gives every service's address to an interface of its own. */
START_TEST(addresses_of_interfaces_with_a_number_come_first)
{
    enum { COUNT = FT_INTERFACE_ADDRESSES + 2 };
    static struct sockaddr_in addresses[COUNT];
    static struct ifaddrs list[COUNT];
    static char services[] = "kube-ipvs0", ens1[] = "ens1";
    struct ft_interfaces *x = ft_interfaces_new();
    uint32_t number;

    ck_assert_int_eq(ft_interfaces_intern(x, ens1, &number), 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        addresses[i].sin_family = AF_INET;
        addresses[i].sin_addr.s_addr = htonl((10u << 24) + i);
        list[i].ifa_name = i + 1 < COUNT ? services : ens1;
        list[i].ifa_addr = (struct sockaddr *)&addresses[i];
        list[i].ifa_next = i + 1 < COUNT ? &list[i + 1] : NULL;
    }
    addresses[COUNT - 1].sin_addr.s_addr = htonl((192u << 24) + 1);
    ck_assert_int_eq(ft_interfaces_take(x, list), -ENOSPC);
    ck_assert_int_eq(direction(x, number, "192.0.0.1", "192.0.0.2"), FT_FLOW_TX);
    ck_assert_int_eq(direction(x, number, "192.0.0.2", "192.0.0.1"), FT_FLOW_RX);
    ft_interfaces_free(x);
}
END_TEST

FT_UNIT_MAIN("interfaces", numbers_names_up_to_its_cap, tells_directions,
             finds_the_kernels_addresses, refuses_addresses_over_its_cap,
             addresses_of_interfaces_with_a_number_come_first)

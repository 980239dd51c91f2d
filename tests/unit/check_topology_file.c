// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "lib/files/topology_file.h"
#include "tests/unit/unit.h"

#define SWITCHES                                                                                   \
    "fabric: lab\n"                                                                                \
    "switches:\n"                                                                                  \
    "  - {name: leaf1, addresses: [192.0.2.11]}\n"                                                 \
    "  - {name: leaf2, ports: [{name: e1, ifindex: 1}, {name: e49, ifindex: 49}]}\n"               \
    "  - {name: spine1}\n"

static struct ft_topology *read_text(const char *text, struct ft_diag *diag)
{
    struct ft_yaml *root = ft_yaml_parse(text, strlen(text), "t.yaml", diag);
    struct ft_topology *t = root ? ft_topology_file_read(root, diag) : NULL;

    ft_yaml_free(root);
    return t;
}

/* Exactly these complaints, one a line, and no topology. */
static void expect(const char *text, const char *complaints)
{
    struct ft_diag *diag = ft_diag_new();
    char all[4096] = "";

    ck_assert_ptr_null(read_text(text, diag));
    for (size_t i = 0; i < ft_diag_count(diag); i++)
        sprintf(all + strlen(all), "%s\n", ft_diag_text(diag, i));
    ck_assert_str_eq(all, complaints);
    ft_diag_free(diag);
}

START_TEST(reads_the_documented_format)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *t = read_text(
        "fabric: lab\n"
        "speed_bps: 400000000000\n"
        "switches:\n"
        "  - name: leaf1\n"
        "    tier: leaf\n"
        "    addresses: [192.0.2.11, '2001:db8::11']\n"
        "    ports:\n"
        "      - {ifindex: 49, name: Ethernet49, speed_bps: 800000000000}\n"
        "      - {ifindex: 50, name: Ethernet50}\n"
        "      - {name: Ethernet1}\n"
        "  - name: leaf2\n"
        "  - name: spine1\n"
        "links:\n"
        "  - {a: leaf1, a_port: Ethernet49, b: spine1, b_port: Ethernet1}\n"
        "  - {a: leaf1, a_port: Ethernet50, b: spine1, b_port: Ethernet2, speed_bps: 1000}\n"
        "  - {a: leaf2, a_port: Ethernet49, b: spine1, b_port: Ethernet3}\n"
        "hosts:\n"
        "  - name: gpu01\n"
        "    nics:\n"
        "      - {addresses: [10.0.1.1, 'fd00::1'], rail: 0,\n"
        "         attach: [{switch: leaf1, port: Ethernet1}, {switch: leaf2, port: Ethernet1}]}\n"
        "      - {addresses: [10.1.1.1], attach: [{switch: leaf2, port: Ethernet2}]}\n",
        diag);
    struct ft_ip ip;
    uint32_t leaf1, nic;

    if (!t)
        ck_abort_msg("%s", ft_diag_text(diag, 0));
    ck_assert_str_eq(ft_topology_fabric(t), "lab");
    leaf1 = ft_topology_find_switch(t, "leaf1");
    ck_assert_uint_eq(ft_topology_switch(t, leaf1)->port_count, 3);
    ck_assert_uint_eq(ft_topology_port(t, ft_topology_port_at(t, leaf1, 49))->speed_bps,
                      UINT64_C(800000000000));
    ck_assert_uint_eq(ft_topology_port(t, ft_topology_port_at(t, leaf1, 50))->speed_bps, 1000);
    ck_assert_uint_eq(ft_topology_port(t, ft_topology_find_port(t, leaf1, "Ethernet1"))->speed_bps,
                      UINT64_C(400000000000));
    ck_assert_int_eq(ft_topology_switch(t, 2)->tier, FT_TIER_SPINE);
    ck_assert_int_eq(ft_ip_parse("fd00::1", &ip), 0);
    nic = ft_topology_nic_at(t, &ip);
    ck_assert_uint_eq(nic, 0);
    ck_assert_uint_eq(ft_topology_nic(t, nic)->rail, 0);
    ck_assert_uint_eq(ft_topology_nic(t, nic)->attach_count, 2);
    ck_assert_uint_eq(ft_topology_nic(t, 1)->rail, FT_NONE);
    ft_topology_free(t);
    ft_diag_free(diag);
}
END_TEST

START_TEST(names_an_unknown_switch)
{
    expect(SWITCHES "links:\n"
                    "  - {a: leaf1, a_port: e49, b: spine9, b_port: e1}\n"
                    "hosts:\n"
                    "  - name: h1\n"
                    "    nics:\n"
                    "      - attach:\n"
                    "          - {switch: leaf9, port: e1}\n",
           "t.yaml:7: key 'links[0]': switch 'spine9' is not known\n"
           "t.yaml:12: key 'hosts[0].nics[0].attach[0]': switch 'leaf9' is not known\n");
}
END_TEST

START_TEST(names_a_duplicate_link_and_a_port_linked_twice)
{
    expect(SWITCHES "links:\n"
                    "  - {a: leaf1, a_port: e49, b: spine1, b_port: e1}\n"
                    "  - {a: spine1, a_port: e1, b: leaf1, b_port: e49}\n"
                    "  - {a: leaf2, a_port: e49, b: spine1, b_port: e1}\n",
           "t.yaml:8: key 'links[1]': the link from 'spine1' e1 to 'leaf1' e49 is defined twice "
           "(line 7)\n"
           "t.yaml:9: key 'links[2]': port 'e1' of switch 'spine1' is linked to 'e49' of 'leaf1' "
           "already (line 7)\n");
}
END_TEST

START_TEST(names_a_port_that_its_switch_misses)
{
    expect(SWITCHES "links:\n"
                    "  - {a: leaf2, a_port: e50, b: spine1, b_port: e1}\n"
                    "hosts:\n"
                    "  - {name: h1, nics: [{attach: [{switch: leaf2, port: e2}]}]}\n",
           "t.yaml:7: key 'links[0]': switch 'leaf2' has no port 'e50'\n"
           "t.yaml:9: key 'hosts[0].nics[0].attach[0]': switch 'leaf2' has no port 'e2'\n");
}
END_TEST

START_TEST(names_aggregates_that_do_not_fit)
{
    expect(SWITCHES "  - name: spine2\n"
                    "    lags:\n"
                    "      - {name: A, ifindex: 9, members: [e1, e3]}\n"
                    "      - {name: A, members: [e2]}\n"
                    "      - {name: B, ifindex: 9, members: [e2]}\n"
                    "      - {name: C, members: [e1, [e2]]}\n"
                    "      - {name: D, membres: [e2]}\n"
                    "      - {name: e2}\n"
                    "links:\n"
                    "  - {a: leaf1, a_port: e49, b: spine2, b_port: e1}\n"
                    "  - {a: leaf2, a_port: e49, b: spine2, b_port: e2}\n",
           "t.yaml:8: key 'switches[3].lags[0].members[1]': aggregate 'A': switch 'spine2' has no "
           "port 'e3'\n"
           "t.yaml:9: key 'switches[3].lags[1]': switch 'spine2' has a port or aggregate 'A' "
           "already\n"
           "t.yaml:10: key 'switches[3].lags[2]': ifIndex 9 of switch 'spine2' is aggregate 'A' "
           "already\n"
           "t.yaml:11: key 'switches[3].lags[3].members[0]': port 'e1' of switch 'spine2' is in "
           "aggregate 'A' already (line 8)\n"
           "t.yaml:11: key 'switches[3].lags[3].members[1]': has to be the name of a port\n"
           "t.yaml:12: key 'switches[3].lags[4].membres': is not known\n"
           "t.yaml:12: key 'switches[3].lags[4]': has to have members\n"
           "t.yaml:13: key 'switches[3].lags[5]': switch 'spine2' has a port or aggregate 'e2' "
           "already\n"
           "t.yaml:13: key 'switches[3].lags[5]': has to have members\n");
}
END_TEST

START_TEST(names_an_address_on_two)
{
    expect(SWITCHES "  - {name: spine2, addresses: [192.0.2.12, 192.0.2.11]}\n"
                    "hosts:\n"
                    "  - {name: h1, nics: [{addresses: [10.0.0.1]}]}\n"
                    "  - {name: h2, nics: [{addresses: [10.0.0.1, 10.0.0.300]}]}\n",
           "t.yaml:6: key 'switches[3].addresses[1]': address 192.0.2.11 belongs to switch 'leaf1' "
           "already (line 3)\nt.yaml:9: key 'hosts[1].nics[0].addresses[0]': address 10.0.0.1 "
           "belongs to a NIC of host 'h1' already (line 8)\nt.yaml:9: key "
           "'hosts[1].nics[0].addresses[1]': '10.0.0.300' is not an IPv4 or IPv6 address\n");
}
END_TEST

START_TEST(names_what_is_said_twice)
{
    expect(SWITCHES "  - {name: leaf1}\n"
                    "  - name: spine2\n"
                    "    ports:\n"
                    "      - {name: e1, ifindex: 7}\n"
                    "      - {name: e2, ifindex: 7}\n"
                    "      - {name: e1}\n"
                    "hosts: [{name: h}, {name: h}]\n",
           "t.yaml:6: key 'switches[3]': switch 'leaf1' is defined twice (line 3)\n"
           "t.yaml:10: key 'switches[4].ports[1]': ifIndex 7 of switch 'spine2' is port 'e1' "
           "already\n"
           "t.yaml:11: key 'switches[4].ports[2]': port 'e1' is stated twice\n"
           "t.yaml:12: key 'hosts[1]': host 'h' is defined twice (line 12)\n");
}
END_TEST

START_TEST(names_keys_and_values_that_are_wrong)
{
    expect("fabrik: lab\n"
           "speed_bps: fast\n"
           "switches:\n"
           "  - {name: leaf1, tier: tor, port: []}\n"
           "  - {tier: spine}\n"
           "  - leaf3\n"
           "  - {name: [x], ports: [{name: e1, ifindex: 0}]}\n"
           "links: 7\n"
           "hosts:\n"
           "  - {name: h1, nics: [{rail: -1, attach: [{switch: leaf1, porf: e1}]}]}\n",
           "t.yaml:1: key 'fabrik': is not known\n"
           "t.yaml:1: key 'fabric': is missing\n"
           "t.yaml:2: key 'speed_bps': has to be a number from 1 to 1000000000000000\n"
           "t.yaml:4: key 'switches[0].port': is not known\n"
           "t.yaml:4: key 'switches[0].tier': has to be leaf, spine or superspine\n"
           "t.yaml:5: key 'switches[1].name': is missing\n"
           "t.yaml:6: key 'switches[2]': has to be a map\n"
           "t.yaml:7: key 'switches[3].name': has to be a name\n"
           "t.yaml:7: key 'switches[3].ports[0].ifindex': has to be a number from 1 to "
           "2147483647\n"
           "t.yaml:8: key 'links': has to be a list\n"
           "t.yaml:10: key 'hosts[0].nics[0].rail': has to be a number from 0 to 65535\n"
           "t.yaml:10: key 'hosts[0].nics[0].attach[0].porf': is not known\n"
           "t.yaml:10: key 'hosts[0].nics[0].attach[0].port': is missing\n");
    expect("fabric: lab\nswitches:\n  - {name: ~}\n  - {name: null, ports: [{name: }]}\n",
           "t.yaml:3: key 'switches[0].name': has to be a name\n"
           "t.yaml:4: key 'switches[1].name': has to be a name\n"
           "t.yaml:4: key 'switches[1].ports[0].name': has to be a name\n");
    expect("- a\n- b\n", "t.yaml:1: has to be a map\n");
    expect("fabric: x\nfabric: y\n", "t.yaml:2: key 'fabric': is given twice (first in line 1)\n");
}
END_TEST

START_TEST(names_a_link_that_has_no_direction)
{
    expect(SWITCHES "links:\n"
                    "  - {a: leaf1, a_port: x, b: leaf2, b_port: e49}\n"
                    "hosts:\n"
                    "  - {name: h1, nics: [{attach: [{switch: leaf1, port: y}]}]}\n"
                    "  - {name: h2, nics: [{attach: [{switch: leaf2, port: e1}]}]}\n",
           "t.yaml:7: the link from 'leaf2' e49 to 'leaf1' x is inside the tier leaf: it is "
           "neither up nor down\n");
}
END_TEST

/* As fabrictrace topology --export writes it. */
START_TEST(reads_what_a_terminal_may_not_see)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *t = read_text("fabric: lab\n"
                                      "switches:\n"
                                      "  - {name: \"spine2\\x0A\\x1B\\u202E\\\\\u00e9\"}\n",
                                      diag);

    ck_assert_ptr_nonnull(t);
    ck_assert_uint_ne(ft_topology_find_switch(t, "spine2\n\033\u202e\\\u00e9"), FT_NONE);
    ft_topology_free(t);
    ft_diag_free(diag);
}
END_TEST

FT_UNIT_MAIN("topology_file", reads_the_documented_format, reads_what_a_terminal_may_not_see,
             names_an_unknown_switch, names_a_duplicate_link_and_a_port_linked_twice,
             names_a_port_that_its_switch_misses, names_aggregates_that_do_not_fit,
             names_an_address_on_two, names_what_is_said_twice,
             names_keys_and_values_that_are_wrong, names_a_link_that_has_no_direction)

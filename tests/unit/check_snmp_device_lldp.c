// SPDX-License-Identifier: Apache-2.0
/* Which port an LLDP neighbour is at, and who it is. */
#include "config.h"

#include "tests/unit/snmp_device_rig.h"

/* The ifIndex that a local port of this kind comes to. */
static uint32_t resolved(uint64_t subtype, const void *id, size_t len, const char *descr)
{
    struct answers locals = {0};
    uint32_t ifindex;

    set_up();
    begin();
    ports(three, 3);
    local(&locals, 3, subtype, id, len, descr);
    feed(&locals, FT_MIB_LLDP_LOCAL);
    ft_device_end(device, now());
    ifindex = device->locals.items[0].ifindex;
    ft_device_free(device);
    return ifindex;
}

START_TEST(resolves_by_subtype)
{
    ck_assert_uint_eq(resolved(INTERFACE_NAME, "Eth1/2", 6, ""), 2);
    ck_assert_uint_eq(resolved(INTERFACE_NAME, "Ethernet1/2", 11, ""), 2);
    ck_assert_uint_eq(resolved(INTERFACE_ALIAS, "to spine1", 9, ""), 1);
    ck_assert_uint_eq(resolved(MAC, "\2\0\0\0\0\1", 6, ""), 1);
    ck_assert_uint_eq(resolved(MAC, "02:00:00:00:00:01", 17, ""), 1);
    ck_assert_uint_eq(resolved(LOCAL, "Eth1/3", 6, ""), 3);
    /* Two ports have that MAC; the description tells them apart. */
    ck_assert_uint_eq(resolved(MAC, "\2\0\0\0\0\2", 6, "Ethernet1/3"), 3);
}
END_TEST

/* A number that looks like an ifIndex is none: the local port number is 3, the id says "2". */
START_TEST(never_guesses)
{
    ck_assert_uint_eq(resolved(LOCAL, "2", 1, ""), 0);
    ck_assert_uint_eq(resolved(LOCAL, "2", 1, "Ethernet1/1"), 1);
    ck_assert_uint_eq(resolved(INTERFACE_NAME, "eth1/2", 6, ""), 0);
    ck_assert_uint_eq(resolved(INTERFACE_NAME, "Eth1/", 5, ""), 0);
    ck_assert_uint_eq(resolved(INTERFACE_ALIAS, "Eth1/2", 6, ""), 0);
    ck_assert_uint_eq(resolved(MAC, "\2\0\0\0\0\2", 6, ""), 0);
    ck_assert_uint_eq(resolved(ADDRESS, "\1\300\0\2\1", 5, ""), 0);
    ck_assert_uint_eq(resolved(INTERFACE_NAME, "", 0, ""), 0);
}
END_TEST

/* Two port numbers that claim one interface: neither gets it. */
START_TEST(contradictions)
{
    struct answers locals = {0};

    set_up();
    begin();
    ports(three, 3);
    local(&locals, 10, INTERFACE_NAME, "Eth1/1", 6, "");
    local(&locals, 11, LOCAL, "x", 1, "Eth1/1");
    local(&locals, 12, INTERFACE_NAME, "Eth1/2", 6, "");
    feed(&locals, FT_MIB_LLDP_LOCAL);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->locals.items[0].ifindex, 0);
    ck_assert_uint_eq(device->locals.items[1].ifindex, 0);
    ck_assert_uint_eq(device->locals.items[2].ifindex, 2);
    ft_device_free(device);
}
END_TEST

/* A person has described port 1 by the name of the port at its other side, which this switch has
 * as well. */
START_TEST(a_description_that_is_the_name_of_another_port)
{
    static const struct port described[] = {{1, "Eth1/1", "Eth1/2", NULL, {2, 0, 0, 0, 0, 1}, 0},
                                            {2, "Eth1/2", "rack 7", NULL, {2, 0, 0, 0, 0, 2}, 0}};
    struct answers locals = {0};

    set_up();
    begin();
    ports(described, 2);
    local(&locals, 10, LOCAL, "x", 1, "Eth1/2");
    local(&locals, 11, LOCAL, "y", 1, "rack 7");
    feed(&locals, FT_MIB_LLDP_LOCAL);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->locals.items[0].ifindex, 0);
    ck_assert_uint_eq(device->locals.items[1].ifindex, 2);
    ft_device_free(device);
}
END_TEST

enum { ETHERNET = 6, UNIT = 53, AGGREGATE = 161 };

/* Ports with their units, and their numbers as port ids. */
static const struct port with_units[] = {
    {17, "em0", NULL, NULL, {2, 0, 0, 0, 0, 9}, ETHERNET},
    {513, "et-0/0/0", "et-0/0/1", NULL, {2, 0, 0, 0, 0, 1}, ETHERNET},
    {514, "et-0/0/0.0", NULL, NULL, {2, 0, 0, 0, 0, 1}, UNIT},
    {515, "et-0/0/1", NULL, NULL, {2, 0, 0, 0, 0, 2}, ETHERNET},
    {516, "et-0/0/1.0", NULL, NULL, {2, 0, 0, 0, 0, 2}, UNIT},
    {517, "et-0/0/10", "to host", NULL, {2, 0, 0, 0, 0, 3}, ETHERNET},
    {540, "ae0", NULL, NULL, {2, 0, 0, 0, 0, 4}, AGGREGATE},
};
#define WITH_UNITS (sizeof(with_units) / sizeof(with_units[0]))

/* What the last of these local ports comes to; each calls itself by its number. */
static uint32_t numbered(const uint32_t *numbers, size_t count, uint64_t subtype, const char *descr)
{
    struct answers locals = {0};
    char ids[8][12];
    uint32_t ifindex = 0;

    set_up();
    begin();
    ports(with_units, WITH_UNITS);
    for (size_t i = 0; i < count; i++) {
        snprintf(ids[i], sizeof(ids[i]), "%u", numbers[i]);
        local(&locals, numbers[i], subtype, ids[i], strlen(ids[i]), i + 1 < count ? "" : descr);
    }
    feed(&locals, FT_MIB_LLDP_LOCAL);
    ft_device_end(device, now());
    for (size_t i = 0; i < device->locals.count; i++)
        if (device->locals.items[i].number == numbers[count - 1])
            ifindex = device->locals.items[i].ifindex;
    ft_device_free(device);
    return ifindex;
}

/* Junos: the port id is the ifIndex, and so is LLDP's number of the port. */
START_TEST(numbers_that_can_only_be_ifindexes)
{
    ck_assert_uint_eq(numbered(INDEX(513), LOCAL, ""), 513);
    ck_assert_uint_eq(numbered(INDEX(513, 515), LOCAL, ""), 515);
    ck_assert_uint_eq(numbered(INDEX(513, 515), 0, ""), 515);
    /* That of the management interface may be that of a counted port as well. */
    ck_assert_uint_eq(numbered(INDEX(513, 515, 4), LOCAL, ""), 0);
    ck_assert_uint_eq(numbered(INDEX(4, 513), LOCAL, ""), 513);
    /* The description is that of the port, of its unit, or a text. */
    ck_assert_uint_eq(numbered(INDEX(515), LOCAL, "et-0/0/1.0"), 515);
    ck_assert_uint_eq(numbered(INDEX(517), LOCAL, "to host"), 517);
    ck_assert_uint_eq(numbered(INDEX(517), LOCAL, "something"), 517);
    /* "et-0/0/1" is what port 513 is described as, and the name of port 515: it says nothing. */
    ck_assert_uint_eq(numbered(INDEX(517), LOCAL, "et-0/0/1"), 517);
}
END_TEST

START_TEST(numbers_that_may_be_something_else)
{
    /* The description says another port. */
    ck_assert_uint_eq(numbered(INDEX(515), LOCAL, "et-0/0/10"), 0);
    ck_assert_uint_eq(numbered(INDEX(517), LOCAL, "et-0/0/1.0"), 0);
    /* No Ethernet port has it. */
    ck_assert_uint_eq(numbered(INDEX(514), LOCAL, ""), 0);
    ck_assert_uint_eq(numbered(INDEX(513, 540), LOCAL, ""), 0);
    ck_assert_uint_eq(numbered(INDEX(513, 600), LOCAL, ""), 0);
    /* Half of the numbers are no ifIndexes: then none is. */
    ck_assert_uint_eq(numbered(INDEX(600, 513), LOCAL, ""), 0);
    ck_assert_uint_eq(numbered(INDEX(600, 515, 513), LOCAL, ""), 513);
    /* It says that it is a name. */
    ck_assert_uint_eq(numbered(INDEX(513), INTERFACE_NAME, ""), 0);
}
END_TEST

/* Time marks change as neighbours are learnt: the same row under several is one neighbour. */
START_TEST(neighbours)
{
    struct answers locals = {0};
    struct answers remotes = {0};
    struct answers addresses = {0};
    const Fabrictrace__SwitchReport *reported;
    char problem[FT_DEVICE_PROBLEM_BYTES];

    set_up();
    begin();
    ports(three, 3);
    set_number(answer(&remotes, FT_MIB_LLDP_REMOTE, FT_MIB_REM_CHASSIS_SUBTYPE, INDEX(6, 51, 1)),
               FT_SNMP_INTEGER, 4); /* the rest of it came under the next mark */
    remote(&remotes, 7, 51, 1, "spine1");
    remote(&remotes, 9, 51, 1, "spine1");
    remote(&remotes, 9, 52, 4, "spine2");
    set_string(answer(&remotes, FT_MIB_LLDP_REMOTE, FT_MIB_REM_ENABLED, INDEX(9, 52, 4)), "\x28",
               1);
    remote(&remotes, 9, 77, 5, "nobody");
    remote(&remotes, 9, 77, 6, "nobody else");
    feed(&remotes, FT_MIB_LLDP_REMOTE);
    set_number(
        answer(&addresses, FT_MIB_LLDP_REMOTE_ADDRESSES, 0, INDEX(9, 52, 4, 1, 4, 192, 0, 2, 9)),
        FT_SNMP_INTEGER, 2);
    set_number(
        answer(&addresses, FT_MIB_LLDP_REMOTE_ADDRESSES, 0, INDEX(9, 52, 4, 1, 5, 192, 0, 2, 9)),
        FT_SNMP_INTEGER, 2);
    feed(&addresses, FT_MIB_LLDP_REMOTE_ADDRESSES);
    ck_assert(ft_device_has_new_neighbors(device));
    local(&locals, 51, INTERFACE_NAME, "Eth1/1", 6, "");
    local(&locals, 52, INTERFACE_ALIAS, "to spine2", 9, "");
    local(&locals, 77, LOCAL, "77", 2, "");
    feed(&locals, FT_MIB_LLDP_LOCAL);
    ft_device_end(device, now());

    ck_assert_uint_eq(device->stats.unresolved, 2);
    ft_device_problem(device, problem);
    ck_assert_ptr_nonnull(strstr(problem, "LLDP port 77 ('77')"));
    ck_assert_ptr_null(strstr(strstr(problem, "LLDP port") + 1, "LLDP port"));
    ck_assert_ptr_null(strstr(problem, "more such ports"));
    reported = report();
    ck_assert_uint_eq(reported->n_neighbors, 2);
    ck_assert_uint_eq(reported->neighbors[0]->ifindex, 1);
    ck_assert_str_eq(reported->neighbors[0]->name, "spine1");
    ck_assert_str_eq(reported->neighbors[0]->chassis_id, "01:02:03:04:05:06");
    ck_assert_str_eq(reported->neighbors[0]->port_id, "Ethernet1");
    ck_assert_uint_eq(reported->neighbors[0]->n_addresses, 0);
    ck_assert_uint_eq(reported->neighbors[1]->ifindex, 2);
    ck_assert_uint_eq(reported->neighbors[1]->n_addresses, 1);
    ck_assert(!reported->neighbors[0]->has_forwards);
    ck_assert(reported->neighbors[1]->has_forwards && reported->neighbors[1]->forwards);
    ck_assert_mem_eq(reported->neighbors[1]->addresses[0].data, "\300\0\2\11", 4);
    ck_assert_str_eq(reported->name, "leaf1");
    ck_assert_uint_eq(reported->n_ports, 3);
    ck_assert_int_eq(reported->ports[1]->lldp_id_kind,
                     FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_ALIAS);
    ck_assert_str_eq(reported->ports[1]->lldp_id, "to spine2");
    fabrictrace__record__free_unpacked(kept, NULL);
    ft_device_free(device);
}
END_TEST

START_TEST(ports_without_an_interface)
{
    struct answers remotes = {0};
    char problem[FT_DEVICE_PROBLEM_BYTES];

    set_up();
    begin();
    ports(three, 3);
    for (uint32_t port = 1; port <= 4; port++) {
        remote(&remotes, 0, port, 1, "spine1");
        remote(&remotes, 0, port, 2, "spine2");
        if (port != 3)
            continue;
        feed(&remotes, FT_MIB_LLDP_REMOTE);
        ft_device_end(device, now());
        ft_device_problem(device, problem);
        ck_assert_ptr_nonnull(strstr(problem, "LLDP port 3 ('without an id')"));
        ck_assert_ptr_null(strstr(problem, "more such ports"));
        begin();
    }
    feed(&remotes, FT_MIB_LLDP_REMOTE);
    ft_device_end(device, now());
    ft_device_problem(device, problem);
    ck_assert_ptr_nonnull(strstr(problem, "more such ports"));
    ck_assert_ptr_null(strstr(problem, "LLDP port 4"));
    ft_device_free(device);
}
END_TEST

/* An agent that begins the remote index anew: the mark alone tells a port's neighbours apart. */
START_TEST(neighbours_of_one_remote_index)
{
    struct answers locals = {0};
    struct answers remotes = {0};
    struct answers addresses = {0};
    const Fabrictrace__SwitchReport *reported;

    set_up();
    begin();
    ports(three, 3);
    remote(&remotes, 7, 51, 1, "spine1");
    remote(&remotes, 9, 51, 1, "spine2");
    feed(&remotes, FT_MIB_LLDP_REMOTE);
    set_number(
        answer(&addresses, FT_MIB_LLDP_REMOTE_ADDRESSES, 0, INDEX(9, 51, 1, 1, 4, 192, 0, 2, 9)),
        FT_SNMP_INTEGER, 2);
    set_number(
        answer(&addresses, FT_MIB_LLDP_REMOTE_ADDRESSES, 0, INDEX(8, 51, 1, 1, 4, 192, 0, 2, 8)),
        FT_SNMP_INTEGER, 2);
    feed(&addresses, FT_MIB_LLDP_REMOTE_ADDRESSES);
    local(&locals, 51, INTERFACE_NAME, "Eth1/1", 6, "");
    feed(&locals, FT_MIB_LLDP_LOCAL);
    ft_device_end(device, now());
    reported = report();
    ck_assert_uint_eq(reported->n_neighbors, 2);
    ck_assert_str_eq(reported->neighbors[0]->name, "spine1");
    ck_assert_uint_eq(reported->neighbors[0]->n_addresses, 0);
    ck_assert_str_eq(reported->neighbors[1]->name, "spine2");
    ck_assert_uint_eq(reported->neighbors[1]->n_addresses, 1);
    ck_assert_mem_eq(reported->neighbors[1]->addresses[0].data, "\300\0\2\11", 4);
    fabrictrace__record__free_unpacked(kept, NULL);
    /* The same rows again are no fewer. */
    begin();
    feed(&remotes, FT_MIB_LLDP_REMOTE);
    ck_assert(!ft_device_lost_neighbors(device));
    ft_device_end(device, now());
    begin();
    remotes.count = 0;
    remote(&remotes, 9, 51, 1, "spine2");
    feed(&remotes, FT_MIB_LLDP_REMOTE);
    ck_assert(ft_device_lost_neighbors(device));
    ft_device_free(device);
}
END_TEST

/* SONiC has the time mark 0 in one table and the time in the other; Extreme's SLX has no length in
 * front of the address. */
START_TEST(addresses_that_are_indexed_otherwise)
{
    struct answers remotes = {0};
    struct answers addresses = {0};
    enum ft_mib_table t = FT_MIB_LLDP_REMOTE_ADDRESSES;
    const struct ft_device_neighbor *n;

    set_up();
    begin();
    ports(three, 3);
    for (uint32_t port = 1; port <= 4; port++)
        remote(&remotes, 0, port, 5, "spine1");
    feed(&remotes, FT_MIB_LLDP_REMOTE);
    set_number(answer(&addresses, t, 0, INDEX(18543, 1, 5, 1, 4, 192, 0, 2, 9)), FT_SNMP_INTEGER,
               2);
    set_number(answer(&addresses, t, 0, INDEX(0, 2, 5, 1, 192, 0, 2, 9)), FT_SNMP_INTEGER, 2);
    set_number(answer(&addresses, t, 0, INDEX(0, 2, 5, 6, 2, 0, 0, 0, 0, 1)), FT_SNMP_INTEGER, 2);
    set_number(answer(&addresses, t, 0, INDEX(0, 3, 5, 1, 3, 10, 2, 9)), FT_SNMP_INTEGER, 2);
    set_number(answer(&addresses, t, 0, INDEX(0, 4, 5, 1, 5, 192, 0, 2, 9)), FT_SNMP_INTEGER, 2);
    set_number(answer(&addresses, t, 0, INDEX(0, 4, 6, 1, 4, 192, 0, 2, 9)), FT_SNMP_INTEGER, 2);
    feed(&addresses, t);
    ft_device_end(device, now());
    n = device->neighbors.items;
    ck_assert_uint_eq(device->neighbors.count, 4);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(n[i].address_count, 1);
    ck_assert_mem_eq(n[0].addresses[0].b + 12, "\300\0\2\11", 4);
    ck_assert_mem_eq(n[1].addresses[0].b + 12, "\300\0\2\11", 4);
    ck_assert_mem_eq(n[2].addresses[0].b + 12, "\3\12\2\11", 4);
    ck_assert_uint_eq(n[3].address_count, 0);
    ft_device_free(device);
}
END_TEST

START_TEST(mac_addresses_as_text)
{
    static const char *const texts[] = {"02:0A:00:00:00:ff", "02-0a-00-00-00-FF",
                                        "02 0A 00 00 00 FF"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char *mac = ft_identity_mac((const uint8_t *)texts[i], 17);

        ck_assert_str_eq(mac, "02:0a:00:00:00:ff");
        free(mac);
    }
    ck_assert_ptr_null(ft_identity_mac((const uint8_t *)"02:0a:00:00:00\0ff", 17));
    ck_assert_ptr_null(ft_identity_mac((const uint8_t *)"02.0a.00.00.00.ff", 17));
}
END_TEST

static void capable(struct answers *a, uint32_t number, const char *bits, size_t len)
{
    remote(a, 1, number, 1, "someone");
    set_string(answer(a, FT_MIB_LLDP_REMOTE, FT_MIB_REM_ENABLED, INDEX(1, number, 1)), bits, len);
}

START_TEST(neighbours_that_forward)
{
    struct answers remotes = {0};
    const struct ft_device_neighbor *n;

    set_up();
    begin();
    ports(three, 3);
    capable(&remotes, 1, "\x20", 1);     /* bridge */
    capable(&remotes, 2, "\x08\0", 2);   /* router */
    capable(&remotes, 3, "\x01", 1);     /* station only */
    capable(&remotes, 4, "\x10\xff", 2); /* WLAN access point; the second octet is not defined */
    capable(&remotes, 5, "\0", 1);
    capable(&remotes, 6, "", 0);
    remote(&remotes, 1, 7, 1, "someone");
    feed(&remotes, FT_MIB_LLDP_REMOTE);
    ft_device_end(device, now());
    n = device->neighbors.items;
    ck_assert_uint_eq(device->neighbors.count, 7);
    ck_assert(n[0].has_forwards && n[0].forwards && n[1].has_forwards && n[1].forwards);
    ck_assert(n[2].has_forwards && !n[2].forwards && n[3].has_forwards && !n[3].forwards);
    ck_assert(!n[4].has_forwards && !n[5].has_forwards && !n[6].has_forwards);
    ft_device_free(device);
}
END_TEST

FT_UNIT_MAIN("snmp_device_lldp", resolves_by_subtype, never_guesses, contradictions,
             a_description_that_is_the_name_of_another_port, numbers_that_can_only_be_ifindexes,
             numbers_that_may_be_something_else, neighbours, ports_without_an_interface,
             neighbours_of_one_remote_index, addresses_that_are_indexed_otherwise,
             mac_addresses_as_text, neighbours_that_forward)

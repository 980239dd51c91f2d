// SPDX-License-Identifier: Apache-2.0
/* One switch that says nothing does not blind the rest: on the leaf-spine of the rig, as large as
 * LEAVES and SPINES say. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/discovery_rig.h"

#define BLIND (SPINES - 1)

static char blind_name[32];

/* Spines' neighbours tell their management addresses and that they forward; hosts are mute. */
static void begin_blind(void)
{
    begin(false);
    snprintf(blind_name, sizeof(blind_name), "spine%d", BLIND);
    for (uint32_t i = 0; i < LEAVES * SPINES; i++) {
        struct port *p = uplink(i / SPINES, i % SPINES);
        size_t len;

        p->row.has_forwards = p->row.forwards = true;
        memcpy(p->row_ip, ft_ip_bytes(&boxes[LEAVES + i % SPINES].ip, &len), 4);
        p->row_address = (ProtobufCBinaryData){.len = 4, .data = p->row_ip};
        p->row.addresses = &p->row_address;
        p->row.n_addresses = 1;
    }
}

static void never_answers(void)
{
    static char problem[] = "wrong credentials";
    struct box *box = &boxes[LEAVES + BLIND];

    box->report.reachable = box->report.has_lldp = false;
    box->report.problem = problem;
    box->report.name = box->report.chassis_id = NULL;
    box->port_count = 0;
}

/* All but the last spines. */
static void send_others(uint32_t blind)
{
    for (uint32_t i = 0; i < SWITCHES - blind; i++)
        send(i);
}

/* Whether samples that come in by a port are asked for, as the pipeline does. */
static bool is_edge(uint32_t leaf, uint32_t port)
{
    return !ft_discovery_linked(discovery, boxes[leaf].name, boxes[leaf].ports[port].name);
}

/* Every host sends to every other for some seconds, over each spine in turn: its packets come in
 * at its leaf, and at the receiver's, where that is not known to be a link. */
static void send_traffic(uint32_t seconds)
{
    for (uint32_t i = 0; i < seconds; i++, now_ms += 1000)
        for (uint32_t from = 0; from < LEAVES * HOSTS; from++)
            for (uint32_t to = 0; to < LEAVES; to++) {
                struct ft_ip source = leafspine_host_ip(from / HOSTS, from % HOSTS);
                struct ft_ip here = leafspine_switch_ip(from / HOSTS);
                struct ft_ip there = leafspine_switch_ip(to);

                ft_discovery_entered(discovery, &source, &here, 1 + from % HOSTS, now_ms, false);
                for (uint32_t s = 0; s < SPINES && to != from / HOSTS; s++)
                    if (is_edge(to, s))
                        ft_discovery_entered(discovery, &source, &there, 100 + s, now_ms + 10,
                                             true);
            }
}

static void assert_hosts(void)
{
    char text[64];

    for (uint32_t l = 0; l < LEAVES; l++)
        for (uint32_t h = 0; h < HOSTS; h++) {
            snprintf(text, sizeof(text), "leaf%u/host%u", l, h);
            ck_assert_str_eq(attached(leafspine_host_ip(l, h)), text);
        }
}

/* All that is said, and by whom: once, and at the switch that is blind. */
static void assert_blamed(const char *says)
{
    const struct ft_findings *f = ft_discovery_findings(discovery);

    for (size_t i = 0; i < f->count; i++)
        if (f->count != 1 || strcmp(f->items[i].switch_name, blind_name) != 0)
            fprintf(stderr, "%s %s: %s\n", f->items[i].switch_name, f->items[i].port,
                    f->items[i].text);
    ck_assert_uint_eq(f->count, 1);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, blind_name, "", says), 1);
}

/* Switches and links as they are; hosts have no names but their addresses. */
static void assert_links(void)
{
    char name[32];

    ck_assert_uint_eq(ft_topology_switches(found), SWITCHES);
    for (uint32_t l = 0; l < LEAVES; l++)
        for (uint32_t s = 0; s < SPINES; s++) {
            const struct ft_port *up, *down;
            uint32_t at;

            snprintf(name, sizeof(name), "leaf%u", l);
            at = port_of(name, boxes[l].ports[s].name);
            ck_assert_uint_ne(at, FT_NONE);
            up = ft_topology_port(found, at);
            ck_assert_uint_ne(up->peer, FT_NONE);
            down = ft_topology_port(found, up->peer);
            snprintf(name, sizeof(name), "spine%u", s);
            ck_assert_str_eq(ft_topology_switch(found, down->switch_id)->name, name);
            snprintf(name, sizeof(name), "down%u", l);
            ck_assert_str_eq(down->name, name);
        }
}

static void assert_whole(void)
{
    struct ft_ip address = leafspine_switch_ip(LEAVES + BLIND);
    uint32_t blind = ft_topology_find_switch(found, blind_name);

    assert_links();
    assert_hosts();
    ck_assert_int_eq(ft_topology_switch(found, blind)->tier, FT_TIER_SPINE);
    ck_assert_uint_eq(ft_topology_switch_at(found, &address), blind);
}

START_TEST(a_spine_that_never_answers_is_named_by_its_neighbours)
{
    begin_blind();
    never_answers();
    send_all();
    build();
    send_traffic(4);
    build();
    assert_whole();
    assert_blamed("never answered SNMP, wrong credentials");
    ck_assert(ft_discovery_findings(discovery)->items[0].blind);
    end();
}
END_TEST

/* Once it answers nothing of it changes, but that more is known. */
START_TEST(a_spine_that_answers_at_last_is_the_same)
{
    uint32_t ports;

    begin_blind();
    ports = boxes[LEAVES + BLIND].port_count;
    never_answers();
    send_all();
    send_traffic(4);
    build();
    assert_whole();
    make_reports(false);
    ck_assert_uint_eq(boxes[LEAVES + BLIND].port_count, ports);
    send_all();
    build();
    assert_whole();
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 0);
    end();
}
END_TEST

START_TEST(a_spine_that_nobody_lists_is_named_by_its_neighbours)
{
    begin_blind();
    send_others(1);
    build();
    /* What forwards may be a host: nobody has seen it forward yet. */
    ck_assert_uint_eq(ft_topology_find_switch(found, blind_name), FT_NONE);
    send_traffic(2);
    build();
    send_traffic(4);
    build();
    assert_whole();
    assert_blamed("no switch poller reads it");
    /* It stays one, though nothing is asked any more of what comes in by its links. */
    for (int i = 0; i < 5; i++) {
        now_ms += 120000;
        send_others(1);
        send_traffic(2);
        build();
        assert_whole();
    }
    end();
}
END_TEST

START_TEST(a_spine_without_lldp_mib_is_known_from_its_neighbours)
{
    begin_blind();
    boxes[LEAVES + BLIND].report.has_lldp = false;
    for (uint32_t l = 0; l < LEAVES; l++)
        downlink(l, BLIND)->hears = false;
    send_all();
    send_all();
    build();
    send_traffic(4);
    build();
    assert_whole();
    assert_blamed("it answers no LLDP");
    end();
}
END_TEST

/* The first that answers is a spine that hears nobody: packets of hosts come in by its ports, and
 * the leaves that saw them before are exporters that nobody knows yet. */
START_TEST(hosts_wait_until_it_shows_where_they_are)
{
    struct ft_ip source = leafspine_host_ip(0, 0);

    begin_blind();
    boxes[LEAVES + BLIND].report.has_lldp = false;
    for (uint32_t l = 0; l < LEAVES; l++)
        downlink(l, BLIND)->hears = false;
    send(LEAVES + BLIND);
    ft_discovery_unknown_exporter(discovery, now_ms);
    enter(LEAVES + BLIND, 1, source, now_ms, 4);
    ck_assert(ft_discovery_due(discovery, now_ms, 0));
    build();
    ck_assert_str_eq(attached(source), "");
    ck_assert(!ft_discovery_due(discovery, now_ms + 1000, 1000));
    now_ms += 30000;
    ck_assert(ft_discovery_due(discovery, now_ms, 1000));
    enter(LEAVES + BLIND, 1, source, now_ms, 4);
    build();
    ck_assert_str_ne(attached(source), "");
    /* What was found stays when another exporter comes. */
    ft_discovery_unknown_exporter(discovery, now_ms);
    build();
    ck_assert_str_ne(attached(source), "");
    end();
}
END_TEST

/* A leaf has heard one spine, and not yet the other, which nobody lists: what comes in from there
 * is not from hosts. Once LLDP had the time to name all, the other ports are for hosts. */
START_TEST(hosts_wait_until_lldp_had_time)
{
    struct ft_ip local = leafspine_host_ip(0, 0), far = leafspine_host_ip(1, 0);

    begin_blind();
    for (uint32_t l = 0; l < LEAVES; l++) {
        Fabrictrace__Neighbor *row = &downlink(l, 0)->row;

        uplink(l, BLIND)->hears = false;
        row->has_forwards = row->forwards = true;
    }
    send(0);
    send(LEAVES);
    for (int i = 0; i < 2; i++, now_ms += 10000) {
        ft_discovery_unknown_exporter(discovery, now_ms);
        enter(0, 1, local, now_ms, 4);
        enter(0, 100 + BLIND, far, now_ms, 4);
        build();
        ck_assert_str_eq(attached(local), "");
        ck_assert_str_eq(attached(far), "");
    }
    uplink(0, BLIND)->hears = true;
    now_ms += 45000;
    send(0);
    send(LEAVES);
    ft_discovery_unknown_exporter(discovery, now_ms);
    ck_assert(ft_discovery_due(discovery, now_ms, 1000));
    build();
    ck_assert_str_eq(attached(local), "leaf0/host0");
    ck_assert_str_eq(attached(far), "");
    end();
}
END_TEST

START_TEST(a_spine_whose_lldp_dies_keeps_its_links)
{
    begin_blind();
    send_all();
    send_traffic(4);
    build();
    assert_whole();
    boxes[LEAVES + BLIND].report.has_lldp = false;
    for (uint32_t l = 0; l < LEAVES; l++)
        uplink(l, BLIND)->hears = downlink(l, BLIND)->hears = false;
    for (int i = 0; i < 10; i++) {
        now_ms += INTERVAL_MS;
        send_all();
        send_traffic(2);
        build();
        assert_whole();
        if (i > 0)
            assert_blamed("it answers no LLDP any more");
    }
    end();
}
END_TEST

/* Also where only the leaves had heard it by then. What hears somebody else is not that link. */
START_TEST(a_spine_whose_lldp_dies_before_it_has_heard_anybody)
{
    begin_blind();
    for (uint32_t l = 0; l < LEAVES; l++)
        downlink(l, BLIND)->hears = false;
    send_all();
    send_traffic(4);
    build();
    assert_whole();
    boxes[LEAVES + BLIND].report.has_lldp = false;
    for (uint32_t l = 0; l < LEAVES; l++)
        uplink(l, BLIND)->hears = false;
    for (int i = 0; i < 10; i++) {
        now_ms += INTERVAL_MS;
        send_all();
        build();
        assert_whole();
        if (i > 0)
            assert_blamed("it answers no LLDP");
    }
    downlink(1, BLIND)->info.oper_up = false;
    send_all();
    build();
    ck_assert_uint_eq(
        findings(FT_FINDING_LINK_DOWN, "leaf1", uplink(1, BLIND)->name, "a port of it is down"), 1);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, NULL, NULL, NULL), 1);
    downlink(1, BLIND)->info.oper_up = true;
    hear(uplink(0, BLIND), "02:cc:00:00:00:00", "somebody",
         FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME, "eth0");
    send_all();
    build();
    ck_assert_uint_eq(ft_topology_port(found, port_of("leaf0", uplink(0, BLIND)->name))->peer,
                      FT_NONE);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, NULL, NULL, "neither side receives LLDP"), 1);
    end();
}
END_TEST

/* The ids of ports may be MAC addresses: then their names are in the descriptions. */
START_TEST(ports_are_named_by_their_description)
{
    static char names[LEAVES][16];
    char mac[32];

    begin_blind();
    never_answers();
    for (uint32_t l = 0; l < LEAVES; l++) {
        struct port *p = uplink(l, BLIND);

        snprintf(mac, sizeof(mac), "02:00:00:0A:00:%02X", l);
        strcpy(p->row_port, mac);
        p->row.port_kind = FABRICTRACE__ID_KIND__ID_KIND_MAC;
        snprintf(names[l], sizeof(names[l]), "down%u", l);
        p->row.port_description = names[l];
    }
    send_all();
    send_traffic(4);
    build();
    assert_whole();
    end();
}
END_TEST

/* Two switches with one chassis id, each heard by a port of that name: it is not told which is
 * linked where, so neither is. */
START_TEST(what_two_strangers_share_names_neither)
{
    begin_blind();
    never_answers();
    for (uint32_t l = 0; l < LEAVES; l++) {
        strcpy(uplink(l, BLIND)->row_port, "down0");
        uplink(l, BLIND)->row.name = NULL;
    }
    send_all();
    build();
    for (uint32_t l = 0; l < LEAVES; l++)
        ck_assert_uint_eq(
            ft_topology_port(found, port_of(boxes[l].name, uplink(l, BLIND)->name))->peer, FT_NONE);
    end();
}
END_TEST

/* Hosts are known before anything comes in by the spine: what then does is news. */
START_TEST(what_shows_a_switch_is_news)
{
    begin_blind();
    send_others(1);
    for (uint32_t h = 0; h < LEAVES * HOSTS; h++)
        enter(h / HOSTS, 1 + h % HOSTS, leafspine_host_ip(h / HOSTS, h % HOSTS), now_ms, 5);
    ck_assert(ft_discovery_due(discovery, now_ms + 5000, 1000));
    build();
    assert_hosts();
    ck_assert(!ft_discovery_due(discovery, now_ms + 5000, 1000));
    send_traffic(4);
    ck_assert(ft_discovery_due(discovery, now_ms, 1000));
    build();
    assert_whole();
    end();
}
END_TEST

/* Half of the spines, or all but one, neither listed nor answering: each is named. */
START_TEST(several_spines_that_nobody_lists)
{
    char name[32];

    begin_blind();
    send_others(SPINES - 1);
    build();
    send_traffic(4);
    build();
    send_traffic(4);
    build();
    assert_whole();
    for (uint32_t s = 1; s < SPINES; s++) {
        snprintf(name, sizeof(name), "spine%u", s);
        ck_assert_uint_eq(findings(FT_FINDING_NOTE, name, "", "no switch poller reads it"), 1);
    }
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, SPINES - 1);
    end();
}
END_TEST

/* Each leaf hears a machine that forwards for its containers and has a NIC at each of them. */
static void hear_machine(const char *name, Fabrictrace__IdKind kind)
{
    for (uint32_t l = 0; l < LEAVES; l++) {
        char port[32];

        snprintf(port, sizeof(port), "02:bb:00:00:00:%02x", l);
        hear(host_port(l, 0), "02:bb:00:00:00:ff", name, kind, port);
        host_port(l, 0)->row.has_forwards = host_port(l, 0)->row.forwards = true;
    }
}

START_TEST(a_host_that_forwards_is_no_switch)
{
    begin_blind();
    hear_machine("gpu01.example.com", FABRICTRACE__ID_KIND__ID_KIND_MAC);
    send_all();
    send_traffic(5);
    build();
    ck_assert_uint_eq(ft_topology_find_switch(found, "gpu01.example.com"), FT_NONE);
    ck_assert_uint_eq(ft_topology_switches(found), SWITCHES);
    /* It moves its containers about; its agent says whose they are. */
    for (uint32_t i = 0; i < LEAVES; i++) {
        struct ft_ip ip = leafspine_host_ip(i, 0);

        ft_discovery_named(discovery, &ip, "gpu01", now_ms);
        enter((i + 1) % LEAVES, 1, ip, now_ms, 3);
        enter(i, 2, ip, now_ms, 3);
    }
    build();
    ck_assert_uint_eq(ft_topology_find_switch(found, "gpu01.example.com"), FT_NONE);
    end();
}
END_TEST

/* It is told from the switch that nobody lists: no agent and no kind of id says which is which. */
START_TEST(a_host_that_forwards_beside_a_spine_that_nobody_lists)
{
    begin_blind();
    hear_machine("gpu01", FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME);
    send_others(1);
    for (int i = 0; i < 4; i++) {
        send_traffic(3);
        build();
        ck_assert_uint_eq(ft_topology_find_switch(found, "gpu01"), FT_NONE);
    }
    assert_links();
    assert_blamed("no switch poller reads it");
    end();
}
END_TEST

FT_UNIT_MAIN("discovery_blind", a_spine_that_never_answers_is_named_by_its_neighbours,
             a_spine_that_answers_at_last_is_the_same,
             a_spine_that_nobody_lists_is_named_by_its_neighbours,
             a_spine_without_lldp_mib_is_known_from_its_neighbours,
             hosts_wait_until_it_shows_where_they_are, hosts_wait_until_lldp_had_time,
             a_spine_whose_lldp_dies_keeps_its_links,
             a_spine_whose_lldp_dies_before_it_has_heard_anybody,
             ports_are_named_by_their_description, what_two_strangers_share_names_neither,
             what_shows_a_switch_is_news, several_spines_that_nobody_lists,
             a_host_that_forwards_is_no_switch,
             a_host_that_forwards_beside_a_spine_that_nobody_lists)

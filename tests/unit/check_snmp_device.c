// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/device.h"
#include "switchpoll/snmp/report.h"
#include "tests/unit/snmp_answers.h"
#include "tests/unit/unit.h"

#define NS_PER_S INT64_C(1000000000)

enum { INTERFACE_ALIAS = 1, MAC = 3, ADDRESS = 4, INTERFACE_NAME = 5, LOCAL = 7 };

static const struct ft_device_limits limits = {
    .ports_max = 100, .frozen_after_ns = 60 * NS_PER_S, .names_age_ns = 600 * NS_PER_S};
static struct ft_device *device;
static int64_t now_s;

static struct ft_mono now(void)
{
    return (struct ft_mono){now_s * NS_PER_S};
}

static void set_up(void)
{
    const uint8_t ip[4] = {192, 0, 2, 1};
    struct ft_ip agent = ft_ip4(ip);

    now_s = 1000;
    device = ft_device_new(&agent, &limits);
    ck_assert_ptr_nonnull(device);
}

struct system {
    uint32_t uptime_cs, if_change_cs;
    bool engine;
    uint64_t boots, time_s;
};

static void begin_as(const struct system *s)
{
    struct ft_snmp_varbind v[FT_MIB_SYSTEM_SCALARS] = {{0}};

    set_number(&v[FT_MIB_UPTIME], FT_SNMP_UNSIGNED, s->uptime_cs);
    set_string(&v[FT_MIB_SYS_NAME], "leaf1", 5);
    set_number(&v[FT_MIB_IF_LAST_CHANGE], FT_SNMP_UNSIGNED, s->if_change_cs);
    v[FT_MIB_ENGINE_BOOTS].type = v[FT_MIB_ENGINE_TIME].type = FT_SNMP_NONE;
    if (s->engine) {
        set_number(&v[FT_MIB_ENGINE_BOOTS], FT_SNMP_INTEGER, s->boots);
        set_number(&v[FT_MIB_ENGINE_TIME], FT_SNMP_INTEGER, s->time_s);
    }
    ft_device_begin(device, v, FT_MIB_SYSTEM_SCALARS, now());
}

static void begin(void)
{
    begin_as(&(struct system){.uptime_cs = (uint32_t)now_s * 100});
}

static void feed(const struct answers *a, enum ft_mib_table table)
{
    struct ft_walk walk = {.table = table};

    for (size_t i = 0; i < a->count; i++) {
        const struct ft_snmp_varbind *v = &a->varbinds[i];

        for (size_t column = 0; column < ft_mib_columns(table); column++) {
            const struct ft_snmp_oid *prefix = ft_mib_column(table, column);
            struct ft_walk_cell cell = {.table = table, .column = column, .value = v};

            if (memcmp(prefix->ids, v->oid, prefix->len * sizeof(v->oid[0])) != 0)
                continue;
            cell.index = v->oid + prefix->len;
            cell.index_len = v->oid_len - prefix->len;
            ft_device_cell(device, &cell, (struct ft_wall){now_s * 1000});
        }
    }
    ft_device_close(device, &walk, true);
}

static void count(uint32_t ifindex, uint64_t octets)
{
    struct answers a = {0};

    set_number(answer(&a, FT_MIB_COUNTERS, FT_MIB_OPER_STATUS, INDEX(ifindex)), FT_SNMP_INTEGER, 1);
    set_number(answer(&a, FT_MIB_COUNTERS, FT_MIB_IN_OCTETS, INDEX(ifindex)), FT_SNMP_COUNTER64,
               octets);
    feed(&a, FT_MIB_COUNTERS);
}

struct port {
    uint32_t ifindex;
    const char *name, *alias, *descr;
    uint8_t mac[6];
};

static void ports(const struct port *list, size_t n)
{
    struct answers counters = {0};
    struct answers names = {0};

    for (size_t i = 0; i < n; i++) {
        const struct port *p = &list[i];

        set_number(answer(&counters, FT_MIB_COUNTERS, FT_MIB_OPER_STATUS, INDEX(p->ifindex)),
                   FT_SNMP_INTEGER, 1);
        set_string(answer(&names, FT_MIB_NAMES, FT_MIB_IF_NAME, INDEX(p->ifindex)), p->name,
                   strlen(p->name));
        if (p->alias)
            set_string(answer(&names, FT_MIB_NAMES, FT_MIB_IF_ALIAS, INDEX(p->ifindex)), p->alias,
                       strlen(p->alias));
        if (p->descr)
            set_string(answer(&names, FT_MIB_NAMES, FT_MIB_IF_DESCR, INDEX(p->ifindex)), p->descr,
                       strlen(p->descr));
        set_string(answer(&names, FT_MIB_NAMES, FT_MIB_IF_MAC, INDEX(p->ifindex)), p->mac, 6);
    }
    feed(&counters, FT_MIB_COUNTERS);
    feed(&names, FT_MIB_NAMES);
}

static void local(struct answers *a, uint32_t number, uint64_t subtype, const void *id, size_t len,
                  const char *descr)
{
    set_number(answer(a, FT_MIB_LLDP_LOCAL, FT_MIB_LOC_SUBTYPE, INDEX(number)), FT_SNMP_INTEGER,
               subtype);
    set_string(answer(a, FT_MIB_LLDP_LOCAL, FT_MIB_LOC_ID, INDEX(number)), id, len);
    set_string(answer(a, FT_MIB_LLDP_LOCAL, FT_MIB_LOC_DESCR, INDEX(number)), descr, strlen(descr));
}

static void remote(struct answers *a, uint32_t mark, uint32_t number, uint32_t index,
                   const char *name)
{
    enum ft_mib_table t = FT_MIB_LLDP_REMOTE;

    set_number(answer(a, t, FT_MIB_REM_CHASSIS_SUBTYPE, INDEX(mark, number, index)),
               FT_SNMP_INTEGER, 4);
    set_string(answer(a, t, FT_MIB_REM_CHASSIS, INDEX(mark, number, index)), "\1\2\3\4\5\6", 6);
    set_number(answer(a, t, FT_MIB_REM_PORT_SUBTYPE, INDEX(mark, number, index)), FT_SNMP_INTEGER,
               INTERFACE_NAME);
    set_string(answer(a, t, FT_MIB_REM_PORT, INDEX(mark, number, index)), "Ethernet1", 9);
    set_string(answer(a, t, FT_MIB_REM_NAME, INDEX(mark, number, index)), name, strlen(name));
}

static const struct port three[] = {
    {1, "Eth1/1", "to spine1", "Ethernet1/1", {2, 0, 0, 0, 0, 1}},
    {2, "Eth1/2", "to spine2", "Ethernet1/2", {2, 0, 0, 0, 0, 2}},
    {3, "Eth1/3", NULL, "Ethernet1/3", {2, 0, 0, 0, 0, 2}},
};

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

static Fabrictrace__Record *kept; /* the last switch report */
static size_t counted;
static Fabrictrace__PortCounters last_counters; /* numbers only */

static void keep(void *arg, const Fabrictrace__Record *record)
{
    static uint8_t bytes[65536];

    (void)arg;
    if (record->kind_case == FABRICTRACE__RECORD__KIND_SWITCH_REPORT)
        kept = fabrictrace__record__unpack(NULL, fabrictrace__record__pack(record, bytes), bytes);
    else {
        counted++;
        last_counters = *record->counters;
    }
}

static const struct ft_record_sink sink = {.emit = keep};

static const Fabrictrace__SwitchReport *report(void)
{
    struct ft_snmp_report r = {
        .device = device, .interval_ms = 30000, .reachable = true, .problem = ""};

    ck_assert_int_eq(ft_report_switch(&r, (struct ft_wall){5000}, &sink), 0);
    return kept->switch_report;
}

/* Time marks change as neighbours are learnt; they say nothing of who the neighbour is. */
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
    remote(&remotes, 7, 51, 1, "spine1");
    remote(&remotes, 9, 51, 1, "spine1");
    remote(&remotes, 9, 52, 4, "spine2");
    set_string(answer(&remotes, FT_MIB_LLDP_REMOTE, FT_MIB_REM_ENABLED, INDEX(9, 52, 4)), "\x28",
               1);
    remote(&remotes, 9, 77, 5, "nobody");
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

    ck_assert_uint_eq(device->stats.unresolved, 1);
    ft_device_problem(device, problem);
    ck_assert_ptr_nonnull(strstr(problem, "LLDP port 77 ('77')"));
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

/* A table that was not read whole leaves what was known before. */
START_TEST(half_a_table)
{
    struct answers remotes = {0};
    struct ft_walk walk = {.table = FT_MIB_LLDP_REMOTE};

    set_up();
    begin();
    ports(three, 3);
    remote(&remotes, 1, 51, 1, "spine1");
    feed(&remotes, FT_MIB_LLDP_REMOTE);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->neighbors.count, 1);
    begin();
    ft_device_close(device, &walk, false);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->neighbors.count, 1);
    begin();
    ft_device_close(device, &walk, true);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->neighbors.count, 0);
    ft_device_free(device);
}
END_TEST

static bool restarted_after(const struct system *before, int64_t seconds,
                            const struct system *after)
{
    bool restarted;

    set_up();
    begin_as(before);
    ports(three, 3);
    ft_device_end(device, now());
    ck_assert(!device->names_due);
    now_s += seconds;
    begin_as(after);
    restarted = device->restarted;
    ck_assert_int_eq(device->names_due, restarted || after->if_change_cs != before->if_change_cs);
    ft_device_free(device);
    return restarted;
}

START_TEST(restarts)
{
    struct system old = {.uptime_cs = 500000};
    struct system engine = {.uptime_cs = 500000, .engine = true, .boots = 3, .time_s = 5000};

    ck_assert(!restarted_after(&old, 30, &(struct system){.uptime_cs = 503000}));
    ck_assert(restarted_after(&old, 30, &(struct system){.uptime_cs = 1000}));
    /* Down for so long that the new uptime is above the old one. */
    ck_assert(restarted_after(&(struct system){.uptime_cs = 1000}, 3600,
                              &(struct system){.uptime_cs = 100000}));
    /* 497 days: sysUpTime begins again, the agent does not. */
    ck_assert(!restarted_after(&(struct system){.uptime_cs = UINT32_MAX - 999}, 30,
                               &(struct system){.uptime_cs = 2000}));
    ck_assert(!restarted_after(&engine, 30, &(struct system){2000, 0, true, engine.boots, 5030}));
    ck_assert(restarted_after(&engine, 30, &(struct system){503000, 0, true, 4, 1}));
    /* Names may have changed without a restart. */
    ck_assert(
        !restarted_after(&old, 30, &(struct system){.uptime_cs = 503000, .if_change_cs = 502000}));
}
END_TEST

START_TEST(new_and_gone_ports)
{
    set_up();
    begin();
    ports(three, 3);
    ft_device_end(device, now());
    now_s += 30;
    begin();
    ck_assert(!device->names_due);
    count(2, 5);
    ck_assert_uint_eq(device->ports.count, 1);
    ck_assert(!device->names_due);
    ft_device_end(device, now());
    now_s += 30;
    begin();
    count(8, 5);
    ck_assert(device->names_due);
    ck_assert_uint_eq(device->ports.items[0].ifindex, 8);
    ft_device_free(device);
}
END_TEST

/* Counters that stand still are not published: they would say that there was no traffic. */
START_TEST(frozen)
{
    char problem[FT_DEVICE_PROBLEM_BYTES];
    uint64_t octets = 100;

    set_up();
    for (int i = 0; i < 10; i++, now_s += 30) {
        bool still = i >= 2 && i < 6;

        begin();
        count(1, still ? octets : ++octets);
        ft_device_end(device, now());
        counted = 0;
        ft_report_counters(device, &sink);
        ck_assert_uint_eq(counted, still ? 0 : 1);
        /* Moved last at i = 1. */
        ck_assert_int_eq(device->frozen, i >= 3 && i < 6);
        ft_device_problem(device, problem);
        ck_assert_int_eq(strstr(problem, "stale") != NULL, device->frozen);
    }
    ck_assert_uint_eq(device->stats.frozen, 3);
    ft_device_free(device);
}
END_TEST

START_TEST(members_of_a_lag)
{
    struct answers a = {0};
    const Fabrictrace__SwitchReport *reported;
    char problem[FT_DEVICE_PROBLEM_BYTES];

    set_up();
    begin();
    ports(three, 3);
    set_number(answer(&a, FT_MIB_LAG, 0, INDEX(1)), FT_SNMP_INTEGER, 3);
    set_number(answer(&a, FT_MIB_LAG, 0, INDEX(2)), FT_SNMP_INTEGER, 0);
    set_number(answer(&a, FT_MIB_LAG, 0, INDEX(3)), FT_SNMP_INTEGER, 3); /* of itself: none */
    feed(&a, FT_MIB_LAG);
    ft_device_end(device, now());
    reported = report();
    ck_assert(reported->ports[0]->has_lag_ifindex && reported->ports[0]->lag_ifindex == 3);
    ck_assert(!reported->ports[1]->has_lag_ifindex && !reported->ports[2]->has_lag_ifindex);
    fabrictrace__record__free_unpacked(kept, NULL);
    /* It never answered a counter that can be used. */
    ft_device_problem(device, problem);
    ck_assert_ptr_nonnull(strstr(problem, "no 64-bit counters"));
    a.count = 0;
    feed(&a, FT_MIB_LAG);
    ck_assert_uint_eq(device->ports.items[0].lag_ifindex, 0);
    ft_device_free(device);
}
END_TEST

/* Of each port: what the agent has, the wider form first; nothing that this poll did not read. */
START_TEST(pause_and_pfc)
{
    struct answers pause = {0}, pfc = {0};

    set_up();
    begin();
    count(1, 5);
    set_number(answer(&pause, FT_MIB_PAUSE, FT_MIB_PAUSE_IN, INDEX(1)), FT_SNMP_COUNTER32, 3);
    set_number(answer(&pause, FT_MIB_PAUSE, FT_MIB_PAUSE_OUT, INDEX(1)), FT_SNMP_COUNTER32, 4);
    set_number(answer(&pause, FT_MIB_PAUSE, FT_MIB_PAUSE_IN_HC, INDEX(1)), FT_SNMP_COUNTER64,
               UINT64_C(1) << 40);
    set_number(answer(&pause, FT_MIB_PAUSE, FT_MIB_PAUSE_IN, INDEX(9)), FT_SNMP_COUNTER32, 1);
    set_number(answer(&pfc, FT_MIB_PFC, FT_MIB_PFC_REQUESTS, INDEX(1)), FT_SNMP_COUNTER32, 50);
    set_number(answer(&pfc, FT_MIB_PFC, FT_MIB_PFC_INDICATIONS, INDEX(1)), FT_SNMP_COUNTER32, 60);
    feed(&pause, FT_MIB_PAUSE);
    feed(&pfc, FT_MIB_PFC);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->ports.count, 1);
    ck_assert_uint_eq(ft_report_counters(device, &sink), 1);
    ck_assert(last_counters.has_in_pause && last_counters.in_pause == UINT64_C(1) << 40);
    ck_assert(last_counters.has_out_pause && last_counters.out_pause == 4);
    ck_assert(last_counters.has_in_pfc && last_counters.in_pfc == 60);
    ck_assert(last_counters.has_out_pfc && last_counters.out_pfc == 50);
    now_s += 30;
    begin();
    count(1, 6);
    feed(&pfc, FT_MIB_PFC);
    ft_device_end(device, now());
    ck_assert_uint_eq(ft_report_counters(device, &sink), 1);
    ck_assert(!last_counters.has_in_pause && !last_counters.has_out_pause);
    ck_assert(last_counters.has_in_pfc);
    /* Frames of flow control that move do not make stale octets fresh. */
    now_s += 30;
    begin();
    count(1, 6);
    set_number(&pfc.varbinds[0], FT_SNMP_COUNTER32, 51);
    feed(&pfc, FT_MIB_PFC);
    ft_device_end(device, now());
    ck_assert(device->stale);
    ft_device_free(device);
}
END_TEST

START_TEST(caps)
{
    struct answers a = {0};
    char problem[FT_DEVICE_PROBLEM_BYTES];

    set_up();
    device->limits.ports_max = 2;
    begin();
    for (uint32_t i = 1; i <= 3; i++)
        set_number(answer(&a, FT_MIB_COUNTERS, FT_MIB_OPER_STATUS, INDEX(i)), FT_SNMP_INTEGER, 1);
    feed(&a, FT_MIB_COUNTERS);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->ports.count, 2);
    ft_device_problem(device, problem);
    ck_assert_ptr_nonnull(strstr(problem, "larger than what is kept"));
    ft_device_free(device);
}
END_TEST

/* One switch with more ports than it can have leaves the others room, and what goes gives it back.
 */
START_TEST(ports_of_all_devices_have_a_cap)
{
    struct ft_device_room room = {.used = 2, .max = 4};
    struct answers a = {0}, fewer = {0};
    char problem[FT_DEVICE_PROBLEM_BYTES];

    set_up();
    device->limits.room = &room;
    begin();
    for (uint32_t i = 1; i <= 3; i++)
        set_number(answer(&a, FT_MIB_COUNTERS, FT_MIB_OPER_STATUS, INDEX(i)), FT_SNMP_INTEGER, 1);
    feed(&a, FT_MIB_COUNTERS);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->ports.count, 2);
    ck_assert_uint_eq(room.used, 4);
    ft_device_problem(device, problem);
    ck_assert_ptr_nonnull(strstr(problem, "larger than what is kept"));
    begin();
    set_number(answer(&fewer, FT_MIB_COUNTERS, FT_MIB_OPER_STATUS, INDEX(1)), FT_SNMP_INTEGER, 1);
    feed(&fewer, FT_MIB_COUNTERS);
    ft_device_end(device, now());
    ck_assert_uint_eq(room.used, 3);
    ft_device_free(device);
    ck_assert_uint_eq(room.used, 2);
}
END_TEST

/* What a peer says becomes text that a record may hold. */
START_TEST(hostile_text)
{
    struct {
        const char *bytes;
        size_t len;
        const char *text;
    } cases[] = {
        {"Eth1", 4, "Eth1"},
        {"Eth1\0\0", 6, "Eth1"},
        {"Port \303\274 1", 9, "Port \303\274 1"},
        {"a\nb", 3, "0x610a62"},
        {"\377\376", 2, "0xfffe"},
        {"\300\200", 2, "0xc080"},
        {"\355\240\200", 3, "0xeda080"},
        {"x\303", 2, "0x78c3"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = ft_identity_text((const uint8_t *)cases[i].bytes, cases[i].len);

        ck_assert_str_eq(text, cases[i].text);
        free(text);
    }
    ck_assert_ptr_null(ft_identity_text((const uint8_t *)"  ", 2));
}
END_TEST

FT_UNIT_MAIN("snmp_device", ports_of_all_devices_have_a_cap, resolves_by_subtype, never_guesses,
             contradictions, neighbours, neighbours_that_forward, half_a_table, restarts,
             new_and_gone_ports, frozen, members_of_a_lag, pause_and_pfc, caps, hostile_text)

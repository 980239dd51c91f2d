// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_SNMP_DEVICE_RIG_H
#define FT_TESTS_SNMP_DEVICE_RIG_H
/* A device that is fed canned answers of an agent, and the last report that is made of it. */
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

static inline struct ft_mono now(void)
{
    return (struct ft_mono){now_s * NS_PER_S};
}

static inline void set_up(void)
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

static inline void begin_as(const struct system *s)
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

static inline void begin(void)
{
    begin_as(&(struct system){.uptime_cs = (uint32_t)now_s * 100});
}

static inline void feed(const struct answers *a, enum ft_mib_table table)
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
            walk.cells++;
            ft_device_cell(device, &cell, (struct ft_wall){now_s * 1000});
        }
    }
    ft_device_close(device, &walk, true);
}

static inline void count(uint32_t ifindex, uint64_t octets)
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
    uint32_t type;
};

static inline void ports(const struct port *list, size_t n)
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
        if (p->type)
            set_number(answer(&names, FT_MIB_NAMES, FT_MIB_IF_TYPE, INDEX(p->ifindex)),
                       FT_SNMP_INTEGER, p->type);
    }
    feed(&counters, FT_MIB_COUNTERS);
    feed(&names, FT_MIB_NAMES);
}

static inline void local(struct answers *a, uint32_t number, uint64_t subtype, const void *id,
                         size_t len, const char *descr)
{
    set_number(answer(a, FT_MIB_LLDP_LOCAL, FT_MIB_LOC_SUBTYPE, INDEX(number)), FT_SNMP_INTEGER,
               subtype);
    set_string(answer(a, FT_MIB_LLDP_LOCAL, FT_MIB_LOC_ID, INDEX(number)), id, len);
    set_string(answer(a, FT_MIB_LLDP_LOCAL, FT_MIB_LOC_DESCR, INDEX(number)), descr, strlen(descr));
}

static inline void remote(struct answers *a, uint32_t mark, uint32_t number, uint32_t index,
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
    {1, "Eth1/1", "to spine1", "Ethernet1/1", {2, 0, 0, 0, 0, 1}, 6},
    {2, "Eth1/2", "to spine2", "Ethernet1/2", {2, 0, 0, 0, 0, 2}, 6},
    {3, "Eth1/3", NULL, "Ethernet1/3", {2, 0, 0, 0, 0, 2}, 6},
};

static Fabrictrace__Record *kept; /* the last switch report */
static size_t counted;
static Fabrictrace__PortCounters last_counters; /* numbers only */

static inline void keep(void *arg, const Fabrictrace__Record *record)
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

static inline const Fabrictrace__SwitchReport *report(void)
{
    struct ft_snmp_report r = {
        .device = device, .interval_ms = 30000, .reachable = true, .problem = ""};

    ck_assert_int_eq(ft_report_switch(&r, (struct ft_wall){5000}, &sink), 0);
    return kept->switch_report;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/* However much is told of a fabric, what is looked for in it is found without a search: the work of
 * a build grows with what was told, not with its square. It is done in steps, none of which does
 * more than its share: counted by the uses of tables (the linker puts this program's own functions
 * before those of lib/base/table.c), not by time. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/discovery/discovery.h"
#include "daemon/discovery/topology_diff.h"
#include "lib/base/table.h"
#include "lib/files/topology_file.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define PORTS     4096 /* that are linked, and as many aggregates of one */
#define STRANGERS 3000
#define START_MS  INT64_C(1700000000000)
/* Looks for a port: its own row, its aggregate's, the other end's, and what samples say. */
#define LOOKS_A_PORT 20

/* The daemon's steps, and how often one may use tables: up to ten times for what counts as one. */
#define WORK     2000
#define USES_MAX (10 * WORK)
#define LEAVES   512
#define SPINES   32
#define HOSTS    16 /* of a leaf */

struct line {
    Fabrictrace__PortInfo info;
    Fabrictrace__Neighbor row;
    char name[16], chassis[32], far[32];
    ProtobufCBinaryData address;
    uint8_t ip[4];
};

struct box {
    Fabrictrace__SwitchReport report;
    struct line lines[2 * PORTS];
    Fabrictrace__PortInfo *infos[2 * PORTS];
    Fabrictrace__Neighbor *rows[2 * PORTS];
    char name[16], chassis[32];
    struct ft_ip ip;
};

static struct ft_discovery *discovery;
static struct ft_topology *base;
static uint64_t uses;

void *__real_ft_table_find(const struct ft_table *t, const void *key);
void *__wrap_ft_table_find(const struct ft_table *t, const void *key);
void *__real_ft_table_insert(struct ft_table *t, const void *key, bool *fresh);
void *__wrap_ft_table_insert(struct ft_table *t, const void *key, bool *fresh);
void *__real_ft_table_next(const struct ft_table *t, uint32_t *index);
void *__wrap_ft_table_next(const struct ft_table *t, uint32_t *index);

void *__wrap_ft_table_find(const struct ft_table *t, const void *key)
{
    uses++;
    return __real_ft_table_find(t, key);
}

void *__wrap_ft_table_insert(struct ft_table *t, const void *key, bool *fresh)
{
    uses++;
    return __real_ft_table_insert(t, key, fresh);
}

void *__wrap_ft_table_next(const struct ft_table *t, uint32_t *index)
{
    uses++;
    return __real_ft_table_next(t, index);
}

static void begin(void)
{
    struct ft_discovery_config config = {.switches_max = 10000, .addresses_max = 100000};
    struct ft_diag *diag = ft_diag_new();

    discovery = ft_discovery_new(&config);
    base = ft_topology_file_none("lab", diag);
    ck_assert(discovery && base);
    ft_diag_free(diag);
}

static void end(void)
{
    ft_discovery_free(discovery);
    ft_topology_free(base);
}

static struct box *make_box(uint32_t number)
{
    struct box *box = calloc(1, sizeof(*box));
    size_t len;

    ck_assert_ptr_nonnull(box);
    fabrictrace__switch_report__init(&box->report);
    snprintf(box->name, sizeof(box->name), "box%u", number);
    snprintf(box->chassis, sizeof(box->chassis), "02:00:00:00:%02x:%02x", number >> 8,
             number & 255);
    box->ip = ft_ip4((uint8_t[4]){192, 0, (uint8_t)(2 + (number >> 8)), (uint8_t)number});
    box->report.has_time_ms = box->report.has_interval_ms = box->report.has_agent = true;
    box->report.time_ms = START_MS;
    box->report.interval_ms = 30000;
    box->report.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&box->ip, &len);
    box->report.agent.len = len;
    box->report.has_reachable = box->report.reachable = true;
    box->report.has_lldp = box->report.has_has_lldp = true;
    box->report.name = box->name;
    box->report.has_chassis_kind = true;
    box->report.chassis_kind = FABRICTRACE__ID_KIND__ID_KIND_MAC;
    box->report.chassis_id = box->chassis;
    box->report.ports = box->infos;
    box->report.neighbors = box->rows;
    return box;
}

static struct line *add_line(struct box *box, uint32_t ifindex)
{
    struct line *line = &box->lines[box->report.n_ports];

    fabrictrace__port_info__init(&line->info);
    fabrictrace__neighbor__init(&line->row);
    snprintf(line->name, sizeof(line->name), "Ethernet%u", ifindex);
    line->info.has_ifindex = line->info.has_oper_up = true;
    line->info.ifindex = ifindex;
    line->info.oper_up = true;
    line->info.name = line->name;
    line->row.has_ifindex = line->row.has_chassis_kind = line->row.has_port_kind = true;
    line->row.ifindex = ifindex;
    line->row.chassis_kind = FABRICTRACE__ID_KIND__ID_KIND_MAC;
    line->row.chassis_id = line->chassis;
    line->row.port_kind = FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME;
    line->row.port_id = line->far;
    box->infos[box->report.n_ports++] = &line->info;
    return line;
}

/* Says that a port hears another device's port of the same number. */
static void hear(struct box *box, struct line *line, const char *chassis)
{
    snprintf(line->chassis, sizeof(line->chassis), "%s", chassis);
    snprintf(line->far, sizeof(line->far), "%s", line->name);
    box->rows[box->report.n_neighbors++] = &line->row;
}

static uint64_t build(void)
{
    struct ft_topology *t = ft_discovery_build(discovery, base, START_MS);

    ck_assert_ptr_nonnull(t);
    ft_topology_free(t);
    return ft_discovery_looks(discovery);
}

START_TEST(a_switch_of_eight_thousand_ports_is_no_search)
{
    struct box *box[2] = {make_box(1), make_box(2)};
    uint64_t looks;

    begin();
    for (uint32_t b = 0; b < 2; b++) {
        for (uint32_t i = 1; i <= PORTS; i++) {
            struct line *line = add_line(box[b], i);

            line->info.has_lag_ifindex = true;
            line->info.lag_ifindex = PORTS + i;
            hear(box[b], line, box[!b]->chassis);
        }
        for (uint32_t i = 1; i <= PORTS; i++)
            add_line(box[b], PORTS + i);
        ck_assert_int_eq(ft_discovery_report(discovery, &box[b]->report, START_MS), 0);
    }
    looks = build();
    ck_assert_uint_ge(looks, PORTS);
    ck_assert_uint_le(looks, 2 * 2 * PORTS * LOOKS_A_PORT);
    end();
    free(box[0]);
    free(box[1]);
}
END_TEST

/* Devices that two switches hear, each of which may be a switch that says nothing, while packets of
 * a thousand addresses come in at two places, and a thousand addresses are polled in vain. */
START_TEST(strangers_are_distinguished_without_a_search)
{
    struct box *box[2] = {make_box(1), make_box(2)}, *mute = make_box(3);
    uint64_t looks;

    begin();
    for (uint32_t b = 0; b < 2; b++) {
        for (uint32_t i = 1; i <= STRANGERS; i++) {
            struct line *line = add_line(box[b], i);
            char chassis[32];

            snprintf(chassis, sizeof(chassis), "02:aa:00:00:%02x:%02x", i >> 8, i & 255);
            hear(box[b], line, chassis);
            memcpy(line->ip, (uint8_t[4]){198, 18, (uint8_t)(i >> 8), (uint8_t)i}, 4);
            line->address = (ProtobufCBinaryData){.len = 4, .data = line->ip};
            line->row.addresses = &line->address;
            line->row.n_addresses = 1;
        }
        ck_assert_int_eq(ft_discovery_report(discovery, &box[b]->report, START_MS), 0);
    }
    mute->report.reachable = false;
    mute->report.has_lldp = false;
    mute->report.name = mute->report.chassis_id = NULL;
    for (uint32_t i = 0; i < 1000; i++) {
        struct ft_ip ip = ft_ip4((uint8_t[4]){198, 19, (uint8_t)(i >> 8), (uint8_t)i});

        memcpy((uint8_t *)mute->report.agent.data, ip.b + 12, 4);
        ck_assert_int_eq(ft_discovery_report(discovery, &mute->report, START_MS), 0);
        for (uint32_t b = 0; b < 2; b++)
            for (int second = 0; second < 4; second++)
                ft_discovery_entered(discovery, &ip, &box[b]->ip, 1 + i, START_MS + 1000 * second,
                                     false);
    }
    looks = build();
    ck_assert_uint_ge(looks, STRANGERS);
    ck_assert_uint_le(looks, (2 * STRANGERS + 2 * 1000 + 1000) * LOOKS_A_PORT);
    end();
    free(box[0]);
    free(box[1]);
    free(mute);
}
END_TEST

static void report_switch(uint32_t number)
{
    bool leaf = number < LEAVES;
    struct box *box = make_box(number);

    for (uint32_t i = 0; i < (leaf ? SPINES : LEAVES); i++) {
        struct line *line = add_line(box, i + 1);
        uint32_t far = leaf ? LEAVES + i : i;

        snprintf(line->chassis, sizeof(line->chassis), "02:00:00:00:%02x:%02x", far >> 8,
                 far & 255);
        snprintf(line->far, sizeof(line->far), "Ethernet%u", (leaf ? number : number - LEAVES) + 1);
        box->rows[box->report.n_neighbors++] = &line->row;
    }
    for (uint32_t i = 0; leaf && i < HOSTS; i++) {
        struct line *line = add_line(box, SPINES + i + 1);

        snprintf(line->chassis, sizeof(line->chassis), "02:aa:%02x:00:%02x:%02x", i, number >> 8,
                 number & 255);
        snprintf(line->far, sizeof(line->far), "eth0");
        line->row.name = line->chassis;
        box->rows[box->report.n_neighbors++] = &line->row;
    }
    ck_assert_int_eq(ft_discovery_report(discovery, &box->report, START_MS), 0);
    free(box);
}

/* The longest step of a build, in uses of tables; its topology. */
static uint64_t longest_step(struct ft_topology **built, uint64_t *steps)
{
    uint64_t longest = 0;
    bool more = true;

    ck_assert_int_eq(ft_discovery_begin(discovery, base, START_MS), 0);
    for (*steps = 0; more; ++*steps) {
        ck_assert(ft_discovery_building(discovery));
        uses = 0;
        more = ft_discovery_step(discovery, WORK, built);
        longest = uses > longest ? uses : longest;
    }
    ck_assert(!ft_discovery_building(discovery));
    return longest;
}

/* What is asked for between the steps of a build is of the one before; what comes of them is what
 * comes of one step. */
START_TEST(no_step_of_a_large_build_is_long)
{
    struct ft_topology *first, *second, *whole;
    uint64_t steps;

    begin();
    for (uint32_t n = 0; n < LEAVES + SPINES; n++)
        report_switch(n);
    /* The first one, and one that remembers the links of the one before. */
    ck_assert_uint_le(longest_step(&first, &steps), USES_MAX);
    ck_assert_uint_ge(steps, 50);
    ck_assert(ft_discovery_heard(discovery, "box0", "Ethernet1"));
    ck_assert_int_eq(ft_discovery_begin(discovery, base, START_MS), 0);
    for (int i = 0; i < 20; i++) {
        ck_assert(ft_discovery_step(discovery, WORK, &second));
        ck_assert(ft_discovery_heard(discovery, "box0", "Ethernet1"));
    }
    while (ft_discovery_step(discovery, WORK, &second))
        ck_assert(ft_discovery_heard(discovery, "box0", "Ethernet1"));
    ft_topology_free(second);
    ck_assert_uint_le(longest_step(&second, &steps), USES_MAX);
    whole = ft_discovery_build(discovery, base, START_MS);
    ck_assert_ptr_nonnull(whole);
    ck_assert_uint_eq(ft_topology_ports(whole), LEAVES * (2 * SPINES + HOSTS));
    ck_assert_uint_eq(ft_topology_hosts(whole), LEAVES * HOSTS);
    ck_assert(ft_topology_same(first, whole));
    ck_assert(ft_topology_same(second, whole));
    ft_topology_free(first);
    ft_topology_free(second);
    ft_topology_free(whole);
    end();
}
END_TEST

FT_UNIT_MAIN("discovery_large", a_switch_of_eight_thousand_ports_is_no_search,
             strangers_are_distinguished_without_a_search, no_step_of_a_large_build_is_long)

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_DISCOVERY_RIG_H
#define FT_TESTS_DISCOVERY_RIG_H
/* Reports as switches of the leaf-spine of leafspine.h would give them, changed at will by a test,
 * then brought to a topology that is held against that leaf-spine. */
#include <stdio.h>
#include <string.h>

#include "daemon/discovery/discovery.h"
#include "daemon/discovery/topology_diff.h"
#include "lib/files/topology_file.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#ifndef LEAVES
#define LEAVES 4
#define SPINES 4
#endif
#define HOSTS       2
#define SWITCHES    (LEAVES + SPINES)
#define PORTS_MAX   16
#define INTERVAL_MS 30000
#define START_MS    INT64_C(1700000000000)

struct port {
    Fabrictrace__PortInfo info;
    Fabrictrace__Neighbor row;
    char name[32], mac[32], row_chassis[32], row_port[32], row_name[32];
    ProtobufCBinaryData row_address;
    uint8_t row_ip[4];
    bool hears;
};

struct box {
    Fabrictrace__SwitchReport report;
    char name[32], chassis[32];
    struct ft_ip ip;
    ProtobufCBinaryData address;
    struct port ports[PORTS_MAX];
    Fabrictrace__PortInfo *info_list[PORTS_MAX];
    Fabrictrace__Neighbor *row_list[PORTS_MAX];
    uint32_t port_count;
    int64_t ahead_ms; /* the clock of its poller */
};

static struct box boxes[SWITCHES];
static struct ft_discovery *discovery;
static struct ft_topology *base, *found;
static int64_t now_ms;

static inline struct port *add_port(struct box *box, uint32_t ifindex, const char *kind, uint32_t i)
{
    struct port *p = &box->ports[box->port_count];

    fabrictrace__port_info__init(&p->info);
    snprintf(p->name, sizeof(p->name), "%s%u", kind, i);
    snprintf(p->mac, sizeof(p->mac), "02:00:00:00:%02x:%02x", (unsigned)(box - boxes),
             box->port_count);
    p->info.has_ifindex = p->info.has_oper_up = p->info.has_speed_bps = true;
    p->info.ifindex = ifindex;
    p->info.oper_up = true;
    p->info.speed_bps = LINK_BPS;
    p->info.name = p->name;
    p->info.mac = p->mac;
    box->info_list[box->port_count++] = &p->info;
    return p;
}

static inline void hear(struct port *p, const char *chassis, const char *name,
                        Fabrictrace__IdKind port_kind, const char *port)
{
    fabrictrace__neighbor__init(&p->row);
    snprintf(p->row_chassis, sizeof(p->row_chassis), "%s", chassis);
    snprintf(p->row_name, sizeof(p->row_name), "%s", name);
    snprintf(p->row_port, sizeof(p->row_port), "%s", port);
    p->row.has_ifindex = p->row.has_chassis_kind = p->row.has_port_kind = true;
    p->row.ifindex = p->info.ifindex;
    p->row.chassis_kind = FABRICTRACE__ID_KIND__ID_KIND_MAC;
    p->row.chassis_id = p->row_chassis;
    p->row.port_kind = port_kind;
    p->row.port_id = p->row_port;
    p->row.name = p->row_name;
    p->hears = true;
}

static inline void make_box(uint32_t id, const char *kind, uint32_t i)
{
    struct box *box = &boxes[id];
    size_t len;

    memset(box, 0, sizeof(*box));
    fabrictrace__switch_report__init(&box->report);
    snprintf(box->name, sizeof(box->name), "%s%u", kind, i);
    snprintf(box->chassis, sizeof(box->chassis), "02:ff:00:00:00:%02x", id);
    box->ip = leafspine_switch_ip(id);
    box->address.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&box->ip, &len);
    box->address.len = len;
    box->report.has_agent = box->report.has_reachable = box->report.has_lldp = true;
    box->report.has_has_lldp = box->report.has_interval_ms = true;
    box->report.reachable = true;
    box->report.agent = box->address;
    box->report.n_addresses = 1;
    box->report.addresses = &box->address;
    box->report.interval_ms = INTERVAL_MS;
    box->report.name = box->name;
    box->report.has_chassis_kind = true;
    box->report.chassis_kind = FABRICTRACE__ID_KIND__ID_KIND_MAC;
    box->report.chassis_id = box->chassis;
}

static inline struct port *uplink(uint32_t leaf, uint32_t spine)
{
    return &boxes[leaf].ports[spine];
}

static inline struct port *downlink(uint32_t leaf, uint32_t spine)
{
    return &boxes[LEAVES + spine].ports[leaf];
}

static inline struct port *host_port(uint32_t leaf, uint32_t host)
{
    return &boxes[leaf].ports[SPINES + host];
}

static inline void hear_host(uint32_t leaf, uint32_t host)
{
    struct port *p = host_port(leaf, host);
    struct ft_ip ip = leafspine_host_ip(leaf, host);
    char name[32], chassis[32];
    size_t len;

    snprintf(name, sizeof(name), "h%u-%u", leaf, host);
    snprintf(chassis, sizeof(chassis), "02:aa:00:00:%02x:%02x", leaf, host);
    hear(p, chassis, name, FABRICTRACE__ID_KIND__ID_KIND_MAC, chassis);
    memcpy(p->row_ip, ft_ip_bytes(&ip, &len), 4);
    p->row_address = (ProtobufCBinaryData){.len = 4, .data = p->row_ip};
    p->row.addresses = &p->row_address;
    p->row.n_addresses = 1;
}

static inline void make_reports(bool hosts_speak)
{
    char name[32];

    for (uint32_t l = 0; l < LEAVES; l++)
        make_box(l, "leaf", l);
    for (uint32_t s = 0; s < SPINES; s++)
        make_box(LEAVES + s, "spine", s);
    for (uint32_t l = 0; l < LEAVES; l++) {
        for (uint32_t s = 0; s < SPINES; s++) {
            add_port(&boxes[l], 100 + s, "up", s);
            add_port(&boxes[LEAVES + s], 1 + l, "down", l);
        }
        for (uint32_t h = 0; h < HOSTS; h++) {
            add_port(&boxes[l], 1 + h, "host", h);
            if (hosts_speak)
                hear_host(l, h);
        }
    }
    for (uint32_t l = 0; l < LEAVES; l++)
        for (uint32_t s = 0; s < SPINES; s++) {
            snprintf(name, sizeof(name), "down%u", l);
            hear(uplink(l, s), boxes[LEAVES + s].chassis, boxes[LEAVES + s].name,
                 FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME, name);
            snprintf(name, sizeof(name), "up%u", s);
            hear(downlink(l, s), boxes[l].chassis, boxes[l].name,
                 FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME, name);
        }
}

static inline void send(uint32_t id)
{
    struct box *box = &boxes[id];

    box->report.has_time_ms = true;
    box->report.time_ms = (uint64_t)(now_ms + box->ahead_ms);
    box->report.n_ports = box->port_count;
    box->report.ports = box->info_list;
    box->report.n_neighbors = 0;
    for (uint32_t i = 0; i < box->port_count; i++)
        if (box->ports[i].hears)
            box->row_list[box->report.n_neighbors++] = &box->ports[i].row;
    box->report.neighbors = box->row_list;
    ck_assert_int_eq(ft_discovery_report(discovery, &box->report, now_ms), 0);
}

static inline void send_all(void)
{
    for (uint32_t i = 0; i < SWITCHES; i++)
        send(i);
}

static inline void build(void)
{
    ft_topology_free(found);
    now_ms += 1000;
    found = ft_discovery_build(discovery, base, now_ms);
    ck_assert_ptr_nonnull(found);
}

static inline struct ft_topology *no_file(void)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *t = ft_topology_file_none("lab", diag);

    ck_assert_ptr_nonnull(t);
    ft_diag_free(diag);
    return t;
}

static inline void begin(bool hosts_speak)
{
    struct ft_discovery_config config = {.switches_max = 100, .addresses_max = 1000};

    discovery = ft_discovery_new(&config);
    ck_assert_ptr_nonnull(discovery);
    base = no_file();
    now_ms = START_MS;
    make_reports(hosts_speak);
}

static inline void end(void)
{
    ft_discovery_free(discovery);
    ft_topology_free(base);
    ft_topology_free(found);
    found = NULL;
}

static inline void print_change(void *arg, const struct ft_change *c)
{
    (void)arg;
    fprintf(stderr, "%s %s %s %s %s\n", c->came ? "+" : "-", c->switch_name, c->port ? c->port : "",
            c->peer ? c->peer : "", c->peer_port ? c->peer_port : "");
}

/* The found one differs from the whole leaf-spine in `count` switches, links and attachments. */
static inline void assert_differs(size_t count)
{
    struct ft_topology *truth = leafspine(LEAVES, SPINES, HOSTS);
    size_t is = ft_topology_diff(truth, found, NULL, NULL);

    if (is != count)
        ft_topology_diff(truth, found, print_change, NULL);
    ck_assert_uint_eq(is, count);
    ft_topology_free(truth);
}

/* Findings of a kind at a port (NULL: any) that say something (NULL: anything). */
static inline size_t findings(enum ft_finding_kind kind, const char *switch_name, const char *port,
                              const char *says)
{
    const struct ft_findings *f = ft_discovery_findings(discovery);
    size_t count = 0;

    for (size_t i = 0; i < f->count; i++)
        count += f->items[i].kind == kind &&
                 (!switch_name || strcmp(f->items[i].switch_name, switch_name) == 0) &&
                 (!port || strcmp(f->items[i].port, port) == 0) &&
                 (!says || strstr(f->items[i].text, says));
    return count;
}

static inline void enter(uint32_t leaf, uint32_t ifindex, struct ft_ip address, int64_t from_ms,
                         uint32_t seconds)
{
    struct ft_ip agent = leafspine_switch_ip(leaf);

    for (uint32_t i = 0; i < seconds; i++)
        ft_discovery_entered(discovery, &address, &agent, ifindex, from_ms + 1000 * i, false);
}

static inline uint32_t port_of(const char *switch_name, const char *port)
{
    uint32_t id = ft_topology_find_switch(found, switch_name);

    ck_assert_uint_ne(id, FT_NONE);
    return ft_topology_find_port(found, id, port);
}

/* Ports that the NIC of an address hangs on, "" when there is none. */
static inline const char *attached(struct ft_ip address)
{
    static char text[256];
    uint32_t nic = ft_topology_nic_at(found, &address);
    const struct ft_nic *n = nic == FT_NONE ? NULL : ft_topology_nic(found, nic);

    *text = '\0';
    for (uint32_t i = 0; n && i < n->attach_count; i++) {
        const struct ft_port *p = ft_topology_port(found, n->attach[i]);
        size_t len = strlen(text);

        snprintf(text + len, sizeof(text) - len, "%s%s/%s", i ? " " : "",
                 ft_topology_switch(found, p->switch_id)->name, p->name);
    }
    return text;
}

#endif

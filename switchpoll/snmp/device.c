// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/device.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "switchpoll/snmp/resolve.h"

#define NS_PER_CS       INT64_C(10000000)
#define CS_PER_S        100
#define CLOCK_CS        (10 * CS_PER_S) /* that two clocks may differ between two polls */
#define NEIGHBORS_MAX   8192
#define MANAGEMENT_MAX  16 /* addresses of one neighbour */
#define OPER_UP         1  /* ifOperStatus */
#define BPS_PER_UNIT    1000000
#define ADDRESS_IPV4    1 /* InetAddressType and LLDP's address family alike */
#define ADDRESS_IPV6    2
#define UNRESOLVED_TOLD 3
/* LldpSystemCapabilitiesMap: bridge(2) and router(4); bit 0 is the first octet's highest. */
#define FORWARDING (0x80 >> 2 | 0x80 >> 4)

struct ft_device *ft_device_new(const struct ft_ip *agent, const struct ft_device_limits *limits)
{
    struct ft_device *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->agent = *agent;
    d->limits = *limits;
    return d;
}

static void clear_port(struct ft_device_port *port)
{
    free(port->name);
    free(port->alias);
    free(port->descr);
    free(port->mac);
    ft_identity_clear(&port->lldp);
}

static void clear_locals(struct ft_device_locals *locals)
{
    for (size_t i = 0; i < locals->count; i++) {
        ft_identity_clear(&locals->items[i].id);
        free(locals->items[i].descr);
    }
    free(locals->items);
    *locals = (struct ft_device_locals){0};
}

static void clear_neighbors(struct ft_device_neighbors *neighbors)
{
    for (size_t i = 0; i < neighbors->count; i++) {
        struct ft_device_neighbor *n = &neighbors->items[i];

        ft_identity_clear(&n->chassis);
        ft_identity_clear(&n->port);
        free(n->port_descr);
        free(n->name);
        free(n->addresses);
    }
    free(neighbors->items);
    *neighbors = (struct ft_device_neighbors){0};
}

void ft_device_free(struct ft_device *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->ports.count; i++)
        clear_port(&d->ports.items[i]);
    free(d->ports.items);
    clear_locals(&d->locals);
    clear_locals(&d->locals_new);
    clear_neighbors(&d->neighbors);
    clear_neighbors(&d->neighbors_new);
    ft_identity_clear(&d->chassis);
    free(d->name);
    free(d);
}

/* The array with a zeroed item at index `at`, or NULL without memory. */
static void *insert(void *items, size_t *count, size_t *size, size_t item_bytes, size_t at)
{
    char *place;

    if (*count == *size) {
        size_t wanted = *size ? 2 * *size : 16;

        items = reallocarray(items, wanted, item_bytes);
        if (!items)
            return NULL;
        *size = wanted;
    }
    place = (char *)items + at * item_bytes;
    memmove(place + item_bytes, place, (*count - at) * item_bytes);
    memset(place, 0, item_bytes);
    (*count)++;
    return items;
}

/* Where an ifIndex is, or belongs. */
static size_t port_at(const struct ft_device_ports *ports, uint32_t ifindex)
{
    size_t low = 0;
    size_t high = ports->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (ports->items[middle].ifindex < ifindex)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct ft_device_port *find_port(struct ft_device_ports *ports, uint32_t ifindex)
{
    size_t at = port_at(ports, ifindex);

    return at < ports->count && ports->items[at].ifindex == ifindex ? &ports->items[at] : NULL;
}

static struct ft_device_port *take_port(struct ft_device *d, uint32_t ifindex)
{
    size_t at = port_at(&d->ports, ifindex);
    struct ft_device_port *port = find_port(&d->ports, ifindex);
    void *room;

    if (port || ifindex == 0)
        return port;
    if (d->ports.count >= d->limits.ports_max) {
        d->truncated = true;
        return NULL;
    }
    room = insert(d->ports.items, &d->ports.count, &d->ports.size, sizeof(*port), at);
    if (!room)
        return NULL;
    d->ports.items = room;
    port = &d->ports.items[at];
    port->ifindex = ifindex;
    d->names_due = true;
    return port;
}

static void set_text(char **to, const struct ft_snmp_varbind *v)
{
    char *text = v->type == FT_SNMP_STRING ? ft_identity_text(v->bytes, v->len) : NULL;

    free(*to);
    *to = text;
}

/* Whether the agent started between two polls, by its engine where it tells of it. sysUpTime alone
 * begins again every 497 days; that is no restart as long as it went on at the clock's pace. */
static bool has_restarted(const struct ft_device_scalars *before,
                          const struct ft_device_scalars *now, int64_t elapsed_ns)
{
    int64_t elapsed_cs = elapsed_ns / NS_PER_CS;
    int64_t tolerance_cs = CLOCK_CS + elapsed_cs / 100;
    int64_t advance_cs;

    if (before->has_engine && now->has_engine)
        return now->engine_boots != before->engine_boots ||
               now->engine_time_s < before->engine_time_s;
    if (!before->has_uptime || !now->has_uptime)
        return false;
    advance_cs = (uint32_t)(now->uptime_cs - before->uptime_cs);
    if (llabs(advance_cs - elapsed_cs) <= tolerance_cs)
        return false;
    return now->uptime_cs < before->uptime_cs || now->uptime_cs < elapsed_cs + tolerance_cs;
}

static void read_scalars(struct ft_device *d, const struct ft_snmp_varbind *v, size_t count,
                         struct ft_device_scalars *s)
{
    *s = (struct ft_device_scalars){0};
    if (count != FT_MIB_SYSTEM_SCALARS)
        return;
    s->has_uptime = v[FT_MIB_UPTIME].type == FT_SNMP_UNSIGNED;
    s->uptime_cs = (uint32_t)v[FT_MIB_UPTIME].number;
    s->has_if_change = v[FT_MIB_IF_LAST_CHANGE].type == FT_SNMP_UNSIGNED;
    s->if_change_cs = (uint32_t)v[FT_MIB_IF_LAST_CHANGE].number;
    s->has_engine = v[FT_MIB_ENGINE_BOOTS].type == FT_SNMP_INTEGER &&
                    v[FT_MIB_ENGINE_TIME].type == FT_SNMP_INTEGER;
    s->engine_boots = v[FT_MIB_ENGINE_BOOTS].number;
    s->engine_time_s = v[FT_MIB_ENGINE_TIME].number;
    set_text(&d->name, &v[FT_MIB_SYS_NAME]);
}

void ft_device_begin(struct ft_device *d, const struct ft_snmp_varbind *varbinds, size_t count,
                     struct ft_mono now)
{
    struct ft_device_scalars s;

    read_scalars(d, varbinds, count, &s);
    d->restarted = d->polled && has_restarted(&d->scalars, &s, ft_mono_since_ns(now, d->begun));
    d->stats.restarts += d->restarted;
    if (!d->polled || d->restarted || s.has_if_change != d->scalars.has_if_change ||
        s.if_change_cs != d->scalars.if_change_cs ||
        ft_mono_since_ns(now, d->names_read) >= d->limits.names_age_ns)
        d->names_due = true;
    if (!d->polled)
        d->moved = now;
    d->scalars = s;
    d->begun = now;
    d->poll++;
    d->moves = 0;
    d->counters_read = false;
    d->neighbors_read = false;
    d->not_increasing = false;
    d->truncated = false;
    clear_locals(&d->locals_new);
    clear_neighbors(&d->neighbors_new);
    d->address_new_count = 0;
}

void ft_device_lldp(struct ft_device *d, const struct ft_snmp_varbind *v, size_t count)
{
    d->has_lldp = count == FT_MIB_LLDP_SCALARS && v[FT_MIB_CHASSIS].type == FT_SNMP_STRING &&
                  v[FT_MIB_CHASSIS_SUBTYPE].type == FT_SNMP_INTEGER;
    if (!d->has_lldp)
        return;
    d->chassis.subtype = (uint32_t)v[FT_MIB_CHASSIS_SUBTYPE].number;
    ft_identity_set(&d->chassis, v[FT_MIB_CHASSIS].bytes, v[FT_MIB_CHASSIS].len);
    ft_identity_settle(&d->chassis, FT_IDENTITY_CHASSIS);
}

/* Whether it moved. */
static bool take_count(struct ft_device *d, struct ft_device_port *port,
                       enum ft_mib_counters counter, const struct ft_snmp_varbind *v)
{
    if (v->type != FT_SNMP_COUNTER32 && v->type != FT_SNMP_COUNTER64)
        return false;
    switch (ft_counters_take(&port->counters, counter, v->number, d->restarted)) {
    case FT_COUNTERS_SAME:
        return false;
    case FT_COUNTERS_WRAPPED:
        d->stats.wraps++;
        break;
    case FT_COUNTERS_RESET:
        d->stats.resets++;
        break;
    default:
        break;
    }
    return true;
}

static void take_counters(struct ft_device *d, const struct ft_walk_cell *cell, struct ft_wall when)
{
    struct ft_device_port *port = cell->index_len == 1 ? take_port(d, cell->index[0]) : NULL;
    const struct ft_snmp_varbind *v = cell->value;

    if (!port)
        return;
    port->poll = d->poll;
    if (cell->column == FT_MIB_OPER_STATUS) {
        port->has_oper_up = v->type == FT_SNMP_INTEGER;
        port->oper_up = port->has_oper_up && v->number == OPER_UP;
    } else if (cell->column == FT_MIB_HIGH_SPEED) {
        port->speed_bps = v->type == FT_SNMP_UNSIGNED ? v->number * BPS_PER_UNIT : 0;
    } else {
        d->moves += take_count(d, port, (enum ft_mib_counters)cell->column, v);
    }
    if (cell->column == FT_MIB_IN_OCTETS)
        port->counted = when;
}

/* A port that IF-MIB does not have in this poll is none. What moves here is no sign that IF-MIB's
 * counters do. */
static void take_flow_control(struct ft_device *d, const struct ft_walk_cell *cell)
{
    static const enum ft_mib_counters pause_counters[FT_MIB_PAUSE_COLUMNS] = {
        [FT_MIB_PAUSE_IN] = FT_MIB_IN_PAUSE,
        [FT_MIB_PAUSE_OUT] = FT_MIB_OUT_PAUSE,
        [FT_MIB_PAUSE_IN_HC] = FT_MIB_IN_PAUSE_HC,
        [FT_MIB_PAUSE_OUT_HC] = FT_MIB_OUT_PAUSE_HC,
    };
    static const enum ft_mib_counters pfc_counters[FT_MIB_PFC_COLUMNS] = {
        [FT_MIB_PFC_REQUESTS] = FT_MIB_OUT_PFC,
        [FT_MIB_PFC_INDICATIONS] = FT_MIB_IN_PFC,
    };
    struct ft_device_port *port =
        cell->index_len == 1 ? find_port(&d->ports, cell->index[0]) : NULL;

    if (!port)
        return;
    if (cell->table == FT_MIB_PAUSE) {
        port->pause_poll = d->poll;
        take_count(d, port, pause_counters[cell->column], cell->value);
    } else {
        port->pfc_poll = d->poll;
        take_count(d, port, pfc_counters[cell->column], cell->value);
    }
}

static void take_names(struct ft_device *d, const struct ft_walk_cell *cell)
{
    struct ft_device_port *port =
        cell->index_len == 1 ? find_port(&d->ports, cell->index[0]) : NULL;
    const struct ft_snmp_varbind *v = cell->value;

    if (!port)
        return;
    switch ((enum ft_mib_names)cell->column) {
    case FT_MIB_IF_NAME:
        set_text(&port->name, v);
        break;
    case FT_MIB_IF_ALIAS:
        set_text(&port->alias, v);
        break;
    case FT_MIB_IF_DESCR:
        set_text(&port->descr, v);
        break;
    case FT_MIB_IF_MAC:
        free(port->mac);
        port->mac = v->type == FT_SNMP_STRING && v->len == 6 ? ft_identity_mac(v->bytes, 6) : NULL;
        break;
    }
}

static bool worth_keeping(const struct ft_ip *ip)
{
    size_t len;
    const uint8_t *b = ft_ip_bytes(ip, &len);
    static const uint8_t loopback6[16] = {[15] = 1};

    if (len == 4)
        return b[0] != 127 && b[0] != 0 && b[0] < 224 && !(b[0] == 169 && b[1] == 254);
    return memcmp(b, loopback6, 16) != 0 && b[0] != 0xff &&
           !(b[0] == 0xfe && (b[1] & 0xc0) == 0x80);
}

/* An address from index elements; false when it is none, or none that tells a switch from others.
 */
static bool index_address(const uint32_t *index, size_t len, struct ft_ip *ip)
{
    uint8_t bytes[16];

    if (len != 4 && len != 16)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (index[i] > 255)
            return false;
        bytes[i] = (uint8_t)index[i];
    }
    return ft_ip_from_bytes(bytes, len, ip) == 0 && worth_keeping(ip);
}

/* ipAddressTable's index is type, length, address; with a zone (link-local) the length is 8 or 20,
 * and such an address tells no switch from another. */
static void take_address(struct ft_device *d, const struct ft_walk_cell *cell)
{
    size_t skip = cell->table == FT_MIB_ADDRESSES ? 2 : 0;
    struct ft_ip ip;

    if (cell->index_len < skip || !index_address(cell->index + skip, cell->index_len - skip, &ip))
        return;
    if (d->address_new_count == FT_DEVICE_ADDRESSES_MAX) {
        d->truncated = true;
        return;
    }
    d->addresses_new[d->address_new_count++] = ip;
}

/* The neighbour of (local port number, remote index) that is being read; the time mark in front of
 * them says when it was learnt and nothing else. */
static struct ft_device_neighbor *take_neighbor(struct ft_device *d, uint32_t local,
                                                uint32_t remote, bool make)
{
    struct ft_device_neighbors *all = &d->neighbors_new;
    struct ft_device_neighbor *n;
    size_t at = all->count;
    void *room;

    while (at > 0 && (all->items[at - 1].local > local ||
                      (all->items[at - 1].local == local && all->items[at - 1].remote > remote)))
        at--;
    if (at > 0 && all->items[at - 1].local == local && all->items[at - 1].remote == remote)
        return &all->items[at - 1];
    if (!make)
        return NULL;
    if (all->count >= NEIGHBORS_MAX) {
        d->truncated = true;
        return NULL;
    }
    room = insert(all->items, &all->count, &all->size, sizeof(*n), at);
    if (!room)
        return NULL;
    all->items = room;
    n = &all->items[at];
    n->local = local;
    n->remote = remote;
    return n;
}

static void take_remote(struct ft_device *d, const struct ft_walk_cell *cell)
{
    struct ft_device_neighbor *n =
        cell->index_len == 3 ? take_neighbor(d, cell->index[1], cell->index[2], true) : NULL;
    const struct ft_snmp_varbind *v = cell->value;

    if (!n)
        return;
    switch ((enum ft_mib_lldp_remote)cell->column) {
    case FT_MIB_REM_CHASSIS_SUBTYPE:
        n->chassis.subtype = v->type == FT_SNMP_INTEGER ? (uint32_t)v->number : 0;
        break;
    case FT_MIB_REM_CHASSIS:
        ft_identity_set(&n->chassis, v->bytes, v->len);
        break;
    case FT_MIB_REM_PORT_SUBTYPE:
        n->port.subtype = v->type == FT_SNMP_INTEGER ? (uint32_t)v->number : 0;
        break;
    case FT_MIB_REM_PORT:
        ft_identity_set(&n->port, v->bytes, v->len);
        break;
    case FT_MIB_REM_PORT_DESCR:
        set_text(&n->port_descr, v);
        break;
    case FT_MIB_REM_NAME:
        set_text(&n->name, v);
        break;
    case FT_MIB_REM_ENABLED:
        /* No bit at all: the neighbour sent no capabilities (they are optional). */
        n->has_forwards = v->type == FT_SNMP_STRING && v->len > 0 && v->bytes[0];
        n->forwards = n->has_forwards && v->bytes[0] & FORWARDING;
        break;
    }
}

static void take_remote_address(struct ft_device *d, const struct ft_walk_cell *cell)
{
    struct ft_device_neighbor *n;
    struct ft_ip ip;
    struct ft_ip *room;

    if (cell->index_len < 5 || cell->index[4] != cell->index_len - 5 ||
        (cell->index[3] != ADDRESS_IPV4 && cell->index[3] != ADDRESS_IPV6) ||
        !index_address(cell->index + 5, cell->index_len - 5, &ip))
        return;
    n = take_neighbor(d, cell->index[1], cell->index[2], false);
    if (!n || n->address_count == MANAGEMENT_MAX)
        return;
    for (size_t i = 0; i < n->address_count; i++)
        if (ft_ip_equal(&n->addresses[i], &ip))
            return;
    room = reallocarray(n->addresses, n->address_count + 1, sizeof(*room));
    if (!room)
        return;
    n->addresses = room;
    n->addresses[n->address_count++] = ip;
}

static void take_local(struct ft_device *d, const struct ft_walk_cell *cell)
{
    struct ft_device_locals *all = &d->locals_new;
    const struct ft_snmp_varbind *v = cell->value;
    struct ft_device_local *local;
    size_t at = all->count;
    void *room;

    if (cell->index_len != 1)
        return;
    while (at > 0 && all->items[at - 1].number > cell->index[0])
        at--;
    if (at > 0 && all->items[at - 1].number == cell->index[0]) {
        local = &all->items[at - 1];
    } else if (all->count >= d->limits.ports_max) {
        d->truncated = true;
        return;
    } else {
        room = insert(all->items, &all->count, &all->size, sizeof(*local), at);
        if (!room)
            return;
        all->items = room;
        local = &all->items[at];
        local->number = cell->index[0];
    }
    if (cell->column == FT_MIB_LOC_SUBTYPE)
        local->id.subtype = v->type == FT_SNMP_INTEGER ? (uint32_t)v->number : 0;
    else if (cell->column == FT_MIB_LOC_ID)
        ft_identity_set(&local->id, v->bytes, v->len);
    else
        set_text(&local->descr, v);
}

void ft_device_cell(struct ft_device *d, const struct ft_walk_cell *cell, struct ft_wall when)
{
    struct ft_device_port *port;

    switch (cell->table) {
    case FT_MIB_COUNTERS:
        take_counters(d, cell, when);
        break;
    case FT_MIB_NAMES:
        take_names(d, cell);
        break;
    case FT_MIB_LAG:
        port = cell->index_len == 1 ? find_port(&d->ports, cell->index[0]) : NULL;
        if (port && cell->value->type == FT_SNMP_INTEGER && cell->value->number != port->ifindex)
            port->lag_new = (uint32_t)cell->value->number;
        break;
    case FT_MIB_ADDRESSES:
    case FT_MIB_ADDRESSES_OLD:
        take_address(d, cell);
        break;
    case FT_MIB_LLDP_REMOTE:
        take_remote(d, cell);
        break;
    case FT_MIB_LLDP_REMOTE_ADDRESSES:
        take_remote_address(d, cell);
        break;
    case FT_MIB_LLDP_LOCAL:
        take_local(d, cell);
        break;
    case FT_MIB_PAUSE:
    case FT_MIB_PFC:
        take_flow_control(d, cell);
        break;
    case FT_MIB_TABLES:
        break;
    }
}

static void drop_gone_ports(struct ft_device *d)
{
    size_t kept = 0;

    for (size_t i = 0; i < d->ports.count; i++) {
        if (d->ports.items[i].poll == d->poll)
            d->ports.items[kept++] = d->ports.items[i];
        else
            clear_port(&d->ports.items[i]);
    }
    d->ports.count = kept;
}

static void close_whole(struct ft_device *d, enum ft_mib_table table)
{
    switch (table) {
    case FT_MIB_COUNTERS:
        drop_gone_ports(d);
        d->counters_read = true;
        break;
    case FT_MIB_NAMES:
        d->names_due = false;
        d->names_read = d->begun;
        break;
    case FT_MIB_LAG:
        for (size_t i = 0; i < d->ports.count; i++) {
            d->ports.items[i].lag_ifindex = d->ports.items[i].lag_new;
            d->ports.items[i].lag_new = 0;
        }
        break;
    case FT_MIB_ADDRESSES:
    case FT_MIB_ADDRESSES_OLD:
        memcpy(d->addresses, d->addresses_new, d->address_new_count * sizeof(d->addresses[0]));
        d->address_count = d->address_new_count;
        break;
    case FT_MIB_LLDP_REMOTE:
        d->neighbors_read = true;
        break;
    case FT_MIB_LLDP_LOCAL:
        clear_locals(&d->locals);
        d->locals = d->locals_new;
        d->locals_new = (struct ft_device_locals){0};
        break;
    default:
        break;
    }
}

void ft_device_close(struct ft_device *d, const struct ft_walk *walk, bool whole)
{
    d->stats.not_increasing += walk->not_increasing;
    d->stats.truncated += walk->truncated;
    d->not_increasing |= walk->not_increasing;
    d->truncated |= walk->truncated;
    if (whole)
        close_whole(d, walk->table);
}

bool ft_device_has_new_neighbors(const struct ft_device *d)
{
    return d->neighbors_new.count > 0;
}

static const struct ft_device_local *find_local(const struct ft_device *d, uint32_t number)
{
    for (size_t i = 0; i < d->locals.count; i++)
        if (d->locals.items[i].number == number)
            return &d->locals.items[i];
    return NULL;
}

static void copy_identity(struct ft_identity *to, const struct ft_identity *from)
{
    ft_identity_clear(to);
    to->subtype = from->subtype;
    if (from->bytes)
        ft_identity_set(to, from->bytes, from->len);
    ft_identity_settle(to, FT_IDENTITY_PORT);
}

static void resolve_ports(struct ft_device *d)
{
    for (size_t i = 0; i < d->locals.count; i++)
        ft_identity_settle(&d->locals.items[i].id, FT_IDENTITY_PORT);
    ft_resolve_locals(&d->locals, &d->ports);
    for (size_t i = 0; i < d->ports.count; i++)
        ft_identity_clear(&d->ports.items[i].lldp);
    for (size_t i = 0; i < d->locals.count; i++) {
        struct ft_device_port *port = find_port(&d->ports, d->locals.items[i].ifindex);

        if (port)
            copy_identity(&port->lldp, &d->locals.items[i].id);
    }
    d->stats.unresolved = 0;
    for (size_t i = 0; i < d->neighbors.count; i++) {
        struct ft_device_neighbor *n = &d->neighbors.items[i];
        const struct ft_device_local *local = find_local(d, n->local);

        n->ifindex = local ? local->ifindex : 0;
        d->stats.unresolved += n->ifindex == 0;
    }
}

void ft_device_end(struct ft_device *d, struct ft_mono now)
{
    if (d->neighbors_read) {
        for (size_t i = 0; i < d->neighbors_new.count; i++) {
            ft_identity_settle(&d->neighbors_new.items[i].chassis, FT_IDENTITY_CHASSIS);
            ft_identity_settle(&d->neighbors_new.items[i].port, FT_IDENTITY_PORT);
        }
        clear_neighbors(&d->neighbors);
        d->neighbors = d->neighbors_new;
        d->neighbors_new = (struct ft_device_neighbors){0};
        d->has_lldp = d->has_lldp || d->neighbors.count > 0;
    }
    resolve_ports(d);
    if (d->moves > 0)
        d->moved = now;
    d->stale = d->polled && d->counters_read && d->moves == 0 && d->ports.count > 0;
    d->frozen = d->stale && ft_mono_since_ns(now, d->moved) >= d->limits.frozen_after_ns;
    d->stats.frozen += d->frozen;
    d->polled = d->polled || d->counters_read;
}

static void say(char problem[FT_DEVICE_PROBLEM_BYTES], const char *text)
{
    size_t at = strlen(problem);

    snprintf(problem + at, FT_DEVICE_PROBLEM_BYTES - at, "%s%s", at ? "; " : "", text);
}

static void say_unresolved(const struct ft_device *d, char problem[FT_DEVICE_PROBLEM_BYTES])
{
    unsigned told = 0;

    for (size_t i = 0; i < d->neighbors.count && told < UNRESOLVED_TOLD; i++) {
        const struct ft_device_neighbor *n = &d->neighbors.items[i];
        const struct ft_device_local *local = find_local(d, n->local);
        char text[160];

        if (n->ifindex)
            continue;
        told++;
        snprintf(text, sizeof(text), "LLDP port %u ('%.60s') is no interface that IF-MIB names",
                 n->local, local && local->id.text ? local->id.text : "without an id");
        say(problem, text);
    }
    if (d->stats.unresolved > told)
        say(problem, "more such ports");
}

/* Counters of 32 bits alone wrap within a second at 40 Gb/s: they are not read. */
static bool has_counters(const struct ft_device *d)
{
    uint64_t octets;

    for (size_t i = 0; i < d->ports.count; i++)
        if (ft_counters_get(&d->ports.items[i].counters, FT_MIB_IN_OCTETS, &octets))
            return true;
    return false;
}

void ft_device_problem(const struct ft_device *d, char problem[FT_DEVICE_PROBLEM_BYTES])
{
    problem[0] = 0;
    if (d->restarted)
        say(problem, "the SNMP agent has restarted");
    if (d->frozen)
        say(problem, "no counter has moved for long: the agent answers stale values, or nothing "
                     "passes at all");
    if (d->ports.count == 0)
        say(problem, "IF-MIB answers no port");
    else if (!has_counters(d))
        say(problem, "IF-MIB answers no 64-bit counters");
    if (!d->has_lldp)
        say(problem, "LLDP-MIB is not answered: LLDP is off, or not offered over SNMP");
    say_unresolved(d, problem);
    if (d->not_increasing)
        say(problem, "an SNMP table does not increase and was read in part");
    if (d->truncated)
        say(problem, "an SNMP table is larger than what is kept of it");
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/bound.h"
#include "lib/base/grow.h"
#include "switchpoll/snmp/device_impl.h"

#define NEIGHBORS_MAX  8192
#define MANAGEMENT_MAX 16 /* addresses of one neighbour */
#define OPER_UP        1  /* ifOperStatus */
#define ADMIN_UP       1  /* ifAdminStatus; in testing(3) a port carries no packets either */
#define ADMIN_TESTING  3
#define BPS_PER_UNIT   1000000
#define ADDRESS_IPV4   1 /* InetAddressType and LLDP's address family alike */
#define ADDRESS_IPV6   2
/* LldpSystemCapabilitiesMap: bridge(2) and router(4); bit 0 is the first octet's highest. */
#define FORWARDING (0x80 >> 2 | 0x80 >> 4)

/* The array with a zeroed item at index `at`, or NULL without memory. */
static void *insert(void *items, size_t *count, size_t *size, size_t item_bytes, size_t at)
{
    char *item;

    items = ft_grow(items, *count, size, item_bytes);
    if (!items)
        return NULL;
    item = (char *)items + at * item_bytes;
    memmove(item + item_bytes, item, (*count - at) * item_bytes);
    memset(item, 0, item_bytes);
    (*count)++;
    return items;
}

static struct ft_device_port *take_port(struct ft_device *d, uint32_t ifindex)
{
    size_t at = ft_device_port_at(&d->ports, ifindex);
    struct ft_device_port *port = ft_device_find_port(d, ifindex);
    void *room;

    if (port || ifindex == 0)
        return port;
    if (d->ports.count >= d->limits.ports_max ||
        (d->limits.room && d->limits.room->used >= d->limits.room->max)) {
        d->truncated = true;
        return NULL;
    }
    room = insert(d->ports.items, &d->ports.count, &d->ports.size, sizeof(*port), at);
    if (!room)
        return NULL;
    d->ports.items = room;
    port = &d->ports.items[at];
    port->ifindex = ifindex;
    if (d->limits.room)
        d->limits.room->used++;
    d->names_due = true;
    return port;
}

/* Whether it moved. */
static bool take_count(struct ft_device *d, struct ft_device_port *port,
                       enum ft_mib_counters counter, const struct ft_snmp_varbind *v)
{
    if (v->type != FT_SNMP_COUNTER32 && v->type != FT_SNMP_COUNTER64)
        return false;
    switch (ft_snmp_counters_take(&port->counters, counter, v->number, d->restarted)) {
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
    } else if (cell->column == FT_MIB_ADMIN_STATUS) {
        port->has_admin_up =
            v->type == FT_SNMP_INTEGER && v->number >= ADMIN_UP && v->number <= ADMIN_TESTING;
        port->admin_up = port->has_admin_up && v->number == ADMIN_UP;
    } else if (cell->column == FT_MIB_HIGH_SPEED) {
        port->speed_bps = v->type == FT_SNMP_UNSIGNED ? v->number * BPS_PER_UNIT : 0;
    } else if (cell->column == FT_MIB_DISCONTINUITY) {
        port->has_discontinuity = v->type == FT_SNMP_UNSIGNED;
        port->discontinuity_cs = (uint32_t)v->number;
    } else {
        d->moves += take_count(d, port, (enum ft_mib_counters)cell->column, v);
    }
    if (cell->column == FT_MIB_IN_OCTETS)
        port->counted = when;
}

/* A port that IF-MIB does not have in this poll is none. What changes here does not show that
 * IF-MIB's counters do. */
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
        cell->index_len == 1 ? ft_device_find_port(d, cell->index[0]) : NULL;

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
        cell->index_len == 1 ? ft_device_find_port(d, cell->index[0]) : NULL;
    const struct ft_snmp_varbind *v = cell->value;

    if (!port)
        return;
    switch ((enum ft_mib_names)cell->column) {
    case FT_MIB_IF_NAME:
        ft_device_set_text(&port->name, v);
        break;
    case FT_MIB_IF_ALIAS:
        ft_device_set_text(&port->alias, v);
        break;
    case FT_MIB_IF_DESCR:
        ft_device_set_text(&port->descr, v);
        break;
    case FT_MIB_IF_MAC:
        free(port->mac);
        port->mac = v->type == FT_SNMP_STRING && v->len == 6 ? ft_identity_mac(v->bytes, 6) : NULL;
        break;
    case FT_MIB_IF_TYPE:
        port->type = v->type == FT_SNMP_INTEGER ? (uint32_t)v->number : 0;
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

/* An address from index elements; false when it is none, or one that does not identify a switch. */
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
 * and such an address does not identify a switch. */
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

static int compare_neighbors(const void *a, const void *b)
{
    const struct ft_device_neighbor *x = a, *y = b;

    if (x->local != y->local)
        return x->local < y->local ? -1 : 1;
    if (x->remote != y->remote)
        return x->remote < y->remote ? -1 : 1;
    return (x->mark > y->mark) - (x->mark < y->mark);
}

/* Where the neighbour is among them, or belongs. */
static size_t neighbor_at(const struct ft_device_neighbors *all, uint32_t local, uint32_t remote,
                          uint32_t mark)
{
    const struct ft_device_neighbor key = {.local = local, .remote = remote, .mark = mark};

    return ft_lower_bound(&key, all->items, all->count, sizeof(key), compare_neighbors);
}

/* The neighbour of (time mark, local port number, remote index) that is being read. Where an agent
 * uses a remote index again the mark alone distinguishes two neighbours of a port. */
static struct ft_device_neighbor *take_neighbor(struct ft_device *d, uint32_t mark, uint32_t local,
                                                uint32_t remote)
{
    struct ft_device_neighbors *all = &d->neighbors_new;
    size_t at = neighbor_at(all, local, remote, mark);
    struct ft_device_neighbor *n = at < all->count ? &all->items[at] : NULL;
    void *room;

    if (n && n->local == local && n->remote == remote && n->mark == mark)
        return n;
    if (all->count >= NEIGHBORS_MAX) {
        d->truncated = true;
        return NULL;
    }
    room = insert(all->items, &all->count, &all->size, sizeof(*n), at);
    if (!room)
        return NULL;
    all->items = room;
    n = &all->items[at];
    n->mark = mark;
    n->local = local;
    n->remote = remote;
    return n;
}

/* The neighbour that an address is of. The mark need not be that of lldpRemTable: SONiC has 0
 * there, and here the time. Then it is of the only one with that port and index. */
static struct ft_device_neighbor *addressed(struct ft_device *d, uint32_t mark, uint32_t local,
                                            uint32_t remote)
{
    struct ft_device_neighbors *all = &d->neighbors_new;
    size_t first = neighbor_at(all, local, remote, 0);
    struct ft_device_neighbor *found = NULL;

    for (size_t i = first; i < all->count; i++) {
        struct ft_device_neighbor *n = &all->items[i];

        if (n->local != local || n->remote != remote)
            break;
        if (n->mark == mark)
            return n;
        found = i == first ? n : NULL;
    }
    return found;
}

static void take_remote(struct ft_device *d, const struct ft_walk_cell *cell)
{
    struct ft_device_neighbor *n =
        cell->index_len == 3 ? take_neighbor(d, cell->index[0], cell->index[1], cell->index[2])
                             : NULL;
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
        ft_device_set_text(&n->port_descr, v);
        break;
    case FT_MIB_REM_NAME:
        ft_device_set_text(&n->name, v);
        break;
    case FT_MIB_REM_ENABLED:
        /* No bit at all: the neighbour sent no capabilities (they are optional). */
        n->has_forwards = v->type == FT_SNMP_STRING && v->len > 0 && v->bytes[0];
        n->forwards = n->has_forwards && v->bytes[0] & FORWARDING;
        break;
    }
}

/* Family, length, address; some agents leave the length out, which is as if the index were IMPLIED
 * (RFC 2578 section 7.7). */
static bool management_address(const uint32_t *index, size_t len, struct ft_ip *ip)
{
    size_t bytes = index[0] == ADDRESS_IPV4 ? 4 : index[0] == ADDRESS_IPV6 ? 16 : 0;

    if (bytes == 0)
        return false;
    if (len == 1 + bytes)
        return index_address(index + 1, bytes, ip);
    return len == 2 + bytes && index[1] == bytes && index_address(index + 2, bytes, ip);
}

static void take_remote_address(struct ft_device *d, const struct ft_walk_cell *cell)
{
    struct ft_device_neighbor *n;
    struct ft_ip ip;
    struct ft_ip *room;

    if (cell->index_len < 5 || !management_address(cell->index + 3, cell->index_len - 3, &ip))
        return;
    n = addressed(d, cell->index[0], cell->index[1], cell->index[2]);
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
        ft_device_set_text(&local->descr, v);
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
        port = cell->index_len == 1 ? ft_device_find_port(d, cell->index[0]) : NULL;
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

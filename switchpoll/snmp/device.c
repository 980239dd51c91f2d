// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/device.h"

#include <stdlib.h>
#include <string.h>

#include "switchpoll/snmp/device_impl.h"
#include "switchpoll/snmp/resolve.h"

#define NS_PER_CS INT64_C(10000000)
#define CS_PER_S  100
#define CLOCK_CS  (10 * CS_PER_S) /* that two clocks may differ between two polls */

struct ft_device *ft_device_new(const struct ft_ip *agent, const struct ft_device_limits *limits)
{
    struct ft_device *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->agent = *agent;
    d->limits = *limits;
    return d;
}

static void clear_port(struct ft_device *d, struct ft_device_port *port)
{
    if (d->limits.room)
        d->limits.room->used--;
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

static void clear_neighbor(struct ft_device_neighbor *n)
{
    ft_identity_clear(&n->chassis);
    ft_identity_clear(&n->port);
    free(n->port_descr);
    free(n->name);
    free(n->addresses);
}

static void clear_neighbors(struct ft_device_neighbors *neighbors)
{
    for (size_t i = 0; i < neighbors->count; i++)
        clear_neighbor(&neighbors->items[i]);
    free(neighbors->items);
    *neighbors = (struct ft_device_neighbors){0};
}

void ft_device_free(struct ft_device *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->ports.count; i++)
        clear_port(d, &d->ports.items[i]);
    free(d->ports.items);
    clear_locals(&d->locals);
    clear_locals(&d->locals_new);
    clear_neighbors(&d->neighbors);
    clear_neighbors(&d->neighbors_new);
    ft_identity_clear(&d->chassis);
    free(d->name);
    free(d);
}

struct ft_device_port *ft_device_find_port(struct ft_device *d, uint32_t ifindex)
{
    size_t at = ft_device_port_at(&d->ports, ifindex);

    return at < d->ports.count && d->ports.items[at].ifindex == ifindex ? &d->ports.items[at]
                                                                        : NULL;
}

const struct ft_device_local *ft_device_find_local(const struct ft_device *d, uint32_t number)
{
    for (size_t i = 0; i < d->locals.count; i++)
        if (d->locals.items[i].number == number)
            return &d->locals.items[i];
    return NULL;
}

void ft_device_set_text(char **to, const struct ft_snmp_varbind *v)
{
    char *text = v->type == FT_SNMP_STRING ? ft_identity_text(v->bytes, v->len) : NULL;

    free(*to);
    *to = text;
}

/* Whether the agent started between two polls, by its engine where it reports one. sysUpTime alone
 * begins again every 497 days; that is not a restart as long as it ran at the clock's pace. */
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
    ft_device_set_text(&d->name, &v[FT_MIB_SYS_NAME]);
}

void ft_device_begin(struct ft_device *d, const struct ft_snmp_varbind *varbinds, size_t count,
                     struct ft_mono now)
{
    struct ft_device_scalars s;

    read_scalars(d, varbinds, count, &s);
    d->restarted = d->polled && has_restarted(&d->scalars, &s, ft_mono_since_ns(now, d->begun));
    d->stats.restarts += d->restarted;
    d->ports_changed = !d->polled || d->restarted || s.has_if_change != d->scalars.has_if_change ||
                       s.if_change_cs != d->scalars.if_change_cs;
    if (d->ports_changed || ft_mono_since_ns(now, d->names_read) >= d->limits.names_age_ns)
        d->names_due = true;
    if (!d->polled)
        d->moved = now;
    d->scalars = s;
    d->begun = now;
    d->poll++;
    d->moves = 0;
    d->counters_read = d->ports_away = d->ports_missed = false;
    d->neighbors_read = false;
    d->not_increasing = false;
    d->truncated = false;
    clear_locals(&d->locals_new);
    clear_neighbors(&d->neighbors_new);
    d->address_new_count = 0;
    for (size_t i = 0; i < d->ports.count; i++)
        d->ports.items[i].lag_new = 0;
}

void ft_device_lldp(struct ft_device *d, const struct ft_snmp_varbind *v, size_t count)
{
    d->has_lldp = count == FT_MIB_LLDP_SCALARS && v[FT_MIB_CHASSIS].type == FT_SNMP_STRING &&
                  v[FT_MIB_CHASSIS_SUBTYPE].type == FT_SNMP_INTEGER;
    if (!d->has_lldp)
        return;
    d->chassis.subtype = (uint32_t)v[FT_MIB_CHASSIS_SUBTYPE].number;
    ft_identity_set(&d->chassis, v[FT_MIB_CHASSIS].bytes, v[FT_MIB_CHASSIS].len);
    ft_identity_decide(&d->chassis, FT_IDENTITY_CHASSIS);
}

bool ft_device_lost_neighbors(const struct ft_device *d)
{
    return d->has_lldp && d->neighbors_read && d->neighbors_new.count < d->neighbor_rows;
}

void ft_device_lldp_again(struct ft_device *d, const struct ft_snmp_varbind *varbinds, size_t count)
{
    ft_device_lldp(d, varbinds, count);
    if (d->has_lldp)
        return;
    clear_neighbors(&d->neighbors_new);
    d->neighbors_read = false;
}

/* A table that is read while the sub-agent that serves it leaves seems to end there. */
static void drop_gone_ports(struct ft_device *d)
{
    size_t kept = 0;

    for (size_t i = 0; i < d->ports.count; i++) {
        struct ft_device_port *port = &d->ports.items[i];
        bool missing = port->poll != d->poll;

        if (missing && (port->missed || d->ports_changed)) {
            clear_port(d, port);
            continue;
        }
        port->missed = missing;
        d->ports_missed |= missing;
        d->ports.items[kept++] = *port;
    }
    d->ports.count = kept;
}

static void close_complete(struct ft_device *d, enum ft_mib_table table)
{
    switch (table) {
    case FT_MIB_COUNTERS:
        drop_gone_ports(d);
        d->counters_read = true;
        break;
    case FT_MIB_NAMES:
        d->names_due = d->ports_missed;
        d->names_read = d->begun;
        break;
    case FT_MIB_LAG:
        for (size_t i = 0; i < d->ports.count; i++) {
            if (!d->ports.items[i].missed)
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

/* Whether nobody has answered a table of interfaces. */
static bool is_unanswered(const struct ft_device *d, const struct ft_walk *walk)
{
    if (walk->cells > 0 || d->ports.count == 0)
        return false;
    return walk->table == FT_MIB_COUNTERS || walk->table == FT_MIB_NAMES ||
           (walk->table == FT_MIB_LAG && (d->ports_away || d->ports_missed));
}

void ft_device_close(struct ft_device *d, const struct ft_walk *walk, bool complete)
{
    d->stats.not_increasing += walk->not_increasing;
    d->stats.truncated += walk->truncated;
    d->not_increasing |= walk->not_increasing;
    d->truncated |= walk->truncated;
    if (complete && !is_unanswered(d, walk))
        close_complete(d, walk->table);
    else if (complete && walk->table == FT_MIB_COUNTERS)
        d->ports_away = true;
}

bool ft_device_has_new_neighbors(const struct ft_device *d)
{
    return d->neighbors_new.count > 0;
}

static void copy_identity(struct ft_switch_identity *to, const struct ft_switch_identity *from)
{
    ft_identity_clear(to);
    to->subtype = from->subtype;
    if (from->bytes)
        ft_identity_set(to, from->bytes, from->len);
    ft_identity_decide(to, FT_IDENTITY_PORT);
}

static void resolve_ports(struct ft_device *d)
{
    for (size_t i = 0; i < d->locals.count; i++)
        ft_identity_decide(&d->locals.items[i].id, FT_IDENTITY_PORT);
    ft_resolve_locals(&d->locals, &d->ports);
    for (size_t i = 0; i < d->ports.count; i++)
        ft_identity_clear(&d->ports.items[i].lldp);
    for (size_t i = 0; i < d->locals.count; i++) {
        struct ft_device_port *port = ft_device_find_port(d, d->locals.items[i].ifindex);

        if (port)
            copy_identity(&port->lldp, &d->locals.items[i].id);
    }
    d->stats.unresolved = 0;
    for (size_t i = 0; i < d->neighbors.count; i++) {
        struct ft_device_neighbor *n = &d->neighbors.items[i];
        const struct ft_device_local *local = ft_device_find_local(d, n->local);

        n->ifindex = local ? local->ifindex : 0;
        d->stats.unresolved += n->ifindex == 0;
    }
}

static bool is_absent_or(const struct ft_switch_identity *a, const struct ft_switch_identity *b)
{
    return !a->text || (b->text && a->kind == b->kind && strcmp(a->text, b->text) == 0);
}

/* Whether a later row of the same port and index says all that the former does. */
static bool is_repeated(const struct ft_device_neighbor *former,
                        const struct ft_device_neighbor *later)
{
    return former->local == later->local && former->remote == later->remote &&
           is_absent_or(&former->chassis, &later->chassis) &&
           is_absent_or(&former->port, &later->port) &&
           (!former->name || (later->name && strcmp(former->name, later->name) == 0));
}

/* A row under several time marks is one neighbour, as it is under the last one. An agent that moves
 * the mark while it is read may have answered a part of it under the former one. */
static void drop_repeated(struct ft_device_neighbors *all)
{
    size_t kept = 0;

    for (size_t i = 0; i < all->count; i++) {
        if (kept && is_repeated(&all->items[kept - 1], &all->items[i]))
            clear_neighbor(&all->items[--kept]);
        all->items[kept++] = all->items[i];
    }
    all->count = kept;
}

void ft_device_end(struct ft_device *d, struct ft_mono now)
{
    if (d->neighbors_read) {
        d->neighbor_rows = d->neighbors_new.count;
        for (size_t i = 0; i < d->neighbors_new.count; i++) {
            ft_identity_decide(&d->neighbors_new.items[i].chassis, FT_IDENTITY_CHASSIS);
            ft_identity_decide(&d->neighbors_new.items[i].port, FT_IDENTITY_PORT);
        }
        drop_repeated(&d->neighbors_new);
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

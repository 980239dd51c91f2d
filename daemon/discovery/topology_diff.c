// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/topology_diff.h"

#include <string.h>

struct diff {
    void (*each)(void *arg, const struct ft_change *change);
    void *arg;
    size_t count;
};

static const char *switch_of(const struct ft_topology *t, uint32_t port)
{
    return ft_topology_switch(t, ft_topology_port(t, port)->switch_id)->name;
}

static const char *host_of(const struct ft_topology *t, uint32_t nic)
{
    return ft_topology_host(t, ft_topology_nic(t, nic)->host_id)->name;
}

/* The same port in another topology, FT_NONE. */
static uint32_t same_port(const struct ft_topology *from, const struct ft_topology *to,
                          uint32_t port)
{
    uint32_t id = ft_topology_find_switch(to, switch_of(from, port));

    return id == FT_NONE ? FT_NONE
                         : ft_topology_find_port(to, id, ft_topology_port(from, port)->name);
}

static void report_change(struct diff *d, enum ft_change_what what, bool came,
                          const struct ft_topology *t, uint32_t port)
{
    const struct ft_port *p = ft_topology_port(t, port);
    struct ft_change change = {
        .what = what, .came = came, .switch_name = switch_of(t, port), .port = p->name};

    if (what == FT_CHANGE_LINK) {
        change.peer = switch_of(t, p->peer);
        change.peer_port = ft_topology_port(t, p->peer)->name;
    } else {
        change.peer = host_of(t, p->nic);
    }
    d->count++;
    if (d->each)
        d->each(d->arg, &change);
}

/* What `has` has and `other` has not. */
static void only_in_first(struct diff *d, const struct ft_topology *has,
                          const struct ft_topology *against, bool came)
{
    for (uint32_t i = 0; i < ft_topology_switches(has); i++) {
        struct ft_change change = {.what = FT_CHANGE_SWITCH,
                                   .came = came,
                                   .switch_name = ft_topology_switch(has, i)->name};

        if (ft_topology_find_switch(against, change.switch_name) != FT_NONE)
            continue;
        d->count++;
        if (d->each)
            d->each(d->arg, &change);
    }
    for (uint32_t i = 0; i < ft_topology_ports(has); i++) {
        const struct ft_port *p = ft_topology_port(has, i);
        uint32_t other = same_port(has, against, i);
        const struct ft_port *q = other == FT_NONE ? NULL : ft_topology_port(against, other);

        if (p->peer != FT_NONE && p->peer > i &&
            (!q || q->peer == FT_NONE || q->peer != same_port(has, against, p->peer)))
            report_change(d, FT_CHANGE_LINK, came, has, i);
        if (p->nic != FT_NONE && (!q || q->nic == FT_NONE ||
                                  strcmp(host_of(against, q->nic), host_of(has, p->nic)) != 0))
            report_change(d, FT_CHANGE_HOST, came, has, i);
    }
}

size_t ft_topology_diff(const struct ft_topology *before, const struct ft_topology *after,
                        void (*each)(void *arg, const struct ft_change *change), void *arg)
{
    struct diff d = {.each = each, .arg = arg};

    only_in_first(&d, before, after, false);
    only_in_first(&d, after, before, true);
    return d.count;
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool same_addresses(const struct ft_ip *a, uint32_t a_count, const struct ft_ip *b,
                           uint32_t b_count)
{
    for (uint32_t i = 0; i < a_count && i < b_count; i++)
        if (!ft_ip_equal(&a[i], &b[i]))
            return false;
    return a_count == b_count;
}

/* The same port of the same switch. Ids of ports follow the order of links, too. */
static bool port_matches(const struct ft_topology *a, uint32_t x, const struct ft_topology *b,
                         uint32_t y)
{
    const struct ft_port *p, *q;

    if (x == FT_NONE || y == FT_NONE)
        return x == y;
    p = ft_topology_port(a, x);
    q = ft_topology_port(b, y);
    return p->switch_id == q->switch_id && same_text(p->name, q->name);
}

static bool ports_match(const struct ft_topology *a, const uint32_t *x, uint32_t x_count,
                        const struct ft_topology *b, const uint32_t *y, uint32_t y_count)
{
    for (uint32_t i = 0; i < x_count && i < y_count; i++)
        if (!port_matches(a, x[i], b, y[i]))
            return false;
    return x_count == y_count;
}

static bool same_leads(const struct ft_topology *a, const struct ft_port *p,
                       const struct ft_topology *b, const struct ft_port *q)
{
    if ((p->nic == FT_NONE) != (q->nic == FT_NONE) ||
        (p->group == FT_NONE) != (q->group == FT_NONE) || !port_matches(a, p->peer, b, q->peer))
        return false;
    return (p->nic == FT_NONE ||
            ft_topology_nic(a, p->nic)->host_id == ft_topology_nic(b, q->nic)->host_id) &&
           (p->group == FT_NONE ||
            same_text(ft_topology_group(a, p->group)->name, ft_topology_group(b, q->group)->name));
}

static bool same_switch(const struct ft_topology *a, const struct ft_topology *b, uint32_t id)
{
    const struct ft_switch *s = ft_topology_switch(a, id), *o = ft_topology_switch(b, id);

    if (!same_text(s->name, o->name) || s->tier != o->tier || s->port_count != o->port_count ||
        !same_addresses(s->addresses, s->address_count, o->addresses, o->address_count))
        return false;
    for (uint32_t i = 0; i < s->port_count; i++) {
        const struct ft_port *p = ft_topology_port(a, s->ports[i]);
        const struct ft_port *q = ft_topology_port(b, o->ports[i]);

        if (!same_text(p->name, q->name) || p->ifindex != q->ifindex ||
            p->speed_bps != q->speed_bps || p->lag_ifindex != q->lag_ifindex ||
            !same_leads(a, p, b, q))
            return false;
    }
    return true;
}

static bool same_lag(const struct ft_topology *a, const struct ft_topology *b, uint32_t id)
{
    const struct ft_lag *x = ft_topology_lag(a, id), *y = ft_topology_lag(b, id);

    return x->switch_id == y->switch_id && same_text(x->name, y->name) &&
           x->ifindex == y->ifindex &&
           ports_match(a, x->members, x->member_count, b, y->members, y->member_count);
}

static bool same_host(const struct ft_topology *a, const struct ft_topology *b, uint32_t id)
{
    const struct ft_host *x = ft_topology_host(a, id), *y = ft_topology_host(b, id);

    if (!same_text(x->name, y->name) || x->nic_count != y->nic_count)
        return false;
    for (uint32_t i = 0; i < x->nic_count; i++) {
        const struct ft_nic *n = ft_topology_nic(a, x->nics[i]);
        const struct ft_nic *m = ft_topology_nic(b, y->nics[i]);

        if (n->rail != m->rail ||
            !same_addresses(n->addresses, n->address_count, m->addresses, m->address_count) ||
            !ports_match(a, n->attach, n->attach_count, b, m->attach, m->attach_count))
            return false;
    }
    return true;
}

bool ft_topology_same(const struct ft_topology *a, const struct ft_topology *b)
{
    bool same = same_text(ft_topology_fabric(a), ft_topology_fabric(b)) &&
                ft_topology_switches(a) == ft_topology_switches(b) &&
                ft_topology_lags(a) == ft_topology_lags(b) &&
                ft_topology_hosts(a) == ft_topology_hosts(b);

    for (uint32_t i = 0; same && i < ft_topology_switches(a); i++)
        same = same_switch(a, b, i);
    for (uint32_t i = 0; same && i < ft_topology_lags(a); i++)
        same = same_lag(a, b, i);
    for (uint32_t i = 0; same && i < ft_topology_hosts(a); i++)
        same = same_host(a, b, i);
    return same;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fabric/topology_impl.h"

/* Longest suffix of a group's name after its switch's. */
#define GROUP_SUFFIX_BYTES sizeof("/down")

static const struct ft_new_switch *new_switches(const struct ft_topology_builder *b)
{
    return b->switches.items;
}

static const struct ft_new_port *new_ports(const struct ft_topology_builder *b)
{
    return b->ports.items;
}

/* Allocates all that the builder's counts determine. */
static bool allocate(struct ft_topology *t, const struct ft_topology_builder *b)
{
    const struct ft_new_switch *switches = b->switches.items;
    const struct ft_new_port *ports = b->ports.items;
    const struct ft_new_lag *lags = b->lags.items;
    const struct ft_new_host *hosts = b->hosts.items;
    size_t text = 1;

    t->switch_count = b->switches.count;
    t->port_count = b->ports.count;
    t->lag_count = b->lags.count;
    t->nic_count = b->nics.count;
    t->host_count = b->hosts.count;
    for (uint32_t i = 0; i < t->switch_count; i++)
        text += 3 * (strlen(switches[i].name) + 1) + 2 * GROUP_SUFFIX_BYTES;
    for (uint32_t i = 0; i < t->port_count; i++)
        text += strlen(ports[i].name) + 1;
    for (uint32_t i = 0; i < t->lag_count; i++)
        text += strlen(lags[i].name) + 1;
    for (uint32_t i = 0; i < t->host_count; i++)
        text += strlen(hosts[i].name) + 1;
    t->fabric = strdup(b->fabric);
    t->switches = calloc(t->switch_count + 1, sizeof(*t->switches));
    t->ports = calloc(t->port_count + 1, sizeof(*t->ports));
    t->lags = calloc(t->lag_count + 1, sizeof(*t->lags));
    t->nics = calloc(t->nic_count + 1, sizeof(*t->nics));
    t->hosts = calloc(t->host_count + 1, sizeof(*t->hosts));
    t->groups = calloc(2 * (size_t)t->switch_count + 1, sizeof(*t->groups));
    t->text = malloc(text);
    t->addresses =
        malloc((b->switch_addresses.count + b->nic_addresses.count + 1) * sizeof(struct ft_ip));
    t->ids = malloc((2 * (size_t)t->port_count + t->nic_count + b->attaches.count + 1) *
                    sizeof(*t->ids));
    t->group_links = malloc((t->port_count + 1) * sizeof(*t->group_links));
    t->neighbours = malloc((t->port_count + 1) * sizeof(*t->neighbours));
    t->first_neighbour = malloc((t->switch_count + 1) * sizeof(*t->first_neighbour));
    t->links = malloc((t->port_count + 1) * sizeof(*t->links));
    return t->fabric && t->switches && t->ports && t->lags && t->nics && t->hosts && t->groups &&
           t->text && t->addresses && t->ids && t->group_links && t->neighbours &&
           t->first_neighbour && t->links && ft_index_init(&t->index) == 0;
}

static const char *put_text(char **at, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = memcpy(*at, text, bytes);

    *at += bytes;
    return copy;
}

static bool copy_items(struct ft_topology *t, const struct ft_topology_builder *b, char **text)
{
    const struct ft_new_switch *switches = b->switches.items;
    const struct ft_new_port *ports = b->ports.items;
    const struct ft_new_host *hosts = b->hosts.items;
    const struct ft_new_nic *nics = b->nics.items;
    int bad = 0;

    for (uint32_t i = 0; i < t->switch_count; i++) {
        ft_task_spend(b->task, 1);
        t->switches[i].name = put_text(text, switches[i].name);
        t->switches[i].tier = switches[i].tier;
        t->switches[i].tier_stated = switches[i].tier != FT_TIER_UNKNOWN;
        bad |= ft_index_add_name(&t->index, FT_NAMESPACE_SWITCHES, switches[i].name, i);
    }
    for (uint32_t i = 0; i < t->port_count; i++) {
        ft_task_spend(b->task, 2);
        t->ports[i] = (struct ft_port){.name = put_text(text, ports[i].name),
                                       .switch_id = ports[i].switch_id,
                                       .ifindex = ports[i].ifindex,
                                       .speed_bps = ports[i].speed_bps,
                                       .peer = ports[i].peer,
                                       .nic = ports[i].nic,
                                       .lag = FT_NONE,
                                       .group = FT_NONE,
                                       .direction = FT_DIRECTION_HOST};
        bad |= ft_index_add_name(&t->index, ports[i].switch_id, ports[i].name, i);
        if (ports[i].ifindex)
            bad |= ft_index_add_ifindex(&t->index, ports[i].switch_id, ports[i].ifindex, i);
    }
    for (uint32_t i = 0; i < t->host_count; i++) {
        ft_task_spend(b->task, 1);
        t->hosts[i].name = put_text(text, hosts[i].name);
        bad |= ft_index_add_name(&t->index, FT_NAMESPACE_HOSTS, hosts[i].name, i);
    }
    for (uint32_t i = 0; i < t->nic_count; i++) {
        t->nics[i].host_id = nics[i].host_id;
        t->nics[i].rail = nics[i].rail;
    }
    return bad == 0;
}

/* The lists that belong to an item lie one after the other in one array: first their lengths are
 * counted, then each gets its range, then they are filled in the order of adding. */
static bool copy_addresses(struct ft_topology *t, const struct ft_topology_builder *b)
{
    const struct ft_new_address *of_switch = b->switch_addresses.items;
    const struct ft_new_address *of_nic = b->nic_addresses.items;
    struct ft_ip *at = t->addresses;
    int bad = 0;

    for (uint32_t i = 0; i < b->switch_addresses.count; i++)
        t->switches[of_switch[i].owner].address_count++;
    for (uint32_t i = 0; i < b->nic_addresses.count; i++)
        t->nics[of_nic[i].owner].address_count++;
    for (uint32_t i = 0; i < t->switch_count; i++) {
        t->switches[i].addresses = at;
        at += t->switches[i].address_count;
        t->switches[i].address_count = 0;
    }
    for (uint32_t i = 0; i < t->nic_count; i++) {
        t->nics[i].addresses = at;
        at += t->nics[i].address_count;
        t->nics[i].address_count = 0;
    }
    for (uint32_t i = 0; i < b->switch_addresses.count; i++) {
        struct ft_switch *s = &t->switches[of_switch[i].owner];

        ft_task_spend(b->task, 1);
        t->addresses[s->addresses + s->address_count++ - t->addresses] = of_switch[i].ip;
        bad |= ft_index_add_address(&t->index, FT_NAMESPACE_SWITCHES, &of_switch[i].ip,
                                    of_switch[i].owner);
    }
    for (uint32_t i = 0; i < b->nic_addresses.count; i++) {
        struct ft_nic *nic = &t->nics[of_nic[i].owner];

        ft_task_spend(b->task, 1);
        t->addresses[nic->addresses + nic->address_count++ - t->addresses] = of_nic[i].ip;
        bad |= ft_index_add_address(&t->index, FT_NAMESPACE_NICS, &of_nic[i].ip, of_nic[i].owner);
    }
    return bad == 0;
}

static void copy_id_lists(struct ft_topology *t, const struct ft_topology_builder *b)
{
    const struct ft_new_attach *attaches = b->attaches.items;
    uint32_t *at = t->ids;

    for (uint32_t i = 0; i < t->port_count; i++)
        t->switches[t->ports[i].switch_id].port_count++;
    for (uint32_t i = 0; i < t->nic_count; i++)
        t->hosts[t->nics[i].host_id].nic_count++;
    for (uint32_t i = 0; i < b->attaches.count; i++)
        t->nics[attaches[i].nic_id].attach_count++;
    for (uint32_t i = 0; i < t->switch_count; i++) {
        t->switches[i].ports = at;
        at += t->switches[i].port_count;
        t->switches[i].port_count = 0;
    }
    for (uint32_t i = 0; i < t->host_count; i++) {
        t->hosts[i].nics = at;
        at += t->hosts[i].nic_count;
        t->hosts[i].nic_count = 0;
    }
    for (uint32_t i = 0; i < t->nic_count; i++) {
        t->nics[i].attach = at;
        at += t->nics[i].attach_count;
        t->nics[i].attach_count = 0;
    }
    for (uint32_t i = 0; i < t->port_count; i++) {
        struct ft_switch *s = &t->switches[t->ports[i].switch_id];

        t->ids[s->ports + s->port_count++ - t->ids] = i;
    }
    for (uint32_t i = 0; i < t->nic_count; i++) {
        struct ft_host *host = &t->hosts[t->nics[i].host_id];

        t->ids[host->nics + host->nic_count++ - t->ids] = i;
    }
    for (uint32_t i = 0; i < b->attaches.count; i++) {
        struct ft_nic *nic = &t->nics[attaches[i].nic_id];

        t->ids[nic->attach + nic->attach_count++ - t->ids] = attaches[i].port_id;
    }
}

/* Gives each aggregate its members, from *at on. Samples that name one are of use only when each of
 * its members leads somewhere: on a link that is not known they may have gone as well. */
static bool copy_lags(struct ft_topology *t, const struct ft_topology_builder *b, char **text)
{
    const struct ft_new_lag *lags = b->lags.items;
    uint32_t *at = t->ids + (size_t)t->port_count + t->nic_count + b->attaches.count;
    int bad = 0;

    for (uint32_t i = 0; i < t->lag_count; i++) {
        struct ft_lag *lag = &t->lags[i];
        const struct ft_switch *s = &t->switches[lags[i].switch_id];

        ft_task_spend(b->task, 1 + s->port_count / 8);
        *lag = (struct ft_lag){.name = put_text(text, lags[i].name),
                               .switch_id = lags[i].switch_id,
                               .ifindex = lags[i].ifindex,
                               .members = at,
                               .complete = true};
        for (uint32_t k = 0; k < s->port_count; k++) {
            const struct ft_port *port = &t->ports[s->ports[k]];

            if (new_ports(b)[s->ports[k]].lag != i)
                continue;
            at[lag->member_count++] = s->ports[k];
            lag->complete &= port->peer != FT_NONE || port->nic != FT_NONE;
        }
        at += lag->member_count;
        lag->complete &= lag->member_count > 0;
        bad |= ft_index_add_name(&t->index, FT_NAMESPACE_LAGS | lag->switch_id, lag->name, i);
        if (!lag->complete)
            continue;
        for (uint32_t k = 0; k < lag->member_count; k++)
            t->ports[lag->members[k]].lag = FT_LAG_BIT | i;
        if (lag->member_count == 1)
            t->ports[lag->members[0]].lag_ifindex = lag->ifindex;
        if (lag->ifindex)
            bad |= ft_index_add_ifindex(&t->index, lag->switch_id, lag->ifindex,
                                        lag->member_count == 1 ? lag->members[0] : FT_LAG_BIT | i);
    }
    return bad == 0;
}

static void complain_at(const struct ft_topology_builder *b, struct ft_stated_at stated,
                        struct ft_diag *diag, const char *text)
{
    ft_diag_add(diag, stated.file == FT_NONE ? NULL : b->files[stated.file], stated.line, "%s",
                text);
}

/* A switch with a NIC is a leaf unless stated otherwise; one whose nearest tier known is n is
 * n + 1. */
static void work_out_tiers(struct ft_topology *t)
{
    for (uint32_t i = 0; i < t->port_count; i++) {
        struct ft_switch *s = &t->switches[t->ports[i].switch_id];

        if (t->ports[i].nic != FT_NONE && s->tier == FT_TIER_UNKNOWN)
            s->tier = FT_TIER_LEAF;
    }
    for (enum ft_tier below = FT_TIER_LEAF; below < FT_TIER_SUPERSPINE; below++) {
        for (uint32_t i = 0; i < t->port_count; i++) {
            const struct ft_port *p = &t->ports[i];
            struct ft_switch *s = &t->switches[p->switch_id];

            if (p->peer != FT_NONE && s->tier == FT_TIER_UNKNOWN &&
                t->switches[t->ports[p->peer].switch_id].tier == below)
                s->tier = below + 1;
        }
    }
}

/* Returns the number of complaints. */
static size_t set_directions(struct ft_topology *t, const struct ft_topology_builder *b,
                             struct ft_diag *diag)
{
    size_t before = ft_diag_count(diag);
    char text[4 * FT_NAME_MAX + 128];

    for (uint32_t i = 0; i < t->switch_count; i++) {
        const struct ft_switch *s = &t->switches[i];
        bool linked = false;

        for (uint32_t k = 0; k < s->port_count; k++)
            linked |= t->ports[s->ports[k]].peer != FT_NONE;
        if (s->tier != FT_TIER_UNKNOWN || !linked)
            continue;
        snprintf(text, sizeof(text),
                 "switch '%s': its tier cannot be derived from the hosts: state it", s->name);
        complain_at(b, new_switches(b)[i].stated, diag, text);
    }
    for (uint32_t i = 0; i < t->port_count; i++) {
        struct ft_port *p = &t->ports[i];
        const struct ft_switch *from = &t->switches[p->switch_id];
        const struct ft_switch *to;

        if (p->peer == FT_NONE)
            continue;
        to = &t->switches[t->ports[p->peer].switch_id];
        p->direction = from->tier < to->tier ? FT_DIRECTION_UP : FT_DIRECTION_DOWN;
        if (from->tier != to->tier || from->tier == FT_TIER_UNKNOWN || p->peer < i)
            continue;
        snprintf(
            text, sizeof(text),
            "the link from '%s' %s to '%s' %s is inside the tier %s: it is neither up nor down",
            from->name, p->name, to->name, t->ports[p->peer].name, ft_tier_name(from->tier));
        complain_at(b, new_ports(b)[i].stated, diag, text);
    }
    return ft_diag_count(diag) - before;
}

static void add_group(struct ft_topology *t, uint32_t switch_id, enum ft_direction direction,
                      uint32_t **links, char **text)
{
    const struct ft_switch *s = &t->switches[switch_id];
    struct ft_group *group = &t->groups[t->group_count];

    *group = (struct ft_group){.name = *text,
                               .switch_id = switch_id,
                               .tier = s->tier,
                               .direction = direction,
                               .links = *links};
    for (uint32_t i = 0; i < s->port_count; i++) {
        uint32_t port = s->ports[i];

        if (t->ports[port].peer == FT_NONE || t->ports[port].direction != FT_DIRECTION_UP)
            continue;
        /* Down to this switch sends the other end of a link that goes up from it. */
        if (direction == FT_DIRECTION_DOWN)
            port = t->ports[port].peer;
        t->ports[port].group = t->group_count;
        *(*links)++ = port;
        group->link_count++;
    }
    if (group->link_count == 0)
        return;
    *text += sprintf(*text, "%s/%s", s->name, ft_direction_name(direction)) + 1;
    t->group_count++;
}

struct end {
    uint32_t switch_id;
    uint32_t port;
};

static int by_switch_then_port(const void *a, const void *b)
{
    const struct end *x = a, *y = b;

    if (x->switch_id != y->switch_id)
        return x->switch_id < y->switch_id ? -1 : 1;
    return x->port < y->port ? -1 : x->port > y->port;
}

static int find_neighbours(struct ft_topology *t, struct ft_task *task)
{
    struct end *ends = malloc((t->port_count + 1) * sizeof(*ends));
    uint32_t links = 0, count = 0;

    if (!ends)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->switch_count; i++) {
        const struct ft_switch *s = &t->switches[i];
        uint32_t n = 0;

        t->first_neighbour[i] = count;
        for (uint32_t k = 0; k < s->port_count; k++) {
            const struct ft_port *p = &t->ports[s->ports[k]];

            if (p->peer != FT_NONE)
                ends[n++] = (struct end){t->ports[p->peer].switch_id, s->ports[k]};
        }
        ft_task_spend(task, 1 + n);
        qsort(ends, n, sizeof(*ends), by_switch_then_port);
        for (uint32_t k = 0; k < n; k++) {
            if (k == 0 || ends[k].switch_id != ends[k - 1].switch_id)
                t->neighbours[count++] = (struct ft_neighbour){
                    .switch_id = ends[k].switch_id,
                    .first = links,
                    .up = t->ports[ends[k].port].direction == FT_DIRECTION_UP,
                };
            t->neighbours[count - 1].count++;
            t->links[links++] = ends[k].port;
        }
    }
    t->first_neighbour[t->switch_count] = count;
    free(ends);
    return 0;
}

struct ft_topology *ft_topology_build(const struct ft_topology_builder *b, struct ft_diag *diag)
{
    struct ft_topology *t = calloc(1, sizeof(*t));
    uint32_t *links;
    char *text;

    if (!t || !allocate(t, b))
        goto no_memory;
    text = t->text;
    links = t->group_links;
    if (!copy_items(t, b, &text) || !copy_addresses(t, b))
        goto no_memory;
    copy_id_lists(t, b);
    if (!copy_lags(t, b, &text))
        goto no_memory;
    work_out_tiers(t);
    if (set_directions(t, b, diag) > 0) {
        ft_topology_free(t);
        return NULL;
    }
    for (uint32_t i = 0; i < t->switch_count; i++) {
        add_group(t, i, FT_DIRECTION_UP, &links, &text);
        add_group(t, i, FT_DIRECTION_DOWN, &links, &text);
    }
    if (find_neighbours(t, b->task) < 0 || ft_topology_measure(t, b->task) < 0)
        goto no_memory;
    return t;
no_memory:
    ft_diag_add(diag, NULL, 0, "topology: out of memory");
    ft_topology_free(t);
    return NULL;
}

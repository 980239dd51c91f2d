// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/inputs/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/args_options.h"
#include "cli/inputs/inputs.h"

#define SPEED_MAX_BPS UINT64_C(1000000000000000)

/* What is built from what. */
struct change {
    const struct ft_topology *t;
    struct ft_topology_builder *b;
    struct ft_diag *diag;
    uint64_t fabric_bps;
    uint64_t *link_bps; /* by port; 0: not named */
    const bool *dead;   /* by port; NULL: none */
};

static bool is_dead(const struct change *c, uint32_t port)
{
    return c->dead && c->dead[port];
}

static uint64_t speed_of(const struct change *c, const struct ft_port *p)
{
    return p->peer != FT_NONE && c->fabric_bps ? c->fabric_bps : p->speed_bps;
}

/* LINK=BPS, at both ends of the link. */
static void name_speed(const struct change *c, char *item)
{
    char *equals = strrchr(item, '=');
    uint64_t bps = 0;
    uint32_t port;

    if (!equals || ft_args_number(equals + 1, item + strlen(item), &bps) || bps == 0 ||
        bps > SPEED_MAX_BPS) {
        ft_diag_add(c->diag, NULL, 0, "--link-speed: '%s' has no speed: LINK=BPS", item);
        return;
    }
    *equals = '\0';
    port = ft_inputs_port(c->t, item);
    if (port == FT_NONE || ft_topology_port(c->t, port)->peer == FT_NONE)
        ft_diag_add(c->diag, NULL, 0, "--link-speed: '%s' is not a link between switches", item);
    else
        c->link_bps[port] = c->link_bps[ft_topology_port(c->t, port)->peer] = bps;
}

/* -ENOMEM. */
static int name_speeds(struct change *c, const char *speeds)
{
    char *list = speeds ? strdup(speeds) : NULL, *rest = list, *item;

    c->link_bps = calloc((size_t)ft_topology_ports(c->t) + 1, sizeof(*c->link_bps));
    if (!c->link_bps || (speeds && !list)) {
        free(list);
        return -ENOMEM;
    }
    while ((item = strsep(&rest, ",")))
        name_speed(c, item);
    free(list);
    return 0;
}

static void copy_switches(const struct change *c)
{
    for (uint32_t i = 0; i < ft_topology_switches(c->t); i++) {
        const struct ft_switch *s = ft_topology_switch(c->t, i);
        uint32_t id = ft_topology_add_switch(c->b, s->name, s->tier, c->diag);

        for (uint32_t k = 0; k < s->address_count && id != FT_NONE; k++)
            ft_topology_add_address(c->b, id, &s->addresses[k], c->diag);
    }
    /* In the order of their ids, so that they keep them. */
    for (uint32_t i = 0; i < ft_topology_ports(c->t); i++) {
        const struct ft_port *p = ft_topology_port(c->t, i);
        uint64_t bps = c->link_bps[i] ? c->link_bps[i] : speed_of(c, p);

        ft_topology_add_port(c->b, p->switch_id, p->name, p->ifindex, bps, c->diag);
    }
}

static void copy_links(const struct change *c)
{
    for (uint32_t i = 0; i < ft_topology_ports(c->t); i++) {
        const struct ft_port *a = ft_topology_port(c->t, i), *z;

        if (a->peer == FT_NONE || a->peer < i || is_dead(c, i) || is_dead(c, a->peer))
            continue;
        z = ft_topology_port(c->t, a->peer);
        ft_topology_add_link(c->b, ft_topology_switch(c->t, a->switch_id)->name, a->name,
                             ft_topology_switch(c->t, z->switch_id)->name, z->name, c->diag);
    }
}

static void copy_hosts(const struct change *c)
{
    for (uint32_t i = 0; i < ft_topology_hosts(c->t); i++)
        ft_topology_add_host(c->b, ft_topology_host(c->t, i)->name, c->diag);
    for (uint32_t i = 0; i < ft_topology_nics(c->t); i++) {
        const struct ft_nic *n = ft_topology_nic(c->t, i);
        uint32_t id = ft_topology_add_nic(c->b, n->host_id, n->rail, c->diag);

        for (uint32_t k = 0; k < n->address_count; k++)
            ft_topology_add_nic_address(c->b, id, &n->addresses[k], c->diag);
        for (uint32_t k = 0; k < n->attach_count; k++) {
            const struct ft_port *p = ft_topology_port(c->t, n->attach[k]);

            if (!is_dead(c, n->attach[k]))
                ft_topology_attach(c->b, id, ft_topology_switch(c->t, p->switch_id)->name, p->name,
                                   c->diag);
        }
    }
}

/* Another switch with the links of that one, by ports of its own at both ends. */
static void clone(const struct change *c, uint32_t of, uint32_t number)
{
    const struct ft_switch *s = ft_topology_switch(c->t, of);
    char name[128], port[128];
    uint32_t id;

    snprintf(name, sizeof(name), "added%u-%.100s", number, s->name);
    id = ft_topology_add_switch(c->b, name, s->tier, c->diag);
    for (uint32_t i = 0; i < s->port_count && id != FT_NONE; i++) {
        const struct ft_port *a = ft_topology_port(c->t, s->ports[i]), *z;

        if (a->peer == FT_NONE)
            continue;
        z = ft_topology_port(c->t, a->peer);
        snprintf(port, sizeof(port), "added%u-%.100s", number, z->name);
        ft_topology_add_port(c->b, id, a->name, 0, speed_of(c, a), c->diag);
        ft_topology_add_port(c->b, z->switch_id, port, 0, speed_of(c, z), c->diag);
        ft_topology_add_link(c->b, name, a->name, ft_topology_switch(c->t, z->switch_id)->name,
                             port, c->diag);
    }
}

static void add_spines(const struct change *c, uint32_t count)
{
    uint32_t switches = ft_topology_switches(c->t), at = 0, looked = 0;

    for (uint32_t n = 0; n < count && looked < switches; at = (at + 1) % switches) {
        looked++;
        if (ft_topology_switch(c->t, at)->tier != FT_TIER_SPINE)
            continue;
        looked = 0;
        clone(c, at, ++n);
    }
    if (looked >= switches)
        ft_diag_add(c->diag, NULL, 0, "--add-spines: the fabric has none yet");
}

struct ft_topology *ft_change_fabric(const struct ft_topology *t,
                                     const struct ft_fabric_change *change, const char *command,
                                     FILE *err)
{
    struct change c = {.t = t, .fabric_bps = change->fabric_bps, .dead = change->dead};
    struct ft_topology *changed = NULL;

    c.diag = ft_diag_new();
    c.b = ft_topology_builder_new(ft_topology_fabric(t));
    if (c.diag && c.b && name_speeds(&c, change->link_speeds) == 0) {
        copy_switches(&c);
        copy_links(&c);
        copy_hosts(&c);
        add_spines(&c, change->add_spines);
        if (ft_diag_count(c.diag) == 0)
            changed = ft_topology_build(c.b, c.diag);
        ft_inputs_complain(err, command, c.diag);
    } else {
        fprintf(err, "fabrictrace %s: no memory\n", command);
    }
    free(c.link_bps);
    ft_topology_builder_free(c.b);
    ft_diag_free(c.diag);
    return changed;
}

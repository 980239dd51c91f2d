// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/digest.h"

uint32_t ft_choice_distance(const struct ft_topology *t, uint32_t switch_id, uint32_t nic)
{
    const struct ft_nic *n = ft_topology_nic(t, nic);
    uint32_t nearest = FT_NONE;

    for (uint32_t i = 0; i < n->attach_count; i++) {
        uint32_t d =
            ft_topology_distance(t, switch_id, ft_topology_port(t, n->attach[i])->switch_id);

        if (d < nearest)
            nearest = d;
    }
    return nearest;
}

bool ft_choice_find(struct ft_choice *c, const struct ft_topology *t, uint32_t switch_id,
                    uint32_t dst_nic, uint32_t left)
{
    c->t = t;
    c->at = ft_topology_switch(t, switch_id);
    c->nic = FT_NONE;
    c->count = 0;
    for (uint32_t i = 0; i < c->at->port_count; i++) {
        uint32_t link = c->at->ports[i];
        uint32_t peer = ft_topology_port(t, link)->peer;

        if (peer == FT_NONE ||
            ft_choice_distance(t, ft_topology_port(t, peer)->switch_id, dst_nic) != left)
            continue;
        if (c->count == FT_HASH_MEMBERS_MAX)
            return false;
        c->links[c->count++] = link;
    }
    return true;
}

const char *ft_choice_member(const struct ft_choice *c, uint32_t i)
{
    const struct ft_port *port = ft_topology_port(c->t, c->links[i]);

    return c->at ? port->name : ft_topology_switch(c->t, port->switch_id)->name;
}

bool ft_choice_of_nic(struct ft_choice *c, const struct ft_topology *t, uint32_t nic)
{
    const struct ft_nic *n = ft_topology_nic(t, nic);

    c->t = t;
    c->at = NULL;
    c->nic = nic;
    c->count = 0;
    if (n->attach_count < 2 || n->attach_count > FT_HASH_MEMBERS_MAX || n->address_count == 0)
        return false;
    for (uint32_t i = 0; i < n->attach_count; i++) {
        const char *name =
            ft_topology_switch(t, ft_topology_port(t, n->attach[i])->switch_id)->name;
        uint32_t to = c->count++;

        for (; to > 0 && strcmp(ft_choice_member(c, to - 1), name) > 0; to--)
            c->links[to] = c->links[to - 1];
        c->links[to] = n->attach[i];
        if (to > 0 && strcmp(ft_choice_member(c, to - 1), name) == 0)
            return false;
    }
    return true;
}

int ft_choice_nics_group(const struct ft_choice *c, char group[FT_CHOICE_GROUP])
{
    size_t len = 0;

    for (uint32_t i = 0; i < c->count && len < FT_CHOICE_GROUP; i++)
        len += (size_t)snprintf(group + len, FT_CHOICE_GROUP - len, "%s%s%s", i ? "+" : "",
                                ft_choice_member(c, i), i + 1 == c->count ? "/nics" : "");
    return len < FT_CHOICE_GROUP ? 0 : -ENOSPC;
}

uint64_t ft_choice_nic_digest(const struct ft_choice *c)
{
    char text[FT_IP_TEXT_BYTES];

    ft_ip_format(&ft_topology_nic(c->t, c->nic)->addresses[0], text);
    return ft_digest_text(text, 0);
}

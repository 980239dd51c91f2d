// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/choice.h"

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

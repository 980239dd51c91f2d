// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/hashes/hashes.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/hashes/hashes_impl.h"

/* What the sets say of a link of a group. */
enum said {
    SAID_NOTHING,
    SAID_NEVER,
    SAID_OTHERWISE,
};

/* The link of a group that is a member of a set, by its number; link_count: none of them. */
static uint32_t link_of(const struct ft_topology *t, const struct ft_group *group,
                        const struct ft_hash_set *s, const char *member)
{
    for (uint32_t i = 0; i < group->link_count; i++) {
        const struct ft_port *port = ft_topology_port(t, group->links[i]);

        if (strcmp(port->name, member) == 0 &&
            strcmp(ft_topology_switch(t, port->switch_id)->name, s->switch_name) == 0)
            return i;
    }
    return group->link_count;
}

static void ask(const struct ft_hash_set *s, const struct ft_hash_set *by,
                const struct ft_topology *t, const struct ft_group *group, enum said *said)
{
    bool linear = ft_hash_set_kind(by) == FT_HASH_LINEAR;

    for (uint32_t i = 0; i < s->member_count; i++) {
        uint32_t link = link_of(t, group, s, s->members[i]);

        if (link == group->link_count)
            continue;
        if (!linear || !ft_hash_never_chooses(&by->model, i))
            said[link] = SAID_OTHERWISE;
        else if (said[link] == SAID_NOTHING)
            said[link] = SAID_NEVER;
    }
}

size_t ft_hashes_never(const struct ft_hashes *h, const struct ft_topology *t,
                       const struct ft_group *group, uint32_t *ports, size_t max)
{
    enum said *said = calloc(group->link_count + 1, sizeof(*said));
    const struct ft_hash_set *s, *outer;
    uint32_t index = 0;
    size_t count = 0;

    if (!said)
        return 0;
    while ((s = ft_hashes_set(h, &index, &outer)))
        if (s->gone_ms == 0 && s->offered && strcmp(s->group, group->name) == 0)
            ask(s, outer && ft_hash_set_names_outer(s, outer) ? outer : s, t, group, said);
    for (uint32_t i = 0; i < group->link_count && count < max; i++)
        if (said[i] == SAID_NEVER)
            ports[count++] = group->links[i];
    free(said);
    return count;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/whatif/siblings.h"

#include <stdlib.h>

#include "lib/base/task.h"

/* A flow on a link, and which hop of its path that is. */
struct user {
    uint32_t flow, stage;
};

struct ft_siblings {
    const struct ft_policy_input *in;
    uint32_t *first; /* by port: users[first[port]] up to users[first[port + 1]] */
    struct user *users;
};

/* Counts the users of each port at first[port + 1], or fills them in from first[port] on. */
static void list_users(struct ft_siblings *s, const struct ft_placed *placed, uint32_t *next)
{
    for (uint32_t f = 0; f < s->in->count; f++)
        for (uint32_t i = placed->first[f]; i < placed->first[f + 1]; i++)
            for (uint32_t h = 0; h < placed->paths[i].hop_count; h++) {
                uint32_t port = placed->paths[i].hops[h].out;

                if (next)
                    s->users[next[port]++] = (struct user){f, h};
                else
                    s->first[port + 1]++;
            }
}

struct ft_siblings *ft_siblings_new(const struct ft_policy_input *in,
                                    const struct ft_placed *placed)
{
    uint32_t ports = ft_topology_ports(in->topology), *next;
    struct ft_siblings *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->in = in;
    s->first = calloc((size_t)ports + 2, sizeof(*s->first));
    next = calloc((size_t)ports + 1, sizeof(*next));
    if (s->first && next) {
        list_users(s, placed, NULL);
        for (uint32_t i = 0; i < ports; i++) {
            next[i] = s->first[i];
            s->first[i + 1] += s->first[i];
        }
        s->users = calloc((size_t)s->first[ports] + 1, sizeof(*s->users));
    }
    if (s->users)
        list_users(s, placed, next);
    free(next);
    if (s->users)
        return s;
    ft_siblings_free(s);
    return NULL;
}

void ft_siblings_free(struct ft_siblings *s)
{
    if (!s)
        return;
    free(s->first);
    free(s->users);
    free(s);
}

struct by_link {
    const struct ft_policy_input *in;
    uint32_t stage, link;
};

static bool is_by(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    const struct by_link *by = arg;

    return (stage != by->stage || hop->out == by->link) && ft_policy_lives(by->in, hop);
}

bool ft_siblings_may_take(const struct ft_siblings *s, uint32_t link, uint32_t other)
{
    const struct ft_topology *t = s->in->topology;
    const struct ft_port *port = ft_topology_port(t, other);

    for (uint32_t i = s->first[link]; i < s->first[link + 1]; i++) {
        const struct ft_demand *d = &s->in->demands[s->users[i].flow];
        struct by_link by = {s->in, s->users[i].stage, other};
        uint32_t via[FT_PATH_HOPS_MAX];

        for (uint32_t h = 0; h < FT_PATH_HOPS_MAX; h++)
            via[h] = FT_NONE;
        if (by.stage + 1 < FT_PATH_HOPS_MAX)
            via[by.stage + 1] = ft_topology_port(t, port->peer)->switch_id;
        if (by.stage > 0)
            via[by.stage] = port->switch_id;
        ft_task_spend(s->in->task, 1);
        if (ft_paths_walk_via(t, d->src_nic, d->dst_nic, via, is_by, &by, NULL, 0, 1))
            return true;
    }
    return false;
}

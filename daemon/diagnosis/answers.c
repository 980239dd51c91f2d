// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/answers.h"

#include <string.h>

static void reverse(const struct ft_tuple *t, struct ft_tuple *out)
{
    *out = *t;
    memcpy(&out->src, &t->dst, sizeof(out->src));
    memcpy(&out->dst, &t->src, sizeof(out->dst));
}

const struct ft_flow *ft_answers_flow(const struct ft_join *join, const struct ft_tuple *data)
{
    const struct ft_flow *flow;
    struct ft_tuple tuple;

    reverse(data, &tuple);
    flow = ft_join_find(join, &tuple);
    return flow && flow->role == FT_ROLE_ACK ? flow : NULL;
}

uint32_t ft_answers_path(const struct ft_witnesses *w, const struct ft_recent_rank *sender,
                         const struct ft_recent_rank *receiver, uint32_t *ports, uint32_t max,
                         struct ft_tuple *tuple)
{
    struct ft_pair_path path;
    const struct ft_flow *flow;
    uint32_t count = 0;

    if (!w->join || !w->pairs ||
        !ft_pair_links_path(w->pairs, sender->comm_id, sender->rank, receiver->rank, &path))
        return 0;
    reverse(&path.tuple, tuple);
    flow = ft_answers_flow(w->join, &path.tuple);
    if (!flow || flow->state != FT_PATH_RESOLVED || flow->path.hop_count > max)
        return 0;
    for (; count < flow->path.hop_count; count++)
        ports[count] = flow->path.hops[count].out;
    return count;
}

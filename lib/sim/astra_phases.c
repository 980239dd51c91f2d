// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/astra_phases.h"

#include <string.h>

/* Phases as they are added. */
struct list {
    struct ft_astra_phase *phases;
    uint32_t count;
};

/* The ranks of one dimension of all. */
static struct ft_astra_ring ring_of(const struct ft_astra_input *in, uint32_t rank, uint32_t dim)
{
    const struct ft_astra_network *n = &in->network;
    uint32_t step = 1, index;

    for (uint32_t i = 0; i < dim; i++)
        step *= n->npus[i];
    index = rank / step % n->npus[dim];
    return (struct ft_astra_ring){n->npus[dim], index, rank - index * step, step, NULL};
}

static const char *shape_of_group(const struct ft_astra_input *in, uint32_t rank,
                                  const struct ft_astra_node *node, struct ft_astra_rings *shape)
{
    const struct ft_astra_system *system = &in->system;
    const struct ft_astra_group *g = &in->groups[node->group];
    static const struct ft_astra_impl ring = {.window = -1};
    uint32_t index = 0;

    while (index < g->count && g->ranks[index] != rank)
        index++;
    if (index == g->count)
        return "is of a group that does not contain its rank";
    shape->dims = 1;
    shape->involved = 1;
    shape->fast = true;
    shape->ring[0] = (struct ft_astra_ring){g->count, index, 0, 0, g->ranks};
    shape->impl[0] = system->impls[node->op] > 1 ? ring : system->impl[node->op][0];
    return NULL;
}

const char *ft_astra_rings_of(const struct ft_astra_input *in, uint32_t rank,
                              const struct ft_astra_node *node, struct ft_astra_rings *shape)
{
    const struct ft_astra_system *system = &in->system;
    bool group = node->group != UINT32_MAX;

    memset(shape, 0, sizeof(*shape));
    if (system->impls[node->op] == 0)
        return "is a collective without an implementation in the system file";
    if (system->impls[node->op] > in->network.dims)
        return "is a collective with more implementations than the network has dimensions";
    if (group && in->groups[node->group].count != in->rank_count)
        return shape_of_group(in, rank, node, shape);
    shape->involved = group ? UINT32_MAX : node->dims;
    for (uint32_t i = 0; i < system->impls[node->op]; i++) {
        shape->impl[i] = system->impl[node->op][i];
        shape->ring[i] = ring_of(in, rank, i);
        shape->dims++;
        if (shape->impl[i].one) {
            shape->ring[i] = (struct ft_astra_ring){in->rank_count, rank, 0, 1, NULL};
            break;
        }
    }
    return NULL;
}

static bool takes_part(const struct ft_astra_rings *shape, uint32_t dim)
{
    return shape->ring[dim].count > 1 && shape->involved >> dim & 1;
}

static void add_phase(struct list *l, const struct ft_astra_rings *shape, uint32_t dim,
                      enum ft_astra_op op, bool backwards, uint64_t *bytes)
{
    struct ft_astra_phase *p = &l->phases[l->count++];
    uint64_t n = shape->ring[dim].count;

    *p = (struct ft_astra_phase){.op = op,
                                 .impl = shape->impl[dim],
                                 .ring = shape->ring[dim],
                                 .backwards = backwards,
                                 .fast = shape->fast,
                                 .queue = dim,
                                 .bytes = *bytes};
    p->result_bytes = op == FT_ASTRA_ALL_GATHER       ? *bytes * n
                      : op == FT_ASTRA_REDUCE_SCATTER ? *bytes / n
                                                      : *bytes;
    *bytes = p->result_bytes;
}

/* AllReduce scatters inwards, reduces in the innermost dimension and gathers outwards. */
static void add_all_reduce(struct list *l, const struct ft_astra_rings *shape, uint64_t bytes)
{
    uint32_t last = 0, dim;

    for (dim = 0; dim < shape->dims; dim++)
        if (takes_part(shape, dim))
            last = dim;
    for (dim = 0; dim < last; dim++)
        if (takes_part(shape, dim))
            add_phase(l, shape, dim, FT_ASTRA_REDUCE_SCATTER, false, &bytes);
    if (takes_part(shape, last))
        add_phase(l, shape, last, FT_ASTRA_ALL_REDUCE, false, &bytes);
    for (dim = last; dim-- > 0;)
        if (takes_part(shape, dim))
            add_phase(l, shape, dim, FT_ASTRA_ALL_GATHER, true, &bytes);
}

uint32_t ft_astra_phases_of(const struct ft_astra_input *in, const struct ft_astra_rings *shape,
                            enum ft_astra_op op, uint64_t bytes,
                            struct ft_astra_phase phases[FT_ASTRA_PHASES_MAX])
{
    struct list l = {phases, 0};

    if (op == FT_ASTRA_ALL_REDUCE && !in->system.baseline) {
        add_all_reduce(&l, shape, bytes);
        return l.count;
    }
    for (uint32_t i = 0; i < shape->dims; i++) {
        uint32_t dim = op == FT_ASTRA_ALL_GATHER ? shape->dims - 1 - i : i;

        if (takes_part(shape, dim))
            add_phase(&l, shape, dim, op, false, &bytes);
    }
    return l.count;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/ends.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/sim/colour.h"

/* A flow as seen from one side: the leaf that its NIC hangs on first, and the NIC. */
struct side {
    uint32_t leaf;
    uint32_t nic;
    uint32_t at; /* in the order */
};

static int compare_sides(const void *a, const void *b)
{
    const struct side *x = a, *y = b;

    if (x->leaf != y->leaf)
        return x->leaf < y->leaf ? -1 : 1;
    if (x->nic != y->nic)
        return x->nic < y->nic ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static uint32_t nic_of(const struct ft_demand *d, bool right)
{
    return right ? d->dst_nic : d->src_nic;
}

static void set_part(struct ft_edge *edge, bool right, uint32_t part)
{
    *(right ? &edge->right : &edge->left) = part;
}

/* Divides one side into parts of k flows. sides and rest have count items. Returns the parts. */
static uint32_t divide(const struct ft_topology *t, const struct ft_demand *demands,
                       const uint32_t *order, uint32_t count, uint32_t k, bool right,
                       struct side *sides, uint32_t *rest, struct ft_edge *edges)
{
    uint32_t parts = 0, left_over = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t nic = nic_of(&demands[order[i]], right);
        const struct ft_nic *n = ft_topology_nic(t, nic);

        sides[i] = (struct side){ft_topology_port(t, n->attach[0])->switch_id, nic, i};
    }
    qsort(sides, count, sizeof(*sides), compare_sides);
    for (uint32_t i = 0, end; i < count; i = end) {
        uint32_t full_end;

        for (end = i; end < count && sides[end].nic == sides[i].nic; end++)
            ;
        full_end = i + (end - i) / k * k;
        for (uint32_t j = i; j < full_end; j++)
            set_part(&edges[sides[j].at], right, parts + (j - i) / k);
        parts += (full_end - i) / k;
        for (uint32_t j = full_end; j < end; j++)
            rest[left_over++] = sides[j].at;
        if (end < count && sides[end].leaf == sides[i].leaf)
            continue;
        for (uint32_t j = 0; j < left_over; j++)
            set_part(&edges[rest[j]], right, parts + j / k);
        parts += (left_over + k - 1) / k;
        left_over = 0;
    }
    return parts;
}

/* The links between the leaves of two attachments; FT_NONE when one is dead or there is no way. */
static uint32_t distance(const struct ft_topology *t, const bool *dead, uint32_t in, uint32_t out)
{
    if (dead && (dead[in] || dead[out]))
        return FT_NONE;
    return ft_topology_distance(t, ft_topology_port(t, in)->switch_id,
                                ft_topology_port(t, out)->switch_id);
}

/* The colour-th attachment of the source that leads to the destination, and there the colour-th of
 * the nearest. */
static struct ft_hop pick(const struct ft_topology *t, const bool *dead, const struct ft_demand *d,
                          uint32_t colour)
{
    const struct ft_nic *src = ft_topology_nic(t, d->src_nic);
    const struct ft_nic *dst = ft_topology_nic(t, d->dst_nic);
    struct ft_hop ends = {src->attach[0], dst->attach[0]};

    for (uint32_t i = 0; i < src->attach_count; i++) {
        uint32_t in = src->attach[(colour + i) % src->attach_count], least = FT_NONE, near = 0;

        for (uint32_t k = 0; k < dst->attach_count; k++) {
            uint32_t length = distance(t, dead, in, dst->attach[k]);

            if (length < least) {
                least = length;
                near = 0;
            }
            near += length == least && length != FT_NONE;
        }
        if (near == 0)
            continue;
        near = colour % near;
        ends.in = in;
        for (uint32_t k = 0; k < dst->attach_count; k++)
            if (distance(t, dead, in, dst->attach[k]) == least && near-- == 0)
                ends.out = dst->attach[k];
        break;
    }
    return ends;
}

int ft_ends_choose(const struct ft_topology *t, const bool *dead, const struct ft_demand *demands,
                   const uint32_t *order, uint32_t count, struct ft_hop *ends)
{
    struct side *sides = calloc((size_t)count + 1, sizeof(*sides));
    struct ft_edge *edges = calloc((size_t)count + 1, sizeof(*edges));
    uint32_t *rest = calloc((size_t)count + 1, sizeof(*rest));
    uint32_t *colour = calloc((size_t)count + 1, sizeof(*colour));
    uint32_t k = 1;
    int rc = sides && edges && rest && colour ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        const struct ft_nic *src = ft_topology_nic(t, demands[i].src_nic);
        const struct ft_nic *dst = ft_topology_nic(t, demands[i].dst_nic);

        k = src->attach_count > k ? src->attach_count : k;
        k = dst->attach_count > k ? dst->attach_count : k;
    }
    if (rc == 0 && k > 1) {
        uint32_t l = divide(t, demands, order, count, k, false, sides, rest, edges);
        uint32_t r = divide(t, demands, order, count, k, true, sides, rest, edges);

        rc = ft_colour_proper(edges, count, l, r, k, colour);
    }
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        ends[order[i]] = pick(t, dead, &demands[order[i]], colour[i]);
    free(sides);
    free(edges);
    free(rest);
    free(colour);
    return rc;
}

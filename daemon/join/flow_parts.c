// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/flow_parts.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/join/moves.h"

#define UNITS(type) ((sizeof(type) + FT_FLOW_PART_UNIT - 1) / FT_FLOW_PART_UNIT)

static const uint8_t units_of[FT_FLOW_PARTS] = {
    [FT_FLOW_HOST] = UNITS(struct ft_flow_host),
    [FT_FLOW_TUNNEL] = UNITS(struct ft_flow_tunnel),
    [FT_FLOW_MOVES] = UNITS(struct ft_moves),
    [FT_FLOW_NUMBERS] = UNITS(struct ft_flow_numbers),
    [FT_FLOW_PATH] = UNITS(struct ft_path),
    [FT_FLOW_CLUMPS] = UNITS(struct ft_flow_clumps),
    [FT_FLOW_NETWORKS] = UNITS(struct ft_flow_networks),
};

_Static_assert(sizeof(struct ft_flow_parts) == FT_FLOW_PART_UNIT, "what begins the parts");
_Static_assert(1 + UNITS(struct ft_flow_host) + UNITS(struct ft_flow_tunnel) +
                       UNITS(struct ft_moves) + UNITS(struct ft_flow_numbers) +
                       UNITS(struct ft_path) + UNITS(struct ft_flow_clumps) +
                       UNITS(struct ft_flow_networks) <=
                   UINT8_MAX,
               "parts of a flow");

void *ft_flow_add_part(struct ft_flow *flow, enum ft_flow_part part)
{
    struct ft_flow_parts *parts = flow->parts;
    uint8_t end = parts ? parts->end : 1;

    if (parts && parts->at[part])
        return ft_flow_part(flow, part);
    parts = realloc(parts, (size_t)(end + units_of[part]) * FT_FLOW_PART_UNIT);
    if (!parts)
        return NULL;
    if (!flow->parts)
        memset(parts, 0, sizeof(*parts));
    flow->parts = parts;
    memset(parts + end, 0, (size_t)units_of[part] * FT_FLOW_PART_UNIT);
    parts->at[part] = end;
    parts->end = end + units_of[part];
    return parts + end;
}

/* Those behind it move up. */
void ft_flow_remove_part(struct ft_flow *flow, enum ft_flow_part part)
{
    struct ft_flow_parts *parts = flow->parts, *smaller;
    uint8_t at = parts ? parts->at[part] : 0, units = units_of[part];

    if (at == 0)
        return;
    memmove(parts + at, parts + at + units, (size_t)(parts->end - at - units) * FT_FLOW_PART_UNIT);
    parts->end -= units;
    parts->at[part] = 0;
    for (int i = 0; i < FT_FLOW_PARTS; i++)
        if (parts->at[i] > at)
            parts->at[i] -= units;
    if (parts->end == 1) {
        free(parts);
        flow->parts = NULL;
        return;
    }
    smaller = realloc(parts, ft_flow_parts_bytes(flow));
    if (smaller)
        flow->parts = smaller;
}

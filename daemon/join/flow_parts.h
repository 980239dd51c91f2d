// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_FLOW_PARTS_H
#define FT_DAEMON_JOIN_FLOW_PARTS_H
/*
 * The parts of a flow that few flows have, or not all: one pointer of the entry, and one allocation
 * for those that there are. join.h says how to get at them. Pure. Thread: one.
 */
#include "daemon/join/join.h"

/* Adds a part, zeroed; the one that is there stays. NULL without memory, and nothing changed. */
void *ft_flow_add_part(struct ft_flow *flow, enum ft_flow_part part);
void ft_flow_remove_part(struct ft_flow *flow, enum ft_flow_part part);

/* Bytes of all of them; 0: there are none. */
static inline size_t ft_flow_parts_bytes(const struct ft_flow *flow)
{
    return flow->parts ? (size_t)flow->parts->end * FT_FLOW_PART_UNIT : 0;
}

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_FLOW_NUMBERS_H
#define FT_DAEMON_JOIN_FLOW_NUMBERS_H
/* The packet numbers of a flow, window by window (lib/fabric/numbers.h). Thread: the join's. */
#include "daemon/join/join_impl.h"

/* Takes those of an observation in the window of that parity. Without room for them there are none,
 * and samples are counted. */
void ft_flow_take_numbers(struct ft_join *join, struct ft_flow *flow, const struct ft_numbered *o,
                          unsigned slot);

/* At the end of a window: what they say of it. *bytes is what its samples count, and becomes what
 * the numbers say; false: they say nothing. */
bool ft_flow_number(const struct ft_join *join, struct ft_flow *flow, uint32_t window,
                    uint64_t samples, uint64_t *bytes);

#endif

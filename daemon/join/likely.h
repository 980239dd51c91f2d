// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_LIKELY_H
#define FT_DAEMON_JOIN_LIKELY_H
/* The path of a flow as far as samples and hints show it (daemon/join/hints.h). Pure. */
#include <stdbool.h>

#include "daemon/join/join.h"
#include "lib/fabric/hinted.h"

/* What is known of the way of a flow that is not resolved; false where hints decide nothing of it,
 * or contradict its samples. */
bool ft_flow_likely(const struct ft_join *join, const struct ft_flow *flow, struct ft_hinted *out);

/* The switch to be asked next of a flow: where the first choice is that neither samples nor hints
 * show. Of a resolved flow the first one that it has at all, for samples show what is true. False:
 * there is none. */
bool ft_flow_unknown(const struct ft_join *join, const struct ft_flow *flow, uint32_t *switch_id,
                     uint32_t *in);

#endif

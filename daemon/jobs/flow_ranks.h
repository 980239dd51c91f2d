// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOBS_FLOW_RANKS_H
#define FT_DAEMON_JOBS_FLOW_RANKS_H
/* Which ranks a flow is between. Pure. Thread: one. */
#include <stdbool.h>
#include <stddef.h>

#include "daemon/jobs/ranks.h"
#include "daemon/join/join.h"

/* The pairs of ranks that a flow may serve (daemon/jobs/ranks.h); none for acknowledgements. */
size_t ft_flow_ranks(const struct ft_join *join, const struct ft_flow *flow,
                     struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX], bool *more);

#endif

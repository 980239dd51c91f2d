// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_PORT_MARKS_H
#define FT_DAEMON_JOIN_PORT_MARKS_H
/* What samples report an egress port beside their flow: marks and queues. Pure. Thread: one. */
#include "daemon/join/join.h"

/* Adds samples of a window, which is not an older than the last but one. */
void ft_port_marks_add(struct ft_port_marks *m, uint32_t window, uint64_t samples,
                       uint64_t ce_samples, int64_t last_ms);
void ft_port_depths_add(struct ft_port_depths *d, uint32_t window,
                        const struct ft_observed_rest *rest);

#endif

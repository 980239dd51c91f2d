// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_FLOW_NAMES_H
#define FT_DAEMON_JOIN_FLOW_NAMES_H
/*
 * Names of the two hosts of a flow: by the topology, else as their agents call themselves; NULL:
 * not known. Its job and queue pairs. Pure. Thread: one.
 */
#include "daemon/join/join.h"

const char *ft_flow_src_host(const struct ft_join *join, const struct ft_flow *flow);
const char *ft_flow_dst_host(const struct ft_join *join, const struct ft_flow *flow);

/* The job that it is of, as a host of it says; NULL: not known. */
const char *ft_flow_job(const struct ft_flow *flow);

/* The number of the queue pair that it comes from, as its host says; FT_NONE: not known. */
uint32_t ft_flow_src_qp(const struct ft_flow *flow);

/* As its host says, or the samples of its numbered packets do; 0: not known. */
uint32_t ft_flow_dst_qp(const struct ft_flow *flow);

#endif

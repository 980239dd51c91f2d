// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FILES_FLOWS_FILE_H
#define FT_FILES_FLOWS_FILE_H
/*
 * Traffic as comma-separated values (RFC 4180), for `plan` and `whatif`.
 *
 *   src,dst,rate_bps
 *   10.0.1.1,10.0.3.1,400000000000
 *   gpu01,gpu07,4e11
 *
 * src and dst are addresses of NICs or names of hosts of the topology. The flows of a host that is
 * named and has several NICs take them in turn, and at the destination the NIC of the same rail, or
 * in turn where there is none. The columns may stand in any order; empty lines and those that begin
 * with # do not count. Every mistake is a complaint "FILE:LINE:COLUMN: ...", the column counted in
 * bytes from 1. Owner: the caller. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/diag.h"
#include "lib/fabric/topology.h"
#include "lib/sim/demand.h"

#define FT_FLOWS_MAX       4000000u
#define FT_FLOWS_MAX_BYTES (256u << 20)

/* How src and dst of a flow are written. */
struct ft_flow_names {
    const char *src;
    const char *dst;
    uint32_t line;
};

struct ft_flow_list {
    uint32_t count;
    struct ft_demand *demands;
    struct ft_flow_names *names;
    char *text; /* what the names point into */
};

/* text is changed and kept on success, else still the caller's. -EINVAL after at least one
 * complaint, -ENOMEM. */
int ft_flows_read_take(char *text, size_t len, const char *file, const struct ft_topology *t,
                       struct ft_diag *diag, struct ft_flow_list *flows);

/* "-" is standard input. -EINVAL after a complaint, -ENOMEM, or -errno of the file. */
int ft_flows_load(const char *file, const struct ft_topology *t, struct ft_diag *diag,
                  struct ft_flow_list *flows);
void ft_flows_free(struct ft_flow_list *flows);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_PROBE_REQUEST_H
#define FT_PROTO_PROBE_REQUEST_H
/*
 * That a flow is to be probed: what the tool says to an agent at its socket, and the daemon to one
 * that lets it (probe.daemon) on the agent's own connection.
 *
 * Layout, big endian: magic (8), source and destination address (16 each, IPv4 mapped), source and
 * destination port (2 each), protocol (1), DSCP (1), destination queue pair (4), number of switches
 * on its paths (4; 0: not known). Pure. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "lib/base/writer.h"

enum {
    FT_PROBE_REQUEST_BYTES = 8 + 16 + 16 + 2 + 2 + 1 + 1 + 4 + 4,
};

struct ft_probe_request {
    struct ft_tuple tuple;
    uint8_t dscp;
    uint32_t dst_qp;
    uint32_t switches;
};

void ft_probe_request_write(struct ft_writer *w, const struct ft_probe_request *request);

/* -EBADMSG: it is none. */
int ft_probe_request_decode(const uint8_t *bytes, size_t len, struct ft_probe_request *request);

#endif

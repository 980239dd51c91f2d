// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_QPC_H
#define FT_AGENT_RDMA_QPC_H
/*
 * The context of a queue pair as a mlx5 device has it (RDMA_NLDEV_CMD_RES_QP_GET_RAW): the only
 * source where the source port in use can be read, whoever chose it. The kernel hands out the
 * device's resource dump: segments of a length in words and a type, big endian (struct
 * mlx5_ifc_resource_dump_segment_header_bits of Linux include/linux/mlx5/mlx5_ifc.h), one of which
 * holds the answer to QUERY_QP with the context (mlx5_ifc_qpc_bits). Pure.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"

struct ft_rdma_qpc {
    struct ft_ip dst;    /* rgid_rip */
    uint32_t sgid_index; /* src_addr_index */
    uint16_t sport;      /* udp_sport */
};

/* Finds the context in a dump. Where in its segment the context starts is not documented, so it is
 * looked for: at the one offset where the peer's number (known from the kernel's list), a RoCEv2
 * source port and an address stand as they should. -EBADMSG when a segment's length does not fit,
 * -ENOENT when no offset, or more than one, is like that. */
int ft_rdma_qpc_parse(const uint8_t *dump, size_t len, uint32_t rqpn, struct ft_rdma_qpc *qpc);

/* The same out of a netlink message's payload. */
int ft_rdma_qpc_message(const uint8_t *bytes, size_t len, uint32_t rqpn, struct ft_rdma_qpc *qpc);

#endif

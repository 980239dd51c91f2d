// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/qpc.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>

#include "agent/rdma/nlattr.h"

/* Segment types of the device's resource dump. */
#define SEGMENT_QUERY_QP 0x1000
#define SEGMENT_HEAD     4
/* How far into its segment a context may start: behind the segment's own fields and the head of a
 * command's answer. */
#define CONTEXT_START_MAX 64
/* Offsets within a context. */
#define AT_REMOTE_QPN     21
#define AT_SRC_ADDR_INDEX 33
#define AT_RGID           40
#define AT_UDP_SPORT      58
#define CONTEXT_BYTES     60
#define SPORT_MIN         0xC000

static bool read_context(struct ft_reader r, uint32_t rqpn, struct ft_rdma_qpc *qpc)
{
    static const struct ft_ip none;
    const uint8_t *gid;

    ft_read_skip(&r, AT_REMOTE_QPN);
    if (ft_read_be24(&r) != rqpn)
        return false;
    ft_read_skip(&r, AT_SRC_ADDR_INDEX - AT_REMOTE_QPN - 3);
    qpc->sgid_index = ft_read_u8(&r);
    ft_read_skip(&r, AT_RGID - AT_SRC_ADDR_INDEX - 1);
    gid = ft_read_bytes(&r, 16);
    ft_read_skip(&r, AT_UDP_SPORT - AT_RGID - 16);
    qpc->sport = ft_read_be16(&r);
    if (!ft_reader_ok(&r))
        return false;
    qpc->dst = ft_ip6(gid);
    return qpc->sport >= SPORT_MIN && !ft_ip_equal(&qpc->dst, &none);
}

static void search(struct ft_reader segment, uint32_t rqpn, struct ft_rdma_qpc *qpc,
                   unsigned *found)
{
    for (size_t at = 0; at <= CONTEXT_START_MAX && ft_reader_left(&segment) >= CONTEXT_BYTES;
         at += 4) {
        struct ft_rdma_qpc here;

        if (read_context(segment, rqpn, &here)) {
            *qpc = here;
            (*found)++;
        }
        ft_read_skip(&segment, 4);
    }
}

int ft_rdma_qpc_parse(const uint8_t *dump, size_t len, uint32_t rqpn, struct ft_rdma_qpc *qpc)
{
    struct ft_rdma_qpc one;
    struct ft_reader r;
    unsigned found = 0;

    ft_reader_init(&r, dump, len);
    while (ft_reader_left(&r) > 0) {
        size_t bytes = (size_t)ft_read_be16(&r) * 4;
        uint16_t type = ft_read_be16(&r);
        struct ft_reader body;

        if (bytes < SEGMENT_HEAD)
            return -EBADMSG;
        ft_read_child(&r, bytes - SEGMENT_HEAD, &body);
        if (!ft_reader_ok(&r))
            return -EBADMSG;
        if (type == SEGMENT_QUERY_QP)
            search(body, rqpn, &one, &found);
    }
    if (!ft_reader_ok(&r))
        return -EBADMSG;
    if (found != 1)
        return -ENOENT;
    *qpc = one;
    return 0;
}

int ft_rdma_qpc_message(const uint8_t *bytes, size_t len, uint32_t rqpn, struct ft_rdma_qpc *qpc)
{
    struct ft_nlattr outer, entry, raw;
    struct ft_reader r;
    int rc;

    ft_reader_init(&r, bytes, len);
    while ((rc = ft_nlattr_next(&r, &outer)) > 0) {
        size_t left;

        /* A single object is flat in the message, a list of them is nested. */
        if (outer.type == RDMA_NLDEV_ATTR_RES_RAW) {
            left = ft_reader_left(&outer.value);
            return ft_rdma_qpc_parse(ft_read_bytes(&outer.value, left), left, rqpn, qpc);
        }
        if (outer.type != RDMA_NLDEV_ATTR_RES_QP)
            continue;
        while ((rc = ft_nlattr_next(&outer.value, &entry)) > 0) {
            if (entry.type != RDMA_NLDEV_ATTR_RES_QP_ENTRY)
                continue;
            while ((rc = ft_nlattr_next(&entry.value, &raw)) > 0) {
                if (raw.type != RDMA_NLDEV_ATTR_RES_RAW)
                    continue;
                left = ft_reader_left(&raw.value);
                return ft_rdma_qpc_parse(ft_read_bytes(&raw.value, left), left, rqpn, qpc);
            }
            if (rc)
                return rc;
        }
        if (rc)
            return rc;
    }
    return rc ? rc : -ENOENT;
}

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_NLDEV_BYTES_H
#define FT_TESTS_NLDEV_BYTES_H
/* Writes what the kernel's RDMA netlink answers with, attribute by attribute. */
#include <rdma/rdma_netlink.h>
#include <stdint.h>
#include <string.h>

struct nl_bytes {
    uint8_t b[32768];
    size_t len;
};

static inline void nl_put(struct nl_bytes *n, uint16_t type, const void *value, size_t value_bytes)
{
    uint16_t len = (uint16_t)(4 + value_bytes);

    memcpy(n->b + n->len, &len, 2);
    memcpy(n->b + n->len + 2, &type, 2);
    memset(n->b + n->len + 4, 0, (value_bytes + 3) & ~(size_t)3);
    if (value_bytes > 0)
        memcpy(n->b + n->len + 4, value, value_bytes);
    n->len += (len + 3u) & ~3u;
}

static inline void nl_u8(struct nl_bytes *n, uint16_t type, uint8_t v)
{
    nl_put(n, type, &v, sizeof(v));
}

static inline void nl_u32(struct nl_bytes *n, uint16_t type, uint32_t v)
{
    nl_put(n, type, &v, sizeof(v));
}

static inline void nl_text(struct nl_bytes *n, uint16_t type, const char *text)
{
    nl_put(n, type, text, strlen(text) + 1);
}

/* An attribute of attributes, with the flag that newer kernels set. */
static inline size_t nl_begin(struct nl_bytes *n, uint16_t type)
{
    size_t at = n->len;

    nl_put(n, type | 0x8000, NULL, 0);
    return at;
}

static inline void nl_end(struct nl_bytes *n, size_t at)
{
    uint16_t len = (uint16_t)(n->len - at);

    memcpy(n->b + at, &len, 2);
}

static inline void nl_qp(struct nl_bytes *n, uint32_t lqpn, uint32_t rqpn, uint32_t pid)
{
    size_t entry = nl_begin(n, RDMA_NLDEV_ATTR_RES_QP_ENTRY);

    nl_u32(n, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
    nl_u32(n, RDMA_NLDEV_ATTR_RES_LQPN, lqpn);
    nl_u32(n, RDMA_NLDEV_ATTR_RES_RQPN, rqpn);
    nl_u32(n, RDMA_NLDEV_ATTR_RES_RQ_PSN, 9740078);
    nl_u32(n, RDMA_NLDEV_ATTR_RES_SQ_PSN, 4481030);
    nl_u8(n, RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, 0);
    nl_u8(n, RDMA_NLDEV_ATTR_RES_TYPE, 2);
    nl_u8(n, RDMA_NLDEV_ATTR_RES_STATE, 3);
    nl_u32(n, RDMA_NLDEV_ATTR_RES_PDN, 2);
    if (pid)
        nl_u32(n, RDMA_NLDEV_ATTR_RES_PID, pid);
    nl_end(n, entry);
}

#endif

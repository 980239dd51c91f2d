// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/probe_request.h"

#include <errno.h>

#include "lib/base/reader.h"

#define MAGIC UINT64_C(0x667470726f620001) /* "ftprob", version 1 */

void ft_probe_request_write(struct ft_writer *w, const struct ft_probe_request *request)
{
    const struct ft_tuple *t = &request->tuple;

    ft_write_be64(w, MAGIC);
    ft_write_bytes(w, t->src.b, sizeof(t->src.b));
    ft_write_bytes(w, t->dst.b, sizeof(t->dst.b));
    ft_write_be32(w, (uint32_t)t->sport << 16 | t->dport);
    ft_write_u8(w, t->proto);
    ft_write_u8(w, request->dscp);
    ft_write_be32(w, request->dst_qp);
    ft_write_be32(w, request->switches);
}

int ft_probe_request_decode(const uint8_t *bytes, size_t len, struct ft_probe_request *request)
{
    struct ft_probe_request read = {.dscp = 0};
    const uint8_t *src, *dst;
    struct ft_reader r;

    ft_reader_init(&r, bytes, len);
    if (ft_read_be64(&r) != MAGIC)
        return -EBADMSG;
    src = ft_read_bytes(&r, 16);
    dst = ft_read_bytes(&r, 16);
    read.tuple.sport = ft_read_be16(&r);
    read.tuple.dport = ft_read_be16(&r);
    read.tuple.proto = ft_read_u8(&r);
    read.dscp = ft_read_u8(&r);
    read.dst_qp = ft_read_be32(&r);
    read.switches = ft_read_be32(&r);
    if (!ft_reader_ok(&r) || ft_reader_left(&r))
        return -EBADMSG;
    read.tuple.src = ft_ip6(src);
    read.tuple.dst = ft_ip6(dst);
    *request = read;
    return 0;
}

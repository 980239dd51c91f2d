// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/qpc.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/nldev_bytes.h"
#include "tests/unit/unit.h"

#define QUERY_QP_WORDS 80

/* A dump as the layout has it: an informational segment, the queue pair's, the end's. The context
 * starts `start` bytes into its segment's body. Returns the length. */
static size_t write_dump(uint8_t *dump, size_t start)
{
    static const uint8_t info[] = {0, 4, 0xff, 0xfe, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};
    static const uint8_t end[] = {0, 2, 0xff, 0xfb, 0, 0, 0, 0};
    static const uint8_t gid[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 2, 0, 1};
    uint8_t *segment = dump + sizeof(info), *context = segment + 4 + start;

    memset(dump, 0, 4096);
    memcpy(dump, info, sizeof(info));
    segment[1] = QUERY_QP_WORDS;
    segment[2] = 0x10;
    context[21] = 0x01;
    context[22] = 0x02;
    context[23] = 0x03;
    context[33] = 5;
    memcpy(context + 40, gid, sizeof(gid));
    context[57] = 0x1a;
    context[58] = 0xc1;
    context[59] = 0x21;
    memcpy(segment + 4 * QUERY_QP_WORDS, end, sizeof(end));
    return sizeof(info) + 4 * QUERY_QP_WORDS + sizeof(end);
}

static void qpc_is_right(const struct ft_rdma_qpc *qpc)
{
    char text[FT_IP_TEXT_BYTES];

    ft_ip_format(&qpc->dst, text);
    ck_assert_str_eq(text, "10.2.0.1");
    ck_assert_uint_eq(qpc->sgid_index, 5);
    ck_assert_uint_eq(qpc->sport, 0xc121);
}

START_TEST(a_context_is_found_with_and_without_a_head)
{
    static const size_t starts[] = {0, 12, 16, 24, 36};
    uint8_t dump[4096];
    struct ft_rdma_qpc qpc;

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        size_t len = write_dump(dump, starts[i]);

        memset(&qpc, 0, sizeof(qpc));
        ck_assert_int_eq(ft_rdma_qpc_parse(dump, len, 0x010203, &qpc), 0);
        qpc_is_right(&qpc);
    }
}
END_TEST

START_TEST(what_is_not_certain_is_not_reported)
{
    uint8_t dump[4096];
    size_t len = write_dump(dump, 12);
    struct ft_rdma_qpc qpc;

    ck_assert_int_eq(ft_rdma_qpc_parse(dump, len, 0x010204, &qpc), -ENOENT);
    /* Firmware has not written a port yet. */
    dump[16 + 4 + 12 + 58] = 0;
    ck_assert_int_eq(ft_rdma_qpc_parse(dump, len, 0x010203, &qpc), -ENOENT);
    /* The same in two segments. */
    len = write_dump(dump, 12);
    memmove(dump + len - 8, dump + 16, QUERY_QP_WORDS * 4);
    len += QUERY_QP_WORDS * 4 - 8;
    ck_assert_int_eq(ft_rdma_qpc_parse(dump, len, 0x010203, &qpc), -ENOENT);
}
END_TEST

START_TEST(a_cut_dump_is_refused)
{
    uint8_t dump[4096];
    size_t len = write_dump(dump, 12);
    struct ft_rdma_qpc qpc;

    for (size_t cut = 1; cut < len; cut++) {
        int rc = ft_rdma_qpc_parse(dump, cut, 0x010203, &qpc);

        /* Between two segments it is a shorter dump. */
        if (cut == 16)
            ck_assert_int_eq(rc, -ENOENT);
        else if (cut == len - 8)
            ck_assert_int_eq(rc, 0);
        else
            ck_assert_int_eq(rc, -EBADMSG);
    }
    dump[1] = 0;
    ck_assert_int_eq(ft_rdma_qpc_parse(dump, len, 0x010203, &qpc), -EBADMSG);
}
END_TEST

START_TEST(both_forms_of_a_message_are_read)
{
    struct nl_bytes n = {.len = 0};
    uint8_t dump[4096];
    size_t len = write_dump(dump, 24), list, entry;
    struct ft_rdma_qpc qpc = {0};

    nl_u32(&n, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
    ck_assert_int_eq(ft_rdma_qpc_message(n.b, n.len, 0x010203, &qpc), -ENOENT);
    nl_put(&n, RDMA_NLDEV_ATTR_RES_RAW, dump, len);
    ck_assert_int_eq(ft_rdma_qpc_message(n.b, n.len, 0x010203, &qpc), 0);
    qpc_is_right(&qpc);
    n.len = 0;
    list = nl_begin(&n, RDMA_NLDEV_ATTR_RES_QP);
    entry = nl_begin(&n, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
    nl_put(&n, RDMA_NLDEV_ATTR_RES_RAW, dump, len);
    nl_end(&n, entry);
    nl_end(&n, list);
    memset(&qpc, 0, sizeof(qpc));
    ck_assert_int_eq(ft_rdma_qpc_message(n.b, n.len, 0x010203, &qpc), 0);
    qpc_is_right(&qpc);
}
END_TEST

FT_UNIT_MAIN("rdma_qpc", a_context_is_found_with_and_without_a_head,
             what_is_not_certain_is_not_reported, a_cut_dump_is_refused,
             both_forms_of_a_message_are_read)

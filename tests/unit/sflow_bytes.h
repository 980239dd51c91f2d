// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_UNIT_SFLOW_BYTES_H
#define FT_TESTS_UNIT_SFLOW_BYTES_H
/* Datagrams of sFlow v5 written part by part, and what the decoder said of them. */
#include <string.h>

#include "lib/base/writer.h"
#include "proto/sflow.h"
#include "tests/unit/unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Ethernet, IPv4 10.0.1.1 to 10.0.3.1, UDP 49441 to 4791, BTH: WRITE_FIRST to QP 17, 54 of 1082
 * bytes. */
static const uint8_t head4[] = {2,    0,    0,    0,    0,    2,    2,    0,    0,    0,    0,
                                1,    0x08, 0x00, 0x45, 0x02, 4,    0,    0,    1,    0x40, 0,
                                64,   17,   0,    0,    10,   0,    1,    1,    10,   0,    3,
                                1,    0xc1, 0x21, 0x12, 0xb7, 0x03, 0xec, 0,    0,    0x06, 0x00,
                                0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0xb7, 0xc5, 0x40};

#define HEAD4_TEXT "10.0.1.1:49441-10.0.3.1:4791"

struct seen {
    unsigned heads, flows, counters, processors;
    struct ft_sflow_head head;
    struct ft_sflow_flow flow[8];
    struct ft_sflow_counters counter[8];
    struct ft_sflow_processor processor;
    bool skip;
};

static inline bool on_head(void *arg, const struct ft_sflow_head *head)
{
    struct seen *seen = arg;

    seen->head = *head;
    seen->heads++;
    return !seen->skip;
}

static inline void on_flow(void *arg, const struct ft_sflow_flow *flow)
{
    struct seen *seen = arg;

    if (seen->flows < COUNT(seen->flow))
        seen->flow[seen->flows] = *flow;
    seen->flows++;
}

static inline void on_counters(void *arg, const struct ft_sflow_counters *counters)
{
    struct seen *seen = arg;

    if (seen->counters < COUNT(seen->counter))
        seen->counter[seen->counters] = *counters;
    seen->counters++;
}

static inline void on_processor(void *arg, const struct ft_sflow_processor *processor)
{
    struct seen *seen = arg;

    seen->processor = *processor;
    seen->processors++;
}

/* Decodes a copy of exactly len bytes, so that a read past the end is seen. */
static inline enum ft_sflow_status decode(const uint8_t *bytes, size_t len, struct seen *seen,
                                          struct ft_sflow_stats *stats)
{
    struct ft_sflow_visitor visitor = {on_head, on_flow, on_counters, on_processor, seen};
    uint8_t *copy = malloc(len ? len : 1);
    enum ft_sflow_status status;

    if (len)
        memcpy(copy, bytes, len);
    status = ft_sflow_decode(copy, len, &visitor, stats);
    free(copy);
    return status;
}

static inline void datagram(struct ft_writer *w, uint32_t samples)
{
    ft_writer_init(w, 65536);
    ft_write_be32(w, 5);
    ft_write_be32(w, 1);
    ft_write_be32(w, 0xc000020b); /* 192.0.2.11 */
    ft_write_be32(w, 3);          /* sub-agent */
    ft_write_be32(w, 1000);       /* sequence */
    ft_write_be32(w, 60000);      /* uptime */
    ft_write_be32(w, samples);
}

/* Opens a sample or record; close() states its length. */
static inline size_t open_part(struct ft_writer *w, uint32_t format)
{
    ft_write_be32(w, format);
    ft_write_be32(w, 0);
    return w->len;
}

static inline void set_be32(struct ft_writer *w, size_t at, uint32_t v)
{
    w->bytes[at] = (uint8_t)(v >> 24);
    w->bytes[at + 1] = (uint8_t)(v >> 16);
    w->bytes[at + 2] = (uint8_t)(v >> 8);
    w->bytes[at + 3] = (uint8_t)v;
}

static inline void close_part(struct ft_writer *w, size_t at)
{
    set_be32(w, at - 4, (uint32_t)(w->len - at));
}

static inline size_t open_flow(struct ft_writer *w, uint32_t in, uint32_t out, uint32_t records)
{
    size_t at = open_part(w, 1);

    ft_write_be32(w, 77);         /* sequence */
    ft_write_be32(w, 0x02000031); /* source 2:49 */
    ft_write_be32(w, 2048);
    ft_write_be32(w, 100000);
    ft_write_be32(w, 5);
    ft_write_be32(w, in);
    ft_write_be32(w, out);
    ft_write_be32(w, records);
    return at;
}

static inline size_t open_flow_expanded(struct ft_writer *w, const uint32_t in[2],
                                        const uint32_t out[2], uint32_t records)
{
    size_t at = open_part(w, 3);

    ft_write_be32(w, 77);
    ft_write_be32(w, 0);
    ft_write_be32(w, 0x01000031);
    ft_write_be32(w, 2048);
    ft_write_be32(w, 100000);
    ft_write_be32(w, 5);
    ft_write_be32(w, in[0]);
    ft_write_be32(w, in[1]);
    ft_write_be32(w, out[0]);
    ft_write_be32(w, out[1]);
    ft_write_be32(w, records);
    return at;
}

static inline void raw_header(struct ft_writer *w, uint32_t protocol, const uint8_t *bytes,
                              size_t len)
{
    size_t at = open_part(w, 1);

    ft_write_be32(w, protocol);
    ft_write_be32(w, 1082);
    ft_write_be32(w, 4);
    ft_write_be32(w, (uint32_t)len);
    ft_write_bytes(w, bytes, len);
    for (; len & 3; len++)
        ft_write_u8(w, 0);
    close_part(w, at);
}

static inline void roce_sample(struct ft_writer *w, uint32_t in, uint32_t out)
{
    size_t at = open_flow(w, in, out, 1);

    raw_header(w, 1, head4, sizeof(head4));
    close_part(w, at);
}

static inline void sampled_ip(struct ft_writer *w, bool six, uint32_t proto, uint32_t sport)
{
    size_t at = open_part(w, six ? 4 : 3);

    ft_write_be32(w, 1024);
    ft_write_be32(w, proto);
    for (int end = 0; end < 2; end++) {
        if (six) {
            ft_write_be64(w, 0xfd00000000000000);
            ft_write_be64(w, end ? 2 : 1);
        } else {
            ft_write_be32(w, end ? 0x0a000301 : 0x0a000101);
        }
    }
    ft_write_be32(w, sport);
    ft_write_be32(w, 4791);
    ft_write_be32(w, 0);
    ft_write_be32(w, 0x6b);
    close_part(w, at);
}

static inline void unknown_record(struct ft_writer *w, uint32_t format)
{
    size_t at = open_part(w, format);

    ft_write_be64(w, 0x0102030405060708);
    ft_write_be32(w, 9);
    close_part(w, at);
}

/* ifStatus (sFlow v5, section 5.4): bit 0 is ifAdminStatus, bit 1 ifOperStatus. */
#define IF_ADMIN_UP 1
#define IF_OPER_UP  2

static inline void generic_as(struct ft_writer *w, uint32_t ifindex, uint32_t status)
{
    size_t at = open_part(w, 1);

    ft_write_be32(w, ifindex);
    ft_write_be32(w, 6);
    ft_write_be64(w, 400000000000);
    ft_write_be32(w, 1);
    ft_write_be32(w, status);
    ft_write_be64(w, 0x123456789a);
    for (uint32_t i = 1; i <= 3; i++)
        ft_write_be32(w, i * 10); /* packets */
    ft_write_be32(w, 7);
    ft_write_be32(w, 8);
    ft_write_be32(w, 9); /* unknown protocols */
    ft_write_be64(w, 0xa987654321);
    ft_write_be32(w, 100);
    ft_write_be32(w, 0xffffffff); /* multicast: not kept */
    ft_write_be32(w, 300);
    ft_write_be32(w, 0xffffffff); /* discards: not kept */
    ft_write_be32(w, 11);
    ft_write_be32(w, 0);
    close_part(w, at);
}

static inline void generic(struct ft_writer *w, uint32_t ifindex)
{
    generic_as(w, ifindex, IF_ADMIN_UP | IF_OPER_UP);
}

static inline size_t open_counters(struct ft_writer *w, bool expanded, uint32_t records)
{
    size_t at = open_part(w, expanded ? 4 : 2);

    ft_write_be32(w, 78);
    if (expanded) {
        ft_write_be32(w, 0);
        ft_write_be32(w, 49);
    } else {
        ft_write_be32(w, 49);
    }
    ft_write_be32(w, records);
    return at;
}

static inline void tuple_is(const struct ft_sflow_flow *f, const char *text)
{
    char got[FT_TUPLE_TEXT_BYTES];

    ck_assert(f->has_packet);
    ft_tuple_format(&f->packet.tuple, got);
    ck_assert_str_eq(got, text);
}

/* Decodes, frees the writer and checks that all is well-formed. */
static inline void decode_ok(struct ft_writer *w, struct seen *seen, struct ft_sflow_stats *stats)
{
    memset(seen, 0, sizeof(*seen));
    memset(stats, 0, sizeof(*stats));
    ck_assert_int_eq(decode(w->bytes, w->len, seen, stats), FT_SFLOW_OK);
    ck_assert_uint_eq(seen->heads, 1);
    ck_assert_uint_eq(seen->flows, stats->flow_samples);
    ft_writer_free(w);
}

static inline void words(struct ft_writer *w, uint32_t format, const uint32_t *list, size_t count)
{
    size_t at = open_part(w, format);

    for (size_t i = 0; i < count; i++)
        ft_write_be32(w, list[i]);
    close_part(w, at);
}

#define WORDS(w, format, ...)                                                                      \
    words(w, format, (const uint32_t[]){__VA_ARGS__},                                              \
          sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* sflow_drops.txt: a packet that the ACL of port 49 discarded, and one whose way out is unknown. */

#endif

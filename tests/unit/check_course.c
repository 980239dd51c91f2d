// SPDX-License-Identifier: Apache-2.0
/* Probes of a flow and what answers them. Answers are made here from the packets themselves, as
 * RFC 792 and RFC 4443 have them. */
#include "config.h"

#include "agent/probe/course.h"

#include <errno.h>
#include <string.h>

#include "agent/probe/packet.h"
#include "proto/packet.h"
#include "proto/probe_request.h"
#include "proto/ttl_answer.h"
#include "tests/unit/unit.h"

#define SWITCHES    5
#define QP          0x112233
#define DSCP        26
#define ICMP_BYTES  (20 + 8)
#define ICMP6_BYTES 8

static const uint8_t src6[16] = {0xfd, 1, [15] = 1}, dst6[16] = {0xfd, 2, [15] = 9};
static struct ft_course course;

static struct ft_mono at_ms(int64_t ms)
{
    return (struct ft_mono){1000000000 + ms * 1000000};
}

static void begin(bool v6)
{
    course = (struct ft_course){
        .tuple = {.src = v6 ? ft_ip6(src6) : ft_ip4((uint8_t[4]){10, 0, 0, 1}),
                  .dst = v6 ? ft_ip6(dst6) : ft_ip4((uint8_t[4]){10, 0, 3, 2}),
                  .sport = 50001,
                  .dport = FT_ROCE_PORT,
                  .proto = FT_PROTO_UDP},
        .dst_qp = QP,
        .dscp = DSCP,
        .switches = SWITCHES,
    };
}

/* One's complement sum (RFC 1071), 0xffff where a checksum in it is right. */
static uint16_t sum_of(const uint8_t *bytes, size_t len, uint32_t sum)
{
    for (size_t i = 0; i < len; i++)
        sum += (uint32_t)bytes[i] << (i % 2 ? 0 : 8);
    while (sum >> 16)
        sum = (sum >> 16) + (sum & 0xffff);
    return (uint16_t)sum;
}

static size_t shoot(uint32_t ttl, int64_t ms, uint8_t packet[FT_PROBE_BYTES])
{
    static uint64_t state = 99;
    uint64_t random[2];

    for (int i = 0; i < 2; i++)
        random[i] = state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return ft_course_shoot(&course, ttl, at_ms(ms), random, packet);
}

/* Time exceeded, with so many bytes of the packet; behind an IP header of the router. */
static size_t answer4(const uint8_t *packet, size_t quoted, uint8_t *out)
{
    uint16_t sum;

    memset(out, 0, ICMP_BYTES);
    out[0] = 0x45;
    out[9] = 1;
    out[20] = 11;
    memcpy(out + ICMP_BYTES, packet, quoted);
    sum = (uint16_t)~sum_of(out + 20, 8 + quoted, 0);
    out[22] = (uint8_t)(sum >> 8);
    out[23] = (uint8_t)sum;
    return ICMP_BYTES + quoted;
}

static size_t answer6(const uint8_t *packet, size_t quoted, uint8_t *out)
{
    memset(out, 0, ICMP6_BYTES);
    out[0] = 3;
    memcpy(out + ICMP6_BYTES, packet, quoted);
    return ICMP6_BYTES + quoted;
}

static struct ft_ip router(uint8_t n)
{
    return ft_ip4((uint8_t[4]){192, 0, 2, n});
}

START_TEST(a_probe_is_like_the_flow)
{
    for (int v6 = 0; v6 < 2; v6++) {
        uint8_t packet[FT_PROBE_BYTES];
        struct ft_packet read;
        struct ft_reader r;
        size_t len, ip = v6 ? 40 : 20;

        begin(v6);
        ft_course_begin_round(&course, at_ms(0));
        len = shoot(3, 0, packet);
        ft_reader_init(&r, packet, len);
        ck_assert_int_eq(ft_packet_decode(FT_LINK_RAW, &r, &read), FT_PACKET_OK);
        ck_assert_mem_eq(&read.tuple, &course.tuple, sizeof(read.tuple));
        ck_assert_uint_eq(read.dscp, DSCP);
        ck_assert_uint_eq(read.ttl, 3);
        ck_assert_uint_eq(read.dst_qp, QP);
        ck_assert_uint_eq(read.ip_bytes, len);
        /* The checksums, with the pseudo header of RFC 768 and 8200. */
        if (!v6)
            ck_assert_uint_eq(sum_of(packet, ip, 0), 0xffff);
        ck_assert_uint_eq(sum_of(packet + (v6 ? 8 : 12), len - (v6 ? 8 : 12),
                                 FT_PROTO_UDP + (uint32_t)(len - ip)),
                          0xffff);
    }
}
END_TEST

/* IPv4's answers may end with the ports' header; IPv6's have to quote the number. */
START_TEST(an_answer_is_known_by_its_numbers)
{
    uint8_t packet[FT_PROBE_BYTES], icmp[ICMP_BYTES + FT_PROBE_BYTES];
    struct ft_ttl_answer answer;
    struct ft_ip from = router(2);
    size_t len;

    begin(false);
    ft_course_begin_round(&course, at_ms(0));
    shoot(1, 0, packet);
    len = shoot(2, 0, packet);
    ck_assert_int_eq(ft_ttl_answer_decode4(icmp, answer4(packet, 28, icmp), &answer), 0);
    ck_assert(!answer.has_nonce);
    ck_assert(ft_course_take(&course, &from, &answer, at_ms(5)));
    ck_assert(course.hops[1].answered && !course.hops[0].answered);
    ck_assert_int_eq(course.hops[1].rtt_ns, 5000000);
    ck_assert_mem_eq(&course.hops[1].address, &from, sizeof(from));
    /* The same a second time, as a router or somebody else may send it. */
    ck_assert(!ft_course_take(&course, &from, &answer, at_ms(6)));
    len = shoot(3, 6, packet);
    for (size_t i = 4; i < len; i++) {
        uint8_t wrong[FT_PROBE_BYTES];
        bool counts = (i >= 6 && i < 12) || (i >= 24 && i < 26) || (i >= 28 && i < 40) || i >= 48;

        /* Fragment bits, TTL, header checksum, length, BTH and ICRC are not compared. */
        memcpy(wrong, packet, len);
        wrong[i] ^= 0x10;
        if (ft_ttl_answer_decode4(icmp, answer4(wrong, len, icmp), &answer) == 0)
            ck_assert_msg(counts || !ft_course_take(&course, &from, &answer, at_ms(7)), "byte %zu",
                          i);
    }
    begin(true);
    ft_course_begin_round(&course, at_ms(0));
    len = shoot(1, 0, packet);
    ck_assert_int_eq(ft_ttl_answer_decode6(icmp, answer6(packet, 48, icmp), &answer), 0);
    ck_assert(!ft_course_take(&course, &from, &answer, at_ms(5)));
    ck_assert_int_eq(ft_ttl_answer_decode6(icmp, answer6(packet, len, icmp), &answer), 0);
    answer.nonce ^= 1;
    ck_assert(!ft_course_take(&course, &from, &answer, at_ms(5)));
    answer.nonce ^= 1;
    ck_assert(ft_course_take(&course, &from, &answer, at_ms(5)));
}
END_TEST

/* Cut at every byte, of another type or protocol, or with a wrong checksum it is none. */
START_TEST(what_is_no_answer_changes_nothing)
{
    uint8_t packet[FT_PROBE_BYTES], icmp[ICMP_BYTES + FT_PROBE_BYTES];
    static const struct ft_ttl_answer before = {.id = 7, .nonce = 9};
    struct ft_ttl_answer answer = before;
    size_t len;

    begin(false);
    ft_course_begin_round(&course, at_ms(0));
    shoot(1, 0, packet);
    for (size_t cut = 0; cut < 28; cut++)
        ck_assert_int_eq(ft_ttl_answer_decode4(icmp, answer4(packet, cut, icmp), &answer),
                         -EBADMSG);
    len = answer4(packet, 28, icmp);
    for (size_t cut = 0; cut < len; cut++)
        ck_assert_int_eq(ft_ttl_answer_decode4(icmp, cut, &answer), -EBADMSG);
    for (size_t i = 20; i < len; i++) {
        icmp[i] ^= 1;
        ck_assert_int_eq(ft_ttl_answer_decode4(icmp, len, &answer), -EBADMSG);
        icmp[i] ^= 1;
    }
    /* An echo; a fragment; TCP; code 1, which is of reassembly. */
    for (int i = 0; i < 4; i++) {
        uint8_t other[FT_PROBE_BYTES];
        uint16_t sum;

        memcpy(other, packet, sizeof(other));
        if (i == 1)
            other[7] = 1;
        else if (i == 2)
            other[9] = 6;
        len = answer4(other, 28, icmp);
        if (i == 0)
            icmp[20] = 8;
        else if (i == 3)
            icmp[21] = 1;
        icmp[22] = icmp[23] = 0;
        sum = (uint16_t)~sum_of(icmp + 20, len - 20, 0);
        icmp[22] = (uint8_t)(sum >> 8);
        icmp[23] = (uint8_t)sum;
        ck_assert_int_eq(ft_ttl_answer_decode4(icmp, len, &answer), -EBADMSG);
    }
    begin(true);
    ft_course_begin_round(&course, at_ms(0));
    shoot(1, 0, packet);
    for (size_t cut = 0; cut < 48; cut++)
        ck_assert_int_eq(ft_ttl_answer_decode6(icmp, answer6(packet, cut, icmp), &answer),
                         -EBADMSG);
    ck_assert_mem_eq(&answer, &before, sizeof(answer));
}
END_TEST

/* Never the last switch, nor what is behind it; those that answered are left alone. */
START_TEST(a_round_is_one_probe_a_switch)
{
    uint8_t packet[FT_PROBE_BYTES], icmp[ICMP_BYTES + FT_PROBE_BYTES];
    struct ft_ttl_answer answer;
    struct ft_ip from = router(1);
    int64_t now = 0;

    begin(false);
    for (uint32_t round = 1; round <= FT_COURSE_ROUNDS; round++, now += 1200) {
        ck_assert(ft_course_is_due(&course, at_ms(now)));
        ft_course_begin_round(&course, at_ms(now));
        ck_assert(!ft_course_is_due(&course, at_ms(now + 1199)));
        ck_assert(!ft_course_is_over(&course, at_ms(now + 1199)));
        for (uint32_t ttl = 0; ttl <= SWITCHES + 1; ttl++) {
            ck_assert_int_eq(ft_course_wants(&course, ttl),
                             ttl >= 1 && ttl < SWITCHES && (ttl != 2 || round == 1));
            if (!ft_course_wants(&course, ttl))
                continue;
            shoot(ttl, now, packet);
            ck_assert_uint_eq(packet[8], ttl);
            ck_assert(!ft_course_wants(&course, ttl));
            if (ttl != 2)
                continue;
            answer4(packet, 28, icmp);
            ck_assert_int_eq(ft_ttl_answer_decode4(icmp, ICMP_BYTES + 28, &answer), 0);
            ck_assert(ft_course_take(&course, &from, &answer, at_ms(now)));
        }
    }
    ck_assert(!ft_course_is_due(&course, at_ms(now + 10000)));
    ck_assert(ft_course_is_over(&course, at_ms(now)));
    ck_assert_uint_eq(course.hops[0].sent, FT_COURSE_ROUNDS);
    ck_assert_uint_eq(course.hops[1].sent, 1);
}
END_TEST

START_TEST(what_is_refused)
{
    struct ft_tuple other;

    begin(false);
    ck_assert_ptr_null(ft_course_complaint(&course.tuple, QP, DSCP, 2));
    ck_assert_ptr_null(ft_course_complaint(&course.tuple, QP, DSCP, FT_COURSE_SWITCHES));
    ck_assert_ptr_nonnull(ft_course_complaint(&course.tuple, QP, DSCP, 0));
    ck_assert_ptr_nonnull(ft_course_complaint(&course.tuple, QP, DSCP, 1));
    ck_assert_ptr_nonnull(ft_course_complaint(&course.tuple, QP, DSCP, FT_COURSE_SWITCHES + 1));
    ck_assert_ptr_nonnull(ft_course_complaint(&course.tuple, 1 << 24, DSCP, 3));
    ck_assert_ptr_nonnull(ft_course_complaint(&course.tuple, QP, 64, 3));
    other = course.tuple;
    other.dport = 53;
    ck_assert_ptr_nonnull(ft_course_complaint(&other, QP, DSCP, 3));
    other = course.tuple;
    other.dst = ft_ip6(dst6);
    ck_assert_ptr_nonnull(ft_course_complaint(&other, QP, DSCP, 3));
}
END_TEST

START_TEST(a_request_has_one_layout)
{
    /* "ftprob", version 1; ::ffff:10.0.0.1 to ::ffff:10.0.3.2; ports; UDP; DSCP; queue pair; 5. */
    static const uint8_t known[FT_PROBE_REQUEST_BYTES] = {
        0x66, 0x74, 0x70, 0x72, 0x6f, 0x62, 0,    1,    0,  0, 0, 0, 0,    0,
        0,    0,    0,    0,    0xff, 0xff, 10,   0,    0,  1, 0, 0, 0,    0,
        0,    0,    0,    0,    0,    0,    0xff, 0xff, 10, 0, 3, 2, 0xc3, 0x51,
        0x12, 0xb7, 17,   26,   0,    0x11, 0x22, 0x33, 0,  0, 0, 5};
    struct ft_probe_request request = {.switches = 9};
    uint8_t longer[FT_PROBE_REQUEST_BYTES + 1] = {0};
    struct ft_writer w;

    for (size_t cut = 0; cut < sizeof(known); cut++)
        ck_assert_int_eq(ft_probe_request_decode(known, cut, &request), -EBADMSG);
    memcpy(longer, known, sizeof(known));
    ck_assert_int_eq(ft_probe_request_decode(longer, sizeof(longer), &request), -EBADMSG);
    longer[7] = 2;
    ck_assert_int_eq(ft_probe_request_decode(longer, sizeof(known), &request), -EBADMSG);
    ck_assert_uint_eq(request.switches, 9);
    ck_assert_int_eq(ft_probe_request_decode(known, sizeof(known), &request), 0);
    begin(false);
    ck_assert_mem_eq(&request.tuple, &course.tuple, sizeof(course.tuple));
    ck_assert_uint_eq(request.dst_qp, QP);
    ck_assert_uint_eq(request.dscp, DSCP);
    ck_assert_uint_eq(request.switches, SWITCHES);
    ft_writer_init(&w, sizeof(known));
    ft_probe_request_write(&w, &request);
    ck_assert(ft_writer_ok(&w));
    ck_assert_mem_eq(w.bytes, known, sizeof(known));
    ft_writer_free(&w);
}
END_TEST

FT_UNIT_MAIN("course", a_probe_is_like_the_flow, an_answer_is_known_by_its_numbers,
             what_is_no_answer_changes_nothing, a_round_is_one_probe_a_switch, what_is_refused,
             a_request_has_one_layout)

// SPDX-License-Identifier: Apache-2.0
/* What an agent may answer: values of every type, error statuses, and the reports of SNMPv3 by
 * which it refuses. The agent is a socket of this test, which writes its messages by the standards'
 * letters (RFC 3416, RFC 3412 section 6, RFC 3414 section 3.2). */
#include "config.h"

#include "lib/io/snmp/snmp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define TIMEOUT_NS INT64_C(60000000000) /* of what is answered */

static struct ft_loop *loop;
static struct ft_snmp *snmp;
static struct ft_snmp_auth *auth;
static struct ft_snmp_session *session;
static struct ft_watch *watch;
static char error[256];
static int fd, replies, asked;
static uint16_t port;

static const struct ft_snmp_oid uptime = {.ids = {1, 3, 6, 1, 2, 1, 1, 3, 0}, .len = 9};
static const struct ft_snmp_secrets v2c = {.version = 2, .community = "public"};
static const struct ft_snmp_secrets v3 = {
    .version = 3, .user = "u", .auth = "SHA-256", .auth_secret = "12345678"};

/* A message is written from its end, where lengths are known. */
struct ber {
    uint8_t bytes[1024];
    size_t at;
};

static void put(struct ber *b, const void *bytes, size_t len)
{
    b->at -= len;
    memcpy(b->bytes + b->at, bytes, len);
}

/* What was written since `end` gets a tag and its length in front. */
static void wrap(struct ber *b, uint8_t tag, size_t end)
{
    size_t len = end - b->at;
    const uint8_t wide[] = {tag, 0x82, (uint8_t)(len >> 8), (uint8_t)len};
    const uint8_t narrow[] = {tag, (uint8_t)len};

    if (len < 128)
        put(b, narrow, sizeof(narrow));
    else
        put(b, wide, sizeof(wide));
}

static void put_as(struct ber *b, uint8_t tag, const void *bytes, size_t len)
{
    size_t end = b->at;

    put(b, bytes, len);
    wrap(b, tag, end);
}

static void put_integer(struct ber *b, uint32_t value)
{
    const uint8_t bytes[] = {0, (uint8_t)(value >> 24), (uint8_t)(value >> 16),
                             (uint8_t)(value >> 8), (uint8_t)value};

    put_as(b, 0x02, bytes, sizeof(bytes));
}

/* sysUpTime.0 with a value. */
static void put_uptime(struct ber *b, uint8_t tag, const void *value, size_t len)
{
    static const uint8_t name[] = {0x2b, 6, 1, 2, 1, 1, 3, 0};
    size_t end = b->at;

    put_as(b, tag, value, len);
    put_as(b, 0x06, name, sizeof(name));
    wrap(b, 0x30, end);
}

/* Behind the variables' list, which was begun at `end`: the PDU around it. */
static void put_pdu(struct ber *b, uint8_t tag, uint32_t request, uint32_t status, size_t end)
{
    wrap(b, 0x30, end);
    put_integer(b, 0);
    put_integer(b, status);
    put_integer(b, request);
    wrap(b, tag, end);
}

/* The number in these bytes, an INTEGER; *after: what follows. */
static uint32_t integer_at(const uint8_t *bytes, const uint8_t **after)
{
    uint32_t value = 0;

    ck_assert_uint_eq(bytes[0], 0x02);
    for (uint8_t i = 0; i < bytes[1]; i++)
        value = value << 8 | bytes[2 + i];
    *after = bytes + 2 + bytes[1];
    return value;
}

/* Into a SEQUENCE or a PDU. */
static const uint8_t *inside(const uint8_t *bytes)
{
    return bytes + 2 + (bytes[1] > 128 ? bytes[1] & 127 : 0);
}

static const uint8_t *behind(const uint8_t *bytes)
{
    ck_assert_uint_lt(bytes[1], 128);
    return bytes + 2 + bytes[1];
}

static struct sockaddr_in from;

static bool take(uint8_t in[1024])
{
    socklen_t len = sizeof(from);

    return recvfrom(fd, in, 1024, 0, (struct sockaddr *)&from, &len) > 0;
}

static void answer(const struct ber *b)
{
    ck_assert_int_gt(sendto(fd, b->bytes + b->at, sizeof(b->bytes) - b->at, 0,
                            (const struct sockaddr *)&from, sizeof(from)),
                     0);
}

/* Answers a request of v2c by what `fill` writes. */
static uint32_t status;

static void answer_v2c(void (*fill)(struct ber *b))
{
    struct ber b = {.at = sizeof(b.bytes)};
    uint8_t in[1024];
    const uint8_t *at;

    if (!take(in))
        return;
    integer_at(inside(in), &at);
    at = inside(behind(at));
    fill(&b);
    put_pdu(&b, 0xa2, integer_at(at, &at), status, sizeof(b.bytes));
    put_as(&b, 0x04, v2c.community, strlen(v2c.community));
    put_integer(&b, 1);
    wrap(&b, 0x30, sizeof(b.bytes));
    answer(&b);
}

static void fill_all(struct ber *b)
{
    static const uint8_t eight[] = {1, 2, 3, 4, 5, 6, 7, 8}, minus[] = {0xff};
    static const uint8_t address[] = {192, 0, 2, 1}, large[] = {0, 0xff, 0xff, 0xff, 0xfe};

    put_uptime(b, 0x82, "", 0);
    put_uptime(b, 0x81, "", 0);
    put_uptime(b, 0x80, "", 0);
    put_uptime(b, 0x05, "", 0);
    put_uptime(b, 0x06, "\x2b\x06", 2);
    put_uptime(b, 0x40, address, 4);
    put_uptime(b, 0x04, "Ethernet1", 9);
    put_uptime(b, 0x46, eight, 8);
    put_uptime(b, 0x41, large, 5);
    put_uptime(b, 0x43, large, 5);
    put_uptime(b, 0x42, large, 5);
    put_uptime(b, 0x02, minus, 1);
}

static void on_all(void *arg)
{
    (void)arg;
    answer_v2c(fill_all);
}

static void fill_one(struct ber *b)
{
    put_uptime(b, 0x05, "", 0);
}

static void on_one(void *arg)
{
    (void)arg;
    answer_v2c(fill_one);
}

/* What usmStats or another counter a report bears, behind 1.3.6.1.6.3. */
static uint8_t report[4];
static size_t report_len;

/* A report of nobody: who has not found the engine is told it, the others are refused. */
static void on_v3(void *arg)
{
    static const uint8_t engine[] = {0x80, 0, 0, 0, 5, 'l', 'e', 'a', 'f', '1'};
    static const uint8_t unknown_engine[] = {15, 1, 1, 4, 0}, base[] = {0x2b, 6, 1, 6, 3};
    struct ber b = {.at = sizeof(b.bytes)};
    uint8_t in[1024], name[16];
    const uint8_t *at, *header;
    uint32_t id;
    size_t end, len;

    (void)arg;
    if (!take(in))
        return;
    asked++;
    integer_at(inside(in), &header);
    id = integer_at(inside(header), &at);
    /* The security parameters begin with the engine. */
    at = inside(inside(behind(header)));
    len = at[1] == 0 ? sizeof(unknown_engine) : report_len + 1;
    memcpy(name, base, sizeof(base));
    memset(name + sizeof(base), 0, sizeof(name) - sizeof(base));
    memcpy(name + sizeof(base), at[1] == 0 ? unknown_engine : report,
           at[1] == 0 ? sizeof(unknown_engine) : report_len);
    put_as(&b, 0x41, "\x01", 1);
    put_as(&b, 0x06, name, sizeof(base) + len);
    wrap(&b, 0x30, sizeof(b.bytes));
    put_pdu(&b, 0xa8, 0, 0, sizeof(b.bytes));
    put_as(&b, 0x04, "", 0);
    put_as(&b, 0x04, engine, sizeof(engine));
    wrap(&b, 0x30, sizeof(b.bytes));
    end = b.at;
    put_as(&b, 0x04, "", 0);
    put_as(&b, 0x04, "", 0);
    put_as(&b, 0x04, "", 0);
    put_integer(&b, 1000);
    put_integer(&b, 1);
    put_as(&b, 0x04, engine, sizeof(engine));
    wrap(&b, 0x30, end);
    wrap(&b, 0x04, end);
    end = b.at;
    put_integer(&b, 3);
    put_as(&b, 0x04, "", 1);
    put_integer(&b, 65507);
    put_integer(&b, id);
    wrap(&b, 0x30, end);
    put_integer(&b, 3);
    wrap(&b, 0x30, sizeof(b.bytes));
    answer(&b);
}

static void begin(const struct ft_snmp_secrets *secrets, void (*agent)(void *arg))
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct ft_ip ip = ft_ip4((uint8_t[4]){127, 0, 0, 1});
    socklen_t len = sizeof(address);

    replies = asked = 0;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    port = ntohs(address.sin_port);
    loop = ft_loop_new();
    snmp = ft_snmp_new(loop, error, sizeof(error));
    ck_assert_msg(snmp != NULL, "%s", error);
    auth = ft_snmp_auth_new(snmp, secrets, error, sizeof(error));
    ck_assert_msg(auth != NULL, "%s", error);
    session = ft_snmp_session_new(snmp, &ip, port, auth, TIMEOUT_NS, 0, error, sizeof(error));
    ck_assert_msg(session != NULL, "%s", error);
    watch = ft_watch_fd(loop, fd, agent, NULL);
}

static void end(void)
{
    ft_watch_free(watch);
    ft_snmp_session_free(session);
    ft_snmp_auth_free(auth);
    ft_snmp_free(snmp);
    ft_loop_free(loop);
    close(fd);
}

static void check_all(void *arg, const struct ft_snmp_reply *reply)
{
    static const struct {
        enum ft_snmp_type type;
        uint64_t number;
        const char *bytes;
    } expected[] = {
        {FT_SNMP_INTEGER, UINT64_MAX, NULL},
        {FT_SNMP_UNSIGNED, 0xfffffffe, NULL},
        {FT_SNMP_UNSIGNED, 0xfffffffe, NULL},
        {FT_SNMP_COUNTER32, 0xfffffffe, NULL},
        {FT_SNMP_COUNTER64, 0x0102030405060708, NULL},
        {FT_SNMP_STRING, 0, "Ethernet1"},
        {FT_SNMP_ADDRESS, 0, "\xc0\x00\x02\x01"},
        {FT_SNMP_OID, 0, NULL},
        {FT_SNMP_NULL, 0, NULL},
        {FT_SNMP_NONE, 0, NULL},
        {FT_SNMP_NONE, 0, NULL},
        {FT_SNMP_END, 0, NULL},
    };

    (void)arg;
    replies++;
    ck_assert_int_eq(reply->fault, FT_SNMP_OK);
    ck_assert_uint_eq(reply->count, sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < reply->count; i++) {
        const struct ft_snmp_varbind *v = &reply->varbinds[i];

        ck_assert_int_eq(v->type, expected[i].type);
        ck_assert_uint_eq(v->number, expected[i].number);
        if (expected[i].bytes)
            ck_assert_mem_eq(v->bytes, expected[i].bytes, v->len);
        ck_assert_uint_eq(v->len, expected[i].type == FT_SNMP_STRING    ? 9
                                  : expected[i].type == FT_SNMP_ADDRESS ? 4
                                                                        : 0);
        ck_assert_uint_eq(v->oid_len, uptime.len);
        ck_assert_mem_eq(v->oid, uptime.ids, uptime.len * sizeof(uint32_t));
    }
    ft_loop_exit(loop, 0);
}

START_TEST(values_of_every_type)
{
    status = 0;
    begin(&v2c, on_all);
    ck_assert_int_eq(ft_snmp_ask(session, &uptime, 1, 0, check_all, NULL), 0);
    ft_loop_run(loop);
    ck_assert_int_eq(replies, 1);
    end();
}
END_TEST

static struct ft_snmp_reply last;

static void on_reply(void *arg, const struct ft_snmp_reply *reply)
{
    (void)arg;
    replies++;
    last = *reply;
    ft_loop_exit(loop, 0);
}

/* How a request ends, and that it is counted once. */
static void expect(enum ft_snmp_fault fault, const char *text)
{
    struct ft_snmp_stats before, after;
    bool refused = fault == FT_SNMP_REFUSED;

    ft_snmp_stats(snmp, &before);
    ck_assert_int_eq(ft_snmp_ask(session, &uptime, 1, 0, on_reply, NULL), 0);
    ft_loop_run(loop);
    ck_assert_int_eq(last.fault, fault);
    ck_assert_str_eq(last.text, text);
    ft_snmp_stats(snmp, &after);
    ck_assert_uint_eq(after.requests, before.requests + 1);
    ck_assert_uint_eq(after.refused, before.refused + refused);
    ck_assert_uint_eq(after.errors, before.errors + !refused);
    ck_assert_uint_eq(after.pending, 0);
}

START_TEST(error_statuses)
{
    begin(&v2c, on_one);
    status = 1;
    expect(FT_SNMP_TOO_BIG, "the answer would be too big");
    status = 5;
    expect(FT_SNMP_ERROR, "the agent answers with an error");
    status = 6;
    expect(FT_SNMP_REFUSED, "the agent does not allow this user to read that");
    status = 16;
    expect(FT_SNMP_REFUSED, "the agent does not allow this user to read that");
    end();
}
END_TEST

static const struct {
    uint8_t report[4];
    size_t len;
    enum ft_snmp_fault fault;
    const char *text;
} reports[] = {
    {{15, 1, 1, 1}, 4, FT_SNMP_REFUSED, "the agent does not allow this user's security level"},
    {{15, 1, 1, 2}, 4, FT_SNMP_REFUSED, "the agent's clock does not agree: not in time window"},
    {{15, 1, 1, 3}, 4, FT_SNMP_REFUSED, "the agent does not know the user"},
    {{15, 1, 1, 4}, 4, FT_SNMP_ENGINE, "the agent's engine id has changed"},
    {{15, 1, 1, 5},
     4,
     FT_SNMP_REFUSED,
     "the agent refuses the authentication: wrong auth or auth_secret"},
    {{15, 1, 1, 6}, 4, FT_SNMP_REFUSED, "the agent cannot decrypt: wrong priv or priv_secret"},
    {{12, 1, 5}, 3, FT_SNMP_REFUSED, "the agent does not know the context"},
    {{11, 2, 1, 3}, 4, FT_SNMP_REFUSED, "the agent refuses the request"},
};

/* Each begins with a probe: whoever answers there now may be another one. */
START_TEST(refusals)
{
    begin(&v3, on_v3);
    for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
        struct ft_snmp_stats stats;

        memcpy(report, reports[i].report, sizeof(report));
        report_len = reports[i].len;
        expect(reports[i].fault, reports[i].text);
        ft_snmp_stats(snmp, &stats);
        ck_assert_uint_eq(stats.discoveries, i + 1);
    }
    end();
}
END_TEST

START_TEST(what_cannot_be_asked)
{
    struct ft_snmp_oid many[FT_SNMP_NAMES_MAX + 1] = {uptime};
    const struct ft_ip ip = ft_ip4((uint8_t[4]){127, 0, 0, 1});
    struct rlimit limit;

    begin(&v2c, on_one);
    ck_assert_int_eq(ft_snmp_ask(session, many, 0, 0, on_reply, NULL), -EINVAL);
    ck_assert_int_eq(ft_snmp_ask(session, many, FT_SNMP_NAMES_MAX + 1, 0, on_reply, NULL), -EINVAL);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_ptr_null(
        ft_snmp_session_new(snmp, &ip, port, auth, TIMEOUT_NS, 0, error, sizeof(error)));
    ck_assert_str_eq(error, "cannot open an SNMP socket: Too many open files");
    /* Sanitizers and coverage have files to open at the end. */
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    end();
}
END_TEST

FT_UNIT_MAIN("snmp_answered", values_of_every_type, error_statuses, refusals, what_cannot_be_asked)

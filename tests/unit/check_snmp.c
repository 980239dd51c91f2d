// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/snmp/snmp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define NS_PER_MS INT64_C(1000000)
#define TRIES     3

static struct ft_loop *loop;
static struct ft_snmp *snmp;
static struct ft_snmp_session *session;
static char error[256];
static int fd;
static uint16_t port;
static int replies;
static struct ft_snmp_reply last;
static int datagrams;

static const struct ft_snmp_oid uptime = {.ids = {1, 3, 6, 1, 2, 1, 1, 3, 0}, .len = 9};

/* An agent's socket on the loopback. */
static void open_socket(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    port = ntohs(address.sin_port);
}

static void set_up(const struct ft_snmp_auth **auth, const struct ft_snmp_secrets *secrets)
{
    const uint8_t bytes[4] = {127, 0, 0, 1};
    struct ft_ip address = ft_ip4(bytes);

    replies = datagrams = 0;
    open_socket();
    loop = ft_loop_new();
    snmp = ft_snmp_new(loop, error, sizeof(error));
    ck_assert_msg(snmp != NULL, "%s", error);
    *auth = ft_snmp_auth_new(snmp, secrets, error, sizeof(error));
    ck_assert_msg(*auth != NULL, "%s", error);
    session = ft_snmp_session_new(snmp, &address, port, *auth, 30 * NS_PER_MS, TRIES - 1, error,
                                  sizeof(error));
    ck_assert_msg(session != NULL, "%s", error);
}

static void tear_down(const struct ft_snmp_auth *auth)
{
    ft_snmp_session_free(session);
    ft_snmp_auth_free((struct ft_snmp_auth *)(uintptr_t)auth);
    ft_snmp_free(snmp);
    ft_loop_free(loop);
    close(fd);
}

static void on_reply(void *arg, const struct ft_snmp_reply *reply)
{
    (void)arg;
    replies++;
    last = *reply;
    ft_loop_exit(loop, 0);
}

static int ask(void)
{
    return ft_snmp_ask(session, &uptime, 1, 0, on_reply, NULL);
}

static void count_datagrams(void *arg)
{
    char bytes[2048];

    (void)arg;
    while (recv(fd, bytes, sizeof(bytes), 0) > 0)
        datagrams++;
}

static const struct ft_snmp_secrets v2c = {.version = 2, .community = "public"};
static const struct ft_snmp_secrets v3 = {.version = 3,
                                          .user = "u",
                                          .auth = "SHA-256",
                                          .auth_secret = "12345678",
                                          .priv = "AES-256",
                                          .priv_secret = "87654321"};

/* With v3 it is the engine probe that nobody answers: it must not block either. */
START_TEST(silence)
{
    const struct ft_snmp_secrets *kinds[] = {&v2c, &v3};

    for (size_t i = 0; i < 2; i++) {
        const struct ft_snmp_auth *auth;
        struct ft_snmp_stats stats;
        struct ft_watch *watch;

        set_up(&auth, kinds[i]);
        watch = ft_watch_fd(loop, fd, count_datagrams, NULL);
        ck_assert_int_eq(ask(), 0);
        ck_assert_int_eq(ask(), -EBUSY);
        ck_assert_int_eq(replies, 0);
        ft_loop_run(loop);
        ck_assert_int_eq(replies, 1);
        ck_assert_int_eq(last.fault, FT_SNMP_TIMEOUT);
        ck_assert_int_eq(datagrams, TRIES);
        ft_snmp_stats(snmp, &stats);
        ck_assert_uint_eq(stats.requests, 1);
        ck_assert_uint_eq(stats.timeouts, 1);
        ck_assert_uint_eq(stats.pending, 0);
        ck_assert_uint_eq(stats.resent, TRIES - 1);
        /* It may ask again. */
        ck_assert_int_eq(ask(), 0);
        ft_loop_run(loop);
        ck_assert_int_eq(replies, 2);
        ft_watch_free(watch);
        tear_down(auth);
    }
}
END_TEST

/* Answers a v2c GET with its own bytes changed into a response: sysUpTime is 0x0102 ticks. */
static void answer_get(void *arg)
{
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    uint8_t in[512];
    uint8_t out[520];
    ssize_t n = recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)&from, &len);

    (void)arg;
    ck_assert_int_gt(n, 20);
    memcpy(out, in, (size_t)n);
    /* The value NULL (05 00) at the end grows by two bytes, and with it every length around it. */
    ck_assert_int_eq(out[n - 2], 0x05);
    memcpy(out + n - 2, "\x43\x02\x01\x02", 4);
    out[1] += 2;
    for (ssize_t i = 2; i + 1 < n; i++)
        if (out[i] == 0xa0 && out[i + 1] == n - i - 2) {
            out[i] = 0xa2;
            out[i + 1] += 2;
            for (ssize_t k = i + 2; k + 1 < n; k++)
                if (out[k] == 0x30 && out[k + 1] == n - k - 2)
                    out[k + 1] += 2;
            break;
        }
    sendto(fd, out, (size_t)n + 2, 0, (struct sockaddr *)&from, len);
}

static void check_answer(void *arg, const struct ft_snmp_reply *reply)
{
    (void)arg;
    replies++;
    ck_assert_int_eq(reply->fault, FT_SNMP_OK);
    ck_assert_uint_eq(reply->count, 1);
    ck_assert_int_eq(reply->varbinds[0].type, FT_SNMP_UNSIGNED);
    ck_assert_uint_eq(reply->varbinds[0].number, 0x0102);
    ck_assert_uint_eq(reply->varbinds[0].oid_len, uptime.len);
    ck_assert_mem_eq(reply->varbinds[0].oid, uptime.ids, uptime.len * sizeof(uint32_t));
    if (replies == 1) {
        ck_assert_int_eq(ft_snmp_ask(session, &uptime, 1, 0, check_answer, NULL), 0);
        return;
    }
    /* A session may end in the middle of its own callback. */
    ft_snmp_session_free(session);
    session = NULL;
    ft_loop_exit(loop, 0);
}

START_TEST(answers)
{
    const struct ft_snmp_auth *auth;
    struct ft_snmp_stats stats;
    struct ft_watch *watch;

    set_up(&auth, &v2c);
    watch = ft_watch_fd(loop, fd, answer_get, NULL);
    ck_assert_int_eq(ft_snmp_ask(session, &uptime, 1, 0, check_answer, NULL), 0);
    ft_loop_run(loop);
    ck_assert_int_eq(replies, 2);
    ft_snmp_stats(snmp, &stats);
    ck_assert_uint_eq(stats.answers, 2);
    ck_assert_uint_eq(stats.varbinds, 2);
    ft_watch_free(watch);
    tear_down(auth);
}
END_TEST

/* Garbage is no answer; the request goes on to wait for one. */
static void answer_garbage(void *arg)
{
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    uint8_t bytes[512];
    ssize_t n;

    (void)arg;
    while ((n = recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &len)) > 0) {
        for (ssize_t cut = 0; cut < n; cut++)
            sendto(fd, bytes, (size_t)cut, 0, (struct sockaddr *)&from, len);
        memset(bytes, 0x30, sizeof(bytes));
        sendto(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, len);
    }
}

START_TEST(garbage)
{
    const struct ft_snmp_secrets *kinds[] = {&v2c, &v3};

    for (size_t i = 0; i < 2; i++) {
        const struct ft_snmp_auth *auth;
        struct ft_watch *watch;

        set_up(&auth, kinds[i]);
        watch = ft_watch_fd(loop, fd, answer_garbage, NULL);
        ck_assert_int_eq(ask(), 0);
        ft_loop_run(loop);
        ck_assert_int_eq(last.fault, FT_SNMP_TIMEOUT);
        ft_watch_free(watch);
        tear_down(auth);
    }
}
END_TEST

START_TEST(freed_while_asking)
{
    const struct ft_snmp_auth *auth;
    struct ft_snmp_stats stats;

    set_up(&auth, &v3);
    ck_assert_int_eq(ask(), 0);
    ft_snmp_session_free(session);
    session = NULL;
    ft_snmp_stats(snmp, &stats);
    ck_assert_uint_eq(stats.pending, 0);
    ck_assert_uint_eq(stats.requests, 0);
    ck_assert_int_eq(replies, 0);
    tear_down(auth);
}
END_TEST

START_TEST(bad_secrets)
{
    const struct {
        struct ft_snmp_secrets secrets;
        const char *text;
    } cases[] = {
        {{.version = 1, .community = "x"}, "version"},
        {{.version = 2, .community = ""}, "community"},
        {{.version = 3}, "user"},
        {{.version = 3, .user = "u", .auth = "MD5", .auth_secret = "12345678"},
         "auth: must be one"},
        {{.version = 3, .user = "u", .auth = "SHA", .auth_secret = "1234567"}, "8 characters"},
        {{.version = 3, .user = "u", .priv = "AES", .priv_secret = "12345678"}, "needs auth"},
        {{.version = 3,
          .user = "u",
          .auth = "SHA",
          .auth_secret = "12345678",
          .priv = "DES",
          .priv_secret = "12345678"},
         "priv: must be one"},
    };

    loop = ft_loop_new();
    snmp = ft_snmp_new(loop, error, sizeof(error));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_ptr_null(ft_snmp_auth_new(snmp, &cases[i].secrets, error, sizeof(error)));
        ck_assert_msg(strstr(error, cases[i].text) != NULL, "%s", error);
    }
    ft_snmp_free(snmp);
    ft_loop_free(loop);
}
END_TEST

FT_UNIT_MAIN("snmp", silence, answers, garbage, freed_while_asking, bad_secrets)

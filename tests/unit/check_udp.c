// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/udp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static struct ft_loop *loop;
static uint64_t taken, taken_bytes;
static uint64_t want;
static struct ft_wall last_when;

static void on_datagram(void *arg, const uint8_t *bytes, size_t len, struct ft_wall when)
{
    (void)arg;
    (void)bytes;
    last_when = when;
    taken_bytes += len;
    if (++taken == want)
        ft_loop_exit(loop, 0);
}

static void on_timeout(void *arg)
{
    (void)arg;
    ft_loop_exit(loop, 1);
}

static struct ft_udp *open_in(struct ft_loop *in, const char *listen, uint64_t buffer_bytes)
{
    const struct ft_udp_config config = {
        .listen = listen, .buffer_bytes = buffer_bytes, .on_datagram = on_datagram};
    char error[256] = "";
    struct ft_udp *udp = ft_udp_new(in, &config, error, sizeof(error));

    ck_assert_msg(udp, "%s", error);
    return udp;
}

static struct ft_udp *open_on(const char *listen, uint64_t buffer_bytes)
{
    return open_in(loop, listen, buffer_bytes);
}

static void send_to(uint16_t port, int family, int count, size_t len)
{
    static uint8_t bytes[65507];
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int fd = socket(family, SOCK_DGRAM, 0);

    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v6.sin6_addr = in6addr_loopback;
    for (int i = 0; i < count; i++) {
        ssize_t n = family == AF_INET
                        ? sendto(fd, bytes, len, 0, (struct sockaddr *)&v4, sizeof(v4))
                        : sendto(fd, bytes, len, 0, (struct sockaddr *)&v6, sizeof(v6));

        ck_assert_int_eq(n, (ssize_t)len);
    }
    close(fd);
}

/* Runs the loop until that many datagrams came; fails after 10 s. */
static void run_until(uint64_t count)
{
    struct ft_watch *timeout = ft_watch_once(loop, on_timeout, NULL);

    want = count;
    ft_watch_once_arm(timeout, INT64_C(10000000000));
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ft_watch_free(timeout);
    ck_assert_uint_eq(taken, count);
}

static bool has_ipv6(void)
{
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&v6, sizeof(v6)) == 0;

    if (fd >= 0)
        close(fd);
    return has;
}

START_TEST(takes_both_families_on_all_addresses)
{
    struct ft_wall before = ft_wall_now();
    struct ft_udp_stats stats;
    struct ft_udp *udp;

    loop = ft_loop_new();
    taken = taken_bytes = 0;
    udp = open_on(":0", 1 << 20);
    send_to(ft_udp_port(udp), AF_INET, 300, 100);
    run_until(300);
    if (has_ipv6()) {
        send_to(ft_udp_port(udp), AF_INET6, 1, 65507);
        run_until(301);
        ck_assert_uint_eq(taken_bytes, 300 * 100 + 65507);
    } else {
        puts("skipped: IPv6: this host has none");
    }
    ck_assert_int_ge(last_when.ms, before.ms);
    ck_assert_int_le(last_when.ms, ft_wall_now().ms);
    ft_udp_stats(udp, &stats);
    ck_assert_uint_eq(stats.datagrams, taken);
    ck_assert_uint_eq(stats.kernel_drops, 0);
    ft_udp_free(udp);
    ft_loop_free(loop);
}
END_TEST

/* What the kernel had no room for is counted, also when no datagram comes after it. */
START_TEST(what_was_sent_is_taken_or_counted_as_dropped)
{
    struct ft_udp_stats stats;
    struct ft_udp *udp;

    loop = ft_loop_new();
    taken = 0;
    udp = open_on("127.0.0.1:0", 4096);
    for (int round = 1; round <= 3; round++) {
        send_to(ft_udp_port(udp), AF_INET, 1000, 1000);
        ft_udp_drain(udp);
        ft_udp_stats(udp, &stats);
        ck_assert_uint_gt(stats.kernel_drops, 0);
        ck_assert_uint_eq(stats.datagrams + stats.kernel_drops, 1000u * (unsigned)round);
        ck_assert_uint_eq(stats.datagrams, taken);
    }
    ft_udp_free(udp);
    ft_loop_free(loop);
}
END_TEST

/* The most that it says to leave the descriptor alone after this many datagrams in a row, in some
 * attempts: a test that is stopped meanwhile sees them come slowly. */
static int longest_pause(struct ft_udp *udp, int count)
{
    int longest = 0;

    for (int i = 0; i < 100 && !longest; i++) {
        ft_udp_take(udp);
        send_to(ft_udp_port(udp), AF_INET, count, 100);
        longest = ft_udp_take(udp);
    }
    return longest;
}

START_TEST(a_wake_up_takes_several_where_many_come)
{
    struct ft_udp_stats stats;
    struct ft_udp *udp = open_in(NULL, "127.0.0.1:0", 64 << 20);

    ft_udp_stats(udp, &stats);
    if (stats.buffer_bytes >= 64 << 20)
        ck_assert_int_eq(longest_pause(udp, 20), 2);
    else
        puts("skipped: datagrams are waited for: needs root, for a large receive buffer");
    ck_assert_int_eq(ft_udp_take(udp), 0);
    ft_udp_free(udp);

    /* It would be full meanwhile. */
    udp = open_in(NULL, "127.0.0.1:0", 65536);
    ck_assert_int_eq(longest_pause(udp, 20), 0);
    ft_udp_free(udp);
}
END_TEST

#define ROUNDS 40

static void send_some(void *arg)
{
    static int round;

    if (round++ < ROUNDS)
        send_to(ft_udp_port(arg), AF_INET, 50, 100);
}

START_TEST(after_many_a_single_one_is_taken)
{
    struct ft_watch *timer;
    struct ft_udp *udp;

    loop = ft_loop_new();
    taken = 0;
    udp = open_on("127.0.0.1:0", 4 << 20);
    timer = ft_watch_timer(loop, INT64_C(1000000), send_some, udp);
    run_until(ROUNDS * 50);
    ft_watch_free(timer);
    send_to(ft_udp_port(udp), AF_INET, 1, 100);
    run_until(ROUNDS * 50 + 1);
    ft_udp_free(udp);
    ft_loop_free(loop);
}
END_TEST

START_TEST(says_what_is_wrong_with_an_endpoint)
{
    static const char *const bad[] = {"nonsense", "127.0.0.1:", ":99999", "no.such.host.invalid:1",
                                      "192.0.2.1:6343"};
    char error[256];

    loop = ft_loop_new();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct ft_udp_config config = {.listen = bad[i], .on_datagram = on_datagram};

        *error = 0;
        ck_assert_ptr_null(ft_udp_new(loop, &config, error, sizeof(error)));
        ck_assert_msg(strstr(error, bad[i]), "%s", error);
    }
    ft_loop_free(loop);
}
END_TEST

START_TEST(an_address_in_use_is_reported)
{
    struct ft_udp_config config = {.on_datagram = on_datagram};
    char listen[32], error[256] = "";
    struct ft_udp *udp;

    loop = ft_loop_new();
    udp = open_on("127.0.0.1:0", 65536);
    snprintf(listen, sizeof(listen), "127.0.0.1:%u", ft_udp_port(udp));
    config.listen = listen;
    ck_assert_ptr_null(ft_udp_new(loop, &config, error, sizeof(error)));
    ck_assert_msg(strstr(error, "in use"), "%s", error);
    ft_udp_free(udp);
    ft_loop_free(loop);
}
END_TEST

FT_UNIT_MAIN("udp", takes_both_families_on_all_addresses,
             what_was_sent_is_taken_or_counted_as_dropped, a_wake_up_takes_several_where_many_come,
             after_many_a_single_one_is_taken, says_what_is_wrong_with_an_endpoint,
             an_address_in_use_is_reported)

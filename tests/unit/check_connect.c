// SPDX-License-Identifier: Apache-2.0
/* Sockets made of endpoints: with those who do not listen, do not answer or have no name. */
#include "config.h"

#include "lib/io/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define MS INT64_C(1000000)
/* For what ends by itself. */
#define PATIENCE (600000 * MS)

static struct ft_loop *loop;
static int result;
static char reason_given[256], error[256];

static void done(void *arg, int fd, const char *reason)
{
    (void)arg;
    result = fd;
    snprintf(reason_given, sizeof(reason_given), "%s", reason ? reason : "");
    ft_loop_exit(loop, 0);
}

/* What becomes of it: a descriptor, or -errno. */
static int reach(const char *host, uint16_t port, int64_t timeout_ns)
{
    struct ft_connect *connect = ft_connect_new(loop, host, port, timeout_ns, done, NULL);

    ck_assert_ptr_nonnull(connect);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ft_connect_free(connect);
    return result;
}

static int listen_at(const char *endpoint, uint16_t *port)
{
    int fd = ft_endpoint_listen(endpoint, port, error, sizeof(error));

    ck_assert_msg(fd >= 0, "%s", error);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_ne(*port, 0);
    return fd;
}

static void expect_peer(int listener, int fd, const char *begin)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    int peer = -1;
    char text[FT_ENDPOINT_BYTES];

    ck_assert_int_ge(fd, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    for (int i = 0; i < 60000 && peer < 0; i++) {
        peer = accept(listener, (struct sockaddr *)&address, &len);
        if (peer < 0)
            usleep(1000);
    }
    ck_assert_int_ge(peer, 0);
    ft_endpoint_format((const struct sockaddr *)&address, text);
    ck_assert_msg(strncmp(text, begin, strlen(begin)) == 0, "'%s', not '%s'", text, begin);
    close(peer);
    close(fd);
}

/* The socket of an empty host is for both families: its peers are written as what they are. */
START_TEST(an_address_or_a_name_is_reached)
{
    uint16_t port;
    int listener = listen_at(":0", &port);

    loop = ft_loop_new();
    expect_peer(listener, reach("127.0.0.1", port, PATIENCE), "127.0.0.1:");
    close(listener);
    listener = listen_at("127.0.0.1:0", &port);
    /* Of the addresses of a name that one is taken which answers. */
    expect_peer(listener, reach("localhost", port, PATIENCE), "127.0.0.1:");
    close(listener);
    if ((listener = ft_endpoint_listen("[::1]:0", &port, error, sizeof(error))) >= 0) {
        expect_peer(listener, reach("::1", port, PATIENCE), "[::1]:");
        close(listener);
    }
    ft_loop_free(loop);
}
END_TEST

START_TEST(who_does_not_listen_refuses)
{
    uint16_t port;

    loop = ft_loop_new();
    close(listen_at("127.0.0.1:0", &port));
    ck_assert_int_eq(reach("127.0.0.1", port, PATIENCE), -ECONNREFUSED);
    ck_assert_str_eq(reason_given, strerror(ECONNREFUSED));
    ft_loop_free(loop);
}
END_TEST

/* Linux drops what begins a connection where nobody takes those there are. */
START_TEST(who_does_not_answer_costs_the_timeout)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fillers[8];

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(listener, 0), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    for (size_t i = 0; i < sizeof(fillers) / sizeof(fillers[0]); i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ck_assert_int_lt(connect(fillers[i], (struct sockaddr *)&address, len), 0);
        ck_assert_int_eq(errno, EINPROGRESS);
    }
    loop = ft_loop_new();
    ck_assert_int_eq(reach("127.0.0.1", ntohs(address.sin_port), 50 * MS), -ETIMEDOUT);
    ck_assert_str_eq(reason_given, strerror(ETIMEDOUT));
    ft_loop_free(loop);
    for (size_t i = 0; i < sizeof(fillers) / sizeof(fillers[0]); i++)
        close(fillers[i]);
    close(listener);
}
END_TEST

/* 64 characters are too many for a part of a name: nobody has to be asked. */
START_TEST(a_name_that_is_none_is_said)
{
    char name[65];

    memset(name, 'x', 64);
    name[64] = '\0';
    loop = ft_loop_new();
    ck_assert_int_eq(reach(name, 1, PATIENCE), -EHOSTUNREACH);
    ck_assert_msg(strstr(reason_given, "host name not found: ") == reason_given, "%s",
                  reason_given);
    ft_loop_free(loop);
}
END_TEST

static void give_up(void *arg)
{
    ft_connect_free(*(struct ft_connect **)arg);
    ft_loop_exit(loop, 0);
}

/* Whatever it does then: nothing, looking the name up in another thread, waiting for the peer. */
START_TEST(it_can_be_given_up_at_any_time)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    uint16_t port;
    int listener = listen_at("127.0.0.1:0", &port);

    for (size_t i = 0; i < 2; i++) {
        struct ft_connect *connect;
        struct ft_watch *once;

        loop = ft_loop_new();
        connect = ft_connect_new(loop, hosts[i], port, PATIENCE, done, NULL);
        ck_assert_ptr_nonnull(connect);
        ft_connect_free(connect);
        connect = ft_connect_new(loop, hosts[i], port, PATIENCE, done, NULL);
        once = ft_watch_once(loop, give_up, &connect);
        ft_watch_once_arm(once, 0);
        result = -1;
        ck_assert_int_eq(ft_loop_run(loop), 0);
        ck_assert_int_eq(result, -1);
        ft_watch_free(once);
        ft_loop_free(loop);
    }
    close(listener);
}
END_TEST

/* Lets so many more descriptors be opened. */
static void leave_descriptors(rlim_t count)
{
    int next = dup(0);
    struct rlimit limit;

    if (next >= 0)
        close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = count == RLIM_INFINITY ? limit.rlim_max : (rlim_t)next + count;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

START_TEST(without_descriptors_it_says_so)
{
    uint16_t port;

    loop = ft_loop_new();
    leave_descriptors(1);
    /* One is for the end of a look-up. */
    ck_assert_int_eq(reach("127.0.0.1", 1, PATIENCE), -EMFILE);
    ck_assert_str_eq(reason_given, strerror(EMFILE));
    leave_descriptors(0);
    ck_assert_ptr_null(ft_connect_new(loop, "127.0.0.1", 1, PATIENCE, done, NULL));
    ck_assert_int_eq(ft_endpoint_listen("127.0.0.1:0", &port, error, sizeof(error)), -EMFILE);
    ck_assert_str_eq(error, "cannot listen on '127.0.0.1:0': Too many open files");
    /* Sanitizers and coverage have files to open at the end. */
    leave_descriptors(RLIM_INFINITY);
    ft_loop_free(loop);
}
END_TEST

START_TEST(where_it_cannot_listen_it_says_why)
{
    uint16_t port = 7, taken;
    int listener = listen_at("127.0.0.1:0", &taken);
    char endpoint[64], expected[256];

    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", taken);
    ck_assert_int_eq(ft_endpoint_listen(endpoint, &port, error, sizeof(error)), -EADDRINUSE);
    snprintf(expected, sizeof(expected), "cannot listen on '%s': Address already in use", endpoint);
    ck_assert_str_eq(error, expected);
    /* TEST-NET-1 (RFC 5737): nobody's. */
    ck_assert_int_eq(ft_endpoint_listen("192.0.2.1:0", &port, error, sizeof(error)),
                     -EADDRNOTAVAIL);
    ck_assert_int_eq(ft_endpoint_listen("127.0.0.1", &port, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "'127.0.0.1' is not HOST:PORT");
    ck_assert_uint_eq(port, 7);
    close(listener);
}
END_TEST

FT_UNIT_MAIN("connect", an_address_or_a_name_is_reached, who_does_not_listen_refuses,
             who_does_not_answer_costs_the_timeout, a_name_that_is_none_is_said,
             it_can_be_given_up_at_any_time, without_descriptors_it_says_so,
             where_it_cannot_listen_it_says_why)

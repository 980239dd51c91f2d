// SPDX-License-Identifier: Apache-2.0
/*
 * The room for answers: who takes what he gets waits while others hold all of it, and is not cut
 * off.
 */
#include "config.h"

#include "lib/io/http.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/writer.h"
#include "lib/io/loop.h"
#include "tests/unit/unit.h"

#define SECOND     INT64_C(1000000000)
#define KIB        ((size_t)1 << 10)
#define ROOM       (4096 * KIB)
#define HELD       (3400 * KIB) /* by the first who holds, and by the second */
#define HELD_TOO   (500 * KIB)
#define PART       (300 * KIB) /* more than both leave */
#define PARTS      20
#define CONNECTION 16

static pid_t server;
static uint16_t port;
static char endpoint[32];

/* In the server. */
static unsigned asked;

static int nothing(void *arg, struct ft_writer *part)
{
    (void)arg;
    (void)part;
    usleep(100);
    return 1;
}

static void no_free(void *arg)
{
    (void)arg;
}

static int hold(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    const struct ft_http_slices slices = {nothing, no_free, NULL,
                                          ft_http_query(request, "too") ? HELD_TOO : HELD};

    (void)arg;
    (void)w;
    return ft_http_answer_slices(request, &slices) ? 503 : 200;
}

static int part_of(void *arg, struct ft_writer *part)
{
    unsigned *left = arg;
    uint8_t *bytes = ft_write_room(part, PART);

    if (bytes)
        memset(bytes, 'a' + (int)*left, PART);
    return --*left > 0;
}

static int good(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    static unsigned left = PARTS;
    const struct ft_http_slices slices = {part_of, no_free, &left, 100};

    (void)arg;
    (void)w;
    asked++;
    return ft_http_answer_slices(request, &slices) ? 503 : 200;
}

static int state(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    (void)arg;
    (void)request;
    ft_write_fmt(w, "%u", asked);
    return 200;
}

static void serve(int result)
{
    char error[256];
    struct ft_loop *loop = ft_loop_new();
    struct ft_http *http = ft_http_new(loop, "127.0.0.1:0", error, sizeof(error));
    uint16_t bound;

    if (!http || ft_http_route(http, "/hold", "text/plain", hold, NULL) ||
        ft_http_route(http, "/good", "text/plain", good, NULL) ||
        ft_http_route(http, "/state", "text/plain", state, NULL))
        _exit(1);
    ft_http_limit(http, CONNECTION, ROOM);
    ft_loop_on_signals(loop, NULL, NULL, NULL);
    bound = ft_http_port(http);
    if (write(result, &bound, sizeof(bound)) != sizeof(bound))
        _exit(1);
    ft_loop_run(loop);
    ft_http_free(http);
    ft_loop_free(loop);
    _exit(0);
}

static void start(void)
{
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    server = fork();
    if (server == 0)
        serve(fds[1]);
    ck_assert_int_eq(read(fds[0], &port, sizeof(port)), sizeof(port));
    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", port);
}

static void stop(void)
{
    int status;

    kill(server, SIGTERM);
    ck_assert_int_eq(waitpid(server, &status, 0), server);
    ck_assert_int_eq(status, 0);
}

static int asking(const char *target)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    char request[128];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), len;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    len = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n\r\n", target);
    ck_assert_int_eq(send(fd, request, (size_t)len, 0), len);
    return fd;
}

/* The head of an answer has come. */
static void answered(int fd, const char *first)
{
    char text[64];

    ck_assert_int_gt(recv(fd, text, sizeof(text), MSG_PEEK | MSG_WAITALL), (ssize_t)strlen(first));
    ck_assert_int_eq(memcmp(text, first, strlen(first)), 0);
}

START_TEST(who_reads_waits_for_room)
{
    struct ft_writer body;
    char error[256], bytes[16384];
    size_t got[256] = {0};
    int holders[2], fd;
    ssize_t n;

    start();
    holders[0] = asking("/hold");
    answered(holders[0], "HTTP/1.0 200 OK\r\n");
    holders[1] = asking("/hold?too=1");
    answered(holders[1], "HTTP/1.0 200 OK\r\n");
    /* A third large one is refused: what answers hold leaves room for their parts. */
    fd = asking("/hold?too=1");
    answered(fd, "HTTP/1.0 503 ");
    close(fd);
    fd = asking("/good");
    /* Its first step has been when another connection is answered. */
    ft_writer_init(&body, 100);
    do {
        ft_writer_reset(&body);
        ck_assert_int_eq(
            ft_http_get(endpoint, "/state", 60 * SECOND, -1, &body, error, sizeof(error)), 200);
    } while (body.len != 1 || body.bytes[0] != '1');
    ft_writer_free(&body);
    close(holders[0]);
    close(holders[1]);
    while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        for (ssize_t i = 0; i < n; i++)
            got[(uint8_t)bytes[i]]++;
    ck_assert_int_eq(n, 0);
    for (int left = 2; left <= PARTS; left++)
        ck_assert_uint_ge(got['a' + left], PART);
    close(fd);
    stop();
}
END_TEST

FT_UNIT_MAIN("http_room", who_reads_waits_for_room)

// SPDX-License-Identifier: Apache-2.0
/*
 * Answers that are made once for several: who joins gets all of it, who must not does not, and what
 * is kept for them is bounded.
 */
#include "config.h"

#include "lib/io/http/rendering.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/writer.h"
#include "lib/io/http/http_impl.h"
#include "lib/io/loop.h"
#include "tests/unit/unit.h"

#define SECOND     INT64_C(1000000000)
#define KIB        ((size_t)1 << 10)
#define ROOM       (16 * KIB * KIB)
#define LINE       100
#define PART_LINES 1000
#define CLIENTS    5
#define LONG_PARTS 300 /* 30 MB: more than all answers may have */

static pid_t server;
static int patience_s; /* of the server; 0: as it has it */
static uint16_t port;
static char endpoint[32];

/* In the server. */
static struct ft_http *http;
static uint64_t window;
static unsigned made, freed; /* answers */
static bool released;        /* those that wait for it come to their end */
static size_t most;          /* bytes that were kept */

/* Of each answer its own number is in each line. */
struct answer {
    unsigned number, part, parts;
    bool waits, fails;
};

static int more(void *arg, struct ft_writer *part)
{
    struct answer *a = arg;

    most = http->kept > most ? http->kept : most;
    if (a->waits && !released && a->part == a->parts / 2) {
        usleep(100);
        return 1;
    }
    if (a->fails && a->part == a->parts / 2)
        return -ESTALE;
    for (unsigned i = 0; i < PART_LINES; i++)
        ft_write_fmt(part, "%4u %94u\n", a->number, a->part * PART_LINES + i);
    return ++a->part < a->parts;
}

static void free_answer(void *arg)
{
    freed++;
    free(arg);
}

static int serve_answer(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct answer *a = calloc(1, sizeof(*a));
    const struct ft_http_slices slices = {more, free_answer, a, sizeof(*a)};

    (void)arg;
    (void)body;
    ck_assert_ptr_nonnull(a);
    if (ft_http_query(request, "tag") &&
        ft_http_tag(request, "%s-%u", ft_http_query(request, "tag"), (unsigned)window)) {
        free(a);
        return 304;
    }
    a->number = ++made;
    a->waits = ft_http_query(request, "wait") != NULL;
    a->fails = ft_http_query(request, "fail") != NULL;
    a->parts = ft_http_query(request, "long") ? LONG_PARTS : 10;
    return ft_http_answer_slices(request, &slices) ? 503 : 200;
}

static int release(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    (void)arg;
    (void)request;
    released = true;
    ft_write_str(body, "released");
    return 200;
}

static int close_window(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    (void)arg;
    (void)request;
    window++;
    ft_write_str(body, "closed");
    return 200;
}

static int state(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_http_stats stats;

    (void)arg;
    (void)request;
    ft_http_stats(http, &stats);
    ft_write_fmt(body, "made %u shared %u failed %u open %u, %s", made,
                 (unsigned)stats.answers_shared, (unsigned)stats.cut_off[FT_HTTP_CUT_FAILED],
                 made - freed, most > ROOM / 2 ? "too much is kept" : "bounded");
    return 200;
}

static uint64_t window_of(void *arg)
{
    (void)arg;
    return window;
}

static void serve(int result)
{
    char error[256];
    struct ft_loop *loop = ft_loop_new();
    uint16_t bound;

    http = ft_http_new(loop, "127.0.0.1:0", error, sizeof(error));
    if (!http || ft_http_route(http, "/answer", "text/plain", serve_answer, NULL) ||
        ft_http_route(http, "/release", "text/plain", release, NULL) ||
        ft_http_route(http, "/close", "text/plain", close_window, NULL) ||
        ft_http_route(http, "/state", "text/plain", state, NULL))
        _exit(1);
    ft_http_limit(http, 64, ROOM);
    ft_http_share(http, window_of, NULL);
    if (patience_s)
        ft_http_patience(http, patience_s);
    ft_loop_on_signals(loop, NULL, NULL, NULL);
    bound = ft_http_port(http);
    if (write(result, &bound, sizeof(bound)) != sizeof(bound))
        _exit(1);
    ft_loop_run(loop);
    ft_http_free(http);
    ft_loop_free(loop);
    _exit(made == freed && http ? 0 : 2);
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

static void expect(const char *target, const char *text)
{
    struct ft_writer body;
    char error[256];

    ft_writer_init(&body, 1000);
    ck_assert_int_eq(ft_http_get(endpoint, target, 60 * SECOND, -1, &body, error, sizeof(error)),
                     200);
    ft_write_u8(&body, '\0');
    ck_assert_str_eq((char *)body.bytes, text);
    ft_writer_free(&body);
}

static int asking(const char *target, const char *header, int buffer)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    char request[256];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), len;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (buffer)
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    len = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\nHost: localhost\r\n%s\r\n", target,
                   header);
    ck_assert_int_eq(send(fd, request, (size_t)len, 0), len);
    return fd;
}

static int ask(const char *target)
{
    return asking(target, "", 0);
}

/* The head has come, so that its rendering is known. */
static int answered(int fd)
{
    char text[16];

    ck_assert_int_eq(recv(fd, text, 15, MSG_PEEK | MSG_WAITALL), 15);
    ck_assert_int_eq(memcmp(text, "HTTP/1.0 200 OK", 15), 0);
    return fd;
}

/* All that comes until the end; the caller frees it. */
static char *take(int fd, size_t *len)
{
    size_t size = (size_t)40 << 20;
    char *text = malloc(size);
    ssize_t n;

    *len = 0;
    ck_assert_ptr_nonnull(text);
    while ((n = recv(fd, text + *len, size - 1 - *len, 0)) > 0)
        *len += (size_t)n;
    text[*len] = '\0';
    close(fd);
    return text;
}

/* Every line of answer number is there once, in order. */
static void expect_whole(int fd, unsigned number, unsigned parts)
{
    size_t len;
    char *text = take(fd, &len), *at = strstr(text, "\r\n\r\n");
    char line[LINE + 1];

    ck_assert_ptr_nonnull(at);
    at += 4;
    ck_assert_uint_eq(len - (size_t)(at - text), (size_t)LINE * PART_LINES * parts);
    for (unsigned i = 0; i < parts * PART_LINES; i++, at += LINE) {
        snprintf(line, sizeof(line), "%4u %94u\n", number, i);
        ck_assert_int_eq(memcmp(at, line, LINE), 0);
    }
    free(text);
}

START_TEST(who_asks_for_the_same_joins)
{
    int fds[CLIENTS], other;

    start();
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = answered(ask("/answer?wait=1"));
    other = answered(ask("/answer?wait=2"));
    expect("/release", "released");
    for (int i = 0; i < CLIENTS; i++)
        expect_whole(fds[i], 1, 10);
    expect_whole(other, 2, 10);
    expect("/state", "made 2 shared 4 failed 0 open 0, bounded");
    /* It is over, and what is without a tag may have changed. */
    expect_whole(ask("/answer?wait=1"), 3, 10);
    expect("/state", "made 3 shared 4 failed 0 open 0, bounded");
    stop();
}
END_TEST

START_TEST(of_another_window_is_another)
{
    int before, after;

    start();
    before = answered(ask("/answer?wait=1"));
    expect("/close", "closed");
    after = answered(ask("/answer?wait=1"));
    expect("/release", "released");
    expect_whole(before, 1, 10);
    expect_whole(after, 2, 10);
    expect("/state", "made 2 shared 0 failed 0 open 0, bounded");
    stop();
}
END_TEST

START_TEST(what_has_a_tag_is_kept_for_its_window)
{
    size_t len;
    char *text;

    start();
    expect_whole(ask("/answer?tag=a"), 1, 10);
    expect_whole(ask("/answer?tag=a"), 1, 10);
    text = take(asking("/answer?tag=a", "If-None-Match: W/\"a-0\"\r\n", 0), &len);
    ck_assert_int_eq(strncmp(text, "HTTP/1.0 304", 12), 0);
    free(text);
    expect("/state", "made 1 shared 2 failed 0 open 0, bounded");
    expect("/close", "closed");
    expect_whole(ask("/answer?tag=a"), 2, 10);
    expect("/state", "made 2 shared 2 failed 0 open 0, bounded");
    stop();
}
END_TEST

START_TEST(who_leaves_takes_nothing_from_others)
{
    int first, second;

    start();
    first = answered(ask("/answer?wait=1"));
    second = answered(ask("/answer?wait=1"));
    close(first);
    expect("/release", "released");
    expect_whole(second, 1, 10);
    first = answered(ask("/answer?long=1"));
    close(first);
    expect_whole(ask("/answer"), 3, 10);
    stop();
}
END_TEST

START_TEST(what_is_kept_is_bounded)
{
    int slow, fast;

    patience_s = 3;
    start();
    slow = answered(asking("/answer?long=1&wait=1", "", 4096));
    fast = answered(ask("/answer?long=1&wait=1"));
    expect("/release", "released");
    /* Who takes nothing is waited for, and cut off; the other gets all. */
    expect_whole(fast, 1, LONG_PARTS);
    close(slow);
    expect("/state", "made 1 shared 1 failed 0 open 0, bounded");
    stop();
}
END_TEST

START_TEST(all_know_of_one_that_cannot_be_made)
{
    size_t len;
    int fds[2];

    start();
    fds[0] = answered(ask("/answer?fail=1&wait=1"));
    fds[1] = answered(ask("/answer?fail=1&wait=1"));
    expect("/release", "released");
    for (int i = 0; i < 2; i++)
        free(take(fds[i], &len));
    expect("/state", "made 1 shared 1 failed 2 open 0, bounded");
    stop();
}
END_TEST

FT_UNIT_MAIN("http_rendering", who_asks_for_the_same_joins, of_another_window_is_another,
             what_has_a_tag_is_kept_for_its_window, who_leaves_takes_nothing_from_others,
             what_is_kept_is_bounded, all_know_of_one_that_cannot_be_made)

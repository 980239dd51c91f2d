// SPDX-License-Identifier: Apache-2.0
/*
 * The room for answers: who takes what he gets waits while others hold all of it, and is not cut
 * off; who takes nothing is, and why is counted. What waits for who takes nothing of a stream is
 * bounded in memory.
 */
#include "config.h"

#include "lib/io/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
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
#define ROOM       (32 * KIB * KIB)
#define FAT        (26 * KIB * KIB) /* an answer of which the kernel takes some MiB */
#define LEFT       (300 * KIB)      /* less than a part may have */
#define HELD_TOO   (26 * KIB * KIB)
#define PART       (300 * KIB)
#define PARTS      20
#define CONNECTION 16

static pid_t server;
static bool busy;      /* other work waits there */
static bool impatient; /* with its clients */
static uint16_t port;
static char endpoint[32];

/* In the server. */
static struct ft_http *http;
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
    size_t bytes = ft_http_query(request, "too") ? HELD_TOO : ft_http_room_left(&http->room) - LEFT;
    const struct ft_http_slices slices = {nothing, no_free, NULL, bytes};

    (void)arg;
    (void)w;
    return ft_http_answer_slices(request, &slices) ? 503 : 200;
}

static int fat(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    uint8_t *bytes = ft_write_room(w, FAT);

    (void)arg;
    (void)request;
    if (bytes)
        memset(bytes, 'f', FAT);
    return 200;
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

/* An answer whose first part is late by more than the server's patience with its clients. */
#define PATIENCE_S 1
#define LATE_NS    (3 * PATIENCE_S * SECOND)

static struct ft_mono late_since;

static int late_part(void *arg, struct ft_writer *part)
{
    (void)arg;
    if (ft_mono_since_ns(ft_mono_now(), late_since) < LATE_NS) {
        usleep(1000);
        return 1;
    }
    ft_write_str(part, "late\n");
    return 0;
}

static int late(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    const struct ft_http_slices slices = {late_part, no_free, NULL, 100};

    (void)arg;
    (void)w;
    late_since = ft_mono_now();
    return ft_http_answer_slices(request, &slices) ? 503 : 200;
}

static int broken_part(void *arg, struct ft_writer *part)
{
    (void)arg;
    ft_write_str(part, "half an answer");
    return -ESTALE;
}

static int broken(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    const struct ft_http_slices slices = {broken_part, no_free, NULL, 100};

    (void)arg;
    (void)w;
    return ft_http_answer_slices(request, &slices) ? 503 : 200;
}

static int cuts(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    struct ft_http_stats stats;

    (void)arg;
    (void)request;
    ft_http_stats(http, &stats);
    for (int i = 0; i < FT_HTTP_CUTS; i++)
        if (stats.cut_off[i])
            ft_write_fmt(w, "%s %u ", ft_http_cut_text((enum ft_http_cut)i),
                         (unsigned)stats.cut_off[i]);
    return 200;
}

/* Answers of parts of 2 ms, beside work that waits at each turn of the loop. */
#define CLIENTS  8
#define PART_NS  INT64_C(2000000)
#define A_CLIENT 10 /* parts */

static struct ft_watch *work;
static unsigned turns, turn_of_part, crowded, soon, parts, left_of[CLIENTS], client_count;
static struct ft_mono part_ended;
static int64_t part_took_ns;

static bool always(void *arg)
{
    (void)arg;
    return true;
}

static void on_work(void *arg)
{
    (void)arg;
    turns++;
    ft_watch_once_arm(work, 0);
}

/* Counts parts that came in one turn with another, and those before others had their time. */
static int slow_part(void *arg, struct ft_writer *part)
{
    struct ft_mono begin = ft_mono_now();
    unsigned *left = arg;

    crowded += parts > 0 && turns == turn_of_part;
    soon += parts > 0 && ft_mono_since_ns(begin, part_ended) < part_took_ns;
    turn_of_part = turns;
    parts++;
    while (ft_mono_since_ns(ft_mono_now(), begin) < PART_NS)
        ;
    ft_write_str(part, "part");
    part_ended = ft_mono_now();
    part_took_ns = ft_mono_since_ns(part_ended, begin);
    return --*left > 0;
}

static int slow(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    unsigned *left = &left_of[client_count++ % CLIENTS];
    const struct ft_http_slices slices = {slow_part, no_free, left, 100};

    (void)arg;
    (void)w;
    *left = A_CLIENT;
    return ft_http_answer_slices(request, &slices) ? 503 : 200;
}

static int turns_of(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    (void)arg;
    (void)request;
    ft_write_fmt(w, "%u parts, %u crowded, %u soon", parts, crowded, soon);
    return 200;
}

#define STREAMS 4
/* As daemon/memory.c has it: what may wait, and the connection. */
#define STREAM_BYTES (272 * KIB)
#define WAITING      (256 * KIB)

static struct ft_http_channel *channel;

static size_t memory_taken(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Sends messages of a length until the listeners are cut off: how much waited, and what memory it
 * took. */
static int drip(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    static char line[250000];
    size_t len = strtoul(ft_http_query(request, "bytes"), NULL, 10), before = memory_taken();
    size_t most = before, waits = 0;
    struct ft_http_channel_stats stats;

    (void)arg;
    memset(line, 'x', sizeof(line));
    ft_http_channel_stats(channel, &stats);
    while (stats.slow == 0 && stats.streams == STREAMS) {
        most = memory_taken() > most ? memory_taken() : most;
        ft_http_channel_send(channel, "drip", line, len, false);
        ft_http_channel_stats(channel, &stats);
        waits += stats.slow ? 0 : len;
    }
    /* A sanitizer's allocator does not count. */
    ft_write_fmt(w, "%zu %zu", waits, before ? most - before : waits * STREAMS);
    return 200;
}

static int state(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    (void)arg;
    (void)request;
    ft_write_fmt(w, "%u", asked);
    return 200;
}

static int left(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    (void)arg;
    (void)request;
    ft_write_fmt(w, "%zu", ft_http_room_left(&http->room));
    return 200;
}

static void serve(int result)
{
    char error[256];
    struct ft_loop *loop = ft_loop_new();
    uint16_t bound;

    http = ft_http_new(loop, "127.0.0.1:0", error, sizeof(error));
    if (!http || ft_http_route(http, "/fat", "text/plain", fat, NULL) ||
        ft_http_route(http, "/left", "text/plain", left, NULL) ||
        ft_http_route(http, "/late", "text/plain", late, NULL) ||
        ft_http_route(http, "/broken", "text/plain", broken, NULL) ||
        ft_http_route(http, "/cuts", "text/plain", cuts, NULL) ||
        ft_http_route(http, "/hold", "text/plain", hold, NULL) ||
        ft_http_route(http, "/good", "text/plain", good, NULL) ||
        ft_http_route(http, "/drip", "text/plain", drip, NULL) ||
        ft_http_route(http, "/slow", "text/plain", slow, NULL) ||
        ft_http_route(http, "/turns", "text/plain", turns_of, NULL) ||
        ft_http_route(http, "/state", "text/plain", state, NULL))
        _exit(1);
    channel = ft_http_channel_new(http, "/stream", STREAMS);
    ft_http_limit(http, CONNECTION, ROOM);
    if (impatient)
        ft_http_patience(http, PATIENCE_S);
    if (busy) {
        work = ft_watch_once(loop, on_work, NULL);
        ft_watch_once_arm(work, 0);
        ft_http_yield(http, always, NULL);
    }
    ft_loop_on_signals(loop, NULL, NULL, NULL);
    bound = ft_http_port(http);
    if (write(result, &bound, sizeof(bound)) != sizeof(bound))
        _exit(1);
    ft_loop_run(loop);
    ft_watch_free(work);
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

static int asking_slowly(const char *target, const char *version, int buffer)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    char request[128];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), len;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (buffer)
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    len = snprintf(request, sizeof(request), "GET %s HTTP/%s\r\nHost: localhost\r\n\r\n", target,
                   version);
    ck_assert_int_eq(send(fd, request, (size_t)len, 0), len);
    return fd;
}

static int asking(const char *target, const char *version)
{
    return asking_slowly(target, version, 0);
}

/* The head of an answer has come. */
static void answered(int fd, const char *first)
{
    char text[64];

    ck_assert_int_gt(recv(fd, text, sizeof(text), MSG_PEEK | MSG_WAITALL), (ssize_t)strlen(first));
    ck_assert_int_eq(memcmp(text, first, strlen(first)), 0);
}

/* All that comes until the end. */
static size_t take(int fd, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n;

    while ((n = recv(fd, text + len, size - 1 - len, 0)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    close(fd);
    return len;
}

static void get(const char *target, struct ft_writer *body)
{
    char error[256];

    ft_writer_init(body, 1000);
    ck_assert_int_eq(ft_http_get(endpoint, target, 60 * SECOND, -1, body, error, sizeof(error)),
                     200);
    ft_write_u8(body, '\0');
}

/* The kernel has taken of an answer what it takes. */
static void settled(void)
{
    char before[32] = "";
    struct ft_writer body;
    bool same;

    do {
        usleep(50000);
        get("/left", &body);
        same = strcmp(before, (char *)body.bytes) == 0;
        snprintf(before, sizeof(before), "%s", (char *)body.bytes);
        ft_writer_free(&body);
    } while (!same || strtoul(before, NULL, 10) == ROOM);
}

START_TEST(who_reads_waits_for_room)
{
    struct ft_writer body;
    char error[256], bytes[16384];
    size_t got[256] = {0};
    int holders[2], fd;
    ssize_t n;

    start();
    holders[0] = asking_slowly("/fat", "1.0", 4096);
    answered(holders[0], "HTTP/1.0 200 OK\r\n");
    settled();
    holders[1] = asking("/hold", "1.0");
    answered(holders[1], "HTTP/1.0 200 OK\r\n");
    /* What answers hold leaves room for a part of each: who would take it is refused. */
    fd = asking("/hold?too=1", "1.0");
    answered(fd, "HTTP/1.0 503 ");
    close(fd);
    fd = asking("/good", "1.0");
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

static void expect_cuts(const char *text)
{
    struct ft_writer body;

    for (;;) {
        get("/cuts", &body);
        if (body.len > 1)
            break;
        ft_writer_free(&body);
        usleep(10000);
    }
    ck_assert_str_eq((char *)body.bytes, text);
    ft_writer_free(&body);
}

/* The time that an answer is made in is not its reader's. */
START_TEST(who_waits_for_us_is_not_cut_off)
{
    char text[1000];

    impatient = true;
    start();
    impatient = false;
    take(asking("/late", "1.0"), text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "\r\n\r\nlate\n"));
    stop();
}
END_TEST

START_TEST(who_takes_nothing_is_cut_off_and_counted)
{
    int fd;

    impatient = true;
    start();
    impatient = false;
    fd = asking_slowly("/fat", "1.0", 4096);
    answered(fd, "HTTP/1.0 200 OK\r\n");
    expect_cuts("still 1 ");
    close(fd);
    stop();
}
END_TEST

START_TEST(what_cannot_be_made_is_cut_off_and_counted)
{
    char text[1000];

    start();
    take(asking("/broken", "1.0"), text, sizeof(text));
    ck_assert_ptr_null(strstr(text, "half"));
    expect_cuts("failed 1 ");
    stop();
}
END_TEST

/* However many ask: other work has its turn before each part, and half of the time. */
START_TEST(answers_go_behind_what_waits)
{
    char bytes[16384], expected[64];
    struct ft_writer body;
    int fds[CLIENTS];

    busy = true;
    start();
    busy = false;
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = asking("/slow", "1.0");
    for (int i = 0; i < CLIENTS; i++) {
        while (recv(fds[i], bytes, sizeof(bytes), 0) > 0)
            ;
        close(fds[i]);
    }
    get("/turns", &body);
    snprintf(expected, sizeof(expected), "%d parts, 0 crowded, 0 soon", CLIENTS * A_CLIENT);
    ck_assert_str_eq((char *)body.bytes, expected);
    ft_writer_free(&body);
    stop();
}
END_TEST

START_TEST(what_waits_for_a_stream_is_bounded)
{
    static const size_t lengths[] = {1, 40, 1000, 4096, 9000, 100000, 250000};
    struct ft_writer body;
    size_t waits, took;

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        char target[64];
        int fds[STREAMS];

        start();
        for (size_t k = 0; k < STREAMS; k++) {
            fds[k] = asking("/stream", k ? "1.1" : "1.0");
            answered(fds[k], k ? "HTTP/1.1 200" : "HTTP/1.0 200");
        }
        snprintf(target, sizeof(target), "/drip?bytes=%zu", lengths[i]);
        get(target, &body);
        ck_assert_int_eq(sscanf((char *)body.bytes, "%zu %zu", &waits, &took), 2);
        ft_writer_free(&body);
        /* Of one byte each, most of what waits is around them. */
        ck_assert_uint_ge(waits, lengths[i] < 40 ? WAITING / 40 : WAITING / 3);
        ck_assert_uint_ge(took, STREAMS * waits);
        ck_assert_uint_le(took, STREAMS * STREAM_BYTES);
        for (size_t k = 0; k < STREAMS; k++)
            close(fds[k]);
        stop();
    }
}
END_TEST

FT_UNIT_MAIN("http_room", who_reads_waits_for_room, who_waits_for_us_is_not_cut_off,
             who_takes_nothing_is_cut_off_and_counted, what_cannot_be_made_is_cut_off_and_counted,
             answers_go_behind_what_waits, what_waits_for_a_stream_is_bounded)

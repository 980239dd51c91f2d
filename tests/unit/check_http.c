// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define SECOND INT64_C(1000000000)
#define LARGE  (20 << 20)

static char endpoint[64], error[256];
static uint16_t port;
static pid_t server;
static struct ft_writer body;

static int echo(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    const char *flow = ft_http_query(request, "flow"), *absent = ft_http_query(request, "absent");

    ft_write_fmt(w, "%s|%s|%s", (const char *)arg, flow ? flow : "-", absent ? absent : "-");
    return flow && strcmp(flow, "bad") == 0 ? 400 : 200;
}

static int large(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    uint8_t *bytes = ft_write_room(w, LARGE);

    (void)arg;
    (void)request;
    for (size_t i = 0; bytes && i < LARGE; i++)
        bytes[i] = (uint8_t)(i % 251);
    return 200;
}

static int too_large(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    (void)arg;
    (void)request;
    ft_write_str(w, "half an answer");
    ft_write_room(w, FT_HTTP_BODY_BYTES_MAX);
    return 200;
}

/* Parts of 1000 lines each, some empty. */
struct parts {
    unsigned next, count;
};

static int more_lines(void *arg, struct ft_writer *part)
{
    struct parts *parts = arg;

    for (unsigned i = 0; parts->next % 3 != 1 && i < 1000; i++)
        ft_write_fmt(part, "line %u of part %u\n", i, parts->next);
    if (parts->next == 7 && parts->count == 8)
        return -EIO;
    return ++parts->next < parts->count;
}

static int slices(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    const char *count = ft_http_query(request, "parts");
    struct parts *parts = calloc(1, sizeof(*parts));
    struct ft_http_slices answer = {more_lines, free, parts, 100};

    (void)arg;
    parts->count = count ? (unsigned)atoi(count) : 1;
    if (ft_http_tag(request, "parts-%u", parts->count)) {
        free(parts);
        return 304;
    }
    if (ft_http_answer_slices(request, &answer)) {
        ft_write_str(w, "no place");
        return 503;
    }
    return 200;
}

static const uint8_t page_gzip[] = {
    /* "<p>hello</p>\n" */
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xb3,
    0x29, 0xb0, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xb7, 0xd1, 0x2f, 0xb0,
    0xe3, 0x02, 0x00, 0xe1, 0x2d, 0xb4, 0x43, 0x0d, 0x00, 0x00, 0x00,
};

static const struct ft_http_file files[] = {
    {"/page", "text/html; charset=utf-8", page_gzip, sizeof(page_gzip), 13, "abc"},
};

static struct ft_http_channel *channel;
static uint64_t reported;

static void tell(void *arg)
{
    char text[64];

    (void)arg;
    snprintf(text, sizeof(text), "{\"number\":%llu}", (unsigned long long)++reported);
    ft_http_channel_send(channel, "count", text, strlen(text), true);
}

static int streams(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    struct ft_http_channel_stats stats;

    (void)arg;
    (void)request;
    ft_http_channel_stats(channel, &stats);
    ft_write_fmt(w, "%u streams, %llu opened, %llu refused, %llu slow", stats.streams,
                 (unsigned long long)stats.opened, (unsigned long long)stats.refused,
                 (unsigned long long)stats.slow);
    return 200;
}

static int flood(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    static char line[200000];

    (void)arg;
    (void)request;
    (void)w;
    memset(line, 'x', sizeof(line));
    for (int i = 0; i < 100; i++)
        ft_http_channel_send(channel, "flood", line, sizeof(line), false);
    return 200;
}

static const char *token; /* that the server wants */

static void serve(int result)
{
    struct ft_loop *loop = ft_loop_new();
    struct ft_http *http = ft_http_new(loop, "127.0.0.1:0", error, sizeof(error));
    struct ft_watch *tick;
    uint16_t bound;

    if (!http || ft_http_route(http, "/echo", "application/json", echo, "arg") < 0 ||
        ft_http_route(http, "/", "text/html", echo, "root") < 0 ||
        ft_http_route(http, "/large", "application/octet-stream", large, NULL) < 0 ||
        ft_http_route(http, "/too-large", "text/plain", too_large, NULL) < 0 ||
        ft_http_route(http, "/slices", "text/plain", slices, NULL) < 0 ||
        ft_http_route(http, "/streams", "text/plain", streams, NULL) < 0 ||
        ft_http_route(http, "/flood", "text/plain", flood, NULL) < 0)
        _exit(1);
    ft_http_files(http, files, 1);
    if (ft_http_need_token(http, token) || ft_http_allow_origin(http, "https://ops.example.org") ||
        ft_http_route(http, "/healthz", "text/plain", echo, "well"))
        _exit(1);
    channel = ft_http_channel_new(http, "/stream", 2);
    tick = ft_watch_timer(loop, SECOND / 50, tell, NULL);
    if (!channel || !tick)
        _exit(1);
    ft_loop_on_signals(loop, NULL, NULL, NULL);
    bound = ft_http_port(http);
    if (write(result, &bound, sizeof(bound)) != sizeof(bound))
        _exit(1);
    ft_loop_run(loop);
    ft_watch_free(tick);
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
    ft_writer_init(&body, FT_HTTP_BODY_BYTES_MAX);
}

static void stop(void)
{
    int status;

    kill(server, SIGTERM);
    ck_assert_int_eq(waitpid(server, &status, 0), server);
    ck_assert_int_eq(status, 0);
    ft_writer_free(&body);
}

static int get(const char *target)
{
    ft_writer_reset(&body);
    error[0] = '\0';
    return ft_http_get(endpoint, target, 10 * SECOND, -1, &body, error, sizeof(error));
}

static void expect_body(const char *text)
{
    ck_assert_msg(body.len == strlen(text) && memcmp(body.bytes, text, body.len) == 0,
                  "'%.*s', not '%s'", (int)body.len, (const char *)body.bytes, text);
}

START_TEST(routes_and_queries)
{
    start();
    ck_assert_int_eq(get("/echo"), 200);
    expect_body("arg|-|-");
    ck_assert_int_eq(get("/echo?flow=10.0.1.1%3A49441-10.0.3.1&x=1"), 200);
    expect_body("arg|10.0.1.1:49441-10.0.3.1|-");
    ck_assert_int_eq(get("/echo?x&flow=a+b%26c"), 400);
    ck_assert_int_eq(get("/echo?x=&flow=a+b%26c"), 200);
    expect_body("arg|a b&c|-");
    ck_assert_int_eq(get("/echo?flow=bad"), 400);
    ck_assert_ptr_nonnull(memmem(body.bytes, body.len, "\"detail\":\"arg|bad|-\"", 20));
    ck_assert_int_eq(get("/"), 200);
    expect_body("root|-|-");
    ck_assert_int_eq(get("/none"), 404);
    ck_assert_int_eq(get("/echo/"), 404);
    stop();
}
END_TEST

START_TEST(large_bodies)
{
    start();
    ck_assert_int_eq(get("/large"), 200);
    ck_assert_uint_eq(body.len, LARGE);
    for (size_t i = 0; i < LARGE; i++)
        if (body.bytes[i] != i % 251)
            ck_abort_msg("byte %zu differs", i);
    ck_assert_int_eq(get("/too-large"), 503);
    ck_assert_ptr_nonnull(
        memmem(body.bytes, body.len, "\"detail\":\"the answer is too large\"", 34));
    ck_assert_int_eq(get("/echo"), 200);
    ft_writer_free(&body);
    ft_writer_init(&body, 100);
    ck_assert_int_eq(get("/large"), -EMSGSIZE);
    stop();
}
END_TEST

static int raw_connect(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr = {htonl(INADDR_LOOPBACK)},
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void raw_exchange(const char *request, const char *expected)
{
    char answer[2048];
    size_t len = 0;
    ssize_t n;
    int fd = raw_connect();

    ck_assert_int_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    while ((n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0)) > 0)
        len += (size_t)n;
    answer[len] = '\0';
    ck_assert_msg(strncmp(answer, expected, strlen(expected)) == 0, "'%s', not '%s'", answer,
                  expected);
    close(fd);
}

START_TEST(other_methods_are_refused)
{
    start();
    raw_exchange("POST /echo HTTP/1.0\r\nContent-Length: 1\r\n\r\nx", "HTTP/1.0 405 ");
    raw_exchange("DELETE /echo HTTP/1.0\r\n\r\n", "HTTP/1.0 405 ");
    raw_exchange("POST /none HTTP/1.0\r\n\r\n", "HTTP/1.0 404 ");
    raw_exchange("nonsense\r\n\r\n", "HTTP/1.1 400 ");
    ck_assert_int_eq(get("/echo"), 200);
    stop();
}
END_TEST

/* The whole answer to a request of HTTP/1.0. */
static char answer[4 << 20];
static size_t answer_len;

static void ask(const char *request)
{
    ssize_t n;
    int fd = raw_connect();

    answer_len = 0;
    ck_assert_int_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    while ((n = recv(fd, answer + answer_len, sizeof(answer) - 1 - answer_len, 0)) > 0)
        answer_len += (size_t)n;
    answer[answer_len] = '\0';
    close(fd);
}

#define HAS(text)   ck_assert_msg(strstr(answer, text), "no '%s' in '%.600s'", text, answer)
#define LACKS(text) ck_assert_msg(!strstr(answer, text), "'%s' in '%.600s'", text, answer)

START_TEST(heads_and_problems)
{
    start();
    ask("HEAD /echo HTTP/1.0\r\n\r\n");
    HAS("HTTP/1.0 200 OK\r\n");
    HAS("Content-Length: 7\r\n");
    ck_assert_str_eq(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
    ask("HEAD /slices?parts=2 HTTP/1.0\r\n\r\n");
    HAS("HTTP/1.0 200 OK\r\n");
    ck_assert_str_eq(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
    ask("GET /echo?flow=bad&absent=%22%0a%5c%ff HTTP/1.0\r\n\r\n");
    HAS("HTTP/1.0 400 Bad Request\r\n");
    HAS("Content-Type: application/problem+json\r\n");
    HAS("\r\n\r\n{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,"
        "\"detail\":\"arg|bad|\\\"\\\\\"}\n");
    /* Names in other scripts stay; half a character, and what controls a terminal, do not. */
    ask("GET /echo?flow=bad&absent=%c3%a9%e2%82%ac%f0%9f%98%80%1b%c2%9b%c2%a0%e2 HTTP/1.0\r\n\r\n");
    HAS("\"detail\":\"arg|bad|\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc2\xa0\"}\n");
    stop();
}
END_TEST

START_TEST(tags_spare_the_answer)
{
    char request[200], *tag;

    start();
    ask("GET /echo HTTP/1.0\r\n\r\n");
    tag = strstr(answer, "ETag: W/\"");
    ck_assert_ptr_nonnull(tag);
    snprintf(request, sizeof(request), "GET /echo HTTP/1.0\r\nIf-None-Match: \"x\", %.20s\r\n\r\n",
             tag + 6);
    ask(request);
    HAS("HTTP/1.0 304 Not Modified\r\n");
    LACKS("arg|-|-");
    snprintf(request + 4, sizeof(request) - 4, "%s",
             "/echo?flow=1 HTTP/1.0\r\nIf-None-Match: W/\"x\"\r\n\r\n");
    ask(request);
    HAS("arg|1|-");
    ask("GET /slices?parts=3 HTTP/1.0\r\nIf-None-Match: W/\"parts-3\"\r\n\r\n");
    HAS("HTTP/1.0 304 Not Modified\r\n");
    ask("GET /slices?parts=4 HTTP/1.0\r\nIf-None-Match: W/\"parts-3\"\r\n\r\n");
    HAS("HTTP/1.0 200 OK\r\n");
    stop();
}
END_TEST

/* What is packed must be what is not. */
static void check_packed(const char *plain, const char *gzip)
{
    char *expected, *unpacked = NULL;
    char file[] = "/tmp/check_http.XXXXXX", command[64];
    int fd = mkstemp(file);
    size_t len;
    FILE *out;

    ask(plain);
    LACKS("Content-Encoding");
    expected = strdup(strstr(answer, "\r\n\r\n") + 4);
    ask(gzip);
    HAS("Content-Encoding: gzip\r\n");
    HAS("Vary: Accept-Encoding\r\n");
    len = answer_len - (size_t)(strstr(answer, "\r\n\r\n") + 4 - answer);
    ck_assert_uint_lt(len, strlen(expected) + 20);
    ck_assert_int_eq(write(fd, answer + answer_len - len, len), len);
    snprintf(command, sizeof(command), "gzip -dc < %s", file);
    out = popen(command, "r");
    unpacked = calloc(1, strlen(expected) + 2);
    ck_assert_uint_eq(fread(unpacked, 1, strlen(expected) + 1, out), strlen(expected));
    ck_assert_str_eq(unpacked, expected);
    ck_assert_int_eq(pclose(out), 0);
    free(unpacked);
    free(expected);
    close(fd);
    unlink(file);
}

START_TEST(answers_in_slices_and_packed)
{
    start();
    ck_assert_int_eq(get("/slices?parts=5"), 200);
    ck_assert_uint_gt(body.len, 3 * 18000);
    ck_assert_int_eq(memcmp(body.bytes, "line 0 of part 0\n", 17), 0);
    ck_assert_int_eq(memcmp(body.bytes + body.len - 19, "line 999 of part 3\n", 19), 0);
    check_packed("GET /slices?parts=30 HTTP/1.0\r\n\r\n",
                 "GET /slices?parts=30 HTTP/1.0\r\nAccept-Encoding: br, gzip;q=0.5\r\n\r\n");
    ask("GET /slices?parts=2 HTTP/1.0\r\nAccept-Encoding: gzip;q=0, br\r\n\r\n");
    LACKS("Content-Encoding");
    /* Of HTTP/1.1 in chunks, whose end says that nothing is missing; one that fails has none. */
    ask("GET /slices?parts=7 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    ck_assert_str_eq(answer + answer_len - 7, "\r\n0\r\n\r\n");
    ask("GET /slices?parts=8 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    ck_assert_str_ne(answer + answer_len - 7, "\r\n0\r\n\r\n");
    /* A client that goes away in the middle is no trouble to others. */
    for (int i = 0; i < 20; i++) {
        static const char request[] = "GET /slices?parts=3000 HTTP/1.1\r\nHost: localhost\r\n\r\n";
        int fd = raw_connect();

        ck_assert_int_eq(send(fd, request, sizeof(request) - 1, 0), sizeof(request) - 1);
        ck_assert_int_gt(recv(fd, answer, 100, 0), 0);
        close(fd);
    }
    ck_assert_int_eq(get("/echo"), 200);
    stop();
}
END_TEST

START_TEST(embedded_files)
{
    start();
    ask("GET /page HTTP/1.0\r\n\r\n");
    HAS("\r\n\r\n<p>hello</p>\n");
    HAS("Content-Security-Policy: default-src 'self';");
    HAS("Content-Type: text/html; charset=utf-8\r\n");
    HAS("ETag: W/\"abc\"\r\n");
    ask("GET /page HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
    HAS("Content-Encoding: gzip\r\n");
    ck_assert_int_eq(memcmp(answer + answer_len - sizeof(page_gzip), page_gzip, sizeof(page_gzip)),
                     0);
    ask("GET /page HTTP/1.0\r\nIf-None-Match: \"abc\"\r\n\r\n");
    HAS("HTTP/1.0 304 Not Modified\r\n");
    ask("POST /page HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
    HAS("HTTP/1.0 405 ");
    stop();
}
END_TEST

START_TEST(tokens_and_origins)
{
    token = "0123456789abcdef";
    start();
    ask("GET /echo HTTP/1.0\r\n\r\n");
    HAS("HTTP/1.0 401 ");
    HAS("WWW-Authenticate: Bearer\r\n");
    LACKS("arg|");
    ask("GET /echo HTTP/1.0\r\nAuthorization: Bearer 0123456789abcdeF\r\n\r\n");
    HAS("HTTP/1.0 401 ");
    ask("GET /echo HTTP/1.0\r\nAuthorization: Bearer 0123456789abcde\r\n\r\n");
    HAS("HTTP/1.0 401 ");
    ask("GET /echo HTTP/1.0\r\nAuthorization: Basic 0123456789abcdef\r\n\r\n");
    HAS("HTTP/1.0 401 ");
    ask("GET /stream HTTP/1.0\r\n\r\n");
    HAS("HTTP/1.0 401 ");
    ask("GET /echo HTTP/1.0\r\nAuthorization: bearer 0123456789abcdef\r\n\r\n");
    HAS("HTTP/1.0 200 ");
    LACKS("Access-Control");
    ask("GET /echo HTTP/1.0\r\nOrigin: https://ops.example.org\r\n"
        "Authorization: Bearer 0123456789abcdef\r\n\r\n");
    HAS("Access-Control-Allow-Origin: https://ops.example.org\r\n");
    ask("GET /echo HTTP/1.0\r\nOrigin: https://ops.example.org.evil.example\r\n"
        "Authorization: Bearer 0123456789abcdef\r\n\r\n");
    HAS("HTTP/1.0 200 ");
    LACKS("Access-Control");
    ask("GET /healthz HTTP/1.0\r\n\r\n");
    HAS("HTTP/1.0 200 ");
    ask("GET /page HTTP/1.0\r\n\r\n");
    HAS("HTTP/1.0 200 ");
    stop();
}
END_TEST

static int open_stream(void)
{
    static const char request[] = "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fd = raw_connect();

    ck_assert_int_eq(send(fd, request, sizeof(request) - 1, 0), sizeof(request) - 1);
    return fd;
}

/* Reads until this text has come; false when the end comes first. */
static bool hears(int fd, const char *text)
{
    ssize_t n;

    answer_len = 0;
    do {
        n = recv(fd, answer + answer_len, sizeof(answer) - 1 - answer_len, 0);
        answer_len += n > 0 ? (size_t)n : 0;
        answer[answer_len] = '\0';
    } while (n > 0 && !strstr(answer, text));
    return n > 0;
}

static void expect_streams(const char *text)
{
    do
        ck_assert_int_eq(get("/streams"), 200);
    while (body.len < strlen(text) || memcmp(body.bytes, text, strlen(text)) != 0);
}

START_TEST(streams_of_events)
{
    int one, two;

    start();
    one = open_stream();
    ck_assert(hears(one, "\n\n"));
    HAS("Content-Type: text/event-stream\r\n");
    ck_assert(hears(one, "event: count\ndata: {\"number\":"));
    two = open_stream();
    ck_assert(hears(two, "event: count\n"));
    ask("GET /stream HTTP/1.0\r\n\r\n");
    HAS("HTTP/1.0 503 ");
    ask("GET /stream?x=1 HTTP/1.0\r\n\r\n");
    HAS("HTTP/1.0 400 ");
    close(two);
    expect_streams("1 streams, 2 opened, 1 refused, 0 slow");
    /* Who does not read is cut off, and the server goes on. */
    ck_assert_int_eq(get("/flood"), 200);
    expect_streams("0 streams, 2 opened, 1 refused, 1 slow");
    ck_assert(!hears(one, "never"));
    close(one);
    stop();
}
END_TEST

START_TEST(complaints_name_the_endpoint)
{
    char listen[64];
    struct ft_loop *loop = ft_loop_new();

    start();
    snprintf(listen, sizeof(listen), "127.0.0.1:%u", port);
    ck_assert_ptr_null(ft_http_new(loop, listen, error, sizeof(error)));
    ck_assert_msg(strstr(error, listen) && strstr(error, "in use"), "%s", error);
    stop();
    ck_assert_int_eq(get("/echo"), -ECONNREFUSED);
    ck_assert_msg(strstr(error, endpoint) && strstr(error, "Connection refused"), "%s", error);
    snprintf(endpoint, sizeof(endpoint), "fabrictrace.invalid:1");
    ck_assert_int_eq(get("/echo"), -EHOSTUNREACH);
    ck_assert_ptr_nonnull(strstr(error, endpoint));
    snprintf(endpoint, sizeof(endpoint), "nothing");
    ck_assert_int_eq(get("/echo"), -EINVAL);
    ft_loop_free(loop);
}
END_TEST

/* A server that says this and closes. */
static int get_from(const char *said)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ret;
    pid_t child;

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", ntohs(address.sin_port));
    child = fork();
    if (child == 0) {
        int fd = accept(listener, NULL, NULL);
        char request[1024];

        if (recv(fd, request, sizeof(request), 0) > 0 && said)
            send(fd, said, strlen(said), MSG_NOSIGNAL);
        if (!said)
            pause();
        _exit(0);
    }
    close(listener);
    ft_writer_init(&body, 1000);
    ret = ft_http_get(endpoint, "/", said ? 10 * SECOND : SECOND / 10, -1, &body, error,
                      sizeof(error));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ft_writer_free(&body);
    return ret;
}

START_TEST(answers_that_are_none)
{
    ck_assert_int_eq(get_from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab"), 200);
    ck_assert_int_eq(get_from("HTTP/1.1 503\r\n\r\n"), 503);
    ck_assert_int_eq(get_from("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"), -ENODATA);
    ck_assert_ptr_nonnull(strstr(error, "cut off"));
    ck_assert_int_eq(get_from("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nab"), -EBADMSG);
    ck_assert_int_eq(get_from("HTTP/1.1 200 OK\r\nContent-Le"), -ENODATA);
    ck_assert_int_eq(get_from("HTTP/1.1 20 OK\r\n\r\n"), -EBADMSG);
    ck_assert_int_eq(get_from("SSH-2.0-x\r\n\r\n"), -EBADMSG);
    ck_assert_int_eq(get_from(""), -ENODATA);
    ck_assert_int_eq(get_from(NULL), -ETIMEDOUT);
}
END_TEST

FT_UNIT_MAIN("http", routes_and_queries, large_bodies, other_methods_are_refused,
             heads_and_problems, tags_spare_the_answer, answers_in_slices_and_packed,
             embedded_files, streams_of_events, tokens_and_origins, complaints_name_the_endpoint,
             answers_that_are_none)

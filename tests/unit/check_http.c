// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
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

/* Answers that wait for another one, which would never come if they held up the loop. */
static bool echoed;

static int step(void *state, struct ft_writer *w)
{
    ft_write_str(w, *(int *)state == 0 ? "slice " : "");
    *(int *)state += 1;
    if (!echoed)
        return FT_HTTP_LATER;
    ft_write_str(w, "end");
    return 200;
}

static void drop(void *state)
{
    free(state);
}

static int sliced(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    (void)arg;
    ft_write_str(w, "begin ");
    return ft_http_slice(request, step, drop, calloc(1, sizeof(int)));
}

static int echo_and_end(void *arg, const struct ft_http_request *request, struct ft_writer *w)
{
    (void)request;
    (void)arg;
    echoed = true;
    ft_write_str(w, "echoed");
    return 200;
}

static void serve(int result)
{
    struct ft_loop *loop = ft_loop_new();
    struct ft_http *http = ft_http_new(loop, "127.0.0.1:0", error, sizeof(error));
    uint16_t bound;

    if (!http || ft_http_route(http, "/echo", "application/json", echo, "arg") < 0 ||
        ft_http_route(http, "/", "text/html", echo, "root") < 0 ||
        ft_http_route(http, "/sliced", "text/plain", sliced, NULL) < 0 ||
        ft_http_route(http, "/end", "text/plain", echo_and_end, NULL) < 0 ||
        ft_http_route(http, "/large", "application/octet-stream", large, NULL) < 0 ||
        ft_http_route(http, "/too-large", "text/plain", too_large, NULL) < 0)
        _exit(1);
    ft_loop_on_signals(loop, NULL, NULL, NULL);
    bound = ft_http_port(http);
    if (write(result, &bound, sizeof(bound)) != sizeof(bound))
        _exit(1);
    ft_loop_run(loop);
    echoed = true;
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
    expect_body("arg|bad|-");
    ck_assert_int_eq(get("/"), 200);
    expect_body("root|-|-");
    ck_assert_int_eq(get("/none"), 404);
    ck_assert_int_eq(get("/echo/"), 404);
    stop();
}
END_TEST

/* In another process, since a request waits for its answer. */
static pid_t get_sliced(void)
{
    pid_t child = fork();

    if (child)
        return child;
    _exit(get("/sliced") == 200 && body.len == 15 && memcmp(body.bytes, "begin slice end", 15) == 0
              ? 0
              : 1);
}

START_TEST(an_answer_in_slices_holds_nobody_up)
{
    pid_t children[3];
    int status;

    start();
    for (int i = 0; i < 3; i++)
        children[i] = get_sliced();
    ck_assert_int_eq(get("/echo"), 200);
    expect_body("arg|-|-");
    ck_assert_int_eq(get("/end"), 200);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_int_eq(get("/sliced"), 200);
    stop();
}
END_TEST

/* A client that goes, and a server that ends, while an answer is made. */
START_TEST(an_answer_in_slices_may_be_left)
{
    pid_t child;

    start();
    child = get_sliced();
    ck_assert_int_eq(get("/echo"), 200);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    child = get_sliced();
    ck_assert_int_eq(get("/echo"), 200);
    stop();
    waitpid(child, NULL, 0);
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
    expect_body("the answer is too large\n");
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
    raw_exchange("HEAD /echo HTTP/1.0\r\n\r\n", "HTTP/1.0 405 ");
    raw_exchange("POST /none HTTP/1.0\r\n\r\n", "HTTP/1.0 404 ");
    raw_exchange("nonsense\r\n\r\n", "HTTP/1.1 400 ");
    ck_assert_int_eq(get("/echo"), 200);
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
static int get_from(const char *answer)
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

        if (recv(fd, request, sizeof(request), 0) > 0 && answer)
            send(fd, answer, strlen(answer), MSG_NOSIGNAL);
        if (!answer)
            pause();
        _exit(0);
    }
    close(listener);
    ft_writer_init(&body, 1000);
    ret = ft_http_get(endpoint, "/", answer ? 10 * SECOND : SECOND / 10, -1, &body, error,
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
    ck_assert_int_eq(get_from("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(error, "cut off"));
    ck_assert_int_eq(get_from("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nab"), -EBADMSG);
    ck_assert_int_eq(get_from("HTTP/1.1 200 OK\r\nContent-Le"), -EBADMSG);
    ck_assert_int_eq(get_from("HTTP/1.1 20 OK\r\n\r\n"), -EBADMSG);
    ck_assert_int_eq(get_from("SSH-2.0-x\r\n\r\n"), -EBADMSG);
    ck_assert_int_eq(get_from(""), -EBADMSG);
    ck_assert_int_eq(get_from(NULL), -ETIMEDOUT);
}
END_TEST

FT_UNIT_MAIN("http", an_answer_in_slices_holds_nobody_up, an_answer_in_slices_may_be_left,
             routes_and_queries, large_bodies, other_methods_are_refused,
             complaints_name_the_endpoint, answers_that_are_none)

// SPDX-License-Identifier: Apache-2.0
/* Requests to the HTTP port: any bytes, over a connection of the loop, to a server as the programs
 * have it. Whatever comes, each answer is one of ours, a route is reached by its own path alone,
 * one that needs a token by nobody else, and the next client is served. */
#include "config.h"

#include "lib/io/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define TOKEN       "s3cret"
#define ORIGIN      "https://ops.example.org"
#define REPLY_BYTES (1 << 20)
#define SENT_BYTES  (64 << 10)
#define ROUNDS_MAX  10000

static struct ft_loop *loop;
static struct ft_http *open_port, *guarded;
static unsigned metrics, paths; /* calls of handlers */
static char reply[REPLY_BYTES + 1];

static int give_metrics(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    (void)arg;
    (void)request;
    metrics++;
    ft_write_str(body, "up 1\n");
    return 200;
}

/* A handler that asks for all that handlers may ask for. */
static int give_paths(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"flow", "state", NULL};
    const char *unknown = ft_http_unknown_query(request, names);
    const char *flow = ft_http_query(request, "flow");

    (void)arg;
    paths++;
    if (unknown) {
        ft_write_str(body, "unknown or twice: ");
        ft_write_str(body, unknown);
        return 400;
    }
    if (ft_http_tag(request, "%zu", flow ? strlen(flow) : 0))
        return 304;
    ft_write_str(body, flow ? flow : "none");
    return 200;
}

static struct ft_http *serve(void)
{
    char error[256];
    struct ft_http *http = ft_http_new(loop, "127.0.0.1:0", error, sizeof(error));

    ft_fuzz_assert(http && ft_http_route(http, "/metrics", "text/plain", give_metrics, NULL) == 0 &&
                       ft_http_route(http, "/api/v1/paths", "application/json", give_paths, NULL) ==
                           0 &&
                       ft_http_allow(http, "fabric.example.org") == 0 &&
                       ft_http_allow_origin(http, ORIGIN) == 0,
                   "a server");
    return http;
}

static void go_on(void)
{
    event_base_loop(ft_loop_base(loop), EVLOOP_NONBLOCK);
}

static bool ends_with(size_t len, const char *end)
{
    size_t n = strlen(end);

    return len >= n && memcmp(reply + len - n, end, n) == 0;
}

/* What a server answers: until it ends so, in 10 s at most; without an end as long as there is
 * more. */
static size_t ask(const struct ft_http *http, const uint8_t *bytes, size_t len, const char *end)
{
    const struct linger at_once = {.l_onoff = 1};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(ft_http_port(http)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), quiet = 0;
    size_t sent = 0, got = 0;
    struct pollfd more = {.fd = fd, .events = POLLIN};
    bool over = false;
    int waits = end ? 1000 : 0;

    ft_fuzz_assert(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0, "it accepts");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    for (int i = 0; quiet < 3 && !over; i++) {
        ssize_t n =
            sent < len ? send(fd, bytes + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

        ft_fuzz_assert(i < ROUNDS_MAX, "it ends");
        sent = n > 0 ? sent + (size_t)n : n < 0 && errno != EAGAIN ? len : sent;
        go_on();
        quiet = n > 0 ? 0 : quiet + 1;
        while (got < REPLY_BYTES &&
               (n = recv(fd, reply + got, REPLY_BYTES - got, MSG_DONTWAIT)) > 0) {
            got += (size_t)n;
            quiet = 0;
        }
        over = n == 0 && got < REPLY_BYTES;
        /* A busy kernel may bring it later. */
        if (quiet == 3 && waits > 0 && !ends_with(got, end)) {
            poll(&more, 1, 10);
            waits--;
            quiet = 2;
        }
    }
    close(fd);
    go_on();
    reply[got] = '\0';
    return got;
}

static bool has(const uint8_t *bytes, size_t len, const char *text)
{
    size_t n = strlen(text);

    for (size_t i = 0; i + n <= len; i++)
        if (strncasecmp((const char *)bytes + i, text, n) == 0)
            return true;
    return false;
}

static void check_well(struct ft_http *http)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
                                  "Authorization: Bearer " TOKEN "\r\n\r\n";
    size_t len = ask(http, (const uint8_t *)request, sizeof(request) - 1, "up 1\n");

    ft_fuzz_assert(strncmp(reply, "HTTP/1.1 200 ", 13) == 0 && ends_with(len, "up 1\n"),
                   "the next client is served");
}

static void check(struct ft_http *http, const uint8_t *bytes, size_t len, bool needs_token)
{
    size_t got;
    char *end;

    metrics = paths = 0;
    got = ask(http, bytes, len, NULL);
    ft_fuzz_assert(got == 0 || strncmp(reply, "HTTP/", 5) == 0, "an answer is HTTP");
    ft_fuzz_assert(metrics == 0 || has(bytes, len, "/metrics"), "a route by its path");
    ft_fuzz_assert(paths == 0 || has(bytes, len, "/api/v1/paths"), "a route by its path");
    if (needs_token)
        ft_fuzz_assert(metrics + paths == 0 || has(bytes, len, TOKEN), "only with the token");
    end = strstr(reply, "\r\n\r\n");
    if (end)
        *end = '\0';
    ft_fuzz_assert(!strstr(reply, "Allow-Origin: ") || has(bytes, len, ORIGIN),
                   "origins that may read are those that were named");
    check_well(http);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (!loop) {
        loop = ft_loop_new();
        open_port = serve();
        guarded = serve();
        ft_fuzz_assert(ft_http_need_token(guarded, TOKEN) == 0, "a token");
    }
    if (len > SENT_BYTES)
        return 0;
    check(open_port, bytes, len, false);
    check(guarded, bytes, len, true);
    return 0;
}

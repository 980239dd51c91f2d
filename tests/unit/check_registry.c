// SPDX-License-Identifier: Apache-2.0
/* A schema registry of our own, which refuses, is slow, sends garbage or too much. */
#include "config.h"

#include "lib/io/kafka/registry.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/io/kafka/registry_answer.h"
#include "tests/unit/unit.h"

#ifdef HAVE_CURL
#define REQUEST_BYTES 8192
#define ANSWERS       8
#define SUBJECT       "a.b-value"
#define HUGE_BYTES    (2u << 20)

/* What it answers to one request after the other, each on a connection of its own. */
struct fake {
    int fd;
    uint16_t port;
    pthread_t thread;
    const char *answers[ANSWERS]; /* NULL: nothing, as long as the client is there */
    atomic_uint taken;
    char requests[ANSWERS][REQUEST_BYTES];
};

static void read_request(int fd, char *request)
{
    size_t len = 0, more = 0;
    const char *end = NULL, *length;

    while (len < REQUEST_BYTES - 1 && (!end || len < more)) {
        ssize_t n = read(fd, request + len, REQUEST_BYTES - 1 - len);

        if (n <= 0)
            break;
        len += (size_t)n;
        request[len] = '\0';
        end = strstr(request, "\r\n\r\n");
        length = strstr(request, "Content-Length: ");
        if (end && length)
            more = (size_t)(end + 4 - request) + strtoul(length + 16, NULL, 10);
    }
}

static void write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        bytes += n;
        len -= (size_t)n;
    }
}

static void *serve(void *arg)
{
    struct fake *f = arg;
    unsigned i = 0;
    char byte;

    for (int fd = accept(f->fd, NULL, NULL); fd >= 0 && i < ANSWERS;
         fd = accept(f->fd, NULL, NULL)) {
        read_request(fd, f->requests[i]);
        atomic_store(&f->taken, i + 1);
        if (f->answers[i])
            write_all(fd, f->answers[i], strlen(f->answers[i]));
        else
            while (read(fd, &byte, 1) > 0)
                ;
        close(fd);
        i++;
    }
    return NULL;
}

static void listen_at(struct fake *f)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(a);

    f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a.sin_port = htons(f->port);
    ck_assert_int_eq(setsockopt(f->fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), 0);
    ck_assert_int_eq(bind(f->fd, (struct sockaddr *)&a, sizeof(a)), 0);
    ck_assert_int_eq(getsockname(f->fd, (struct sockaddr *)&a, &len), 0);
    f->port = ntohs(a.sin_port);
}

static void begin(struct fake *f)
{
    ck_assert_int_eq(listen(f->fd, 8), 0);
    ck_assert_int_eq(pthread_create(&f->thread, NULL, serve, f), 0);
}

static void end(struct fake *f)
{
    shutdown(f->fd, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    close(f->fd);
}

static char *answer(const char *status, const char *body)
{
    char *text;

    ck_assert_int_ge(asprintf(&text,
                              "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                              status, strlen(body), body),
                     0);
    return text;
}

struct rig {
    struct ft_loop *loop;
    struct ft_registry *registry;
    struct ft_watch *tick;
    unsigned ticks;
    bool (*until)(struct rig *rig);
    struct fake *fake;
};

static void look(void *arg)
{
    struct rig *r = arg;

    r->ticks++;
    if (r->until(r))
        ft_loop_exit(r->loop, 0);
}

static void open_rig(struct rig *r, struct fake *f, bool registers)
{
    struct ft_registry_config config = {.registers = registers,
                                        .http = {.user = "kate", .password = "a:b c"}};
    char url[64], error[256];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/api/", f->port);
    config.url = url;
    r->fake = f;
    r->loop = ft_loop_new();
    r->tick = ft_watch_timer(r->loop, 5000000, look, r);
    r->registry = ft_registry_new(r->loop, &config, error, sizeof(error));
    ck_assert_msg(r->registry, "%s", error);
}

static void run_until(struct rig *r, bool (*until)(struct rig *rig))
{
    r->until = until;
    ck_assert_int_eq(ft_loop_run(r->loop), 0);
}

static void close_rig(struct rig *r)
{
    ft_registry_free(r->registry);
    ft_watch_free(r->tick);
    ft_loop_free(r->loop);
}

static bool is_ready(struct rig *r)
{
    return ft_registry_ready(r->registry);
}

static bool has_failed(struct rig *r)
{
    return ft_registry_trouble(r->registry);
}

static bool is_asked(struct rig *r)
{
    return atomic_load(&r->fake->taken) > 0 && r->ticks > 20;
}

static void get_ids(bool registers)
{
    char *first = answer("200 OK", "{\"id\":7}"),
         *second = answer("200 OK", "{\"id\":2147483647,\"more\":[]}");
    struct fake f = {.answers = {first, second}};
    struct rig r = {.ticks = 0};
    struct ft_registry_stats stats;
    uint32_t id = 0;

    listen_at(&f);
    begin(&f);
    open_rig(&r, &f, registers);
    ck_assert_int_eq(ft_registry_add(r.registry, SUBJECT, "JSON", "{\"a\":\"\\\"\"}"), 0);
    ck_assert_int_eq(ft_registry_add(r.registry, "c-value", "PROTOBUF", "x\ny"), 0);
    ck_assert_int_eq(ft_registry_id(r.registry, SUBJECT, &id), -EAGAIN);
    ck_assert_int_eq(ft_registry_id(r.registry, "d-value", &id), -ENOENT);
    run_until(&r, is_ready);
    ck_assert_int_eq(ft_registry_id(r.registry, SUBJECT, &id), 0);
    ck_assert_uint_eq(id, 7);
    ck_assert_int_eq(ft_registry_id(r.registry, "c-value", &id), 0);
    ck_assert_uint_eq(id, 2147483647);
    ft_registry_stats(r.registry, &stats);
    ck_assert_uint_eq(stats.subjects, 2);
    ck_assert_uint_eq(stats.known, 2);
    ck_assert_uint_eq(stats.requests, 2);
    ck_assert_uint_eq(stats.failures, 0);
    ck_assert_ptr_null(ft_registry_trouble(r.registry));
    close_rig(&r);
    end(&f);
    ck_assert_ptr_eq(strstr(f.requests[0], registers ? "POST /api/subjects/a.b-value/versions HTTP"
                                                     : "POST /api/subjects/a.b-value HTTP"),
                     f.requests[0]);
    ck_assert_ptr_nonnull(strstr(f.requests[0], "Authorization: Basic a2F0ZTphOmIgYw==\r\n"));
    ck_assert_ptr_nonnull(strstr(
        f.requests[0], "{\"schemaType\":\"JSON\",\"schema\":\"{\\\"a\\\":\\\"\\\\\\\"\\\"}\"}"));
    ck_assert_ptr_nonnull(
        strstr(f.requests[1], "{\"schemaType\":\"PROTOBUF\",\"schema\":\"x\\ny\"}"));
    free(first);
    free(second);
}

START_TEST(each_subject_gets_its_id)
{
    get_ids(true);
    get_ids(false);
}
END_TEST

struct refusal {
    const char *status, *body, *said;
};

static void refuse_once(const struct refusal *c)
{

    char *bad = c->status ? answer(c->status, c->body) : strdup(c->body),
         *good = answer("200 OK", "{\"id\":7}");
    struct fake f = {.answers = {bad, good}};
    struct rig r = {.ticks = 0};
    struct ft_registry_stats stats;
    uint32_t id;

    listen_at(&f);
    begin(&f);
    open_rig(&r, &f, true);
    ck_assert_int_eq(ft_registry_add(r.registry, SUBJECT, "JSON", "{}"), 0);
    run_until(&r, has_failed);
    ck_assert_ptr_nonnull(strstr(ft_registry_trouble(r.registry), SUBJECT));
    ck_assert_msg(strstr(ft_registry_trouble(r.registry), c->said), "%s",
                  ft_registry_trouble(r.registry));
    ck_assert_int_eq(ft_registry_id(r.registry, SUBJECT, &id), -EAGAIN);
    run_until(&r, is_ready);
    ft_registry_stats(r.registry, &stats);
    ck_assert_uint_eq(stats.failures, 1);
    ck_assert_ptr_null(ft_registry_trouble(r.registry));
    close_rig(&r);
    end(&f);
    free(bad);
    free(good);
}

/* Whatever comes instead of an id, it is asked again. */
START_TEST(what_is_no_id_is_asked_again)
{
    static const struct refusal cases[] = {
        {"500 Oh", "", "status 500"},
        {"409 Conflict", "{\"error_code\":409,\"message\":\"not \\u001b compatible\"}",
         "status 409: not ? compatible"},
        {"200 OK", "<html>", "no id of a schema"},
        {"200 OK", "{\"id\":0}", "no id of a schema"},
        {"200 OK", "{\"id\":2147483648}", "no id of a schema"},
        {"200 OK", "{\"id\":\"7\"}", "no id of a schema"},
        {"302 Found", "", "status 302"},
        {NULL, "garbage\r\n\r\n", ""},
        {NULL, "", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refuse_once(&cases[i]);
}
END_TEST

static bool second_has_id(struct rig *r)
{
    uint32_t id;

    return ft_registry_id(r->registry, "c-value", &id) == 0;
}

/* A schema that the registry does not take keeps back no other. */
START_TEST(one_that_is_refused_holds_up_none)
{
    char *bad = answer("409 Conflict", "{\"error_code\":409,\"message\":\"not compatible\"}"),
         *good = answer("200 OK", "{\"id\":7}");
    struct fake f = {.answers = {bad, good, bad, bad}};
    struct rig r = {.ticks = 0};
    uint32_t id;

    listen_at(&f);
    begin(&f);
    open_rig(&r, &f, true);
    ck_assert_int_eq(ft_registry_add(r.registry, SUBJECT, "JSON", "{}"), 0);
    ck_assert_int_eq(ft_registry_add(r.registry, "c-value", "JSON", "{}"), 0);
    run_until(&r, has_failed);
    run_until(&r, second_has_id);
    ck_assert_int_eq(ft_registry_id(r.registry, SUBJECT, &id), -EAGAIN);
    ck_assert_ptr_nonnull(strstr(ft_registry_trouble(r.registry), SUBJECT "': status 409"));
    close_rig(&r);
    end(&f);
    ck_assert_ptr_nonnull(strstr(f.requests[1], "/subjects/c-value/versions"));
    free(bad);
    free(good);
}
END_TEST

START_TEST(too_much_is_not_read)
{
    char *body = malloc(HUGE_BYTES), *huge;
    struct fake f = {.fd = -1};
    struct rig r = {.ticks = 0};

    memset(body, ' ', HUGE_BYTES);
    body[HUGE_BYTES - 1] = '\0';
    huge = answer("200 OK", body);
    f.answers[0] = huge;
    listen_at(&f);
    begin(&f);
    open_rig(&r, &f, true);
    ck_assert_int_eq(ft_registry_add(r.registry, SUBJECT, "JSON", "{}"), 0);
    run_until(&r, has_failed);
    ck_assert_ptr_nonnull(strstr(ft_registry_trouble(r.registry), "too long"));
    close_rig(&r);
    end(&f);
    free(body);
    free(huge);
}
END_TEST

/* Nobody listens at first. */
START_TEST(it_may_come_later)
{
    char *good = answer("200 OK", "{\"id\":7}");
    struct fake f = {.answers = {good}};
    struct rig r = {.ticks = 0};

    listen_at(&f);
    open_rig(&r, &f, true);
    ck_assert_int_eq(ft_registry_add(r.registry, SUBJECT, "JSON", "{}"), 0);
    run_until(&r, has_failed);
    begin(&f);
    run_until(&r, is_ready);
    close_rig(&r);
    end(&f);
    free(good);
}
END_TEST

/* The loop goes on, and a request that is under way may be given up. */
START_TEST(nothing_waits_for_who_says_nothing)
{
    struct fake f = {.answers = {NULL}};
    struct rig r = {.ticks = 0};

    listen_at(&f);
    begin(&f);
    open_rig(&r, &f, true);
    ck_assert_int_eq(ft_registry_add(r.registry, SUBJECT, "JSON", "{}"), 0);
    run_until(&r, is_asked);
    ck_assert(!ft_registry_ready(r.registry));
    ck_assert_ptr_null(ft_registry_trouble(r.registry));
    close_rig(&r);
    end(&f);
}
END_TEST
#endif

START_TEST(an_answer_is_an_id_or_a_reason)
{
    char error[256];
    uint32_t id = 0;

    ck_assert_int_eq(ft_registry_answer_read(200, "{\"id\":1}", 8, &id, error, sizeof(error)), 0);
    ck_assert_uint_eq(id, 1);
    ck_assert_int_eq(
        ft_registry_answer_read(200, "{\"id\":9,\"id\":8}", 15, &id, error, sizeof(error)),
        -EBADMSG);
    ck_assert_int_eq(ft_registry_answer_read(204, NULL, 0, &id, error, sizeof(error)), -EBADMSG);
    ck_assert_int_eq(ft_registry_answer_read(401, "{\"message\":7}", 13, &id, error, sizeof(error)),
                     -EBADMSG);
    ck_assert_str_eq(error, "status 401");
    ck_assert_uint_eq(id, 1);
}
END_TEST

#ifdef HAVE_CURL
/* A spool may have records of many topic prefixes. */
START_TEST(there_is_room_for_many_and_no_more)
{
    char *first = answer("200 OK", "{\"id\":7}");
    struct fake f = {.answers = {first}};
    struct rig r = {.ticks = 0};
    struct ft_registry_stats stats;
    char subject[16];
    uint32_t id = 0;

    listen_at(&f);
    open_rig(&r, &f, true);
    for (int i = 0; i < 1024; i++) {
        snprintf(subject, sizeof(subject), "s%d", i);
        ck_assert_int_eq(ft_registry_add(r.registry, subject, "JSON", "{}"), 0);
    }
    ck_assert_int_eq(ft_registry_add(r.registry, "another", "JSON", "{}"), -ENOSPC);
    ck_assert_int_eq(ft_registry_id(r.registry, "s1023", &id), -EAGAIN);
    ck_assert_int_eq(ft_registry_id(r.registry, "another", &id), -ENOENT);
    ft_registry_stats(r.registry, &stats);
    ck_assert_uint_eq(stats.subjects, 1024);
    close_rig(&r);
    close(f.fd);
    free(first);
}
END_TEST

FT_UNIT_MAIN("registry", an_answer_is_an_id_or_a_reason, there_is_room_for_many_and_no_more,
             each_subject_gets_its_id, what_is_no_id_is_asked_again,
             one_that_is_refused_holds_up_none, too_much_is_not_read, it_may_come_later,
             nothing_waits_for_who_says_nothing)
#else
FT_UNIT_MAIN("registry", an_answer_is_an_id_or_a_reason)
#endif

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/publish.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

/* A sink that remembers what it got. */
struct fake {
    unsigned writes, empty, flushes, reopens;
    int stuck;
    char json[200];
};

static unsigned freed;

static void fake_write(void *self, const struct ft_published *out)
{
    struct fake *f = self;

    f->writes++;
    f->empty += out->json_len == 0;
    ck_assert_str_eq(out->schema, "fabrictrace.event.v1");
    ck_assert_uint_lt(out->json_len, sizeof(f->json));
    memcpy(f->json, out->json_len ? out->json : "", out->json_len);
    f->json[out->json_len] = '\0';
}

static int fake_flush(void *self, int64_t timeout_ns)
{
    ck_assert_int_eq(timeout_ns, 5);
    ((struct fake *)self)->flushes++;
    return ((struct fake *)self)->stuck;
}

static void fake_reopen(void *self)
{
    ((struct fake *)self)->reopens++;
}

static void fake_stats(void *self, struct ft_sink_stats *stats)
{
    *stats = (struct ft_sink_stats){.received = ((struct fake *)self)->writes};
}

static void fake_free(void *self)
{
    (void)self;
    freed++;
}

static struct ft_sink *sink(struct fake *f, const char *spec)
{
    struct ft_sink *s = malloc(sizeof(*s));

    ck_assert_ptr_nonnull(s);
    *s = (struct ft_sink){.name = "fake",
                          .spec = spec,
                          .write = fake_write,
                          .flush = fake_flush,
                          .reopen = fake_reopen,
                          .stats = fake_stats,
                          .free = fake_free,
                          .self = f};
    return s;
}

static void publish(struct ft_publisher *p, const char *message)
{
    Fabrictrace__Event event = FABRICTRACE__EVENT__INIT;
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    event.message = (char *)(uintptr_t)message;
    record.kind_case = FABRICTRACE__RECORD__KIND_EVENT;
    record.event = &event;
    ft_publisher_record(p, &record);
}

START_TEST(each_sink_gets_each_record)
{
    struct ft_publisher *p = ft_publisher_new();
    struct fake a = {0}, b = {0};
    struct ft_sink_stats stats;

    publish(p, "nobody listens");
    ck_assert_int_eq(ft_publisher_take(p, sink(&a, "fake:a")), 0);
    ck_assert_int_eq(ft_publisher_take(p, sink(&b, NULL)), 0);
    publish(p, "first");
    publish(p, "second");
    ck_assert_str_eq(a.json, "{\"schema\":\"fabrictrace.event.v1\",\"message\":\"second\"}");
    ck_assert_str_eq(b.json, a.json);
    ck_assert_uint_eq(ft_publisher_sinks(p), 2);
    ck_assert_str_eq(ft_publisher_sink(p, 1, &stats), "fake");
    ck_assert_uint_eq(stats.received, 2);
    ck_assert_str_eq(ft_publisher_spec(p, 0), "fake:a");
    ck_assert_str_eq(ft_publisher_spec(p, 1), "fake");
    ft_publisher_reopen(p);
    ck_assert_uint_eq(a.reopens + b.reopens, 2);
    ft_publisher_free(p);
    ck_assert_uint_eq(freed, 2);
}
END_TEST

/* Whoever counts what it loses has to see it. */
START_TEST(a_record_that_is_too_long_comes_empty)
{
    struct ft_publisher *p = ft_publisher_new();
    struct fake a = {0};
    char *text = malloc((2 << 20) + 1);

    ck_assert_ptr_nonnull(text);
    memset(text, 'x', 2 << 20);
    text[2 << 20] = '\0';
    ck_assert_int_eq(ft_publisher_take(p, sink(&a, NULL)), 0);
    publish(p, text);
    ck_assert_uint_eq(a.empty, 1);
    publish(p, "short");
    ck_assert_uint_eq(a.writes, 2);
    ck_assert_uint_eq(a.empty, 1);
    free(text);
    ft_publisher_free(p);
}
END_TEST

START_TEST(a_stuck_sink_holds_up_no_other)
{
    struct ft_publisher *p = ft_publisher_new();
    struct fake a = {0}, b = {.stuck = -ETIMEDOUT}, c = {.stuck = -EPIPE};
    const char *which = NULL;

    ck_assert_int_eq(ft_publisher_take(p, sink(&a, "fake:a")), 0);
    ck_assert_int_eq(ft_publisher_flush(p, 5, &which), 0);
    ck_assert_ptr_null(which);
    ck_assert_int_eq(ft_publisher_take(p, sink(&b, "fake:b")), 0);
    ck_assert_int_eq(ft_publisher_take(p, sink(&c, "fake:c")), 0);
    ck_assert_int_eq(ft_publisher_flush(p, 5, &which), -ETIMEDOUT);
    ck_assert_str_eq(which, "fake:b");
    ck_assert_uint_eq(a.flushes, 2);
    ck_assert_uint_eq(c.flushes, 1);
    ft_publisher_free(p);
}
END_TEST

START_TEST(a_sink_too_many_is_freed)
{
    struct ft_publisher *p = ft_publisher_new();
    struct fake f = {0};
    unsigned taken = 0;

    while (ft_publisher_take(p, sink(&f, NULL)) == 0)
        ck_assert_uint_lt(++taken, 100);
    ck_assert_uint_eq(freed, 1);
    ck_assert_uint_eq(ft_publisher_sinks(p), taken);
    ft_publisher_free(p);
    ck_assert_uint_eq(freed, taken + 1);
    ft_publisher_free(NULL);
}
END_TEST

FT_UNIT_MAIN("publish", each_sink_gets_each_record, a_record_that_is_too_long_comes_empty,
             a_stuck_sink_holds_up_no_other, a_sink_too_many_is_freed)

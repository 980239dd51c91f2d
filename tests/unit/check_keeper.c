// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/history/keeper.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/history_file.h"
#include "tests/unit/unit.h"

/* A daemon: what it publishes goes to its history, which is kept in a file. */
static struct ft_loop *loop;
static struct ft_sink *sink;
static struct ft_history *history;
static struct ft_events *events;
static struct ft_keeper *keeper;

static void on_event(void *arg, const Fabrictrace__Record *record)
{
    struct ft_published out = {
        .record = (Fabrictrace__Record *)(uintptr_t)record, .json = "{}", .json_len = 2};

    (void)arg;
    sink->write(sink->self, &out);
}

static void begin(const char *path)
{
    const struct ft_history_config config = {3600000, 1 << 20, 100, 7};

    loop = ft_loop_new();
    sink = ft_history_new(&config, &history);
    events = ft_events_new(100, &(struct ft_emitter){on_event, NULL});
    ck_assert(loop && sink && events);
    ft_history_watch(history, events);
    keeper = ft_keeper_new(loop, history, events, path);
    ck_assert_ptr_nonnull(keeper);
}

static void end(void)
{
    ft_keeper_finish(keeper);
    ft_keeper_free(keeper);
    ft_events_free(events);
    sink->free(sink->self);
    free(sink);
    ft_loop_free(loop);
}

static void raise_it(uint32_t window, const char *subject)
{
    Fabrictrace__Event e = FABRICTRACE__EVENT__INIT;

    e.has_kind = e.has_time_ms = e.has_since_ms = true;
    e.kind = FABRICTRACE__KIND__KIND_LINK_DOWN;
    e.subject = e.message = (char *)(uintptr_t)subject;
    e.time_ms = e.since_ms = 1000 * window;
    ft_events_raise(events, window, &e);
}

START_TEST(what_stands_outlives_the_daemon)
{
    char path[] = "/tmp/check_keeper.XXXXXX";
    struct ft_history_event kept;
    int fd = mkstemp(path);

    unlink(path);
    begin(path);
    raise_it(1, "leaf0/up0");
    raise_it(1, "leaf0/up1");
    raise_it(1, "leaf0/up2");
    ft_events_sweep(events, 1, 2000);
    raise_it(2, "leaf0/up0");
    raise_it(2, "leaf0/up1");
    ft_events_sweep(events, 2, 3000);
    end();

    /* Two of the three; one is seen again. */
    begin(path);
    ck_assert_uint_eq(ft_events_count(events), 2);
    ck_assert(ft_history_event(history, 1, &kept) && kept.stands);
    for (uint32_t i = 0; i < FT_EVENTS_INHERITED_WINDOWS; i++) {
        ck_assert_uint_eq(ft_events_count(events), 2);
        raise_it(100 + i, "leaf0/up1");
        ft_events_sweep(events, 100 + i, 200000);
    }
    ck_assert_uint_eq(ft_events_count(events), 1);
    ck_assert(ft_history_event(history, 1, &kept));
    ck_assert(!kept.stands && kept.over);
    ck_assert_int_eq(kept.begun_ms, 1000);
    ck_assert_int_eq(kept.over_ms, 200000);
    ck_assert(ft_history_event(history, 2, &kept));
    ck_assert(kept.stands && kept.begun_ms == 1000);
    end();

    /* Of the third that ended nothing is left to end, of the one that is over neither. */
    begin(path);
    ck_assert_uint_eq(ft_events_count(events), 1);
    ck_assert(!ft_history_event(history, 4, &kept));
    end();
    close(fd);
    unlink(path);
}
END_TEST

/* Also an upgrade after which its windows cannot be read. */
START_TEST(what_stands_outlives_the_version)
{
    char path[] = "/tmp/check_keeper.XXXXXX";
    struct ft_history_event kept;
    int fd = mkstemp(path);

    unlink(path);
    begin(path);
    raise_it(1, "leaf0/up0");
    end();
    history_file_change_version(path);
    begin(path);
    ck_assert_uint_eq(ft_events_count(events), 1);
    ck_assert(ft_history_event(history, 1, &kept) && kept.stands);
    end();
    close(fd);
    unlink(path);
}
END_TEST

FT_UNIT_MAIN("keeper", what_stands_outlives_the_version, what_stands_outlives_the_daemon)

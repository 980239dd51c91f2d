// SPDX-License-Identifier: Apache-2.0
/* A history's file that is read by a daemon with other limits, by another version, or whose clock
 * was set back: daemon/history/snapshot.h. */
#include "config.h"

#include "daemon/history/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/history_file.h"
#include "tests/unit/unit.h"

#define WINDOW_MS  10000
#define EVENTS_MAX 100

static struct ft_history *history;
static struct ft_sink *sink;
static struct ft_events *events;
static char path[] = "/tmp/check_snapshot.XXXXXX";
static char error[256];

static char *str(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void publish(void *arg, const Fabrictrace__Record *record)
{
    struct ft_published out = {.record = record, .json = "{}", .json_len = 2};

    (void)arg;
    sink->write(sink->self, &out);
}

static void begin(size_t bytes_max, size_t events_max)
{
    const struct ft_history_config config = {100 * WINDOW_MS, bytes_max, events_max, 7};

    sink = ft_history_new(&config, &history);
    events = ft_events_new(EVENTS_MAX, &(struct ft_emitter){publish, NULL});
    ck_assert(sink && events);
    ft_history_watch(history, events);
}

static void end(void)
{
    ft_events_free(events);
    sink->free(sink->self);
    free(sink);
}

static void put_link(int64_t window, unsigned i)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Link link = FABRICTRACE__LINK__INIT;
    char port[32];

    snprintf(port, sizeof(port), "Ethernet%u", i);
    link.has_window_start_ms = link.has_window_end_ms = true;
    link.window_start_ms = (uint64_t)(window * WINDOW_MS);
    link.window_end_ms = (uint64_t)((window + 1) * WINDOW_MS);
    link.switch_ = str("leaf1");
    link.port = port;
    link.has_bytes = true;
    link.bytes = UINT64_C(1000000000) + i;
    record.kind_case = FABRICTRACE__RECORD__KIND_LINK;
    record.link = &link;
    publish(NULL, &record);
}

static void put_window(int64_t window, unsigned links)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Imbalance i = FABRICTRACE__IMBALANCE__INIT;

    for (unsigned k = 0; k < links; k++)
        put_link(window, k);
    i.has_window_start_ms = i.has_window_end_ms = i.has_scope = true;
    i.window_start_ms = (uint64_t)(window * WINDOW_MS);
    i.window_end_ms = (uint64_t)((window + 1) * WINDOW_MS);
    i.scope = FABRICTRACE__SCOPE__SCOPE_FABRIC;
    i.name = str("lab");
    record.kind_case = FABRICTRACE__RECORD__KIND_IMBALANCE;
    record.imbalance = &i;
    publish(NULL, &record);
}

static Fabrictrace__Event event_of(const char *subject, int64_t window)
{
    Fabrictrace__Event event = FABRICTRACE__EVENT__INIT;

    event.has_time_ms = event.has_since_ms = event.has_kind = true;
    event.time_ms = (uint64_t)((window + 1) * WINDOW_MS);
    event.since_ms = (uint64_t)(window * WINDOW_MS);
    event.kind = FABRICTRACE__KIND__KIND_LINK_DOWN;
    event.subject = str(subject);
    return event;
}

/* Happenings from this window on, one a window. */
static void put_happenings(int64_t window, int count)
{
    for (int i = 0; i < count; i++) {
        Fabrictrace__Event event = event_of("flow", window + i);

        event.kind = FABRICTRACE__KIND__KIND_PATH_CHANGE;
        ft_events_once(events, &event);
    }
}

static void stand(const char *subject, int64_t window)
{
    Fabrictrace__Event event = event_of(subject, window);

    ft_events_raise(events, (uint32_t)window, &event);
}

static void save(void)
{
    struct ft_snapshot *s;
    int fd, rc;

    memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    s = ft_snapshot_new(history, path, error, sizeof(error));
    ck_assert_msg(s != NULL, "%s", error);
    while ((rc = ft_snapshot_step(s)) > 0)
        ;
    ck_assert_int_eq(rc, 0);
    ft_snapshot_free(s);
}

static size_t standing(void)
{
    struct ft_history_event e = {.number = 0};
    size_t n = 0;

    for (uint64_t at = 0; ft_history_event(history, at, &e); at = e.number + 1)
        n += e.stands;
    return n;
}

/* past_events_max or events_max was lowered: what is over, the oldest first, gives way. */
START_TEST(a_file_with_more_events_than_there_is_room_for)
{
    struct ft_history_event e;
    struct ft_history_stats stats;

    begin(1 << 20, EVENTS_MAX);
    put_window(1, 1);
    stand("leaf0/up0", 1);
    put_happenings(1, 50);
    stand("leaf0/up1", 60);
    put_window(60, 1);
    save();
    end();

    begin(1 << 20, 10);
    ck_assert_msg(ft_snapshot_load(history, path, error, sizeof(error)) == 0, "%s", error);
    ft_history_stats(history, &stats);
    ck_assert_uint_eq(stats.windows, 2);
    ck_assert_uint_eq(stats.events, 10);
    ck_assert_uint_eq(stats.events_dropped, 42);
    ck_assert_uint_eq(standing(), 2);
    ck_assert(ft_history_event(history, 1, &e) && e.stands);
    end();

    /* Even less than those that stand. */
    begin(1 << 20, 1);
    ck_assert_msg(ft_snapshot_load(history, path, error, sizeof(error)) == 0, "%s", error);
    ft_history_stats(history, &stats);
    ck_assert_uint_eq(stats.events, 1);
    ck_assert_uint_eq(stats.events_dropped, 51);
    end();
    unlink(path);
}
END_TEST

/* Windows take as much memory as before: where that is all there is, none goes. */
START_TEST(a_history_that_fills_its_memory)
{
    const size_t bytes_max = 1 << 20;
    struct ft_history_stats before, after;

    begin(bytes_max, EVENTS_MAX);
    for (int64_t w = 1; w <= 90; w++)
        put_window(w, 1500);
    ft_history_stats(history, &before);
    ck_assert_uint_gt(before.windows_dropped, 0);
    ck_assert_uint_gt(before.windows, 20);
    save();
    end();

    begin(bytes_max, EVENTS_MAX);
    ck_assert_msg(ft_snapshot_load(history, path, error, sizeof(error)) == 0, "%s", error);
    ft_history_stats(history, &after);
    ck_assert_uint_eq(after.windows_dropped, 0);
    ck_assert_uint_eq(after.windows, before.windows);
    ck_assert_uint_le(after.bytes, before.bytes);
    end();
    unlink(path);
}
END_TEST

/* After an upgrade: its windows cannot be read, but what stood is taken over. */
START_TEST(a_file_of_another_version)
{
    struct ft_history_window w;
    struct ft_history_event e;
    struct stat st;

    begin(1 << 20, EVENTS_MAX);
    for (int64_t i = 1; i <= 3; i++)
        put_window(i, 8);
    put_happenings(2, 1);
    stand("leaf0/up0", 3);
    save();
    end();
    history_file_change_version(path);

    begin(1 << 20, EVENTS_MAX);
    ck_assert_int_eq(ft_snapshot_load(history, path, error, sizeof(error)), -ESTALE);
    ck_assert_ptr_nonnull(strstr(error, "another version"));
    ck_assert(!ft_history_last(history, &w));
    ck_assert(ft_history_event(history, 1, &e) && !e.stands);
    ck_assert(ft_history_event(history, 2, &e) && e.stands);
    ck_assert_int_eq(e.begun_ms, 3 * WINDOW_MS);
    put_window(4, 8);
    ck_assert_uint_eq(standing(), 1);
    end();
    /* Cut short. */
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(truncate(path, st.st_size - 1), 0);
    begin(1 << 20, EVENTS_MAX);
    ck_assert_int_eq(ft_snapshot_load(history, path, error, sizeof(error)), -EBADMSG);
    ck_assert(!ft_history_event(history, 0, &e));
    end();
    unlink(path);
}
END_TEST

/* The clock was a day ahead, and is right again: windows of that day go with their age, and events
 * that are over stay as long as the windows that they are of. */
START_TEST(windows_of_a_clock_that_was_ahead)
{
    const int64_t day = 8640;
    struct ft_history_event e;
    struct ft_history_window w;
    struct ft_history_stats stats;

    begin(1 << 20, EVENTS_MAX);
    for (int64_t i = 1; i <= 5; i++)
        put_window(day + i, 8);
    put_happenings(day + 5, 1);
    save();
    for (int turn = 0; turn < 2; turn++) {
        for (int64_t i = 1; i <= 5; i++) {
            put_window(i, 8);
            put_happenings(i, 1);
        }
        ft_history_stats(history, &stats);
        ck_assert_uint_eq(stats.windows, 5);
        ck_assert(ft_history_window(history, 0, &w));
        ck_assert_int_eq(w.span.start_ms, WINDOW_MS);
        for (int64_t i = 1; i <= 5; i++) {
            ck_assert(ft_history_event(history, 1 + (uint64_t)i, &e));
            ck_assert_int_eq(e.over_ms, (i + 1) * WINDOW_MS);
        }
        end();
        begin(1 << 20, EVENTS_MAX);
        if (turn == 0)
            ck_assert_int_eq(ft_snapshot_load(history, path, error, sizeof(error)), 0);
    }
    end();
    unlink(path);
}
END_TEST

/* Set back by less than is kept: both stay. */
START_TEST(windows_of_a_clock_that_was_set_back)
{
    struct ft_history_event e;
    struct ft_history_stats stats;

    begin(1 << 20, EVENTS_MAX);
    for (int64_t i = 50; i <= 55; i++)
        put_window(i, 8);
    for (int64_t i = 20; i <= 25; i++) {
        put_happenings(i, 1);
        put_window(i, 8);
    }
    ft_history_stats(history, &stats);
    ck_assert_uint_eq(stats.windows, 12);
    ck_assert(ft_history_event(history, 0, &e));
    ck_assert_int_eq(e.over_ms, 21 * WINDOW_MS);
    end();
}
END_TEST

/* A contradiction between topology and LLDP stands, and the link that it is about is removed: both
 * are of one kind and subject. */
START_TEST(a_happening_beside_what_stands)
{
    struct ft_history_event e;
    Fabrictrace__Event happening = event_of("leaf0/up0", 2);

    begin(1 << 20, EVENTS_MAX);
    stand("leaf0/up0", 1);
    happening.since_ms = happening.time_ms;
    ft_events_once(events, &happening);
    ck_assert(ft_history_event(history, 1, &e) && e.stands);
    ck_assert(ft_history_event(history, 2, &e) && !e.stands && !e.over);
    stand("leaf0/up0", 2);
    ft_events_sweep(events, 3, 4 * WINDOW_MS);
    ck_assert(ft_history_event(history, 1, &e));
    ck_assert(!e.stands && e.over && e.begun_ms == WINDOW_MS && e.over_ms == 4 * WINDOW_MS);
    ck_assert(ft_history_event(history, 2, &e));
    ck_assert(!e.stands && !e.over && e.over_ms == (int64_t)happening.time_ms);
    ck_assert(!ft_history_event(history, 3, &e));
    end();
}
END_TEST

/* In place of libc's: what was on disk when the file got its name, and a disk that refuses. */
static off_t synced_bytes, renamed_bytes;
static int sync_error;

int fdatasync(int fd)
{
    struct stat st;

    errno = sync_error;
    if (sync_error)
        return -1;
    synced_bytes = fstat(fd, &st) == 0 ? st.st_size : -1;
    return 0;
}

int rename(const char *from, const char *to)
{
    struct stat st;

    renamed_bytes = stat(from, &st) == 0 ? st.st_size : -1;
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* A crash at any moment leaves the file of before or the new one, never an empty one. */
START_TEST(a_file_is_on_disk_before_it_has_its_name)
{
    struct ft_snapshot *s;
    struct stat st;
    int rc;

    synced_bytes = renamed_bytes = 0;
    begin(1 << 20, EVENTS_MAX);
    put_window(1, 8);
    save();
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_gt(st.st_size, 20);
    ck_assert_int_eq(renamed_bytes, st.st_size);
    ck_assert_int_eq(synced_bytes, st.st_size);
    /* What cannot be written does not take the place of what was. */
    sync_error = EIO;
    put_window(2, 100);
    s = ft_snapshot_new(history, path, error, sizeof(error));
    while ((rc = ft_snapshot_step(s)) > 0)
        ;
    ck_assert_int_eq(rc, -EIO);
    ft_snapshot_free(s);
    sync_error = 0;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, renamed_bytes);
    end();
    unlink(path);
}
END_TEST

FT_UNIT_MAIN("snapshot", a_file_is_on_disk_before_it_has_its_name, a_happening_beside_what_stands,
             windows_of_a_clock_that_was_ahead, windows_of_a_clock_that_was_set_back,
             a_file_of_another_version, a_history_that_fills_its_memory,
             a_file_with_more_events_than_there_is_room_for)

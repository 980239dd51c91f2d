// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/history/history.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/history/snapshot.h"
#include "proto/record.h"
#include "tests/unit/unit.h"

#define WINDOW_MS 10000
#define LINKS     8

static struct ft_history *history;
static struct ft_sink *sink;
static struct ft_writer text, again;
static char error[256];

static char *str(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void open_history(int64_t keep_ms, size_t bytes_max)
{
    const struct ft_history_config config = {keep_ms, bytes_max, 100, 7};

    sink = ft_history_new(&config, &history);
    ck_assert_ptr_nonnull(sink);
    ft_writer_init(&text, 1 << 20);
    ft_writer_init(&again, 1 << 20);
}

static void close_history(void)
{
    sink->free(sink->self);
    free(sink);
    ft_writer_free(&text);
    ft_writer_free(&again);
}

static void publish(Fabrictrace__Record *record)
{
    struct ft_published out = {.record = record, .json = "{}", .json_len = 2};

    sink->write(sink->self, &out);
}

static void put_link(int64_t window, unsigned i, uint64_t bytes)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Link link = FABRICTRACE__LINK__INIT;
    char port[32];

    snprintf(port, sizeof(port), "Ethernet%u", i);
    link.has_window_start_ms = link.has_window_end_ms = true;
    link.window_start_ms = (uint64_t)(window * WINDOW_MS);
    link.window_end_ms = (uint64_t)((window + 1) * WINDOW_MS);
    link.fabric = str("lab");
    link.switch_ = str("leaf1");
    link.port = port;
    link.group = str("leaf1/up");
    link.has_flows = link.has_bytes = link.has_speed_bps = link.has_utilization = true;
    link.flows = i;
    link.bytes = bytes;
    link.speed_bps = 100000000000;
    link.utilization = (double)bytes * 8 / 10 / 1e11;
    link.has_unexplained_bytes = i % 2;
    link.unexplained_bytes = -(int64_t)bytes;
    record.kind_case = FABRICTRACE__RECORD__KIND_LINK;
    record.link = &link;
    publish(&record);
}

static void put_fabric(int64_t window)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Imbalance i = FABRICTRACE__IMBALANCE__INIT;

    i.has_window_start_ms = i.has_window_end_ms = i.has_scope = true;
    i.window_start_ms = (uint64_t)(window * WINDOW_MS);
    i.window_end_ms = (uint64_t)((window + 1) * WINDOW_MS);
    i.scope = FABRICTRACE__SCOPE__SCOPE_FABRIC;
    i.name = str("lab");
    record.kind_case = FABRICTRACE__RECORD__KIND_IMBALANCE;
    record.imbalance = &i;
    publish(&record);
}

static void put_window(int64_t window)
{
    for (unsigned i = 0; i < LINKS; i++)
        put_link(window, i, (uint64_t)(1000 * window + i));
    put_fabric(window);
}

/* A figure of any size, and those where a rounding may go either way. */
static double figure(unsigned n)
{
    static const double special[] = {
        0,        1,       0.5,    0.1,     -0.25,   1e-4,     99999.95,
        999999.4, 9.99999, 1e-12,  1e300,   -1e-300, 123456.5, 0.0001234565,
        999999.5, 1234567, 84.375, 1.0 / 3, 2.0 / 3, INFINITY, NAN};
    double v;

    if (n < sizeof(special) / sizeof(special[0]))
        return special[n];
    v = (double)rand() / RAND_MAX * pow(10, rand() % 24 - 12);
    return rand() % 2 ? v : -v;
}

static void check_same(const Fabrictrace__Record *record)
{
    struct ft_writer fixed, row;
    struct ft_span span = ft_row_span(record);
    enum ft_row_kind kind = ft_row_kind_of(record);
    Fabrictrace__Record *back;

    ft_writer_init(&fixed, 1 << 16);
    ft_writer_init(&row, 1 << 10);
    ft_writer_init(&text, 1 << 16);
    ft_writer_init(&again, 1 << 16);
    ft_row_write_fixed(record, &fixed);
    ft_row_write(record, &row);
    ck_assert(ft_writer_ok(&fixed) && ft_writer_ok(&row));
    back = ft_row_read(kind, fixed.bytes, fixed.len, row.bytes, row.len, &span);
    ck_assert_ptr_nonnull(back);
    ck_assert_int_eq(ft_record_to_json(record, &text), 0);
    ck_assert_int_eq(ft_record_to_json(back, &again), 0);
    ck_assert_msg(text.len == again.len && memcmp(text.bytes, again.bytes, text.len) == 0,
                  "%.*s became %.*s", (int)text.len, text.bytes, (int)again.len, again.bytes);
    ft_record_free(back);
    /* What is cut short is no record, and nothing worse. */
    for (size_t n = 0; n < row.len; n++) {
        back = ft_row_read(kind, fixed.bytes, fixed.len, row.bytes, n, &span);
        ck_assert_ptr_null(back);
    }
    ft_writer_free(&fixed);
    ft_writer_free(&row);
    ft_writer_free(&text);
    ft_writer_free(&again);
}

START_TEST(rows_give_the_record_back)
{
    for (unsigned n = 0; n < 5000; n++) {
        Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
        Fabrictrace__Imbalance i = FABRICTRACE__IMBALANCE__INIT;
        Fabrictrace__Link l = FABRICTRACE__LINK__INIT;

        i.has_window_start_ms = i.has_window_end_ms = i.has_scope = i.has_verdict = true;
        i.window_end_ms = 10000;
        i.scope = FABRICTRACE__SCOPE__SCOPE_GROUP;
        i.verdict = (Fabrictrace__Verdict)(n % 5);
        i.name = str("leaf1/up");
        i.has_fim = i.has_p_value = i.has_bytes = i.has_cov = true;
        i.fim = figure(n);
        i.p_value = figure(n + 1);
        i.cov = figure(n + 2);
        i.bytes = (uint64_t)rand() << (n % 33);
        record.kind_case = FABRICTRACE__RECORD__KIND_IMBALANCE;
        record.imbalance = &i;
        check_same(&record);
        l.has_window_start_ms = l.has_window_end_ms = true;
        l.window_start_ms = 10000;
        l.window_end_ms = 20000;
        l.switch_ = str("leaf1");
        l.port = str("Ethernet1");
        l.has_unexplained_bytes = l.has_share = l.has_speed_bps = true;
        l.unexplained_bytes = n == 0 ? INT64_MIN : n == 1 ? INT64_MAX : rand() - RAND_MAX / 2;
        l.share = figure(n + 3);
        l.speed_bps = UINT64_MAX;
        l.has_pfc_in = n % 2;
        l.pfc_in = n;
        record.kind_case = FABRICTRACE__RECORD__KIND_LINK;
        record.link = &l;
        check_same(&record);
    }
}
END_TEST

/* How many records of a key, or of all, a window has. */
static size_t count(uint64_t number, enum ft_row_kind kind, const char *key)
{
    struct ft_history_cursor cursor;
    Fabrictrace__Record *record;
    size_t n = 0;

    ck_assert_int_eq(ft_history_open(history, number, kind, &cursor), 0);
    while (!ft_history_at_end(&cursor)) {
        size_t rows = 3; /* a slice */

        while ((record = ft_history_read(history, &cursor, key, &rows))) {
            n++;
            ft_record_free(record);
        }
    }
    ft_history_close(history, &cursor);
    return n;
}

START_TEST(windows_come_and_go)
{
    struct ft_history_window w;
    uint64_t number = 0;

    open_history(5 * WINDOW_MS, 1 << 20);
    ck_assert(!ft_history_last(history, &w));
    for (int64_t i = 100; i < 120; i++)
        put_window(i);
    ck_assert(ft_history_last(history, &w));
    ck_assert_int_eq(w.span.start_ms, 119 * WINDOW_MS);
    ck_assert_uint_eq(w.rows[FT_ROW_LINK], LINKS);
    ck_assert_uint_eq(w.rows[FT_ROW_IMBALANCE], 1);
    ck_assert(!w.partial);
    for (int64_t i = 115; i < 120; i++) {
        ck_assert(ft_history_window(history, number, &w));
        ck_assert_int_eq(w.span.start_ms, i * WINDOW_MS);
        number = w.number + 1;
    }
    ck_assert(!ft_history_window(history, number, &w));
    ck_assert(ft_history_at(history, 117 * WINDOW_MS, &w));
    ck_assert_int_eq(w.span.start_ms, 117 * WINDOW_MS);
    ck_assert(ft_history_at(history, 118 * WINDOW_MS - 1, &w));
    ck_assert_int_eq(w.span.start_ms, 117 * WINDOW_MS);
    ck_assert(!ft_history_at(history, 115 * WINDOW_MS - 1, &w));
    ck_assert(!ft_history_at(history, 120 * WINDOW_MS, &w));
    ck_assert_uint_eq(count(w.number, FT_ROW_LINK, NULL), LINKS);
    ck_assert_uint_eq(count(w.number, FT_ROW_LINK, "leaf1/Ethernet3"), 1);
    ck_assert_uint_eq(count(w.number, FT_ROW_LINK, "leaf1/Ethernet99"), 0);
    ck_assert_uint_eq(count(w.number, FT_ROW_IMBALANCE, "fabric/lab"), 1);
    close_history();
}
END_TEST

/* The daemon came in the middle of the first. */
START_TEST(the_first_window_is_partial)
{
    struct ft_history_window w;

    open_history(0, 1 << 20);
    put_window(1);
    ck_assert(ft_history_last(history, &w));
    ck_assert(w.partial);
    put_window(2);
    ck_assert(ft_history_last(history, &w));
    ck_assert(!w.partial);
    ck_assert_uint_eq(w.number, 2);
    ck_assert(ft_history_window(history, 0, &w));
    ck_assert_uint_eq(w.number, 2);
    close_history();
}
END_TEST

START_TEST(memory_is_bounded)
{
    struct ft_history_stats stats;
    struct ft_history_window w;

    open_history(1000 * WINDOW_MS, 64 << 10);
    for (int64_t i = 0; i < 1000; i++) {
        put_window(i);
        ft_history_stats(history, &stats);
        ck_assert_uint_le(stats.bytes, 64 << 10);
    }
    ck_assert_uint_gt(stats.windows, 20);
    ck_assert_uint_eq(stats.windows + stats.windows_dropped, 1000);
    ck_assert_uint_eq(stats.rows, stats.windows * (LINKS + 1));
    /* Names are kept once. */
    ck_assert_uint_eq(stats.fixed, LINKS + 1);
    /* A window that alone is too large is cut, and says so. */
    for (unsigned i = 0; i < 20000; i++)
        put_link(1000, i, i);
    put_fabric(1000);
    ft_history_stats(history, &stats);
    ck_assert_uint_le(stats.bytes, 64 << 10);
    ck_assert_uint_gt(stats.rows_dropped, 1000);
    ck_assert(ft_history_last(history, &w));
    ck_assert(w.partial);
    close_history();
}
END_TEST

START_TEST(who_reads_a_window_keeps_it)
{
    struct ft_history_cursor cursor;
    struct ft_history_window w;
    struct ft_history_stats stats;
    Fabrictrace__Record *record;
    size_t rows = 1000, n = 0;

    open_history(0, 1 << 20);
    put_window(1);
    ck_assert(ft_history_last(history, &w));
    ck_assert_int_eq(ft_history_open(history, w.number, FT_ROW_LINK, &cursor), 0);
    record = ft_history_read(history, &cursor, NULL, &rows);
    ck_assert_str_eq(record->link->port, "Ethernet0");
    ft_record_free(record);
    for (int64_t i = 2; i < 10; i++)
        for (unsigned k = 0; k < LINKS; k++)
            put_link(i, 100 + (unsigned)i * LINKS + k, 1);
    put_fabric(10);
    while ((record = ft_history_read(history, &cursor, NULL, &rows))) {
        char port[32];

        snprintf(port, sizeof(port), "Ethernet%zu", ++n);
        ck_assert_str_eq(record->link->port, port);
        ck_assert_uint_eq(record->link->window_start_ms, WINDOW_MS);
        ft_record_free(record);
    }
    ck_assert_uint_eq(n, LINKS - 1);
    ft_history_close(history, &cursor);
    ft_history_stats(history, &stats);
    ck_assert_uint_eq(stats.fixed, 1);
    close_history();
}
END_TEST

static struct ft_events *events;

static void on_event(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    publish((Fabrictrace__Record *)(uintptr_t)record);
}

static Fabrictrace__Event event_of(Fabrictrace__Kind kind, const char *subject, int64_t window)
{
    Fabrictrace__Event event = FABRICTRACE__EVENT__INIT;

    event.has_time_ms = event.has_since_ms = event.has_kind = true;
    event.time_ms = (uint64_t)((window + 1) * WINDOW_MS);
    event.since_ms = (uint64_t)(window * WINDOW_MS);
    event.kind = kind;
    event.subject = str(subject);
    return event;
}

static size_t stood_at(int64_t window)
{
    const struct ft_span span = {window * WINDOW_MS, (window + 1) * WINDOW_MS};
    struct ft_history_event event = {.number = 0};
    size_t n = 0;

    for (uint64_t at = 0; ft_history_event(history, at, &event); at = event.number + 1)
        n += ft_history_stood(&event, &span);
    return n;
}

START_TEST(events_stand_in_their_windows)
{
    const struct ft_emitter emitter = {on_event, NULL};
    struct ft_history_event kept;
    struct ft_history_stats stats;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    Fabrictrace__Event event, *begun;
    char *port = str("Ethernet2");

    open_history(100 * WINDOW_MS, 1 << 20);
    events = ft_events_new(100, &emitter);
    ft_history_watch(history, events);
    for (int64_t w = 1; w < 20; w++) {
        if (w >= 5 && w < 8) {
            event = event_of(FABRICTRACE__KIND__KIND_COLLISION, "leaf1/Ethernet1", w);
            ft_events_raise(events, (uint32_t)w, &event);
        }
        if (w >= 7) {
            event = event_of(FABRICTRACE__KIND__KIND_COLLISION, "leaf1/Ethernet2", w);
            evidence.idle_ports = &port;
            evidence.n_idle_ports = w >= 9;
            event.evidence = &evidence;
            ft_events_raise(events, (uint32_t)w, &event);
        }
        if (w == 10) {
            event = event_of(FABRICTRACE__KIND__KIND_PATH_CHANGE, "flow", w);
            event.time_ms = (uint64_t)(w * WINDOW_MS + 5);
            ft_events_once(events, &event);
        }
        ft_events_sweep(events, (uint32_t)w, (w + 1) * WINDOW_MS);
        put_window(w);
    }
    for (int64_t w = 1; w < 20; w++)
        ck_assert_uint_eq(stood_at(w), (w >= 5 && w < 8) + (w >= 7) + (w == 10));
    ck_assert(ft_history_event(history, 1, &kept));
    ck_assert(!kept.stands && kept.over);
    ck_assert(ft_history_event(history, 2, &kept));
    ck_assert(kept.stands && !kept.over);
    /* It came to name links without flows: the same event, by what it said last. */
    begun = fabrictrace__event__unpack(NULL, kept.begun_len, kept.begun);
    ck_assert_uint_eq(begun->evidence->n_idle_ports, 1);
    ck_assert_uint_eq(begun->since_ms, 7 * WINDOW_MS);
    fabrictrace__event__free_unpacked(begun, NULL);
    ck_assert(ft_history_event(history, 3, &kept));
    ck_assert(!kept.stands && !kept.over);
    ck_assert(!ft_history_event(history, 4, &kept));
    /* What is over goes with its windows, what stands stays. */
    for (int64_t w = 20; w < 200; w++) {
        event = event_of(FABRICTRACE__KIND__KIND_COLLISION, "leaf1/Ethernet2", w);
        ft_events_raise(events, (uint32_t)w, &event);
        put_window(w);
    }
    ft_history_stats(history, &stats);
    ck_assert_uint_eq(stats.events, 1);
    ck_assert_uint_eq(stood_at(150), 1);
    /* No more than there is room for; the oldest that is over gives way. */
    for (int64_t i = 0; i < 500; i++) {
        event = event_of(FABRICTRACE__KIND__KIND_PATH_CHANGE, "flow", 199);
        ft_events_once(events, &event);
    }
    ft_history_stats(history, &stats);
    ck_assert_uint_eq(stats.events, 100);
    ck_assert_uint_eq(stats.events_dropped, 401);
    ck_assert_uint_eq(stood_at(150), 1);
    ft_events_free(events);
    close_history();
}
END_TEST

/* A storm of events takes no window away. */
START_TEST(events_leave_room_for_windows)
{
    const struct ft_history_config config = {100 * WINDOW_MS, 1 << 20, 100000, 7};
    struct ft_history_stats stats;
    char message[2000];

    sink = ft_history_new(&config, &history);
    ck_assert_ptr_nonnull(sink);
    memset(message, 'x', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    for (int64_t w = 1; w <= 10; w++)
        put_window(w);
    for (int i = 0; i < 5000; i++) {
        Fabrictrace__Event event = event_of(FABRICTRACE__KIND__KIND_PATH_CHANGE, "flow", 10);
        Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

        event.message = message;
        record.kind_case = FABRICTRACE__RECORD__KIND_EVENT;
        record.event = &event;
        publish(&record);
    }
    put_window(11);
    ft_history_stats(history, &stats);
    ck_assert_uint_eq(stats.windows, 11);
    ck_assert_uint_le(stats.bytes, 1 << 20);
    ck_assert_uint_gt(stats.events, 50);
    ck_assert_uint_eq(stats.events + stats.events_dropped, 5000);
    sink->free(sink->self);
    free(sink);
}
END_TEST

/* All that a history answers, as text. */
static char *dump(void)
{
    struct ft_history_window w = {.number = 0};
    struct ft_history_event e = {.number = 0};
    struct ft_writer all;

    ft_writer_init(&all, 16 << 20);
    for (uint64_t n = 0; ft_history_window(history, n, &w); n = w.number + 1) {
        ft_write_fmt(&all, "%lld %d\n", (long long)w.span.start_ms, w.partial);
        for (int k = 0; k < FT_ROW_KINDS; k++) {
            struct ft_history_cursor cursor;
            Fabrictrace__Record *record;
            size_t rows = SIZE_MAX;

            ck_assert_int_eq(ft_history_open(history, w.number, (enum ft_row_kind)k, &cursor), 0);
            while ((record = ft_history_read(history, &cursor, NULL, &rows))) {
                ft_record_to_json(record, &all);
                ft_write_u8(&all, '\n');
                ft_record_free(record);
            }
            ft_history_close(history, &cursor);
        }
    }
    for (uint64_t n = 0; ft_history_event(history, n, &e); n = e.number + 1)
        ft_write_fmt(&all, "%lld %zu\n", (long long)e.begun_ms, e.begun_len);
    ft_write_u8(&all, 0);
    ck_assert(ft_writer_ok(&all));
    return (char *)all.bytes;
}

static void reopen(void)
{
    close_history();
    open_history(100 * WINDOW_MS, 1 << 20);
}

static void save(const char *path)
{
    struct ft_snapshot *s = ft_snapshot_new(history, path, error, sizeof(error));
    int rc;

    ck_assert_msg(s != NULL, "%s", error);
    /* Windows that close meanwhile, and those that are forgotten, are no trouble. */
    for (int64_t w = 1000; (rc = ft_snapshot_step(s)) > 0; w++)
        put_window(w);
    ck_assert_int_eq(rc, 0);
    ft_snapshot_free(s);
}

START_TEST(a_snapshot_gives_it_back)
{
    const struct ft_emitter emitter = {on_event, NULL};
    char path[] = "/tmp/check_history.XXXXXX", *before, *after;
    int fd = mkstemp(path);
    struct ft_history_window w;
    Fabrictrace__Event event;
    struct stat st;
    uint8_t *bytes;

    open_history(100 * WINDOW_MS, 1 << 20);
    events = ft_events_new(100, &emitter);
    ft_history_watch(history, events);
    for (int64_t i = 1; i < 20; i++) {
        event = event_of(FABRICTRACE__KIND__KIND_COLLISION, "leaf1/Ethernet1", i);
        if (i > 5)
            ft_events_raise(events, (uint32_t)i, &event);
        put_window(i);
    }
    ft_events_free(events);
    ft_history_watch(history, NULL);
    before = dump();
    save(path);
    reopen();
    ck_assert_msg(ft_snapshot_load(history, path, error, sizeof(error)) == 0, "%s", error);
    after = dump();
    ck_assert_str_eq(before, after);
    /* It stood, as far as anybody knows, until the last window's end. */
    ck_assert_uint_eq(stood_at(10), 1);
    ck_assert(ft_history_at(history, 10 * WINDOW_MS, &w));
    ck_assert_uint_eq(count(w.number, FT_ROW_LINK, "leaf1/Ethernet3"), 1);
    /* And it goes on. */
    put_window(20);
    ck_assert(ft_history_last(history, &w));
    ck_assert_int_eq(w.span.start_ms, 20 * WINDOW_MS);
    /* Cut short, or changed anywhere: told, and nothing is left of it. */
    ck_assert_int_eq(fstat(open(path, O_RDONLY), &st), 0);
    bytes = malloc((size_t)st.st_size);
    close(fd);
    fd = open(path, O_RDWR);
    ck_assert_int_eq(read(fd, bytes, (size_t)st.st_size), st.st_size);
    for (off_t at = 0; at < st.st_size; at += 1 + at / 40) {
        uint8_t other = bytes[at] ^ 0x10;

        reopen();
        ck_assert_int_eq(pwrite(fd, &other, 1, at), 1);
        ck_assert_int_lt(ft_snapshot_load(history, path, error, sizeof(error)), 0);
        ck_assert_int_eq(pwrite(fd, &bytes[at], 1, at), 1);
        ck_assert(!ft_history_last(history, &w));
        reopen();
        ck_assert_int_ne(ft_snapshot_decode(history, bytes + 12, (size_t)at), 0);
        ck_assert(!ft_history_last(history, &w));
    }
    ck_assert_int_eq(ft_snapshot_load(history, path, error, sizeof(error)), 0);
    reopen();
    ck_assert_int_eq(ft_snapshot_load(history, "/nowhere/at/all", error, sizeof(error)), -ENOENT);
    free(bytes);
    free(before);
    free(after);
    close(fd);
    unlink(path);
    close_history();
}
END_TEST

/* A busy fabric takes no more than --check says, and no less than a third of it. */
START_TEST(the_estimate_holds)
{
    struct ft_history_stats stats;
    size_t estimate = ft_history_estimate(60, 2000, 0);

    open_history(60 * WINDOW_MS, 1 << 28);
    for (int64_t w = 1; w <= 60; w++) {
        for (unsigned i = 0; i < 2000; i++)
            put_link(w, i, UINT64_C(100000000000) + (uint64_t)rand());
        put_fabric(w);
    }
    ft_history_stats(history, &stats);
    ck_assert_uint_eq(stats.windows, 60);
    ck_assert_uint_le(stats.bytes, estimate);
    ck_assert_uint_ge(stats.bytes, estimate / 3);
    close_history();
}
END_TEST

FT_UNIT_MAIN("history", rows_give_the_record_back, windows_come_and_go, the_first_window_is_partial,
             memory_is_bounded, who_reads_a_window_keeps_it, events_stand_in_their_windows,
             a_snapshot_gives_it_back, events_leave_room_for_windows, the_estimate_holds)

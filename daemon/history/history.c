// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/history/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/history/fixed.h"
#include "daemon/history/history_impl.h"
#include "daemon/history/latest.h"
#include "daemon/history/past.h"
#include "lib/base/reader.h"
#include "proto/record.h"

#define ROW_BYTES_MAX     1024
#define FIXED_BYTES_MAX   (64u << 10)
#define OVERHEAD_BYTES    16 /* of malloc */
#define EVENTS_PART       4  /* of the memory, at most: the rest is the windows' */
#define COLLECTIVES_MAX   65536
#define COLLECTIVES_BYTES ((size_t)64 << 20)
#define COLLECTIVES_MS    3600000

static size_t size_of(const struct ft_kept_window *w)
{
    size_t bytes = sizeof(*w) + OVERHEAD_BYTES;

    for (size_t k = 0; k < FT_ROW_KINDS; k++)
        bytes += w->rows[k].size;
    return bytes;
}

static size_t bytes_of(const struct ft_history *h)
{
    return h->window_bytes + ft_fixed_bytes(h->fixed) + ft_past_bytes(h->past);
}

bool ft_kept_row(const struct ft_rows *rows, size_t *offset, struct ft_kept_row *row)
{
    struct ft_reader r;

    if (*offset >= rows->len)
        return false;
    ft_reader_init(&r, rows->bytes + *offset, rows->len - *offset);
    row->fixed = (uint32_t)ft_read_varint(&r);
    row->len = (uint32_t)ft_read_varint(&r);
    row->bytes = ft_read_bytes(&r, row->len);
    *offset = rows->len - ft_reader_left(&r);
    return ft_reader_ok(&r);
}

static void free_window(struct ft_history *h, struct ft_kept_window *w)
{
    for (size_t k = 0; k < FT_ROW_KINDS; k++) {
        struct ft_kept_row row;
        size_t offset = 0;

        while (ft_kept_row(&w->rows[k], &offset, &row))
            ft_fixed_drop(h->fixed, row.fixed);
        free(w->rows[k].bytes);
    }
    h->window_bytes -= size_of(w);
    free(w);
}

/* Who reads it keeps it until then. */
static void forget_oldest(struct ft_history *h)
{
    struct ft_kept_window *w = h->list[h->first % h->size];

    h->list[h->first++ % h->size] = NULL;
    w->forgotten = true;
    if (!w->readers)
        free_window(h, w);
}

static struct ft_kept_window *window_at(const struct ft_history *h, uint64_t number)
{
    return h->list[number % h->size];
}

/* Older than what is kept, or so far ahead that this host's clock was set back since. */
static bool is_old(const struct ft_history *h, const struct ft_kept_window *w, int64_t now_ms)
{
    return w->span.end_ms <= now_ms - h->config.keep_ms ||
           w->span.start_ms >= now_ms + h->config.keep_ms;
}

/* Where that clock was set back by less, the first window is not the earliest. */
static int64_t earliest_ms(const struct ft_history *h)
{
    int64_t earliest_ms = INT64_MAX;

    for (uint64_t n = h->first; n < h->end; n++)
        if (window_at(h, n)->span.start_ms < earliest_ms)
            earliest_ms = window_at(h, n)->span.start_ms;
    return earliest_ms;
}

static void forget_old(struct ft_history *h, int64_t now_ms)
{
    while (h->end - h->first > 1 && is_old(h, window_at(h, h->first), now_ms))
        forget_oldest(h);
    while (h->end - h->first > 1 && bytes_of(h) > h->config.bytes_max) {
        forget_oldest(h);
        h->stats.windows_dropped++;
    }
    ft_past_forget(h->past, earliest_ms(h));
    ft_latest_forget(h->latest, now_ms - COLLECTIVES_MS);
}

/* The list is a ring by the windows' numbers. */
static int grow(struct ft_history *h)
{
    size_t size = h->size ? 2 * h->size : 64;
    struct ft_kept_window **list;

    if (h->end - h->first < h->size)
        return 0;
    list = calloc(size, sizeof(struct ft_kept_window *));
    if (!list)
        return -ENOMEM;
    for (uint64_t n = h->first; n < h->end; n++)
        list[n % size] = window_at(h, n);
    free(h->list);
    h->list = list;
    h->size = size;
    return 0;
}

/* Bytes that a window did not need go back. */
static void trim(struct ft_history *h, struct ft_kept_window *w)
{
    h->window_bytes -= size_of(w);
    for (size_t k = 0; k < FT_ROW_KINDS; k++) {
        struct ft_rows *rows = &w->rows[k];
        uint8_t *bytes =
            rows->len < rows->size ? realloc(rows->bytes, rows->len ? rows->len : 1) : NULL;

        if (bytes) {
            rows->bytes = bytes;
            rows->size = rows->len ? rows->len : 1;
        }
    }
    h->window_bytes += size_of(w);
}

int ft_kept_append(struct ft_history *h, struct ft_kept_window *w)
{
    trim(h, w);
    if (grow(h))
        return -ENOMEM;
    w->number = h->end;
    h->list[h->end++ % h->size] = w;
    forget_old(h, w->span.end_ms);
    return 0;
}

static void close_filling(struct ft_history *h)
{
    struct ft_kept_window *w = h->filling;

    h->filling = NULL;
    w->partial |= !h->complete;
    h->complete = true;
    if (ft_kept_append(h, w)) {
        free_window(h, w);
        h->stats.windows_dropped++;
    }
}

struct ft_kept_window *ft_kept_new(struct ft_history *h, const struct ft_span *span)
{
    struct ft_kept_window *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->span = *span;
    h->window_bytes += size_of(w);
    return w;
}

void ft_kept_free(struct ft_history *h, struct ft_kept_window *w)
{
    free_window(h, w);
}

void ft_kept_clear(struct ft_history *h)
{
    while (h->first < h->end)
        forget_oldest(h);
    ft_past_clear(h->past);
}

/* Room for n bytes more. */
static uint8_t *room(struct ft_history *h, struct ft_rows *rows, size_t n)
{
    size_t size = rows->size ? rows->size : 256;
    uint8_t *bytes;

    while (size < rows->len + n)
        size += size / 2;
    if (size == rows->size)
        return rows->bytes + rows->len;
    bytes = size < UINT32_MAX ? realloc(rows->bytes, size) : NULL;
    if (!bytes)
        return NULL;
    h->window_bytes += size - rows->size;
    rows->bytes = bytes;
    rows->size = size;
    return bytes + rows->len;
}

static size_t put_varint(uint8_t *p, uint32_t v)
{
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
}

/* The window in hand may be no larger than all: older ones are removed first. */
static bool fits(struct ft_history *h, size_t n)
{
    while (h->end - h->first > 1 && bytes_of(h) + n > h->config.bytes_max) {
        forget_oldest(h);
        h->stats.windows_dropped++;
    }
    return bytes_of(h) + n <= h->config.bytes_max;
}

int ft_kept_add(struct ft_history *h, struct ft_kept_window *w, enum ft_row_kind kind,
                uint32_t fixed, const uint8_t *row, size_t len)
{
    struct ft_rows *rows = &w->rows[kind];
    uint8_t head[10];
    size_t n = put_varint(head, fixed);
    uint8_t *to;

    n += put_varint(head + n, (uint32_t)len);
    to = room(h, rows, n + len);
    if (!to)
        return -ENOMEM;
    memcpy(to, head, n);
    memcpy(to + n, row, len);
    rows->len += (uint32_t)(n + len);
    rows->count++;
    return 0;
}

static void keep(struct ft_history *h, const Fabrictrace__Record *record)
{
    enum ft_row_kind kind = ft_row_kind_of(record);
    char key[FT_RECORD_KEY_BYTES];
    uint32_t fixed = UINT32_MAX;

    ft_writer_reset(&h->fixed_part);
    ft_writer_reset(&h->row);
    ft_row_write_fixed(record, &h->fixed_part);
    ft_row_write(record, &h->row);
    ft_record_key(record, key);
    if (ft_writer_ok(&h->fixed_part) && ft_writer_ok(&h->row) &&
        fits(h, h->row.len + h->fixed_part.len))
        fixed = ft_fixed_take(h->fixed, (uint8_t)kind, h->fixed_part.bytes, h->fixed_part.len,
                              ft_fixed_hash(h->fixed, key, strlen(key)));
    if (fixed != UINT32_MAX &&
        ft_kept_add(h, h->filling, kind, fixed, h->row.bytes, h->row.len) == 0)
        return;
    if (fixed != UINT32_MAX)
        ft_fixed_drop(h->fixed, fixed);
    h->filling->partial = true;
    h->stats.rows_dropped++;
    h->sink.failed++;
}

/* The window that a record is of is the one in hand, or a new one. */
static void take_record(struct ft_history *h, const Fabrictrace__Record *record)
{
    struct ft_span span = ft_row_span(record);

    h->sink.received++;
    if (h->filling && h->filling->span.start_ms != span.start_ms)
        close_filling(h);
    if (!h->filling)
        h->filling = ft_kept_new(h, &span);
    if (!h->filling) {
        h->stats.rows_dropped++;
        h->sink.failed++;
        return;
    }
    keep(h, record);
}

static void take_elephant(void *arg, const Fabrictrace__Record *record)
{
    take_record(arg, record);
}

static void write_record(void *self, const struct ft_published *out)
{
    struct ft_history *h = self;
    const Fabrictrace__Record *r = out->record;

    if (r->kind_case == FABRICTRACE__RECORD__KIND_EVENT) {
        h->sink.received++;
        ft_past_add(h->past, r->event, h->events && ft_events_stands(h->events, r->event));
        while (ft_past_bytes(h->past) > h->config.bytes_max / EVENTS_PART &&
               ft_past_forget_one(h->past))
            ;
        return;
    }
    if (r->kind_case == FABRICTRACE__RECORD__KIND_COLLECTIVE) {
        h->sink.received++;
        ft_latest_take(h->latest, r->collective);
        return;
    }
    if (r->kind_case != FABRICTRACE__RECORD__KIND_LINK &&
        r->kind_case != FABRICTRACE__RECORD__KIND_IMBALANCE)
        return;
    take_record(h, r);
    if (h->filling && r->kind_case == FABRICTRACE__RECORD__KIND_IMBALANCE &&
        r->imbalance->scope == FABRICTRACE__SCOPE__SCOPE_FABRIC)
        close_filling(h);
}

static int flush(void *self, int64_t timeout_ns)
{
    (void)self;
    (void)timeout_ns;
    return 0;
}

static void sink_stats(void *self, struct ft_sink_stats *out)
{
    const struct ft_history *h = self;

    *out = h->sink;
    out->refused = ft_past_refused(h->past) + ft_latest_refused(h->latest);
    out->processed = out->received - out->failed - out->refused;
}

static void free_history(void *self)
{
    struct ft_history *h = self;

    if (h->filling)
        free_window(h, h->filling);
    while (h->first < h->end)
        forget_oldest(h);
    free(h->list);
    ft_fixed_table_free(h->fixed);
    ft_past_free(h->past);
    ft_latest_free(h->latest);
    ft_writer_free(&h->fixed_part);
    ft_writer_free(&h->row);
    free(h);
}

struct ft_sink *ft_history_new(const struct ft_history_config *config, struct ft_history **history)
{
    struct ft_history *h = calloc(1, sizeof(*h));
    struct ft_sink *sink = calloc(1, sizeof(*sink));

    if (h) {
        h->config = *config;
        h->first = h->end = 1;
        h->fixed = ft_fixed_table_new(config->seed);
        h->past = ft_past_new(config->events_max);
        h->latest = ft_latest_new(COLLECTIVES_MAX, COLLECTIVES_BYTES, config->seed);
        ft_writer_init(&h->fixed_part, FIXED_BYTES_MAX);
        ft_writer_init(&h->row, ROW_BYTES_MAX);
    }
    if (!h || !sink || !h->fixed || !h->past || !h->latest || grow(h)) {
        if (h)
            free_history(h);
        free(sink);
        return NULL;
    }
    *sink = (struct ft_sink){.name = "history",
                             .write = write_record,
                             .flush = flush,
                             .stats = sink_stats,
                             .free = free_history,
                             .self = h};
    *history = h;
    return sink;
}

struct ft_emitter ft_history_emitter(struct ft_history *h)
{
    return (struct ft_emitter){take_elephant, h};
}

void ft_history_watch(struct ft_history *h, const struct ft_events *events)
{
    h->events = events;
}

void ft_history_stats(const struct ft_history *h, struct ft_history_stats *stats)
{
    *stats = h->stats;
    stats->windows = (size_t)(h->end - h->first);
    stats->fixed = ft_fixed_count(h->fixed);
    stats->events = ft_past_count(h->past);
    stats->events_dropped = ft_past_dropped(h->past);
    stats->bytes = bytes_of(h);
    for (uint64_t n = h->first; n < h->end; n++)
        for (size_t k = 0; k < FT_ROW_KINDS; k++)
            stats->rows += window_at(h, n)->rows[k].count;
}

static void describe(const struct ft_kept_window *w, struct ft_history_window *out)
{
    *out = (struct ft_history_window){.span = w->span, .number = w->number, .partial = w->partial};
    for (size_t k = 0; k < FT_ROW_KINDS; k++)
        out->rows[k] = w->rows[k].count;
}

bool ft_history_window(const struct ft_history *h, uint64_t number, struct ft_history_window *out)
{
    if (number < h->first)
        number = h->first;
    if (number >= h->end)
        return false;
    describe(window_at(h, number), out);
    return true;
}

bool ft_history_last(const struct ft_history *h, struct ft_history_window *out)
{
    return h->end > h->first && ft_history_window(h, h->end - 1, out);
}

bool ft_history_at(const struct ft_history *h, int64_t ms, struct ft_history_window *out)
{
    for (uint64_t n = h->end; n > h->first; n--) {
        const struct ft_kept_window *w = window_at(h, n - 1);

        if (w->span.start_ms <= ms && ms < w->span.end_ms) {
            describe(w, out);
            return true;
        }
    }
    return false;
}

int ft_history_open(struct ft_history *h, uint64_t number, enum ft_row_kind kind,
                    struct ft_history_cursor *cursor)
{
    if (number < h->first || number >= h->end)
        return -ENOENT;
    *cursor = (struct ft_history_cursor){window_at(h, number), kind, 0};
    cursor->window->readers++;
    return 0;
}

void ft_history_close(struct ft_history *h, struct ft_history_cursor *cursor)
{
    struct ft_kept_window *w = cursor->window;

    cursor->window = NULL;
    if (w && --w->readers == 0 && w->forgotten)
        free_window(h, w);
}

bool ft_history_at_end(const struct ft_history_cursor *cursor)
{
    return !cursor->window || cursor->offset >= cursor->window->rows[cursor->kind].len;
}

static Fabrictrace__Record *unpack(const struct ft_history *h, const struct ft_history_cursor *c,
                                   const struct ft_kept_row *row)
{
    const struct ft_fixed *fixed = ft_fixed_at(h->fixed, row->fixed);

    return fixed ? ft_row_read(c->kind, fixed->bytes, fixed->len, row->bytes, row->len,
                               &c->window->span)
                 : NULL;
}

static bool has_key(const Fabrictrace__Record *record, const char *key)
{
    char own[FT_RECORD_KEY_BYTES];

    ft_record_key(record, own);
    return strcmp(own, key) == 0;
}

Fabrictrace__Record *ft_history_read(const struct ft_history *h, struct ft_history_cursor *cursor,
                                     const char *key, size_t *rows)
{
    uint64_t hash = key ? ft_fixed_hash(h->fixed, key, strlen(key)) : 0;
    struct ft_kept_row row;

    while (cursor->window && *rows &&
           ft_kept_row(&cursor->window->rows[cursor->kind], &cursor->offset, &row)) {
        const struct ft_fixed *fixed = ft_fixed_at(h->fixed, row.fixed);
        Fabrictrace__Record *record;

        --*rows;
        if (!fixed || (key && fixed->key_hash != hash))
            continue;
        record = unpack(h, cursor, &row);
        if (record && (!key || has_key(record, key)))
            return record;
        ft_record_free(record);
    }
    return NULL;
}

bool ft_history_collective(const struct ft_history *h, uint32_t *index,
                           void (*each)(void *arg, const Fabrictrace__Collective *c), void *arg)
{
    return ft_latest_next(h->latest, index, each, arg);
}

bool ft_history_event(const struct ft_history *h, uint64_t number, struct ft_history_event *event)
{
    return ft_past_event(h->past, number, event);
}

uint64_t ft_history_events_end(const struct ft_history *h)
{
    return ft_past_end(h->past);
}

bool ft_history_stood(const struct ft_history_event *event, const struct ft_span *span)
{
    /* A happening is of its moment. */
    if (!event->stands && !event->over)
        return event->over_ms >= span->start_ms && event->over_ms < span->end_ms;
    /* What a window's end clears did not hold in that window. */
    return event->begun_ms < span->end_ms &&
           (event->stands || (event->over_ms > span->start_ms && event->over_ms != span->end_ms));
}

/* By the rows of a busy fabric: tests/unit/check_history.c holds them to it. */
#define LINK_ROW   40
#define GROUP_ROW  80
#define PATH_ROW   24
#define FIXED_PART 240

size_t ft_history_estimate(size_t windows, size_t links, size_t groups)
{
    return windows * (links * LINK_ROW + groups * GROUP_ROW) + (links + groups) * FIXED_PART;
}

size_t ft_history_elephant(size_t windows)
{
    return windows * PATH_ROW + 2 * FIXED_PART;
}

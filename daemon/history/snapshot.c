// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/history/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/history/fixed.h"
#include "daemon/history/history_impl.h"
#include "lib/base/reader.h"
#include "lib/base/writer.h"
#include "proto/record.h"

#define MAGIC             "ftHISTv1"
#define HEAD_BYTES        12 /* magic, version of the rows */
#define SUM_BYTES         8
#define WINDOW_HEAD_BYTES 17 /* begin, end, whether it is partial */
#define PART_BYTES        ((size_t)256 << 10)
#define END_MARK          0xff

enum phase {
    FIXED,
    WINDOWS,
    EVENTS,
    SUM,
};

struct ft_snapshot {
    struct ft_history *history;
    char path[PATH_MAX], temporary[PATH_MAX];
    int fd;
    enum phase phase;
    uint32_t fixed, fixed_end;       /* next, and how far */
    struct ft_kept_window **windows; /* held, so that what they need stays */
    size_t window_count, window;
    uint64_t event, event_end;
    uint64_t sum;
    struct ft_writer part;
    struct ft_writer events; /* of parts: as they were at the beginning */
};

/* FNV-1a by words: it finds what a disk or a crash did, and does not protect from anybody. */
static uint64_t add_sum(uint64_t sum, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void release(struct ft_snapshot *s)
{
    for (size_t i = 0; i < s->window_count; i++) {
        struct ft_history_cursor cursor = {.window = s->windows[i]};

        ft_history_close(s->history, &cursor);
    }
    s->window_count = 0;
}

static int hold(struct ft_snapshot *s)
{
    struct ft_history *h = s->history;
    struct ft_history_cursor cursor;

    s->windows = calloc((size_t)(h->end - h->first) + 1, sizeof(struct ft_kept_window *));
    if (!s->windows)
        return -ENOMEM;
    for (uint64_t n = h->first; n < h->end; n++)
        if (ft_history_open(h, n, FT_ROW_LINK, &cursor) == 0)
            s->windows[s->window_count++] = cursor.window;
    return 0;
}

static struct ft_snapshot *begin(struct ft_history *history)
{
    struct ft_snapshot *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->history = history;
    s->fd = -1;
    s->fixed_end = ft_fixed_limit(history->fixed);
    s->event_end = ft_history_events_end(history);
    s->sum = UINT64_C(0xcbf29ce484222325);
    ft_writer_init(&s->part, SIZE_MAX / 2);
    ft_writer_init(&s->events, SIZE_MAX / 2);
    return s;
}

struct ft_snapshot *ft_snapshot_new(struct ft_history *history, const char *path, char *error,
                                    size_t error_bytes)
{
    struct ft_snapshot *s = begin(history);

    if (!s) {
        snprintf(error, error_bytes, "%s: no memory", path);
        return NULL;
    }
    if (snprintf(s->path, PATH_MAX, "%s", path) >= PATH_MAX ||
        snprintf(s->temporary, PATH_MAX, "%s.new", path) >= PATH_MAX)
        errno = ENAMETOOLONG;
    else
        s->fd = open(s->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (s->fd < 0 || hold(s)) {
        snprintf(error, error_bytes, "%s: %s", path, s->fd < 0 ? strerror(errno) : "no memory");
        ft_snapshot_free(s);
        return NULL;
    }
    ft_write_bytes(&s->part, MAGIC, strlen(MAGIC));
    ft_write_be32(&s->part, ft_row_version());
    return s;
}

void ft_snapshot_free(struct ft_snapshot *s)
{
    if (!s)
        return;
    release(s);
    free(s->windows);
    if (s->fd >= 0) {
        close(s->fd);
        unlink(s->temporary);
    }
    ft_writer_free(&s->part);
    ft_writer_free(&s->events);
    free(s);
}

static void put_fixed(struct ft_snapshot *s)
{
    while (s->part.len < PART_BYTES && s->fixed < s->fixed_end) {
        const struct ft_fixed *f = ft_fixed_at(s->history->fixed, s->fixed++);

        if (!f)
            continue;
        ft_write_u8(&s->part, f->kind);
        ft_write_be32(&s->part, s->fixed - 1);
        ft_write_be32(&s->part, f->len);
        ft_write_bytes(&s->part, f->bytes, f->len);
    }
    if (s->fixed < s->fixed_end)
        return;
    ft_write_u8(&s->part, END_MARK);
    ft_write_be32(&s->part, (uint32_t)s->window_count);
    s->phase = WINDOWS;
}

static void put_windows(struct ft_snapshot *s)
{
    while (s->part.len < PART_BYTES && s->window < s->window_count) {
        const struct ft_kept_window *w = s->windows[s->window++];

        ft_write_be64(&s->part, (uint64_t)w->span.start_ms);
        ft_write_be64(&s->part, (uint64_t)w->span.end_ms);
        ft_write_u8(&s->part, w->partial);
        for (size_t k = 0; k < FT_ROW_KINDS; k++) {
            ft_write_be32(&s->part, (uint32_t)w->rows[k].len);
            ft_write_bytes(&s->part, w->rows[k].bytes, w->rows[k].len);
        }
    }
    if (s->window == s->window_count)
        s->phase = EVENTS;
}

static void put_events(struct ft_snapshot *s)
{
    struct ft_history_event e;

    while (s->part.len < PART_BYTES && s->event < s->event_end) {
        if (!ft_history_event(s->history, s->event, &e) || e.number >= s->event_end)
            s->event = s->event_end;
        if (s->event == s->event_end)
            break;
        s->event = e.number + 1;
        ft_write_u8(&s->part, e.stands);
        ft_write_be64(&s->part, (uint64_t)e.begun_ms);
        ft_write_be64(&s->part, (uint64_t)e.over_ms);
        ft_write_be32(&s->part, (uint32_t)e.begun_len);
        ft_write_bytes(&s->part, e.begun, e.begun_len);
        ft_write_be32(&s->part, (uint32_t)e.over_len);
        ft_write_bytes(&s->part, e.over, e.over_len);
    }
    if (s->event < s->event_end)
        return;
    ft_write_u8(&s->part, END_MARK);
    s->phase = SUM;
}

static int put_out(struct ft_snapshot *s)
{
    size_t sent = 0;

    if (!ft_writer_ok(&s->part))
        return -ENOMEM;
    while (sent < s->part.len) {
        ssize_t n = write(s->fd, s->part.bytes + sent, s->part.len - sent);

        if (n < 0 && errno != EINTR)
            return -errno;
        sent += n > 0 ? (size_t)n : 0;
    }
    /* Onto the disk part by part: all of it at once, in finish(), would stop the loop. */
    sync_file_range(s->fd, 0, 0,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                        SYNC_FILE_RANGE_WAIT_AFTER);
    s->sum = add_sum(s->sum, s->part.bytes, s->part.len);
    ft_writer_reset(&s->part);
    return 0;
}

/* Its content first: after a crash the new name may be on disk, and what was written not yet. */
static int finish(struct ft_snapshot *s)
{
    int rc;

    ft_write_be64(&s->part, s->sum);
    rc = put_out(s);
    if (rc)
        return rc;
    if (fdatasync(s->fd) < 0 || rename(s->temporary, s->path) < 0)
        return -errno;
    close(s->fd);
    s->fd = -1;
    return 0;
}

int ft_snapshot_step(struct ft_snapshot *s)
{
    int rc;

    switch (s->phase) {
    case FIXED:
        put_fixed(s);
        break;
    case WINDOWS:
        put_windows(s);
        break;
    case EVENTS:
        put_events(s);
        break;
    case SUM:
        return finish(s);
    }
    rc = put_out(s);
    return rc ? rc : 1;
}

struct ft_snapshot *ft_snapshot_parts(struct ft_history *history)
{
    struct ft_snapshot *s = begin(history);

    if (!s || hold(s)) {
        ft_snapshot_free(s);
        return NULL;
    }
    for (s->phase = EVENTS; s->phase == EVENTS; ft_writer_reset(&s->part)) {
        put_events(s);
        ft_write_bytes(&s->events, s->part.bytes, s->part.len);
        if (!ft_writer_ok(&s->part) || !ft_writer_ok(&s->events)) {
            ft_snapshot_free(s);
            return NULL;
        }
    }
    s->phase = FIXED;
    return s;
}

int ft_snapshot_part(struct ft_snapshot *s, const uint8_t **bytes, size_t *len)
{
    const struct ft_writer *part = &s->part;

    ft_writer_reset(&s->part);
    switch (s->phase) {
    case FIXED:
        put_fixed(s);
        break;
    case WINDOWS:
        put_windows(s);
        break;
    case EVENTS:
        part = &s->events;
        s->phase = SUM;
        break;
    case SUM:
        return 0;
    }
    *bytes = part->bytes;
    *len = part->len;
    return ft_writer_ok(part) ? 1 : -ENOMEM;
}

/* The numbers that fixed parts had in the file, and have here. */
struct numbers {
    uint32_t *list; /* UINT32_MAX: none */
    size_t count;
};

static int add_number(struct numbers *n, uint32_t theirs, uint32_t ours)
{
    if (theirs >= n->count) {
        size_t count = (size_t)theirs + 1;
        uint32_t *grown = realloc(n->list, count * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        memset(grown + n->count, 0xff, (count - n->count) * sizeof(*grown));
        n->list = grown;
        n->count = count;
    }
    if (n->list[theirs] != UINT32_MAX)
        return -EBADMSG;
    n->list[theirs] = ours;
    return 0;
}

/* The key of a fixed part, by a record without figures; also whether it is one at all. */
static int hash_key(const struct ft_history *h, uint8_t kind, const uint8_t *bytes, size_t len,
                    uint64_t *hash)
{
    static const uint8_t no_figures[] = {0};
    const struct ft_span span = {0, 0};
    Fabrictrace__Record *record =
        ft_row_read((enum ft_row_kind)kind, bytes, len, no_figures, sizeof(no_figures), &span);
    char key[FT_RECORD_KEY_BYTES];

    if (!record)
        return -EBADMSG;
    ft_record_key(record, key);
    *hash = ft_fixed_hash(h->fixed, key, strlen(key));
    ft_record_free(record);
    return 0;
}

static int get_fixed(struct ft_history *h, struct ft_reader *r, struct numbers *numbers)
{
    /* Each takes 9 bytes at least, so that no number can be far beyond. */
    size_t most = ft_reader_left(r);
    uint8_t kind;
    int rc = 0;

    while (rc == 0 && (kind = ft_read_u8(r)) != END_MARK && ft_reader_ok(r)) {
        uint32_t theirs = ft_read_be32(r), len = ft_read_be32(r), ours;
        const uint8_t *bytes = ft_read_bytes(r, len);
        uint64_t hash;

        if (!bytes || kind >= FT_ROW_KINDS || theirs > most)
            return -EBADMSG;
        rc = hash_key(h, kind, bytes, len, &hash);
        if (rc)
            return rc;
        ours = ft_fixed_take(h->fixed, kind, bytes, len, hash);
        if (ours == UINT32_MAX)
            return -ENOMEM;
        rc = add_number(numbers, theirs, ours);
        if (rc)
            ft_fixed_drop(h->fixed, ours);
    }
    return rc ? rc : ft_reader_ok(r) ? 0 : -EBADMSG;
}

static int get_rows(struct ft_history *h, struct ft_reader *r, const struct numbers *numbers,
                    struct ft_kept_window *w, enum ft_row_kind kind)
{
    struct ft_rows rows = {.len = ft_read_be32(r)};
    struct ft_kept_row row;
    size_t offset = 0;

    rows.bytes = (uint8_t *)(uintptr_t)ft_read_bytes(r, rows.len);
    if (!rows.bytes && rows.len)
        return -EBADMSG;
    while (offset < rows.len) {
        const struct ft_fixed *fixed;
        uint32_t ours;

        if (!ft_kept_row(&rows, &offset, &row) || row.fixed >= numbers->count)
            return -EBADMSG;
        ours = numbers->list[row.fixed];
        fixed = ours == UINT32_MAX ? NULL : ft_fixed_at(h->fixed, ours);
        if (!fixed || fixed->kind != kind)
            return -EBADMSG;
        if (ft_kept_add(h, w, kind, ours, row.bytes, row.len))
            return -ENOMEM;
        ft_fixed_use(h->fixed, ours);
    }
    return 0;
}

static int get_window(struct ft_history *h, struct ft_reader *r, const struct numbers *numbers)
{
    struct ft_span span;
    struct ft_kept_window *w;
    uint8_t partial;
    int rc = 0;

    span.start_ms = (int64_t)ft_read_be64(r);
    span.end_ms = (int64_t)ft_read_be64(r);
    partial = ft_read_u8(r);
    if (!ft_reader_ok(r) || span.start_ms < 0 || span.end_ms <= span.start_ms)
        return -EBADMSG;
    w = ft_kept_new(h, &span);
    if (!w)
        return -ENOMEM;
    w->partial = partial != 0;
    for (size_t k = 0; rc == 0 && k < FT_ROW_KINDS; k++)
        rc = get_rows(h, r, numbers, w, (enum ft_row_kind)k);
    if (rc == 0)
        rc = ft_kept_append(h, w);
    if (rc)
        ft_kept_free(h, w);
    return rc;
}

/* Events that stood are over, unless they still stand. */
static int get_events(struct ft_history *h, struct ft_reader *r, bool stand)
{
    uint8_t stands;

    while ((stands = ft_read_u8(r)) != END_MARK && ft_reader_ok(r)) {
        struct ft_history_event e;

        e.stands = stands;
        e.begun_ms = (int64_t)ft_read_be64(r);
        e.over_ms = (int64_t)ft_read_be64(r);
        e.begun_len = ft_read_be32(r);
        e.begun = ft_read_bytes(r, e.begun_len);
        e.over_len = ft_read_be32(r);
        e.over = ft_read_bytes(r, e.over_len);
        if (!ft_reader_ok(r))
            return -EBADMSG;
        if (!e.over_len)
            e.over = NULL;
        /* Nobody said when it ended: it stood in the last window, and that is all that is known. */
        if (e.stands && !stand && h->end > h->first) {
            e.over_ms = h->list[(h->end - 1) % h->size]->span.end_ms - 1;
            e.over = e.begun;
            e.over_len = e.begun_len;
        }
        e.stands = e.stands && stand;
        if (!ft_past_restore(h->past, &e))
            return -EBADMSG;
    }
    return ft_reader_ok(r) && ft_reader_left(r) == 0 ? 0 : -EBADMSG;
}

static int decode(struct ft_history *h, const uint8_t *bytes, size_t len, bool stand)
{
    struct numbers numbers = {.list = NULL};
    struct ft_reader r;
    uint32_t windows;
    int rc;

    ft_reader_init(&r, bytes, len);
    rc = get_fixed(h, &r, &numbers);
    windows = ft_read_be32(&r);
    for (uint32_t i = 0; rc == 0 && i < windows; i++)
        rc = get_window(h, &r, &numbers);
    if (rc == 0)
        rc = get_events(h, &r, stand);
    for (size_t i = 0; i < numbers.count; i++)
        if (numbers.list[i] != UINT32_MAX)
            ft_fixed_drop(h->fixed, numbers.list[i]);
    free(numbers.list);
    if (rc)
        ft_kept_clear(h);
    return rc;
}

int ft_snapshot_decode(struct ft_history *h, const uint8_t *bytes, size_t len)
{
    return decode(h, bytes, len, h->events != NULL);
}

int ft_snapshot_restore(struct ft_history *h, uint64_t number, const uint8_t *bytes, size_t len)
{
    ft_kept_clear(h);
    h->first = h->end = number ? number : 1;
    return decode(h, bytes, len, true);
}

static void skip_bytes(struct ft_reader *r)
{
    ft_read_bytes(r, ft_read_be32(r));
}

/* Of another version rows mean something else. Events are messages by themselves, and whoever reads
 * what is published waits for the end of those that stood. */
static int decode_events(struct ft_history *h, const uint8_t *bytes, size_t len)
{
    struct ft_reader r;
    uint32_t windows;
    int rc;

    ft_reader_init(&r, bytes, len);
    while (ft_read_u8(&r) != END_MARK && ft_reader_ok(&r)) {
        ft_read_be32(&r);
        skip_bytes(&r);
    }
    windows = ft_read_be32(&r);
    for (uint32_t i = 0; i < windows && ft_reader_ok(&r); i++) {
        ft_read_bytes(&r, WINDOW_HEAD_BYTES);
        for (size_t k = 0; k < FT_ROW_KINDS; k++)
            skip_bytes(&r);
    }
    rc = ft_reader_ok(&r) ? get_events(h, &r, h->events != NULL) : -EBADMSG;
    if (rc)
        ft_kept_clear(h);
    return rc;
}

static int decode_file(struct ft_history *h, const uint8_t *bytes, size_t len)
{
    const uint8_t *parts = bytes + HEAD_BYTES;
    uint32_t version;
    struct ft_reader r;

    if (len < HEAD_BYTES + SUM_BYTES || memcmp(bytes, MAGIC, strlen(MAGIC)) != 0)
        return -EBADMSG;
    ft_reader_init(&r, bytes + len - SUM_BYTES, SUM_BYTES);
    if (ft_read_be64(&r) != add_sum(UINT64_C(0xcbf29ce484222325), bytes, len - SUM_BYTES))
        return -EBADMSG;
    len -= HEAD_BYTES + SUM_BYTES;
    ft_reader_init(&r, bytes + strlen(MAGIC), HEAD_BYTES - strlen(MAGIC));
    version = ft_read_be32(&r);
    if (version == ft_row_version())
        return ft_snapshot_decode(h, parts, len);
    return decode_events(h, parts, len) ? -EBADMSG : -ESTALE;
}

int ft_snapshot_load(struct ft_history *h, const char *path, char *error, size_t error_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
    void *bytes = MAP_FAILED;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        rc = -errno;
        if (fd >= 0)
            close(fd);
        snprintf(error, error_bytes, "%s: %s", path, strerror(-rc));
        return rc;
    }
    if (S_ISREG(st.st_mode) && st.st_size > 0)
        bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    rc = bytes == MAP_FAILED ? -EBADMSG : decode_file(h, bytes, (size_t)st.st_size);
    if (bytes != MAP_FAILED)
        munmap(bytes, (size_t)st.st_size);
    close(fd);
    if (rc)
        snprintf(error, error_bytes, "%s: %s", path,
                 rc == -ENOMEM   ? "no memory"
                 : rc == -ESTALE ? "is of another version: its windows are left out"
                                 : "is damaged");
    return rc;
}

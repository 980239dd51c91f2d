// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/disk/spool.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/digest.h"
#include "lib/base/grow.h"
#include "lib/base/reader.h"
#include "lib/base/writer.h"
#include "lib/io/disk/spool_segment.h"

#define SEGMENTS           16 /* that a full spool has, about: what goes at once is a part of it */
#define SEGMENT_BYTES_MAX  (UINT64_C(8) << 20) /* a sync of one takes no second */
#define POSITION           "position"
#define POSITION_MAGIC     "FTSPOOLP"
#define POSITION_MAGIC_LEN 8
#define POSITION_BYTES     24

struct ft_spool {
    struct ft_spool_config config;
    uint64_t segment_bytes;
    int folder, lock, position;
    bool position_stale;               /* it could not be written */
    struct ft_spool_segment *segments; /* oldest first; their numbers rise */
    size_t count, size;
    int current; /* the last segment, which is written; -1: the next entry begins one */
    struct ft_segment_reader reader;
    uint64_t reading; /* first number of the reader's segment, 0: none */
    uint64_t low;     /* those before are done with */
    uint64_t cursor;  /* the next to be read */
    uint64_t end;
    uint64_t begun; /* the first number of this process */
    uint64_t bytes;
    struct ft_spool_stats stats;
};

static uint64_t end_of(const struct ft_spool_segment *g)
{
    return g->first + g->count;
}

/* How many complete entries of the segment are in [from, to). */
static uint64_t entries_in(const struct ft_spool_segment *g, uint64_t from, uint64_t to)
{
    uint64_t last = end_of(g) - g->bad;

    from = from > g->first ? from : g->first;
    to = to < last ? to : last;
    return from < to ? to - from : 0;
}

static uint32_t weigh(const struct ft_spool *s, const void *bytes, size_t len)
{
    return s->config.weigh ? s->config.weigh(bytes, len) : 0;
}

/* Nobody will read it any more. */
static void forget_weight(struct ft_spool *s, struct ft_spool_segment *g)
{
    s->stats.weight_unread -= g->weight;
    g->weight = 0;
}

static void close_current(struct ft_spool *s)
{
    if (s->current < 0)
        return;
    fdatasync(s->current);
    close(s->current);
    s->current = -1;
}

static void close_reader(struct ft_spool *s)
{
    if (s->reading)
        close(s->reader.fd);
    ft_segment_reader_close(&s->reader);
    s->reading = 0;
}

static void remove_first(struct ft_spool *s)
{
    char name[FT_SEGMENT_NAME_BYTES];

    if (s->reading == s->segments[0].first)
        close_reader(s);
    if (s->count == 1 && s->current >= 0) {
        close(s->current);
        s->current = -1;
    }
    ft_segment_name(s->segments[0].first, name);
    unlinkat(s->folder, name, 0);
    s->bytes -= s->segments[0].bytes;
    memmove(s->segments, s->segments + 1, --s->count * sizeof(*s->segments));
}

/* Where the next start continues; without it that one begins with what is done already. */
static void write_position(struct ft_spool *s)
{
    uint8_t bytes[POSITION_BYTES];
    struct ft_writer w = {.bytes = bytes, .size = sizeof(bytes), .max = sizeof(bytes)};

    ft_write_bytes(&w, POSITION_MAGIC, POSITION_MAGIC_LEN);
    ft_write_be64(&w, s->low);
    ft_write_be64(&w, ft_digest_bytes(bytes, 16, 0));
    s->position_stale = pwrite(s->position, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes);
}

static uint64_t read_position(int fd)
{
    uint8_t bytes[POSITION_BYTES];
    struct ft_reader r;
    uint64_t low;

    if (pread(fd, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes) ||
        memcmp(bytes, POSITION_MAGIC, POSITION_MAGIC_LEN) != 0)
        return 0;
    ft_reader_init(&r, bytes + POSITION_MAGIC_LEN, 16);
    low = ft_read_be64(&r);
    return ft_read_be64(&r) == ft_digest_bytes(bytes, 16, 0) ? low : 0;
}

static int by_first(const void *a, const void *b)
{
    const struct ft_spool_segment *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

static int list(struct ft_spool *s)
{
    int fd = openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    if (!dir) {
        rc = -errno;
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (rc == 0 && (entry = readdir(dir))) {
        uint64_t first;
        void *grown;

        if (ft_segment_number(entry->d_name, &first) < 0)
            continue;
        grown = ft_grow(s->segments, s->count, &s->size, sizeof(*s->segments));
        if (grown) {
            s->segments = grown;
            s->segments[s->count++] = (struct ft_spool_segment){.first = first};
        }
        rc = grown ? 0 : -ENOMEM;
    }
    closedir(dir);
    if (s->count)
        qsort(s->segments, s->count, sizeof(*s->segments), by_first);
    return rc;
}

/* Counts the entries of a segment, of the last by reading it: its end may be cut off. */
static int survey_one(struct ft_spool *s, struct ft_spool_segment *g,
                      const struct ft_spool_segment *next)
{
    char name[FT_SEGMENT_NAME_BYTES];
    struct ft_segment_reader r = {.fd = -1};
    uint64_t room = 0;
    struct stat st;
    const uint8_t *bytes;
    size_t len;
    int fd, rc;

    ft_segment_name(g->first, name);
    fd = openat(s->folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0) {
        rc = -errno;
        goto out;
    }
    g->bytes = (uint64_t)st.st_size;
    rc = ft_segment_reader_open(&r, fd, g->first, s->config.entry_bytes_max);
    if (rc < 0)
        goto out;
    room = (g->bytes - FT_SEGMENT_HEAD_BYTES) / FT_SEGMENT_ENTRY_BYTES;
    if (next) {
        g->count = next->first - g->first < room ? next->first - g->first : room;
        goto out;
    }
    while ((rc = ft_segment_read(&r, s->config.entry_bytes_max, &bytes, &len)) == 0)
        g->count++;
    if (rc == -EBADMSG && ftruncate(fd, (off_t)r.offset) == 0)
        g->bytes = r.offset;
    s->stats.torn += rc == -EBADMSG;
    if (rc == -EBADMSG || rc == -ENODATA)
        rc = 0;
out:
    ft_segment_reader_close(&r);
    if (fd >= 0)
        close(fd);
    return rc;
}

static int survey(struct ft_spool *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->count; i++) {
        struct ft_spool_segment *g = &s->segments[i];
        int rc = survey_one(s, g, i + 1 < s->count ? g + 1 : NULL);
        char name[FT_SEGMENT_NAME_BYTES];

        /* One without a head: nobody knows what was in it. */
        s->stats.torn += rc == -EBADMSG;
        if (rc < 0 && rc != -EBADMSG)
            return rc;
        s->stats.unread += entries_in(g, s->low, UINT64_MAX);
        s->end = end_of(g) > s->end ? end_of(g) : s->end;
        /* The next one to be written may have the name of one without entries. */
        if (g->count > 0) {
            s->bytes += g->bytes;
            s->segments[kept++] = *g;
            continue;
        }
        ft_segment_name(g->first, name);
        unlinkat(s->folder, name, 0);
    }
    s->count = kept;
    s->stats.found = s->stats.unread;
    s->stats.kept = s->stats.unread;
    while (s->count > 0 && end_of(&s->segments[0]) <= s->low)
        remove_first(s);
    return 0;
}

static int open_files(struct ft_spool *s, const char *folder, const char **what)
{
    *what = NULL;
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return -errno;
    s->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->folder < 0)
        return -errno;
    *what = "its lock";
    s->lock = openat(s->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock < 0)
        return -errno;
    if (flock(s->lock, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
    *what = POSITION;
    s->position = openat(s->folder, POSITION, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return s->position < 0 ? -errno : 0;
}

struct ft_spool *ft_spool_open(const struct ft_spool_config *config, char *error,
                               size_t error_bytes)
{
    struct ft_spool *s = calloc(1, sizeof(*s));
    const char *what = "memory";
    int rc = -ENOMEM;

    assert(config->bytes_max >= FT_SPOOL_BYTES_MIN);
    if (!s)
        goto fail;
    s->config = *config;
    s->config.folder = NULL;
    s->segment_bytes = config->bytes_max / SEGMENTS < SEGMENT_BYTES_MAX
                           ? config->bytes_max / SEGMENTS
                           : SEGMENT_BYTES_MAX;
    s->folder = s->lock = s->position = s->current = s->reader.fd = -1;
    rc = open_files(s, config->folder, &what);
    if (rc == 0) {
        what = "its files";
        s->low = read_position(s->position);
        s->end = s->low = s->low ? s->low : 1;
        rc = list(s);
    }
    if (rc == 0)
        rc = survey(s);
    if (rc < 0)
        goto fail;
    s->cursor = s->low;
    s->begun = s->end;
    return s;
fail:
    snprintf(error, error_bytes, "%s: %s%s%s", config->folder, what ? what : "", what ? ": " : "",
             rc == -EBUSY ? "another process uses it" : strerror(-rc));
    ft_spool_close(s);
    return NULL;
}

void ft_spool_close(struct ft_spool *s)
{
    if (!s)
        return;
    close_reader(s);
    close_current(s);
    if (s->position >= 0) {
        if (s->position_stale)
            write_position(s);
        close(s->position);
    }
    if (s->folder >= 0)
        close(s->folder);
    if (s->lock >= 0)
        close(s->lock);
    free(s->segments);
    free(s);
}

/* What of it was read lies in its reader's memory, and is not lost. */
static void drop_oldest(struct ft_spool *s)
{
    struct ft_spool_segment *g = &s->segments[0];
    uint64_t from = s->cursor > s->low ? s->cursor : s->low, end = end_of(g);
    uint64_t lost = entries_in(g, from, UINT64_MAX), read = entries_in(g, s->low, from);

    s->stats.dropped_oldest += lost;
    forget_weight(s, g);
    s->stats.unread -= lost;
    s->stats.released += read;
    s->stats.kept -= lost + read;
    s->low = end > s->low ? end : s->low;
    s->cursor = s->cursor > s->low ? s->cursor : s->low;
    remove_first(s);
    write_position(s);
}

/* A segment that takes the entry is the current one. -ENOSPC, -errno. */
static int prepare(struct ft_spool *s, uint64_t need)
{
    struct ft_spool_segment *g = s->count ? &s->segments[s->count - 1] : NULL;
    struct ft_spool_segment fresh;
    void *grown;
    int fd;

    if (s->current >= 0 && g->bytes + need > s->segment_bytes && g->count > 0)
        close_current(s);
    if (s->bytes + need + (s->current < 0 ? FT_SEGMENT_HEAD_BYTES : 0) > s->config.bytes_max)
        return -ENOSPC;
    if (s->current >= 0)
        return 0;
    grown = ft_grow(s->segments, s->count, &s->size, sizeof(*s->segments));
    if (!grown)
        return -ENOMEM;
    s->segments = grown;
    fd = ft_segment_create(s->folder, s->end, &fresh);
    if (fd < 0)
        return fd;
    fsync(s->folder);
    s->current = fd;
    s->segments[s->count++] = fresh;
    s->bytes += fresh.bytes;
    return 0;
}

int ft_spool_append(struct ft_spool *s, const void *bytes, size_t len, uint64_t *number)
{
    uint64_t need = FT_SEGMENT_ENTRY_BYTES + len;
    uint32_t weight = weigh(s, bytes, len);
    bool cap;
    int rc;

    if (len > s->config.entry_bytes_max || need + FT_SEGMENT_HEAD_BYTES > s->config.bytes_max) {
        s->stats.refused_disk++;
        return -EMSGSIZE;
    }
    for (;;) {
        cap = s->bytes + need + FT_SEGMENT_HEAD_BYTES > s->config.bytes_max;
        rc = prepare(s, need);
        if (rc == 0)
            rc = ft_segment_append(s->current, &s->segments[s->count - 1], bytes, len);
        if (rc != -ENOSPC || s->config.keep_oldest || s->count == 0)
            break;
        drop_oldest(s);
    }
    if (rc < 0) {
        s->stats.refused_newest += rc == -ENOSPC && cap;
        s->stats.refused_disk += rc != -ENOSPC || !cap;
        return rc;
    }
    s->bytes += need;
    *number = s->end++;
    s->stats.appended++;
    s->stats.kept++;
    s->stats.unread++;
    s->segments[s->count - 1].weight += weight;
    s->stats.weight_unread += weight;
    return 0;
}

void ft_spool_skip(struct ft_spool *s)
{
    s->cursor = s->end;
    s->stats.unread = 0;
    for (size_t i = 0; i < s->count; i++)
        forget_weight(s, &s->segments[i]);
}

/* The segment of the next entry to be read; NULL: there is none. Between two segments numbers may
 * be missing. */
static struct ft_spool_segment *segment_to_read(struct ft_spool *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct ft_spool_segment *g = &s->segments[i];

        if (end_of(g) - g->bad <= s->cursor)
            continue;
        if (s->cursor < g->first)
            s->cursor = g->first;
        return g;
    }
    return NULL;
}

static int read_one(struct ft_spool *s, const struct ft_spool_segment *g, const uint8_t **bytes,
                    size_t *len)
{
    char name[FT_SEGMENT_NAME_BYTES];
    int rc = 0, fd;

    if (s->reading != g->first || s->reader.next > s->cursor) {
        close_reader(s);
        ft_segment_name(g->first, name);
        fd = openat(s->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            return -errno;
        s->reading = g->first;
        s->reader.fd = fd;
        rc = ft_segment_reader_open(&s->reader, fd, g->first, s->config.entry_bytes_max);
    }
    while (rc == 0) {
        bool is_read = s->reader.next == s->cursor;

        rc = ft_segment_read(&s->reader, s->config.entry_bytes_max, bytes, len);
        if (is_read)
            break;
    }
    return rc;
}

static void note_read(struct ft_spool *s, struct ft_spool_segment *g, uint32_t weight)
{
    s->stats.unread--;
    if (s->cursor < s->begun) {
        s->stats.weight_found += weight;
        return;
    }
    g->weight -= weight;
    s->stats.weight_unread -= weight;
}

int ft_spool_next(struct ft_spool *s, const uint8_t **bytes, size_t *len, uint64_t *number)
{
    struct ft_spool_segment *g;

    while ((g = segment_to_read(s))) {
        int rc = read_one(s, g, bytes, len);
        uint64_t lost;

        if (rc == 0) {
            note_read(s, g, weigh(s, *bytes, *len));
            *number = s->cursor++;
            return 0;
        }
        close_reader(s);
        if (rc == -ENOMEM)
            return rc;
        /* Nobody can say where the next complete entry of this file begins. */
        lost = entries_in(g, s->cursor, UINT64_MAX);
        s->stats.damaged += lost;
        s->stats.unread -= lost;
        s->stats.kept -= lost;
        g->bad += lost;
        forget_weight(s, g);
        s->cursor = end_of(g);
        if (g == &s->segments[s->count - 1])
            close_current(s);
    }
    return -ENOENT;
}

void ft_spool_release(struct ft_spool *s, uint64_t before)
{
    uint64_t done = 0;

    before = before < s->cursor ? before : s->cursor;
    if (before <= s->low)
        return;
    for (size_t i = 0; i < s->count && s->segments[i].first < before; i++)
        done += entries_in(&s->segments[i], s->low, before);
    s->stats.released += done;
    s->stats.kept -= done;
    s->low = before;
    write_position(s);
    /* Where the file could not be written the segments say as much. */
    while (s->count > 0 && end_of(&s->segments[0]) <= s->low)
        remove_first(s);
}

uint64_t ft_spool_unread_from(const struct ft_spool *s)
{
    return s->cursor;
}

void ft_spool_stats(const struct ft_spool *s, struct ft_spool_stats *stats)
{
    *stats = s->stats;
    stats->bytes = s->bytes;
}

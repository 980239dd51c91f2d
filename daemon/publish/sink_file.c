// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/publish/publish.h"
#include "lib/base/lines.h"

/* Lines gather up to about this many bytes, and are written as complete lines: whoever reads the
 * file, also after the daemon was killed, finds no half a line. */
#define GATHER_BYTES (64u << 10)
#define NS_PER_MS    1000000
/* What waits for a reader that has stopped; lines beyond it are lost, and the daemon continues. */
#define BUFFER_MAX (GATHER_BYTES + (2u << 20))

struct file_sink {
    char *spec; /* "file:PATH" */
    const char *path;
    struct ft_lines out; /* its descriptor -1: could not be opened again */
    int error;
    int open_error; /* why it could not */
    struct ft_writer gathered;
    uint64_t lines; /* that end in it */
    bool patient;
    size_t retry_at; /* bytes in it with which the next try is worth it */
    uint64_t received, processed, failed;
};

static bool is_stdout(const struct file_sink *s)
{
    return strcmp(s->path, "-") == 0;
}

/* A slow reader gets the rest later. */
static void write_gathered(struct file_sink *s, int timeout_ms)
{
    struct ft_writer *w = &s->gathered;
    uint64_t written;
    size_t done;
    int rc = ft_lines_try(&s->out, w->bytes, w->len, timeout_ms, &done, &written);

    s->processed += written;
    s->lines -= written;
    if (rc == -EAGAIN) {
        s->error = -ETIMEDOUT;
        memmove(w->bytes, w->bytes + done, w->len - done);
        w->len -= done;
        s->retry_at = w->len + GATHER_BYTES;
        return;
    }
    s->failed += s->lines;
    if (rc)
        s->error = s->out.fd < 0 ? s->open_error : rc;
    ft_writer_reset(w);
    s->lines = 0;
    s->retry_at = GATHER_BYTES;
}

static void write_line(void *self, const struct ft_published *out)
{
    struct file_sink *s = self;
    size_t before = s->gathered.len;

    s->received++;
    ft_write_bytes(&s->gathered, out->json, out->json_len);
    ft_write_u8(&s->gathered, '\n');
    if (out->json_len == 0 || !ft_writer_ok(&s->gathered)) {
        s->gathered.len = before;
        s->gathered.failed = false;
        s->failed++;
        return;
    }
    s->lines++;
    if (s->gathered.len >= s->retry_at)
        write_gathered(s, s->patient ? -1 : 0);
}

static int flush(void *self, int64_t timeout_ns)
{
    struct file_sink *s = self;
    int error;

    if (s->gathered.len > 0)
        write_gathered(s, (int)(timeout_ns / NS_PER_MS));
    error = s->error;
    s->error = 0;
    return error;
}

/* A pipe whose reader has not come yet is opened for both: it must not hold up the daemon. */
static int open_file(const char *path)
{
    const int flags = O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
    int fd = open(path, O_WRONLY | flags, 0644);

    return fd < 0 && errno == ENXIO ? open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK) : fd;
}

/* Whether a file ends within a line, as a full disk left it. */
static bool is_broken(int fd, const char *path)
{
    struct stat st;
    char last = '\n';
    int in;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return false;
    in = open(path, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return false;
    if (pread(in, &last, 1, st.st_size - 1) < 0)
        last = '\n';
    close(in);
    return last != '\n';
}

static struct ft_lines open_lines(const char *path)
{
    int fd = open_file(path), error = errno;
    struct ft_lines lines = {.fd = fd, .broken = is_broken(fd, path)};

    errno = error;
    return lines;
}

static void reopen(void *self)
{
    struct file_sink *s = self;

    flush(s, 0);
    if (is_stdout(s))
        return;
    /* The rest of a line would open the new file. */
    s->failed += s->lines;
    s->lines = 0;
    ft_writer_reset(&s->gathered);
    s->retry_at = GATHER_BYTES;
    if (s->out.fd >= 0)
        close(s->out.fd);
    s->out = open_lines(s->path);
    if (s->out.fd < 0)
        s->open_error = -errno;
}

static void stats(void *self, struct ft_sink_stats *out)
{
    const struct file_sink *s = self;

    *out = (struct ft_sink_stats){.received = s->received,
                                  .processed = s->processed,
                                  .pending = s->lines,
                                  .failed = s->failed};
}

static void free_sink(void *self)
{
    struct file_sink *s = self;

    if (s->out.fd >= 0 && s->gathered.len > 0)
        write_gathered(s, 0);
    if (s->out.fd >= 0 && !is_stdout(s))
        close(s->out.fd);
    ft_writer_free(&s->gathered);
    free(s->spec);
    free(s);
}

struct ft_sink *ft_sink_file_new(const char *path, char *error, size_t error_bytes)
{
    struct file_sink *s = calloc(1, sizeof(*s));
    struct ft_sink *sink = calloc(1, sizeof(*sink));

    if (!s || !sink || asprintf(&s->spec, "file:%s", path) < 0) {
        snprintf(error, error_bytes, "%s: no memory", path);
        free(s);
        free(sink);
        return NULL;
    }
    s->path = s->spec + strlen("file:");
    ft_writer_init(&s->gathered, BUFFER_MAX);
    s->retry_at = GATHER_BYTES;
    if (is_stdout(s))
        s->out = (struct ft_lines){.fd = STDOUT_FILENO};
    else
        s->out = open_lines(path);
    if (s->out.fd < 0) {
        snprintf(error, error_bytes, "%s: %s", path, strerror(errno));
        free_sink(s);
        free(sink);
        return NULL;
    }
    *sink = (struct ft_sink){.name = "file",
                             .spec = s->spec,
                             .write = write_line,
                             .flush = flush,
                             .reopen = reopen,
                             .stats = stats,
                             .free = free_sink,
                             .self = s};
    return sink;
}

void ft_sink_file_wait(struct ft_sink *sink)
{
    ((struct file_sink *)sink->self)->patient = true;
}

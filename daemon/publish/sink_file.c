// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/publish/publish.h"

/* Lines gather up to about this many bytes, and are written whole: whoever reads the file, also
 * after the daemon was killed, finds no half a line. */
#define GATHER_BYTES (64u << 10)
#define BUFFER_MAX   (GATHER_BYTES + (2u << 20))

struct file_sink {
    char *path;
    int fd; /* -1: could not be opened again */
    int error;
    struct ft_writer gathered;
    uint64_t lines; /* in it */
    uint64_t received, processed, failed;
};

static bool is_stdout(const struct file_sink *s)
{
    return strcmp(s->path, "-") == 0;
}

static int write_whole(int fd, const uint8_t *bytes, size_t len)
{
    while (len) {
        ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

static void write_gathered(struct file_sink *s)
{
    int rc = s->fd < 0 ? -EBADF : write_whole(s->fd, s->gathered.bytes, s->gathered.len);

    if (rc == 0)
        s->processed += s->lines;
    else
        s->failed += s->lines;
    if (rc)
        s->error = rc;
    ft_writer_reset(&s->gathered);
    s->lines = 0;
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
    if (s->gathered.len >= GATHER_BYTES)
        write_gathered(s);
}

static int flush(void *self, int64_t timeout_ns)
{
    struct file_sink *s = self;
    int error;

    (void)timeout_ns;
    if (s->lines)
        write_gathered(s);
    error = s->error;
    s->error = 0;
    return error;
}

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static void reopen(void *self)
{
    struct file_sink *s = self;

    flush(s, 0);
    if (is_stdout(s))
        return;
    if (s->fd >= 0)
        close(s->fd);
    s->fd = open_file(s->path);
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

    if (s->fd >= 0)
        flush(s, 0);
    if (s->fd >= 0 && !is_stdout(s))
        close(s->fd);
    ft_writer_free(&s->gathered);
    free(s->path);
    free(s);
}

struct ft_sink *ft_sink_file_new(const char *path, char *error, size_t error_bytes)
{
    struct file_sink *s = calloc(1, sizeof(*s));
    struct ft_sink *sink = calloc(1, sizeof(*sink));

    if (!s || !sink || !(s->path = strdup(path))) {
        snprintf(error, error_bytes, "%s: no memory", path);
        free(s);
        free(sink);
        return NULL;
    }
    ft_writer_init(&s->gathered, BUFFER_MAX);
    s->fd = is_stdout(s) ? STDOUT_FILENO : open_file(path);
    if (s->fd < 0) {
        snprintf(error, error_bytes, "%s: %s", path, strerror(errno));
        free_sink(s);
        free(sink);
        return NULL;
    }
    *sink = (struct ft_sink){.name = "file",
                             .write = write_line,
                             .flush = flush,
                             .reopen = reopen,
                             .stats = stats,
                             .free = free_sink,
                             .self = s};
    return sink;
}

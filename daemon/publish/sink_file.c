// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/publish/publish.h"
#include "lib/base/lines.h"

/* Lines gather up to about this many bytes, and are written whole: whoever reads the file, also
 * after the daemon was killed, finds no half a line. */
#define GATHER_BYTES (64u << 10)
#define BUFFER_MAX   (GATHER_BYTES + (2u << 20))

struct file_sink {
    char *spec; /* "file:PATH" */
    const char *path;
    struct ft_lines out; /* its descriptor -1: could not be opened again */
    int error;
    int open_error; /* why it could not */
    struct ft_writer gathered;
    uint64_t lines; /* in it */
    uint64_t received, processed, failed;
};

static bool is_stdout(const struct file_sink *s)
{
    return strcmp(s->path, "-") == 0;
}

static void write_gathered(struct file_sink *s)
{
    uint64_t written;
    int rc = ft_lines_write(&s->out, s->gathered.bytes, s->gathered.len, &written);

    s->processed += written;
    s->failed += s->lines - written;
    if (rc)
        s->error = s->out.fd < 0 ? s->open_error : rc;
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
    if (s->out.fd >= 0)
        close(s->out.fd);
    s->out = (struct ft_lines){.fd = open_file(s->path)};
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

    if (s->out.fd >= 0)
        flush(s, 0);
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
    s->out.fd = is_stdout(s) ? STDOUT_FILENO : open_file(path);
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

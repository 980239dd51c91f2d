// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/publish.h"

struct file_sink {
    char *path;
    FILE *file;
    int error; /* of the last failed write */
    struct ft_sink_stats stats;
};

static bool is_stdout(const struct file_sink *s)
{
    return strcmp(s->path, "-") == 0;
}

static void write_line(void *self, const struct ft_published *out)
{
    struct file_sink *s = self;

    s->stats.received++;
    if (s->file && out->json_len && fwrite(out->json, 1, out->json_len, s->file) == out->json_len &&
        putc('\n', s->file) != EOF) {
        s->stats.processed++;
        return;
    }
    s->error = errno ? errno : EIO;
    s->stats.failed++;
}

static int flush(void *self, int64_t timeout_ns)
{
    struct file_sink *s = self;
    int error = s->error;

    (void)timeout_ns;
    s->error = 0;
    if (error)
        return -error;
    if (!s->file || fflush(s->file))
        return -errno;
    return 0;
}

static void reopen(void *self)
{
    struct file_sink *s = self;

    if (is_stdout(s))
        return;
    if (s->file)
        fclose(s->file);
    s->file = fopen(s->path, "ae");
}

static void stats(void *self, struct ft_sink_stats *out)
{
    *out = ((struct file_sink *)self)->stats;
}

static void free_sink(void *self)
{
    struct file_sink *s = self;

    if (s->file && !is_stdout(s))
        fclose(s->file);
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
    s->file = is_stdout(s) ? stdout : fopen(path, "ae");
    if (!s->file) {
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

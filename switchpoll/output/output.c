// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/lines.h"

struct ft_output {
    struct ft_sender *sender; /* NULL: to the file */
    char *file;
    struct ft_lines lines;
    int error;
    size_t payload_bytes; /* 0: lines */
    struct ft_gather *gather;
    struct ft_loss_transport file_stats;
    uint64_t lost; /* records that no batch can hold, or that never came here */
};

static struct ft_output *output_new(size_t payload_bytes)
{
    struct ft_output *out = calloc(1, sizeof(*out));

    if (!out)
        return NULL;
    out->lines.fd = -1;
    out->payload_bytes = payload_bytes;
    out->gather = ft_gather_new(payload_bytes);
    if (!out->gather) {
        free(out);
        return NULL;
    }
    return out;
}

struct ft_output *ft_output_file(const char *file, char *error, size_t error_bytes)
{
    struct ft_output *out = output_new(0);

    if (!out || !(out->file = strdup(file))) {
        snprintf(error, error_bytes, "%s: out of memory", file);
        goto fail;
    }
    if (strcmp(file, "-") == 0)
        out->lines.fd = STDOUT_FILENO;
    else
        out->lines.fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (out->lines.fd < 0) {
        snprintf(error, error_bytes, "%s: %s", file, strerror(errno));
        goto fail;
    }
    return out;
fail:
    ft_output_free(out);
    return NULL;
}

struct ft_output *ft_output_sender(struct ft_sender *sender, size_t payload_bytes)
{
    struct ft_output *out = output_new(payload_bytes);

    if (out)
        out->sender = sender;
    return out;
}

void ft_output_free(struct ft_output *out)
{
    if (!out)
        return;
    ft_output_flush(out);
    if (out->lines.fd >= 0 && out->lines.fd != STDOUT_FILENO)
        close(out->lines.fd);
    ft_gather_free(out->gather);
    free(out->file);
    free(out);
}

struct ft_gather *ft_output_gather(const struct ft_output *out)
{
    return ft_gather_new(out->payload_bytes);
}

static void put(struct ft_output *out, const uint8_t *bytes, size_t len, uint32_t records)
{
    uint64_t written = 0;

    if (out->sender) {
        ft_sender_send(out->sender, bytes, len, records);
        return;
    }
    if (!out->error)
        out->error = ft_lines_write(&out->lines, bytes, len, &written);
    out->file_stats.received += records;
    out->file_stats.processed += written;
    out->file_stats.dropped += records - written;
}

/* Writes or queues what is packed. */
static void put_packed(struct ft_output *out)
{
    const struct ft_writer *packed = ft_gather_packed(out->gather);

    if (ft_gather_records(out->gather) == 0)
        return;
    put(out, packed->bytes, packed->len, ft_gather_records(out->gather));
    ft_gather_empty(out->gather);
}

void ft_output_emit(void *arg, const Fabrictrace__Record *record)
{
    struct ft_output *out = arg;
    int rc = ft_gather_add(out->gather, record);

    if (rc < 0)
        out->lost++;
    if (rc > 0)
        put_packed(out);
}

void ft_output_add(struct ft_output *out, const uint8_t *bytes, size_t len, uint32_t records)
{
    ft_output_flush(out); /* keeps the order */
    put(out, bytes, len, records);
}

void ft_output_lost(struct ft_output *out, uint64_t records)
{
    out->lost += records;
}

void ft_output_flush(struct ft_output *out)
{
    ft_gather_finish(out->gather);
    out->lost += ft_gather_lost(out->gather);
    put_packed(out);
}

int ft_output_error(const struct ft_output *out, char *error, size_t error_bytes)
{
    if (out->error)
        snprintf(error, error_bytes, "%s: %s",
                 strcmp(out->file, "-") == 0 ? "standard output" : out->file,
                 strerror(-out->error));
    return out->error;
}

void ft_output_stats(const struct ft_output *out, struct ft_loss_transport *stats)
{
    struct ft_sender_stats s;
    uint32_t waiting;

    *stats = out->file_stats;
    if (out->sender) {
        ft_sender_stats(out->sender, &s);
        *stats = (struct ft_loss_transport){.received = s.records,
                                            .processed = s.records_acked,
                                            .pending = s.records_queued,
                                            .dropped = s.records_dropped};
    }
    waiting = ft_gather_records(out->gather) + ft_gather_waiting(out->gather);
    stats->received += waiting + out->lost;
    stats->pending += waiting;
    stats->dropped += out->lost;
}

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
#include "lib/base/writer.h"
#include "proto/record.h"

/* Gather this much before a write, and never more than the room for one more record above it. */
#define GATHER_BYTES (64u << 10)
#define ROOM_BYTES   (FT_TRANSPORT_FRAME_MAX / 2)

struct ft_output {
    struct ft_sender *sender; /* NULL: to the file */
    char *file;
    struct ft_lines lines;
    int error;
    struct ft_writer gathered;
    uint32_t records; /* in gathered */
    struct ft_loss_transport file_stats;
    uint64_t lost; /* records that no batch can hold, or that never came here */
};

static struct ft_output *output_new(void)
{
    struct ft_output *out = calloc(1, sizeof(*out));

    if (!out)
        return NULL;
    out->lines.fd = -1;
    ft_writer_init(&out->gathered, ROOM_BYTES);
    return out;
}

struct ft_output *ft_output_file(const char *file, char *error, size_t error_bytes)
{
    struct ft_output *out = output_new();

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

struct ft_output *ft_output_sender(struct ft_sender *sender)
{
    struct ft_output *out = output_new();

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
    ft_writer_free(&out->gathered);
    free(out->file);
    free(out);
}

int ft_output_encode(const struct ft_output *out, const Fabrictrace__Record *record,
                     struct ft_writer *writer)
{
    Fabrictrace__Record *one = (Fabrictrace__Record *)(uintptr_t)record;
    size_t before = writer->len;
    int rc;

    if (out->sender) {
        /* Batches one after the other are one batch: that is how repeated fields are encoded. */
        rc = ft_batch_pack(&one, 1, writer);
    } else {
        rc = ft_record_to_json(record, writer);
        ft_write_u8(writer, '\n');
    }
    if (rc == 0 && ft_writer_ok(writer))
        return 0;
    writer->len = before;
    writer->failed = false;
    return rc < 0 ? rc : -EMSGSIZE;
}

void ft_output_emit(void *arg, const Fabrictrace__Record *record)
{
    struct ft_output *out = arg;

    if (ft_output_encode(out, record, &out->gathered) < 0) {
        out->lost++;
        return;
    }
    out->records++;
    if (out->gathered.len >= GATHER_BYTES)
        ft_output_flush(out);
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
    if (out->records == 0)
        return;
    put(out, out->gathered.bytes, out->gathered.len, out->records);
    out->records = 0;
    ft_writer_reset(&out->gathered);
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

    *stats = out->file_stats;
    if (out->sender) {
        ft_sender_stats(out->sender, &s);
        *stats = (struct ft_loss_transport){.received = s.records,
                                            .processed = s.records_acked,
                                            .pending = s.records_queued,
                                            .dropped = s.records_dropped};
    }
    stats->received += out->records + out->lost;
    stats->pending += out->records;
    stats->dropped += out->lost;
}

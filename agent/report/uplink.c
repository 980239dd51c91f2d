// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/report/uplink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/report/flow.h"
#include "agent/report/host.h"
#include "agent/report/queue_pairs.h"
#include "agent/report/status.h"
#include "lib/base/writer.h"
#include "proto/loss.h"
#include "proto/record.h"

/* About 200 bytes a record keep a full batch far below the frame limit. */
#define BATCH_RECORDS 512

struct ft_uplink {
    char *host;
    char *source_id;
    struct ft_sender *sender; /* NULL: file */
    FILE *file;
    int file_error;
    struct ft_writer buffer;
    struct ft_flow_record flows[BATCH_RECORDS];
    uint32_t gathered;
    uint64_t records;
    uint64_t written;
    uint64_t unpacked; /* dropped: no memory for the batch */
    uint64_t unwritten;
};

static struct ft_uplink *new_uplink(const struct ft_uplink_config *config)
{
    struct ft_uplink *uplink = calloc(1, sizeof(*uplink));

    if (!uplink)
        return NULL;
    ft_writer_init(&uplink->buffer, FT_TRANSPORT_FRAME_MAX);
    uplink->host = strdup(config->host);
    uplink->source_id = strdup(config->source_id);
    if (!uplink->host || !uplink->source_id) {
        ft_uplink_free(uplink);
        return NULL;
    }
    return uplink;
}

struct ft_uplink *ft_uplink_to_daemon(const struct ft_uplink_config *config,
                                      struct ft_sender *sender)
{
    struct ft_uplink *uplink = new_uplink(config);

    if (uplink)
        uplink->sender = sender;
    return uplink;
}

struct ft_uplink *ft_uplink_to_file(const struct ft_uplink_config *config, const char *file,
                                    char *error, size_t error_bytes)
{
    struct ft_uplink *uplink = new_uplink(config);

    if (!uplink) {
        snprintf(error, error_bytes, "%s: no memory", file);
        return NULL;
    }
    uplink->file = strcmp(file, "-") == 0 ? stdout : fopen(file, "we");
    if (!uplink->file) {
        snprintf(error, error_bytes, "%s: %s", file, strerror(errno));
        ft_uplink_free(uplink);
        return NULL;
    }
    return uplink;
}

void ft_uplink_free(struct ft_uplink *uplink)
{
    if (!uplink)
        return;
    if (uplink->file && uplink->file != stdout)
        fclose(uplink->file);
    ft_writer_free(&uplink->buffer);
    free(uplink->host);
    free(uplink->source_id);
    free(uplink);
}

static void send_batch(struct ft_uplink *uplink, Fabrictrace__Record *const *records,
                       uint32_t count)
{
    ft_writer_reset(&uplink->buffer);
    if (ft_batch_pack(records, count, &uplink->buffer)) {
        uplink->unpacked += count;
        return;
    }
    /* A batch that the queue has no room for is in the sender's own count of drops. */
    ft_sender_send(uplink->sender, uplink->buffer.bytes, uplink->buffer.len, count);
}

static void write_lines(struct ft_uplink *uplink, Fabrictrace__Record *const *records,
                        uint32_t count)
{
    uint32_t lines = 0;

    ft_writer_reset(&uplink->buffer);
    for (uint32_t i = 0; i < count; i++) {
        if (ft_record_to_json(records[i], &uplink->buffer))
            break;
        ft_write_u8(&uplink->buffer, '\n');
        lines++;
    }
    if (lines < count || !ft_writer_ok(&uplink->buffer)) {
        uplink->unpacked += count;
        return;
    }
    if (!uplink->file_error &&
        (fwrite(uplink->buffer.bytes, 1, uplink->buffer.len, uplink->file) != uplink->buffer.len ||
         fflush(uplink->file)))
        uplink->file_error = errno ? -errno : -EIO;
    if (uplink->file_error)
        uplink->unwritten += count;
    else
        uplink->written += count;
}

static void hand_on(struct ft_uplink *uplink, Fabrictrace__Record *const *records, uint32_t count)
{
    if (uplink->sender)
        send_batch(uplink, records, count);
    else
        write_lines(uplink, records, count);
}

int ft_uplink_flush(struct ft_uplink *uplink)
{
    Fabrictrace__Record *records[BATCH_RECORDS];
    uint32_t count = uplink->gathered;

    if (count == 0)
        return uplink->file_error;
    for (uint32_t i = 0; i < count; i++)
        records[i] = &uplink->flows[i].record;
    uplink->gathered = 0;
    hand_on(uplink, records, count);
    return uplink->file_error;
}

void ft_uplink_flow(struct ft_uplink *uplink, const struct ft_flow_report *report,
                    const char *interface)
{
    ft_report_flow(report, uplink->host, interface, &uplink->flows[uplink->gathered++]);
    uplink->records++;
    if (uplink->gathered == BATCH_RECORDS)
        ft_uplink_flush(uplink);
}

void ft_uplink_record(struct ft_uplink *uplink, const Fabrictrace__Record *record)
{
    /* protobuf-c's packing takes no const, though it changes nothing. */
    Fabrictrace__Record *one = (Fabrictrace__Record *)(uintptr_t)record;

    ft_uplink_flush(uplink);
    uplink->records++;
    hand_on(uplink, &one, 1);
}

void ft_uplink_host(struct ft_uplink *uplink, const struct ft_rdma_port_report *report)
{
    struct ft_host_record host;
    Fabrictrace__Record *record = &host.record;

    ft_uplink_flush(uplink);
    ft_report_host(report, uplink->host, uplink->source_id, &host);
    uplink->records++;
    hand_on(uplink, &record, 1);
}

void ft_uplink_queue_pairs(struct ft_uplink *uplink, const struct ft_rdma_ends_report *report)
{
    struct ft_queue_pairs_record list;
    Fabrictrace__Record *record = &list.record;

    ft_uplink_flush(uplink);
    ft_report_queue_pairs(report, uplink->host, uplink->source_id, &list);
    uplink->records++;
    hand_on(uplink, &record, 1);
}

void ft_uplink_status(struct ft_uplink *uplink, struct ft_status *status)
{
    struct ft_status_record out;
    Fabrictrace__Record *record = &out.record;

    ft_uplink_flush(uplink);
    status->host = uplink->host;
    status->source = uplink->source_id;
    ft_report_status(status, &out);
    uplink->records++;
    hand_on(uplink, &record, 1);
}

void ft_uplink_loss(struct ft_uplink *uplink, const struct ft_account *account, struct ft_wall now)
{
    struct ft_loss_record loss;
    Fabrictrace__Record *record = &loss.record;

    ft_uplink_flush(uplink);
    ft_loss_record_fill(&loss, account, "fabrictrace-agent", uplink->source_id, now.ms);
    uplink->records++;
    hand_on(uplink, &record, 1);
}

void ft_uplink_account(const struct ft_uplink *uplink, struct ft_account *account)
{
    struct ft_account_stage *stage;

    if (!uplink->sender) {
        stage = ft_account_stage(account, "output", "records");
        stage->processed = uplink->written;
        ft_account_drop(stage, "write_failed", uplink->unwritten);
    } else {
        struct ft_sender_stats stats;

        stage = ft_account_stage(account, "transport", "records");
        ft_sender_stats(uplink->sender, &stats);
        stage->processed = stats.records_acked;
        stage->pending = stats.records_queued;
        ft_account_drop(stage, "queue_full", stats.records_dropped);
        stage->received = stats.records_found;
    }
    stage->received += uplink->records;
    stage->pending += uplink->gathered;
    ft_account_drop(stage, "no_memory", uplink->unpacked);
}

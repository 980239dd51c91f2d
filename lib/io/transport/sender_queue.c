// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/transport/frame.h"
#include "lib/io/transport/sender_impl.h"

static void remove_payload(struct ft_sender *sender, struct ft_payload *payload)
{
    TAILQ_REMOVE(&sender->queue, payload, next);
    sender->stats.payloads_queued--;
    sender->stats.records_queued -= payload->records;
    sender->stats.queue_bytes -= ft_payload_cost(payload);
    free(payload);
}

static void drop_oldest_unsent(struct ft_sender *sender)
{
    struct ft_payload *payload = sender->unsent;

    sender->unsent = TAILQ_NEXT(payload, next);
    sender->stats.payloads_dropped++;
    sender->stats.records_dropped += payload->records;
    remove_payload(sender, payload);
}

size_t ft_sender_remove_applied(struct ft_sender *sender, uint64_t sequence)
{
    struct ft_payload *payload;
    size_t bytes = 0;

    while ((payload = TAILQ_FIRST(&sender->queue)) && payload->sequence <= sequence) {
        bytes += ft_payload_cost(payload);
        sender->stats.payloads_acked++;
        sender->stats.records_acked += payload->records;
        remove_payload(sender, payload);
    }
    if (sender->on_flushed && TAILQ_EMPTY(&sender->queue))
        ft_watch_once_arm(sender->flushed, 0);
    return bytes;
}

uint64_t ft_sender_begun(const struct ft_sender *sender)
{
    const struct ft_payload *payload;
    uint64_t records = 0;

    TAILQ_FOREACH(payload, &sender->queue, next)
    {
        if (payload->sequence > sender->sequence_sent)
            break;
        records += payload->records;
    }
    return records;
}

int ft_sender_queue(struct ft_sender *sender, const void *bytes, size_t len, uint32_t records)
{
    size_t frame_len = FT_FRAME_RECORDS_HEAD_BYTES + len;
    size_t needed = sizeof(struct ft_payload) + frame_len;
    struct ft_payload *payload;

    if (len > FT_FRAME_PAYLOAD_BYTES_MAX)
        return -EMSGSIZE;
    if (needed > sender->config.queue_bytes_max ||
        sender->flight_bytes > sender->config.queue_bytes_max - needed)
        return -ENOBUFS;
    payload = malloc(needed);
    if (!payload)
        return -ENOMEM;
    while (sender->stats.queue_bytes > sender->config.queue_bytes_max - needed)
        drop_oldest_unsent(sender);
    payload->sequence = ++sender->sequence_last;
    payload->last = sender->stats.records + records;
    payload->records = records;
    payload->queued_at = ft_mono_now();
    payload->frame_len = frame_len;
    if (len)
        memcpy(payload->frame + FT_FRAME_RECORDS_HEAD_BYTES, bytes, len);
    TAILQ_INSERT_TAIL(&sender->queue, payload, next);
    if (!sender->unsent)
        sender->unsent = payload;
    sender->stats.queue_bytes += needed;
    return 0;
}

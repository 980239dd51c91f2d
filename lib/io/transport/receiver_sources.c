// SPDX-License-Identifier: Apache-2.0
/* What is known of each sender beyond its connections: how far its payloads and records got, and
 * which connection it has now. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <string.h>

#include "lib/base/table.h"
#include "lib/io/transport/receiver_impl.h"
#include "lib/io/transport/stream.h"

/* What the sender has by now. */
void ft_receiver_note_numbers(struct ft_receiver *receiver, struct ft_receiver_source *source,
                              const struct ft_frame_numbers *n)
{
    struct ft_receiver_stats *stats = &receiver->stats;

    /* What came before the first that is heard of was somebody else's to count. */
    if (!source->numbered)
        source->record_last = source->record_newest = n->last - n->count;
    source->numbered = true;
    if (n->newest <= source->record_newest)
        return;
    stats->records_numbered += n->newest - source->record_newest;
    stats->records_pending += n->newest - source->record_newest;
    source->record_newest = n->newest;
}

/* The records of a payload are counted as applied or refused; those between the last one and these
 * were dropped before they were sent. */
void ft_receiver_count_numbers(struct ft_receiver *receiver, struct ft_receiver_source *source,
                               const struct ft_frame_numbers *n, uint64_t *outcome)
{
    uint64_t reached, count;

    if (n->last <= source->record_last)
        return;
    reached = n->last - source->record_last;
    count = n->count < reached ? n->count : reached;
    *outcome += count;
    receiver->stats.records_skipped += reached - count;
    receiver->stats.records_pending -= reached;
    source->record_last = n->last;
}

/* It will not send what it had. */
static void lose_numbers(struct ft_receiver *receiver, struct ft_receiver_source *source)
{
    uint64_t lost = source->record_newest - source->record_last;

    receiver->stats.records_lost += lost;
    receiver->stats.records_pending -= lost;
    source->numbered = false;
    source->record_last = source->record_newest = 0;
}

/* The number of a payload whose end is still to come: it comes again, unless its sender does not.
 */
static void note_begun(struct ft_connection *c)
{
    uint8_t head[FT_FRAME_RECORDS_HEAD_BYTES];
    ssize_t len = evbuffer_copyout(bufferevent_get_input(c->bev), head, sizeof(head));
    struct ft_frame_numbers numbers;
    uint64_t sequence = 0;

    if (len < FT_FRAME_DATA_HEAD_BYTES || (head[FT_FRAME_LENGTH_BYTES] != FT_FRAME_DATA &&
                                           head[FT_FRAME_LENGTH_BYTES] != FT_FRAME_RECORDS))
        return;
    for (size_t i = FT_FRAME_LENGTH_BYTES + 1; i < FT_FRAME_DATA_HEAD_BYTES; i++)
        sequence = sequence << 8 | head[i];
    if (sequence <= c->source->applied)
        return;
    c->source->begun = sequence;
    if (len == (ssize_t)sizeof(head) && ft_frame_read_records_head(head, &numbers))
        ft_receiver_note_numbers(c->receiver, c->source, &numbers);
}

void ft_receiver_leave_source(struct ft_connection *c)
{
    if (!c->source)
        return;
    note_begun(c);
    c->source->connection = NULL;
    TAILQ_INSERT_TAIL(&c->receiver->left, c->source, left);
    c->source = NULL;
}

static void forget_oldest_source(struct ft_receiver *receiver)
{
    struct ft_receiver_source *oldest = TAILQ_FIRST(&receiver->left);

    if (!oldest)
        return;
    TAILQ_REMOVE(&receiver->left, oldest, left);
    lose_numbers(receiver, oldest);
    ft_table_remove(receiver->sources, oldest);
}

static bool make_key(struct ft_receiver_source_key *key, const char *program, const char *id)
{
    size_t program_len = strlen(program), id_len = strlen(id);

    *key = (struct ft_receiver_source_key){{0}, {0}};
    if (program_len > sizeof(key->program) || id_len > sizeof(key->id))
        return false;
    memcpy(key->program, program, program_len);
    memcpy(key->id, id, id_len);
    return true;
}

/* One that is known; NULL. */
static struct ft_receiver_source *find_known(const struct ft_receiver *receiver,
                                             const char *program, const char *source_id)
{
    struct ft_receiver_source_key key;

    return make_key(&key, program, source_id) ? ft_table_find(receiver->sources, &key) : NULL;
}

struct ft_receiver_source *ft_receiver_find_source(struct ft_receiver *receiver,
                                                   const struct ft_frame *hello, bool *fresh)
{
    struct ft_receiver_source_key key;
    struct ft_receiver_source *source;

    *fresh = false;
    if (!make_key(&key, hello->program, hello->source_id))
        return NULL;
    source = ft_table_find(receiver->sources, &key);
    if (!source) {
        if (ft_table_count(receiver->sources) >= receiver->config.sources_max)
            forget_oldest_source(receiver);
        source = ft_table_insert(receiver->sources, &key, fresh);
    }
    if (source && source->boot_id != hello->boot_id) {
        if (source->begun > source->applied) {
            receiver->stats.payloads++;
            receiver->stats.lost++;
        }
        lose_numbers(receiver, source);
        source->begun = 0;
        source->boot_id = hello->boot_id;
        source->applied = 0;
    }
    return source;
}

int ft_receiver_notify(struct ft_receiver *receiver, const char *program, const char *source_id,
                       const void *payload, size_t len)
{
    const struct ft_receiver_source *source = find_known(receiver, program, source_id);
    const struct ft_connection *c = source ? source->connection : NULL;
    const struct ft_frame notice = {
        .type = FT_FRAME_NOTICE, .payload = payload, .payload_len = len};

    assert(len <= FT_TRANSPORT_NOTICE_MAX);
    if (!c || c->closing || c->gone)
        return -ENOTCONN;
    if (evbuffer_get_length(bufferevent_get_output(c->bev)))
        return -EAGAIN;
    ft_stream_write(c->bev, &notice);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/group/numbers.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"
#include "lib/io/transport/transport.h"

#define SILENT_MS INT64_C(3600000)
#define LOOKS     64

/* Padded with zeroes. */
struct name {
    char program[FT_PROGRAM_BYTES_MAX];
    char source[FT_SOURCE_ID_BYTES_MAX];
};

struct sender {
    struct name name;
    uint64_t id; /* no other one has had it */
    int64_t heard_ms;
};

struct key {
    uint64_t sender;
    uint32_t topic, partition;
};

struct entry {
    struct key key;
    uint64_t boot_id, boot_before, sequence, record_last;
    int64_t heard_ms;
    bool resumed; /* what is missing before the next message is not lost, or not ours to count */
};

struct ft_group_numbers {
    struct ft_table *senders, *table;
    size_t senders_max, max;
    uint32_t sender_hand, hand;
    uint64_t last_id;
    int64_t now_ms;
    struct ft_group_numbers_stats stats;
};

struct ft_group_numbers *ft_group_numbers_new(size_t senders_max, uint32_t partitions,
                                              uint64_t seed)
{
    struct ft_group_numbers *n = calloc(1, sizeof(*n));

    if (!n)
        return NULL;
    if (partitions > FT_GROUP_NUMBERS_PARTITIONS)
        partitions = FT_GROUP_NUMBERS_PARTITIONS;
    n->senders_max = senders_max;
    n->max = senders_max * (partitions + FT_INGEST_TOPICS - 1);
    n->senders = ft_table_new(sizeof(struct sender), sizeof(struct name), n->senders_max, seed);
    n->table = ft_table_new(sizeof(struct entry), sizeof(struct key), n->max, seed);
    if (n->senders && n->table)
        return n;
    ft_group_numbers_free(n);
    return NULL;
}

void ft_group_numbers_free(struct ft_group_numbers *n)
{
    if (!n)
        return;
    ft_table_free(n->senders);
    ft_table_free(n->table);
    free(n);
}

static bool is_silent(const struct ft_group_numbers *n, int64_t heard_ms)
{
    return n->now_ms - heard_ms > SILENT_MS;
}

static bool is_silent_sender(void *arg, void *sender)
{
    return is_silent(arg, ((const struct sender *)sender)->heard_ms);
}

static bool is_silent_entry(void *arg, void *entry)
{
    return is_silent(arg, ((const struct entry *)entry)->heard_ms);
}

/* NULL: there is no room for it. */
static struct sender *sender_of(struct ft_group_numbers *n, const Fabrictrace__Envelope *e)
{
    struct name name;
    struct sender *sender;
    bool fresh;

    memset(&name, 0, sizeof(name));
    memcpy(name.program, e->program, strlen(e->program));
    memcpy(name.source, e->source, strlen(e->source));
    if (ft_table_count(n->senders) >= n->senders_max && !ft_table_find(n->senders, &name))
        ft_table_make_room(n->senders, &n->sender_hand, LOOKS, is_silent_sender, n);
    sender = ft_table_insert(n->senders, &name, &fresh);
    if (!sender)
        return NULL;
    if (fresh)
        sender->id = ++n->last_id;
    sender->heard_ms = n->now_ms;
    return sender;
}

static struct entry *entry_of(struct ft_group_numbers *n, const Fabrictrace__Envelope *e,
                              enum ft_ingest_topic topic, uint32_t partition, bool *fresh)
{
    const struct sender *sender = sender_of(n, e);
    struct key key = {.topic = topic, .partition = partition};

    if (!sender)
        return NULL;
    key.sender = sender->id;
    if (ft_table_count(n->table) >= n->max && !ft_table_find(n->table, &key))
        ft_table_make_room(n->table, &n->hand, LOOKS, is_silent_entry, n);
    return ft_table_insert(n->table, &key, fresh);
}

/* From which record on those that are missing before the message are counted. */
static void take_start(struct ft_group_numbers *n, struct entry *entry,
                       const Fabrictrace__Envelope *e, bool known)
{
    bool restart = entry->boot_id != e->boot_id, returns = entry->boot_before == e->boot_id;

    if (restart && known) {
        n->stats.restarts++;
        entry->boot_before = entry->boot_id;
    }
    /* All that it numbered since came here, or was lost; but of two that have one name in turn
     * nobody knows. What came before the first that is heard of was another daemon's to count. */
    if (!known || entry->resumed || (restart && returns))
        entry->record_last = e->record_last - e->records;
    else if (restart)
        entry->record_last = 0;
    entry->boot_id = e->boot_id;
}

bool ft_group_numbers_begin(struct ft_group_numbers *n, const Fabrictrace__Envelope *e,
                            enum ft_ingest_topic topic, uint32_t partition, bool old,
                            int64_t now_ms)
{
    uint64_t before = e->record_last - e->records;
    bool compacted = topic == FT_INGEST_STATE && old, fresh;
    struct entry *entry;

    n->now_ms = now_ms;
    entry = entry_of(n, e, topic, partition, &fresh);
    if (!entry) {
        n->stats.unknown++;
        n->stats.numbered += e->records;
        return true;
    }
    entry->heard_ms = now_ms;
    if (!fresh && entry->boot_id == e->boot_id && e->sequence <= entry->sequence)
        return false;
    entry->resumed = entry->resumed || compacted;
    take_start(n, entry, e, !fresh);
    entry->resumed = compacted;
    /* A sender that says more than it numbers skips nothing. */
    if (before > entry->record_last) {
        n->stats.skipped += before - entry->record_last;
        n->stats.numbered += before - entry->record_last;
    }
    n->stats.numbered += e->records;
    entry->sequence = e->sequence;
    entry->record_last = e->record_last;
    return true;
}

void ft_group_numbers_end(struct ft_group_numbers *n, const Fabrictrace__Envelope *e,
                          enum ft_group_numbers_outcome outcome)
{
    uint64_t *const counts[] = {[FT_GROUP_APPLIED] = &n->stats.applied,
                                [FT_GROUP_REFUSED] = &n->stats.refused,
                                [FT_GROUP_STALE] = &n->stats.stale};

    *counts[outcome] += e->records;
}

void ft_group_numbers_resume(struct ft_group_numbers *n, uint32_t partition)
{
    for (uint32_t i = 0; i < ft_table_limit(n->table); i++) {
        struct entry *entry = ft_table_at(n->table, i);

        if (entry && entry->key.topic == FT_INGEST_FLOWS && entry->key.partition == partition)
            entry->resumed = true;
    }
}

const struct ft_group_numbers_stats *ft_group_numbers_stats(const struct ft_group_numbers *n)
{
    return &n->stats;
}

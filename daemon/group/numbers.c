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
struct key {
    char program[FT_PROGRAM_BYTES_MAX];
    char source[FT_SOURCE_ID_BYTES_MAX];
    uint32_t topic, partition;
};

struct entry {
    struct key key;
    uint64_t boot_id, sequence, record_last;
    int64_t heard_ms;
    bool resumed; /* another daemon had the partition since */
};

struct ft_group_numbers {
    struct ft_table *table;
    size_t max;
    uint32_t hand;
    int64_t now_ms;
    struct ft_group_numbers_stats stats;
};

struct ft_group_numbers *ft_group_numbers_new(size_t senders_max, uint64_t seed)
{
    struct ft_group_numbers *n = calloc(1, sizeof(*n));

    if (!n)
        return NULL;
    n->max = senders_max;
    n->table = ft_table_new(sizeof(struct entry), sizeof(struct key), senders_max, seed);
    if (n->table)
        return n;
    free(n);
    return NULL;
}

void ft_group_numbers_free(struct ft_group_numbers *n)
{
    if (!n)
        return;
    ft_table_free(n->table);
    free(n);
}

static bool is_silent(void *arg, void *entry)
{
    return ((const struct ft_group_numbers *)arg)->now_ms -
               ((const struct entry *)entry)->heard_ms >
           SILENT_MS;
}

static struct entry *entry_of(struct ft_group_numbers *n, const Fabrictrace__Envelope *e,
                              enum ft_ingest_topic topic, uint32_t partition, bool *fresh)
{
    struct key key;

    memset(&key, 0, sizeof(key));
    memcpy(key.program, e->program, strlen(e->program));
    memcpy(key.source, e->source, strlen(e->source));
    key.topic = topic;
    key.partition = partition;
    if (ft_table_count(n->table) >= n->max && !ft_table_find(n->table, &key))
        ft_table_make_room(n->table, &n->hand, LOOKS, is_silent, n);
    return ft_table_insert(n->table, &key, fresh);
}

bool ft_group_numbers_begin(struct ft_group_numbers *n, const Fabrictrace__Envelope *e,
                            enum ft_ingest_topic topic, uint32_t partition, int64_t now_ms)
{
    uint64_t before = e->record_last - e->records;
    bool fresh;
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
    /* What came before the first that is heard of was another daemon's to count. */
    if (fresh || entry->resumed || entry->boot_id != e->boot_id) {
        n->stats.restarts += !fresh && entry->boot_id != e->boot_id;
        entry->boot_id = e->boot_id;
        entry->record_last = before;
    }
    entry->resumed = false;
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

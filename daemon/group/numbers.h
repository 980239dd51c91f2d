// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_GROUP_NUMBERS_H
#define FT_DAEMON_GROUP_NUMBERS_H
/*
 * How far each sender got in each partition of the ingest topics: what came twice, and what it
 * dropped before it sent it. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/topics/envelope.h"

/* numbered = applied + refused + stale + skipped, in records. */
struct ft_group_numbers_stats {
    uint64_t numbered, applied, refused, stale;
    uint64_t skipped;  /* dropped by their senders */
    uint64_t restarts; /* of senders */
    uint64_t unknown;  /* messages of senders that there was no room to remember */
};

struct ft_group_numbers;

/* Partitions of flows of which there is room for every sender's numbers. Where there are more, each
 * member of a group has some. */
#define FT_GROUP_NUMBERS_PARTITIONS 64

/* Of senders_max senders at most, in so many partitions of flows: of a full table who was not heard
 * for an hour is forgotten. NULL without memory. */
struct ft_group_numbers *ft_group_numbers_new(size_t senders_max, uint32_t partitions,
                                              uint64_t seed);
void ft_group_numbers_free(struct ft_group_numbers *numbers);

/* Whether the message is new. Then its records, and those missing before it, are counted as
 * numbered: of its own say with ft_group_numbers_end() what became of them. old: it says nothing of
 * now; of state, which is compacted, nobody knows what was between messages that are. now_ms: of
 * any steady clock. */
bool ft_group_numbers_begin(struct ft_group_numbers *numbers, const Fabrictrace__Envelope *e,
                            enum ft_ingest_topic topic, uint32_t partition, bool old,
                            int64_t now_ms);

enum ft_group_numbers_outcome {
    FT_GROUP_APPLIED,
    FT_GROUP_REFUSED,
    FT_GROUP_STALE,
};
void ft_group_numbers_end(struct ft_group_numbers *numbers, const Fabrictrace__Envelope *e,
                          enum ft_group_numbers_outcome outcome);

/* Another daemon had this partition of the flows meanwhile: what came there it has counted. */
void ft_group_numbers_resume(struct ft_group_numbers *numbers, uint32_t partition);

const struct ft_group_numbers_stats *ft_group_numbers_stats(const struct ft_group_numbers *numbers);

#endif

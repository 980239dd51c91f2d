// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TOPICS_ENVELOPE_H
#define FT_TOPICS_ENVELOPE_H
/*
 * Messages of the ingest topics: a batch, its sender and its numbers (Envelope in
 * fabrictrace.proto). Pure.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/writer.h"
#include "proto/fabrictrace.pb-c.h"

/* The ingest topics, behind the prefix. Flows are divided by their 5-tuples; of the others all that
 * a source sends is in one partition. The second is compacted: what is there and does not change.
 */
enum ft_ingest_topic {
    FT_INGEST_FLOWS,
    FT_INGEST_STATE,
    FT_INGEST_REPORTS,
    FT_INGEST_TOPICS,
};

/* "fabrictrace.ingest.flows" */
const char *ft_ingest_topic_name(enum ft_ingest_topic topic);

/* No sender divides flows among more. */
#define FT_INGEST_PARTITIONS_MAX 4096

/* Records of a message at most. */
#define FT_ENVELOPE_RECORDS_MAX (1u << 20)

/* -ENOSPC when the writer fails. */
int ft_envelope_write(struct ft_writer *w, const Fabrictrace__Envelope *envelope);

/* NULL: not an envelope, or what it says of itself cannot be; its names are those that a sender
 * may have (lib/io/transport/transport.h), its numbers go together. Free it. */
Fabrictrace__Envelope *ft_envelope_read(const uint8_t *bytes, size_t len);
void ft_envelope_free(Fabrictrace__Envelope *envelope);

#endif

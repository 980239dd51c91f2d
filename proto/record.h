// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_RECORD_H
#define FT_PROTO_RECORD_H
/*
 * Records: what is common to all kinds of them. One table ties a kind to its schema name, its
 * member of Fabrictrace__Record and its Kafka key.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "lib/base/writer.h"
#include "proto/fabrictrace.pb-c.h"

#define FT_RECORD_KEY_BYTES 320

/* The kinds, in the table's order: 0 <= i < ft_record_kinds(). */
size_t ft_record_kinds(void);
Fabrictrace__Record__KindCase ft_record_kind(size_t i);

/* "fabrictrace.path.v1"; NULL for an unknown kind. Also the Kafka topic (before its prefix). */
const char *ft_record_schema(Fabrictrace__Record__KindCase kind);

/* The message inside a record, NULL when none is set. */
const ProtobufCMessage *ft_record_message(const Fabrictrace__Record *record);

/* Kafka key: path, flow and probe by "src,dst,sport,dport,proto"; observation as well, observations
 * by the first switch among them; link "switch/port"; imbalance "scope/name"; event "kind/subject";
 * diagnosis "job/communicator"; counters "agent/ifindex"; loss and host by source; switch by its
 * agent address; communicator, collective and progress "comm_id/host"; plan by job; plan_port
 * "job/host"; partial by source. Always terminated; empty when a needed field is absent.
 */
void ft_record_key(const Fabrictrace__Record *record, char key[FT_RECORD_KEY_BYTES]);

/* Its members of these names; NULL and false where it has none. */
const char *ft_record_fabric(const Fabrictrace__Record *record);
bool ft_record_window(const Fabrictrace__Record *record, uint64_t *start_ms);

/* One line of NDJSON without its newline, "schema" first. -EINVAL when no kind is set, -ENOSPC when
 * the writer fails. */
int ft_record_to_json(const Fabrictrace__Record *record, struct ft_writer *w);

/* Reads one line of NDJSON. The record is new; ft_record_free() frees it. -EINVAL with a reason,
 * -ENOMEM. */
int ft_record_from_json(const char *line, size_t len, Fabrictrace__Record **record, char *error,
                        size_t error_bytes);

/* The same of what a program wrote that may be newer than this one (FT_JSON_BY_NEWER). */
int ft_record_from_newer(const char *line, size_t len, Fabrictrace__Record **record, char *error,
                         size_t error_bytes);
void ft_record_free(Fabrictrace__Record *record);

/* A batch to send. -ENOSPC when the writer fails. */
int ft_batch_pack(Fabrictrace__Record *const *records, size_t count, struct ft_writer *w);

/* Between a Flow message and a tuple. The message borrows the tuple's bytes. -EINVAL when src, dst,
 * or a number is missing or out of range. */
int ft_flow_to_tuple(const Fabrictrace__Flow *flow, struct ft_tuple *tuple);
void ft_flow_from_tuple(Fabrictrace__Flow *flow, const struct ft_tuple *tuple);

#endif

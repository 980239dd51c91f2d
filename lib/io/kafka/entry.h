// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_ENTRY_H
#define FT_IO_KAFKA_ENTRY_H
/*
 * A Kafka message as bytes: how it waits in memory and in the spool. A version, the number of
 * headers, the key's length (16 bits, big endian), the partition (32 bits; version 1 has none, its
 * messages go where their key says), the weight (32 bits; from version 3 on), the topic, the key,
 * name and value of each header, each text with its zero byte, and the value to the end. Pure.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/writer.h"
#include "lib/io/kafka/producer.h"

/* Headers that a message has at most. */
#define FT_KAFKA_HEADERS_MAX 16

/* -EINVAL: a key over 65535 bytes, too many headers; -ENOSPC when the writer fails. */
int ft_kafka_entry_write(struct ft_writer *w, const struct ft_kafka_outgoing *message);

/* Points into the bytes. -EBADMSG. */
int ft_kafka_entry_read(const uint8_t *bytes, size_t len, struct ft_kafka_outgoing *message,
                        struct ft_kafka_header headers[FT_KAFKA_HEADERS_MAX]);

/* The weight of an entry; 0 where it has none. */
uint32_t ft_kafka_entry_weight(const uint8_t *bytes, size_t len);

#endif

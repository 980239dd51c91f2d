// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_PARTITION_H
#define FT_BASE_PARTITION_H
/*
 * Which partition of a topic has a flow: the one that Kafka's own partitioner (murmur2) gives a
 * message whose key is the flow's 5-tuple as 37 bytes: source and destination as 16 bytes each
 * (IPv4 mapped to IPv6), source port, destination port, protocol, in network order. Pure.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"

/* Kafka's murmur2 (org.apache.kafka.common.utils.Utils). */
uint32_t ft_murmur2(const void *bytes, size_t len);

/* 0 <= result < partitions; partitions are 1 at least. */
uint32_t ft_partition_of_bytes(const void *key, size_t len, uint32_t partitions);
uint32_t ft_partition_of_flow(const struct ft_tuple *tuple, uint32_t partitions);

#endif

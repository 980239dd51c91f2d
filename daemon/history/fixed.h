// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HISTORY_FIXED_H
#define FT_DAEMON_HISTORY_FIXED_H
/*
 * The fixed parts of records, each kept once: by number, with how many rows need it. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_fixed {
    uint8_t *bytes; /* NULL: the number is free */
    uint32_t len;
    uint32_t users;
    uint32_t next; /* of the same bucket, or free */
    uint32_t hash;
    uint64_t key_hash; /* of the record's Kafka key */
    uint8_t kind;
};

struct ft_fixed_table;

struct ft_fixed_table *ft_fixed_table_new(uint64_t seed);
void ft_fixed_table_free(struct ft_fixed_table *table);

/* Its number, with a user more; UINT32_MAX without memory. */
uint32_t ft_fixed_take(struct ft_fixed_table *table, uint8_t kind, const uint8_t *bytes, size_t len,
                       uint64_t key_hash);

/* A user more. */
void ft_fixed_use(struct ft_fixed_table *table, uint32_t number);

/* A user less: without any it is forgotten. */
void ft_fixed_drop(struct ft_fixed_table *table, uint32_t number);

/* NULL where there is none. */
const struct ft_fixed *ft_fixed_at(const struct ft_fixed_table *table, uint32_t number);

/* Numbers lie below this. */
uint32_t ft_fixed_limit(const struct ft_fixed_table *table);
size_t ft_fixed_count(const struct ft_fixed_table *table);
size_t ft_fixed_bytes(const struct ft_fixed_table *table);

/* Of any bytes, by the table's seed. */
uint64_t ft_fixed_hash(const struct ft_fixed_table *table, const void *bytes, size_t len);

#endif

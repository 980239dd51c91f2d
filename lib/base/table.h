// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_TABLE_H
#define FT_BASE_TABLE_H
/*
 * Capped hash table of fixed-size entries.
 *
 * An entry starts with its key. Entries live in slabs and never move, so pointers and indices stay
 * good until the entry is removed; the freed index is used again. Iteration is by index, so its
 * order depends only on the order of inserts and removes, never on the hash: that is what makes a
 * replay repeat to the byte. Open addressing on 8-byte slots, XXH3 with a caller's seed (give live
 * tables a random one, replays a fixed one).
 *
 * Memory: the entries with 8 bytes and a bit each, and 8 bytes a slot at a load of at most 3/4.
 * Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_table;

/* key_bytes, 4 or more, is the part of an entry, from its start, that is hashed and compared. At
 * most cap entries (< 2^31). NULL without memory. */
struct ft_table *ft_table_new(size_t entry_bytes, size_t key_bytes, size_t cap, uint64_t seed);
void ft_table_free(struct ft_table *table);

/* Gives memory of 1,024 entries back, after which the table may only be freed: in steps, since one
 * of hundreds of MiB takes long. Takes NULL. False: that was all. */
bool ft_table_free_some(struct ft_table *table);

/* Before the first insert: nobody will ask for the index of an entry, which has 8 bytes less then.
 */
void ft_table_without_index(struct ft_table *table);

/* The entry of a key, NULL when there is none. */
void *ft_table_find(const struct ft_table *table, const void *key);

/* The entry of a key, made when there is none: key copied, the rest zero, *fresh true. NULL when
 * the table is full or memory is short; that is counted. */
void *ft_table_insert(struct ft_table *table, const void *key, bool *fresh);

/* The same in steps, for batches: with a million entries nearly every look-up waits for memory, and
 * the waits of several look-ups can overlap. Hash every key of the batch and ask for its slot, then
 * for its entry, then insert. The hints change nothing. ft_table_hint_entry() says which entry it
 * asked for, NULL without one: most likely the key's; with it the insert needs to look no further.
 * It is good until an entry is removed. */
uint64_t ft_table_hash(const struct ft_table *table, const void *key);
void ft_table_hint_only(struct ft_table *table, size_t bytes); /* ask for the first bytes only */
void ft_table_hint_slot(const struct ft_table *table, uint64_t hash);
void *ft_table_hint_entry(const struct ft_table *table, uint64_t hash);
void *ft_table_insert_likely(struct ft_table *table, const void *key, uint64_t hash, void *likely,
                             bool *fresh);

void ft_table_remove(struct ft_table *table, void *entry);

/* Removes every entry; memory stays. */
void ft_table_clear(struct ft_table *table);

size_t ft_table_count(const struct ft_table *table);

/* Inserts refused since the table was made. */
uint64_t ft_table_refused(const struct ft_table *table);

/* Ages a table that is full a little at a time: looks at up to `looks` entries, round and round
 * from *hand (start at 0), and removes the first of which gone() says so; it frees what the entry
 * owns. True: there is room for one. However many entries there are, a step costs no more than
 * this. */
bool ft_table_make_room(struct ft_table *table, uint32_t *hand, uint32_t looks,
                        bool (*gone)(void *arg, void *entry), void *arg);

/* Bytes of memory held. */
size_t ft_table_bytes(const struct ft_table *table);

/* Index of an entry, below ft_table_limit(). */
uint32_t ft_table_index(const struct ft_table *table, const void *entry);

/* The entry at an index, NULL where there is none. */
void *ft_table_at(const struct ft_table *table, uint32_t index);
uint32_t ft_table_limit(const struct ft_table *table);

/* Iterates from *index (start at 0): the next entry, NULL at the end. The entry returned may be
 * removed; no other may, and none may be inserted. */
void *ft_table_next(const struct ft_table *table, uint32_t *index);

#endif

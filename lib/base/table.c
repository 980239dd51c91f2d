// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/table.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/base/mix.h"

#define SLAB_BITS    10
#define SLAB_ENTRIES (1u << SLAB_BITS)
#define FIRST_SLOTS  64
#define CACHE_LINE   64 /* divides the bytes of a slab */
#define LIVE_BITS    64
#define MOVED_AT_A_TIME                                                                            \
    4 /* slots, at a look-up: done in a third of the inserts to the next, or sooner */
#define NONE UINT32_MAX

/* Lengths of the keys that every sample meets: the sums of the poller, the flows of the daemon. */
#define KEY_SUM   80
#define KEY_TUPLE 40

#define SECRET_WORDS 24 /* as many as XXH3's own */

/* entry is index + 1, 0 marks an empty slot. tag is the high half of the hash. */
struct slot {
    uint32_t tag;
    uint32_t entry;
};

/* Precedes each entry in its slab, where entries are asked for their index. */
struct head {
    uint32_t index;
    uint32_t next_free; /* while it is free */
};

struct ft_table {
    size_t entry_bytes;
    size_t key_bytes;
    size_t head_bytes;
    size_t stride;
    size_t cap;
    size_t hint_bytes;
    uint64_t secret[SECRET_WORDS];
    struct slot *slots;
    uint32_t mask;
    /* Slots of before the table grew, from which all are moved a few at a time: NULL when they are.
     * They stay as they were; an entry that is not live, or has another key since, is passed over.
     */
    struct slot *old;
    uint32_t old_mask, moved;
    uint8_t **slabs;
    uint64_t *live; /* a bit an index: there is an entry */
    uint32_t slab_count;
    uint32_t limit;
    uint32_t first_free;
    size_t count;
    uint64_t refused;
};

static uint8_t *entry_at(const struct ft_table *t, uint32_t index)
{
    return t->slabs[index >> SLAB_BITS] + (size_t)(index & (SLAB_ENTRIES - 1)) * t->stride +
           t->head_bytes;
}

static struct head *head_of(const void *entry)
{
    return (struct head *)((uint8_t *)(uintptr_t)entry - sizeof(struct head));
}

/* Where a free entry has the index of the next free one. */
static void *next_free(const struct ft_table *t, void *entry)
{
    return t->head_bytes ? &head_of(entry)->next_free : entry;
}

static bool is_live(const struct ft_table *t, uint32_t index)
{
    return t->live[index / LIVE_BITS] >> index % LIVE_BITS & 1;
}

static void set_live(struct ft_table *t, uint32_t index, bool live)
{
    uint64_t bit = UINT64_C(1) << index % LIVE_BITS;

    if (live)
        t->live[index / LIVE_BITS] |= bit;
    else
        t->live[index / LIVE_BITS] &= ~bit;
}

/* Of a key whose length the compiler knows it is a third of the work; the hash is the same. */
uint64_t ft_table_hash(const struct ft_table *t, const void *key)
{
    switch (t->key_bytes) {
    case KEY_SUM:
        return XXH3_64bits_withSecret(key, KEY_SUM, t->secret, sizeof(t->secret));
    case KEY_TUPLE:
        return XXH3_64bits_withSecret(key, KEY_TUPLE, t->secret, sizeof(t->secret));
    default:
        return XXH3_64bits_withSecret(key, t->key_bytes, t->secret, sizeof(t->secret));
    }
}

/* XXH3 with a seed would work this out for every key. */
static void make_secret(uint64_t seed, uint64_t secret[SECRET_WORDS])
{
    for (size_t i = 0; i < SECRET_WORDS; i++)
        secret[i] = ft_mix_next(&seed);
}

struct ft_table *ft_table_new(size_t entry_bytes, size_t key_bytes, size_t cap, uint64_t seed)
{
    struct ft_table *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->entry_bytes = entry_bytes;
    t->key_bytes = key_bytes;
    t->head_bytes = sizeof(struct head);
    t->stride = t->head_bytes + ((entry_bytes + 7) & ~(size_t)7);
    t->cap = cap;
    t->hint_bytes = t->stride;
    make_secret(seed, t->secret);
    t->mask = FIRST_SLOTS - 1;
    t->first_free = NONE;
    t->slots = calloc(FIRST_SLOTS, sizeof(*t->slots));
    if (!t->slots) {
        free(t);
        return NULL;
    }
    return t;
}

void ft_table_free(struct ft_table *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->slab_count; i++)
        free(t->slabs[i]);
    free(t->slabs);
    free(t->live);
    free(t->slots);
    free(t->old);
    free(t);
}

bool ft_table_free_some(struct ft_table *t)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start, end;
    size_t left;

    if (!t || !t->slots)
        return false;
    if (t->slab_count == 0) {
        free(t->slots);
        t->slots = NULL;
        return true;
    }
    t->slab_count--;
    left = t->cap - ((size_t)t->slab_count << SLAB_BITS);
    start = ((uintptr_t)t->slabs[t->slab_count] + page - 1) / page * page;
    end = ((uintptr_t)t->slabs[t->slab_count] +
           t->stride * (left < SLAB_ENTRIES ? left : SLAB_ENTRIES)) /
          page * page;
    /* The allocator may keep it until the last of its neighbours is free, and then give all of them
     * back to the kernel at once, which takes long. */
    if (start < end)
        madvise((void *)start, end - start, MADV_DONTNEED);
    free(t->slabs[t->slab_count]);
    return true;
}

void ft_table_without_index(struct ft_table *t)
{
    t->stride -= t->head_bytes;
    t->hint_bytes -= t->head_bytes;
    t->head_bytes = 0;
}

/* Keys are short and mostly a multiple of 8 bytes: a call of memcmp() would cost more than it
 * compares. */
static inline __attribute__((always_inline)) bool same_bytes(const uint8_t *a, const uint8_t *b,
                                                             size_t bytes)
{
    size_t at = 0;
    uint64_t x, y, differ = 0;

#pragma GCC unroll 10
    for (; at + sizeof(x) <= bytes; at += sizeof(x)) {
        memcpy(&x, a + at, sizeof(x));
        memcpy(&y, b + at, sizeof(y));
        differ |= x ^ y;
    }
    for (; at < bytes; at++)
        differ |= a[at] ^ b[at];
    return differ == 0;
}

static inline bool same_key(const struct ft_table *t, const uint8_t *a, const uint8_t *b)
{
    switch (t->key_bytes) {
    case KEY_SUM:
        return same_bytes(a, b, KEY_SUM);
    case KEY_TUPLE:
        return same_bytes(a, b, KEY_TUPLE);
    default:
        return same_bytes(a, b, t->key_bytes);
    }
}

/* The slot of a key, or the empty slot where it belongs. */
static struct slot *slot_of(const struct ft_table *t, const void *key, uint64_t h)
{
    uint32_t tag = (uint32_t)(h >> 32);
    uint32_t at = (uint32_t)h & t->mask;

    for (;; at = (at + 1) & t->mask) {
        struct slot *s = &t->slots[at];

        if (s->entry == 0)
            return s;
        if (s->tag == tag && same_key(t, entry_at(t, s->entry - 1), key))
            return s;
    }
}

/* Where a key is that is in none of the slots of now, + 1; 0: nowhere. */
static uint32_t find_old(const struct ft_table *t, const void *key, uint64_t h)
{
    if (!t->old)
        return 0;
    for (uint32_t at = (uint32_t)h & t->old_mask;; at = (at + 1) & t->old_mask) {
        const struct slot *s = &t->old[at];

        if (s->entry == 0)
            return 0;
        if (s->tag == (uint32_t)(h >> 32) && is_live(t, s->entry - 1) &&
            same_key(t, entry_at(t, s->entry - 1), key))
            return s->entry;
    }
}

/* The low half of a hash is not kept in its slot, so growing hashes the keys again. */
static void move_one(struct ft_table *t, uint32_t entry)
{
    uint64_t h = ft_table_hash(t, entry_at(t, entry - 1));
    uint32_t at = (uint32_t)h & t->mask;

    while (t->slots[at].entry && t->slots[at].entry != entry)
        at = (at + 1) & t->mask;
    t->slots[at] = (struct slot){(uint32_t)(h >> 32), entry};
}

static void move_some(struct ft_table *t, uint32_t slots)
{
    for (; slots > 0 && t->moved <= t->old_mask; slots--) {
        uint32_t entry = t->old[t->moved++].entry;

        if (entry && is_live(t, entry - 1))
            move_one(t, entry);
    }
    if (t->moved <= t->old_mask)
        return;
    free(t->old);
    t->old = NULL;
}

/* At each look-up, also one that changes nothing else: where no entry is added any more, each would
 * have to look twice for ever. */
static void go_on_growing(const struct ft_table *t)
{
    if (t->old)
        move_some((struct ft_table *)(uintptr_t)t, MOVED_AT_A_TIME);
}

void *ft_table_find(const struct ft_table *t, const void *key)
{
    uint64_t h = ft_table_hash(t, key);
    uint32_t entry;

    go_on_growing(t);
    entry = slot_of(t, key, h)->entry;
    if (!entry)
        entry = find_old(t, key, h);
    return entry ? entry_at(t, entry - 1) : NULL;
}

static bool grow_slots(struct ft_table *t)
{
    struct slot *slots = calloc(((size_t)t->mask + 1) * 2, sizeof(*slots));

    if (!slots)
        return false;
    if (t->old)
        move_some(t, UINT32_MAX);
    t->old = t->slots;
    t->old_mask = t->mask;
    t->moved = 0;
    t->slots = slots;
    t->mask = t->mask * 2 + 1;
    return true;
}

/* The lists of slabs and of what is live grow by doubling. */
static bool grow_lists(struct ft_table *t)
{
    size_t count = t->slab_count ? 2 * (size_t)t->slab_count : 1;
    uint8_t **slabs = realloc(t->slabs, count * sizeof(*slabs));
    uint64_t *live;

    if (!slabs)
        return false;
    t->slabs = slabs;
    live = realloc(t->live, count * (SLAB_ENTRIES / LIVE_BITS) * sizeof(*live));
    if (!live)
        return false;
    t->live = live;
    return true;
}

static bool grow_slabs(struct ft_table *t)
{
    size_t left = t->cap - ((size_t)t->slab_count << SLAB_BITS);
    uint8_t *slab;

    if ((t->slab_count & (t->slab_count - 1)) == 0 && !grow_lists(t))
        return false;
    /* The last one holds no more than what is left up to the cap. */
    left = t->stride * (left < SLAB_ENTRIES ? left : SLAB_ENTRIES);
    slab = aligned_alloc(CACHE_LINE, (left + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
    if (!slab)
        return false;
    memset(&t->live[(size_t)t->slab_count * (SLAB_ENTRIES / LIVE_BITS)], 0,
           SLAB_ENTRIES / LIVE_BITS * sizeof(*t->live));
    t->slabs[t->slab_count++] = slab;
    return true;
}

/* The index of a new entry; NONE without memory. */
static uint32_t take_entry(struct ft_table *t)
{
    uint32_t index = t->first_free;

    if (index != NONE) {
        memcpy(&t->first_free, next_free(t, entry_at(t, index)), sizeof(t->first_free));
    } else {
        if (t->limit == t->slab_count << SLAB_BITS && !grow_slabs(t))
            return NONE;
        index = t->limit++;
        if (t->head_bytes)
            head_of(entry_at(t, index))->index = index;
    }
    set_live(t, index, true);
    return index;
}

void ft_table_hint_only(struct ft_table *t, size_t bytes)
{
    t->hint_bytes = t->head_bytes + bytes;
}

void ft_table_hint_slot(const struct ft_table *t, uint64_t hash)
{
    __builtin_prefetch(&t->slots[(uint32_t)hash & t->mask]);
}

/* The first entry whose tag fits is nearly always the one. */
void *ft_table_hint_entry(const struct ft_table *t, uint64_t hash)
{
    const struct slot *s;
    uint8_t *entry;

    for (uint32_t at = (uint32_t)hash;; at++) {
        s = &t->slots[at & t->mask];
        if (s->entry == 0)
            return NULL;
        if (s->tag == (uint32_t)(hash >> 32))
            break;
    }
    entry = entry_at(t, s->entry - 1);
    for (size_t line = 0; line < t->hint_bytes; line += CACHE_LINE)
        __builtin_prefetch(entry - t->head_bytes + line, 1);
    return entry;
}

static void *insert_hashed(struct ft_table *t, const void *key, uint64_t h, bool *fresh)
{
    struct slot *s;
    uint32_t index;
    uint8_t *entry;

    go_on_growing(t);
    s = slot_of(t, key, h);
    if (s->entry) {
        *fresh = false;
        return entry_at(t, s->entry - 1);
    }
    index = find_old(t, key, h);
    if (index) {
        *fresh = false;
        return entry_at(t, index - 1);
    }
    if (t->count >= t->cap)
        goto refuse;
    if (t->count >= ((size_t)t->mask + 1) / 4 * 3) {
        if (!grow_slots(t))
            goto refuse;
        s = slot_of(t, key, h);
    }
    index = take_entry(t);
    if (index == NONE)
        goto refuse;
    s->tag = (uint32_t)(h >> 32);
    s->entry = index + 1;
    t->count++;
    entry = entry_at(t, index);
    memcpy(entry, key, t->key_bytes);
    memset(entry + t->key_bytes, 0, t->entry_bytes - t->key_bytes);
    *fresh = true;
    return entry;
refuse:
    t->refused++;
    return NULL;
}

void *ft_table_insert_likely(struct ft_table *t, const void *key, uint64_t h, void *likely,
                             bool *fresh)
{
    if (!likely || !same_key(t, likely, key))
        return insert_hashed(t, key, h, fresh);
    *fresh = false;
    return likely;
}

void *ft_table_insert(struct ft_table *t, const void *key, bool *fresh)
{
    return insert_hashed(t, key, ft_table_hash(t, key), fresh);
}

/* Linear probing without tombstones: entries behind the hole that hashed at or before it move up.
 */
static void close_hole(struct ft_table *t, uint32_t hole)
{
    uint32_t at = hole;

    for (;;) {
        uint32_t home;

        at = (at + 1) & t->mask;
        if (t->slots[at].entry == 0)
            break;
        home = (uint32_t)ft_table_hash(t, entry_at(t, t->slots[at].entry - 1)) & t->mask;
        if (((at - home) & t->mask) >= ((at - hole) & t->mask)) {
            t->slots[hole] = t->slots[at];
            hole = at;
        }
    }
    t->slots[hole].entry = 0;
}

void ft_table_remove(struct ft_table *t, void *entry)
{
    uint64_t h = ft_table_hash(t, entry);
    struct slot *s = slot_of(t, entry, h);
    uint32_t index = (s->entry ? s->entry : find_old(t, entry, h)) - 1;

    if (s->entry)
        close_hole(t, (uint32_t)(s - t->slots));
    memcpy(next_free(t, entry), &t->first_free, sizeof(t->first_free));
    t->first_free = index;
    set_live(t, index, false);
    t->count--;
}

void ft_table_clear(struct ft_table *t)
{
    free(t->old);
    t->old = NULL;
    memset(t->slots, 0, ((size_t)t->mask + 1) * sizeof(*t->slots));
    if (t->slab_count)
        memset(t->live, 0, (size_t)t->slab_count * (SLAB_ENTRIES / LIVE_BITS) * sizeof(*t->live));
    t->limit = 0;
    t->first_free = NONE;
    t->count = 0;
}

size_t ft_table_count(const struct ft_table *t)
{
    return t->count;
}

uint64_t ft_table_refused(const struct ft_table *t)
{
    return t->refused;
}

bool ft_table_make_room(struct ft_table *t, uint32_t *hand, uint32_t looks,
                        bool (*gone)(void *arg, void *entry), void *arg)
{
    if (t->count < t->cap)
        return true;
    for (uint32_t i = 0; i < looks && i < t->limit; i++) {
        void *entry;

        if (*hand >= t->limit)
            *hand = 0;
        entry = ft_table_at(t, (*hand)++);
        if (!entry || !gone(arg, entry))
            continue;
        ft_table_remove(t, entry);
        return true;
    }
    return false;
}

size_t ft_table_bytes(const struct ft_table *t)
{
    return sizeof(*t) + ((size_t)t->mask + 1) * sizeof(*t->slots) +
           (t->old ? ((size_t)t->old_mask + 1) * sizeof(*t->old) : 0) +
           (size_t)t->slab_count *
               (sizeof(*t->slabs) + SLAB_ENTRIES / CHAR_BIT + t->stride * SLAB_ENTRIES);
}

uint32_t ft_table_index(const struct ft_table *t, const void *entry)
{
    assert(t->head_bytes);
    (void)t;
    return head_of(entry)->index;
}

void *ft_table_at(const struct ft_table *t, uint32_t index)
{
    return index < t->limit && is_live(t, index) ? entry_at(t, index) : NULL;
}

uint32_t ft_table_limit(const struct ft_table *t)
{
    return t->limit;
}

void *ft_table_next(const struct ft_table *t, uint32_t *index)
{
    while (*index < t->limit) {
        void *entry = ft_table_at(t, (*index)++);

        if (entry)
            return entry;
    }
    return NULL;
}

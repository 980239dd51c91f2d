// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/history/fixed.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct ft_fixed_table {
    struct ft_fixed *list;
    uint32_t limit, size, count;
    uint32_t free; /* the first free number */
    uint32_t *buckets;
    uint32_t bucket_count; /* a power of two */
    size_t bytes;
    uint64_t seed;
};

struct ft_fixed_table *ft_fixed_table_new(uint64_t seed)
{
    struct ft_fixed_table *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->free = NONE;
    t->seed = seed;
    return t;
}

void ft_fixed_table_free(struct ft_fixed_table *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->limit; i++)
        free(t->list[i].bytes);
    free(t->list);
    free(t->buckets);
    free(t);
}

uint64_t ft_fixed_hash(const struct ft_fixed_table *t, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint64_t hash = t->seed ^ UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    return hash;
}

static int rehash(struct ft_fixed_table *t, uint32_t bucket_count)
{
    uint32_t *buckets = malloc(bucket_count * sizeof(*buckets));

    if (!buckets)
        return -1;
    memset(buckets, 0xff, bucket_count * sizeof(*buckets));
    for (uint32_t i = 0; i < t->limit; i++) {
        struct ft_fixed *f = &t->list[i];

        if (!f->bytes)
            continue;
        f->next = buckets[f->hash & (bucket_count - 1)];
        buckets[f->hash & (bucket_count - 1)] = i;
    }
    free(t->buckets);
    t->buckets = buckets;
    t->bucket_count = bucket_count;
    return 0;
}

/* A free number; NONE without memory. */
static uint32_t new_number(struct ft_fixed_table *t)
{
    uint32_t number = t->free;

    if (number != NONE) {
        t->free = t->list[number].next;
        return number;
    }
    if (t->limit == t->size) {
        uint32_t size = t->size ? 2 * t->size : 256;
        struct ft_fixed *grown =
            t->size < NONE / 2 ? realloc(t->list, size * sizeof(*grown)) : NULL;

        if (!grown)
            return NONE;
        t->list = grown;
        t->size = size;
    }
    t->list[t->limit] = (struct ft_fixed){.bytes = NULL};
    return t->limit++;
}

static void give_back(struct ft_fixed_table *t, uint32_t number)
{
    t->list[number] = (struct ft_fixed){.next = t->free};
    t->free = number;
}

uint32_t ft_fixed_take(struct ft_fixed_table *t, uint8_t kind, const uint8_t *bytes, size_t len,
                       uint64_t key_hash)
{
    uint32_t hash = (uint32_t)ft_fixed_hash(t, bytes, len) ^ kind, number;
    uint8_t *copy;

    if (t->count >= t->bucket_count && rehash(t, t->bucket_count ? 2 * t->bucket_count : 256) &&
        !t->bucket_count)
        return NONE;
    for (number = t->buckets[hash & (t->bucket_count - 1)]; number != NONE;
         number = t->list[number].next) {
        struct ft_fixed *f = &t->list[number];

        if (f->hash == hash && f->kind == kind && f->len == len &&
            memcmp(f->bytes, bytes, len) == 0) {
            f->users++;
            return number;
        }
    }
    number = new_number(t);
    copy = number == NONE ? NULL : malloc(len ? len : 1);
    if (!copy) {
        if (number != NONE)
            give_back(t, number);
        return NONE;
    }
    if (len)
        memcpy(copy, bytes, len);
    t->list[number] = (struct ft_fixed){.bytes = copy,
                                        .len = (uint32_t)len,
                                        .users = 1,
                                        .next = t->buckets[hash & (t->bucket_count - 1)],
                                        .hash = hash,
                                        .key_hash = key_hash,
                                        .kind = kind};
    t->buckets[hash & (t->bucket_count - 1)] = number;
    t->count++;
    t->bytes += len + sizeof(struct ft_fixed) + sizeof(uint32_t);
    return number;
}

void ft_fixed_use(struct ft_fixed_table *t, uint32_t number)
{
    t->list[number].users++;
}

void ft_fixed_drop(struct ft_fixed_table *t, uint32_t number)
{
    struct ft_fixed *f = &t->list[number];
    uint32_t *at = &t->buckets[f->hash & (t->bucket_count - 1)];

    if (--f->users)
        return;
    while (*at != number)
        at = &t->list[*at].next;
    *at = f->next;
    t->bytes -= f->len + sizeof(struct ft_fixed) + sizeof(uint32_t);
    t->count--;
    free(f->bytes);
    give_back(t, number);
}

const struct ft_fixed *ft_fixed_at(const struct ft_fixed_table *t, uint32_t number)
{
    return number < t->limit && t->list[number].bytes ? &t->list[number] : NULL;
}

uint32_t ft_fixed_limit(const struct ft_fixed_table *t)
{
    return t->limit;
}

size_t ft_fixed_count(const struct ft_fixed_table *t)
{
    return t->count;
}

size_t ft_fixed_bytes(const struct ft_fixed_table *t)
{
    return t->bytes;
}

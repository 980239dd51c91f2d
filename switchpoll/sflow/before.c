// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/before.h"

#include <stdlib.h>
#include <string.h>

#define CACHE_LINE   64
#define SLOT_ENTRIES 4
#define FIRST_SIZE   64
#define INDEX_BITS   32

/* Words, each of 24 bits and 8 above: what is noted of every sum is written in one piece. */
struct noted {
    uint32_t tag;          /* upper half of the hash; the lower one chooses the slot */
    uint32_t highest_kind; /* kind 0: nothing is noted */
    uint32_t qp_steps;
    uint32_t at_ms; /* low bits */
};

static inline uint32_t above(uint32_t word)
{
    return word >> 24;
}

_Static_assert(FT_BEFORE_STEPS < 256 && sizeof(struct noted) == 16, "a slot is a cache line");

struct ft_before {
    struct noted *list;
    size_t size, max; /* powers of two */
};

static struct noted *make(size_t size)
{
    struct noted *list = aligned_alloc(CACHE_LINE, size * sizeof(*list));

    if (list)
        memset(list, 0, size * sizeof(*list));
    return list;
}

struct ft_before *ft_before_new(uint64_t max)
{
    struct ft_before *b = calloc(1, sizeof(*b));

    if (!b)
        return NULL;
    b->max = SLOT_ENTRIES;
    while (2 * b->max <= max)
        b->max *= 2;
    b->size = b->max < FIRST_SIZE ? b->max : FIRST_SIZE;
    b->list = make(b->size);
    if (b->list)
        return b;
    free(b);
    return NULL;
}

void ft_before_free(struct ft_before *b)
{
    if (!b)
        return;
    free(b->list);
    free(b);
}

static struct noted *slot_of(const struct ft_before *b, uint64_t hash)
{
    return &b->list[(uint32_t)hash & (b->size - 1) & ~(size_t)(SLOT_ENTRIES - 1)];
}

/* Without memory it stays as it is. */
void ft_before_expect(struct ft_before *b, size_t sums)
{
    size_t size = b->size;
    struct noted *list;

    while (size < sums && size < b->max)
        size *= 2;
    if (size == b->size)
        return;
    list = make(size);
    if (!list)
        return;
    free(b->list);
    b->list = list;
    b->size = size;
}

static inline struct noted *find_tag(struct noted *slot, uint32_t tag)
{
    for (struct noted *n = slot; n < slot + SLOT_ENTRIES; n++)
        if (n->tag == tag && above(n->highest_kind))
            return n;
    return NULL;
}

/* An empty one, or the one that was noted longest ago. */
static struct noted *oldest_of(struct noted *slot, uint32_t now)
{
    struct noted *at = slot;

    for (struct noted *n = slot; n < slot + SLOT_ENTRIES && above(at->highest_kind); n++)
        if (above(n->highest_kind) == 0 || now - n->at_ms > now - at->at_ms)
            at = n;
    return at;
}

void ft_before_put(struct ft_before *b, uint64_t hash, uint32_t highest_kind, uint32_t qp_steps,
                   uint32_t at_ms)
{
    struct noted *slot = slot_of(b, hash);
    uint32_t tag = (uint32_t)(hash >> INDEX_BITS);
    struct noted *at = find_tag(slot, tag);

    if (!at)
        at = oldest_of(slot, at_ms);
    *at = (struct noted){tag, highest_kind, qp_steps, at_ms};
}

void ft_before_hint(const struct ft_before *b, uint64_t hash)
{
    __builtin_prefetch(slot_of(b, hash));
}

bool ft_before_find(const struct ft_before *b, uint64_t hash, uint32_t qp, uint8_t kind,
                    struct ft_wall now, uint32_t *highest)
{
    const struct noted *n = find_tag(slot_of(b, hash), (uint32_t)(hash >> INDEX_BITS));

    if (!n || above(n->highest_kind) != kind || (n->qp_steps & FT_BEFORE_LOW_24) != qp ||
        (uint32_t)now.ms - n->at_ms > above(n->qp_steps) * FT_BEFORE_STEP_MS)
        return false;
    *highest = n->highest_kind & FT_BEFORE_LOW_24;
    return true;
}

size_t ft_before_bytes(const struct ft_before *b)
{
    return b->size * sizeof(*b->list);
}

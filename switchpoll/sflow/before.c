// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/before.h"

#include <stdlib.h>
#include <string.h>

#define CACHE_LINE   64
#define SLOT_ENTRIES 4
#define FIRST_SIZE   64
/* Numbers that are further may be lower again: a quarter of 2^24. */
#define AHEAD_MAX (1u << 22)
/* Of a sum of n samples, so many more may have been as likely as not to be seen in its time. */
#define MORE       8
#define HOLD_MS    5000
#define STEP_MS    20 /* of the time that a number counts for */
#define STEPS      (HOLD_MS / STEP_MS)
#define INDEX_BITS 32

struct noted {
    uint32_t tag; /* upper half of the hash; the lower one chooses the slot */
    uint32_t highest : 24;
    uint32_t kind : 8; /* 0: nothing is noted */
    uint32_t qp : 24;
    uint32_t steps : 8;
    uint32_t at_ms; /* low bits */
};
_Static_assert(STEPS < 256 && sizeof(struct noted) == 16, "a slot is a cache line");

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

/* In steps, for how long no more than AHEAD_MAX packets can have followed. */
static uint32_t steps_of(const struct ft_before_sum *sum)
{
    double each = (double)sum->packets / sum->samples;
    double ms = (double)AHEAD_MAX * sum->interval_ms / (((double)sum->samples + MORE) * each);

    return ms < HOLD_MS ? (uint32_t)(ms / STEP_MS) : STEPS;
}

void ft_before_note(struct ft_before *b, uint64_t hash, const struct ft_before_sum *sum)
{
    struct noted *slot = slot_of(b, hash), *at = slot;
    uint32_t tag = (uint32_t)(hash >> INDEX_BITS), now = (uint32_t)sum->last.ms;

    if (sum->samples == 0 || sum->packets == 0 || sum->kind == 0)
        return;
    for (struct noted *n = slot; n < slot + SLOT_ENTRIES; n++) {
        if (n->kind && n->tag == tag) {
            at = n;
            break;
        }
        if (at->kind && (n->kind == 0 || now - n->at_ms > now - at->at_ms))
            at = n;
    }
    *at = (struct noted){.tag = tag,
                         .highest = sum->highest & 0xffffff,
                         .kind = sum->kind,
                         .qp = sum->qp & 0xffffff,
                         .steps = steps_of(sum) & 0xff,
                         .at_ms = now};
}

void ft_before_hint(const struct ft_before *b, uint64_t hash)
{
    __builtin_prefetch(slot_of(b, hash));
}

bool ft_before_find(const struct ft_before *b, uint64_t hash, uint32_t qp, uint8_t kind,
                    struct ft_wall now, uint32_t *highest)
{
    const struct noted *slot = slot_of(b, hash);

    for (const struct noted *n = slot; n < slot + SLOT_ENTRIES; n++) {
        if (n->tag != (uint32_t)(hash >> INDEX_BITS) || n->kind != kind || n->kind == 0 ||
            n->qp != qp || (uint32_t)now.ms - n->at_ms > n->steps * STEP_MS)
            continue;
        *highest = n->highest;
        return true;
    }
    return false;
}

size_t ft_before_bytes(const struct ft_before *b)
{
    return b->size * sizeof(*b->list);
}

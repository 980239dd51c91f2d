// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/spread/kept.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/bound.h"
#include "lib/base/digest.h"
#include "lib/base/grow.h"

/* Bytes before a kept record, which say how long it is. */
#define LENGTH_BYTES 4
/* Positions are written into cursors, which are below 2^63; some are left for those that follow. */
#define POSITION_MASK (UINT64_MAX >> 2)

_Static_assert(FT_SPREAD_KEPT_MAX <= 4u << 20, "what the budget of the program gives it");

void ft_spread_kept_init(struct ft_spread_kept *k)
{
    *k = (struct ft_spread_kept){.order = NULL};
    ft_writer_init(&k->records, FT_SPREAD_RECORD_BYTES_MAX);
}

void ft_spread_kept_free(struct ft_spread_kept *k)
{
    ft_writer_free(&k->records);
    free(k->order);
    k->order = NULL;
    k->count = k->size = 0;
}

void ft_spread_kept_clear(struct ft_spread_kept *k)
{
    ft_writer_reset(&k->records);
    k->count = 0;
}

static uint64_t position_of(const Fabrictrace__Spread *s)
{
    const char *const texts[] = {s->group, s->job, s->src_host, s->dst_host};
    const Fabrictrace__Flow *f = s->flow;
    uint64_t position = (uint64_t)s->of;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        position = ft_digest_text(texts[i] ? texts[i] : "", position);
    if (f) {
        uint32_t numbers[] = {f->has_sport ? f->sport : s->dst_qp, f->dport, f->proto};

        position = ft_digest_bytes(f->src.data, f->src.len, position);
        position = ft_digest_bytes(f->dst.data, f->dst.len, position);
        position = ft_digest_bytes(numbers, sizeof(numbers), position);
    }
    return position & POSITION_MASK;
}

bool ft_spread_kept_add(struct ft_spread_kept *k, const Fabrictrace__Record *record)
{
    size_t len = fabrictrace__record__get_packed_size(record), offset = k->records.len;
    struct ft_spread_at *order;
    uint8_t *to;

    if (k->count == FT_SPREAD_RECORDS_MAX || offset + LENGTH_BYTES + len > k->records.max)
        return false;
    order = ft_grow(k->order, k->count, &k->size, sizeof(*order));
    if (!order)
        return false;
    k->order = order;
    to = ft_write_room(&k->records, LENGTH_BYTES + len);
    if (!to)
        return false;
    order[k->count++] = (struct ft_spread_at){position_of(record->spread), offset};
    memcpy(to, &(uint32_t){(uint32_t)len}, LENGTH_BYTES);
    fabrictrace__record__pack(record, to + LENGTH_BYTES);
    return true;
}

static int by_position(const void *a, const void *b)
{
    const struct ft_spread_at *x = a, *y = b;

    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void ft_spread_kept_order(struct ft_spread_kept *k)
{
    if (k->count)
        qsort(k->order, k->count, sizeof(*k->order), by_position);
    for (size_t i = 1; i < k->count; i++)
        if (k->order[i].position <= k->order[i - 1].position)
            k->order[i].position = k->order[i - 1].position + 1;
}

/* The first in the order at a position or behind it. */
static size_t find(const struct ft_spread_kept *k, uint64_t position)
{
    const struct ft_spread_at key = {.position = position};

    return ft_lower_bound(&key, k->order, k->count, sizeof(key), by_position);
}

bool ft_spread_kept_next(const struct ft_spread_kept *k, uint64_t *position,
                         const struct ft_emitter *emitter)
{
    size_t at = find(k, *position);
    Fabrictrace__Record *record;
    const uint8_t *bytes;
    uint32_t len;

    if (at == k->count)
        return false;
    *position = k->order[at].position;
    bytes = k->records.bytes + k->order[at].offset;
    memcpy(&len, bytes, LENGTH_BYTES);
    record = fabrictrace__record__unpack(NULL, len, bytes + LENGTH_BYTES);
    if (record)
        emitter->record(emitter->arg, record);
    fabrictrace__record__free_unpacked(record, NULL);
    ++*position;
    return true;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/batch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/grow.h"
#include "lib/base/reader.h"
#include "proto/arena.h"
#include "proto/columns.h"
#include "proto/record.h"

/* A batch may grow to this many times its length when decoded: twice what records that say little
 * come to, so that empty ones cannot be used to fill the memory. */
#define UNPACK_GROWTH_MAX 64
#define UNPACK_BYTES_MIN  ((size_t)64 << 10)
#define UNPACK_BYTES_MAX  ((size_t)128 << 20)

#define RECORDS_FIELD 1 /* of Batch */

enum wire {
    WIRE_VARINT = 0,
    WIRE_64 = 1,
    WIRE_BYTES = 2,
    WIRE_32 = 5,
};

struct ft_batch {
    struct ft_arena arena;
    size_t len;
    size_t at; /* of the bytes: decoded before it */
    Fabrictrace__Record **records;
    size_t count, room;
    size_t applied;
    uint64_t unknown;
    struct ft_columns_reader rows; /* of the record that is being applied */
    bool in_rows;
};

struct ft_batch *ft_batch_new(size_t len)
{
    struct ft_batch *b = calloc(1, sizeof(*b));
    size_t budget;

    if (!b)
        return NULL;
    budget =
        len < UNPACK_BYTES_MAX / UNPACK_GROWTH_MAX ? len * UNPACK_GROWTH_MAX : UNPACK_BYTES_MAX;
    ft_arena_init(&b->arena, UNPACK_BYTES_MIN + budget);
    b->len = len;
    return b;
}

void ft_batch_free(struct ft_batch *b)
{
    if (!b)
        return;
    ft_arena_release(&b->arena);
    free(b->records);
    free(b);
}

static int keep(struct ft_batch *b, Fabrictrace__Record *record)
{
    struct ft_columns_reader rows;
    Fabrictrace__Record **grown;

    if (!ft_record_message(record)) {
        b->unknown++;
        return 0;
    }
    if (record->kind_case == FABRICTRACE__RECORD__KIND_OBSERVATIONS &&
        ft_columns_open(&rows, record->observations))
        return -EBADMSG;
    grown = ft_grow(b->records, b->count, &b->room, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    b->records = grown;
    b->records[b->count++] = record;
    return 0;
}

static int take_record(struct ft_batch *b, struct ft_reader *r)
{
    uint64_t len = ft_read_varint(r);
    const uint8_t *bytes = len <= ft_reader_left(r) ? ft_read_bytes(r, (size_t)len) : NULL;
    Fabrictrace__Record *record;

    if (!ft_reader_ok(r) || (!bytes && len))
        return -EBADMSG;
    record = fabrictrace__record__unpack(&b->arena.allocator, (size_t)len, bytes);
    if (!record)
        return b->arena.no_memory ? -ENOMEM : -EBADMSG;
    return keep(b, record);
}

/* A field of a later version is passed over. */
static void skip_field(struct ft_reader *r, enum wire wire)
{
    uint64_t len;

    switch (wire) {
    case WIRE_VARINT:
        ft_read_varint(r);
        return;
    case WIRE_64:
        ft_read_skip(r, 8);
        return;
    case WIRE_32:
        ft_read_skip(r, 4);
        return;
    case WIRE_BYTES:
        len = ft_read_varint(r);
        ft_read_skip(r, len <= ft_reader_left(r) ? (size_t)len : SIZE_MAX);
        return;
    }
    ft_read_skip(r, SIZE_MAX);
}

static int decode(struct ft_batch *b, const uint8_t *bytes, size_t most)
{
    struct ft_reader r;
    int rc = 0;

    ft_reader_init(&r, bytes + b->at, b->len - b->at);
    for (size_t n = 0; rc == 0 && n < most && ft_reader_left(&r); n++) {
        uint64_t tag = ft_read_varint(&r);

        if (tag == (RECORDS_FIELD << 3 | WIRE_BYTES))
            rc = take_record(b, &r);
        else if (tag >> 3 == RECORDS_FIELD || tag >> 3 == 0)
            rc = -EBADMSG;
        else
            skip_field(&r, (enum wire)(tag & 7));
        if (rc == 0 && !ft_reader_ok(&r))
            rc = -EBADMSG;
    }
    b->at = b->len - ft_reader_left(&r);
    return rc;
}

/* Some observations of a record. Returns how many. */
static size_t apply_rows(struct ft_batch *b, const Fabrictrace__Record *record, size_t most,
                         const struct ft_batch_sink *sink)
{
    struct ft_observed o = {.packets = 0};
    size_t n = 0;

    if (!b->in_rows)
        b->in_rows = ft_columns_open(&b->rows, record->observations) == 0;
    for (; n < most; n++) {
        if (!b->in_rows || !ft_columns_next(&b->rows, &o)) {
            b->in_rows = false;
            b->applied++;
            break;
        }
        sink->observed(sink->arg, &o);
    }
    return n;
}

static void apply(struct ft_batch *b, size_t most, const struct ft_batch_sink *sink)
{
    while (most > 0 && b->applied < b->count) {
        const Fabrictrace__Record *record = b->records[b->applied];

        if (record->kind_case == FABRICTRACE__RECORD__KIND_OBSERVATIONS && sink->observed) {
            most -= apply_rows(b, record, most, sink);
            continue;
        }
        sink->record(sink->arg, record);
        b->applied++;
        most--;
    }
}

int ft_batch_step(struct ft_batch *b, const uint8_t *bytes, size_t most,
                  const struct ft_batch_sink *sink)
{
    int rc;

    if (b->at < b->len) {
        rc = decode(b, bytes, most);
        return rc ? rc : b->at < b->len || b->count > 0;
    }
    apply(b, most, sink);
    return b->applied < b->count;
}

uint64_t ft_batch_known(const struct ft_batch *b)
{
    return b->applied;
}

uint64_t ft_batch_unknown(const struct ft_batch *b)
{
    return b->unknown;
}

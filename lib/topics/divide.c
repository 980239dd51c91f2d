// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/topics/divide.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/partition.h"
#include "proto/batch.h"
#include "proto/columns.h"
#include "proto/record.h"

#define KEY_BYTES (FT_RECORD_KEY_BYTES + 64)

/* What waits for a partition of flows, or of reports: packed records, then rows that are not packed
 * yet. */
struct part {
    enum ft_ingest_topic topic;
    uint32_t partition;
    struct ft_writer packed;
    struct ft_columns *rows; /* NULL: of reports */
    uint32_t records;        /* of both */
};

struct ft_divide {
    uint32_t partitions;
    size_t bytes_max;
    struct part *parts; /* of flows */
    struct part reports;
    struct ft_writer one; /* a record of state, alone */
    const struct ft_divide_sink *sink;
};

struct ft_divide *ft_divide_new(uint32_t partitions, size_t part_bytes_max)
{
    struct ft_divide *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->partitions = partitions;
    d->bytes_max = part_bytes_max;
    /* One record may pass the limit. */
    ft_writer_init(&d->one, 4 * part_bytes_max);
    d->reports.topic = FT_INGEST_REPORTS;
    ft_writer_init(&d->reports.packed, 4 * part_bytes_max);
    d->parts = calloc(partitions, sizeof(*d->parts));
    for (uint32_t i = 0; d->parts && i < partitions; i++) {
        d->parts[i].topic = FT_INGEST_FLOWS;
        d->parts[i].partition = i;
        ft_writer_init(&d->parts[i].packed, 4 * part_bytes_max);
    }
    for (uint32_t i = 0; d->parts && i < partitions; i++)
        if (!(d->parts[i].rows = ft_columns_new(part_bytes_max))) {
            ft_divide_free(d);
            return NULL;
        }
    if (d->parts)
        return d;
    ft_divide_free(d);
    return NULL;
}

void ft_divide_free(struct ft_divide *d)
{
    if (!d)
        return;
    for (uint32_t i = 0; d->parts && i < d->partitions; i++) {
        ft_columns_free(d->parts[i].rows);
        ft_writer_free(&d->parts[i].packed);
    }
    free(d->parts);
    ft_writer_free(&d->reports.packed);
    ft_writer_free(&d->one);
    free(d);
}

static void pack_rows(struct part *p)
{
    uint32_t rows = p->rows ? ft_columns_count(p->rows) : 0;

    if (rows && ft_columns_pack(p->rows, &p->packed))
        p->records -= rows;
}

static void hand_over(struct ft_divide *d, struct part *p)
{
    struct ft_divided out = {.topic = p->topic, .partition = p->partition, .key = ""};

    pack_rows(p);
    out.batch = p->packed.bytes;
    out.len = p->packed.len;
    out.records = p->records;
    if (p->records)
        d->sink->part(d->sink->arg, &out);
    ft_writer_reset(&p->packed);
    p->records = 0;
}

static void take_row(void *arg, const struct ft_observed *o)
{
    struct ft_divide *d = arg;
    struct part *p = &d->parts[ft_partition_of_flow(&o->tuple, d->partitions)];
    int rc = ft_columns_add_row(p->rows, o);

    if (rc == -ENOSPC) {
        pack_rows(p);
        if (p->packed.len >= d->bytes_max)
            hand_over(d, p);
        rc = ft_columns_add_row(p->rows, o);
    }
    p->records += rc == 0;
}

/* Packs a record alone. */
static bool pack(struct ft_writer *w, const Fabrictrace__Record *record)
{
    /* protobuf-c's packing takes no const, though it changes nothing. */
    Fabrictrace__Record *one = (Fabrictrace__Record *)(uintptr_t)record;

    return ft_batch_pack(&one, 1, w) == 0;
}

static void take_packed(struct ft_divide *d, struct part *p, const Fabrictrace__Record *record)
{
    pack_rows(p); /* keeps the order */
    if (p->packed.len >= d->bytes_max)
        hand_over(d, p);
    p->records += pack(&p->packed, record);
}

static void take_of_flow(struct ft_divide *d, const Fabrictrace__Record *record,
                         const Fabrictrace__Flow *flow)
{
    struct ft_tuple tuple;
    struct part *p = d->parts;

    /* What names no flow its daemon counts as invalid, whichever it is. */
    if (flow && ft_flow_to_tuple(flow, &tuple) == 0)
        p = &d->parts[ft_partition_of_flow(&tuple, d->partitions)];
    take_packed(d, p, record);
}

/* Compaction keeps or drops complete messages: a record each. */
static void take_state(struct ft_divide *d, const Fabrictrace__Record *record)
{
    char name[FT_RECORD_KEY_BYTES], key[KEY_BYTES];
    struct ft_divided out = {.topic = FT_INGEST_STATE, .key = key, .records = 1};

    ft_writer_reset(&d->one);
    if (!pack(&d->one, record))
        return;
    ft_record_key(record, name);
    snprintf(key, sizeof(key), "%s/%s", ft_record_schema(record->kind_case), name);
    out.batch = d->one.bytes;
    out.len = d->one.len;
    d->sink->part(d->sink->arg, &out);
}

static void take_record(void *arg, const Fabrictrace__Record *record)
{
    struct ft_divide *d = arg;

    switch (record->kind_case) {
    case FABRICTRACE__RECORD__KIND_OBSERVATION:
        take_of_flow(d, record, record->observation->flow);
        break;
    case FABRICTRACE__RECORD__KIND_FLOW:
        take_of_flow(d, record, record->flow->flow);
        break;
    case FABRICTRACE__RECORD__KIND_SWITCH_REPORT:
    case FABRICTRACE__RECORD__KIND_QUEUE_PAIRS:
    case FABRICTRACE__RECORD__KIND_COMMUNICATOR:
    case FABRICTRACE__RECORD__KIND_HOST_STATUS:
        take_state(d, record);
        break;
    default:
        take_packed(d, &d->reports, record);
    }
}

int ft_divide_batch(struct ft_divide *d, const uint8_t *batch, size_t len,
                    const struct ft_divide_sink *sink)
{
    const struct ft_batch_sink records = {take_record, take_row, d};
    struct ft_batch *b = ft_batch_new(len);
    int rc;

    if (!b)
        return -ENOMEM;
    d->sink = sink;
    while ((rc = ft_batch_step(b, batch, SIZE_MAX, &records)) > 0)
        ;
    for (uint32_t i = 0; i < d->partitions; i++)
        hand_over(d, &d->parts[i]);
    hand_over(d, &d->reports);
    ft_batch_free(b);
    return rc;
}

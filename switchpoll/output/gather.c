// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/output/gather.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/io/transport/transport.h"
#include "proto/columns.h"
#include "proto/record.h"

/* Packed, this much goes out; one more record always has room above it. */
#define READY_BYTES (64u << 10)
#define ROOM_BYTES  (FT_TRANSPORT_FRAME_MAX / 2)

struct ft_gather {
    struct ft_columns *columns; /* NULL: lines */
    struct ft_writer packed;
    uint32_t records; /* in packed */
    uint32_t lost;
};

struct ft_gather *ft_gather_new(size_t payload_bytes)
{
    struct ft_gather *g = calloc(1, sizeof(*g));

    if (!g)
        return NULL;
    ft_writer_init(&g->packed, ROOM_BYTES);
    if (payload_bytes == 0)
        return g;
    if (payload_bytes > ROOM_BYTES / 2)
        payload_bytes = ROOM_BYTES / 2;
    g->columns = ft_columns_new(payload_bytes);
    if (!g->columns) {
        free(g);
        return NULL;
    }
    return g;
}

void ft_gather_free(struct ft_gather *g)
{
    if (!g)
        return;
    ft_columns_free(g->columns);
    ft_writer_free(&g->packed);
    free(g);
}

static int pack_one(struct ft_gather *g, const Fabrictrace__Record *record)
{
    Fabrictrace__Record *one = (Fabrictrace__Record *)(uintptr_t)record;
    size_t before = g->packed.len;
    int rc;

    if (g->columns) {
        /* Batches one after the other are one batch: that is how repeated fields are encoded. */
        rc = ft_batch_pack(&one, 1, &g->packed);
    } else {
        rc = ft_record_to_json(record, &g->packed);
        ft_write_u8(&g->packed, '\n');
    }
    if (rc == 0 && ft_writer_ok(&g->packed)) {
        g->records++;
        return g->packed.len >= READY_BYTES;
    }
    g->packed.len = before;
    g->packed.failed = false;
    return rc < 0 ? rc : -EMSGSIZE;
}

void ft_gather_finish(struct ft_gather *g)
{
    uint32_t rows = g->columns ? ft_columns_count(g->columns) : 0;

    if (rows == 0)
        return;
    if (ft_columns_pack(g->columns, &g->packed) == 0) {
        g->records += rows;
        return;
    }
    g->packed.failed = false;
    g->lost += rows;
}

int ft_gather_add(struct ft_gather *g, const Fabrictrace__Record *record)
{
    int rc = -EINVAL;

    if (g->columns && record->kind_case == FABRICTRACE__RECORD__KIND_OBSERVATION)
        rc = ft_columns_add(g->columns, record->observation);
    if (rc == 0)
        return 0;
    ft_gather_finish(g);
    if (rc == -ENOSPC && ft_columns_add(g->columns, record->observation) == 0)
        return g->packed.len >= READY_BYTES;
    return pack_one(g, record);
}

const struct ft_writer *ft_gather_packed(const struct ft_gather *g)
{
    return &g->packed;
}

uint32_t ft_gather_records(const struct ft_gather *g)
{
    return g->records;
}

void ft_gather_empty(struct ft_gather *g)
{
    ft_writer_reset(&g->packed);
    g->records = 0;
}

void ft_gather_take(struct ft_gather *g, struct ft_writer *bytes)
{
    *bytes = g->packed;
    ft_writer_init(&g->packed, ROOM_BYTES);
    g->records = 0;
}

uint32_t ft_gather_waiting(const struct ft_gather *g)
{
    return g->columns ? ft_columns_count(g->columns) : 0;
}

uint32_t ft_gather_lost(struct ft_gather *g)
{
    uint32_t lost = g->lost;

    g->lost = 0;
    return lost;
}

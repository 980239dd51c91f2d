// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/walk.h"

#include <assert.h>
#include <string.h>

void ft_walk_start(struct ft_walk *walk, enum ft_mib_table table, size_t varbinds_max,
                   size_t rows_max)
{
    size_t columns = ft_mib_columns(table);

    assert(columns <= FT_WALK_COLUMNS_MAX);
    *walk = (struct ft_walk){.table = table, .varbinds_max = varbinds_max, .rows_max = rows_max};
    for (size_t i = 0; i < columns; i++)
        walk->at[i] = *ft_mib_column(table, i);
}

size_t ft_walk_next(struct ft_walk *walk, struct ft_snmp_oid names[FT_WALK_COLUMNS_MAX],
                    unsigned *repetitions)
{
    size_t n = 0;
    size_t rows;

    for (size_t i = 0; i < ft_mib_columns(walk->table); i++)
        if (!walk->over[i]) {
            names[n] = walk->at[i];
            walk->asked[n++] = i;
        }
    walk->asked_count = n;
    if (n == 0)
        return 0;
    rows = (walk->varbinds_max >> walk->shrink) / n;
    *repetitions = rows ? (unsigned)rows : 1;
    return n;
}

static int compare(const uint32_t *a, size_t a_len, const uint32_t *b, size_t b_len)
{
    for (size_t i = 0; i < a_len && i < b_len; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return a_len == b_len ? 0 : a_len < b_len ? -1 : 1;
}

static bool within(const struct ft_snmp_varbind *v, const struct ft_snmp_oid *column)
{
    return v->oid_len > column->len && v->oid_len <= FT_SNMP_OID_MAX &&
           memcmp(v->oid, column->ids, column->len * sizeof(v->oid[0])) == 0;
}

/* Whether the varbind continues its column; ends the column when not. */
static bool goes_on(struct ft_walk *walk, size_t column, const struct ft_snmp_varbind *v)
{
    struct ft_snmp_oid *at = &walk->at[column];

    if (walk->over[column])
        return false;
    walk->over[column] = true;
    if (v->type == FT_SNMP_END || v->type == FT_SNMP_NONE ||
        !within(v, ft_mib_column(walk->table, column)))
        return false;
    if (compare(v->oid, v->oid_len, at->ids, at->len) <= 0) {
        walk->not_increasing = true;
        return false;
    }
    if (walk->rows[column] >= walk->rows_max) {
        walk->truncated = true;
        return false;
    }
    walk->over[column] = false;
    walk->rows[column]++;
    memcpy(at->ids, v->oid, v->oid_len * sizeof(v->oid[0]));
    at->len = v->oid_len;
    return true;
}

void ft_walk_take(struct ft_walk *walk, const struct ft_snmp_varbind *varbinds, size_t count,
                  void (*on_cell)(void *arg, const struct ft_walk_cell *cell), void *arg)
{
    /* Fewer varbinds than columns are an agent's small message; none at all would never end. */
    for (size_t k = 0; count == 0 && k < walk->asked_count; k++)
        walk->over[walk->asked[k]] = true;
    for (size_t k = 0; k < count && walk->asked_count; k++) {
        size_t column = walk->asked[k % walk->asked_count];
        size_t prefix = ft_mib_column(walk->table, column)->len;
        struct ft_walk_cell cell = {.table = walk->table, .column = column, .value = &varbinds[k]};

        if (!goes_on(walk, column, &varbinds[k]))
            continue;
        walk->cells++;
        cell.index = varbinds[k].oid + prefix;
        cell.index_len = varbinds[k].oid_len - prefix;
        on_cell(arg, &cell);
    }
}

bool ft_walk_shrink(struct ft_walk *walk)
{
    if ((walk->varbinds_max >> walk->shrink) <= walk->asked_count)
        return false;
    walk->shrink++;
    return true;
}

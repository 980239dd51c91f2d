// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/history/latest.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"

#define ID_BYTES 24
#define OP_BYTES 36

struct key {
    char comm_id[ID_BYTES];
    char op[OP_BYTES];
    uint32_t rank;
};

struct entry {
    struct key key;
    int64_t time_ms;
    uint8_t *packed;
    size_t len;
};

struct ft_latest {
    struct ft_table *table;
    size_t bytes, bytes_max;
    uint64_t refused;
};

struct ft_latest *ft_latest_new(size_t count_max, size_t bytes_max, uint64_t seed)
{
    struct ft_latest *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->bytes_max = bytes_max;
    l->table = ft_table_new(sizeof(struct entry), sizeof(struct key), count_max, seed);
    if (!l->table) {
        free(l);
        return NULL;
    }
    return l;
}

static void forget(struct ft_latest *l, struct entry *e)
{
    l->bytes -= e->len;
    free(e->packed);
    ft_table_remove(l->table, e);
}

void ft_latest_free(struct ft_latest *l)
{
    struct entry *e;
    uint32_t index = 0;

    if (!l)
        return;
    while ((e = ft_table_next(l->table, &index)))
        forget(l, e);
    ft_table_free(l->table);
    free(l);
}

void ft_latest_take(struct ft_latest *l, const Fabrictrace__Collective *c)
{
    struct key key = {.rank = c->rank};
    size_t len = fabrictrace__collective__get_packed_size(c);
    struct entry *e;
    uint8_t *packed;
    bool fresh;

    strncpy(key.comm_id, c->comm_id ? c->comm_id : "", sizeof(key.comm_id) - 1);
    strncpy(key.op, c->op ? c->op : "", sizeof(key.op) - 1);
    e = ft_table_insert(l->table, &key, &fresh);
    if (!e) {
        l->refused++;
        return;
    }
    packed = l->bytes - e->len + len <= l->bytes_max ? malloc(len ? len : 1) : NULL;
    if (!packed) {
        l->refused++;
        forget(l, e);
        return;
    }
    fabrictrace__collective__pack(c, packed);
    free(e->packed);
    l->bytes += len - e->len;
    e->packed = packed;
    e->len = len;
    e->time_ms = (int64_t)c->time_ms;
}

bool ft_latest_next(const struct ft_latest *l, uint32_t *index,
                    void (*each)(void *arg, const Fabrictrace__Collective *c), void *arg)
{
    const struct entry *e = ft_table_next(l->table, index);
    Fabrictrace__Collective *c =
        e ? fabrictrace__collective__unpack(NULL, e->len, e->packed) : NULL;

    if (!c)
        return e != NULL;
    each(arg, c);
    fabrictrace__collective__free_unpacked(c, NULL);
    return true;
}

void ft_latest_forget(struct ft_latest *l, int64_t ms)
{
    struct entry *e;
    uint32_t index = 0;

    while ((e = ft_table_next(l->table, &index)))
        if (e->time_ms < ms)
            forget(l, e);
}

uint64_t ft_latest_refused(const struct ft_latest *l)
{
    return l->refused;
}

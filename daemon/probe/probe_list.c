// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/probe/probe_list.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/table.h"
#include "lib/base/tuple.h"
#include "proto/record.h"

struct entry {
    struct ft_tuple tuple;
    uint64_t number; /* the higher the later */
    uint8_t *packed;
    size_t packed_bytes;
};

struct ft_probe_list {
    struct ft_table *table;
    uint64_t count;
};

struct ft_probe_list *ft_probe_list_new(uint64_t seed)
{
    struct ft_probe_list *list = calloc(1, sizeof(*list));

    if (!list)
        return NULL;
    list->table =
        ft_table_new(sizeof(struct entry), sizeof(struct ft_tuple), FT_PROBE_LIST_MAX, seed);
    if (list->table)
        return list;
    free(list);
    return NULL;
}

void ft_probe_list_free(struct ft_probe_list *list)
{
    struct entry *e;
    uint32_t index = 0;

    if (!list)
        return;
    while ((e = ft_table_next(list->table, &index)))
        free(e->packed);
    ft_table_free(list->table);
    free(list);
}

static void remove_oldest(struct ft_probe_list *list)
{
    struct entry *e, *oldest = NULL;
    uint32_t index = 0;

    while ((e = ft_table_next(list->table, &index)))
        if (!oldest || e->number < oldest->number)
            oldest = e;
    if (!oldest)
        return;
    free(oldest->packed);
    ft_table_remove(list->table, oldest);
}

int ft_probe_list_put(struct ft_probe_list *list, const Fabrictrace__Probe *probe)
{
    size_t len = fabrictrace__probe__get_packed_size(probe);
    struct ft_tuple tuple;
    struct entry *e;
    uint8_t *packed;
    bool fresh;

    if (!probe->flow || ft_flow_to_tuple(probe->flow, &tuple))
        return -EINVAL;
    packed = malloc(len ? len : 1);
    if (!packed)
        return -ENOMEM;
    fabrictrace__probe__pack(probe, packed);
    if (!ft_table_find(list->table, &tuple) && ft_table_count(list->table) >= FT_PROBE_LIST_MAX)
        remove_oldest(list);
    e = ft_table_insert(list->table, &tuple, &fresh);
    if (!e) {
        free(packed);
        return -ENOMEM;
    }
    free(e->packed);
    e->packed = packed;
    e->packed_bytes = len;
    e->number = ++list->count;
    return 0;
}

bool ft_probe_list_next(const struct ft_probe_list *list, int64_t now_ms, uint32_t *index,
                        void (*each)(void *arg, const Fabrictrace__Record *record), void *arg)
{
    const struct entry *e = ft_table_next(list->table, index);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    if (!e)
        return false;
    record.kind_case = FABRICTRACE__RECORD__KIND_PROBE;
    record.probe = fabrictrace__probe__unpack(NULL, e->packed_bytes, e->packed);
    if (!record.probe)
        return true;
    if (record.probe->outcome == FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_ASKED &&
        now_ms - (int64_t)record.probe->time_ms > FT_PROBE_LIST_LOST_MS)
        record.probe->outcome = FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_LOST;
    each(arg, &record);
    fabrictrace__probe__free_unpacked(record.probe, NULL);
    return true;
}

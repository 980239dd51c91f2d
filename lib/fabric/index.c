// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX (1u << 24)
#define NONE        UINT32_MAX

/* What a switch's array may take: 4 KiB. */
#define LOW_MAX      1024u
#define ROOM_MIN     32u
#define SWITCHES_MAX (1u << 20)

struct ft_index_row {
    uint32_t *ids; /* and 1; 0: none */
    uint32_t room;
};

struct name_key {
    uint32_t namespace;
    char name[FT_NAME_MAX + 1];
};

struct name_entry {
    struct name_key key;
    uint32_t id;
};

struct address_key {
    struct ft_ip ip;
    uint32_t namespace;
};

struct address_entry {
    struct address_key key;
    uint32_t id;
};

struct ifindex_key {
    uint32_t switch_id;
    uint32_t ifindex;
};

struct ifindex_entry {
    struct ifindex_key key;
    uint32_t id;
};

int ft_index_init(struct ft_index *index)
{
    index->names = ft_table_new(sizeof(struct name_entry), sizeof(struct name_key), ENTRIES_MAX, 0);
    index->addresses =
        ft_table_new(sizeof(struct address_entry), sizeof(struct address_key), ENTRIES_MAX, 0);
    index->ifindexes =
        ft_table_new(sizeof(struct ifindex_entry), sizeof(struct ifindex_key), ENTRIES_MAX, 0);
    return index->names && index->addresses && index->ifindexes ? 0 : -ENOMEM;
}

void ft_index_free(struct ft_index *index)
{
    ft_table_free(index->names);
    ft_table_free(index->addresses);
    ft_table_free(index->ifindexes);
    for (uint32_t i = 0; i < index->row_count; i++)
        free(index->rows[i].ids);
    free(index->rows);
    *index = (struct ft_index){.names = NULL};
}

static bool name_key(struct name_key *key, uint32_t namespace, const char *name)
{
    size_t len = strnlen(name, FT_NAME_MAX + 1);

    if (len > FT_NAME_MAX)
        return false;
    key->namespace = namespace;
    memcpy(key->name, name, len);
    memset(key->name + len, 0, sizeof(key->name) - len);
    return true;
}

uint32_t ft_index_name(const struct ft_index *index, uint32_t namespace, const char *name)
{
    const struct name_entry *entry;
    struct name_key key;

    if (!name_key(&key, namespace, name))
        return NONE;
    entry = ft_table_find(index->names, &key);
    return entry ? entry->id : NONE;
}

uint32_t ft_index_address(const struct ft_index *index, uint32_t namespace, const struct ft_ip *ip)
{
    const struct address_key key = {*ip, namespace};
    const struct address_entry *entry = ft_table_find(index->addresses, &key);

    return entry ? entry->id : NONE;
}

static bool is_low(uint32_t switch_id, uint32_t ifindex)
{
    return ifindex < LOW_MAX && switch_id < SWITCHES_MAX;
}

/* The slot of a port that is there. */
static const uint32_t *low_at(const struct ft_index *index, uint32_t switch_id, uint32_t ifindex)
{
    const struct ft_index_row *row;

    if (switch_id >= index->row_count)
        return NULL;
    row = &index->rows[switch_id];
    return ifindex < row->room && row->ids[ifindex] ? &row->ids[ifindex] : NULL;
}

uint32_t ft_index_ifindex(const struct ft_index *index, uint32_t switch_id, uint32_t ifindex)
{
    const struct ifindex_key key = {switch_id, ifindex};
    const struct ifindex_entry *entry;

    if (is_low(switch_id, ifindex)) {
        const uint32_t *at = low_at(index, switch_id, ifindex);

        return at ? *at - 1 : NONE;
    }
    entry = ft_table_find(index->ifindexes, &key);
    return entry ? entry->id : NONE;
}

int ft_index_add_name(struct ft_index *index, uint32_t namespace, const char *name, uint32_t id)
{
    struct name_entry *entry;
    struct name_key key;
    bool fresh;

    if (!name_key(&key, namespace, name))
        return -ENAMETOOLONG;
    entry = ft_table_insert(index->names, &key, &fresh);
    if (!entry)
        return -ENOMEM;
    if (!fresh)
        return -EEXIST;
    entry->id = id;
    return 0;
}

int ft_index_add_address(struct ft_index *index, uint32_t namespace, const struct ft_ip *ip,
                         uint32_t id)
{
    const struct address_key key = {*ip, namespace};
    struct address_entry *entry;
    bool fresh;

    entry = ft_table_insert(index->addresses, &key, &fresh);
    if (!entry)
        return -ENOMEM;
    if (!fresh)
        return -EEXIST;
    entry->id = id;
    return 0;
}

static int add_row(struct ft_index *index, uint32_t switch_id)
{
    uint32_t count = 2 * switch_id + ROOM_MIN;
    struct ft_index_row *rows;

    if (switch_id < index->row_count)
        return 0;
    rows = realloc(index->rows, count * sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    memset(rows + index->row_count, 0, (count - index->row_count) * sizeof(*rows));
    index->rows = rows;
    index->row_count = count;
    return 0;
}

static int add_low(struct ft_index *index, uint32_t switch_id, uint32_t ifindex, uint32_t id)
{
    struct ft_index_row *row;
    uint32_t room, *ids;

    if (add_row(index, switch_id))
        return -ENOMEM;
    row = &index->rows[switch_id];
    room = row->room ? row->room : ROOM_MIN;
    while (room <= ifindex)
        room *= 2;
    if (room > row->room) {
        ids = realloc(row->ids, room * sizeof(*ids));
        if (!ids)
            return -ENOMEM;
        memset(ids + row->room, 0, (room - row->room) * sizeof(*ids));
        row->ids = ids;
        row->room = room;
    }
    row->ids[ifindex] = id + 1;
    return 0;
}

int ft_index_add_ifindex(struct ft_index *index, uint32_t switch_id, uint32_t ifindex, uint32_t id)
{
    const struct ifindex_key key = {switch_id, ifindex};
    struct ifindex_entry *entry;
    bool fresh;

    if (is_low(switch_id, ifindex))
        return low_at(index, switch_id, ifindex) ? -EEXIST : add_low(index, switch_id, ifindex, id);
    entry = ft_table_insert(index->ifindexes, &key, &fresh);
    if (!entry)
        return -ENOMEM;
    if (!fresh)
        return -EEXIST;
    entry->id = id;
    return 0;
}

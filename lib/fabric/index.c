// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/index.h"

#include <errno.h>
#include <string.h>

#define ENTRIES_MAX (1u << 24)
#define NONE        UINT32_MAX

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
    *index = (struct ft_index){NULL, NULL, NULL};
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

uint32_t ft_index_ifindex(const struct ft_index *index, uint32_t switch_id, uint32_t ifindex)
{
    const struct ifindex_key key = {switch_id, ifindex};
    const struct ifindex_entry *entry = ft_table_find(index->ifindexes, &key);

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

int ft_index_add_ifindex(struct ft_index *index, uint32_t switch_id, uint32_t ifindex, uint32_t id)
{
    const struct ifindex_key key = {switch_id, ifindex};
    struct ifindex_entry *entry;
    bool fresh;

    entry = ft_table_insert(index->ifindexes, &key, &fresh);
    if (!entry)
        return -ENOMEM;
    if (!fresh)
        return -EEXIST;
    entry->id = id;
    return 0;
}

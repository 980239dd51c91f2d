// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/ids.h"

#include <stdbool.h>
#include <string.h>

#include "lib/base/table.h"

#define TEXT_BYTES 128
#define IDS_MAX    (16u << 20)
#define OWN        16 /* added to the kind of an id that a port gives itself */

struct id_key {
    uint32_t namespace;
    uint32_t kind;
    char text[TEXT_BYTES];
};

struct id {
    struct id_key key;
    uint32_t value; /* FT_IDS_SEVERAL when it stands for two things */
};

struct ft_ids *ft_ids_new(void)
{
    return (struct ft_ids *)ft_table_new(sizeof(struct id), sizeof(struct id_key), IDS_MAX, 0);
}

void ft_ids_free(struct ft_ids *ids)
{
    ft_table_free((struct ft_table *)ids);
}

static bool fill_key(struct id_key *key, uint32_t namespace, uint32_t kind, const char *text)
{
    size_t len = text ? strnlen(text, TEXT_BYTES) : 0;

    if (len == 0 || len == TEXT_BYTES)
        return false;
    *key = (struct id_key){.namespace = namespace, .kind = kind};
    memcpy(key->text, text, len);
    for (size_t i = 0; kind % OWN == FABRICTRACE__ID_KIND__ID_KIND_MAC && i < len; i++)
        if (key->text[i] >= 'A' && key->text[i] <= 'F')
            key->text[i] = (char)(key->text[i] - 'A' + 'a');
    return true;
}

static void add(struct ft_ids *ids, uint32_t namespace, uint32_t kind, const char *text,
                uint32_t value)
{
    struct id_key key;
    struct id *id;
    bool fresh;

    if (!fill_key(&key, namespace, kind, text))
        return;
    id = ft_table_insert((struct ft_table *)ids, &key, &fresh);
    if (id)
        id->value = fresh || id->value == value ? value : FT_IDS_SEVERAL;
}

void ft_ids_add(struct ft_ids *ids, uint32_t namespace, Fabrictrace__IdKind kind, const char *text,
                uint32_t value)
{
    add(ids, namespace, kind, text, value);
}

void ft_ids_add_own(struct ft_ids *ids, uint32_t namespace, Fabrictrace__IdKind kind,
                    const char *text, uint32_t value)
{
    add(ids, namespace, kind + OWN, text, value);
}

void ft_ids_add_address(struct ft_ids *ids, const struct ft_ip *address, uint32_t value)
{
    char text[TEXT_BYTES];

    ft_ip_format(address, text);
    ft_ids_add(ids, FT_IDS_ADDRESSES, FABRICTRACE__ID_KIND__ID_KIND_ADDRESS, text, value);
}

static uint32_t find(const struct ft_ids *ids, uint32_t namespace, uint32_t kind, const char *text)
{
    struct id_key key;
    const struct id *id;

    if (!fill_key(&key, namespace, kind, text))
        return FT_IDS_NONE;
    id = ft_table_find((const struct ft_table *)ids, &key);
    return id ? id->value : FT_IDS_NONE;
}

uint32_t ft_ids_find(const struct ft_ids *ids, uint32_t namespace, Fabrictrace__IdKind kind,
                     const char *text)
{
    return find(ids, namespace, kind, text);
}

uint32_t ft_ids_find_own(const struct ft_ids *ids, uint32_t namespace, Fabrictrace__IdKind kind,
                         const char *text)
{
    return find(ids, namespace, kind + OWN, text);
}

uint32_t ft_ids_find_address(const struct ft_ids *ids, const struct ft_ip *address)
{
    char text[TEXT_BYTES];

    ft_ip_format(address, text);
    return ft_ids_find(ids, FT_IDS_ADDRESSES, FABRICTRACE__ID_KIND__ID_KIND_ADDRESS, text);
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"

#define NAME_BYTES 64

struct name {
    char text[NAME_BYTES];
    uint32_t round; /* in which it was used last */
    uint32_t holders;
};

struct ft_names {
    struct ft_table *table;
    size_t cap;
    uint32_t round;
};

struct ft_names *ft_names_new(size_t cap)
{
    struct ft_names *names = calloc(1, sizeof(*names));

    if (!names)
        return NULL;
    names->cap = cap;
    names->table = ft_table_new(sizeof(struct name), NAME_BYTES, cap, 0);
    if (!names->table) {
        free(names);
        return NULL;
    }
    return names;
}

void ft_names_free(struct ft_names *names)
{
    if (!names)
        return;
    ft_table_free(names->table);
    free(names);
}

const char *ft_names_intern(struct ft_names *names, const char *text)
{
    char key[NAME_BYTES] = {0};
    struct name *name;
    bool fresh;

    if (!text || !*text)
        return NULL;
    strncpy(key, text, sizeof(key) - 1);
    name = ft_table_insert(names->table, key, &fresh);
    if (!name)
        return NULL;
    name->round = names->round;
    return name->text;
}

bool ft_names_crowded(const struct ft_names *names)
{
    return ft_table_count(names->table) > names->cap / 2;
}

void ft_names_begin(struct ft_names *names)
{
    names->round++;
}

void ft_names_use(struct ft_names *names, const char *name)
{
    if (name)
        ((struct name *)(uintptr_t)name)->round = names->round;
}

void ft_names_sweep(struct ft_names *names)
{
    uint32_t index = 0;
    struct name *name;

    while ((name = ft_table_next(names->table, &index)))
        if (name->round != names->round)
            ft_table_remove(names->table, name);
}

const char *ft_names_hold(struct ft_names *names, const char *name)
{
    (void)names;
    if (name)
        ((struct name *)(uintptr_t)name)->holders++;
    return name;
}

void ft_names_drop(struct ft_names *names, const char *name)
{
    struct name *n = (struct name *)(uintptr_t)name;

    if (n && --n->holders == 0)
        ft_table_remove(names->table, n);
}

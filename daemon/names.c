// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/names.h"

#include <string.h>

#include "lib/base/table.h"

#define NAME_BYTES 64

struct ft_names *ft_names_new(size_t cap)
{
    return (struct ft_names *)ft_table_new(NAME_BYTES, NAME_BYTES, cap, 0);
}

void ft_names_free(struct ft_names *names)
{
    ft_table_free((struct ft_table *)names);
}

const char *ft_names_intern(struct ft_names *names, const char *text)
{
    char key[NAME_BYTES] = {0};
    bool fresh;

    if (!text || !*text)
        return NULL;
    strncpy(key, text, sizeof(key) - 1);
    return ft_table_insert((struct ft_table *)names, key, &fresh);
}

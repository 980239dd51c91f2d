// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_INDEX_H
#define FT_FABRIC_INDEX_H
/*
 * What the ids of a topology are found by: names, addresses and ifIndexes, as hash lookups. Ports
 * with a low ifIndex, which nearly all have, lie in an array of their switch: every observation
 * asks for two of them. Shared by the builder and the built topology; nobody else includes this.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/tuple.h"

/* Longest name of a switch, port or host, in bytes. */
#define FT_NAME_MAX 127

/* Scopes of names and addresses beside the ids of switches, in which the names of ports live. */
#define FT_NAMESPACE_SWITCHES (UINT32_MAX - 1)
#define FT_NAMESPACE_HOSTS    (UINT32_MAX - 2)
#define FT_NAMESPACE_NICS     (UINT32_MAX - 3)
/* With the id of a switch: the names of its aggregates. */
#define FT_NAMESPACE_LAGS 0x40000000u

struct ft_index {
    struct ft_table *names;
    struct ft_table *addresses;
    struct ft_table *ifindexes; /* those that no row has */
    struct ft_index_row *rows;  /* by switch: the ports with a low ifIndex, by it */
    uint32_t row_count;
};

/* -ENOMEM; free takes a half-built or zeroed index. */
int ft_index_init(struct ft_index *index);
void ft_index_free(struct ft_index *index);

/* The id, or FT_NONE when there is none. */
uint32_t ft_index_name(const struct ft_index *index, uint32_t namespace, const char *name);
uint32_t ft_index_address(const struct ft_index *index, uint32_t namespace, const struct ft_ip *ip);
uint32_t ft_index_ifindex(const struct ft_index *index, uint32_t switch_id, uint32_t ifindex);

/* -EEXIST when it is there, -ENAMETOOLONG, -ENOMEM. */
int ft_index_add_name(struct ft_index *index, uint32_t namespace, const char *name, uint32_t id);
int ft_index_add_address(struct ft_index *index, uint32_t namespace, const struct ft_ip *ip,
                         uint32_t id);
int ft_index_add_ifindex(struct ft_index *index, uint32_t switch_id, uint32_t ifindex, uint32_t id);

#endif

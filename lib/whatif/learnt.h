// SPDX-License-Identifier: Apache-2.0
#ifndef FT_WHATIF_LEARNT_H
#define FT_WHATIF_LEARNT_H
/*
 * How switches choose among equal-cost links, as the daemon has learnt it, to predict links by
 * (lib/fabric/hash_model.h). Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/sim/hashed.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_hashes_set {
    Fabrictrace__Hash *record;
    struct ft_hash_model model; /* kind FT_HASH_UNKNOWN: nothing can be predicted */
    uint64_t *entries;          /* digests of ports of entry */
    uint32_t entry_count;
};

struct ft_hashes_list {
    struct ft_hashes_set *sets;
    uint32_t count;
    size_t size;
};

/* Adds a record, which is taken in any case. -EINVAL where its function does not fit its links;
 * -ENOMEM. */
int ft_hashes_add_take(struct ft_hashes_list *list, Fabrictrace__Hash *record);

/* Takes zeroed ones. */
void ft_hashes_list_free(struct ft_hashes_list *list);

/* The set of a switch that chooses from these links; NULL: none was seen. */
const struct ft_hashes_set *ft_hashes_find(const struct ft_hashes_list *list,
                                           const struct ft_choice *choice);

/* A prediction; arg: the list. FT_NONE: not known, as of flows that are not of RoCEv2. */
uint32_t ft_hashes_choose(void *arg, const struct ft_choice *choice, uint32_t in,
                          const struct ft_tuple *tuple);

/* How NICs that hang on the same leaves as this one choose between them; NULL: none was seen, or it
 * hangs on one leaf alone. */
const struct ft_hashes_set *ft_hashes_of_nic(const struct ft_hashes_list *list,
                                             const struct ft_topology *t, uint32_t nic);

/* The port by which a flow enters the fabric from a NIC that hangs on several leaves. -EHOSTUNREACH
 * where all are dead (by port; NULL: none); -ENODATA where that is not known. */
int ft_hashes_enter(const struct ft_hashes_list *list, const struct ft_topology *t,
                    const bool *dead, uint32_t nic, const struct ft_tuple *tuple, uint32_t *port);

#endif

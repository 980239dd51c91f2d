// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HASHES_HASHES_IMPL_H
#define FT_DAEMON_HASHES_HASHES_IMPL_H
/*
 * Shared by the parts of the learnt hashes alone: what is learnt of a set of links (hashes.c), and
 * what is said of it (hashes_set.c). Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/publish/emit.h"
#include "lib/fabric/hash_model.h"

#define FT_HASHES_NAME 128

/* What a switch chooses from. */
struct ft_hash_set {
    uint64_t key;
    char switch_name[FT_HASHES_NAME]; /* "": NICs choose */
    char group[FT_HASHES_NAME];
    char (*members)[FT_HASHES_NAME]; /* names of the ports; of NICs those of the leaves */
    uint32_t member_count;
    uint64_t *entries; /* digests of the names of the ports by which flows came in; of NICs */
    uint32_t entry_count;
    struct ft_hash_flow *flows;
    uint32_t flow_count, flow_size;
    uint32_t learnt_count; /* of them, when it was last learnt */
    uint32_t oldest;       /* of a full list: is replaced next */
    struct ft_hash_model model;
    uint64_t offered; /* flows, whether they are kept or not */
    double predicted, right;
    uint32_t wrong_in_a_row;
    uint64_t newest_wrong; /* a bit for each of the newest 64 */
    uint32_t agreed;       /* flows that the model says rightly, kept or not, each once */
    /* Flows that it says wrongly, by the link that it says: a part of those that a table has for
     * that link may lead elsewhere. */
    uint8_t doubts[FT_HASH_MEMBERS_MAX];
    struct ft_hash_qps qps; /* of the flows that it was learnt from */
    bool takes_qp;          /* the choice is linear with the destination queue pair alone */
    uint64_t confirmed, contradicted; /* while it was trusted */
    bool dirty;                       /* was published otherwise, or never */
};

/* Whether flows without samples are predicted by its model. */
bool ft_hash_set_is_trusted(const struct ft_hash_set *s);

/* Of these, those that are to take this link: not where a known flow took another one. */
bool ft_hash_set_is_sure(const struct ft_hash_set *s, uint32_t member);

/* What is published of its model: it is linear only where that was proven on flows held out. */
enum ft_hash_kind ft_hash_set_kind(const struct ft_hash_set *s);

/* Emits its record, with the learnt function where that is asked for and there is one. */
void ft_hash_set_emit(const struct ft_hash_set *s, bool function, const char *fabric,
                      int64_t now_ms, const struct ft_emitter *emitter);

#endif

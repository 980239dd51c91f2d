// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HASHES_HASHES_IMPL_H
#define FT_DAEMON_HASHES_HASHES_IMPL_H
/*
 * Shared by the parts of the learnt hashes alone: flows and sets of links (hashes.c), what is
 * learnt of a set (hashes_learn.c), how far that is trusted (hashes_trust.c), and what is said of
 * it (hashes_set.c). Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/publish/emit.h"
#include "lib/fabric/choice.h"
#include "lib/fabric/hash_model.h"

#define FT_HASHES_NAME 128

struct ft_hashes;

/* What a switch chooses from. */
struct ft_hash_set {
    uint64_t key;
    uint64_t own;    /* key of the set of these links that learns from the flows' own headers */
    uint32_t made;   /* as flows' learnt_in: those that were learnt before are of it, too */
    int64_t gone_ms; /* since when the topology has no such links, 0: it has; not of tunnels' */
    bool outer;      /* it is not that one, and learns from the headers of tunnels */
    char switch_name[FT_HASHES_NAME]; /* "": NICs choose */
    char group[FT_HASHES_NAME];
    char (*members)[FT_HASHES_NAME]; /* names of the ports; of NICs those of the leaves */
    uint32_t member_count;
    uint64_t *speeds;  /* of the members, 0: not known; of NICs' */
    uint32_t *bundles; /* in which they are (lib/fabric/skewed.h) */
    uint64_t *entries; /* digests of the names of the ports by which flows came in; of NICs */
    uint32_t entry_count;
    struct ft_hash_flow *flows;
    uint32_t flow_count, flow_size;
    uint32_t learnt_count; /* there were so many when it was last learnt */
    uint32_t fresh;        /* came since, also instead of others */
    uint64_t drawn_from;   /* the list is of so many flows, by chance */
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
    /* Of tunnels' headers. */
    bool aside;          /* the flows' own headers are trusted, and predict */
    bool named;          /* in the record that was published last */
    uint32_t tunnel;     /* kind of the newest flow's, 0: of none */
    bool tunnels_differ; /* there were several kinds */
};

/* Of an empty set: names and room. False without memory, with what is to be freed. */
bool ft_hash_set_fill(struct ft_hash_set *s, const struct ft_choice *c, const char *group);

/* What it points to. */
void ft_hash_set_free(struct ft_hash_set *s);

/* Whether the topology has its switch, with all of these links in a group; of NICs' their leaves.
 */
bool ft_hash_set_is_there(const struct ft_hash_set *s, const struct ft_topology *t);

/* Takes a flow, which its model is held against. */
void ft_hash_set_keep(struct ft_hash_set *s, const struct ft_hash_flow *flow);

/* How many flows it is short of being learnt anew, 0: enough are new; and that. */
uint32_t ft_hash_set_due_in(const struct ft_hash_set *s);
void ft_hash_set_learn(struct ft_hash_set *s);

/* Whether flows without samples are predicted by its model. */
bool ft_hash_set_is_trusted(const struct ft_hash_set *s);

/* Of these, those that are to take this link: not where a known flow took another one. */
bool ft_hash_set_is_sure(const struct ft_hash_set *s, uint32_t member);

/* Whether destination queue pairs may be hashed, for all that is known. */
bool ft_hash_set_may_take_qp(const struct ft_hash_set *s);

/* Why no flow is predicted by a model that is not a table. */
enum ft_hash_reason {
    FT_HASH_WHY_NONE,
    FT_HASH_WHY_FEW_FLOWS,
    FT_HASH_WHY_FEW_VALUES, /* of these fields, together */
    FT_HASH_WHY_FEW_PREDICTED,
    FT_HASH_WHY_WRONG,
    FT_HASH_WHY_FEW_AGREE,
    FT_HASH_WHY_QUEUE_PAIRS,
    FT_HASH_WHY_CONTRADICTED,
};

/* No flow is predicted before at least so many more were seen; or so many more values of the
 * fields (a bit each) than when it was last learnt; 0: nothing bounds it. */
struct ft_hash_why {
    enum ft_hash_reason reason;
    uint32_t more_least;
    uint32_t fields;
};
struct ft_hash_why ft_hash_set_why(const struct ft_hash_set *s);

/* What is published of its model: it is linear only where that was proven on flows held out. */
enum ft_hash_kind ft_hash_set_kind(const struct ft_hash_set *s);

/* Whether the switch is said to hash the headers of tunnels: their model holds, and that of the
 * flows' own headers does not, or is not trusted where theirs is. */
bool ft_hash_set_names_outer(const struct ft_hash_set *s, const struct ft_hash_set *outer);

/* The next set that learns from the flows' own headers, and that of the same links that learns from
 * those of tunnels (NULL: there is none); index begins at 0. NULL: that was all. */
const struct ft_hash_set *ft_hashes_set(const struct ft_hashes *h, uint32_t *index,
                                        const struct ft_hash_set **outer);

/* Emits the record of a set and that of tunnels (NULL: there is none), with the learnt function
 * where that is asked for and there is one of the flows' own headers. */
void ft_hash_set_emit(const struct ft_hash_set *s, const struct ft_hash_set *outer, bool function,
                      const char *fabric, int64_t now_ms, const struct ft_emitter *emitter);

#endif

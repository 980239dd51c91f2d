// SPDX-License-Identifier: Apache-2.0
#ifndef FT_WHATIF_DRAW_H
#define FT_WHATIF_DRAW_H
/*
 * One policy of routing, over as many draws as it takes: gives flows paths, measures them
 * (measure.h), and plays collectives on them (times.h). Owner: the caller.
 */
#include <stdint.h>

#include "lib/sim/policies.h"
#include "lib/whatif/captured.h"
#include "lib/whatif/learnt.h"
#include "lib/whatif/measure.h"
#include "lib/whatif/times.h"

enum ft_whatif_policy {
    FT_WHATIF_OBSERVED, /* of captured flows: the paths that they had */
    FT_WHATIF_ECMP,
    FT_WHATIF_LEARNT, /* of captured flows: each switch by what was learnt of its hash */
    FT_WHATIF_CRC16,  /* each switch by this hash */
    FT_WHATIF_CRC32,
    FT_WHATIF_XOR,
    FT_WHATIF_STATIC,
    FT_WHATIF_RAIL,
    FT_WHATIF_GREEDY,
    FT_WHATIF_PLAN,
    FT_WHATIF_SPRAY,   /* by packet: each switch on all links that lead on, alike at each moment */
    FT_WHATIF_FLOWLET, /* each flow cut in flowlets of one size, each on a path of its own at random
                        */
    FT_WHATIF_POLICIES
};

/* Flowlets of a flow where nobody says how many: so few show what chance does to elephants, whose
 * pauses are rare. */
#define FT_WHATIF_FLOWLETS 16

const char *ft_whatif_name(enum ft_whatif_policy policy);

/* Whether it needs the flows' headers: the first draw has them as they were, others have random
 * source ports, as queue pairs have that are made anew. */
bool ft_whatif_is_hashed(enum ft_whatif_policy policy);

/* What is compared. All is borrowed. */
struct ft_whatif {
    struct ft_policy_input in;          /* of the fabric as it would be; ids are those of as_is */
    struct ft_policy_input as_is;       /* and as it was, for what was observed */
    bool rebuilt;                       /* with other spines or speeds, and not with less alone */
    const struct ft_captured *captured; /* NULL: flows of a file */
    const struct ft_times *times;       /* NULL: no collectives */
    struct ft_hashes_list *hashes;      /* NULL: none are known */
    uint32_t pairs;                     /* queue pairs a connection: each its own path */
    uint32_t spray;                     /* paths of a sprayed flow at most; 0: all of them */
    uint32_t flowlets;                  /* of a flow */
    uint32_t draws;
    void (*progress)(enum ft_whatif_policy policy, uint32_t draw); /* draw 0: all; may be NULL */
    struct ft_task *task;                                          /* NULL: nobody waits */
    const bool *vain; /* once true, nobody needs the rest: -ECANCELED; may be NULL */
};

/* Flows that the plan moves, of which so many are kept. */
#define FT_WHATIF_MOVED 64

struct ft_whatif_moved {
    uint32_t flow;
    struct ft_path path;
};

struct ft_range {
    double sum, min, max;
};

/* A policy over its draws. */
struct ft_outcome {
    enum ft_whatif_policy policy;
    uint32_t draws;
    struct ft_measured worst; /* of the draw with the slowest flow */
    struct ft_range fim[FT_LAYERS], layer_most[FT_LAYERS];
    struct ft_range most, load, collisions, share, step_s;
    uint32_t paths;                /* of a flow, at most */
    bool has_moves;                /* flows have one path each, by ports that were there */
    struct ft_range moves;         /* flows on another path than they were observed on */
    struct ft_whatif_moved *moved; /* of the plan; freed by ft_outcome_free() */
    uint32_t moved_count;
    uint32_t guessed;         /* flows of a draw at most with a choice that nothing predicts */
    struct ft_range *times_s; /* by collective; freed by ft_outcome_free() */
};

/* -EHOSTUNREACH where a flow has no path left; -ENOMEM, -ECANCELED. */
int ft_outcome_try(const struct ft_whatif *w, enum ft_whatif_policy policy, struct ft_outcome *o);
void ft_outcome_free(struct ft_outcome *o);

#endif

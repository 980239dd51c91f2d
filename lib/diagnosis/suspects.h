// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_SUSPECTS_H
#define FT_DIAGNOSIS_SUSPECTS_H
/*
 * Ranks that are late in a communicator, and which of them are named.
 *
 * One that is behind another is not, nor one that is not later than ranks become by chance. Where
 * hosts call ahead, work is in the lengths of operations, and who waits cannot be distinguished
 * from who is waited for: of several that are felt by about as much none is named. Pure. Owner: the
 * caller, for the time of one diagnosis. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/diagnosis.h"
#include "lib/diagnosis/matched.h"
#include "lib/diagnosis/wander.h"

#define FT_SUSPECTS_SIGMAS 6 /* the least that one stands out by */

/* A process in a stretch of the blocks of a communicator. */
struct ft_suspect {
    uint32_t comm, process, position, row; /* row: the first */
    size_t first, end, blocks;             /* blocks: all */
    size_t members;                        /* that it is one of */
    double excess, sigmas, felt_ns, wall_ns;
    bool behind; /* what it does itself is not why it is late */
    bool common; /* several others are late in the same way */
};

struct ft_suspects {
    struct ft_wander *wander; /* the caller's */
    struct ft_suspect *items; /* free() them */
    size_t count, size;
};

/* Copies it. -ENOMEM. */
int ft_suspects_add(struct ft_suspects *s, const struct ft_suspect *suspect);

/* 1: what it is late by is more than ranks become by chance; 0; or -ENOMEM. */
int ft_suspects_stands_out(const struct ft_suspects *s, const struct ft_suspect *suspect);

/* Adds one that is named: who it is, since when and by how much. Who waits for it is the caller's
 * to add. NULL: no memory. */
struct ft_diagnosis *ft_suspects_describe(const struct ft_matched *m,
                                          const struct ft_suspect *suspect,
                                          struct ft_diagnoses *found);

/* Adds those that are named. -ENOMEM. */
int ft_suspects_report(const struct ft_matched *m, const struct ft_suspects *s,
                       struct ft_diagnoses *found);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_NCCL_CHAIN_H
#define FT_AGENT_NCCL_CHAIN_H
/*
 * A second profiler plugin behind this one, since NCCL loads one only: every call continues to it,
 * with its own contexts and handles.
 *
 * NCCL then gets a number for the pair of handles. Pairs live in a ring: one that FT_CHAIN_PAIRS
 * younger events have overwritten is gone, and its stop is not passed on. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#define FT_CHAIN_PAIRS (1u << 18)

struct ft_chain_pair {
    void *ours;
    void *theirs;
};

/* Loads file and looks up symbol. Returns the table, NULL with a sentence in error; also where it
 * would be ours, and calls would go round for ever. At the first call; later ones return the same:
 * one that failed is not tried again, and says nothing. Thread: any; NCCL may open communicators
 * in several threads at once. */
void *ft_chain_load(const char *file, const char *symbol, const void *ours, char *error,
                    size_t error_bytes);

/* The number for a pair; NULL when both are. */
void *ft_chain_join(void *ours, void *theirs);

/* The pair of a number. A number that is not ours stands for itself on both sides: another
 * process's handle; a number that was overwritten gives NULL and NULL. */
struct ft_chain_pair ft_chain_split(void *number);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_FUNCTIONS_H
#define FT_DAEMON_DIAGNOSIS_FUNCTIONS_H
/*
 * Names of NCCL's functions by small numbers, for the rows of operations. NCCL's own are
 * there for good; others, which a job may choose as it likes, as long as rows have them. Plain
 * values; owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FT_FUNCTIONS_MAX   64
#define FT_FUNCTIONS_BYTES 17

struct ft_functions {
    char names[FT_FUNCTIONS_MAX][FT_FUNCTIONS_BYTES]; /* "": free */
    uint32_t uses[FT_FUNCTIONS_MAX];                  /* by rows */
    size_t own;                                       /* NCCL's, the first ones */
    uint64_t refused;                                 /* names that found no room */
};

void ft_functions_init(struct ft_functions *functions);

/* The number of a name that is not empty, cut to what there is room for; MAX where there is no room
 * for another, which is counted. */
size_t ft_functions_number(struct ft_functions *functions, const char *name);

/* Forgets those that no row has, but for NCCL's and those marked as kept. */
void ft_functions_age(struct ft_functions *functions, const bool kept[FT_FUNCTIONS_MAX]);

#endif

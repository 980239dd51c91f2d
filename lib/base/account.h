// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_ACCOUNT_H
#define FT_BASE_ACCOUNT_H
/*
 * A program's loss accounting as plain numbers: for each stage received = processed + pending + the
 * sum of its drops. The loss record and metrics pages are written from it. Names are literals:
 * borrowed for good. Owner: the caller, on its stack.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FT_ACCOUNT_STAGES 20
#define FT_ACCOUNT_DROPS  12

struct ft_account_drop {
    const char *reason;
    uint64_t count;
};

struct ft_account_stage {
    const char *name;
    const char *unit;
    uint64_t received, processed, pending;
    size_t drop_count;
    struct ft_account_drop drops[FT_ACCOUNT_DROPS];
};

struct ft_account {
    size_t stage_count;
    struct ft_account_stage stages[FT_ACCOUNT_STAGES];
};

/* Adds a stage, all zero. */
struct ft_account_stage *ft_account_stage(struct ft_account *account, const char *name,
                                          const char *unit);

/* Adds a drop, also one that has not happened yet. */
void ft_account_drop(struct ft_account_stage *stage, const char *reason, uint64_t count);

#endif

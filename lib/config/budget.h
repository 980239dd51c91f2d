// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CONFIG_BUDGET_H
#define FT_CONFIG_BUDGET_H
/*
 * One budget of bytes for a program, shared out to whatever grows with what comes from outside.
 *
 * A program lists what grows, the option that caps it and what one of it costs at most. Caps that
 * somebody set stay, and what is fixed; the rest of the budget is shared out to the caps that
 * nobody set, by weight. What does not fit into it is a complaint: no program may be set to
 * take more memory than it is given. Owner: the caller. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FT_SHARES_MAX 48

struct ft_share {
    const char *what; /* for whoever reads the table: "flows" */
    const char *key;  /* option of the cap; NULL: none, the cap is always a share */
    uint64_t *cap;    /* in the program's config; NULL: fixed */
    double each_bytes;
    double weight;        /* of the rest; not used where the cap is set */
    uint64_t least, most; /* that the share is kept within; most 0: any */
    bool in_bytes;        /* the cap itself is bytes */
    uint64_t bytes;       /* fixed: what it takes; else set by ft_budget_share() */
    bool is_set;          /* by somebody */
    bool kept;            /* a reload keeps the cap that runs, where nobody sets it */
};

/* Gives each cap that nobody set its share of budget_bytes, and adds up. -EINVAL when what is set
 * and what is needed at least do not fit: then *culprit is the option that takes most of it, and
 * *needed the sum. The shares are the program's to keep: what they point to lives as long. */
int ft_budget_share(struct ft_share *shares, size_t count, uint64_t budget_bytes,
                    const char **culprit, uint64_t *needed);

/* The table of shares and their sum, for a person. */
void ft_budget_print(const struct ft_share *shares, size_t count, uint64_t budget_bytes, FILE *out);

/* Of a size: "3.4 GiB". */
#define FT_BUDGET_TEXT_BYTES 32
void ft_budget_format(uint64_t bytes, char text[FT_BUDGET_TEXT_BYTES]);

#endif

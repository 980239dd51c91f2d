// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_POLISH_H
#define FT_DIAGNOSIS_POLISH_H
/*
 * Median polish (Tukey 1977) of a matrix some of whose cells are empty: each value is taken apart
 * into a centre, what its row adds, what its column adds, and what is left of it.
 *
 * Of an even number of values the lower of the two in the middle is taken, so that half of a line
 * is not the line; a line of one cell adds nothing, since nothing else shows what it adds. Pure.
 * Owner: the caller. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

struct ft_task;

struct ft_polish_cell {
    double value;
    double residual; /* is filled */
    uint32_t row, column;
};

struct ft_polish {
    double centre;
    double *rows, *columns; /* what each adds */
    uint32_t *row_cells, *column_cells;
    uint32_t row_count, column_count;
};

/* Cells name rows below row_count and columns below column_count, each pair once. -ENOMEM. */
int ft_polish_init(struct ft_polish *p, struct ft_polish_cell *cells, size_t count,
                   uint32_t row_count, uint32_t column_count, struct ft_task *task);
void ft_polish_free(struct ft_polish *p);

#endif

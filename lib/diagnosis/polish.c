// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/polish.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/task.h"
#include "lib/diagnosis/stats.h"

#define ROUNDS 20
#define STILL  1e-6 /* of a line: it does not move any more */

/* The cells of a line, by its number. */
struct lines {
    uint32_t *first, *cells; /* cells of line i: cells[first[i]] up to cells[first[i + 1]] */
};

static double low_median(double *values, size_t count)
{
    return ft_nth(values, count, (count - 1) / 2);
}

static int lines_init(struct lines *l, const struct ft_polish_cell *cells, size_t count,
                      uint32_t line_count, bool rows)
{
    l->first = calloc((size_t)line_count + 2, sizeof(*l->first));
    l->cells = calloc(count + 1, sizeof(*l->cells));
    if (!l->first || !l->cells)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        l->first[(rows ? cells[i].row : cells[i].column) + 2]++;
    for (uint32_t i = 0; i < line_count; i++)
        l->first[i + 2] += l->first[i + 1];
    for (size_t i = 0; i < count; i++)
        l->cells[l->first[(rows ? cells[i].row : cells[i].column) + 1]++] = (uint32_t)i;
    return 0;
}

static void lines_free(struct lines *l)
{
    free(l->first);
    free(l->cells);
}

/* Moves the median of each line from its cells to the line; the furthest that one was moved. */
static double sweep(struct ft_polish_cell *cells, const struct lines *l, uint32_t line_count,
                    double *adds, double *room, struct ft_task *task)
{
    double most = 0;

    for (uint32_t i = 0; i < line_count; i++) {
        uint32_t n = l->first[i + 1] - l->first[i];
        double median;

        ft_task_spend(task, 1 + n / 4);
        if (n < 2)
            continue;
        for (uint32_t k = 0; k < n; k++)
            room[k] = cells[l->cells[l->first[i] + k]].residual;
        median = low_median(room, n);
        for (uint32_t k = 0; k < n; k++)
            cells[l->cells[l->first[i] + k]].residual -= median;
        adds[i] += median;
        most = fmax(most, fabs(median));
    }
    return most;
}

/* Moves what lines of several cells have in common to the centre. */
static void centre(struct ft_polish *p, double *adds, const uint32_t *cells, uint32_t count,
                   double *room)
{
    size_t n = 0;
    double median;

    for (uint32_t i = 0; i < count; i++)
        if (cells[i] > 1)
            room[n++] = adds[i];
    /* Cells outside of these lines have no part in it. */
    if (n == 0 || n < count)
        return;
    median = low_median(room, n);
    for (uint32_t i = 0; i < count; i++)
        adds[i] -= median;
    p->centre += median;
}

static void polish(struct ft_polish *p, struct ft_polish_cell *cells, size_t count,
                   const struct lines *rows, const struct lines *columns, double *room,
                   struct ft_task *task)
{
    for (size_t i = 0; i < count; i++)
        room[i] = cells[i].value;
    ft_task_spend(task, 1 + count / 4);
    p->centre = low_median(room, count);
    for (size_t i = 0; i < count; i++)
        cells[i].residual = cells[i].value - p->centre;
    for (unsigned k = 0; k < ROUNDS; k++) {
        double moved = sweep(cells, rows, p->row_count, p->rows, room, task);

        centre(p, p->rows, p->row_cells, p->row_count, room);
        moved = fmax(moved, sweep(cells, columns, p->column_count, p->columns, room, task));
        centre(p, p->columns, p->column_cells, p->column_count, room);
        if (moved < STILL)
            break;
    }
}

int ft_polish_init(struct ft_polish *p, struct ft_polish_cell *cells, size_t count,
                   uint32_t row_count, uint32_t column_count, struct ft_task *task)
{
    struct lines rows = {NULL, NULL}, columns = {NULL, NULL};
    size_t most = count > row_count ? count : row_count;
    double *room = calloc((most > column_count ? most : column_count) + 1, sizeof(*room));
    int rc = -ENOMEM;

    *p = (struct ft_polish){.row_count = row_count, .column_count = column_count};
    p->rows = calloc((size_t)row_count + 1, sizeof(*p->rows));
    p->columns = calloc((size_t)column_count + 1, sizeof(*p->columns));
    p->row_cells = calloc((size_t)row_count + 1, sizeof(*p->row_cells));
    p->column_cells = calloc((size_t)column_count + 1, sizeof(*p->column_cells));
    if (room && p->rows && p->columns && p->row_cells && p->column_cells &&
        lines_init(&rows, cells, count, row_count, true) == 0 &&
        lines_init(&columns, cells, count, column_count, false) == 0) {
        for (size_t i = 0; i < count; i++) {
            p->row_cells[cells[i].row]++;
            p->column_cells[cells[i].column]++;
        }
        if (count > 0)
            polish(p, cells, count, &rows, &columns, room, task);
        rc = 0;
    }
    lines_free(&rows);
    lines_free(&columns);
    free(room);
    if (rc)
        ft_polish_free(p);
    return rc;
}

void ft_polish_free(struct ft_polish *p)
{
    free(p->rows);
    free(p->columns);
    free(p->row_cells);
    free(p->column_cells);
    *p = (struct ft_polish){0};
}

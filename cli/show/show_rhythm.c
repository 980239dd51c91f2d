// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <stdio.h>

#include "cli/output/text.h"

static const struct ft_column columns[] = {
    {.title = "JOB", .elastic = true},
    {.title = "PERIOD", .right = true},
    {.title = "REGULARITY", .right = true, .give_up = 2},
    {.title = "EXCHANGE", .right = true},
    {.title = "LONGEST PAUSE", .right = true, .give_up = 1},
    {.title = "RESOLUTION", .right = true, .give_up = 3},
    {.title = "SAMPLES", .right = true, .give_up = 4},
};

static void seconds_cell(struct ft_grid *grid, const struct ft_value *record, const char *name)
{
    uint64_t ms;

    if (ft_value_uint(record, name, &ms))
        ft_grid_cell(grid, FT_PLAIN, "%.1f s", (double)ms / 1000);
    else
        ft_grid_cell(grid, FT_PLAIN, "not known");
}

static void add_row(struct ft_grid *grid, const struct ft_value *record)
{
    double real;

    ft_text_cell(grid, record, "job");
    seconds_cell(grid, record, "period_ms");
    if (ft_value_real(record, "regularity", &real))
        ft_grid_cell(grid, FT_PLAIN, "%.2f", real);
    else
        ft_grid_skip(grid);
    if (ft_value_real(record, "exchange", &real))
        ft_grid_cell(grid, FT_PLAIN, "%.0f %%", 100 * real);
    else
        ft_grid_cell(grid, FT_PLAIN, "not known");
    seconds_cell(grid, record, "longest_pause_ms");
    seconds_cell(grid, record, "resolution_ms");
    ft_text_number_cell(grid, record, "samples");
}

int ft_show_rhythm(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    struct ft_grid *grid;
    int rc;

    ft_text_window(screen, root);
    fputc('\n', screen->out);
    if (ft_value_count(records) == 0) {
        fputs("no flow of a job was sampled\n", screen->out);
        return 0;
    }
    grid = ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < ft_value_count(records); i++)
        add_row(grid, ft_value_at(records, i));
    rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

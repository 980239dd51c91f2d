// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/text.h"

static const struct ft_column columns[] = {
    {.title = "FLOW"},
    {.title = "HOST", .give_up = 2},
    {.title = "JOB", .give_up = 3},
    {.title = "STATE"},
    {.title = "PATH BEFORE", .give_up = 1},
    {.title = "PATH PREDICTED", .elastic = true},
};

static enum ft_colour colour_of(const char *state)
{
    if (strcmp(state, "confirmed") == 0)
        return FT_GREEN;
    if (strcmp(state, "missed") == 0)
        return FT_RED;
    return strcmp(state, "awaited") == 0 ? FT_PLAIN : FT_YELLOW;
}

static int path_cell(struct ft_grid *grid, const struct ft_value *hops)
{
    char *text = ft_text_hops(hops, true);

    if (!text)
        return -ENOMEM;
    ft_grid_cell(grid, FT_PLAIN, "%s", text);
    free(text);
    return 0;
}

static int add_row(struct ft_grid *grid, const struct ft_value *record)
{
    const char *state = ft_value_str(record, "state");
    char flow[FT_TUPLE_TEXT_BYTES];
    int rc;

    ft_grid_cell(grid, FT_PLAIN, "%s", ft_text_flow(flow, ft_value_get(record, "flow")));
    ft_text_cell(grid, record, "host");
    ft_text_cell(grid, record, "job");
    ft_grid_cell(grid, state ? colour_of(state) : FT_PLAIN, "%s", state ? state : "?");
    rc = path_cell(grid, ft_value_get(record, "hops_before"));
    if (rc == 0)
        rc = path_cell(grid, ft_value_get(record, "hops"));
    if (*flow)
        ft_grid_about(grid, "%s", flow);
    return rc;
}

int ft_show_moves(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    struct ft_grid *grid;
    int rc = 0;

    if (ft_value_count(records) == 0) {
        fputs("no queue pair that was asked for got a port of a plan\n", screen->out);
        return 0;
    }
    grid = ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; grid && rc == 0 && i < ft_value_count(records); i++)
        rc = add_row(grid, ft_value_at(records, i));
    if (rc == 0)
        rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include "cli/output/rows.h"
#include "cli/output/text.h"

static const struct ft_column columns[] = {
    {.title = NULL}, /* switch or host */
    {.title = NULL}, /* port */
    {.elastic = true, .wraps = true},
};

struct ft_grid *ft_rows_findings(void)
{
    return ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
}

/* The finding, and below it what to do: one line would be too long for a terminal. */
void ft_rows_findings_add(struct ft_grid *grid, const struct ft_value *finding)
{
    const char *name = ft_value_str(finding, "switch"), *port = ft_value_str(finding, "port");
    const char *host = ft_value_str(finding, "host");
    const char *text = ft_value_str(finding, "text"), *advice = ft_value_str(finding, "advice");
    bool warning = ft_value_is(finding, "severity", "warning");

    ft_grid_cell(grid, FT_BOLD, "%s", name ? name : host ? host : "all");
    ft_grid_cell(grid, FT_BOLD, "%s", port ? port : "");
    ft_grid_cell(grid, warning ? FT_YELLOW : FT_PLAIN, "%s", text ? text : "");
    if (!advice)
        return;
    ft_grid_skip(grid);
    ft_grid_skip(grid);
    ft_grid_cell(grid, FT_DIM, "  %s", advice);
}

int ft_show_doctor(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    size_t count = ft_value_count(records);
    struct ft_grid *grid = ft_rows_findings();
    int rc;

    ft_text_window(screen, root);
    if (count == 0)
        fputs(", nothing is missing\n", screen->out);
    else
        fprintf(screen->out, ", %zu finding%s\n", count, count == 1 ? "" : "s");
    for (size_t i = 0; i < count; i++)
        ft_rows_findings_add(grid, ft_value_at(records, i));
    rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <string.h>

#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/units.h"

static const struct ft_column columns[] = {
    {.title = "WINDOW"}, /* of timed rows */
    {.title = "GROUP"},
    {.title = "LINKS", .right = true, .give_up = 3},
    {.title = "FLOWS", .right = true, .give_up = 2},
    {.title = "UNPLACED", .right = true, .give_up = 4},
    {.title = "FIM", .right = true},
    {.title = "BY CHANCE", .right = true},
    {.title = "P", .number = true},
    {.title = "MAX/MEAN", .right = true, .give_up = 1},
    {.title = "VERDICT", .elastic = true},
};

/* A figure that is absent is null: nothing to judge. */
static void real_cell(struct ft_grid *grid, const struct ft_value *record, const char *name,
                      int decimals)
{
    double v;

    if (ft_value_real(record, name, &v))
        ft_grid_cell(grid, FT_PLAIN, "%.*f", decimals, v);
    else
        ft_grid_cell(grid, FT_DIM, "-");
}

static void fault_cell(struct ft_grid *grid, const struct ft_value *record)
{
    double links, worst;

    if (ft_value_real(record, "links", &links) && ft_value_real(record, "max_over_mean", &worst) &&
        ft_value_is(record, "scope", "group") && worst > links - 1e-3)
        ft_grid_cell(grid, FT_RED, "FAULT: every flow on one of %.0f links", links);
    else
        ft_grid_cell(grid, FT_RED, "FAULT: not explained by chance");
}

static void verdict_cell(struct ft_grid *grid, const struct ft_value *record)
{
    const char *verdict = ft_value_str(record, "verdict");

    if (!verdict || strcmp(verdict, "unknown") == 0)
        ft_grid_skip(grid);
    else if (strcmp(verdict, "fault") == 0)
        fault_cell(grid, record);
    else if (strcmp(verdict, "uneven") == 0)
        ft_grid_cell(grid, FT_YELLOW, "uneven, may be luck");
    else
        ft_grid_cell(grid, strcmp(verdict, "even") == 0 ? FT_GREEN : FT_DIM, "%s", verdict);
}

struct ft_grid *ft_rows_imbalance(void)
{
    return ft_grid_new(columns + 1, sizeof(columns) / sizeof(columns[0]) - 1);
}

struct ft_grid *ft_rows_imbalance_timed(void)
{
    return ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
}

const struct ft_column *ft_rows_imbalance_figures(size_t *count)
{
    *count = sizeof(columns) / sizeof(columns[0]) - 2;
    return columns + 2;
}

void ft_rows_imbalance_figure_cells(struct ft_grid *grid, const struct ft_value *record)
{
    char text[FT_UNIT_BYTES];
    uint64_t unplaced = 0;
    double p;

    ft_text_number_cell(grid, record, "links");
    ft_text_number_cell(grid, record, "flows");
    ft_value_uint(record, "flows_unplaced", &unplaced);
    if (unplaced)
        ft_grid_cell(grid, FT_PLAIN, "%llu", (unsigned long long)unplaced);
    else
        ft_grid_skip(grid);
    real_cell(grid, record, "fim", 1);
    real_cell(grid, record, "fim_expected", 1);
    if (ft_value_real(record, "p_value", &p))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_p(text, p));
    else
        ft_grid_cell(grid, FT_DIM, "-");
    real_cell(grid, record, "max_over_mean", 2);
    verdict_cell(grid, record);
}

void ft_rows_imbalance_add(struct ft_grid *grid, const struct ft_value *record)
{
    const char *name = ft_value_str(record, "name");

    ft_grid_cell(grid, ft_value_is(record, "scope", "group") ? FT_PLAIN : FT_BOLD, "%s",
                 name ? name : "");
    ft_rows_imbalance_figure_cells(grid, record);
    if (name && ft_value_is(record, "scope", "group"))
        ft_grid_about(grid, "%s", name);
}

void ft_rows_uplinks(const struct ft_screen *screen, const struct ft_value *records)
{
    uint64_t flows, links;

    for (size_t i = 0; i < ft_value_count(records); i++) {
        const struct ft_value *record = ft_value_at(records, i);

        if (ft_value_is(record, "scope", "layer") && ft_value_is(record, "name", "leaf/up") &&
            ft_value_uint(record, "flows", &flows) && ft_value_uint(record, "links", &links) &&
            links > 0)
            fprintf(screen->out, ", %llu flow%s over %llu uplinks", (unsigned long long)flows,
                    flows == 1 ? "" : "s", (unsigned long long)links);
    }
}

int ft_show_imbalance(const struct ft_screen *screen, const struct ft_value *root)
{
    static const char *const scopes[] = {"group", "layer", "fabric"};
    const struct ft_value *records = ft_value_get(root, "records");
    struct ft_grid *grid = ft_rows_imbalance();
    int rc;

    ft_text_window(screen, root);
    ft_rows_uplinks(screen, records);
    if (screen->chosen && ft_value_count(records) == 0)
        fputs(", nothing that was asked for", screen->out);
    ft_text_limit(screen, ft_value_count(records));
    fputc('\n', screen->out);
    for (size_t s = 0; s < sizeof(scopes) / sizeof(scopes[0]); s++)
        for (size_t i = 0; i < ft_value_count(records); i++)
            if (ft_value_is(ft_value_at(records, i), "scope", scopes[s]))
                ft_rows_imbalance_add(grid, ft_value_at(records, i));
    rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

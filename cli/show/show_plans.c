// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <stdio.h>
#include <string.h>

#include "cli/output/text.h"
#include "cli/output/units.h"

static const struct ft_column columns[] = {
    {.title = "JOB", .elastic = true},
    {.title = "USER", .right = true, .give_up = 3},
    {.title = "STAGE"},
    {.title = "PORTS", .right = true},
    {.title = "CONFIRMED", .right = true},
    {.title = "MISSED", .right = true},
    {.title = "REFUSED", .right = true, .give_up = 2},
    {.title = "HOSTS", .right = true, .give_up = 1},
    {.title = "SINCE", .give_up = 4},
};

static enum ft_colour colour_of(const char *stage, const char *end)
{
    if (strcmp(stage, "confirmed") == 0)
        return FT_GREEN;
    return strcmp(stage, "withdrawn") == 0 && end && strcmp(end, "owner") != 0 ? FT_RED : FT_PLAIN;
}

/* How many agents give ports of it, of those that did. */
static void hosts_cell(struct ft_grid *grid, const struct ft_value *record)
{
    uint64_t hosts = 0, ended = 0;

    ft_value_uint(record, "hosts", &hosts);
    ft_value_uint(record, "hosts_ended", &ended);
    if (ended)
        ft_grid_cell(grid, FT_PLAIN, "%llu of %llu", (unsigned long long)(hosts - ended),
                     (unsigned long long)hosts);
    else
        ft_grid_cell(grid, FT_PLAIN, "%llu", (unsigned long long)hosts);
}

static void add_row(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now)
{
    const char *stage = ft_value_str(record, "stage"), *end = ft_value_str(record, "end");
    char time[FT_UNIT_BYTES];
    uint64_t since;

    ft_text_cell(grid, record, "job");
    ft_text_number_cell(grid, record, "uid");
    ft_grid_cell(grid, stage ? colour_of(stage, end) : FT_PLAIN, "%s%s%s", stage ? stage : "?",
                 end ? ": " : "", end ? end : "");
    ft_text_number_cell(grid, record, "ports_given");
    ft_text_number_cell(grid, record, "ports_confirmed");
    ft_text_number_cell(grid, record, "ports_missed");
    ft_text_number_cell(grid, record, "ports_refused");
    hosts_cell(grid, record);
    if (ft_value_uint(record, "since_ms", &since))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_time(time, since, now));
    else
        ft_grid_skip(grid);
}

int ft_show_plans(const struct ft_screen *screen, const struct ft_value *root)
{
    return ft_text_records(screen, root, "no agent gave a queue pair the port of a plan", columns,
                           sizeof(columns) / sizeof(columns[0]), add_row);
}

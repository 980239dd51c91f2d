// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/units.h"

#define NAMES 4 /* columns that say which link it is, and when */

static const struct ft_column columns[] = {
    {.title = "WINDOW"}, /* of timed rows */
    {.title = "LINK", .elastic = true},
    {.title = "TO", .give_up = 5},
    {.title = "GROUP", .give_up = 6},
    {.title = "FLOWS", .right = true},
    {.title = "FLOW RATE", .right = true},
    {.title = "SPEED", .right = true, .give_up = 7},
    {.title = "PORT USED", .right = true},
    {.title = "OF GROUP", .right = true, .give_up = 2},
    {.title = "DISCARDS", .right = true, .give_up = 3},
    {.title = "ERRORS", .right = true, .give_up = 4},
    {.title = "FLAPS", .right = true, .give_up = 10},
    {.title = "RESENDING", .right = true, .give_up = 11},
    {.title = "QUEUE", .right = true, .give_up = 8},
    {.title = "TRANSIT", .right = true, .give_up = 9},
};

static void count_cell(struct ft_grid *grid, const struct ft_value *record, const char *name,
                       bool bad)
{
    uint64_t n;

    if (ft_value_uint(record, name, &n))
        ft_grid_cell(grid, bad && n ? FT_RED : FT_PLAIN, "%llu", (unsigned long long)n);
    else
        ft_grid_skip(grid);
}

/* Flows that send packets again, of those whose packet numbers show whether they do. */
static void resending_cell(struct ft_grid *grid, const struct ft_value *record)
{
    uint64_t of, n;

    if (ft_value_uint(record, "numbered_flows", &of) &&
        ft_value_uint(record, "resending_flows", &n))
        ft_grid_cell(grid, 2 * n > of ? FT_YELLOW : FT_PLAIN, "%llu of %llu", (unsigned long long)n,
                     (unsigned long long)of);
    else
        ft_grid_skip(grid);
}

static void percent_cell(struct ft_grid *grid, const struct ft_value *record, const char *name,
                         double warn)
{
    char text[FT_UNIT_BYTES];
    double ratio;

    if (ft_value_real(record, name, &ratio))
        ft_grid_cell(grid, ratio >= warn ? FT_YELLOW : FT_PLAIN, "%s",
                     ft_unit_percent(text, ratio));
    else
        ft_grid_skip(grid);
}

/* Mean rate over the record's own window. */
static void rate_cell(struct ft_grid *grid, const struct ft_value *record)
{
    uint64_t bytes, start, end;
    char text[FT_UNIT_BYTES];

    if (ft_value_uint(record, "bytes", &bytes) &&
        ft_value_uint(record, "window_start_ms", &start) &&
        ft_value_uint(record, "window_end_ms", &end) && end > start)
        ft_grid_cell(grid, FT_PLAIN, "%s",
                     ft_unit_rate(text, 8000.0 * (double)bytes / (double)(end - start)));
    else
        ft_grid_skip(grid);
}

/* Deepest queue and longest time in the switch that a sample reported; few switches do. */
static void depth_cells(struct ft_grid *grid, const struct ft_value *record)
{
    char text[FT_UNIT_BYTES];
    double value;

    if (ft_value_real(record, "queue_max_bytes", &value))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_size(text, value));
    else
        ft_grid_skip(grid);
    if (ft_value_real(record, "transit_max_ns", &value))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_duration(text, value));
    else
        ft_grid_skip(grid);
}

static void endpoint_cell(struct ft_grid *grid, const char *name, const char *port)
{
    ft_grid_cell(grid, FT_PLAIN, "%s%s%s", name ? name : "", name && port ? " " : "",
                 port ? port : "");
}

struct ft_grid *ft_rows_links(void)
{
    return ft_grid_new(columns + 1, sizeof(columns) / sizeof(columns[0]) - 1);
}

struct ft_grid *ft_rows_links_timed(void)
{
    return ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
}

const struct ft_column *ft_rows_links_figures(size_t *count)
{
    *count = sizeof(columns) / sizeof(columns[0]) - NAMES;
    return columns + NAMES;
}

void ft_rows_links_figure_cells(struct ft_grid *grid, const struct ft_value *record)
{
    char text[FT_UNIT_BYTES];
    double speed;

    count_cell(grid, record, "flows", false);
    rate_cell(grid, record);
    if (ft_value_real(record, "speed_bps", &speed))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_rate(text, speed));
    else
        ft_grid_skip(grid);
    percent_cell(grid, record, "utilization", 0.9);
    percent_cell(grid, record, "share", 2);
    count_cell(grid, record, "discards", true);
    count_cell(grid, record, "errors", true);
    count_cell(grid, record, "flaps", true);
    resending_cell(grid, record);
    depth_cells(grid, record);
}

void ft_rows_links_add(struct ft_grid *grid, const struct ft_value *record)
{
    const char *name = ft_value_str(record, "switch"), *port = ft_value_str(record, "port");
    const char *group = ft_value_str(record, "group");

    endpoint_cell(grid, name, port);
    endpoint_cell(grid, ft_value_str(record, "peer"), ft_value_str(record, "peer_port"));
    ft_grid_cell(grid, FT_PLAIN, "%s", group ? group : "");
    ft_rows_links_figure_cells(grid, record);
    if (name && port)
        ft_grid_about(grid, "%s/%s", name, port);
}

int ft_show_links(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    struct ft_grid *grid = ft_rows_links();
    int rc;

    ft_text_window(screen, root);
    fprintf(screen->out, ", %zu directed links", ft_value_count(records));
    ft_text_limit(screen, ft_value_count(records));
    fputc('\n', screen->out);
    for (size_t i = 0; i < ft_value_count(records); i++)
        ft_rows_links_add(grid, ft_value_at(records, i));
    rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

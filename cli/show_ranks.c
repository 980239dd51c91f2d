// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show.h"

#include "cli/rows.h"
#include "cli/text.h"
#include "cli/units.h"

static const struct ft_column columns[] = {
    {.title = "COMMUNICATOR", .give_up = 2},
    {.title = "RANK", .right = true},
    {.title = "HOST", .elastic = true},
    {.title = "GPU", .give_up = 5},
    {.title = "JOB", .give_up = 4},
    {.title = "LAST", .give_up = 3},
    {.title = "AT", .give_up = 6},
    {.title = "SLOWEST TO", .right = true},
    {.title = "STEP", .right = true},
    {.title = "OTHERS", .right = true, .give_up = 1},
    {.title = "LINK"},
    {.title = "FLOWS", .right = true},
};

static void time_cell(struct ft_grid *grid, const struct ft_value *record, const char *name)
{
    double ns;

    if (ft_value_real(record, name, &ns))
        ft_grid_cell(grid, FT_PLAIN, "%.3g us", ns / 1000);
    else
        ft_grid_skip(grid);
}

struct ft_grid *ft_rows_ranks(void)
{
    return ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
}

void ft_rows_ranks_add(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now)
{
    const char *name = ft_value_str(record, "slowest_switch");
    const char *port = ft_value_str(record, "slowest_port");
    char text[FT_UNIT_BYTES];
    uint64_t ms;

    ft_text_cell(grid, record, "comm_id");
    ft_text_number_cell(grid, record, "rank");
    ft_text_cell(grid, record, "host");
    ft_text_cell(grid, record, "gpu");
    ft_text_cell(grid, record, "job");
    ft_text_cell(grid, record, "op");
    if (ft_value_uint(record, "time_ms", &ms))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_time(text, ms, now));
    else
        ft_grid_skip(grid);
    ft_text_number_cell(grid, record, "slowest_peer");
    time_cell(grid, record, "slowest_step_median_ns");
    time_cell(grid, record, "others_step_median_ns");
    if (name && port)
        ft_grid_cell(grid, FT_YELLOW, "%s %s", name, port);
    else
        ft_grid_skip(grid);
    ft_text_number_cell(grid, record, "slowest_port_flows");
}

int ft_show_ranks(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    size_t count = ft_value_count(records);
    struct ft_grid *grid;
    int rc;

    if (count == 0) {
        fputs("no communicator is known: does a job run with the NCCL profiler plugin, and does "
              "its agent have nccl.socket set?\n",
              screen->out);
        return 0;
    }
    grid = ft_rows_ranks();
    ft_text_window(screen, root);
    fprintf(screen->out, ", %zu rank%s\n", count, count == 1 ? "" : "s");
    for (size_t i = 0; i < count; i++)
        ft_rows_ranks_add(grid, ft_value_at(records, i), screen->now);
    rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/units.h"

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
    {.title = "STANDS IN", .give_up = 1},
    {.title = "STATE"},
};

static void time_cell(struct ft_grid *grid, const struct ft_value *record, const char *name)
{
    char text[FT_UNIT_BYTES];
    double ns;

    if (ft_value_real(record, name, &ns))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_duration(text, ns));
    else
        ft_grid_skip(grid);
}

/* Where a rank stands, and what that waits for; of a process that does not run, that. */
static void stands_cells(struct ft_grid *grid, const struct ft_value *record)
{
    const char *process = ft_value_str(record, "process");
    const char *transfer = ft_value_str(record, "transfer");
    const char *state = ft_value_str(record, "state");
    const char *op = ft_value_str(record, "standing_op");
    bool halted = process && strcmp(process, "running") != 0;
    bool open = ft_value_true(record, "standing") && state && strcmp(state, "finished") != 0;
    uint64_t number, peer;
    char to[32] = "";

    if (open && ft_value_uint(record, "number", &number))
        ft_grid_cell(grid, FT_YELLOW, "%s %" PRIu64, op ? op : "operation", number);
    else
        ft_grid_skip(grid);
    if (ft_value_uint(record, "transfer_peer", &peer))
        snprintf(to, sizeof(to), " %s %" PRIu64,
                 ft_value_true(record, "transfer_send") ? "to" : "from", peer);
    if (halted)
        ft_grid_cell(grid, FT_RED, "%s", process);
    else if (open)
        ft_grid_cell(grid, FT_YELLOW, "%s%s", transfer ? transfer : state, to);
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

    ft_text_cell(grid, record, "comm_id");
    ft_text_number_cell(grid, record, "rank");
    ft_text_cell(grid, record, "host");
    ft_text_cell(grid, record, "gpu");
    ft_text_cell(grid, record, "job");
    ft_text_cell(grid, record, "op");
    ft_text_time_cell(grid, record, "time_ms", now);
    ft_text_number_cell(grid, record, "slowest_peer");
    time_cell(grid, record, "slowest_step_median_ns");
    time_cell(grid, record, "others_step_median_ns");
    if (name && port)
        ft_grid_cell(grid, FT_YELLOW, "%s %s", name, port);
    else
        ft_grid_skip(grid);
    ft_text_number_cell(grid, record, "slowest_port_flows");
    stands_cells(grid, record);
    if (ft_value_str(record, "job"))
        ft_grid_about(grid, "%s", ft_value_str(record, "job"));
}

int ft_show_ranks(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    size_t count = ft_value_count(records);
    struct ft_grid *grid;
    int rc;

    if (count == 0 && screen->chosen) {
        fputs("no rank that was asked for is known\n", screen->out);
        return 0;
    }
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

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include "cli/output/rows.h"
#include "cli/output/text.h"

static const struct ft_column columns[] = {
    {.title = "HOST", .elastic = true}, {.title = "DEVICE", .give_up = 3},
    {.title = "QP", .right = true},     {.title = "PEER", .elastic = true},
    {.title = "QP", .right = true},     {.title = "STATE"},
    {.title = "BY", .give_up = 2},      {.title = "FLOW"},
    {.title = "OWNER", .give_up = 1},
};

struct ft_grid *ft_rows_qps(void)
{
    return ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
}

void ft_rows_qps_add(struct ft_grid *grid, const struct ft_value *record)
{
    const char *comm = ft_value_str(record, "comm"), *job = ft_value_str(record, "job");
    bool known = ft_value_is(record, "state", "paired") || ft_value_is(record, "state", "reported");
    char flow[FT_TUPLE_TEXT_BYTES];
    uint64_t pid = 0;

    ft_text_cell(grid, record, "host");
    ft_text_cell(grid, record, "device");
    ft_text_number_cell(grid, record, "local");
    ft_text_cell(grid, record, "peer_host");
    ft_text_number_cell(grid, record, "remote");
    ft_grid_cell(grid, known ? FT_PLAIN : FT_YELLOW, "%s",
                 ft_value_str(record, "state") ? ft_value_str(record, "state") : "?");
    ft_text_cell(grid, record, "by");
    ft_grid_cell(grid, FT_PLAIN, "%s", ft_text_flow(flow, ft_value_get(record, "flow")));
    if (ft_value_uint(record, "pid", &pid))
        ft_grid_cell(grid, FT_PLAIN, "%s%spid %llu%s%s", comm ? comm : "", comm ? ", " : "",
                     (unsigned long long)pid, job ? ", job " : "", job ? job : "");
    else
        ft_grid_skip(grid);
}

int ft_show_qps(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    size_t count = ft_value_count(records);
    uint64_t total = count;
    struct ft_grid *grid;
    int rc;

    ft_value_uint(root, "total", &total);
    if (count == 0) {
        fputs("no such queue pair is listed by an agent\n", screen->out);
        return 0;
    }
    grid = ft_rows_qps();
    ft_text_window(screen, root);
    fprintf(screen->out, ", %llu connected queue pair%s", (unsigned long long)total,
            total == 1 ? "" : "s");
    if (total > count)
        fprintf(screen->out, ", the first %zu of them", count);
    fputc('\n', screen->out);
    for (size_t i = 0; i < count; i++)
        ft_rows_qps_add(grid, ft_value_at(records, i));
    rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

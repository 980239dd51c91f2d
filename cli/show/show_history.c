// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <string.h>

#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/units.h"

#define COLUMNS_MAX 16

/* "leaf1 Ethernet51 to spine1 Ethernet4", "leaf1/up" or a flow: what all of the records are of. */
static void put_subject(const struct ft_screen *screen, const struct ft_value *record)
{
    const char *name = ft_value_str(record, "switch"), *port = ft_value_str(record, "port");
    const char *peer = ft_value_str(record, "peer"), *to = ft_value_str(record, "peer_port");
    const char *group = ft_value_str(record, "name");
    char flow[FT_TUPLE_TEXT_BYTES];

    fputs(", ", screen->out);
    ft_text_flow(flow, ft_value_get(record, "flow"));
    ft_screen_text(screen, FT_BOLD, *flow ? flow : group ? group : name);
    if (*flow || group)
        return;
    fputs(" ", screen->out);
    ft_screen_text(screen, FT_BOLD, port);
    if (!peer)
        return;
    fputs(" to ", screen->out);
    ft_screen_text(screen, FT_PLAIN, peer);
    fputs(to ? " " : "", screen->out);
    ft_screen_text(screen, FT_PLAIN, to);
}

static void put_heading(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    const char *fabric = ft_value_str(root, "fabric");
    size_t count = ft_value_count(records);
    char from[FT_UNIT_BYTES], to[FT_UNIT_BYTES];
    uint64_t start, end;

    ft_screen_text(screen, FT_BOLD, fabric ? fabric : "fabric");
    if (count) {
        /* The newest: another port may have come to the other end. */
        put_subject(screen, ft_value_at(records, count - 1));
        fprintf(screen->out, ", %zu window%s", count, count == 1 ? "" : "s");
    }
    if (ft_value_uint(ft_value_at(records, 0), "window_start_ms", &start) &&
        ft_value_uint(ft_value_at(records, count - 1), "window_end_ms", &end))
        fprintf(screen->out, " from %s to %s", ft_unit_time(from, start, screen->now),
                ft_unit_time(to, end, screen->now));
    fputc('\n', screen->out);
}

static int add_row(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now)
{
    ft_text_time_cell(grid, record, "window_start_ms", now);
    if (ft_value_is(record, "schema", "fabrictrace.path.v1"))
        return ft_rows_path_figure_cells(grid, record);
    if (ft_value_is(record, "schema", "fabrictrace.imbalance.v1"))
        ft_rows_imbalance_figure_cells(grid, record);
    else
        ft_rows_links_figure_cells(grid, record);
    return 0;
}

int ft_show_history(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records"),
                          *first = ft_value_at(records, 0);
    struct ft_column columns[COLUMNS_MAX] = {{.title = "WINDOW"}};
    const struct ft_column *figures;
    struct ft_grid *grid;
    size_t count;
    int rc = 0;

    if (ft_value_is(first, "schema", "fabrictrace.path.v1"))
        figures = ft_rows_path_figures(&count);
    else if (ft_value_is(first, "schema", "fabrictrace.imbalance.v1"))
        figures = ft_rows_imbalance_figures(&count);
    else
        figures = ft_rows_links_figures(&count);
    memcpy(columns + 1, figures, count * sizeof(*figures));
    grid = ft_grid_new(columns, count + 1);
    put_heading(screen, root);
    for (size_t i = 0; rc == 0 && i < ft_value_count(records); i++)
        rc = add_row(grid, ft_value_at(records, i), screen->now);
    if (rc == 0)
        rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

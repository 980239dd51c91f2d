// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/units.h"

static const struct ft_column columns[] = {
    {.title = "SEVERITY", .give_up = 2},
    {.title = "KIND"},
    {.title = "WHAT", .elastic = true},
    {.title = "SINCE", .give_up = 1},
};

/* The worst first. */
static const char *const severities[] = {"critical", "warning", "info"};

/* The link, group, job or flow that it is on. */
static void about(struct ft_grid *grid, const struct ft_value *record)
{
    const struct ft_value *evidence = ft_value_get(record, "evidence");
    const char *name = ft_value_str(evidence, "switch"), *port = ft_value_str(evidence, "port");
    const char *group = ft_value_str(evidence, "group");
    const char *job = ft_value_str(ft_value_at(ft_value_get(evidence, "victims"), 0), "job");
    char flow[FT_TUPLE_TEXT_BYTES];

    ft_text_flow(flow, ft_value_get(evidence, "flow"));
    if (name && port)
        ft_grid_about(grid, "%s/%s", name, port);
    else if (group || job)
        ft_grid_about(grid, "%s", group ? group : job);
    else if (*flow)
        ft_grid_about(grid, "%s", flow);
}

struct ft_grid *ft_rows_events(void)
{
    return ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
}

void ft_rows_events_add(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now)
{
    const char *severity = ft_value_str(record, "severity"), *kind = ft_value_str(record, "kind");
    const char *what = ft_value_str(record, "message");
    enum ft_colour colour = ft_value_is(record, "severity", "critical")  ? FT_RED
                            : ft_value_is(record, "severity", "warning") ? FT_YELLOW
                                                                         : FT_PLAIN;
    char time[FT_UNIT_BYTES];
    uint64_t since;

    if (!what)
        what = ft_value_str(record, "subject");
    ft_grid_cell(grid, colour, "%s", severity ? severity : "");
    ft_grid_cell(grid, colour, "%s", kind ? kind : "");
    ft_grid_cell(grid, FT_PLAIN, "%s", what ? what : "");
    if (ft_value_uint(record, "since_ms", &since))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_time(time, since, now));
    else
        ft_grid_skip(grid);
    about(grid, record);
}

/* Of no known severity: after the others. */
static size_t rank_of(const struct ft_value *record)
{
    size_t i = 0;

    while (i < sizeof(severities) / sizeof(severities[0]) &&
           !ft_value_is(record, "severity", severities[i]))
        i++;
    return i;
}

int ft_show_events(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    size_t count = ft_value_count(records), ranks = sizeof(severities) / sizeof(severities[0]);
    struct ft_grid *grid = ft_rows_events();
    int rc;

    ft_text_window(screen, root);
    if (count == 0)
        fputs(", no active events\n", screen->out);
    else
        fprintf(screen->out, ", %zu active event%s\n", count, count == 1 ? "" : "s");
    for (size_t rank = 0; rank <= ranks; rank++)
        for (size_t i = 0; i < count; i++)
            if (rank_of(ft_value_at(records, i)) == rank)
                ft_rows_events_add(grid, ft_value_at(records, i), screen->now);
    rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

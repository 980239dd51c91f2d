// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show_lossy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/text.h"

static const struct ft_column columns[] = {
    {.title = "FLOW"},
    {.title = "FROM", .elastic = true},
    {.title = "TO", .give_up = 2},
    {.title = "JOB", .give_up = 3},
    {.title = "SENT AGAIN IN", .right = true},
    {.title = "NAKS IN", .right = true, .give_up = 4},
    {.title = "CROSSES BY", .give_up = 1},
};

/* What its way over the link is known by: what is not of its own samples says so. */
static const char *known_by(const struct ft_value *victim)
{
    if (ft_value_is(victim, "link_evidence", "sampled"))
        return "samples";
    return ft_value_is(victim, "link_evidence", "neighbour") ? "samples beside it" : "";
}

static int add_flow(struct ft_grid *grid, const struct ft_value *victim)
{
    char flow[FT_TUPLE_TEXT_BYTES];
    char *src = ft_text_end(victim, "src"), *dst = ft_text_end(victim, "dst");
    const char *job = ft_value_str(victim, "job");
    uint64_t all, again, naks;
    int rc = src && dst ? 0 : -ENOMEM;

    if (rc == 0) {
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_text_flow(flow, ft_value_get(victim, "flow")));
        ft_grid_cell(grid, FT_PLAIN, "%s", src);
        ft_grid_cell(grid, FT_PLAIN, "%s", dst);
        ft_grid_cell(grid, FT_PLAIN, "%s", job ? job : "");
        if (ft_value_uint(victim, "resending_windows", &again) &&
            ft_value_uint(victim, "numbered_windows", &all))
            ft_grid_cell(grid, FT_PLAIN, "%llu of %llu windows", (unsigned long long)again,
                         (unsigned long long)all);
        else
            ft_grid_skip(grid);
        if (ft_value_uint(victim, "nak_windows", &naks))
            ft_grid_cell(grid, FT_PLAIN, "%llu", (unsigned long long)naks);
        else
            ft_grid_skip(grid);
        ft_grid_cell(grid, FT_PLAIN, "%s", known_by(victim));
    }
    free(src);
    free(dst);
    return rc;
}

int ft_show_lossy_flows(const struct ft_screen *screen, const struct ft_value *event)
{
    const struct ft_value *evidence = ft_value_get(event, "evidence");
    const struct ft_value *victims = ft_value_get(evidence, "victims");
    uint64_t all = 0, pairs;
    struct ft_grid *grid;
    int rc = 0;

    if (!ft_value_is(event, "kind", "packet_loss") || ft_value_count(victims) == 0)
        return 0;
    ft_value_uint(evidence, "flows", &all);
    fputs("\nFlows over it that lose packets", screen->out);
    if (ft_value_uint(evidence, "pairs", &pairs))
        fprintf(screen->out, ", between %llu pair%s of hosts", (unsigned long long)pairs,
                pairs == 1 ? "" : "s");
    if (all > ft_value_count(victims))
        fprintf(screen->out, ": %zu of %llu", ft_value_count(victims), (unsigned long long)all);
    fputc('\n', screen->out);
    grid = ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; rc == 0 && i < ft_value_count(victims); i++)
        rc = add_flow(grid, ft_value_at(victims, i));
    if (rc == 0)
        rc = ft_grid_print(grid, screen, 2);
    ft_grid_free(grid);
    return rc;
}

void ft_show_loss_of(const struct ft_screen *screen, const struct ft_value *event,
                     const struct ft_value *path)
{
    const struct ft_value *evidence = ft_value_get(event, "evidence");
    const struct ft_value *victims = ft_value_get(evidence, "victims");
    const char *name = ft_value_str(evidence, "switch"), *port = ft_value_str(evidence, "port");
    char flow[FT_TUPLE_TEXT_BYTES], other[FT_TUPLE_TEXT_BYTES];
    uint64_t again = 0, all = 0;
    bool named = false;

    if (!name || !port || !ft_value_uint(evidence, "flows", &again) ||
        !ft_value_uint(evidence, "count", &all))
        return;
    ft_text_flow(flow, ft_value_get(path, "flow"));
    for (size_t i = 0; i < ft_value_count(victims) && !named; i++) {
        const struct ft_value *victim = ft_value_at(victims, i);

        named = strcmp(flow, ft_text_flow(other, ft_value_get(victim, "flow"))) == 0;
    }
    fputs("  Crosses ", screen->out);
    ft_screen_text(screen, FT_YELLOW, name);
    ft_screen_text(screen, FT_YELLOW, " ");
    ft_screen_text(screen, FT_YELLOW, port);
    fputs(", which loses packets: ", screen->out);
    if (named)
        fputs("it is one of those hurt, as are ", screen->out);
    else if (ft_value_count(victims) >= again)
        fputs("its samples show nothing of it, unlike those of ", screen->out);
    /* Of a list that is cut short it does not follow that others do not. */
    fprintf(screen->out, "%llu of %s%llu flows over it.\n",
            (unsigned long long)again - (named ? 1 : 0), named ? "the other " : "",
            (unsigned long long)all - (named ? 1 : 0));
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/output/text.h"
#include "cli/output/units.h"

static const struct ft_column columns[] = {
    {.title = NULL},               /* flow */
    {.right = true, .give_up = 1}, /* rate */
    {.elastic = true},             /* from */
    {.give_up = 3},                /* to */
    {.give_up = 2},                /* job */
};

static int add_victim(struct ft_grid *grid, const struct ft_value *victim)
{
    char flow[FT_TUPLE_TEXT_BYTES], rate[FT_UNIT_BYTES];
    char *src = ft_text_end(victim, "src"), *dst = ft_text_end(victim, "dst");
    const char *job = ft_value_str(victim, "job");
    double bps;
    int rc = src && dst ? 0 : -ENOMEM;

    if (rc == 0) {
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_text_flow(flow, ft_value_get(victim, "flow")));
        if (ft_value_real(victim, "rate_bps", &bps))
            ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_rate(rate, bps));
        else
            ft_grid_skip(grid);
        ft_grid_cell(grid, FT_PLAIN, "%s", src);
        ft_grid_cell(grid, FT_PLAIN, "> %s", dst);
        ft_grid_cell(grid, FT_PLAIN, "%s%s", job ? "job " : "", job ? job : "");
    }
    free(src);
    free(dst);
    return rc;
}

static void show_head(const struct ft_screen *screen, const struct ft_value *event)
{
    const struct ft_value *evidence = ft_value_get(event, "evidence");
    const char *name = ft_value_str(evidence, "switch"), *port = ft_value_str(evidence, "port");
    const char *peer = ft_value_str(evidence, "peer");
    uint64_t elephants, least, since;
    char time[FT_UNIT_BYTES];
    double even;

    if (name && port) {
        ft_screen_text(screen, FT_BOLD, name);
        ft_screen_text(screen, FT_BOLD, " ");
        ft_screen_text(screen, FT_BOLD, port);
        if (peer) {
            fputs(" to ", screen->out);
            ft_screen_text(screen, FT_PLAIN, peer);
        }
    } else {
        ft_screen_text(screen, FT_BOLD, ft_value_str(event, "subject"));
    }
    if (ft_value_uint(evidence, "elephants", &elephants)) {
        fprintf(screen->out, ": %llu elephants", (unsigned long long)elephants);
        if (ft_value_real(evidence, "elephants_even", &even))
            fprintf(screen->out, ", the even share is %.3g", even);
        if (ft_value_uint(evidence, "elephants_least", &least))
            fprintf(screen->out, ", a sibling carries %llu", (unsigned long long)least);
    } else if (ft_value_str(event, "message")) {
        fputs(": ", screen->out);
        ft_screen_text(screen, FT_PLAIN, ft_value_str(event, "message"));
    }
    if (ft_value_uint(event, "since_ms", &since))
        fprintf(screen->out, "; since %s", ft_unit_time(time, since, screen->now));
    fputc('\n', screen->out);
}

int ft_show_collision(const struct ft_screen *screen, const struct ft_value *event, size_t most)
{
    const struct ft_value *victims = ft_value_get(ft_value_get(event, "evidence"), "victims");
    struct ft_grid *grid = ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
    int rc = 0;

    show_head(screen, event);
    for (size_t i = 0; rc == 0 && i < ft_value_count(victims) && i < most; i++)
        rc = add_victim(grid, ft_value_at(victims, i));
    if (rc == 0)
        rc = ft_grid_print(grid, screen, 2);
    ft_grid_free(grid);
    return rc;
}

int ft_show_collisions(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    size_t count = ft_value_count(records);
    int rc = 0;

    ft_text_window(screen, root);
    if (count == 0)
        fprintf(screen->out, ", no%s collisions\n", screen->chosen ? " such" : "");
    else
        fprintf(screen->out, ", %zu collision%s\n", count, count == 1 ? "" : "s");
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = ft_show_collision(screen, ft_value_at(records, i), SIZE_MAX);
    return rc;
}

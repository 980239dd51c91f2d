// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/output/text.h"

static const struct ft_column columns[] = {
    {.title = "TTL", .right = true},
    {.title = "SWITCH", .elastic = true},
    {.title = "ADDRESS"},
    {.title = "TIME", .right = true},
};

/* Name of the switch that has an address; NULL. */
static const char *switch_of(const struct ft_value *topology, const char *address)
{
    const struct ft_value *switches = ft_value_get(topology, "switches");

    for (size_t i = 0; i < ft_value_count(switches); i++) {
        const struct ft_value *one = ft_value_at(switches, i);
        const struct ft_value *list = ft_value_get(one, "addresses");

        for (size_t a = 0; a < ft_value_count(list); a++) {
            const char *text = ft_value_text(ft_value_at(list, a));

            if (text && strcmp(text, address) == 0)
                return ft_value_str(one, "name");
        }
    }
    return NULL;
}

static void add_row(struct ft_grid *grid, const struct ft_value *answer,
                    const struct ft_value *topology)
{
    const char *address = ft_value_str(answer, "address");
    const char *name = address ? switch_of(topology, address) : NULL;
    uint64_t ns, sent = 0;

    ft_text_number_cell(grid, answer, "ttl");
    ft_value_uint(answer, "sent", &sent);
    if (!address)
        ft_grid_cell(grid, FT_YELLOW, "no answer to %" PRIu64 " probe%s", sent,
                     sent == 1 ? "" : "s");
    else if (name)
        ft_grid_cell(grid, FT_PLAIN, "%s", name);
    else
        ft_grid_cell(grid, FT_YELLOW, "no switch of the topology");
    ft_text_cell(grid, answer, "address");
    if (ft_value_uint(answer, "rtt_ns", &ns))
        ft_grid_cell(grid, FT_PLAIN, "%.2f ms", (double)ns / 1e6);
    else
        ft_grid_skip(grid);
}

int ft_show_probe(const struct ft_screen *screen, const struct ft_value *record,
                  const struct ft_value *topology)
{
    const struct ft_value *answers = ft_value_get(record, "answers");
    struct ft_grid *grid = ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
    int rc;

    for (size_t i = 0; i < ft_value_count(answers); i++)
        add_row(grid, ft_value_at(answers, i), topology);
    rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

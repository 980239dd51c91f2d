// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/output/text.h"
#include "cli/output/units.h"

static const struct ft_column columns[] = {
    {.title = "FLOW", .elastic = true},
    {.title = "HOST", .give_up = 2},
    {.title = "ASKED BY", .give_up = 1},
    {.title = "OUTCOME"},
    {.title = "SWITCHES"},
    {.title = "NOT KNOWN"},
    {.title = "TIME", .give_up = 3},
};

/* NULL: nothing is missing. */
static const char *gap_text(const struct ft_value *answer)
{
    static const struct {
        const char *gap;
        const char *text;
    } gaps[] = {
        {"silent", "no answer: limited, filtered or lost"},
        {"address", "its address is of no switch"},
        {"strange", "not on a path of the flow"},
        {"lag_member", "member of the aggregate"},
        {"parallel", "which of several links"},
    };

    for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
        if (ft_value_is(answer, "gap", gaps[i].gap))
            return gaps[i].text;
    return NULL;
}

/* The switches that answered, and "?" for others. */
static void switches_cell(struct ft_grid *grid, const struct ft_value *answers)
{
    char text[512] = "";
    size_t len = 0;

    for (size_t i = 0; i < ft_value_count(answers) && len < sizeof(text); i++) {
        const char *name = ft_value_str(ft_value_at(answers, i), "switch");

        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? " > " : "",
                                name ? name : "?");
    }
    ft_grid_cell(grid, FT_PLAIN, "%s", text);
}

/* "TTL 2: no answer: limited, filtered or lost", of each; a refusal's reason. */
static void gaps_cell(struct ft_grid *grid, const struct ft_value *record)
{
    const struct ft_value *answers = ft_value_get(record, "answers");
    const char *refused = ft_value_str(record, "refused");
    char text[512] = "";
    size_t len = 0;

    for (size_t i = 0; i < ft_value_count(answers) && len < sizeof(text); i++) {
        const char *gap = gap_text(ft_value_at(answers, i));
        uint64_t ttl = 0;

        ft_value_uint(ft_value_at(answers, i), "ttl", &ttl);
        if (gap)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%sTTL %" PRIu64 ": %s",
                                    len ? "; " : "", ttl, gap);
    }
    ft_grid_cell(grid, FT_YELLOW, "%s", refused ? refused : text);
}

static void asked_cell(struct ft_grid *grid, const struct ft_value *record)
{
    uint64_t uid;

    if (ft_value_true(record, "by_daemon"))
        ft_grid_cell(grid, FT_PLAIN, "the daemon");
    else if (ft_value_uint(record, "uid", &uid))
        ft_grid_cell(grid, FT_PLAIN, "user %" PRIu64, uid);
    else
        ft_grid_skip(grid);
}

static void add_row(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now)
{
    const char *outcome = ft_value_str(record, "outcome");
    char flow[FT_TUPLE_TEXT_BYTES], time[FT_UNIT_BYTES];
    bool answered = outcome && strcmp(outcome, "answered") == 0;
    uint64_t time_ms;

    ft_grid_cell(grid, FT_PLAIN, "%s", ft_text_flow(flow, ft_value_get(record, "flow")));
    ft_text_cell(grid, record, "host");
    asked_cell(grid, record);
    ft_grid_cell(grid, answered ? FT_GREEN : FT_YELLOW, "%s", outcome ? outcome : "?");
    switches_cell(grid, ft_value_get(record, "answers"));
    gaps_cell(grid, record);
    if (ft_value_uint(record, "time_ms", &time_ms))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_time(time, time_ms, now));
    else
        ft_grid_skip(grid);
}

int ft_show_probes(const struct ft_screen *screen, const struct ft_value *root)
{
    return ft_text_records(screen, root, "no flow was probed", columns,
                           sizeof(columns) / sizeof(columns[0]), add_row);
}

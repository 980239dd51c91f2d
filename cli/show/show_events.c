// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/output/choice.h"
#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/units.h"

static const struct ft_column columns[] = {
    {.title = "SINCE"},    {.title = "UNTIL"}, /* of those that are over */
    {.title = "SEVERITY"}, {.title = "KIND"},  {.title = "WHAT", .elastic = true, .wraps = true},
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

/* until: when it was over, or that it is not; empty: nothing is said of that. */
static void add_event(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now,
                      const char *until)
{
    const char *severity = ft_value_str(record, "severity"), *kind = ft_value_str(record, "kind");
    char *what = ft_text_event(record);
    bool over = ft_value_true(record, "cleared");
    enum ft_colour colour = over                                          ? FT_PLAIN
                            : ft_value_is(record, "severity", "critical") ? FT_RED
                            : ft_value_is(record, "severity", "warning")  ? FT_YELLOW
                                                                          : FT_PLAIN;

    ft_text_time_cell(grid, record, "since_ms", now);
    ft_grid_cell(grid, FT_PLAIN, "%s", until);
    ft_grid_cell(grid, colour, "%s", severity ? severity : "");
    ft_grid_cell(grid, colour, "%s", kind ? kind : "");
    ft_grid_cell(grid, FT_PLAIN, "%s", what ? what : "");
    free(what);
    about(grid, record);
}

/* One that is over says itself since when. */
static void add_own(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now,
                    bool active)
{
    char time[FT_UNIT_BYTES];
    uint64_t until;

    if (ft_value_true(record, "cleared") && ft_value_uint(record, "time_ms", &until))
        add_event(grid, record, now, ft_unit_time(time, until, now));
    else
        add_event(grid, record, now, active ? "active" : "");
}

void ft_rows_events_add(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now)
{
    add_own(grid, record, now, false);
}

void ft_rows_events_add_until(struct ft_grid *grid, const struct ft_value *record,
                              uint64_t until_ms, struct ft_wall now)
{
    char time[FT_UNIT_BYTES];

    add_event(grid, record, now, ft_unit_time(time, until_ms, now));
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

/* The condition of an event that was asked for is active still: else it is over, or only happened.
 */
static bool is_active(const struct ft_value *active, const struct ft_value *record)
{
    const char *kind = ft_value_str(record, "kind"), *subject = ft_value_str(record, "subject");
    uint64_t since = 0, other;

    if (!kind || !subject || ft_value_true(record, "cleared"))
        return false;
    ft_value_uint(record, "since_ms", &since);
    for (size_t i = 0; i < ft_value_count(active); i++)
        if (ft_value_is(ft_value_at(active, i), "kind", kind) &&
            ft_value_is(ft_value_at(active, i), "subject", subject) &&
            ft_value_uint(ft_value_at(active, i), "since_ms", &other) && other == since)
            return true;
    return false;
}

/* ", events since 02:00:00: 5, 1 of them still active". */
static void put_time(const struct ft_screen *screen, const struct ft_value *records)
{
    const struct ft_since *since = screen->since;
    size_t active = 0;
    char a[FT_UNIT_BYTES], b[FT_UNIT_BYTES];

    for (size_t i = 0; i < ft_value_count(records); i++)
        active += is_active(since->active, ft_value_at(records, i));
    fprintf(screen->out, ", events since %s", ft_unit_time(a, since->from_ms, screen->now));
    if (since->to_ms)
        fprintf(screen->out, " until %s", ft_unit_time(b, since->to_ms, screen->now));
    if (ft_value_count(records) == 0)
        fputs(": none", screen->out);
    else
        fprintf(screen->out, ": %zu, %zu of them still active", ft_value_count(records), active);
    ft_text_limit(screen, ft_value_count(records));
    if (since->kept_ms > since->from_ms)
        fprintf(screen->out, " (nothing is kept of before %s)",
                ft_unit_time(a, since->kept_ms, screen->now));
    fputc('\n', screen->out);
}

static bool *newest_of(const struct ft_screen *screen, const struct ft_value *records)
{
    return ft_choice_newest(records, screen->layout.limit ? screen->layout.limit : SIZE_MAX);
}

/* Of a time: in the order in which they began. */
static int show_past(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    const char *fabric = ft_value_str(root, "fabric");
    struct ft_grid *grid = ft_rows_events();
    bool *newest = newest_of(screen, records);
    int rc;

    ft_screen_text(screen, FT_BOLD, fabric ? fabric : "fabric");
    put_time(screen, records);
    for (size_t i = 0; newest && i < ft_value_count(records); i++) {
        const struct ft_value *record = ft_value_at(records, i);

        if (!newest[i])
            continue;
        add_own(grid, record, screen->now, is_active(screen->since->active, record));
    }
    rc = newest ? ft_grid_print(grid, screen, 0) : -ENOMEM;
    ft_grid_free(grid);
    free(newest);
    return rc;
}

int ft_show_events(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    size_t count = ft_value_count(records), ranks = sizeof(severities) / sizeof(severities[0]);
    struct ft_grid *grid;
    bool *newest;
    int rc;

    if (screen->since)
        return show_past(screen, root);
    grid = ft_rows_events();
    newest = newest_of(screen, records);
    ft_text_window(screen, root);
    if (count == 0)
        fprintf(screen->out, ", no%s active events", screen->chosen ? " such" : "");
    else
        fprintf(screen->out, ", %zu active event%s", count, count == 1 ? "" : "s");
    ft_text_limit(screen, count);
    fputc('\n', screen->out);
    for (size_t rank = 0; rank <= ranks; rank++)
        for (size_t i = 0; newest && i < count; i++)
            if (newest[i] && rank_of(ft_value_at(records, i)) == rank)
                ft_rows_events_add(grid, ft_value_at(records, i), screen->now);
    rc = newest ? ft_grid_print(grid, screen, 0) : -ENOMEM;
    ft_grid_free(grid);
    free(newest);
    return rc;
}

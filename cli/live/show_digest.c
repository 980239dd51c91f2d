// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/live/show_digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/rows.h"
#include "cli/output/units.h"
#include "cli/show/show.h"

#define COLLISIONS_SHOWN 10
#define VICTIMS_SHOWN    8
#define EVENTS_SHOWN     40

static const struct ft_column group_columns[] = {
    {.title = "GROUP"},
    {.title = "LINKS", .right = true, .give_up = 2},
    {.title = "WINDOWS", .right = true, .give_up = 3},
    {.title = "MEAN FIM", .right = true},
    {.title = "BY CHANCE", .right = true},
    {.title = "LOWEST P"},
    {.title = "AT", .give_up = 1},
    {.title = "VERDICT", .elastic = true},
};

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void show_flows(const struct ft_screen *screen, const char *what,
                       const uint64_t states[FT_DIGEST_STATES])
{
    static const char *const names[FT_DIGEST_STATES] = {
        [FT_DIGEST_RESOLVED] = "resolved",
        [FT_DIGEST_MULTIPATH] = "multipath",
        [FT_DIGEST_PARTIAL] = "partial",
        [FT_DIGEST_UNRESOLVED] = "unresolved",
    };
    uint64_t all = 0;
    const char *separator = ": ";

    for (int i = 0; i < FT_DIGEST_STATES; i++)
        all += states[i];
    fprintf(screen->out, "%llu %s%s", (unsigned long long)all, what, plural(all));
    for (int i = 0; i < FT_DIGEST_STATES; i++) {
        if (!states[i])
            continue;
        fprintf(screen->out, "%s%llu %s", separator, (unsigned long long)states[i], names[i]);
        separator = ", ";
    }
    fputc('\n', screen->out);
}

static void show_head(const struct ft_screen *screen, const char *name,
                      const struct ft_digest_facts *facts)
{
    char from[FT_UNIT_BYTES], to[FT_UNIT_BYTES];
    struct ft_wall end = {.ms = (int64_t)facts->last_ms};

    ft_screen_text(screen, FT_BOLD, name);
    fprintf(screen->out, ": %llu sFlow datagram%s, %llu sample%s",
            (unsigned long long)facts->datagrams, plural(facts->datagrams),
            (unsigned long long)facts->samples, plural(facts->samples));
    if (facts->datagrams_read < facts->datagrams)
        fprintf(screen->out, "; %llu not readable",
                (unsigned long long)(facts->datagrams - facts->datagrams_read));
    if (facts->datagrams_missing)
        fprintf(screen->out, "; %llu missing in their numbering",
                (unsigned long long)facts->datagrams_missing);
    fputc('\n', screen->out);
    if (facts->windows)
        fprintf(screen->out, "%llu window%s, %s to %s\n", (unsigned long long)facts->windows,
                plural(facts->windows), ft_unit_time(from, facts->first_ms, screen->now),
                ft_unit_time(to, facts->last_ms, end));
    else
        fputs("no window: it holds no samples of flows\n", screen->out);
    show_flows(screen, "flow", facts->flows[0]);
    show_flows(screen, "acknowledgement flow", facts->flows[1]);
    if (facts->flows_more)
        fputs("There are more flows than are counted here.\n", screen->out);
}

static void verdict_cell(struct ft_grid *grid, const struct ft_digest_group *g)
{
    unsigned long long of = g->windows;

    if (g->fault)
        ft_grid_cell(grid, FT_RED, "FAULT in %llu of %llu", (unsigned long long)g->fault, of);
    else if (g->uneven)
        ft_grid_cell(grid, FT_YELLOW, "uneven in %llu of %llu, may be luck",
                     (unsigned long long)g->uneven, of);
    else if (g->windows)
        ft_grid_cell(grid, FT_GREEN, "even");
    else
        ft_grid_cell(grid, FT_DIM, "idle");
}

static void add_group(struct ft_grid *grid, const struct ft_digest_group *g, struct ft_wall end)
{
    char text[FT_UNIT_BYTES];

    ft_grid_cell(grid, g->of_links ? FT_PLAIN : FT_BOLD, "%s", g->name);
    ft_grid_cell(grid, FT_PLAIN, "%llu", (unsigned long long)g->links);
    ft_grid_cell(grid, FT_PLAIN, "%llu", (unsigned long long)g->windows);
    if (g->fims) {
        ft_grid_cell(grid, FT_PLAIN, "%.1f", g->fim_sum / (double)g->fims);
        ft_grid_cell(grid, FT_PLAIN, "%.1f", g->chance_sum / (double)g->fims);
    } else {
        ft_grid_cell(grid, FT_DIM, "-");
        ft_grid_cell(grid, FT_DIM, "-");
    }
    if (g->has_p) {
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_p(text, g->p));
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_time(text, g->p_ms, end));
    } else {
        ft_grid_cell(grid, FT_DIM, "-");
        ft_grid_skip(grid);
    }
    verdict_cell(grid, g);
}

static int show_groups(const struct ft_screen *screen, const struct ft_digest *d,
                       const struct ft_digest_facts *facts)
{
    struct ft_grid *grid =
        ft_grid_new(group_columns, sizeof(group_columns) / sizeof(group_columns[0]));
    struct ft_wall end = {.ms = (int64_t)facts->last_ms};
    const struct ft_digest_group *g;
    int rc = 0;

    for (int of_links = 1; of_links >= 0; of_links--)
        for (size_t i = 0; (g = ft_digest_group(d, i)); i++)
            if (g->of_links == of_links)
                add_group(grid, g, end);
    fputc('\n', screen->out);
    ft_screen_text(screen, FT_BOLD, "Imbalance");
    fputs(ft_digest_group(d, 0) ? "\n" : ": no groups\n", screen->out);
    if (ft_digest_group(d, 0))
        rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

/* Events in the order of what matters; of those of a kind the longest collision first. */
static int compare(const void *a, const void *b)
{
    const struct ft_digest_event *x = *(const struct ft_digest_event *const *)a;
    const struct ft_digest_event *y = *(const struct ft_digest_event *const *)b;

    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return x->since_ms > y->since_ms ? 1 : x->since_ms < y->since_ms ? -1 : 0;
}

static int rank_of(const struct ft_digest_event *event)
{
    const struct ft_value *record = ft_answer_root(event->record);

    return ft_value_is(record, "severity", "critical")  ? 0
           : ft_value_is(record, "severity", "warning") ? 1
                                                        : 2;
}

static int compare_events(const void *a, const void *b)
{
    const struct ft_digest_event *x = *(const struct ft_digest_event *const *)a;
    const struct ft_digest_event *y = *(const struct ft_digest_event *const *)b;
    const char *a_is = ft_value_str(ft_answer_root(x->record), "subject");
    const char *b_is = ft_value_str(ft_answer_root(y->record), "subject");
    int by = rank_of(x) - rank_of(y);

    if (by == 0 && x->since_ms != y->since_ms)
        by = x->since_ms > y->since_ms ? 1 : -1;
    return by ? by : strcmp(a_is ? a_is : "", b_is ? b_is : "");
}

static int show_collisions(const struct ft_screen *screen, const struct ft_digest_event **list,
                           size_t count)
{
    int rc = 0;

    fputc('\n', screen->out);
    ft_screen_text(screen, FT_BOLD, "Collisions");
    if (count == 0)
        fputs(": none\n", screen->out);
    else
        fprintf(screen->out, ": %zu%s\n", count,
                count > COLLISIONS_SHOWN ? ", those of the most elephants" : "");
    for (size_t i = 0; rc == 0 && i < count && i < COLLISIONS_SHOWN; i++)
        rc = ft_show_collision(screen, ft_answer_root(list[i]->record), VICTIMS_SHOWN);
    return rc;
}

static void add_event(struct ft_grid *grid, const struct ft_digest_event *event, struct ft_wall end)
{
    const struct ft_value *record = ft_answer_root(event->record);

    if (event->over)
        ft_rows_events_add_until(grid, record, event->over_ms, end);
    else
        ft_rows_events_add(grid, record, end);
}

static int show_events(const struct ft_screen *screen, const struct ft_digest_event **list,
                       size_t count)
{
    struct ft_grid *grid = ft_rows_events();
    int rc = 0;

    fputc('\n', screen->out);
    ft_screen_text(screen, FT_BOLD, "Other events");
    if (count == 0)
        fputs(": none\n", screen->out);
    else
        fprintf(screen->out, ": %zu%s\n", count, count > EVENTS_SHOWN ? ", the worst" : "");
    for (size_t i = 0; i < count && i < EVENTS_SHOWN; i++)
        add_event(grid, list[i], screen->now);
    if (count)
        rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

int ft_show_digest(const struct ft_screen *screen, const char *name, const struct ft_digest *d)
{
    const struct ft_digest_event *event, **list;
    struct ft_digest_facts facts;
    struct ft_screen at_end = *screen;
    size_t all = 0, collisions = 0, others;
    int rc;

    ft_digest_facts(d, &facts);
    while (ft_digest_event(d, all))
        all++;
    list = calloc(all + 1, sizeof(const struct ft_digest_event *));
    if (!list)
        return -ENOMEM;
    others = all;
    for (size_t i = 0; (event = ft_digest_event(d, i)); i++) {
        if (ft_value_is(ft_answer_root(event->record), "kind", "collision"))
            list[collisions++] = event;
        else
            list[--others] = event;
    }
    qsort(list, collisions, sizeof(*list), compare);
    qsort(list + others, all - others, sizeof(*list), compare_events);
    show_head(screen, name, &facts);
    /* Times of a capture from another day need no date in each line. */
    at_end.now = (struct ft_wall){.ms = (int64_t)facts.last_ms};
    rc = show_groups(&at_end, d, &facts);
    if (rc == 0)
        rc = show_collisions(&at_end, list, collisions);
    if (rc == 0)
        rc = show_events(&at_end, list + others, all - others);
    free(list);
    return rc;
}

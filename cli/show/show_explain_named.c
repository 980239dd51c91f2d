// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <inttypes.h>

#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/units.h"
#include "cli/show/show_lossy.h"

/* A table under its title; the grid is freed. */
static int put_table(const struct ft_screen *screen, const char *title, struct ft_grid *grid)
{
    int rc;

    if (*title)
        fprintf(screen->out, "\n%s\n", title);
    rc = ft_grid_print(grid, screen, *title ? 2 : 0);
    ft_grid_free(grid);
    return rc;
}

static int show_links(const struct ft_screen *screen, const char *title,
                      const struct ft_value *first, const struct ft_value *second)
{
    struct ft_grid *grid;

    if (ft_value_count(first) + ft_value_count(second) == 0)
        return 0;
    grid = ft_rows_links();
    for (size_t i = 0; i < ft_value_count(first); i++)
        ft_rows_links_add(grid, ft_value_at(first, i));
    for (size_t i = 0; i < ft_value_count(second); i++)
        ft_rows_links_add(grid, ft_value_at(second, i));
    return put_table(screen, title, grid);
}

static int show_group(const struct ft_screen *screen, const struct ft_value *records,
                      const struct ft_value *links)
{
    struct ft_grid *grid;
    int rc = 0;

    if (ft_value_count(records)) {
        grid = ft_rows_imbalance();
        for (size_t i = 0; i < ft_value_count(records); i++)
            ft_rows_imbalance_add(grid, ft_value_at(records, i));
        rc = put_table(screen, "", grid);
    }
    return rc ? rc : show_links(screen, "Links", links, NULL);
}

static int show_ranks(const struct ft_screen *screen, const struct ft_value *records)
{
    struct ft_grid *grid;

    if (ft_value_count(records) == 0) {
        fputs("no rank of it is known\n", screen->out);
        return 0;
    }
    grid = ft_rows_ranks();
    for (size_t i = 0; i < ft_value_count(records); i++)
        ft_rows_ranks_add(grid, ft_value_at(records, i), screen->now);
    return put_table(screen, "", grid);
}

/* "rank 0 on gpu01"; the host from the records of all ranks. */
static void put_rank(const struct ft_screen *screen, const struct ft_value *records,
                     const char *comm, uint64_t rank)
{
    const char *host = NULL;
    uint64_t number;

    for (size_t i = 0; !host && i < ft_value_count(records); i++) {
        const struct ft_value *r = ft_value_at(records, i);

        if (ft_value_is(r, "comm_id", comm) && ft_value_uint(r, "rank", &number) && number == rank)
            host = ft_value_str(r, "host");
    }
    fprintf(screen->out, "rank %" PRIu64, rank);
    if (host) {
        fputs(" on ", screen->out);
        ft_screen_text(screen, FT_PLAIN, host);
    }
}

/* The pair of a job that is slowest beside others, and the link under it. */
static int show_slowest(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    const struct ft_value *slow = ft_value_at(ft_value_get(root, "slowest"), 0);
    const char *comm = ft_value_str(slow, "comm_id");
    char slowest[FT_UNIT_BYTES], of_others[FT_UNIT_BYTES];
    double step, others;
    uint64_t rank, peer;

    if (!comm || !ft_value_uint(slow, "rank", &rank) || !ft_value_uint(slow, "slowest_peer", &peer))
        return 0;
    fputs("\nSlowest pair: ", screen->out);
    put_rank(screen, records, comm, rank);
    fputs(" to ", screen->out);
    put_rank(screen, records, comm, peer);
    if (ft_value_real(slow, "slowest_step_median_ns", &step) &&
        ft_value_real(slow, "others_step_median_ns", &others))
        fprintf(screen->out, ", %s a step, %s for others", ft_unit_duration(slowest, step),
                ft_unit_duration(of_others, others));
    fputc('\n', screen->out);
    return show_links(screen, "The link under it", ft_value_get(root, "slowest_links"), NULL);
}

static int show_events(const struct ft_screen *screen, const struct ft_value *events,
                       const char *on)
{
    struct ft_grid *grid;
    int rc;

    if (!events)
        return 0;
    if (ft_value_count(events) == 0) {
        fprintf(screen->out, "\nNo active events on the %s itself\n", on);
        return 0;
    }
    grid = ft_rows_events();
    for (size_t i = 0; i < ft_value_count(events); i++)
        ft_rows_events_add(grid, ft_value_at(events, i), screen->now);
    rc = put_table(screen, "Active events", grid);
    for (size_t i = 0; rc == 0 && i < ft_value_count(events); i++)
        rc = ft_show_lossy_flows(screen, ft_value_at(events, i));
    return rc;
}

static int show_paths(const struct ft_screen *screen, const struct ft_value *paths)
{
    struct ft_grid *grid;
    int rc;

    if (ft_value_count(paths) == 0) {
        fputs("\nNo flows\n", screen->out);
        return 0;
    }
    grid = ft_rows_paths();
    rc = ft_rows_paths_add_all(grid, paths);
    if (rc == 0)
        return put_table(screen, "Flows", grid);
    ft_grid_free(grid);
    return rc;
}

int ft_show_explain_named(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    const struct ft_value *links = ft_value_get(root, "links");
    const struct ft_value *reverse = ft_value_get(root, "reverse");
    int rc;

    ft_text_window(screen, root);
    fputc('\n', screen->out);
    /* Each kind of thing has lists of its own in the answer, fabrictrace-api(7). */
    if (links)
        rc = show_group(screen, records, links);
    else if (reverse)
        rc = show_links(screen, "", records, reverse);
    else
        rc = show_ranks(screen, records);
    if (rc == 0)
        rc = show_slowest(screen, root);
    if (rc == 0)
        rc = show_events(screen, ft_value_get(root, "events"), links ? "group" : "link");
    return rc ? rc : show_paths(screen, ft_value_get(root, "paths"));
}

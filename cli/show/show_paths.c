// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/units.h"

static const struct ft_column columns[] = {
    {.title = "TIME"}, /* of timed rows */
    {.title = "FLOW"},
    {.title = "ROLE", .give_up = 6},
    {.title = "STATE", .give_up = 1},
    {.title = "RATE", .right = true}, /* what they are sorted by */
    {.title = "FROM", .give_up = 3},
    {.title = "TO", .give_up = 4},
    {.title = "JOB", .give_up = 5},
    {.title = "PATH", .elastic = true},
};

static enum ft_colour state_colour(const char *state)
{
    if (!state || strcmp(state, "unresolved") == 0)
        return FT_RED;
    return strcmp(state, "resolved") == 0 ? FT_GREEN : FT_YELLOW;
}

static int shares_cell(struct ft_grid *grid, const struct ft_value *shares)
{
    char *text = NULL, percent[FT_UNIT_BYTES];
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return -ENOMEM;
    for (size_t i = 0; i < ft_value_count(shares); i++) {
        const struct ft_value *share = ft_value_at(shares, i);
        char *hops = ft_text_hops(ft_value_get(share, "hops"), true);
        double part = 0;

        ft_value_real(share, "share", &part);
        fprintf(out, "%s%s by %s", i ? "; " : "", ft_unit_percent(percent, part),
                hops ? hops : "?");
        free(hops);
    }
    if (fclose(out) != 0) {
        free(text);
        return -ENOMEM;
    }
    ft_grid_cell(grid, FT_PLAIN, "%s", text);
    free(text);
    return 0;
}

static int path_cell(struct ft_grid *grid, const struct ft_value *record)
{
    const struct ft_value *hops = ft_value_get(record, "hops");
    const struct ft_value *shares = ft_value_get(record, "shares");
    char clause[FT_REASON_TEXT_BYTES];
    const char *reason = ft_text_reason(clause, record);
    uint64_t candidates;
    char *text;

    if (ft_value_count(shares))
        return shares_cell(grid, shares);
    if (!ft_value_count(hops) && !ft_value_uint(record, "candidates", &candidates)) {
        ft_grid_cell(grid, FT_DIM, "%s", reason ? reason : "");
        return 0;
    }
    text = ft_text_hops(hops, ft_value_is(record, "state", "resolved"));
    if (!text)
        return -ENOMEM;
    if (!ft_value_is(record, "state", "resolved") &&
        ft_value_uint(record, "candidates", &candidates) && candidates == 1)
        ft_grid_cell(grid, FT_PLAIN, "%s%sone path is left%s%s", text, *text ? ", " : "",
                     reason ? ": " : "", reason ? reason : "");
    else if (!ft_value_is(record, "state", "resolved") &&
             ft_value_uint(record, "candidates", &candidates))
        ft_grid_cell(grid, FT_PLAIN, "%s%sone of %llu paths", text, *text ? ", " : "",
                     (unsigned long long)candidates);
    else
        ft_grid_cell(grid, FT_PLAIN, "%s", text);
    free(text);
    return 0;
}

static const struct ft_column figures[] = {
    {.title = "STATE"},
    {.title = "RATE", .right = true},
    {.title = "PATH", .elastic = true},
};

const struct ft_column *ft_rows_path_figures(size_t *count)
{
    *count = sizeof(figures) / sizeof(figures[0]);
    return figures;
}

static void state_and_rate_cells(struct ft_grid *grid, const struct ft_value *record)
{
    const char *state = ft_value_str(record, "state");
    char rate[FT_UNIT_BYTES];
    double bps;

    ft_grid_cell(grid, state_colour(state), "%s", state ? state : "");
    if (ft_value_real(record, "rate_bps", &bps))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_rate(rate, bps));
    else
        ft_grid_skip(grid);
}

int ft_rows_path_figure_cells(struct ft_grid *grid, const struct ft_value *record)
{
    state_and_rate_cells(grid, record);
    return path_cell(grid, record);
}

int ft_rows_paths_add(struct ft_grid *grid, const struct ft_value *record)
{
    const char *role = ft_value_str(record, "role"), *job = ft_value_str(record, "job");
    char flow[FT_TUPLE_TEXT_BYTES];
    char *src = ft_text_end(record, "src"), *dst = ft_text_end(record, "dst");
    int rc = src && dst ? 0 : -ENOMEM;

    if (rc == 0) {
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_text_flow(flow, ft_value_get(record, "flow")));
        ft_grid_cell(grid, FT_PLAIN, "%s", role ? role : "");
        state_and_rate_cells(grid, record);
        ft_grid_cell(grid, FT_PLAIN, "%s", src);
        ft_grid_cell(grid, FT_PLAIN, "%s", dst);
        ft_grid_cell(grid, FT_PLAIN, "%s", job ? job : "");
        rc = path_cell(grid, record);
        if (*flow)
            ft_grid_about(grid, "%s", flow);
    }
    free(src);
    free(dst);
    return rc;
}

/* A record with what it is sorted by. */
struct line {
    const struct ft_value *record;
    bool ack;
    double bps;
    size_t position;
};

/* What carries data first, the fastest first; else as the daemon sent it. */
static int by_weight(const void *left, const void *right)
{
    const struct line *a = left, *b = right;

    if (a->ack != b->ack)
        return a->ack ? 1 : -1;
    if (a->bps != b->bps)
        return a->bps < b->bps ? 1 : -1;
    return a->position < b->position ? -1 : 1;
}

struct ft_grid *ft_rows_paths(void)
{
    return ft_grid_new(columns + 1, sizeof(columns) / sizeof(columns[0]) - 1);
}

struct ft_grid *ft_rows_paths_timed(void)
{
    return ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
}

int ft_rows_paths_add_all(struct ft_grid *grid, const struct ft_value *records)
{
    size_t count = ft_value_count(records);
    struct line *lines = calloc(count ? count : 1, sizeof(*lines));
    int rc = 0;

    if (!lines)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        lines[i].record = ft_value_at(records, i);
        lines[i].ack = ft_value_is(lines[i].record, "role", "ack") ||
                       ft_value_is(lines[i].record, "role", "cnp");
        lines[i].position = i;
        ft_value_real(lines[i].record, "rate_bps", &lines[i].bps);
    }
    qsort(lines, count, sizeof(*lines), by_weight);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = ft_rows_paths_add(grid, lines[i].record);
    free(lines);
    return rc;
}

int ft_show_paths(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    const char *fabric = ft_value_str(root, "fabric");
    size_t shown = ft_value_count(records);
    uint64_t total = shown;
    struct ft_grid *grid = ft_rows_paths();
    int rc = ft_rows_paths_add_all(grid, records);

    ft_value_uint(root, "total", &total);
    if (rc == 0) {
        if (screen->window)
            ft_text_window(screen, root);
        else
            ft_screen_text(screen, FT_BOLD, fabric ? fabric : "fabric");
        fprintf(screen->out, ", %llu flow%s", (unsigned long long)total, total == 1 ? "" : "s");
        if (screen->window && total == 0)
            fputs(" (of windows that are over, elephants alone are kept)", screen->out);
        if (total > shown)
            fprintf(screen->out, ", %zu shown (--limit N shows more)", shown);
        fputc('\n', screen->out);
        rc = ft_grid_print(grid, screen, 0);
    }
    ft_grid_free(grid);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <stdio.h>
#include <string.h>

#include "cli/output/text.h"

/* Below it chance does not explain a link with few samples. */
#define ODD_P 0.001

static const struct ft_column columns[] = {
    {.title = "OF"},
    {.title = "FLOW", .elastic = true},
    {.title = "GROUP", .give_up = 2},
    {.title = "LINKS", .right = true},
    {.title = "EFFECTIVE", .right = true},
    {.title = "END TO END", .right = true, .give_up = 3},
    {.title = "FLOWS", .right = true, .give_up = 3},
    {.title = "SPRAYED", .right = true},
    {.title = "SAMPLES", .right = true, .give_up = 4},
    {.title = "EVEN P", .right = true},
    {.title = "LEAST", .elastic = true, .give_up = 1},
};

static void subject_cell(struct ft_grid *grid, const struct ft_value *record, const char *of)
{
    const struct ft_value *flow = ft_value_get(record, "flow");
    const char *src = ft_value_str(record, "src_host"), *dst = ft_value_str(record, "dst_host");
    const char *job = ft_value_str(record, "job");
    char text[FT_TUPLE_TEXT_BYTES];
    uint64_t number;

    /* Of several flows there is no 5-tuple. */
    if (flow && !ft_text_flow(text, flow)[0] && ft_value_uint(record, "dst_qp", &number))
        ft_grid_cell(grid, FT_PLAIN, "%s > %s, queue pair %llu", src ? src : "?", dst ? dst : "?",
                     (unsigned long long)number);
    else if (flow)
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_text_flow(text, flow));
    else if (of && strcmp(of, "job") == 0)
        ft_grid_cell(grid, FT_PLAIN, "%s", job ? job : "?");
    else
        ft_grid_cell(grid, FT_PLAIN, "%s > %s", src ? src : "?", dst ? dst : "?");
}

/* Seldom by chance: with its probability, and whether it carried anything. */
static void least_cell(struct ft_grid *grid, const struct ft_value *record)
{
    const char *least = ft_value_str(record, "least");
    size_t dead = ft_value_count(ft_value_get(record, "dead"));
    double p;

    if (!least || !ft_value_real(record, "least_p", &p) || p >= ODD_P)
        ft_grid_skip(grid);
    else if (dead > 1)
        ft_grid_cell(grid, FT_RED, "%zu carry nothing, %s one of them (p %.1g)", dead, least, p);
    else
        ft_grid_cell(grid, dead ? FT_RED : FT_YELLOW, "%s%s (p %.1g)", least,
                     dead ? " carries nothing" : "", p);
}

/* Over all tiers, with its interval. */
static void whole_cell(struct ft_grid *grid, const struct ft_value *record)
{
    double paths, lo, hi;

    if (ft_value_real(record, "end_to_end_paths", &paths) &&
        ft_value_real(record, "end_to_end_lo", &lo) && ft_value_real(record, "end_to_end_hi", &hi))
        ft_grid_cell(grid, FT_PLAIN, "%.1f (%.1f to %.1f)", paths, lo, hi);
    else
        ft_grid_skip(grid);
}

static void add_row(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now)
{
    const char *of = ft_value_str(record, "of");
    uint64_t seen = 0, possible = 0, flows = 0, sprayed = 0;
    const char *alternation = ft_value_str(record, "alternation");
    double real;

    (void)now;
    ft_value_uint(record, "seen", &seen);
    ft_value_uint(record, "possible", &possible);
    ft_value_uint(record, "flows", &flows);
    ft_value_uint(record, "sprayed_flows", &sprayed);
    ft_grid_cell(grid, FT_PLAIN, "%s", of ? of : "?");
    subject_cell(grid, record, of);
    ft_text_cell(grid, record, "group");
    ft_grid_cell(grid, FT_PLAIN, "%llu of %llu", (unsigned long long)seen,
                 (unsigned long long)possible);
    if (ft_value_real(record, "effective_paths", &real))
        ft_grid_cell(grid, FT_PLAIN, "%.1f", real);
    else
        ft_grid_skip(grid);
    whole_cell(grid, record);
    ft_text_number_cell(grid, record, "flows");
    if (alternation && strcmp(alternation, "moved") == 0)
        ft_grid_cell(grid, FT_PLAIN, "moved");
    else
        ft_grid_cell(grid, FT_PLAIN, "%s", sprayed == 0 ? "no" : sprayed < flows ? "some" : "yes");
    ft_text_number_cell(grid, record, "samples");
    if (ft_value_real(record, "even_p", &real))
        ft_grid_cell(grid, real < ODD_P ? FT_YELLOW : FT_PLAIN, "%.2g", real);
    else
        ft_grid_skip(grid);
    least_cell(grid, record);
}

int ft_show_spread(const struct ft_screen *screen, const struct ft_value *root)
{
    ft_text_window(screen, root);
    fputc('\n', screen->out);
    return ft_text_records(
        screen, root,
        screen->chosen ? "no flow that was asked for was seen to spread over equal-cost links"
                       : "no flow was seen to spread over equal-cost links",
        columns, sizeof(columns) / sizeof(columns[0]), add_row);
}

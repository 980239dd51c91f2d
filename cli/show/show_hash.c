// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/output/text.h"

/* Of more than a few flows, chance leaves no choice as uneven as this part of what it gives. */
#define POLARISED 0.7

static const struct ft_column columns[] = {
    {.title = "SWITCH", .elastic = true},
    {.title = "GROUP", .give_up = 2},
    {.title = "LINKS", .right = true},
    {.title = "MODEL"},
    {.title = "ACCURACY", .right = true},
    {.title = "OF", .right = true, .give_up = 1},
    {.title = "FLOWS", .right = true},
    {.title = "EVEN", .right = true, .give_up = 2},
    {.title = "BY CHANCE", .right = true, .give_up = 2},
    {.title = "HASHED", .give_up = 3},
    {.title = "NEVER CHOSEN", .elastic = true, .give_up = 4},
    {.title = "NOT PREDICTED", .elastic = true, .give_up = 3},
};

#define LIST_BYTES 256

/* A list of texts as "a, b"; its length. */
static size_t list_text(char text[LIST_BYTES], const struct ft_value *record, const char *name)
{
    const struct ft_value *list = ft_value_get(record, name);
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < ft_value_count(list) && len < LIST_BYTES; i++) {
        const char *item = ft_value_text(ft_value_at(list, i));

        len += (size_t)snprintf(text + len, LIST_BYTES - len, "%s%s", i ? ", " : "",
                                item ? item : "?");
    }
    return len;
}

/* Nothing where it is empty. */
static void list_cell(struct ft_grid *grid, const struct ft_value *record, const char *name,
                      enum ft_colour colour)
{
    char text[LIST_BYTES];

    if (list_text(text, record, name))
        ft_grid_cell(grid, colour, "%s", text);
    else
        ft_grid_skip(grid);
}

/* Links that are evenly chosen from each port of entry, and as many by chance. */
static void evenness_cells(struct ft_grid *grid, const struct ft_value *record)
{
    double effective, by_chance;

    if (ft_value_real(record, "effective_links", &effective) &&
        ft_value_real(record, "effective_by_chance", &by_chance)) {
        ft_grid_cell(grid, effective < POLARISED * by_chance ? FT_YELLOW : FT_PLAIN, "%.1f",
                     effective);
        ft_grid_cell(grid, FT_PLAIN, "%.1f", by_chance);
    } else {
        ft_grid_skip(grid);
        ft_grid_skip(grid);
    }
}

/* Why no flow is predicted, and how much more has to be seen at least before one is. */
static void why_cell(struct ft_grid *grid, const struct ft_value *record)
{
    static const struct {
        const char *reason, *text;
    } whys[] = {
        {"few_flows", "too few flows"},
        {"few_values", "too few values of"},
        {"few_predicted", "too few to check it by"},
        {"wrong", "wrong too often"},
        {"few_agree", "too few bear it out"},
        {"queue_pairs", "queue pairs may be hashed"},
        {"contradicted", "wrong recently"},
    };
    const char *reason = ft_value_str(record, "reason"), *text = reason;
    char missing[LIST_BYTES], more[64] = "";
    uint64_t least;

    if (!reason) {
        ft_grid_skip(grid);
        return;
    }
    for (size_t i = 0; i < sizeof(whys) / sizeof(whys[0]); i++)
        if (strcmp(whys[i].reason, reason) == 0)
            text = whys[i].text;
    if (ft_value_uint(record, "more_least", &least))
        snprintf(more, sizeof(more), ": at least %" PRIu64 " more", least);
    ft_grid_cell(grid, FT_PLAIN, "%s%s%s%s", text, list_text(missing, record, "few_of") ? " " : "",
                 missing, more);
}

static void add_row(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now)
{
    const char *model = ft_value_str(record, "model");
    double accuracy;

    (void)now;
    ft_text_cell(grid, record, "switch");
    ft_text_cell(grid, record, "group");
    ft_grid_cell(grid, FT_PLAIN, "%zu", ft_value_count(ft_value_get(record, "members")));
    ft_grid_cell(grid, FT_PLAIN, "%s", model ? model : "?");
    if (ft_value_real(record, "accuracy", &accuracy))
        ft_grid_cell(grid, FT_PLAIN, "%.1f%%", accuracy * 100);
    else
        ft_grid_skip(grid);
    ft_text_number_cell(grid, record, "predicted");
    ft_text_number_cell(grid, record, "observations");
    evenness_cells(grid, record);
    if (ft_value_true(record, "hashes_qp"))
        ft_grid_cell(grid, FT_YELLOW, "queue pair");
    else
        list_cell(grid, record, "inputs", FT_PLAIN);
    list_cell(grid, record, "never_chosen", FT_YELLOW);
    why_cell(grid, record);
}

int ft_show_hash(const struct ft_screen *screen, const struct ft_value *root)
{
    return ft_text_records(screen, root, "no flow was seen yet to choose among equal-cost links",
                           columns, sizeof(columns) / sizeof(columns[0]), add_row);
}

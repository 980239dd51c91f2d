// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/output/text.h"
#include "cli/output/units.h"

static const struct ft_column columns[] = {
    {.title = "SYNDROME"},
    {.title = "JOB", .elastic = true},
    {.title = "RANK", .right = true},
    {.title = "HOST", .give_up = 3},
    {.title = "PEER", .right = true},
    {.title = "OPERATION", .give_up = 4},
    {.title = "SLOWER", .right = true, .give_up = 1},
    {.title = "WAITING", .right = true, .give_up = 2},
    {.title = "SINCE", .give_up = 5},
};

static void add_row(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now)
{
    const char *syndrome = ft_value_str(record, "syndrome");
    char time[FT_UNIT_BYTES];
    double slowdown;
    uint64_t since;

    ft_grid_cell(grid, ft_value_is(record, "severity", "critical") ? FT_RED : FT_YELLOW, "%s",
                 syndrome ? syndrome : "?");
    ft_text_cell(grid, record, "job");
    ft_text_number_cell(grid, record, "rank");
    ft_text_cell(grid, record, "host");
    ft_text_number_cell(grid, record, "peer");
    ft_text_cell(grid, record, "operation");
    if (ft_value_real(record, "slowdown", &slowdown))
        ft_grid_cell(grid, FT_PLAIN, "%.2f", slowdown);
    else
        ft_grid_skip(grid);
    ft_text_number_cell(grid, record, "waiting");
    if (ft_value_uint(record, "since_ms", &since))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_time(time, since, now));
    else
        ft_grid_skip(grid);
}

static void show_texts(const struct ft_screen *screen, const struct ft_value *record,
                       const char *name, const char *sign, size_t from)
{
    const struct ft_value *list = ft_value_get(record, name);

    for (size_t i = from; i < ft_value_count(list); i++) {
        fprintf(screen->out, "\n  %s ", sign);
        ft_screen_text(screen, FT_PLAIN, ft_value_text(ft_value_at(list, i)));
    }
}

/* "leaf1 Ethernet51 > spine2": the links under its flow, suspects in a colour. */
static void show_links(const struct ft_screen *screen, const struct ft_value *record)
{
    const struct ft_value *links = ft_value_get(record, "links");

    for (size_t i = 0; i < ft_value_count(links); i++) {
        const struct ft_value *link = ft_value_at(links, i);
        bool down = ft_value_true(link, "down");
        enum ft_colour colour = down || ft_value_true(link, "suspect") ? FT_RED : FT_PLAIN;

        fputs(i ? ", " : "\n  by ", screen->out);
        ft_screen_text(screen, colour, ft_value_str(link, "switch"));
        fputc(' ', screen->out);
        ft_screen_text(screen, colour, ft_value_str(link, "port"));
        if (ft_value_str(link, "peer")) {
            fputs(" > ", screen->out);
            ft_screen_text(screen, colour, ft_value_str(link, "peer"));
        }
        if (down)
            fputs(ft_value_true(link, "shut") ? " (shut down)" : " (down)", screen->out);
    }
}

/* "rank 3 waits for rank 2 waits for rank 1" */
static void show_chain(const struct ft_screen *screen, const struct ft_value *record)
{
    const struct ft_value *chain = ft_value_get(record, "wait_chain");
    size_t count = ft_value_count(chain);

    for (size_t i = 0; count > 1 && i < count; i++) {
        char *rank = ft_value_dump(ft_value_at(chain, i));

        fputs(i ? " waits for rank " : "\n  rank ", screen->out);
        ft_screen_text(screen, FT_PLAIN, rank ? rank : "?");
        free(rank);
    }
}

/* How sure it is, and by which queue pair the transfer goes. */
static void show_rest(const struct ft_screen *screen, const struct ft_value *record)
{
    double confidence;
    uint64_t qp;

    if (ft_value_uint(record, "qp", &qp))
        fprintf(screen->out, "\n  queue pair 0x%llx", (unsigned long long)qp);
    if (ft_value_real(record, "confidence", &confidence))
        fprintf(screen->out, "\n  confidence %.0f %%", 100 * confidence);
}

/* The first text of the evidence is in the message. */
static void show_reasons(const struct ft_screen *screen, const struct ft_value *record)
{
    fputc('\n', screen->out);
    ft_screen_text(screen, FT_BOLD, ft_value_str(record, "message"));
    show_texts(screen, record, "evidence_for", "+", 1);
    show_texts(screen, record, "evidence_against", "-", 0);
    show_chain(screen, record);
    show_links(screen, record);
    show_rest(screen, record);
    if (ft_value_str(record, "advice")) {
        fputs("\n  > ", screen->out);
        ft_screen_text(screen, FT_PLAIN, ft_value_str(record, "advice"));
    }
    fputc('\n', screen->out);
}

int ft_show_diagnoses(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    int rc = ft_text_records(screen, root, "no job that reports its operations hangs or is slow",
                             columns, sizeof(columns) / sizeof(columns[0]), add_row);

    for (size_t i = 0; i < ft_value_count(records) && rc == 0; i++)
        show_reasons(screen, ft_value_at(records, i));
    return rc;
}

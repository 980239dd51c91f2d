// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <stdio.h>

#include "cli/output/text.h"
#include "cli/output/units.h"

static const struct ft_column columns[] = {
    {.title = "JOB", .elastic = true},
    {.title = "PERIOD", .right = true},
    {.title = "REGULARITY", .right = true, .give_up = 2},
    {.title = "EXCHANGE", .right = true},
    {.title = "LONGEST PAUSE", .right = true, .give_up = 1},
    {.title = "RESOLUTION", .right = true, .give_up = 3},
    {.title = "SAMPLES", .right = true, .give_up = 4},
};

/* Of what the flows sent in the window, where their packets have numbers. */
static const struct ft_column sent_columns[] = {
    {.title = "JOB", .elastic = true},      {.title = "MESSAGES/S", .right = true},
    {.title = "MEAN SIZE", .right = true},  {.title = "SENT AGAIN", .right = true},
    {.title = "NEGATIVE", .right = true},   {.title = "NOT READY", .right = true},
    {.title = "NO CREDITS", .right = true},
};

static void seconds_cell(struct ft_grid *grid, const struct ft_value *record, const char *name)
{
    uint64_t ms;

    if (ft_value_uint(record, name, &ms))
        ft_grid_cell(grid, FT_PLAIN, "%.1f s", (double)ms / 1000);
    else
        ft_grid_cell(grid, FT_PLAIN, "not known");
}

static void add_row(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now)
{
    double real;

    (void)now;
    ft_text_cell(grid, record, "job");
    seconds_cell(grid, record, "period_ms");
    if (ft_value_real(record, "regularity", &real))
        ft_grid_cell(grid, FT_PLAIN, "%.2f", real);
    else
        ft_grid_skip(grid);
    if (ft_value_real(record, "exchange", &real))
        ft_grid_cell(grid, FT_PLAIN, "%.0f %%", 100 * real);
    else
        ft_grid_cell(grid, FT_PLAIN, "not known");
    seconds_cell(grid, record, "longest_pause_ms");
    seconds_cell(grid, record, "resolution_ms");
    ft_text_number_cell(grid, record, "samples");
}

static void messages_cells(struct ft_grid *grid, const struct ft_value *record)
{
    uint64_t messages, bytes, begin, end;
    char size[FT_UNIT_BYTES];
    double each_second;

    if (!ft_value_uint(record, "messages", &messages) ||
        !ft_value_uint(record, "message_bytes", &bytes) ||
        !ft_value_uint(record, "window_start_ms", &begin) ||
        !ft_value_uint(record, "window_end_ms", &end) || end <= begin) {
        ft_grid_skip(grid);
        ft_grid_skip(grid);
        return;
    }
    each_second = (double)messages * 1000 / (double)(end - begin);
    ft_grid_cell(grid, FT_PLAIN, "%.*f", each_second < 10 ? 1 : 0, each_second);
    if (messages)
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_size(size, (double)bytes / (double)messages));
    else
        ft_grid_skip(grid);
}

static void add_sent_row(struct ft_grid *grid, const struct ft_value *record)
{
    uint64_t samples, back;
    char percent[FT_UNIT_BYTES];

    ft_text_cell(grid, record, "job");
    messages_cells(grid, record);
    if (ft_value_uint(record, "psn_back_samples", &back) &&
        ft_value_uint(record, "numbered_samples", &samples) && samples > 0)
        ft_grid_cell(grid, FT_PLAIN, "%s",
                     ft_unit_percent(percent, (double)back / (double)samples));
    else
        ft_grid_skip(grid);
    ft_text_number_cell(grid, record, "nak_samples");
    ft_text_number_cell(grid, record, "rnr_samples");
    ft_text_number_cell(grid, record, "no_credit_samples");
}

static bool has_sent(const struct ft_value *record)
{
    static const char *const names[] = {"messages", "numbered_samples", "nak_samples",
                                        "rnr_samples", "no_credit_samples"};
    uint64_t value;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (ft_value_uint(record, names[i], &value))
            return true;
    return false;
}

static int show_sent(const struct ft_screen *screen, const struct ft_value *records)
{
    struct ft_grid *grid = ft_grid_new(sent_columns, sizeof(sent_columns) / sizeof(*sent_columns));
    int rc = 0;

    for (size_t i = 0; i < ft_value_count(records); i++)
        if (has_sent(ft_value_at(records, i)))
            add_sent_row(grid, ft_value_at(records, i));
    if (!grid || ft_grid_rows(grid) > 0) {
        fputs("\nwhat their flows sent in the window\n", screen->out);
        rc = ft_grid_print(grid, screen, 0);
    }
    ft_grid_free(grid);
    return rc;
}

int ft_show_rhythm(const struct ft_screen *screen, const struct ft_value *root)
{
    int rc;

    ft_text_window(screen, root);
    fputc('\n', screen->out);
    rc = ft_text_records(screen, root,
                         screen->chosen ? "no flow of this job was sampled"
                                        : "no flow of a job was sampled",
                         columns, sizeof(columns) / sizeof(columns[0]), add_row);
    return rc ? rc : show_sent(screen, ft_value_get(root, "records"));
}

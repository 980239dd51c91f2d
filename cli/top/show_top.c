// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/top/show_top.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/output/rows.h"
#include "cli/output/text.h"

#define ROWS_DEFAULT 10
#define ROWS_LEAST   1
/* The heading, and of each part an empty line and the titles. */
#define LINES_FIXED 7

struct ranked {
    const struct ft_value *record;
    double key; /* the largest first */
    size_t at;  /* then in the order of the answer */
};

static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? 1 : -1;
    return x->at > y->at ? 1 : -1;
}

/* Each says how much a record matters; false: not at all. */
static bool event_key(const struct ft_value *record, double *key)
{
    *key = ft_value_is(record, "severity", "critical")  ? 2
           : ft_value_is(record, "severity", "warning") ? 1
                                                        : 0;
    return true;
}

static bool group_key(const struct ft_value *record, double *key)
{
    double p;

    if (!ft_value_is(record, "scope", "group") || !ft_value_real(record, "p_value", &p))
        return false;
    *key = -p;
    return true;
}

/* A link of known speed by its use, and one of unknown speed below all of those by its bytes. */
static bool link_key(const struct ft_value *record, double *key)
{
    double bytes;

    if (ft_value_real(record, "utilization", key))
        return true;
    if (!ft_value_real(record, "bytes", &bytes))
        return false;
    *key = -1 / (1 + bytes);
    return true;
}

/* New array of the records that matter, the most first; *count of them. NULL without memory. */
static struct ranked *rank(const struct ft_value *records,
                           bool (*key)(const struct ft_value *, double *), size_t *count)
{
    size_t all = ft_value_count(records);
    struct ranked *list = calloc(all + 1, sizeof(*list));

    *count = 0;
    for (size_t i = 0; list && i < all; i++) {
        struct ranked *r = &list[*count];

        r->record = ft_value_at(records, i);
        r->at = i;
        *count += key(r->record, &r->key);
    }
    if (list)
        qsort(list, *count, sizeof(*list), compare);
    return list;
}

static void add_event(struct ft_grid *grid, const struct ft_value *record,
                      const struct ft_screen *screen)
{
    ft_rows_events_add(grid, record, screen->now);
}

static void add_group(struct ft_grid *grid, const struct ft_value *record,
                      const struct ft_screen *screen)
{
    (void)screen;
    ft_rows_imbalance_add(grid, record);
}

static void add_link(struct ft_grid *grid, const struct ft_value *record,
                     const struct ft_screen *screen)
{
    (void)screen;
    ft_rows_links_add(grid, record);
}

struct part {
    const struct ft_value *records;
    bool (*key)(const struct ft_value *record, double *key);
    struct ft_grid *(*grid)(void);
    void (*add)(struct ft_grid *grid, const struct ft_value *record,
                const struct ft_screen *screen);
};

/* Takes what it shows from *room. */
static int show_part(const struct ft_screen *screen, const struct part *part, size_t rows,
                     size_t *room)
{
    size_t count;
    struct ranked *list = rank(part->records, part->key, &count);
    struct ft_grid *grid = part->grid();
    int rc = list && grid ? 0 : -ENOMEM;

    if (count > rows)
        count = rows;
    for (size_t i = 0; rc == 0 && i < count; i++)
        part->add(grid, list[i].record, screen);
    if (rc == 0 && count) {
        fputc('\n', screen->out);
        rc = ft_grid_print(grid, screen, 0);
        *room -= count < *room ? count : *room;
    }
    ft_grid_free(grid);
    free(list);
    return rc;
}

int ft_show_top(const struct ft_screen *screen, const struct ft_top *top, size_t lines)
{
    const struct part parts[] = {
        {ft_value_get(top->events, "records"), event_key, ft_rows_events, add_event},
        {ft_value_get(top->imbalance, "records"), group_key, ft_rows_imbalance, add_group},
        {ft_value_get(top->links, "records"), link_key, ft_rows_links, add_link},
    };
    const size_t count = sizeof(parts) / sizeof(parts[0]);
    size_t events = ft_value_count(parts[0].records);
    size_t room = !lines ? ROWS_DEFAULT * count : lines > LINES_FIXED ? lines - LINES_FIXED : 0;
    int rc = 0;

    ft_text_window(screen, top->imbalance);
    ft_rows_uplinks(screen, parts[1].records);
    if (events)
        fprintf(screen->out, ", %zu active event%s\n", events, events == 1 ? "" : "s");
    else
        fputs(", no active events\n", screen->out);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        size_t rows = lines ? room / (count - i) : ROWS_DEFAULT;

        rc = show_part(screen, &parts[i], rows < ROWS_LEAST ? ROWS_LEAST : rows, &room);
    }
    return rc;
}

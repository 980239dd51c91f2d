// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_OUTPUT_GRID_H
#define FT_CLI_OUTPUT_GRID_H
/*
 * Text for a terminal: the screen written to, and tables with aligned columns.
 *
 * What comes from records is untrusted: control characters never reach the terminal. A table that
 * is wider than the screen first gives up columns, the one with the highest `give_up` first, then
 * cuts its elastic column, so that no line wraps, or continues it on further lines. A column
 * without any text is left out.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lib/base/clock.h"

struct ft_since;
struct ft_value;

enum ft_colour {
    FT_PLAIN,
    FT_BOLD,
    FT_DIM,
    FT_RED,
    FT_YELLOW,
    FT_GREEN,
};

/* What a person asks of tables with titles; all zero: nothing. */
struct ft_layout {
    /* Titles, or words of one that no other has, in any case. */
    const char *sort;    /* of a column, a '-' before it reverses the order; NULL */
    const char *columns; /* separated by commas; NULL: all */
    size_t limit;        /* rows at most, of those in their order; 0: all */
};

/* For whoever has to know what a table shows: each title of the head, and before each row what it
 * is about, as `fabrictrace explain` takes it; NULL: nothing. */
struct ft_grid_watch {
    void (*title)(void *arg, const char *title);
    void (*row)(void *arg, const char *about);
    void *arg;
};

struct ft_screen {
    FILE *out;
    FILE *err;       /* a column of the layout that a table does not have is named here; NULL */
    unsigned width;  /* columns; 0: as wide as it takes */
    unsigned height; /* lines; 0: as many as it takes */
    bool colour;
    struct ft_wall now; /* decides which times need a date */
    struct ft_layout layout;
    bool chosen; /* a part was asked for: that it is empty does not say that nothing is there */
    const struct ft_value *window;     /* that the figures are of, where it is over; NULL */
    const struct ft_since *since;      /* of events, the time they are of; NULL: now */
    const struct ft_grid_watch *watch; /* NULL: nobody */
    bool *left_out;                    /* set where a table is without some columns; NULL */
};

/* Standard output: width and colour only on a terminal, no colour with NO_COLOR or TERM=dumb. */
void ft_screen_init(struct ft_screen *screen, FILE *out);

/* A text with its control characters shown as '?', in a colour. NULL prints nothing. */
void ft_screen_text(const struct ft_screen *screen, enum ft_colour colour, const char *text);

struct ft_column {
    const char *title; /* in capitals; NULL for all columns: no header line */
    bool right;        /* aligned to the right: numbers */
    bool elastic;      /* may be cut; at most one */
    bool wraps;        /* of an elastic one, the last: it continues below instead */
    unsigned give_up;  /* 0: never */
    bool number;       /* numbers aligned to the left, as of very different size */
};

struct ft_grid;

/* columns stays the caller's and must outlive the grid. NULL without memory. */
struct ft_grid *ft_grid_new(const struct ft_column *columns, size_t count);
void ft_grid_free(struct ft_grid *grid);

/* The next cell, row by row. Takes a NULL grid; a cell that finds no memory makes the grid fail. */
void ft_grid_cell(struct ft_grid *grid, enum ft_colour colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An empty cell: what is not known. */
void ft_grid_skip(struct ft_grid *grid);

/* What the row of the last cell is about: "leaf1/Ethernet51", say. */
void ft_grid_about(struct ft_grid *grid, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

size_t ft_grid_rows(const struct ft_grid *grid);

/* Each line begins with indent blanks. Rows come in the order of the screen's layout: numbers
 * the largest first, with their units; texts from A to Z. -ENOMEM when a cell was lost or grid is
 * NULL, -EINVAL where the layout names a column that is none. */
int ft_grid_print(const struct ft_grid *grid, const struct ft_screen *screen, unsigned indent);

#endif

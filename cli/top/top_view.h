// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_TOP_TOP_VIEW_H
#define FT_CLI_TOP_TOP_VIEW_H
/*
 * What fabrictrace top shows: the overview, a list, or all of one thing, as the lines that the
 * other commands print, with the line that is marked. No terminal and no daemon: answers in, lines
 * out. Owner: the caller. Thread: one.
 */
#include <stdio.h>

#include "cli/args/args.h"
#include "cli/top/top_fetch.h"

/* The first are those of the keys 1 to 7. */
enum ft_top_kind {
    FT_TOP_OVERVIEW,
    FT_TOP_EVENTS,
    FT_TOP_GROUPS,
    FT_TOP_LINKS,
    FT_TOP_FLOWS,
    FT_TOP_RANKS,
    FT_TOP_NOT_SEEN,
    FT_TOP_EXPLAIN, /* one thing */
    FT_TOP_KINDS
};

struct ft_top_view;

/* about: of FT_TOP_EXPLAIN what it explains, else NULL. NULL without memory. */
struct ft_top_view *ft_top_view_new(enum ft_top_kind kind, const char *about);
void ft_top_view_free(struct ft_top_view *view);

/* "links", or what is explained. */
const char *ft_top_view_name(const struct ft_top_view *view);

/* Sets the arguments that a request needs, whose texts are the view's, and names its commands;
 * returns how many. */
size_t ft_top_view_asks(const struct ft_top_view *view, struct ft_args *args,
                        enum ft_command commands[FT_TOP_ANSWERS]);

/* Takes the answers over. */
void ft_top_view_take(struct ft_top_view *view, struct ft_top_result *result);
bool ft_top_view_has_answer(const struct ft_top_view *view);

/* Makes its lines anew for a terminal of this size; the mark stays on what it was on. 0, -ENOMEM.
 */
int ft_top_view_lay_out(struct ft_top_view *view, unsigned width, unsigned height, bool colour);

/* Its lines; the first that shows; the marked one, SIZE_MAX: none. */
size_t ft_top_view_lines(const struct ft_top_view *view);
const char *ft_top_view_line(const struct ft_top_view *view, size_t line, size_t *len);
size_t ft_top_view_first(const struct ft_top_view *view);
size_t ft_top_view_marked(const struct ft_top_view *view);

/* What the marked line is about; NULL: nothing that can be opened. */
const char *ft_top_view_about(const struct ft_top_view *view);

/* Moves the mark by rows, or where there are none what shows by lines; height: lines that show. */
void ft_top_view_move(struct ft_top_view *view, long rows, unsigned height);

/* Sorts by the next column, the one after it (1) or before it (-1); or reverses the order. Only a
 * list is sorted. To be laid out again. */
void ft_top_view_sort(struct ft_top_view *view, int by);
void ft_top_view_reverse(struct ft_top_view *view);

/* "-RATE" where it is sorted by rate, in reverse; NULL: it is not. */
const char *ft_top_view_order(const struct ft_top_view *view);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_TOP_TOP_SCREEN_H
#define FT_CLI_TOP_TOP_SCREEN_H
/*
 * The terminal of fabrictrace top, by curses: lines with the colours of cli/output/grid.h, and
 * keys. There is one. Thread: the first.
 */
#include <stdbool.h>
#include <stddef.h>

/* A key is 0 when none was pressed, a character, or one of these. */
enum ft_key {
    FT_KEY_UP = 256,
    FT_KEY_DOWN,
    FT_KEY_PAGE_UP,
    FT_KEY_PAGE_DOWN,
    FT_KEY_HOME,
    FT_KEY_END,
    FT_KEY_ENTER,
    FT_KEY_BACK,
    FT_KEY_OTHER,
};

/* Takes the terminal. -ENOTTY where its kind (TERM) is not known. */
int ft_top_screen_begin(void);

/* Gives it back as it was. */
void ft_top_screen_end(void);

/* Asks for its size anew, after SIGWINCH. */
void ft_top_screen_resized(void);
void ft_top_screen_size(unsigned *width, unsigned *height);

/* The next key, without waiting. */
int ft_top_screen_key(void);

/* Line y: text of len bytes, in which a grid's colours take no room, cut at the terminal's width.
 * marked: the line that the next key is about. */
void ft_top_screen_line(unsigned y, const char *text, size_t len, bool marked);

/* What was drawn since shows. */
void ft_top_screen_show(void);

#endif

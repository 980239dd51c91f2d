// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/top/top_screen.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#define ESCAPE_MS 25 /* what comes that soon after an escape is of the same key */
#define ESCAPE    27
#define DELETE    127

enum pair {
    RED = 1,
    YELLOW,
    GREEN,
};

static SCREEN *screen;

static void set_colours(void)
{
    const char *no_color = getenv("NO_COLOR");

    if ((no_color && *no_color) || !has_colors())
        return;
    start_color();
    use_default_colors();
    init_pair(RED, COLOR_RED, -1);
    init_pair(YELLOW, COLOR_YELLOW, -1);
    init_pair(GREEN, COLOR_GREEN, -1);
}

/* To be stopped would leave the terminal in this state. */
static void set_keys(void)
{
    struct termios keys;

    cbreak();
    noecho();
    nonl();
    if (tcgetattr(STDIN_FILENO, &keys) == 0) {
        keys.c_cc[VSUSP] = _POSIX_VDISABLE;
        tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(ESCAPE_MS);
}

int ft_top_screen_begin(void)
{
    int error;

    /* Names come in UTF-8, whatever the terminal says of itself. */
    setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
    /* newterm() would lose what it has of a terminal that is not known. */
    if (setupterm(NULL, STDOUT_FILENO, &error) != OK)
        return -ENOTTY;
    del_curterm(cur_term);
    screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return -ENOTTY;
    set_colours();
    set_keys();
    curs_set(0);
    return 0;
}

void ft_top_screen_end(void)
{
    endwin();
    delscreen(screen);
    screen = NULL;
}

void ft_top_screen_resized(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
        resizeterm(size.ws_row, size.ws_col);
    clearok(stdscr, TRUE);
}

void ft_top_screen_size(unsigned *width, unsigned *height)
{
    *width = (unsigned)getmaxx(stdscr);
    *height = (unsigned)getmaxy(stdscr);
}

int ft_top_screen_key(void)
{
    int key = getch();

    switch (key) {
    case ERR:
        return 0;
    case KEY_UP:
        return FT_KEY_UP;
    case KEY_DOWN:
        return FT_KEY_DOWN;
    case KEY_PPAGE:
        return FT_KEY_PAGE_UP;
    case KEY_NPAGE:
        return FT_KEY_PAGE_DOWN;
    case KEY_HOME:
        return FT_KEY_HOME;
    case KEY_END:
        return FT_KEY_END;
    case KEY_ENTER:
    case KEY_RIGHT:
    case '\r':
    case '\n':
        return FT_KEY_ENTER;
    case KEY_BACKSPACE:
    case KEY_LEFT:
    case '\b':
    case DELETE:
    case ESCAPE:
        return FT_KEY_BACK;
    default:
        return key > 0 && key < FT_KEY_UP ? key : FT_KEY_OTHER;
    }
}

/* The attributes of a colour of cli/output/grid.c, and how many bytes say it; 0: it is none. */
static size_t colour_of(const char *text, size_t len, attr_t *attributes)
{
    static const struct {
        const char *code;
        attr_t attributes;
        short pair;
    } codes[] = {
        {"\033[0m", A_NORMAL, 0},    {"\033[1m", A_BOLD, 0},         {"\033[2m", A_DIM, 0},
        {"\033[1;31m", A_BOLD, RED}, {"\033[33m", A_NORMAL, YELLOW}, {"\033[32m", A_NORMAL, GREEN},
    };

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        size_t n = strlen(codes[i].code);

        if (n > len || memcmp(text, codes[i].code, n) != 0)
            continue;
        *attributes = codes[i].attributes | (attr_t)COLOR_PAIR(codes[i].pair);
        return n;
    }
    return 0;
}

void ft_top_screen_line(unsigned y, const char *text, size_t len, bool marked)
{
    const attr_t mark = marked ? A_REVERSE : A_NORMAL;
    attr_t attributes = A_NORMAL;

    move((int)y, 0);
    attrset((int)mark);
    clrtoeol();
    while (len) {
        const char *escape = memchr(text, ESCAPE, len);
        size_t n = escape ? (size_t)(escape - text) : len;

        /* A line that is full is followed by the next one; what is left of this one is not drawn.
         */
        if (n && getcury(stdscr) == (int)y)
            addnstr(text, (int)n);
        text += n;
        len -= n;
        if (!len)
            break;
        n = colour_of(text, len, &attributes);
        attrset((int)(attributes | mark));
        text += n ? n : 1;
        len -= n ? n : 1;
    }
    attrset(A_NORMAL);
}

void ft_top_screen_show(void)
{
    refresh();
}

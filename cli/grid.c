// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/grid.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/safe.h"

#define GAP       2
#define CUT       "..."
#define CUT_LEAST 8 /* an elastic column is not cut below this */

struct cell {
    char *text;
    enum ft_colour colour;
};

struct ft_grid {
    const struct ft_column *columns;
    size_t column_count;
    struct cell *cells;
    size_t count;
    size_t size;
    bool failed;
};

void ft_screen_init(struct ft_screen *screen, FILE *out)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    bool terminal = isatty(fileno(out));
    struct winsize size;

    screen->out = out;
    screen->now = ft_wall_now();
    screen->colour =
        terminal && !(no_color && *no_color) && term && *term && strcmp(term, "dumb") != 0;
    screen->width = screen->height = 0;
    if (terminal && ioctl(fileno(out), TIOCGWINSZ, &size) == 0) {
        screen->width = size.ws_col;
        screen->height = size.ws_row;
    }
}

static void colour_on(const struct ft_screen *screen, enum ft_colour colour)
{
    static const char *const codes[] = {
        [FT_PLAIN] = "",         [FT_BOLD] = "\033[1m",    [FT_DIM] = "\033[2m",
        [FT_RED] = "\033[1;31m", [FT_YELLOW] = "\033[33m", [FT_GREEN] = "\033[32m",
    };

    if (screen->colour)
        fputs(codes[colour], screen->out);
}

static void colour_off(const struct ft_screen *screen, enum ft_colour colour)
{
    if (screen->colour && colour != FT_PLAIN)
        fputs("\033[0m", screen->out);
}

static size_t width_of(const char *text)
{
    size_t width = 0;
    bool shown;

    for (; *text; width++)
        text += ft_safe_character(text, &shown);
    return width;
}

/* At most width characters. */
static void put(FILE *out, const char *text, size_t width)
{
    bool shown;

    for (; *text && width; width--) {
        size_t n = ft_safe_character(text, &shown);

        if (shown)
            fwrite(text, 1, n, out);
        else
            fputc('?', out);
        text += n;
    }
}

void ft_screen_text(const struct ft_screen *screen, enum ft_colour colour, const char *text)
{
    if (!text)
        return;
    colour_on(screen, colour);
    put(screen->out, text, SIZE_MAX);
    colour_off(screen, colour);
}

struct ft_grid *ft_grid_new(const struct ft_column *columns, size_t count)
{
    struct ft_grid *grid = calloc(1, sizeof(*grid));

    if (grid) {
        grid->columns = columns;
        grid->column_count = count;
    }
    return grid;
}

void ft_grid_free(struct ft_grid *grid)
{
    if (!grid)
        return;
    for (size_t i = 0; i < grid->count; i++)
        free(grid->cells[i].text);
    free(grid->cells);
    free(grid);
}

static bool room(struct ft_grid *grid)
{
    size_t size = grid->size ? 2 * grid->size : 64;
    struct cell *more;

    if (grid->count < grid->size)
        return true;
    more = reallocarray(grid->cells, size, sizeof(*more));
    if (!more)
        return false;
    grid->cells = more;
    grid->size = size;
    return true;
}

void ft_grid_cell(struct ft_grid *grid, enum ft_colour colour, const char *format, ...)
{
    va_list args;
    char *text;

    if (!grid || grid->failed)
        return;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (!text || !room(grid)) {
        free(text);
        grid->failed = true;
        return;
    }
    grid->cells[grid->count].text = text;
    grid->cells[grid->count++].colour = colour;
}

void ft_grid_skip(struct ft_grid *grid)
{
    ft_grid_cell(grid, FT_PLAIN, "%s", "");
}

size_t ft_grid_rows(const struct ft_grid *grid)
{
    return grid ? grid->count / grid->column_count : 0;
}

static const struct cell *cell_at(const struct ft_grid *grid, size_t row, size_t column)
{
    return &grid->cells[row * grid->column_count + column];
}

/* Width of a column's widest text, 0 for a column to leave out. */
static size_t column_width(const struct ft_grid *grid, size_t column)
{
    size_t widest = 0,
           title = grid->columns[column].title ? width_of(grid->columns[column].title) : 0;

    for (size_t row = 0; row < ft_grid_rows(grid); row++) {
        size_t width = width_of(cell_at(grid, row, column)->text);

        if (width > widest)
            widest = width;
    }
    return widest && title > widest ? title : widest;
}

static size_t total_width(const size_t *width, size_t count, unsigned indent)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++)
        total += width[i] ? width[i] + (total ? GAP : 0) : 0;
    return total + indent;
}

static void fit(const struct ft_grid *grid, size_t *width, unsigned screen, unsigned indent)
{
    size_t total = total_width(width, grid->column_count, indent), over;

    while (screen && total > screen) {
        size_t worst = grid->column_count;

        for (size_t i = 0; i < grid->column_count; i++)
            if (width[i] && grid->columns[i].give_up &&
                (worst == grid->column_count ||
                 grid->columns[i].give_up > grid->columns[worst].give_up))
                worst = i;
        if (worst == grid->column_count)
            break;
        width[worst] = 0;
        total = total_width(width, grid->column_count, indent);
    }
    over = screen && total > screen ? total - screen : 0;
    for (size_t i = 0; over && i < grid->column_count; i++)
        if (width[i] && grid->columns[i].elastic)
            width[i] = width[i] > over + CUT_LEAST ? width[i] - over : CUT_LEAST;
}

static void print_cell(const struct ft_screen *screen, const struct ft_column *column,
                       const char *text, enum ft_colour colour, size_t width, bool last)
{
    size_t own = width_of(text), pad = own < width ? width - own : 0;

    if (column->right)
        fprintf(screen->out, "%*s", (int)pad, "");
    colour_on(screen, colour);
    if (own > width) {
        put(screen->out, text, width - strlen(CUT));
        fputs(CUT, screen->out);
    } else {
        put(screen->out, text, width);
    }
    colour_off(screen, colour);
    if (!column->right && !last)
        fprintf(screen->out, "%*s", (int)pad, "");
}

/* row SIZE_MAX is the header. */
static void print_row(const struct ft_grid *grid, const struct ft_screen *screen,
                      const size_t *width, unsigned indent, size_t row)
{
    size_t last = 0;
    bool first = true;

    for (size_t i = 0; i < grid->column_count; i++)
        if (width[i] && (row == SIZE_MAX || *cell_at(grid, row, i)->text))
            last = i;
    fprintf(screen->out, "%*s", (int)indent, "");
    for (size_t i = 0; i <= last; i++) {
        if (!width[i])
            continue;
        if (!first)
            fprintf(screen->out, "%*s", GAP, "");
        first = false;
        if (row == SIZE_MAX)
            print_cell(screen, &grid->columns[i], grid->columns[i].title, FT_BOLD, width[i],
                       i == last);
        else
            print_cell(screen, &grid->columns[i], cell_at(grid, row, i)->text,
                       cell_at(grid, row, i)->colour, width[i], i == last);
    }
    fputc('\n', screen->out);
}

int ft_grid_print(const struct ft_grid *grid, const struct ft_screen *screen, unsigned indent)
{
    size_t *width;

    if (!grid || grid->failed)
        return -ENOMEM;
    width = calloc(grid->column_count, sizeof(*width));
    if (!width)
        return -ENOMEM;
    for (size_t i = 0; i < grid->column_count; i++)
        width[i] = column_width(grid, i);
    fit(grid, width, screen->width, indent);
    if (grid->columns[0].title && ft_grid_rows(grid))
        print_row(grid, screen, width, indent, SIZE_MAX);
    for (size_t row = 0; row < ft_grid_rows(grid); row++)
        print_row(grid, screen, width, indent, row);
    free(width);
    return 0;
}

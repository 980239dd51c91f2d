// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/output/grid.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/output/safe.h"

#define GAP       2
#define CUT       "..."
#define CUT_LEAST 8 /* an elastic column is not cut below this */

struct cell {
    char *text;
    char *about; /* the row, of any of its cells; NULL */
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
    screen->err = NULL;
    screen->layout = (struct ft_layout){NULL, NULL, 0};
    screen->window = NULL;
    screen->since = NULL;
    screen->watch = NULL;
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
    for (size_t i = 0; i < grid->count; i++) {
        free(grid->cells[i].text);
        free(grid->cells[i].about);
    }
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
    grid->cells[grid->count].about = NULL;
    grid->cells[grid->count++].colour = colour;
}

void ft_grid_skip(struct ft_grid *grid)
{
    ft_grid_cell(grid, FT_PLAIN, "%s", "");
}

void ft_grid_about(struct ft_grid *grid, const char *format, ...)
{
    va_list args;
    char *text;

    if (!grid || grid->failed || !grid->count)
        return;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (!text) {
        grid->failed = true;
        return;
    }
    free(grid->cells[grid->count - 1].about);
    grid->cells[grid->count - 1].about = text;
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

/* keep: a column that is not given up, SIZE_MAX: none. Whether columns are left out. */
static bool fit(const struct ft_grid *grid, size_t *width, unsigned screen, unsigned indent,
                size_t keep)
{
    size_t total = total_width(width, grid->column_count, indent), over;
    bool given_up = false;

    while (screen && total > screen) {
        size_t worst = grid->column_count;

        for (size_t i = 0; i < grid->column_count; i++)
            if (width[i] && grid->columns[i].give_up && i != keep &&
                (worst == grid->column_count ||
                 grid->columns[i].give_up > grid->columns[worst].give_up))
                worst = i;
        if (worst == grid->column_count)
            break;
        width[worst] = 0;
        given_up = true;
        total = total_width(width, grid->column_count, indent);
    }
    over = screen && total > screen ? total - screen : 0;
    for (size_t i = 0; over && i < grid->column_count; i++)
        if (width[i] > CUT_LEAST && grid->columns[i].elastic)
            width[i] = width[i] > over + CUT_LEAST ? width[i] - over : CUT_LEAST;
    return given_up;
}

/* A number with the prefix of its unit: "24.1 Gb/s", "1.5 ms"; "<1e-6" is just below. */
static double number_of(const char *text)
{
    static const char prefixes[] = "kMGTPE";
    double scale = 1, value;
    const char *prefix;
    char *end;

    value = strtod(*text == '<' ? text + 1 : text, &end);
    if (end == text || (*text == '<' && end == text + 1))
        return -HUGE_VAL;
    while (*end == ' ')
        end++;
    if (strcmp(end, "us") == 0 || strcmp(end, "ms") == 0)
        return value * (*end == 'u' ? 1e-6 : 1e-3);
    prefix = *end ? strchr(prefixes, *end == 'K' ? 'k' : *end) : NULL;
    for (ptrdiff_t i = 0; prefix && i <= prefix - prefixes; i++)
        scale *= 1000;
    return value * scale;
}

struct order {
    const struct ft_grid *grid;
    size_t column;
    bool reversed;
};

struct row {
    size_t number;
    const struct order *order;
};

static int compare(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    const struct order *o = a->order;
    const char *x = cell_at(o->grid, a->number, o->column)->text;
    const char *y = cell_at(o->grid, b->number, o->column)->text;
    double m = number_of(x), n = number_of(y);
    int by;

    if (o->grid->columns[o->column].right || o->grid->columns[o->column].number)
        by = m < n ? 1 : m > n ? -1 : 0;
    else
        by = strcmp(x, y);
    if (by == 0)
        return a->number < b->number ? -1 : 1;
    return o->reversed ? -by : by;
}

/* Whatever its case. */
static bool has_title(const struct ft_column *column, const char *title, size_t len)
{
    return strlen(column->title) == len && strncasecmp(column->title, title, len) == 0;
}

static bool has_word(const struct ft_column *column, const char *word, size_t len)
{
    for (const char *at = column->title; *at;) {
        size_t n = strcspn(at, " ");

        if (n == len && strncasecmp(at, word, n) == 0)
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

/* By its title, or by a word that no other title has: "used" is "PORT USED". */
static size_t find_column(const struct ft_grid *grid, const char *title, size_t len)
{
    size_t i = 0, found = grid->column_count, count = 0;

    while (i < grid->column_count && !has_title(&grid->columns[i], title, len))
        i++;
    if (i < grid->column_count)
        return i;
    for (i = 0; i < grid->column_count; i++) {
        if (has_word(&grid->columns[i], title, len)) {
            found = i;
            count++;
        }
    }
    return count == 1 ? found : grid->column_count;
}

/* Whether a title is one of a grid's columns; len of its bytes count. */
static bool has_column(const struct ft_grid *grid, const char *title, size_t len)
{
    return grid->columns[0].title && find_column(grid, title, len) < grid->column_count;
}

/* Rows in the order of the layout. NULL without memory. */
static struct row *order_rows(struct order *order, const char *sort)
{
    size_t count = ft_grid_rows(order->grid);
    struct row *rows = calloc(count ? count : 1, sizeof(*rows));

    for (size_t i = 0; rows && i < count; i++)
        rows[i] = (struct row){i, order};
    if (!rows || !sort || !order->grid->columns[0].title)
        return rows;
    order->reversed = *sort == '-';
    sort += order->reversed;
    order->column = find_column(order->grid, sort, strlen(sort));
    qsort(rows, count, sizeof(*rows), compare);
    return rows;
}

/* Two columns may have one title. */
static bool is_chosen(const struct ft_grid *grid, size_t column, const char *chosen)
{
    while (*chosen) {
        size_t n = strcspn(chosen, ",");

        if (has_title(&grid->columns[column], chosen, n) || find_column(grid, chosen, n) == column)
            return true;
        chosen += n + (chosen[n] == ',');
    }
    return false;
}

/* "there is no column 'x': LINK, TO". */
static void complain(const struct ft_grid *grid, FILE *err, const char *name, size_t len)
{
    if (!err)
        return;
    fprintf(err, "fabrictrace: there is no column '%.*s':", (int)len, name);
    for (size_t i = 0; i < grid->column_count; i++)
        fprintf(err, "%s %s", i ? "," : "", grid->columns[i].title);
    fputs(" are\n", err);
}

/* Whether a table has the columns that the layout names; one without titles has no say. */
static bool knows(const struct ft_grid *grid, const struct ft_layout *layout, FILE *err)
{
    const char *chosen = layout->columns ? layout->columns : "";
    const char *sort = layout->sort ? layout->sort + (*layout->sort == '-') : NULL;

    if (!grid->columns[0].title)
        return true;
    if (sort && !has_column(grid, sort, strlen(sort))) {
        complain(grid, err, sort, strlen(sort));
        return false;
    }
    while (*chosen) {
        size_t n = strcspn(chosen, ",");

        if (!has_column(grid, chosen, n)) {
            complain(grid, err, chosen, n);
            return false;
        }
        chosen += n + (chosen[n] == ',');
    }
    return true;
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

/* How many bytes of a text fit into a line so wide, which ends between words where it can; *rest:
 * what is for the next one. */
static size_t line_of(const char *text, size_t width, const char **rest)
{
    const char *end = text, *blank = NULL;
    bool shown;

    for (; *end && width; width--) {
        if (*end == ' ')
            blank = end;
        end += ft_safe_character(end, &shown);
    }
    if (*end && *end != ' ' && blank)
        end = blank;
    *rest = end + strspn(end, " ");
    return (size_t)(end - text);
}

/* A text that is too wide, on as many lines as it takes; the blanks before it are before each. */
static void print_lines(const struct ft_screen *screen, const struct cell *cell, size_t width,
                        size_t indent)
{
    size_t lead = strspn(cell->text, " ");
    const char *text = cell->text + lead, *rest;

    width = width > lead + CUT_LEAST ? width - lead : CUT_LEAST;
    for (bool first = true; *text; text = rest, first = false) {
        size_t n = line_of(text, width, &rest);

        if (!first)
            fprintf(screen->out, "\n%*s", (int)indent, "");
        fprintf(screen->out, "%*s", (int)lead, "");
        colour_on(screen, cell->colour);
        put(screen->out, text, width_of(text) - width_of(text + n));
        colour_off(screen, cell->colour);
    }
}

/* row SIZE_MAX is the header. */
static void print_row(const struct ft_grid *grid, const struct ft_screen *screen,
                      const size_t *width, unsigned indent, size_t row)
{
    size_t last = 0, before = indent;
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
        else if (grid->columns[i].wraps && width_of(cell_at(grid, row, i)->text) > width[i])
            print_lines(screen, cell_at(grid, row, i), width[i], before);
        else
            print_cell(screen, &grid->columns[i], cell_at(grid, row, i)->text,
                       cell_at(grid, row, i)->colour, width[i], i == last);
        before += width[i] + GAP;
    }
    fputc('\n', screen->out);
}

/* The titles that show, or the row that comes. */
static void report_row(const struct ft_grid *grid, const struct ft_grid_watch *watch,
                       const size_t *width, size_t row)
{
    const char *about = NULL;

    if (!watch)
        return;
    for (size_t i = 0; i < grid->column_count; i++) {
        if (row == SIZE_MAX && width[i])
            watch->title(watch->arg, grid->columns[i].title);
        else if (row != SIZE_MAX && !about)
            about = cell_at(grid, row, i)->about;
    }
    if (row != SIZE_MAX)
        watch->row(watch->arg, about);
}

int ft_grid_print(const struct ft_grid *grid, const struct ft_screen *screen, unsigned indent)
{
    const struct ft_layout *layout = &screen->layout;
    size_t count = ft_grid_rows(grid);
    struct order order = {.grid = grid, .column = SIZE_MAX};
    struct row *rows;
    size_t *width;

    if (!grid || grid->failed)
        return -ENOMEM;
    if (!knows(grid, layout, screen->err))
        return -EINVAL;
    rows = order_rows(&order, layout->sort);
    width = calloc(grid->column_count, sizeof(*width));
    if (!width || !rows) {
        free(rows);
        free(width);
        return -ENOMEM;
    }
    for (size_t i = 0; i < grid->column_count; i++)
        if (!layout->columns || !grid->columns[0].title || is_chosen(grid, i, layout->columns))
            width[i] = column_width(grid, i);
    if (fit(grid, width, screen->width, indent, order.column) && screen->left_out)
        *screen->left_out = true;
    if (grid->columns[0].title && ft_grid_rows(grid)) {
        report_row(grid, screen->watch, width, SIZE_MAX);
        print_row(grid, screen, width, indent, SIZE_MAX);
    }
    if (layout->limit && layout->limit < count)
        count = layout->limit;
    for (size_t row = 0; row < count; row++) {
        report_row(grid, screen->watch, width, rows[row].number);
        print_row(grid, screen, width, indent, rows[row].number);
    }
    free(rows);
    free(width);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/top/top_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/show/show.h"
#include "cli/top/show_top.h"
#include "lib/base/grow.h"

#define TITLES_MAX  24
#define TITLE_BYTES 32

struct row {
    long offset; /* in the text */
    size_t line;
    char *about; /* NULL: nothing */
};

struct ft_top_view {
    enum ft_top_kind kind;
    char *about;
    struct ft_answer *answers[FT_TOP_ANSWERS];
    char *text;
    size_t bytes;
    size_t *lines; /* where each begins */
    size_t line_count, line_size;
    struct row *rows;
    size_t row_count, row_size;
    size_t first, marked; /* a line; a row */
    char *marked_about;   /* what the mark stays on, when rows come anew */
    char titles[TITLES_MAX][TITLE_BYTES];
    size_t title_count;
    char order[TITLE_BYTES + 1]; /* as of --sort; "": none */
    FILE *out;                   /* of the text, while it is made */
    bool failed;
};

static const struct {
    const char *name;
    enum ft_command commands[FT_TOP_ANSWERS]; /* FT_COMMAND_NONE: no more */
    int (*show)(const struct ft_screen *screen, const struct ft_value *root);
} kinds[FT_TOP_KINDS] = {
    [FT_TOP_OVERVIEW] = {"overview",
                         {FT_COMMAND_IMBALANCE, FT_COMMAND_LINKS, FT_COMMAND_EVENTS},
                         NULL},
    [FT_TOP_EVENTS] = {"events", {FT_COMMAND_EVENTS}, ft_show_events},
    [FT_TOP_GROUPS] = {"groups", {FT_COMMAND_IMBALANCE}, ft_show_imbalance},
    [FT_TOP_LINKS] = {"links", {FT_COMMAND_LINKS}, ft_show_links},
    [FT_TOP_FLOWS] = {"flows", {FT_COMMAND_PATHS}, ft_show_paths},
    [FT_TOP_RANKS] = {"ranks", {FT_COMMAND_RANKS}, ft_show_ranks},
    [FT_TOP_NOT_SEEN] = {"not seen", {FT_COMMAND_DOCTOR}, ft_show_doctor},
    [FT_TOP_EXPLAIN] = {NULL, {FT_COMMAND_EXPLAIN}, ft_show_explain},
};

struct ft_top_view *ft_top_view_new(enum ft_top_kind kind, const char *about)
{
    struct ft_top_view *v = calloc(1, sizeof(*v));

    if (!v)
        return NULL;
    v->kind = kind;
    v->about = about ? strdup(about) : NULL;
    if (!about || v->about)
        return v;
    free(v);
    return NULL;
}

static void forget_lines(struct ft_top_view *v)
{
    for (size_t i = 0; i < v->row_count; i++)
        free(v->rows[i].about);
    free(v->text);
    v->text = NULL;
    v->line_count = v->row_count = v->title_count = v->bytes = 0;
}

static void forget_answers(struct ft_top_view *v)
{
    for (size_t i = 0; i < FT_TOP_ANSWERS; i++) {
        ft_answer_free(v->answers[i]);
        v->answers[i] = NULL;
    }
}

void ft_top_view_free(struct ft_top_view *v)
{
    if (!v)
        return;
    forget_lines(v);
    forget_answers(v);
    free(v->lines);
    free(v->rows);
    free(v->marked_about);
    free(v->about);
    free(v);
}

const char *ft_top_view_name(const struct ft_top_view *v)
{
    return v->about ? v->about : kinds[v->kind].name;
}

size_t ft_top_view_asks(const struct ft_top_view *v, struct ft_args *args,
                        enum ft_command commands[FT_TOP_ANSWERS])
{
    size_t count = 0;

    while (count < FT_TOP_ANSWERS && kinds[v->kind].commands[count] != FT_COMMAND_NONE) {
        commands[count] = kinds[v->kind].commands[count];
        count++;
    }
    if (v->kind == FT_TOP_EXPLAIN) {
        args->has_flow = ft_tuple_parse(v->about, &args->flow) == 0;
        args->name = args->has_flow ? NULL : v->about;
        args->port = NULL;
    }
    return count;
}

void ft_top_view_take(struct ft_top_view *v, struct ft_top_result *result)
{
    forget_answers(v);
    memcpy(v->answers, result->answers, sizeof(v->answers));
    memset(result->answers, 0, sizeof(result->answers));
}

bool ft_top_view_has_answer(const struct ft_top_view *v)
{
    return v->answers[0] != NULL;
}

static void on_title(void *arg, const char *title)
{
    struct ft_top_view *v = arg;

    if (v->title_count < TITLES_MAX)
        snprintf(v->titles[v->title_count++], TITLE_BYTES, "%s", title);
}

static void on_row(void *arg, const char *about)
{
    struct ft_top_view *v = arg;
    struct row *row = ft_grow(v->rows, v->row_count, &v->row_size, sizeof(*row));

    if (!row) {
        v->failed = true;
        return;
    }
    v->rows = row;
    row += v->row_count;
    *row = (struct row){.offset = ftell(v->out), .about = about ? strdup(about) : NULL};
    v->failed |= about && !row->about;
    v->row_count++;
}

static int show_overview(const struct ft_top_view *v, const struct ft_screen *screen,
                         unsigned height)
{
    const struct ft_top top = {
        .imbalance = ft_answer_root(v->answers[0]),
        .links = ft_answer_root(v->answers[1]),
        .events = ft_answer_root(v->answers[2]),
    };

    return ft_show_top(screen, &top, height);
}

static int show(const struct ft_top_view *v, const struct ft_screen *screen, unsigned height)
{
    return v->kind == FT_TOP_OVERVIEW ? show_overview(v, screen, height)
                                      : kinds[v->kind].show(screen, ft_answer_root(v->answers[0]));
}

/* Where lines begin, and on which of them the rows are. */
static int find_lines(struct ft_top_view *v)
{
    size_t row = 0;

    for (size_t at = 0; at < v->bytes;) {
        const char *end = memchr(v->text + at, '\n', v->bytes - at);
        size_t *lines = ft_grow(v->lines, v->line_count, &v->line_size, sizeof(*lines));

        if (!lines)
            return -ENOMEM;
        v->lines = lines;
        while (row < v->row_count && (size_t)v->rows[row].offset <= at)
            v->rows[row++].line = v->line_count;
        v->lines[v->line_count++] = at;
        at = end ? (size_t)(end - v->text) + 1 : v->bytes;
    }
    return 0;
}

/* To the row that is about the same, else to that of the same number. */
static void find_mark(struct ft_top_view *v)
{
    for (size_t i = 0; v->marked_about && i < v->row_count; i++)
        if (v->rows[i].about && strcmp(v->rows[i].about, v->marked_about) == 0) {
            v->marked = i;
            return;
        }
    if (v->marked >= v->row_count)
        v->marked = v->row_count ? v->row_count - 1 : 0;
}

static void remember_mark(struct ft_top_view *v)
{
    const char *about = ft_top_view_about(v);

    free(v->marked_about);
    v->marked_about = about ? strdup(about) : NULL;
}

/* The mark is among the lines that show. */
static void keep_in_sight(struct ft_top_view *v, unsigned height)
{
    size_t marked = ft_top_view_marked(v);

    if (marked != SIZE_MAX && marked < v->first)
        v->first = marked;
    if (marked != SIZE_MAX && marked >= v->first + height)
        v->first = marked - height + 1;
    /* What stands above the first row is its head. */
    if (v->row_count && v->marked == 0 && marked < height)
        v->first = 0;
    if (v->first + height > v->line_count)
        v->first = v->line_count > height ? v->line_count - height : 0;
}

int ft_top_view_lay_out(struct ft_top_view *v, unsigned width, unsigned height, bool colour)
{
    const struct ft_grid_watch watch = {on_title, on_row, v};
    struct ft_screen screen = {.width = width, .colour = colour, .now = ft_wall_now()};
    int rc;

    forget_lines(v);
    v->failed = false;
    if (!ft_top_view_has_answer(v))
        return 0;
    v->out = open_memstream(&v->text, &v->bytes);
    if (!v->out)
        return -ENOMEM;
    screen.out = v->out;
    screen.watch = &watch;
    screen.layout.sort = *v->order ? v->order : NULL;
    rc = show(v, &screen, height);
    if (fclose(v->out) != 0 || v->failed)
        rc = -ENOMEM;
    if (rc == 0)
        rc = find_lines(v);
    if (rc)
        return rc;
    find_mark(v);
    remember_mark(v);
    keep_in_sight(v, height);
    return 0;
}

size_t ft_top_view_lines(const struct ft_top_view *v)
{
    return v->line_count;
}

const char *ft_top_view_line(const struct ft_top_view *v, size_t line, size_t *len)
{
    const char *text = v->text + v->lines[line];
    const char *end = memchr(text, '\n', v->bytes - v->lines[line]);

    *len = end ? (size_t)(end - text) : v->bytes - v->lines[line];
    return text;
}

size_t ft_top_view_first(const struct ft_top_view *v)
{
    return v->first;
}

size_t ft_top_view_marked(const struct ft_top_view *v)
{
    return v->row_count ? v->rows[v->marked].line : SIZE_MAX;
}

const char *ft_top_view_about(const struct ft_top_view *v)
{
    return v->row_count ? v->rows[v->marked].about : NULL;
}

static size_t moved(size_t at, long by, size_t count)
{
    if (!count)
        return 0;
    if (by < 0)
        return (size_t)-by > at ? 0 : at - (size_t)-by;
    return (size_t)by >= count - at ? count - 1 : at + (size_t)by;
}

void ft_top_view_move(struct ft_top_view *v, long rows, unsigned height)
{
    if (v->row_count) {
        v->marked = moved(v->marked, rows, v->row_count);
        remember_mark(v);
    } else {
        v->first = moved(v->first, rows, v->line_count);
    }
    keep_in_sight(v, height);
}

static bool is_list(const struct ft_top_view *v)
{
    return v->kind != FT_TOP_OVERVIEW && v->kind != FT_TOP_EXPLAIN && v->kind != FT_TOP_NOT_SEEN;
}

void ft_top_view_sort(struct ft_top_view *v, int by)
{
    const char *now = *v->order == '-' ? v->order + 1 : v->order;
    size_t at = 0, count = v->title_count + 1; /* the last: as it comes */

    if (!is_list(v) || !v->title_count)
        return;
    while (at < v->title_count && strcmp(v->titles[at], now) != 0)
        at++;
    at = (at + (by > 0 ? 1 : count - 1)) % count;
    snprintf(v->order, sizeof(v->order), "%s", at < v->title_count ? v->titles[at] : "");
}

void ft_top_view_reverse(struct ft_top_view *v)
{
    if (*v->order == '-')
        memmove(v->order, v->order + 1, strlen(v->order));
    else if (*v->order) {
        memmove(v->order + 1, v->order, strlen(v->order) + 1);
        *v->order = '-';
    }
}

const char *ft_top_view_order(const struct ft_top_view *v)
{
    return *v->order ? v->order : NULL;
}

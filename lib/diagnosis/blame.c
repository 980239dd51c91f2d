// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/blame.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bound.h"
#include "lib/base/task.h"
#include "lib/diagnosis/polish.h"
#include "lib/diagnosis/stats.h"

#define DEVIATIONS   4
#define MOST_OF_LINK 0.75
#define RIVAL_SHARE  0.5  /* of a link's pairs that are slow, and it may be it as well */
#define SLOW_SHARE   0.4  /* more of all pairs, and no single one is to blame */
#define MOST_LINES   0.75 /* more of all: what is usual has changed */
#define ACQUITTING   0.1  /* of an end's pairs: more that are not slow, and it is not to blame */
#define FEW          3    /* of which neither a share nor a deviation says anything */

/* That a pair crosses a link. */
struct crossing {
    uint32_t link, cell;
    bool partly;
};

struct court {
    const struct ft_blame_cell *cells;
    size_t count;
    struct ft_polish_cell *polished;
    struct ft_polish polish;
    double *excess; /* over what is usual, less what a blamed row or column adds */
    bool *slow;     /* from the first on, blamed or not */
    bool *explained;
    double *room;
    struct crossing *crossings; /* by link */
    size_t crossing_count;
    double bar, shift;
    struct ft_task *task;
    struct ft_blames *out;
};

static int by_link(const void *a, const void *b)
{
    const struct crossing *x = a, *y = b;

    if (x->link != y->link)
        return x->link < y->link ? -1 : 1;
    return x->cell < y->cell ? -1 : x->cell > y->cell;
}

static struct ft_blame *add(struct court *c)
{
    struct ft_blame *items = realloc(c->out->items, (c->out->count + 1) * sizeof(*c->out->items));

    if (!items)
        return NULL;
    c->out->items = items;
    items[c->out->count] = (struct ft_blame){.link = FT_BLAME_NONE};
    return &items[c->out->count++];
}

static bool accused(const struct court *c, size_t i)
{
    return c->slow[i] && !c->explained[i];
}

/* The blame of several pairs; n of their excesses are in the room. */
static int blame_many(struct court *c, enum ft_side side, uint32_t worst, size_t n, size_t all)
{
    struct ft_blame *b = add(c);

    if (!b)
        return -ENOMEM;
    b->side = side;
    b->from = c->cells[worst].from;
    b->to = c->cells[worst].to;
    b->cell = worst;
    b->slow = (uint32_t)n;
    b->all = (uint32_t)all;
    b->ratio = exp(ft_median(c->room, n));
    return 0;
}

/* The pairs over a link that are accused, those that count for or against it, and all: crossings
 * from first on. ends: whether the accused are of several senders and several receivers. */
static size_t over_link(const struct court *c, size_t first, size_t *counted, size_t *all,
                        bool *ends)
{
    const struct ft_blame_cell *one = NULL;
    bool from = false, to = false;
    size_t slow = 0, i;

    *counted = 0;
    for (i = first; i < c->crossing_count && c->crossings[i].link == c->crossings[first].link;
         i++) {
        const struct ft_blame_cell *cell = &c->cells[c->crossings[i].cell];

        *counted += !c->crossings[i].partly || c->slow[c->crossings[i].cell];
        if (!accused(c, c->crossings[i].cell))
            continue;
        slow++;
        if (!one)
            one = cell;
        from |= cell->from != one->from;
        to |= cell->to != one->to;
    }
    ft_task_spend(c->task, 1 + (i - first) / 8);
    *all = i - first;
    *ends = from && to;
    return slow;
}

static bool is_acquitted(const struct court *c, uint32_t link)
{
    const struct crossing key = {.link = link};
    size_t i = ft_lower_bound(&key, c->crossings, c->crossing_count, sizeof(key), by_link);

    for (; i < c->crossing_count && c->crossings[i].link == link; i++)
        if (!c->slow[c->crossings[i].cell] && !c->cells[c->crossings[i].cell].before &&
            !c->crossings[i].partly)
            return true;
    return false;
}

static int describe_link(struct court *c, size_t first, size_t counted, size_t all, uint32_t links)
{
    uint32_t worst = FT_BLAME_NONE;
    struct ft_blame *b;
    size_t n = 0;
    int rc;

    for (size_t i = first; i < first + all; i++) {
        uint32_t cell = c->crossings[i].cell;

        if (!accused(c, cell))
            continue;
        c->explained[cell] = true;
        c->room[n++] = c->excess[cell];
        if (worst == FT_BLAME_NONE || c->excess[worst] < c->excess[cell])
            worst = cell;
    }
    rc = blame_many(c, FT_SIDE_PAIR, worst, n, counted);
    if (rc)
        return rc;
    b = &c->out->items[c->out->count - 1];
    b->links_open = links;
    b->sender_clean = b->receiver_clean = true;
    b->link = links == 1 ? c->crossings[first].link : FT_BLAME_NONE;
    for (uint32_t k = 0; k < c->cells[worst].link_count && k < 32; k++)
        if (links > 1 ? !is_acquitted(c, c->cells[worst].links[k])
                      : c->cells[worst].links[k] == b->link)
            b->open |= 1U << k;
    return 0;
}

/* The other links that may be it where pairs cross the best one without delay: those that more slow
 * pairs cross, and those for which as many pairs speak, less those that speak against it. */
static uint32_t count_rivals(const struct court *c, size_t best_first, size_t best,
                             size_t best_counted)
{
    size_t counted, all;
    uint32_t rivals = 0;
    bool ends;

    for (size_t i = 0; i < c->crossing_count; i += all) {
        size_t slow = over_link(c, i, &counted, &all, &ends);

        if (i == best_first || (double)slow < RIVAL_SHARE * (double)counted)
            continue;
        rivals += slow > best || 2 * slow + best_counted >= 2 * best + counted;
    }
    return rivals;
}

/* Links that slow pairs of several senders and receivers have in common, the most pairs first. */
static int describe_links(struct court *c)
{
    for (;;) {
        size_t best = 0, best_first = 0, best_counted = 0, best_all = 0, counted, all;
        uint32_t links = 0;
        int rc;

        for (size_t i = 0; i < c->crossing_count; i += all) {
            bool ends;
            size_t slow = over_link(c, i, &counted, &all, &ends);

            if (!ends || slow < best || (double)slow < MOST_OF_LINK * (double)counted)
                continue;
            /* Links that the same number of slow pairs cross cannot be distinguished. */
            links = slow == best ? links + 1 : 1;
            if (slow == best && counted >= best_counted)
                continue;
            best = slow;
            best_first = i;
            best_counted = counted;
            best_all = all;
        }
        if (best < 2)
            return 0;
        if (best < best_counted)
            links = 1 + count_rivals(c, best_first, best, best_counted);
        rc = describe_link(c, best_first, best_counted, best_all, links);
        if (rc)
            return rc;
    }
}

/* By pairs that are not slow, or slow for a link under many. Measured noise may leave one of many
 * pairs below the bar. */
static int acquit_ends(struct court *c, uint32_t ends)
{
    uint32_t *all = calloc(2 * (size_t)ends + 1, sizeof(*all));
    uint32_t *clean = calloc(2 * (size_t)ends + 1, sizeof(*clean));

    c->out->acquitted = calloc(2 * (size_t)ends + 1, sizeof(*c->out->acquitted));
    for (size_t i = 0; all && clean && i < c->count; i++) {
        all[2 * (size_t)c->cells[i].from]++;
        all[2 * (size_t)c->cells[i].to + 1]++;
        clean[2 * (size_t)c->cells[i].from] += !accused(c, i);
        clean[2 * (size_t)c->cells[i].to + 1] += !accused(c, i);
    }
    for (size_t i = 0; all && clean && c->out->acquitted && i < 2 * (size_t)ends; i++)
        c->out->acquitted[i] = clean[i] > ACQUITTING * all[i];
    free(all);
    free(clean);
    return all && clean && c->out->acquitted ? 0 : -ENOMEM;
}

static bool crosses(const struct ft_blame_cell *cell, uint32_t link)
{
    for (uint32_t k = 0; k < cell->link_count; k++)
        if (cell->links[k] == link)
            return true;
    return false;
}

/* Whether all accused pairs of an end of this one, several, cross a link that nobody acquits. A
 * port to the receiver is part of it. */
static bool share_link(const struct court *c, bool sender, size_t i)
{
    const struct ft_blame_cell *cell = &c->cells[i];

    for (uint32_t k = 0; k < cell->link_count; k++) {
        size_t others = 0, over = 0;

        if (!sender && k < 32 && cell->last >> k & 1)
            continue;
        ft_task_spend(c->task, 1 + c->count / 64);
        for (size_t j = 0; j < c->count; j++) {
            const struct ft_blame_cell *other = &c->cells[j];

            if (j == i || !accused(c, j) ||
                (sender ? other->from != cell->from : other->to != cell->to))
                continue;
            others++;
            over += crosses(other, cell->links[k]);
        }
        if (others && over == others && !is_acquitted(c, cell->links[k]))
            return true;
    }
    return false;
}

/* A row or column that stands out; what it adds is taken off its pairs. Where a link may be it as
 * well, its pairs are judged one by one. */
static int describe_line(struct court *c, bool row, uint32_t line, double adds)
{
    uint32_t worst = FT_BLAME_NONE;
    size_t n = 0, all = 0;

    ft_task_spend(c->task, 1 + c->count / 32);
    for (size_t i = 0; i < c->count; i++)
        if ((row ? c->cells[i].from : c->cells[i].to) == line && accused(c, i) &&
            share_link(c, row, i))
            return 0;

    for (size_t i = 0; i < c->count; i++) {
        if ((row ? c->cells[i].from : c->cells[i].to) != line)
            continue;
        all++;
        if (!accused(c, i))
            continue;
        c->room[n++] = adds;
        if (worst == FT_BLAME_NONE || c->excess[worst] < c->excess[i])
            worst = (uint32_t)i;
        c->excess[i] -= adds;
        c->explained[i] = c->excess[i] <= c->bar;
    }
    return n < 2 ? 0 : blame_many(c, row ? FT_SIDE_SENDER : FT_SIDE_RECEIVER, worst, n, all);
}

/* Whether so many rows stand out that none of them does. */
static bool is_common(const struct court *c)
{
    const struct ft_polish *p = &c->polish;
    size_t rows = 0, all = 0;

    for (uint32_t i = 0; i < p->row_count; i++) {
        all += p->row_cells[i] > 1;
        rows += p->row_cells[i] > 1 && p->rows[i] + c->shift > c->bar;
    }
    return (double)rows > MOST_LINES * (double)all;
}

static int describe_lines(struct court *c)
{
    const struct ft_polish *p = &c->polish;
    int rc = 0;

    if (is_common(c))
        return 0;

    for (uint32_t i = 0; i < p->row_count && rc == 0; i++)
        if (p->row_cells[i] > 1 && p->rows[i] + c->shift > c->bar &&
            !c->out->acquitted[2 * (size_t)i])
            rc = describe_line(c, true, i, p->rows[i] + c->shift);
    for (uint32_t i = 0; i < p->column_count && rc == 0; i++)
        if (p->column_cells[i] > 1 && p->columns[i] > c->bar &&
            !c->out->acquitted[2 * (size_t)i + 1])
            rc = describe_line(c, false, i, p->columns[i]);
    return rc;
}

/* Whether a pair beside this one, with the same sender (or receiver), is not slow. */
static bool is_clean(const struct court *c, bool sender, size_t i)
{
    ft_task_spend(c->task, 1 + c->count / 64);
    for (size_t k = 0; k < c->count; k++)
        if (!c->slow[k] &&
            (sender ? c->cells[k].from == c->cells[i].from : c->cells[k].to == c->cells[i].to))
            return true;
    return false;
}

static int describe_cell(struct court *c, size_t i)
{
    const struct ft_blame_cell *cell = &c->cells[i];
    struct ft_blame *b = add(c);

    if (!b)
        return -ENOMEM;
    *b = (struct ft_blame){.side = FT_SIDE_ANY,
                           .from = cell->from,
                           .to = cell->to,
                           .link = FT_BLAME_NONE,
                           .cell = (uint32_t)i,
                           .slow = 1,
                           .all = 1,
                           .sender_clean = is_clean(c, true, i),
                           .receiver_clean = is_clean(c, false, i),
                           .sender_or_link = share_link(c, true, i),
                           .receiver_or_link = share_link(c, false, i),
                           .ratio = exp(c->excess[i])};
    for (uint32_t k = 0; k < cell->link_count; k++) {
        if (is_acquitted(c, cell->links[k]))
            continue;
        b->links_open++;
        b->open |= k < 32 ? 1U << k : 0;
        b->link = cell->links[k];
    }
    if (b->links_open != 1)
        b->link = FT_BLAME_NONE;
    if (b->sender_clean && b->receiver_clean)
        b->side = FT_SIDE_PAIR;
    else if (cell->link_count && b->links_open == 0 && b->sender_clean)
        b->side = FT_SIDE_RECEIVER;
    else if (cell->link_count && b->links_open == 0 && b->receiver_clean)
        b->side = FT_SIDE_SENDER;
    return 0;
}

static int describe_cells(struct court *c)
{
    size_t left = 0;
    int rc = 0;

    for (size_t i = 0; i < c->count; i++)
        left += accused(c, i);
    if (left >= FEW && (double)left > SLOW_SHARE * (double)c->count)
        return 0;
    for (size_t i = 0; i < c->count && rc == 0; i++)
        if (accused(c, i))
            rc = describe_cell(c, i);
    return rc;
}

static int by_ratio(const void *a, const void *b)
{
    const struct ft_blame *x = a, *y = b;

    if (x->ratio != y->ratio)
        return x->ratio > y->ratio ? -1 : 1;
    return x->cell < y->cell ? -1 : x->cell > y->cell;
}

static int judge(struct court *c, uint32_t ends, double least, double usual)
{
    size_t slow = 0;
    int rc;

    for (size_t i = 0; i < c->count; i++) {
        c->polished[i] = (struct ft_polish_cell){
            .value = c->cells[i].value, .row = c->cells[i].from, .column = c->cells[i].to};
        for (uint32_t k = 0; k < c->cells[i].link_count; k++)
            c->crossings[c->crossing_count++] = (struct crossing){
                c->cells[i].links[k], (uint32_t)i, k < 32 && c->cells[i].partly >> k & 1};
    }
    ft_task_sort(c->task, c->crossings, c->crossing_count, sizeof(*c->crossings), by_link);
    rc = ft_polish_init(&c->polish, c->polished, c->count, ends, ends, c->task);
    if (rc)
        return rc;
    for (size_t i = 0; i < c->count; i++)
        c->room[i] = fabs(c->polished[i].residual);
    c->bar = least;
    ft_task_spend(c->task, 1 + c->count / 4);
    if (c->count > FEW)
        c->bar = fmax(least, DEVIATIONS * ft_median(c->room, c->count));
    c->out->bar = c->bar;
    if (!isnan(usual) && c->polish.centre - usual > c->bar)
        c->shift = c->polish.centre - usual;
    for (size_t i = 0; i < c->count; i++) {
        c->excess[i] = c->cells[i].value - c->polish.centre + c->shift;
        c->slow[i] = c->excess[i] > c->bar;
        slow += c->slow[i];
    }
    if (slow == 0)
        return 0;
    rc = describe_links(c);
    if (rc == 0)
        rc = acquit_ends(c, ends);
    if (rc == 0)
        rc = describe_lines(c);
    if (rc == 0)
        rc = describe_cells(c);
    if (rc == 0 && c->out->count)
        qsort(c->out->items, c->out->count, sizeof(*c->out->items), by_ratio);
    return rc;
}

int ft_blame_find(const struct ft_blame_cell *cells, size_t count, uint32_t ends, double least,
                  double usual, struct ft_blames *out, struct ft_task *task)
{
    struct court c = {.cells = cells, .count = count, .out = out, .task = task};
    size_t links = 0;
    int rc = -ENOMEM;

    *out = (struct ft_blames){0};
    for (size_t i = 0; i < count; i++)
        links += cells[i].link_count;
    c.polished = calloc(count + 1, sizeof(*c.polished));
    c.excess = calloc(count + 1, sizeof(*c.excess));
    c.slow = calloc(count + 1, sizeof(*c.slow));
    c.explained = calloc(count + 1, sizeof(*c.explained));
    c.room = calloc(count + 1, sizeof(*c.room));
    c.crossings = calloc(links + 1, sizeof(*c.crossings));
    if (c.polished && c.excess && c.slow && c.explained && c.room && c.crossings)
        rc = judge(&c, ends, least, usual);
    ft_polish_free(&c.polish);
    free(c.polished);
    free(c.excess);
    out->slow = c.slow;
    free(c.explained);
    free(c.room);
    free(c.crossings);
    if (rc)
        ft_blames_free(out);
    return rc;
}

void ft_blames_free(struct ft_blames *blames)
{
    free(blames->items);
    free(blames->acquitted);
    free(blames->slow);
    *blames = (struct ft_blames){0};
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Sends that are slow, by the matrix of sender and receiver.
 *
 * A transfer takes as long as the shorter of its two sides: the later to enter waits for nobody,
 * and each is measured by one clock. Where hosts call ahead both are in a queue for most of that,
 * and nothing is said. Its length is compared with that of transfers of like size
 * between like ranks, or with the pair's own past. A row or column of the
 * matrix that is slow nearly throughout is a sender or a receiver; a cell that neither explains is
 * a pair.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/ahead.h"
#include "lib/diagnosis/found.h"
#include "lib/diagnosis/slowness.h"
#include "lib/diagnosis/stats.h"

#define TRANSFERS_MIN 8
#define CELLS_LIKE    4 /* cells of a class that a reference is made of */
#define MOST_OF_LINE  0.75
#define NEAR          4    /* transfers before and after one that it is compared with */
#define MEASURED      0.75 /* of the transfers of two ranks, at least */
#define SLOW_SHARE    0.4  /* more of all cells: no single rank */
#define ANY_HOSTS     (-1)
#define OTHERS_MAX    64 /* cells that one is compared with while it is slow */

/* One side of a transfer: how long it took there at most, and when it was done. */
struct side {
    uint64_t ns, end_ns;
};

/* A transfer that ended. */
struct transfer {
    uint64_t start_ns;
    double ns;
    uint32_t from, to;
    uint32_t kind;   /* of like ones: on one host or not, size */
    uint32_t row;    /* of its send */
    double apart_ns; /* how much later it ended at the receiver, by both clocks */
};

struct cell {
    uint32_t from, to;
    size_t first, count; /* transfers */
    double ratio;        /* 0: not slow */
    uint64_t since_ns;
    uint32_t row; /* the first that was slow */
    bool explained;
};

/* Of a row or column of the matrix: cells, and those that are slow and not reported yet. */
struct line {
    size_t all, slow;
};

struct matrix {
    const struct ft_matched *m;
    struct side *sides; /* of each row */
    struct transfer *transfers;
    struct cell *cells;
    struct line *lines; /* of a process: its column, its row */
    double *values, *room;
    size_t transfer_count, cell_count;
    struct ft_diagnoses *found;
};

static int by_kind(const void *a, const void *b)
{
    const struct transfer *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static int by_cell(const void *a, const void *b)
{
    const struct transfer *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Sizes within a factor of the square root of two are like. */
static uint32_t size_kind(uint64_t bytes)
{
    return bytes ? (uint32_t)(2 * log2((double)bytes) + 1) : 0;
}

static bool has_ended(const struct ft_matched *m, const struct ft_pair *pair)
{
    /* With one side alone, a wait for the other looks like a slow transfer. */
    return pair->send != FT_OPERATIONS_NONE && pair->recv != FT_OPERATIONS_NONE &&
           m->op[pair->send].end_ns != FT_OPERATIONS_NEVER &&
           m->op[pair->recv].end_ns != FT_OPERATIONS_NEVER;
}

static uint64_t length_of(const struct ft_matched *m, uint32_t row)
{
    return m->op[row].end_ns - m->op[row].start_ns;
}

/* Whether two sends or receives of a process began and ended at once: those of one launch do, when
 * the last of them is done. */
static bool same_launch(const struct ft_matched *m, uint32_t a, uint32_t b)
{
    const struct ft_operation *x = &m->op[a], *y = &m->op[b];

    return x->process == y->process && x->start_ns == y->start_ns && x->end_ns == y->end_ns &&
           x->comm == y->comm && m->pair_of[a] != FT_OPERATIONS_NONE &&
           m->pair_of[b] != FT_OPERATIONS_NONE;
}

/* The row at the other side, where it has ended; NONE. */
static uint32_t ended_side(const struct ft_matched *m, uint32_t row)
{
    const struct ft_pair *pair = &m->pairs[m->pair_of[row]];

    if (!has_ended(m, pair))
        return FT_OPERATIONS_NONE;
    return pair->send == row ? pair->recv : pair->send;
}

/* Of several sends and receives in one launch a row has the length of all. With one peer, the rows
 * of that show how long before the last of them each was done. With several, a late one keeps all
 * others waiting: then none is longer than the shortest of what they say. */
static void measure_launch(struct matrix *x, uint32_t first, uint32_t end)
{
    const struct ft_matched *m = x->m;
    uint64_t least = length_of(m, first), last = 0;
    bool one_peer = true;

    for (uint32_t i = first; i < end; i++) {
        uint32_t its = ended_side(m, i);

        one_peer = one_peer && m->op[i].peer == m->op[first].peer;
        if (its == FT_OPERATIONS_NONE)
            continue;
        last = m->op[its].end_ns > last ? m->op[its].end_ns : last;
        least = length_of(m, its) < least ? length_of(m, its) : least;
    }
    for (uint32_t i = first; i < end; i++) {
        uint32_t its = ended_side(m, i);
        uint64_t early = its == FT_OPERATIONS_NONE ? 0 : last - m->op[its].end_ns;

        if (one_peer && early < length_of(m, i))
            x->sides[i] = (struct side){length_of(m, i) - early, m->op[i].end_ns - early};
        else
            x->sides[i] = (struct side){least, m->op[i].end_ns};
    }
}

static void measure_sides(struct matrix *x)
{
    const struct ft_matched *m = x->m;

    for (uint32_t i = 0, n; i < m->op_count; i += n) {
        for (n = 1; i + n < m->op_count && same_launch(m, i, i + n);)
            n++;
        ft_task_spend(m->task, 1 + n / 4);
        if (n > 1)
            measure_launch(x, i, i + n);
        else
            x->sides[i] = (struct side){length_of(m, i), m->op[i].end_ns};
    }
}

/* Of transfers one after the other: by how much each ends at the receiver later than usual, counted
 * from its end at the sender. Clocks may differ, and drift. */
static void measure_ends(struct matrix *x, size_t first, size_t count)
{
    double near[2 * NEAR + 1];

    for (size_t i = 0; i < count; i++)
        x->room[i] = x->transfers[first + i].apart_ns;
    for (size_t i = 0; i < count; i++) {
        size_t from = i > NEAR ? i - NEAR : 0, to = i + NEAR < count ? i + NEAR + 1 : count;

        ft_task_spend(x->m->task, 1);
        memcpy(near, x->room + from, (to - from) * sizeof(*near));
        x->values[i] = fabs(x->room[i] - ft_median(near, to - from));
    }
}

/* Keeps the transfers of two ranks, from the first on, whose length is known: both sides ended
 * together, or as far apart as others of theirs. A sender that leaves what it sends in a buffer is
 * through before, and a receiver that comes later finds it there: the shorter of both sides says
 * nothing then. Where that is often so, nothing is known of any. */
static void keep_measured(struct matrix *x, size_t first)
{
    size_t count = x->transfer_count - first, kept = first;

    measure_ends(x, first, count);
    for (size_t i = 0; i < count; i++)
        if (x->values[i] <= x->transfers[first + i].ns)
            x->transfers[kept++] = x->transfers[first + i];
    x->transfer_count = (double)(kept - first) < MEASURED * (double)count ? first : kept;
}

static void collect(struct matrix *x)
{
    const struct ft_matched *m = x->m;
    size_t first = 0;

    for (size_t i = 0; i < m->pair_count; i++) {
        const struct ft_pair *pair = &m->pairs[i];
        const struct side *send, *recv;

        if (i % 8 == 0)
            ft_task_spend(m->task, 1);
        if (i > 0 && !ft_pair_same(pair, &pair[-1])) {
            keep_measured(x, first);
            first = x->transfer_count;
        }
        if (!has_ended(m, pair))
            continue;
        send = &x->sides[pair->send];
        recv = &x->sides[pair->recv];
        x->transfers[x->transfer_count++] = (struct transfer){
            .start_ns = m->op[pair->send].start_ns,
            .ns = (double)(send->ns < recv->ns ? send->ns : recv->ns) + 1,
            .from = pair->from,
            .to = pair->to,
            .kind = size_kind(m->op[pair->send].bytes) * 2 +
                    (m->process[pair->from].host == m->process[pair->to].host),
            .row = pair->send,
            .apart_ns = (double)recv->end_ns - (double)send->end_ns,
        };
    }
    keep_measured(x, first);
}

/* Divides the transfers of one kind by what is usual for it: the median of its pairs' medians, or
 * with few pairs each pair's own. The result is a logarithm. */
static void normalise(struct matrix *x, size_t first, size_t end)
{
    struct transfer *t = x->transfers;
    size_t cells = 0;
    double usual;

    for (size_t i = first, n; i < end; i += n) {
        for (n = 0; i + n < end && t[i + n].from == t[i].from && t[i + n].to == t[i].to; n++)
            x->room[n] = t[i + n].ns;
        ft_task_spend(x->m->task, 1 + n / 4);
        x->values[cells++] = ft_median(x->room, n);
    }
    ft_task_spend(x->m->task, 1 + cells / 4);
    usual = ft_median(x->values, cells);
    for (size_t i = first, n; i < end; i += n) {
        for (n = 0; i + n < end && t[i + n].from == t[i].from && t[i + n].to == t[i].to; n++)
            x->room[n] = t[i + n].ns;
        if (cells < CELLS_LIKE)
            usual = ft_quantile(x->room, n, FT_SLOWNESS_PAST);
        ft_task_spend(x->m->task, 1 + n / 4);
        for (size_t k = 0; k < n; k++)
            t[i + k].ns = log(t[i + k].ns / usual);
    }
}

static void make_cells(struct matrix *x)
{
    struct transfer *t = x->transfers;

    ft_task_sort(x->m->task, t, x->transfer_count, sizeof(*t), by_kind);
    for (size_t i = 0, n; i < x->transfer_count; i += n) {
        for (n = 1; i + n < x->transfer_count && t[i + n].kind == t[i].kind;)
            n++;
        normalise(x, i, i + n);
    }
    ft_task_sort(x->m->task, t, x->transfer_count, sizeof(*t), by_cell);
    for (size_t i = 0, n; i < x->transfer_count; i += n) {
        for (n = 1;
             i + n < x->transfer_count && t[i + n].from == t[i].from && t[i + n].to == t[i].to;)
            n++;
        x->cells[x->cell_count++] =
            (struct cell){.from = t[i].from, .to = t[i].to, .first = i, .count = n};
    }
}

/* How much the transfers of most cells vary from one to the next, and from one minute to the next.
 * Among many cells there is always one whose few transfers do not, where they are slow by chance.
 */
static double noise_of(struct matrix *x)
{
    size_t n = 0;

    for (size_t i = 0; i < x->cell_count; i++) {
        const struct cell *cell = &x->cells[i];
        double median;

        if (cell->count < TRANSFERS_MIN)
            continue;
        ft_task_spend(x->m->task, 1 + cell->count / 4);
        for (size_t k = 0; k < cell->count; k++)
            x->room[k] = x->transfers[cell->first + k].ns;
        median = ft_median(x->room, cell->count);
        x->values[n++] = ft_spread(x->room, cell->count, median);
    }
    return n < CELLS_LIKE ? 0 : ft_quantile(x->values, n, 1 - SLOW_SHARE);
}

static uint32_t host_of(const struct matrix *x, uint32_t process)
{
    return x->m->process[process].host;
}

/* Which of a cell's hosts another has, 1 and 2 added up; -1: one of both is within a host. */
static int shared_by(const struct matrix *x, const struct cell *other, const struct cell *cell)
{
    uint32_t from = host_of(x, cell->from), to = host_of(x, cell->to);
    uint32_t other_from = host_of(x, other->from), other_to = host_of(x, other->to);

    if ((other_from == other_to) != (from == to))
        return -1;
    return (other_from == from || other_to == from) + 2 * (other_from == to || other_to == to);
}

/* How slow a cell has to be to stand out from those that share these hosts with it, while it is
 * slow, and as far as all became different then: between two hosts all may be slow together. Clocks
 * differ, so that the time is a part of their transfers. Of how many it is known. */
static size_t others_of(struct matrix *x, const struct cell *cell, const struct ft_slowness *slow,
                        int shared, double *bar)
{
    double all[OTHERS_MAX], differ = 0, middle;
    size_t step = x->cell_count / OTHERS_MAX + 1, n = 0, all_count = 0;

    for (size_t i = 0; i < x->cell_count; i += step) {
        const struct cell *other = &x->cells[i];
        size_t first = slow->first * other->count / cell->count, rest;
        size_t slow_count = slow->end * other->count / cell->count - first;
        int its = shared_by(x, other, cell);

        if (slow_count == 0 || (its < 0 && shared != ANY_HOSTS))
            continue;
        ft_task_spend(x->m->task, 1 + other->count / 4);
        rest = other->count - slow_count;
        for (size_t k = 0; k < other->count; k++)
            x->room[(k + other->count - first) % other->count] = x->transfers[other->first + k].ns;
        middle = ft_median(x->room, slow_count);
        if (rest)
            all[all_count++] = middle - ft_median(x->room + slow_count, rest);
        if (its == shared || shared == ANY_HOSTS)
            x->values[n++] = middle;
    }
    ft_task_spend(x->m->task, 1 + all_count / 4);
    if (all_count >= CELLS_LIKE)
        differ = ft_spread(all, all_count, ft_median(all, all_count));
    *bar = ft_slowness_bar(x->values, n, differ);
    return n;
}

/* What slows down all of the network is the fault of none of its ends: whether a cell is slower
 * than those between other hosts. Where all have a host in common with it, both of its hosts would
 * have to be at fault; where there are two hosts, only ranks and directions can be compared. */
static bool stands_out(struct matrix *x, const struct cell *cell, const struct ft_slowness *slow)
{
    double bar, other;

    if (!others_of(x, cell, slow, 0, &bar)) {
        size_t from = others_of(x, cell, slow, 1, &bar), to = others_of(x, cell, slow, 2, &other);

        if (from && to)
            bar = fmin(bar, other);
        else if (from || to ||
                 (others_of(x, cell, slow, 3, &bar) < CELLS_LIKE &&
                  others_of(x, cell, slow, ANY_HOSTS, &bar) < CELLS_LIKE))
            bar = 0;
    }
    return log(slow->ratio) >= bar;
}

static void judge_cell(struct matrix *x, struct cell *cell, double noise)
{
    const struct transfer *t = &x->transfers[cell->first];
    struct ft_slowness slow;

    ft_task_spend(x->m->task, 1 + cell->count / 4);
    for (size_t i = 0; i < cell->count; i++)
        x->values[i] = t[i].ns;
    if (cell->count < TRANSFERS_MIN ||
        !ft_slowness_of(x->values, cell->count, noise, x->room, &slow) ||
        !stands_out(x, cell, &slow))
        return;
    cell->ratio = slow.ratio;
    cell->since_ns = t[slow.first].start_ns;
    cell->row = t[slow.first].row;
}

static struct line *line_of(const struct matrix *x, bool row, uint32_t process)
{
    return &x->lines[2 * (size_t)process + row];
}

static void count_lines(struct matrix *x)
{
    for (size_t i = 0; i < x->cell_count; i++) {
        const struct cell *cell = &x->cells[i];
        struct line *row = line_of(x, true, cell->from), *column = line_of(x, false, cell->to);

        row->all++;
        column->all++;
        row->slow += cell->ratio > 0;
        column->slow += cell->ratio > 0;
    }
    ft_task_spend(x->m->task, 1 + x->cell_count / 16);
}

static void explain(struct matrix *x, struct cell *cell)
{
    cell->explained = true;
    line_of(x, true, cell->from)->slow--;
    line_of(x, false, cell->to)->slow--;
}

static struct ft_diagnosis *describe(struct matrix *x, const struct cell *cell, enum ft_side side,
                                     double ratio)
{
    struct ft_diagnosis *d = ft_diagnoses_add(x->found, FT_SYNDROME_COMM_SLOW);

    if (!d)
        return NULL;
    d->side = side;
    d->comm = x->m->op[cell->row].comm;
    d->function = x->m->op[cell->row].function;
    d->process = side == FT_SIDE_RECEIVER ? cell->to : cell->from;
    d->since_ns = cell->since_ns;
    d->slowdown = ratio;
    d->confidence = 0.9;
    return d;
}

/* A rank whose transfers to, or from, all its peers are slow. */
static int describe_line(struct matrix *x, bool row, uint32_t process, size_t slow, size_t all)
{
    const struct cell *first = NULL;
    struct ft_diagnosis *d;
    size_t n = 0;

    for (size_t i = 0; i < x->cell_count; i++) {
        struct cell *cell = &x->cells[i];

        if ((row ? cell->from : cell->to) != process || cell->ratio == 0 || cell->explained)
            continue;
        explain(x, cell);
        x->values[n++] = cell->ratio;
        if (!first || first->since_ns > cell->since_ns)
            first = cell;
    }
    for (size_t i = 0; i < x->found->count; i++) {
        d = &x->found->items[i];
        if (d->syndrome == FT_SYNDROME_COMM_SLOW && d->process == process &&
            d->side != FT_SIDE_PAIR) {
            ft_texts_add(&d->reasons, "%s %zu of its %zu peers is %.2f times as slow, too",
                         row ? "sending to" : "receiving from", slow, all, ft_median(x->values, n));
            return 0;
        }
    }
    d = first ? describe(x, first, row ? FT_SIDE_SENDER : FT_SIDE_RECEIVER, ft_median(x->values, n))
              : NULL;
    if (!d)
        return -ENOMEM;
    ft_texts_add(&d->reasons, "%s %zu of its %zu peers takes %.2f times as long as between others",
                 row ? "sending to" : "receiving from", slow, all, d->slowdown);
    ft_texts_add(&d->reasons, "counted from when both sides were there: waiting is not in it");
    return 0;
}

/* Lines that are slow nearly throughout, the longest first: sender's side and receiver's side. */
static int describe_lines(struct matrix *x)
{
    for (;;) {
        size_t best = 1, best_all = 0;
        uint32_t process = FT_OPERATIONS_NONE;
        bool best_row = false;
        int rc;

        ft_task_spend(x->m->task, 1 + x->cell_count / 16);
        for (size_t i = 0; i < 2 * x->cell_count; i++) {
            const struct cell *cell = &x->cells[i / 2];
            bool row = i % 2 == 0;
            const struct line *line;

            if (cell->ratio == 0 || cell->explained)
                continue;
            line = line_of(x, row, row ? cell->from : cell->to);
            if ((double)line->slow < MOST_OF_LINE * (double)line->all || line->slow < best ||
                (line->slow == best && (process != FT_OPERATIONS_NONE || line->slow < 2)))
                continue;
            best = line->slow;
            best_all = line->all;
            best_row = row;
            process = row ? cell->from : cell->to;
        }
        if (process == FT_OPERATIONS_NONE)
            return 0;
        rc = describe_line(x, best_row, process, best, best_all);
        if (rc)
            return rc;
    }
}

/* Cells that no line explains. What else its ends do acquits them. */
static int describe_cells(struct matrix *x)
{
    for (size_t i = 0; i < x->cell_count; i++) {
        struct cell *cell = &x->cells[i];
        const struct line *row, *column;
        struct ft_diagnosis *d;
        bool sender, receiver;

        if (cell->ratio == 0 || cell->explained)
            continue;
        row = line_of(x, true, cell->from);
        column = line_of(x, false, cell->to);
        sender = row->slow < row->all;
        receiver = column->slow < column->all;
        d = describe(x, cell, sender && receiver ? FT_SIDE_PAIR : FT_SIDE_ANY, cell->ratio);
        if (!d)
            return -ENOMEM;
        d->peer = cell->to;
        d->confidence = d->side == FT_SIDE_PAIR ? 0.9 : 0.75;
        ft_texts_add(&d->reasons,
                     "sending from rank %u to rank %u takes %.2f times as long as between others",
                     x->m->process[cell->from].rank, x->m->process[cell->to].rank, cell->ratio);
        ft_texts_add(sender ? &d->reasons : &d->doubts,
                     sender ? "the sender is as fast as others to its other peers"
                            : "the sender has no other peer to compare with");
        ft_texts_add(receiver ? &d->reasons : &d->doubts,
                     receiver ? "the receiver is as fast as others from its other peers"
                              : "the receiver has no other peer to compare with");
    }
    return 0;
}

static int judge(struct matrix *x)
{
    size_t slow = 0;
    double noise;
    int rc;

    measure_sides(x);
    collect(x);
    make_cells(x);
    noise = noise_of(x);
    for (size_t i = 0; i < x->cell_count; i++) {
        judge_cell(x, &x->cells[i], noise);
        slow += x->cells[i].ratio > 0;
    }
    if (slow == 0)
        return 0;
    count_lines(x);
    rc = describe_lines(x);
    for (size_t i = slow = 0; i < x->cell_count; i++)
        slow += x->cells[i].ratio > 0 && !x->cells[i].explained;
    if (rc == 0 && (slow == 1 || (double)slow <= SLOW_SHARE * (double)x->cell_count))
        rc = describe_cells(x);
    return rc;
}

int ft_find_slow_pairs(const struct ft_matched *m, struct ft_diagnoses *found)
{
    struct matrix x = {.m = m, .found = found};
    int rc = -ENOMEM;

    if (ft_called_ahead(m))
        return 0;
    x.sides = calloc(m->op_count + 1, sizeof(*x.sides));
    x.transfers = calloc(m->pair_count + 1, sizeof(*x.transfers));
    x.cells = calloc(m->pair_count + 1, sizeof(*x.cells));
    x.values = calloc(m->pair_count + 1, sizeof(*x.values));
    x.room = calloc(m->pair_count + 1, sizeof(*x.room));
    x.lines = calloc(2 * m->process_count + 1, sizeof(*x.lines));
    if (x.sides && x.transfers && x.cells && x.values && x.room && x.lines)
        rc = judge(&x);
    free(x.sides);
    free(x.transfers);
    free(x.cells);
    free(x.lines);
    free(x.values);
    free(x.room);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/halted.h"

#include <math.h>

#include "lib/base/task.h"

#define NOTHING    0.75 /* of the time that one is away another calls nothing */
#define BEFORE_MAX 256  /* rows: what is in progress began no longer ago */
#define BESIDE_MAX 16   /* operations in progress at once that are looked at */
#define AT_ONCE_NS 2e4  /* what begins as soon was called before */
#define LONG_NS    1e6
#define LATER      3 /* times as late as ever before it continues */
#define LATER_NS   1e6
#define LATER_MIN  3      /* times before, of which that is known */
#define FEW        0.0625 /* of the others: so many may continue late by chance */

/* What a process is in at a moment: beside[] are rows, last is the last that it called before. */
struct moment {
    uint32_t last, beside[BESIDE_MAX];
    size_t count;
};

static bool is_like(const struct ft_matched *m, size_t a, size_t b)
{
    const struct ft_operation *x = &m->op[a], *y = &m->op[b];

    return x->comm == y->comm && x->function == y->function && x->peer == y->peer;
}

/* How long after the first of the operations beside it that ended the next row of a process starts,
 * where its row at is where the last of the moment is. NAN: one of them has no end. */
static double delay_of(const struct ft_matched *m, const struct moment *now, size_t at)
{
    double first = INFINITY;

    for (size_t i = 0; i < now->count; i++) {
        const struct ft_operation *op = &m->op[at - (now->last - now->beside[i])];

        if (op->end_ns == FT_OPERATIONS_NEVER)
            return NAN;
        first = fmin(first, (double)op->end_ns);
    }
    return (double)m->op[at + 1].start_ns - first;
}

/* Whether a process was in the same operations when it called its row at. */
static bool same_calls(const struct ft_matched *m, const struct moment *now, size_t at,
                       size_t first_row)
{
    /* What is begun at once is in no order. */
    if (!is_like(m, at, now->last) || !is_like(m, at + 1, now->last + 1) ||
        (double)(m->op[at + 1].start_ns - m->op[at].start_ns) < AT_ONCE_NS)
        return false;
    for (size_t i = 0; i < now->count; i++) {
        size_t back = now->last - now->beside[i];

        if (at < first_row + back || !is_like(m, at - back, now->beside[i]))
            return false;
    }
    return true;
}

/* Whether a process continued later than what it was in explains. */
static bool continued_late(const struct ft_matched *m, uint32_t process, const struct moment *now)
{
    double delay = delay_of(m, now, now->last), least = INFINITY, most = -INFINITY;
    size_t count = 0;

    if (delay < -AT_ONCE_NS)
        return true;
    ft_task_spend(m->task, 1 + (m->first[process + 1] - m->first[process]) / 8);
    for (size_t at = m->first[process]; at + 1 < m->first[process + 1]; at++) {
        double then;

        if (at == now->last || !same_calls(m, now, at, m->first[process]))
            continue;
        then = delay_of(m, now, at);
        if (isnan(then))
            continue;
        least = fmin(least, then);
        most = fmax(most, then);
        count++;
    }
    return count > 0 && ((least < AT_ONCE_NS && delay > LONG_NS) ||
                         (count >= LATER_MIN && delay > LATER * fmax(most, 0) + LATER_NS));
}

/* Whether a process did nothing, and waited for nothing, around a time of its clock. 0, 1, or -1:
 * it did something then, or nothing is known of it. */
static int was_halted(const struct ft_matched *m, uint32_t process, double middle, double away_ns)
{
    size_t first = m->first[process], end = m->first[process + 1], at = first;
    struct moment now = {.count = 0};

    while (at < end && (double)m->op[at].start_ns <= middle)
        at++;
    ft_task_spend(m->task, 1 + (at - first) / 16);
    if (at == first || at == end ||
        (double)(m->op[at].start_ns - m->op[at - 1].start_ns) < NOTHING * away_ns)
        return -1;
    now.last = (uint32_t)at - 1;
    for (size_t i = at; i-- > first && at - i <= BEFORE_MAX && now.count < BESIDE_MAX;) {
        if (m->op[i].end_ns == FT_OPERATIONS_NEVER)
            return -1;
        if ((double)m->op[i].end_ns >= middle)
            now.beside[now.count++] = (uint32_t)i;
    }
    return now.count == 0 || continued_late(m, process, &now);
}

static bool one_host(const struct ft_matched *m)
{
    for (size_t p = 1; p < m->process_count; p++)
        if (m->process[p].host != m->process[0].host)
            return false;
    return true;
}

bool ft_halted_with(const struct ft_matched *m, const uint64_t *clocks, uint32_t row,
                    double away_ns)
{
    uint32_t process = m->op[row].process;
    double middle = (double)m->op[row].start_ns - away_ns / 2;
    size_t halted = 0, known = 0;
    bool alone = one_host(m);

    for (uint32_t p = 0; p < m->process_count; p++) {
        int found;

        /* Those of its host may be late with it. */
        if (p == process || (!alone && m->process[p].host == m->process[process].host))
            continue;
        found = was_halted(m, p, middle + (double)clocks[p] - (double)clocks[process], away_ns);
        halted += found > 0;
        known += found >= 0;
    }
    return halted > 0 && (double)halted >= FEW * (double)known;
}

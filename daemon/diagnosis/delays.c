// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/delays.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/sent.h"

#define CELLS_MAX 64
#define PEERS_MAX 64
/* Shorter steps are made of latency, not of bytes. */
#define STEP_BYTES_MIN 4096

void ft_delays_free(struct ft_delays *d)
{
    free(d->cells);
    *d = (struct ft_delays){0};
}

bool ft_delays_even(const struct ft_delays *d, uint32_t peer, int64_t judged_ms)
{
    bool any = false;

    for (uint32_t i = 0; i < d->count; i++) {
        const struct ft_delays_cell *cell = &d->cells[i];

        if (cell->peer != peer || cell->judged_ms != judged_ms)
            continue;
        if (!cell->even)
            return false;
        any = true;
    }
    return any;
}

void ft_delays_count(const struct ft_delays *d, int64_t judged_ms, double least, size_t *longer,
                     size_t *all)
{
    for (uint32_t i = 0; i < d->count; i++) {
        const struct ft_delays_cell *cell = &d->cells[i];

        if (!cell->known || cell->judged_ms != judged_ms)
            continue;
        ++*all;
        *longer += (double)cell->off > least;
    }
}

static uint32_t digest(uint32_t sum, const char *text)
{
    for (; text && *text; text++)
        sum = (sum ^ (unsigned char)*text) * 16777619U;
    return sum * 31 + 7;
}

/* FNV-1a; two kinds of one digest are compared as one, which costs sharpness. */
static uint32_t kind_of(const Fabrictrace__Collective *c, double step_bytes)
{
    uint32_t sum = digest(digest(digest(2166136261U, c->op), c->algo), c->proto);

    return sum * 64 + (uint32_t)(2 * log2(step_bytes));
}

double ft_delays_step(const struct ft_delays_cell *cell)
{
    return (cell->kind % 64 + 0.5) / 2 * log(2);
}

static struct ft_delays_cell *cell_of(struct ft_delays *d, uint32_t peer, uint32_t kind,
                                      size_t room)
{
    struct ft_delays_cell *cells;

    for (uint32_t i = 0; i < d->count; i++)
        if (d->cells[i].peer == peer && d->cells[i].kind == kind)
            return &d->cells[i];
    if (d->count == CELLS_MAX || room == 0)
        return NULL;
    if (d->count == d->size) {
        uint32_t size = d->size ? 2 * d->size : 2;

        cells = realloc(d->cells, size * sizeof(*cells));
        if (!cells)
            return NULL;
        d->cells = cells;
        d->size = size;
    }
    d->cells[d->count] = (struct ft_delays_cell){.peer = peer, .kind = kind};
    return &d->cells[d->count++];
}

uint32_t ft_delays_take(struct ft_delays *d, const Fabrictrace__Collective *c, int64_t now_ms,
                        size_t room, uint64_t *refused)
{
    struct ft_sent sent[PEERS_MAX];
    uint32_t before = d->count;
    size_t n = c->peers_dropped ? 0 : ft_sent_add_up(sent, PEERS_MAX, c);

    for (size_t i = 0; i < n; i++) {
        double bytes = sent[i].messages > 0 ? sent[i].bytes / sent[i].messages : 0;
        struct ft_delays_cell *cell;

        if (sent[i].mixed || !(bytes >= STEP_BYTES_MIN) || !(sent[i].ns > 0))
            continue;
        cell = cell_of(d, sent[i].peer, kind_of(c, bytes), room - (d->count - before));
        if (!cell) {
            ++*refused;
            continue;
        }
        cell->values[cell->next] = (float)log(sent[i].ns / sent[i].bytes);
        cell->longest[cell->next] =
            fmaxf(cell->values[cell->next], (float)log(fmax(sent[i].longest_ns, 1) / bytes));
        cell->times_ms[cell->next] = now_ms;
        cell->next = (cell->next + 1) % FT_DELAYS_VALUES;
        cell->count += cell->count < FT_DELAYS_VALUES;
    }
    return d->count - before;
}

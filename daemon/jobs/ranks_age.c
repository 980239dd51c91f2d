// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/ranks_impl.h"

/* What has ended is still shown for so long, unless its room is needed. */
#define KEEP_MS  3600000
#define SWEEP_MS 10000

static void close_silent(struct ft_ranks *r, struct ft_ranks_member_entry *m)
{
    /* This host's clock was set back. */
    if (m->heard_ms > r->now_ms)
        m->heard_ms = r->now_ms;
    m->m.closed |= r->now_ms - m->heard_ms > FT_RANKS_SILENT_MS;
}

static int64_t heard_ms(enum ft_ranks_phase of, const void *entry)
{
    const struct ft_ranks_edge_entry *e = entry;
    const struct ft_ranks_hosts *h = entry;
    const struct ft_ranks_qp *q = entry;
    const struct ft_ranks_member_entry *m = entry;

    return of == FT_RANKS_EDGES   ? e->heard_ms
           : of == FT_RANKS_HOSTS ? h->heard_ms
           : of == FT_RANKS_QPS   ? q->heard_ms
                                  : m->heard_ms;
}

/* Forgets what has ended and was not heard of for long. */
static void sweep_one(struct ft_ranks *r, enum ft_ranks_phase phase, void *entry)
{
    if (phase == FT_RANKS_SILENT)
        close_silent(r, entry);
    else if ((phase == FT_RANKS_WAITING || heard_ms(phase, entry) < r->now_ms - KEEP_MS) &&
             ft_ranks_is_over(r, phase, entry))
        ft_ranks_remove(r, phase, entry);
}

void ft_ranks_at(struct ft_ranks *r, int64_t now_ms)
{
    r->now_ms = now_ms;
}

bool ft_ranks_age(struct ft_ranks *r, int64_t now_ms, uint32_t items)
{
    ft_ranks_at(r, now_ms);
    if (!r->sweeping) {
        if (ft_ranks_within(now_ms, r->swept_ms, SWEEP_MS))
            return false;
        r->swept_ms = now_ms;
        r->sweeping = true;
        r->phase = FT_RANKS_SILENT;
        r->index = 0;
    }
    while (items > 0 && r->phase < FT_RANKS_PHASES) {
        struct ft_table *table = ft_ranks_table(r, r->phase);
        void *entry;

        if (r->index >= ft_table_limit(table)) {
            r->phase++;
            r->index = 0;
            continue;
        }
        entry = ft_table_at(table, r->index++);
        if (entry)
            sweep_one(r, r->phase, entry);
        items--;
    }
    r->sweeping = r->phase < FT_RANKS_PHASES;
    return r->sweeping;
}

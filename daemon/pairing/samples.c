// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "daemon/pairing/state.h"
#include "proto/record.h"

static struct ft_pairing_sampled *sampled_of(const struct ft_pairing *p,
                                             const struct ft_pairing_qp *e, uint16_t sport)
{
    const struct ft_pairing_sampled_key key = {e->key.port, e->remote, sport};

    return ft_table_find(p->sampled, &key);
}

/* With one end more or less, what was seen may be another one's. */
static void forget_seen(struct ft_pairing *p, struct ft_pairing_sampled *w)
{
    struct ft_pairing_qp *e = w->count == 1 ? ft_pairing_at(p, (uint32_t)w->sum) : NULL;

    w->seen = w->other = false;
    if (e && e->by == FT_PAIRED_BY_SAMPLES)
        ft_pairing_mark_uncertain(p, e);
}

static void add(struct ft_pairing *p, const struct ft_pairing_qp *e, uint16_t sport)
{
    const struct ft_pairing_sampled_key key = {e->key.port, e->remote, sport};
    struct ft_pairing_sampled *w;
    bool fresh;

    w = ft_table_insert(p->sampled, &key, &fresh);
    if (!w) {
        p->uncounted++;
        return;
    }
    if (sport)
        forget_seen(p, w);
    w->seen = w->other = false;
    w->count++;
    w->sum += ft_table_index(p->ends, e);
}

void ft_pairing_samples_add(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    add(p, e, 0);
    if (e->has_sport)
        add(p, e, e->sport);
}

static void take_out(struct ft_pairing *p, const struct ft_pairing_qp *e, uint16_t sport)
{
    struct ft_pairing_sampled *w = sampled_of(p, e, sport);

    if (!w || w->count == 0)
        return;
    w->count--;
    w->sum -= ft_table_index(p->ends, e);
    w->seen = w->other = false;
    if (w->count == 0)
        ft_table_remove(p->sampled, w);
}

void ft_pairing_samples_remove(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    take_out(p, e, 0);
    if (e->has_sport)
        take_out(p, e, e->sport);
}

/* Notes a flow; false when it is not the only one. */
static bool see(struct ft_pairing_sampled *w, const struct ft_tuple *tuple, int64_t ms)
{
    if (!w->seen) {
        w->seen = true;
        w->tuple = *tuple;
        w->first_ms = ms;
    } else if (!ft_tuple_equal(&w->tuple, tuple)) {
        w->other = true;
    }
    return !w->other;
}

/* A queue pair that came before the flow was seen is listed by now, had there been another. */
static bool listed_since(const struct ft_pairing *p, const struct ft_pairing_qp *e,
                         const struct ft_pairing_sampled *w)
{
    const struct ft_pairing_host *host = ft_table_at(p->hosts, ft_pairing_host_of(p, e));

    return host->complete_ms >= w->first_ms + FT_PAIRING_CLOCKS_MS;
}

bool ft_pairing_samples_determine(const struct ft_pairing *p, const struct ft_pairing_qp *e,
                                  struct ft_tuple *tuple)
{
    const struct ft_pairing_sampled *w = e->has_sport ? sampled_of(p, e, e->sport) : NULL;

    if (!w || p->uncounted || w->count != 1 || !w->seen || w->other || !listed_since(p, e, w))
        return false;
    /* A host with an agent says itself whether it has such an end. */
    if (ft_pairing_knows(p, &w->tuple.dst))
        return false;
    *tuple = w->tuple;
    return true;
}

bool ft_pairing_is_later(const struct ft_pairing_qp *e, int64_t ms)
{
    return ms >= e->since_ms + FT_PAIRING_CLOCKS_MS;
}

void ft_pairing_samples_take(struct ft_pairing *p, uint32_t port, const struct ft_tuple *tuple,
                             uint32_t dst_qp, int64_t ms)
{
    const struct ft_pairing_sampled_key key = {port, dst_qp, tuple->sport};
    struct ft_pairing_sampled *w = ft_table_find(p->sampled, &key);
    struct ft_pairing_qp *e = w && w->count == 1 ? ft_pairing_at(p, (uint32_t)w->sum) : NULL;

    if (e && ft_pairing_is_later(e, ms) && !see(w, tuple, ms) && e->by == FT_PAIRED_BY_SAMPLES)
        ft_pairing_mark_uncertain(p, e);
}

bool ft_pairing_samples_alone(struct ft_pairing *p, const struct ft_pairing_qp *e,
                              const struct ft_tuple *tuple, int64_t ms)
{
    struct ft_pairing_sampled *w;

    if (p->uncounted)
        return false;
    if (e->has_sport && e->sport == tuple->sport) {
        w = sampled_of(p, e, e->sport);
        return w && w->count == 1;
    }
    w = sampled_of(p, e, 0);
    return w && w->count == 1 && see(w, tuple, ms) && listed_since(p, e, w);
}

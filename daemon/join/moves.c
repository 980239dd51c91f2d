// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/moves.h"

#include "daemon/join/flow_parts.h"

static bool is_filed(const struct ft_evidence *ev, uint8_t number)
{
    const struct ft_sighting *list = ev->size ? ev->list : ev->own;

    for (uint16_t i = 0; i < ev->count; i++)
        if (list[i].past == number)
            return true;
    return false;
}

uint8_t ft_moves_leave(struct ft_flow *flow, const struct ft_path *path, int64_t moved_ms)
{
    struct ft_moves *m = ft_flow_moves(flow);

    if (path->hop_count == 0)
        return FT_PAST_NONE;
    if (!m)
        m = ft_flow_add_part(flow, FT_FLOW_MOVES);
    if (!m)
        return FT_PAST_NONE;
    m->moved_ms = moved_ms;
    m->unnamed = m->count == FT_MOVES_MAX;
    if (m->unnamed)
        return FT_PAST_NONE;
    do {
        m->last = m->last + 1 < FT_PAST_NONE ? m->last + 1 : 1;
    } while (is_filed(&flow->evidence, m->last));
    m->left[m->count].number = m->last;
    m->left[m->count].path = *path;
    m->count++;
    return m->last;
}

void ft_moves_forget(struct ft_flow *flow, int64_t open_ms)
{
    struct ft_moves *m = ft_flow_moves(flow);
    uint8_t kept = 0;

    if (!m)
        return;
    for (uint8_t i = 0; i < m->count; i++)
        if (is_filed(&flow->evidence, m->left[i].number) ||
            (i + 1 == m->count && m->moved_ms > open_ms))
            m->left[kept++] = m->left[i];
    m->count = kept;
    if (kept)
        return;
    ft_flow_remove_part(flow, FT_FLOW_MOVES);
}

/* Whether samples of a window show the flow on its present path: they are later than the move, or
 * of a hop that the path before did not have. A window that began after the move has no others. */
static bool is_shown(const struct ft_flow *flow, const struct ft_topology *t, unsigned slot,
                     int64_t from_ms)
{
    const struct ft_moves *m = ft_flow_moves(flow);
    const struct ft_evidence *ev = &flow->evidence;

    return !m || m->count == 0 || m->moved_ms <= from_ms ||
           ft_evidence_samples_of(ev, FT_PRESENT, m->moved_ms, slot) > 0 ||
           (!m->unnamed && ft_evidence_differs(ev, t, &m->left[m->count - 1].path, slot));
}

size_t ft_moves_divide(const struct ft_flow *flow, const struct ft_topology *t,
                       const struct ft_path *path, bool certain, unsigned slot, int64_t from_ms,
                       struct ft_move_part parts[FT_MOVE_PARTS])
{
    const struct ft_moves *m = ft_flow_moves(flow);
    const struct ft_evidence *ev = &flow->evidence;
    uint64_t stray;
    double sum = 0;
    size_t n = 1;
    bool left;

    parts[0] = (struct ft_move_part){path, 1, FT_PRESENT, certain};
    if (!m && !is_filed(ev, FT_PAST_NONE))
        return 1;
    stray = ft_evidence_samples_of(ev, FT_PAST_NONE, 0, slot);
    for (uint8_t i = 0; m && i < m->count; i++) {
        uint64_t samples = ft_evidence_samples_of(ev, m->left[i].number, 0, slot);

        if (samples)
            parts[n++] =
                (struct ft_move_part){&m->left[i].path, (double)samples, m->left[i].number, false};
    }
    left = n > 1;
    if (stray)
        parts[n++] = (struct ft_move_part){NULL, (double)stray, FT_PAST_NONE, false};
    parts[0].certain = certain && is_shown(flow, t, slot, from_ms);
    if (n == 1)
        return 1;
    /* Sightings that continue from before the move are of both paths. */
    parts[0].share =
        (double)ft_evidence_samples_of(ev, FT_PRESENT, left ? m->moved_ms : INT64_MIN, slot);
    for (size_t i = 0; i < n; i++)
        sum += parts[i].share;
    for (size_t i = 0; i < n; i++)
        parts[i].share /= sum;
    return n;
}

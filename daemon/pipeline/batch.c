// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/pipeline_impl.h"

enum ft_record_fate ft_pipeline_fate(const struct ft_pipeline *p, enum ft_join_result result)
{
    static const enum ft_record_fate fates[FT_JOIN_RESULTS] = {
        [FT_JOIN_OK] = FT_RECORD_JOINED,     [FT_JOIN_LATE] = FT_RECORD_LATE,
        [FT_JOIN_AHEAD] = FT_RECORD_AHEAD,   [FT_JOIN_TABLE_FULL] = FT_RECORD_TABLE_FULL,
        [FT_JOIN_SPREAD] = FT_RECORD_SPREAD,
    };

    if (result == FT_JOIN_LATE && p->now_ms < p->stood_ms)
        return FT_RECORD_LATE_OURS;
    return fates[result];
}

bool ft_pipeline_has_flow(const struct ft_pipeline *p, const struct ft_tuple *tuple)
{
    return ft_partial_owns(p->config.window.origin, tuple, INT64_MAX);
}

void ft_pipeline_recall(struct ft_pipeline *p, bool on)
{
    if (p->recalling == on)
        return;
    ft_pipeline_flush(p);
    p->recalling = on;
    ft_join_recall(p->stages.join, on);
}

void ft_pipeline_regroup(struct ft_pipeline *p, bool more, int64_t now_ms)
{
    ft_pipeline_flush(p);
    ft_pipeline_finish_close(p);
    if (more)
        now_ms = ft_join_window(p->stages.join) * p->config.join.window_ms + 1;
    ft_window_complete_from(p->stages.window, now_ms, false);
}

void ft_pipeline_gap(struct ft_pipeline *p)
{
    p->gap = true;
}

void ft_pipeline_end_gap(struct ft_pipeline *p, int64_t ms)
{
    if (p->gap)
        ft_window_complete_from(p->stages.window, ms < p->now_ms ? ms + 1 : p->now_ms, false);
    p->gap = false;
}

void ft_pipeline_flush(struct ft_pipeline *p)
{
    uint64_t results[FT_JOIN_RESULTS] = {0};

    /* No observation came that would say since when. */
    ft_pipeline_end_gap(p, p->now_ms);
    if (p->gathered == 0)
        return;
    ft_join_observe_batch(p->stages.join, p->batch, p->gathered, results);
    p->gathered = 0;
    for (int r = 0; r < FT_JOIN_RESULTS; r++)
        p->stats.fates[ft_pipeline_fate(p, (enum ft_join_result)r)] += results[r];
}

void ft_pipeline_finish_close(struct ft_pipeline *p)
{
    while (ft_window_busy(p->stages.window))
        ft_window_step(p->stages.window, UINT32_MAX);
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/pipeline_impl.h"
#include "lib/base/partition.h"

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
    const struct ft_partial_origin *origin = p->config.window.origin;
    uint32_t partition;

    if (!origin)
        return true;
    partition = ft_partition_of_flow(tuple, origin->partitions_all);
    for (size_t i = 0; i < origin->partition_count && origin->partitions[i] <= partition; i++)
        if (origin->partitions[i] == partition)
            return true;
    return false;
}

void ft_pipeline_flush(struct ft_pipeline *p)
{
    uint64_t results[FT_JOIN_RESULTS] = {0};

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

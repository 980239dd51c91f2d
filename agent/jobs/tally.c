// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/tally.h"

/* Far from where sums over jobs would wrap. */
#define SUM_MAX (UINT64_C(1) << 60)
/* Fifty threads that do nothing but to call the plugin. */
#define EVENTS_A_S (UINT64_C(1000) * 1000 * 1000)
#define AGE_MAX_S  (UINT64_C(1) << 30)

/* A job that lies about its past must not make a count wrap. */
static uint32_t believe(uint64_t *count, uint64_t now, uint64_t before, uint64_t most, uint32_t bit)
{
    uint64_t n = now > before ? now - before : 0;

    if (n > most)
        return bit;
    *count = n;
    return 0;
}

uint32_t ft_tally_believe(struct ft_tally_counts *c, const struct ft_rings_stats *now,
                          const struct ft_rings_stats *before, uint64_t age_s)
{
    uint64_t most = EVENTS_A_S * (1 + (age_s < AGE_MAX_S ? age_s : AGE_MAX_S));
    uint32_t odd = believe(&c->events, now->events, before->events, most, 1) |
                   believe(&c->lost, now->lost, 0, most, 2) |
                   believe(&c->outside, now->outside, before->outside, most, 4);
    uint32_t fresh;

    for (int d = 0; d < FT_DROPS; d++)
        odd |= believe(&c->drops[d], now->drops[d], before->drops[d], most, 8u << d);
    fresh = odd & ~c->odd;
    c->odd |= odd;
    return (uint32_t)__builtin_popcount(fresh);
}

static uint64_t gone(const struct ft_tally *t)
{
    uint64_t n = t->published + t->outside + t->lost + t->stray + t->unfinished + t->capped;

    for (int d = 0; d < FT_DROPS; d++)
        n += t->drops[d];
    return n;
}

void ft_tally_job(struct ft_tally *job, const struct ft_tally_counts *counts,
                  const struct ft_rings_stats *now, const struct ft_collectives_stats *made,
                  bool over)
{
    uint64_t out;

    *job = (struct ft_tally){
        .events = counts->events,
        .published = made->events_out,
        .stray = now->stray,
        .lost = counts->lost,
        .outside = counts->outside,
        .pending = made->events_pending,
        .capped = made->events_capped,
        .transfers = made->transfers_in,
        .listed = made->transfers_out,
        .unlisted = made->transfers_pending,
        .no_room = made->transfers_no_room,
        .over_limit = made->transfers_capped,
    };
    for (int d = 0; d < FT_DROPS; d++)
        job->drops[d] = counts->drops[d];
    /* The count of calls is the job's own: one that lies, or is read while it runs, cannot make
     * less of what was seen. */
    out = gone(job) + job->pending;
    if (job->events < out)
        job->events = out;
    if (over)
        job->unfinished = job->events - gone(job);
    job->pending = job->events - gone(job);
}

void ft_tally_add(struct ft_tally *sum, const struct ft_tally *job)
{
    if (job->events > SUM_MAX - sum->events)
        return;
    sum->transfers += job->transfers;
    sum->listed += job->listed;
    sum->unlisted += job->unlisted;
    sum->no_room += job->no_room;
    sum->over_limit += job->over_limit;
    sum->events += job->events;
    sum->published += job->published;
    sum->stray += job->stray;
    sum->lost += job->lost;
    sum->outside += job->outside;
    sum->pending += job->pending;
    sum->unfinished += job->unfinished;
    sum->capped += job->capped;
    for (int d = 0; d < FT_DROPS; d++)
        sum->drops[d] += job->drops[d];
}

void ft_tally_account(const struct ft_tally *sum, struct ft_account *account)
{
    struct ft_account_stage *stage = ft_account_stage(account, "nccl", "events");

    stage->received = sum->events;
    stage->processed = sum->published;
    /* Open in the plugin, in the rings, or being folded. */
    stage->pending = sum->pending;
    ft_account_drop(stage, "ring_full", sum->drops[FT_DROP_RING_FULL]);
    ft_account_drop(stage, "pool_full", sum->drops[FT_DROP_POOL_FULL]);
    ft_account_drop(stage, "stale_handle", sum->drops[FT_DROP_STALE]);
    ft_account_drop(stage, "contended", sum->drops[FT_DROP_CONTENDED]);
    ft_account_drop(stage, "no_communicator", sum->drops[FT_DROP_CONTEXT]);
    ft_account_drop(stage, "unknown_kind", sum->drops[FT_DROP_UNKNOWN]);
    ft_account_drop(stage, "too_many_threads", sum->outside);
    ft_account_drop(stage, "agent_restart", sum->lost);
    ft_account_drop(stage, "no_operation", sum->stray);
    ft_account_drop(stage, "unfinished", sum->unfinished);
    ft_account_drop(stage, "over_limit", sum->capped);

    stage = ft_account_stage(account, "nccl_transfers", "transfers");
    stage->received = sum->transfers;
    stage->processed = sum->listed;
    stage->pending = sum->unlisted;
    ft_account_drop(stage, "no_room", sum->no_room);
    ft_account_drop(stage, "over_limit", sum->over_limit);
}

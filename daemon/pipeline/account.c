// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/pipeline_impl.h"

const char *ft_record_fate_name(enum ft_record_fate fate)
{
    static const char *const names[FT_RECORD_FATES] = {
        [FT_RECORD_JOINED] = "joined",
        [FT_RECORD_FORWARDED] = "forwarded",
        [FT_RECORD_LATE] = "late",
        [FT_RECORD_LATE_OURS] = "late_after_pause",
        [FT_RECORD_AHEAD] = "clock_ahead",
        [FT_RECORD_TABLE_FULL] = "table_full",
        [FT_RECORD_SPREAD] = "too_many_groups",
        [FT_RECORD_INVALID] = "invalid",
        [FT_RECORD_UNUSED] = "unused_kind",
        [FT_RECORD_UNAUTHORIZED] = "unauthorized",
        [FT_RECORD_ELSEWHERE] = "elsewhere",
    };

    return names[fate];
}

static void add_own_stages(const struct ft_pipeline *p, struct ft_account *account)
{
    const struct ft_join_stats *join = ft_join_stats(p->stages.join);
    const uint64_t *fates = p->stats.fates;
    struct ft_account_stage *stage = ft_account_stage(account, "records", "records");

    stage->received = p->stats.records;
    stage->processed = fates[FT_RECORD_JOINED] + fates[FT_RECORD_FORWARDED];
    stage->pending = p->gathered;
    for (int f = FT_RECORD_LATE; f < FT_RECORD_FATES; f++)
        ft_account_drop(stage, ft_record_fate_name((enum ft_record_fate)f), fates[f]);
    stage = ft_account_stage(account, "flows", "flows");
    stage->received = join->flows_new;
    stage->processed = join->flows_removed;
    stage->pending = ft_join_flows(p->stages.join);
    if (p->stages.wiring)
        ft_wiring_account(p->stages.wiring, account);
    if (p->stages.pairing)
        ft_pairing_account(p->stages.pairing, account);
}

void ft_pipeline_account(struct ft_pipeline *p, struct ft_account *account)
{
    account->stage_count = 0;
    add_own_stages(p, account);
    if (p->add_stages)
        p->add_stages(p->add_stages_arg, account);
}

void ft_pipeline_fill_loss(struct ft_pipeline *p, struct ft_loss_record *out, int64_t now_ms)
{
    struct ft_account account;

    ft_pipeline_account(p, &account);
    ft_loss_record_fill(out, &account, "fabrictraced", p->config.source_id, now_ms);
}

void ft_pipeline_on_account(struct ft_pipeline *p,
                            void (*add)(void *arg, struct ft_account *account), void *arg)
{
    p->add_stages = add;
    p->add_stages_arg = arg;
}

void ft_pipeline_emit_loss(struct ft_pipeline *p, const struct ft_emitter *emitter, int64_t now_ms)
{
    struct ft_loss_record out;

    ft_pipeline_fill_loss(p, &out, now_ms);
    emitter->record(emitter->arg, &out.record);
}

bool ft_pipeline_next_loss(const struct ft_pipeline *p, uint32_t *index,
                           const struct ft_emitter *emitter)
{
    const struct ft_pipeline_program *s = ft_table_next(p->sources, index);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Loss *loss =
        s && s->packed ? fabrictrace__loss__unpack(NULL, s->packed_bytes, s->packed) : NULL;

    if (!loss)
        return s != NULL;
    record.kind_case = FABRICTRACE__RECORD__KIND_LOSS;
    record.loss = loss;
    emitter->record(emitter->arg, &record);
    fabrictrace__loss__free_unpacked(loss, NULL);
    return true;
}

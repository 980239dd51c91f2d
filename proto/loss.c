// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/loss.h"

static void fill_stage(const struct ft_account_stage *from, Fabrictrace__Stage *stage,
                       Fabrictrace__Drop *drops, Fabrictrace__Drop **drop_list)
{
    fabrictrace__stage__init(stage);
    stage->name = (char *)(uintptr_t)from->name;
    stage->unit = (char *)(uintptr_t)from->unit;
    stage->has_received = true;
    stage->received = from->received;
    stage->has_processed = true;
    stage->processed = from->processed;
    stage->has_pending = true;
    stage->pending = from->pending;
    stage->drops = drop_list;
    for (size_t i = 0; i < from->drop_count; i++) {
        Fabrictrace__Drop *drop = &drops[stage->n_drops];

        if (from->drops[i].count == 0)
            continue;
        fabrictrace__drop__init(drop);
        drop->reason = (char *)(uintptr_t)from->drops[i].reason;
        drop->has_count = true;
        drop->count = from->drops[i].count;
        drop_list[stage->n_drops++] = drop;
    }
}

void ft_loss_record_fill(struct ft_loss_record *out, const struct ft_account *account,
                         const char *program, const char *source, int64_t now_ms)
{
    fabrictrace__record__init(&out->record);
    fabrictrace__loss__init(&out->loss);
    out->record.kind_case = FABRICTRACE__RECORD__KIND_LOSS;
    out->record.loss = &out->loss;
    out->loss.has_time_ms = true;
    out->loss.time_ms = (uint64_t)now_ms;
    out->loss.source = (char *)(uintptr_t)source;
    out->loss.program = (char *)(uintptr_t)program;
    out->loss.stages = out->stage_list;
    out->loss.n_stages = account->stage_count;
    for (size_t i = 0; i < account->stage_count; i++) {
        fill_stage(&account->stages[i], &out->stages[i], out->drops[i], out->drop_list[i]);
        out->stage_list[i] = &out->stages[i];
    }
}

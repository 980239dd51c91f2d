// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/account.h"

#include <assert.h>

struct ft_account_stage *ft_account_stage(struct ft_account *account, const char *name,
                                          const char *unit)
{
    struct ft_account_stage *stage;

    assert(account->stage_count < FT_ACCOUNT_STAGES);
    stage = &account->stages[account->stage_count++];
    *stage = (struct ft_account_stage){.name = name, .unit = unit};
    return stage;
}

void ft_account_drop(struct ft_account_stage *stage, const char *reason, uint64_t count)
{
    assert(stage->drop_count < FT_ACCOUNT_DROPS);
    stage->drops[stage->drop_count++] = (struct ft_account_drop){reason, count};
}

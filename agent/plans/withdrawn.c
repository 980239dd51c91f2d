// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/plans/withdrawn.h"

#include <string.h>

bool ft_withdrawn_has(const struct ft_withdrawn *w, const struct ft_withdrawal *withdrawal)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->list[i].uid == withdrawal->uid &&
            w->list[i].plan_time_ms == withdrawal->plan_time_ms &&
            strcmp(w->list[i].job, withdrawal->job) == 0)
            return true;
    return false;
}

bool ft_withdrawn_add(struct ft_withdrawn *w, const struct ft_withdrawal *withdrawal)
{
    if (ft_withdrawn_has(w, withdrawal))
        return false;
    w->list[w->next] = *withdrawal;
    w->next = (w->next + 1) % FT_WITHDRAWN_MAX;
    if (w->count < FT_WITHDRAWN_MAX)
        w->count++;
    return true;
}

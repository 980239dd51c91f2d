// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_BALANCED_H
#define FT_TESTS_BALANCED_H
/* Whether all that a stage received is accounted for. */
#include "lib/base/account.h"

static inline bool ft_account_balanced(const struct ft_account_stage *stage)
{
    uint64_t out = stage->processed + stage->pending;

    for (size_t i = 0; i < stage->drop_count; i++)
        out += stage->drops[i].count;
    return stage->received == out;
}

#endif

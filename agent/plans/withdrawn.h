// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PLANS_WITHDRAWN_H
#define FT_AGENT_PLANS_WITHDRAWN_H
/*
 * Plans that the daemon withdrew, which hosts of that job give no more ports of. Of too many the
 * one that was withdrawn first is forgotten: the daemon says it again when a port of it is
 * reported. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>

#include "proto/withdrawal.h"

#define FT_WITHDRAWN_MAX 64

/* Starts as zeros. */
struct ft_withdrawn {
    struct ft_withdrawal list[FT_WITHDRAWN_MAX];
    size_t count, next;
};

/* False: it was there before. */
bool ft_withdrawn_add(struct ft_withdrawn *w, const struct ft_withdrawal *withdrawal);
bool ft_withdrawn_has(const struct ft_withdrawn *w, const struct ft_withdrawal *withdrawal);

#endif

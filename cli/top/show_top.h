// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_TOP_SHOW_TOP_H
#define FT_CLI_TOP_SHOW_TOP_H
/*
 * The fabric at a glance: what stands, the groups that chance explains least, the fullest links.
 */
#include "cli/output/answer.h"
#include "cli/output/grid.h"

/* The daemon's answers that one picture is made of. */
struct ft_top {
    const struct ft_value *imbalance, *links, *events;
};

/* At most `lines` lines, 0: ten rows of each kind. 0 or -ENOMEM. */
int ft_show_top(const struct ft_screen *screen, const struct ft_top *top, size_t lines);

#endif

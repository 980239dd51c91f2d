// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_SHOW_SHOW_LOSSY_H
#define FT_CLI_SHOW_SHOW_LOSSY_H
/* What an event packet_loss says of the flows that it names. Pure but for writing to the screen. */
#include "cli/output/answer.h"
#include "cli/output/grid.h"

/* The flows that it names, as a table; nothing of other events. 0 or -ENOMEM. */
int ft_show_lossy_flows(const struct ft_screen *screen, const struct ft_value *event);

/* What it says of a flow that crosses its link; path: the record of that flow. */
void ft_show_loss_of(const struct ft_screen *screen, const struct ft_value *event,
                     const struct ft_value *path);

#endif

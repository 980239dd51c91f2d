// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_LIVE_SHOW_DIGEST_H
#define FT_CLI_LIVE_SHOW_DIGEST_H
/*
 * A digest as text for a person: what was seen, imbalance, collisions, events.
 */
#include "cli/live/digest.h"
#include "cli/output/grid.h"

/* name: of the capture. 0 or -ENOMEM. */
int ft_show_digest(const struct ft_screen *screen, const char *name,
                   const struct ft_digest *digest);

#endif

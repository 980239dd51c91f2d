// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_STOPPED_H
#define FT_DAEMON_WINDOW_STOPPED_H
/*
 * Whether links of a group lost the flows that they had: of half of a group's links without flows a
 * hash that does not reach them is as likely a cause as a link that is dead, unless they had their
 * part before.
 *
 * Of each link its flows in an earlier window are kept, with those of the group: of a recent one
 * with many, until the group had none for some windows. By how seldom chance gives that none of the
 * present ones takes a link of these (Fisher's exact test) it shows whether they lost them. Pure.
 * Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/window/loads.h"
#include "lib/fabric/topology.h"

struct ft_stopped;

/* NULL without memory. */
struct ft_stopped *ft_stopped_new(void);
void ft_stopped_free(struct ft_stopped *s);

/* Ports have other ids from now on; what is kept of those that are there still, by name, stays. The
 * topology is borrowed until the next call. Without memory nothing is kept. */
void ft_stopped_resize(struct ft_stopped *s, const struct ft_topology *t);

/* What the links of a group have in a window, after it was asked about. */
void ft_stopped_note(struct ft_stopped *s, const struct ft_loads *loads,
                     const struct ft_group *group);

/* How likely it is that of so many flows none takes one of these links, if they are taken as often
 * as before; 1 where one of them is not known to have had any. */
double ft_stopped_by_chance(const struct ft_stopped *s, const uint32_t *ports, size_t count,
                            uint64_t flows);

#endif

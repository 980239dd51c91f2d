// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_LINK_COUNTERS_H
#define FT_DAEMON_WINDOW_LINK_COUNTERS_H
/* What the ports of links counted in a window. Pure. Thread: one. */
#include "daemon/join/counters.h"
#include "daemon/window/loads.h"
#include "proto/fabrictrace.pb-c.h"

/* The link leaves by a port, and peer is the one at its other end, FT_NONE where none is known. out
 * has the window's end. */
void ft_link_counters_fill(Fabrictrace__Link *out, const struct ft_counters *counters,
                           const struct ft_load *load, uint32_t port, uint32_t peer,
                           uint32_t window);

/* Whether a port of a group counts about as many bytes as the others of its group do on average.
 * Where flows are next to nothing of that, as in a pause of their job, that shows nothing.
 * counters: NULL where there are none. */
bool ft_link_counts_flows(const struct ft_topology *t, const struct ft_counters *counters,
                          const struct ft_loads *loads, uint32_t port, uint32_t window);

#endif

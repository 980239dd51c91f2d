// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_LINK_COUNTERS_H
#define FT_DAEMON_WINDOW_LINK_COUNTERS_H
/* What the ports at both ends of a link counted in a window, for its record. Pure. Thread: one. */
#include "daemon/join/counters.h"
#include "daemon/window/loads.h"
#include "proto/fabrictrace.pb-c.h"

/* The link leaves by a port, and peer is the one at its other end, FT_NONE where none is known. out
 * has the window's end. */
void ft_link_counters_fill(Fabrictrace__Link *out, const struct ft_counters *counters,
                           const struct ft_load *load, uint32_t port, uint32_t peer,
                           uint32_t window);

#endif

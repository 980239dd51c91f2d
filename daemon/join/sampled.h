// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_SAMPLED_H
#define FT_DAEMON_JOIN_SAMPLED_H
/*
 * What each switch sampled in a window, over all flows, without counting a packet twice.
 *
 * A source is who took samples: one data source, or one sampling point, of one exporter. Two
 * sources of a switch may have sampled the same packets (at entry and at exit; two exporters at
 * once), or each the packets of its own ports (line cards, sub-agents). Which is the case is not
 * reported, so three sums are made, none of which counts a packet twice: over one source; over the
 * ports in, of each its best source; over the ports out likewise. The largest is taken: it misses
 * nothing where any of the three does not. Which source of a port is best is decided by earlier
 * windows, so that chance does not select the larger figure. At most FT_SAMPLED_SOURCES are
 * distinguished per switch and per port; others are not counted, and memory for ports is taken only
 * where a switch has several. Pure. Thread: one.
 */
#include <stdint.h>

#include "lib/fabric/topology.h"

#define FT_SAMPLED_SOURCES 8

struct ft_sampled;

/* The topology is borrowed until ft_sampled_follow(). NULL without memory. */
struct ft_sampled *ft_sampled_new(const struct ft_topology *t);
void ft_sampled_free(struct ft_sampled *s);

/* Another topology: what is known follows by the names of the switches; which source of a port is
 * best is learnt anew. -ENOMEM, and nothing has changed. */
int ft_sampled_follow(struct ft_sampled *s, const struct ft_topology *t);

/* Forgets all of it: an older window may come. */
void ft_sampled_restart(struct ft_sampled *s);

/* Samples of a known switch, and the bytes they stand for. in and out may be FT_NONE or aggregates:
 * then they add to no port, since another source may name the member. Two windows are open at a
 * time, distinguished by parity. */
void ft_sampled_add(struct ft_sampled *s, uint32_t switch_id, uint32_t in, uint32_t out,
                    uint32_t source, uint32_t window, uint64_t samples, uint64_t bytes);

/* The sum of an open window; 0 and 0 for another. */
void ft_sampled_window(const struct ft_sampled *s, uint32_t switch_id, uint32_t window,
                       uint64_t *samples, double *bytes);

/* Samples that came in by ports without a known link or NIC, of all sources together. */
uint64_t ft_sampled_strays(const struct ft_sampled *s, uint32_t switch_id, uint32_t window);

#endif

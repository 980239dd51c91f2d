// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_OUTAGES_H
#define FT_DAEMON_JOIN_OUTAGES_H
/*
 * Which switches sent no samples for a part of a window: their exporter was restarted, or its
 * datagrams were lost. A flow's few samples at such a switch do not show it (a third less of 20 is
 * within chance), those of all its flows do.
 *
 * The samples of each switch are counted by the second. It had an outage where a second has none
 * and the usual one has FT_OUTAGE_USUAL at least, which chance does not do; and where that is not a
 * second in which all of the fabric paused: had half of its usual second, or less. The usual second
 * is the median of those that are not empty, in a window that is empty that of the last one; of all
 * of the fabric that of the last one as well where it is more. Windows of less than two seconds
 * have no outages, nor does what is shorter than two seconds always show. Jobs that pause may look
 * like an outage: what is left out by that is as good as what stays, since nothing is left out for
 * how few samples one flow has. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/topology.h"

#define FT_OUTAGE_USUAL 20

struct ft_outages;

/* The topology is borrowed. NULL without memory. */
struct ft_outages *ft_outages_new(const struct ft_topology *t, uint32_t window_ms);
void ft_outages_free(struct ft_outages *outages);

/* The same with another topology: what is known follows by the names of the switches. NULL without
 * memory. */
struct ft_outages *ft_outages_followed(const struct ft_outages *outages,
                                       const struct ft_topology *t);

/* Forgets all of it: an older window may come. */
void ft_outages_restart(struct ft_outages *outages);

/* Samples of a known switch between two times, the first of which is in the window. Two windows are
 * open at a time, distinguished by parity. */
void ft_outages_add(struct ft_outages *outages, uint32_t switch_id, uint32_t window,
                    int64_t first_ms, int64_t last_ms, uint32_t samples);

/* Once no more samples of a window come. */
void ft_outages_close(struct ft_outages *outages, uint32_t window);

/* Whether each switch had an outage in the last window that was closed, by its id. */
const bool *ft_outages_had(const struct ft_outages *outages);

#endif

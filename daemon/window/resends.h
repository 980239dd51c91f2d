// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_RESENDS_H
#define FT_DAEMON_WINDOW_RESENDS_H
/*
 * What the samples of a flow show of packets that were sent again, for the comparison of links
 * (lossy_links.h).
 *
 * Samples that overtake each other look the same, and where packets are sent again often, samples
 * seem to overtake each other: which of both it is one source of samples does not show. So a source
 * that seems to do so counts only for flows that it samples where they enter the fabric, and only
 * where it sampled others over each link of every group that the flow crosses: what it does to the
 * numbers it then does on all of these links alike, and no link stands out by that. Pure. Owner:
 * the caller. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/join/join.h"

struct ft_resends;

/* NULL without memory. */
struct ft_resends *ft_resends_new(void);
void ft_resends_free(struct ft_resends *r);

/* Ports and groups have other ids from now on. */
void ft_resends_forget(struct ft_resends *r);

/* Of a resolved flow in a window that closes: its samples that count, and how many of them have a
 * lower number than one before. */
struct ft_resent_samples {
    uint32_t samples, back;
};
struct ft_resent_samples ft_resends_of(struct ft_resends *r, const struct ft_join *join,
                                       const struct ft_flow *flow, uint32_t window);

/* How often a source could not be followed at a group, without room: its samples did not count. */
uint64_t ft_resends_refused(const struct ft_resends *r);

#endif

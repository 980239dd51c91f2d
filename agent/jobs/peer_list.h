// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_PEER_LIST_H
#define FT_AGENT_JOBS_PEER_LIST_H
/*
 * The peers of a report: what its rank sent to each and received from it, channel by channel.
 *
 * Lists grow within a room that all reports share. A transfer that finds none is left out of the
 * list, and its report says how many those are and of how many bytes. Owner of the lists: their
 * reports. Thread: that of the room's owner.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/jobs/collectives.h"

struct ft_peer_room {
    size_t used, max; /* entries of all lists */
};

/* NULL: there is none. */
const struct ft_collective_peer *ft_peer_list_find(const struct ft_collective *in, int32_t peer,
                                                   uint32_t channel);

/* Whether a list may have that many entries. */
bool ft_peer_list_may_grow(const struct ft_peer_room *room, const struct ft_collective *to,
                           size_t count);

/* Whether all peers of one report have room in the list of another. */
bool ft_peer_list_fits(const struct ft_peer_room *room, const struct ft_collective *to,
                       const struct ft_collective *from);

/* Adds transfers with a peer, which is looked for at an index of the list first. False: they are
 * left out, and counted so in the report. */
bool ft_peer_list_add(struct ft_peer_room *room, struct ft_collective *to,
                      const struct ft_collective_peer *from, size_t likely);

/* Counts in a report what another had no room for. */
void ft_peer_list_leave_out(struct ft_collective *to, const struct ft_collective_left_out *more);

/* Empties a list and gives its room back. */
void ft_peer_list_forget(struct ft_peer_room *room, struct ft_collective *from);

#endif

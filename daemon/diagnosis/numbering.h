// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_NUMBERING_H
#define FT_DAEMON_DIAGNOSIS_NUMBERING_H
/*
 * The numbers of a rank's operations: those that its plugin gave them in its communicator, of which
 * none may be missing where something is concluded from what a rank has not done; and those of
 * sends and receives among the ones with the same peer, which NCCL does not give.
 *
 * An agent hands out what ended within a second in any order; the rows of a rank are in that of
 * their numbers. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/diagnosis/recent.h"
#include "proto/fabrictrace.pb-c.h"

/* Counts an operation of the rank, or several in a sum; fills peer and sequence of its row, where
 * it has a peer. */
void ft_numbering_take(struct ft_recent_rank *rank, const Fabrictrace__Collective *c,
                       struct ft_recent_row *row);

/* Nothing was counted yet, as of another process. */
void ft_numbering_forget(struct ft_recent_rank *rank);

/* The number that the next operation will have among those with its peer. */
uint64_t ft_numbering_next(const struct ft_recent_rank *rank, uint32_t peer, bool receives);

/* The newest row was added: puts it where its number belongs. */
void ft_numbering_order(struct ft_recent_rank *rank);

/* Whether it is known what the rank did with a peer up to where it stands: every operation was
 * reported, and of the last one with that peer its transfers, too. */
bool ft_numbering_is_known(const struct ft_recent_rank *rank, uint32_t peer);

#endif

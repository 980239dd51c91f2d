// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_AHEAD_H
#define FT_DIAGNOSIS_AHEAD_H
/*
 * Whether hosts call far ahead of their GPUs, so that the length of an operation is mostly the work
 * that is queued before it.
 *
 * Operations of one communicator run one after the other, as do sends from one rank to another: one
 * that starts before the one before it has ended was called, and waits in a queue. Where starts are
 * when operations begin there are none. Pure. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/matched.h"

/* Whether starts are those of calls: some operations wait in queues. */
bool ft_starts_are_calls(const struct ft_matched *m);

/* Whether most operations of the job wait in queues; or some do, and ranks are in operations all of
 * their time, so that their work is in the lengths of these. */
bool ft_called_ahead(const struct ft_matched *m);

/* Whether ranks are in operations nearly all of their time: where each is called when the one
 * before it has ended, and waited for, nothing is queued, and work is in the lengths all the same.
 */
bool ft_work_may_be_inside(const struct ft_matched *m);

/* How long a member of a group was in it, from when what its communicator did before had ended
 * there, by its own clock. */
uint64_t ft_ahead_length(const struct ft_matched *m, size_t group, size_t member);

#endif

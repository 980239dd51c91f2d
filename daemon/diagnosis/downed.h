// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_DOWNED_H
#define FT_DAEMON_DIAGNOSIS_DOWNED_H
/*
 * The link that went down under a transfer that stands: one that its packets, or the answers to
 * them, certainly crossed, and of which a switch reports an end down that was up. Where discovery
 * has taken the link out of the topology since, the last path that was certain still has it.
 *
 * It must have been up no later than the transfer began to stand, or hardly: a link that somebody
 * takes down while a job hangs is not why it does. What arrived crossed the links of its data, so
 * that only the path of its answers is possible. Where several are down none is named. Pure.
 * Thread: one.
 */
#include "daemon/diagnosis/stand.h"
#include "daemon/diagnosis/witness.h"

/* Of a hang, whose witnesses were heard. */
void ft_downed_report(const struct ft_witnesses *w, const struct ft_stand *stand,
                      struct ft_diagnosis_report *r, struct ft_testimony *room, int64_t now_ms);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_CUT_H
#define FT_DAEMON_DIAGNOSIS_CUT_H
/*
 * The links that all transfers of a job cross that stand in the network: sent, not completed and
 * not arrived, of whatever communicator.
 *
 * Where these are of several senders and several receivers, the links common to all of them whose
 * path is certain are possible, the others are not; neither is one behind which packets of theirs
 * were sampled since: senders repeat what is lost. A single one is named. What arrived and was not
 * acknowledged lost its answer: that stands on the path of the answers, where samples of these have
 * shown it (same UDP source port, addresses changed over), else it says nothing. Pure. Thread: one.
 */
#include <stdint.h>

#include "daemon/diagnosis/stand.h"
#include "daemon/diagnosis/witness.h"

struct ft_task;

#define FT_CUT_ANSWERS 32

struct ft_cut {
    uint32_t edges; /* transfers that stand; 0: no link is known to be possible */
    /* Of these, the first that wait for their answer alone. */
    const struct ft_recent_transfer *answers[FT_CUT_ANSWERS];
    uint32_t answer_count;
    uint32_t ports[FT_TESTIMONY_LINKS], port_count;
    uint32_t passed[FT_TESTIMONY_LINKS], passed_count; /* that all cross, and get through */
    struct ft_stand stand;                             /* the first of them */
};

void ft_cut_find(const struct ft_recent *recent, const struct ft_recent_job *job,
                 const struct ft_witnesses *w, struct ft_task *task, struct ft_cut *out);

/* Names the first transfer, where it is the communicator's. */
void ft_cut_stand(const struct ft_cut *cut, const char *comm_id, struct ft_stand *out);

/* Marks the possible links in a report, whose witnesses were heard, of what stands; a single one is
 * its link, also where that is on the path of the answers alone. */
void ft_cut_report(const struct ft_cut *cut, const struct ft_witnesses *w,
                   const struct ft_stand *stand, struct ft_diagnosis_report *r,
                   struct ft_testimony *room);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_RESENT_H
#define FT_DAEMON_DIAGNOSIS_RESENT_H
/*
 * The link under a slow or standing pair that loses packets, by the flows of everybody that cross
 * it (lib/fabric/lossy.h): more of them send packets again than of those over the other links of
 * its group. Of a fabric's links one is that by chance now and then; of the few under a pair
 * seldom. Pure. Thread: one.
 */
#include "daemon/diagnosis/witness.h"

/* Names the link in the report of a pair, where nothing else has, and no end of it is to blame. */
void ft_resent_report(const struct ft_witnesses *w, struct ft_diagnosis_report *r,
                      struct ft_testimony *room);

/* The same in a diagnosis that stands, whose job may bring no new measures while it waits: it is
 * allocated, and what is added too. False: no link is to be named. */
bool ft_resent_name(const void *witnesses, Fabrictrace__Diagnosis *m);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_SPRAYING_H
#define FT_FABRIC_SPRAYING_H
/*
 * Whether a flow takes several paths at once, and when its samples are enough to say that it does
 * not. Of a flow whose packets take any of w paths, n samples in a row show one path by chance once
 * in w^(n-1) times. Where no flow is sprayed the first samples are enough; where flows were sprayed
 * of late (struct ft_trust), a path needs so many of them that this happens once in 10,000 times,
 * and once in a million where the flow was seen elsewhere before: such a flow is put to the test
 * with every sample. One that had stayed where it was for long and moved needs less. Part of what
 * judge.c does. Pure.
 */
#include "lib/fabric/trial.h"

/* Whether the flow used to stay where it was. */
bool ft_spraying_is_steady(const struct ft_evidence *ev);

/* Whether samples that contradict each other are of several paths at once. */
bool ft_spraying_shows(const struct ft_trial *trial, const struct ft_evidence *ev);

/* Whether one path at a time explains samples that contradict each other: the new one has been seen
 * often enough, or the flow used to stay where it was. Of one that came back, what was seen since
 * it left counts. */
bool ft_spraying_is_ruled_out(const struct ft_trial *trial, const struct ft_evidence *ev,
                              const bool *use);

/* Whether flows were sprayed here of late. */
bool ft_spraying_is_known(const struct ft_trial *trial);

/* Whether flows are sprayed here, and these sightings so few that one that is would show one path
 * as well. */
bool ft_spraying_may_hide(struct ft_trial *trial, const struct ft_evidence *ev, const bool *use);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_DOCTOR_H
#define FT_DAEMON_API_DOCTOR_H
/*
 * What the daemon does not see, each with what to do: switches and ports without reports, samples
 * or counters, ids that name no port, sources that contradict each other, losses on the way here,
 * clocks that are off. Pure. Thread: the pipeline's.
 */
#include <stdint.h>

#include "daemon/publish/findings.h"

struct ft_pipeline;

struct ft_doctor;

/* seed: of a table that it makes. NULL without memory. */
struct ft_doctor *ft_doctor_new(struct ft_pipeline *pipeline, uint64_t seed);
void ft_doctor_free(struct ft_doctor *doctor);

/* Switches that are asked by which port they send flows, borrowed; NULL: none are. */
struct ft_oracle;
void ft_doctor_oracle(struct ft_doctor *doctor, const struct ft_oracle *oracle);

/* The schemas of what is published, borrowed; NULL: there is no registry. */
struct ft_registered;
void ft_doctor_registered(struct ft_doctor *doctor, const struct ft_registered *registered);

/* Messages over Kafka of senders that there was no room to remember (daemon/group/numbers.h). */
void ft_doctor_unnumbered(struct ft_doctor *doctor, uint64_t messages);

/* What is looked at is a recording that began at this time, after its daemon; 0: it did not. */
void ft_doctor_recorded(struct ft_doctor *doctor, int64_t from_ms);

/* Looks at the next part, a few milliseconds' work; false: that was all. */
bool ft_doctor_step(struct ft_doctor *doctor);

/* What it found so far. */
const struct ft_findings *ft_doctor_findings(const struct ft_doctor *doctor);

#endif

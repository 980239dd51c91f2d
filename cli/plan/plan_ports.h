// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_PLAN_PLAN_PORTS_H
#define FT_CLI_PLAN_PLAN_PORTS_H
/*
 * A job's plan: which path a source port gives a flow, by what switches answer or by what was
 * learnt of them; the paths that a flow can be given, and a port for the one that it is to have.
 */
#include "cli/plan/plan_job.h"

/* A hash that errs more often is not planned with. */
#define FT_PLAN_ACCURACY_LEAST 0.99

/* Adds a text, each once. */
void ft_plan_text(struct ft_plan_texts *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool ft_plan_is_of_job(const struct ft_plan_job *p, const Fabrictrace__Path *record);

/* Whether the choice certainly depends on the source port. */
bool ft_plan_hash_takes_sport(const Fabrictrace__Hash *r);

/* Why it is not known by which port of its NIC a flow leaves when it has another source port; NULL:
 * it is known. */
const char *ft_plan_nic_trouble(const struct ft_plan_job *p, uint32_t flow);

bool ft_plan_same(const struct ft_path *a, const struct ft_path *b);

/* The path that a source port gives a flow. -EHOSTUNREACH; -ENODATA where it is not known: a
 * question is noted where a switch is asked. */
int ft_plan_predict(const struct ft_plan_job *p, uint32_t flow, const bool *dead, uint16_t sport,
                    struct ft_path *path);

/* Asks switches where ports lead, until each flow has one for every path, or enough were asked
 * about. -EINTR: a signal came; -ENOMEM. */
int ft_plan_ask_ports(struct ft_plan_job *p);

/* Fills first and candidates; none where the plan is refused. -ENOMEM. */
int ft_plan_candidates(struct ft_plan_job *p);

/* A source port for each flow that moves. A path of which other flows between the same NICs have
 * every port is taken from the flow's candidates; *dropped: how many these are. The others were
 * moved for a plan that does not come about then: flows have to be assigned anew. -ENOMEM. */
int ft_plan_ports(struct ft_plan_job *p, uint32_t *dropped);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PLANS_FOLLOWER_H
#define FT_DAEMON_PLANS_FOLLOWER_H
/*
 * Plans whose ports agents gave to queue pairs: whether samples bear them out, window by window.
 *
 * Agents report each port (fabrictrace.plan_port.v1). A plan is applied with the first of them, and
 * confirmed once samples after that show every port that they speak of on its predicted path. It is
 * withdrawn where they show one on another path, or for FT_FOLLOWER_LOOKS windows with samples none
 * for certain; or where an agent says that its owner took it back. Withdrawn by samples, its agents
 * are asked to give no more of its ports, again with every window until they say so. What a host
 * says counts once it is known to be in the job (members.h), or, of a job of which no members are
 * known, if it spoke of the plan first: else its ports are neither judged nor counted, replace no
 * other plan, and it ends none. Without known members a plan replaces only those that the same host
 * spoke of first. Each change is published as
 * fabrictrace.plan.v1, a withdrawal by samples as an event as well.
 *
 * Capped: plans, of which those that nothing was said of for longest are forgotten first; their
 * ports; and hosts. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/join/join.h"
#include "daemon/publish/emit.h"
#include "daemon/publish/events.h"
#include "proto/withdrawal.h"

#define FT_FOLLOWER_PLANS_MAX  64
#define FT_FOLLOWER_PLANS_HOST 8 /* that one host was the first to speak of */
#define FT_FOLLOWER_PORTS_MAX  8192
#define FT_FOLLOWER_HOSTS_MAX  4096 /* of all plans together */
#define FT_FOLLOWER_LOOKS      6
#define FT_FOLLOWER_REPORT     1024 /* bytes of what is kept of a port */

/* Of all of it: reports; ports with 40 for the table (lib/base/table.h), 1.3 MiB; hosts of 272
 * bytes in lists that may be half empty, 2.2 MiB; members, 0.4 MiB. */
#define FT_FOLLOWER_KEPT_MAX  (2u << 20)
#define FT_FOLLOWER_BYTES_MAX (6u << 20)

struct ft_follower;

/* What it works with while it looks. */
struct ft_follower_surroundings {
    const struct ft_join *join;
    struct ft_events *events;
    const struct ft_emitter *emitter;
    const char *fabric;
};

struct ft_follower_stats {
    uint64_t ports;   /* that are followed now */
    uint64_t refused; /* reports of ports, plans and hosts that there was no room for */
    uint64_t asked;   /* withdrawals that agents were asked for, each time */
    uint64_t held;    /* ports that are followed, but of hosts that may not speak for the job */
    uint64_t strange; /* ends of plans that such hosts reported */
};

/* NULL without memory. */
struct ft_follower *ft_follower_new(uint64_t seed);
void ft_follower_free(struct ft_follower *f);

/* Who asks the agent of a source id to withdraw a plan; NULL: nobody does. */
void ft_follower_on_withdrawal(struct ft_follower *f,
                               void (*ask)(void *arg, const char *source,
                                           const struct ft_withdrawal *withdrawal),
                               void *arg);

/* Takes what an agent said. -EINVAL: a part is missing or cannot be; -ENOSPC: there is no room;
 * -EPERM: its host may not speak for the job. */
int ft_follower_take(struct ft_follower *f, const Fabrictrace__PlanPort *port,
                     const struct ft_topology *t, int64_t now_ms);

/* A host reported that it sends a flow of a job: what it may say of the job's plans rests on that
 * (members.h). */
void ft_follower_hear(struct ft_follower *f, const struct ft_topology *t, const char *job,
                      const struct ft_tuple *flow, int64_t now_ms);

/* Looks at every port, at the close of a window. */
void ft_follower_look(struct ft_follower *f, const struct ft_follower_surroundings *around,
                      int64_t now_ms);

/* Emits the next plan, from *index 0 on; false: that was all. */
bool ft_follower_next(const struct ft_follower *f, uint32_t *index, const char *fabric,
                      const struct ft_emitter *emitter);

/* Emits the next port that counts of a plan that is shown, with its state; job: of this job alone,
 * NULL: of all. From *index 0 on; false: that was all. */
bool ft_follower_next_port(const struct ft_follower *f, uint32_t *index, const char *job,
                           const struct ft_emitter *emitter);

/* Plans of a stage. */
size_t ft_follower_count(const struct ft_follower *f, Fabrictrace__PlanStage stage);
struct ft_follower_stats ft_follower_stats(const struct ft_follower *f);

#endif

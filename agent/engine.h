// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_ENGINE_H
#define FT_AGENT_ENGINE_H
/*
 * The agent without its surroundings: capture, flow table, uplink and accounting tied together.
 * Live operation and replay both drive it, one by the loop's timer, one by the capture's time.
 * Owner: the caller, who keeps the uplink alive. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/capture/capture.h"
#include "agent/capture/flows.h"
#include "agent/capture/interfaces.h"
#include "agent/rdma/rdma.h"
#include "agent/report/missing.h"
#include "agent/report/uplink.h"
#include "agent/settings.h"
#include "lib/base/account.h"
#include "lib/base/clock.h"

struct ft_engine;
struct ft_jobs;

/* seed is the flow table's. NULL without memory. */
struct ft_engine *ft_engine_new(const struct ft_agent_settings *settings, uint64_t seed,
                                struct ft_uplink *uplink);
void ft_engine_free(struct ft_engine *engine);

/* The time that loss intervals count from. */
void ft_engine_start(struct ft_engine *engine, struct ft_mono now);

/* Names in flow reports the members of interfaces that are aggregates, from sysfs below root
 * ("/sys/class/net"): live operation only. -ENOMEM. */
int ft_engine_watch_aggregates(struct ft_engine *engine, const char *root);

/* What the agent may do, for its reports of what it sees: from now on one goes out with the next
 * tick and with every loss record. user is borrowed. Live operation only. */
void ft_engine_set_self(struct ft_engine *engine, const char *user, unsigned held, bool no_trace);

/* What is not seen now; see agent/report/missing.h. */
size_t ft_engine_missing(struct ft_engine *engine,
                         struct ft_missing missing_capabilities[FT_MISSING_MAX]);

/* Takes over new intervals; captures are the caller's to open anew. */
void ft_engine_configure(struct ft_engine *engine, const struct ft_agent_settings *settings);

struct ft_interfaces *ft_engine_interfaces(struct ft_engine *engine);
struct ft_flows *ft_engine_flows(struct ft_engine *engine);
struct ft_capture *ft_engine_capture(struct ft_engine *engine);

/* The training jobs that are followed, borrowed; NULL: none. Their last reports and their account
 * go out with the engine's. */
void ft_engine_set_jobs(struct ft_engine *engine, struct ft_jobs *jobs);

/* Takes over the RDMA source's part from now on: live operation only. -ENOMEM. changed is called
 * from the loop when there is a reason to call ft_engine_rdma_round(). */
int ft_engine_start_rdma(struct ft_engine *engine, const struct ft_agent_settings *settings,
                         uint64_t seed, struct ft_loop *loop, void (*changed)(void *arg),
                         void *arg);

/* Looks at the RDMA devices, due or not, and sends what is new. As ft_engine_tick(). */
int ft_engine_rdma_round(struct ft_engine *engine, struct ft_mono now, struct ft_wall wall);

/* NULL: not started. */
const struct ft_rdma *ft_engine_rdma(const struct ft_engine *engine);

/* Sends the reports that are due, and a loss record when its time has come. Returns what
 * ft_uplink_flush() returns. */
int ft_engine_tick(struct ft_engine *engine, struct ft_mono now, struct ft_wall wall);

/* Sends what is left and a last loss record. As above. */
int ft_engine_finish(struct ft_engine *engine, struct ft_mono now, struct ft_wall wall);

void ft_engine_account(struct ft_engine *engine, struct ft_account *account);

#endif

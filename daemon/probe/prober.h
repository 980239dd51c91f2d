// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PROBE_PROBER_H
#define FT_DAEMON_PROBE_PROBER_H
/*
 * Which elephants are to be probed, by whose agent and when (probe.elephants).
 *
 * Asked for are elephants of which neither samples nor anything else show every link, of hosts
 * whose agents offer it (probe.daemon). A probe may meet every switch of the flow's equal-cost
 * paths but the last: none of them is met by another flow's until the agent said what came of it,
 * and then for as long as a round lasts. So no switch hears more than one probe in
 * FT_PROBER_PAUSE_MS; what people ask of agents themselves comes on top. A flow is not asked for
 * again for a time. Whoever has the connections (daemon/service/probers.h) delivers the requests.
 * Capped: agents, flows, switches, flows looked at in a call. Pure; times are Unix milliseconds.
 * Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/join/join.h"
#include "proto/fabrictrace.pb-c.h"
#include "proto/probe_request.h"

#define FT_PROBER_NAME     128
#define FT_PROBER_AGENTS   16384
#define FT_PROBER_FLOWS    4096
#define FT_PROBER_SWITCHES 4096
#define FT_PROBER_PAUSE_MS 1200
#define FT_PROBER_BYTES_MAX                                                                        \
    (FT_PROBER_AGENTS * 320 + FT_PROBER_FLOWS * 96 + FT_PROBER_SWITCHES * 48)

struct ft_prober_config {
    double elephant; /* part of the link to the fabric */
    int64_t window_ms;
    int64_t rest_ms; /* a flow that was probed is not probed again before */
    uint64_t seed;
};

struct ft_prober_question {
    char source[FT_PROBER_NAME]; /* source id of the agent */
    char host[FT_PROBER_NAME];
    struct ft_probe_request request;
};

/* asked = answered + refused + lost + those that are waited for. */
struct ft_prober_stats {
    uint64_t asked;
    uint64_t answered, refused; /* the agent said what came of it, or why nothing was sent */
    uint64_t lost;              /* nothing came of it, or the agent was not connected */
    uint64_t no_agent;          /* looks at elephants whose hosts' agents do not offer it */
    uint64_t pending;
    size_t agents;
};

struct ft_prober;

/* NULL without memory. */
struct ft_prober *ft_prober_new(const struct ft_prober_config *config);
void ft_prober_free(struct ft_prober *p);

/* What an agent says of itself: whether it probes for its daemon. */
void ft_prober_agent(struct ft_prober *p, const Fabrictrace__HostStatus *status, int64_t now_ms);

/* The next question, looking at `looks` flows at most; false: none. */
bool ft_prober_next(struct ft_prober *p, const struct ft_join *join, int64_t now_ms, uint32_t looks,
                    struct ft_prober_question *question);

/* It could not be delivered. */
void ft_prober_undelivered(struct ft_prober *p, const struct ft_join *join,
                           const struct ft_prober_question *question, int64_t now_ms);

/* What an agent says of a probe that the daemon asked for; of others nothing happens. */
void ft_prober_take(struct ft_prober *p, const struct ft_join *join,
                    const Fabrictrace__Probe *probe, int64_t now_ms);

const struct ft_prober_stats *ft_prober_stats(const struct ft_prober *p);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PROBE_PROBES_H
#define FT_AGENT_PROBE_PROBES_H
/*
 * Probes flows of this host (agent/probe/course.h) for who asks: root, or the agent's own user, at
 * a Unix socket; and the daemon, where probe.daemon lets it. What answered goes to the daemon and
 * to who asked.
 *
 * Packets go out of raw sockets, which are opened before the agent drops its privileges: a UDP
 * socket of the kernel could neither choose the identification, by which answers are known, nor
 * share the port of a flow. One flow at a time, and a round of probes at most every 1.2 s: no
 * switch hears more of this host. Each request is logged: who, which flow, what came of it. Capped:
 * connections, flows that wait. Owner: the caller, who keeps loop, uplink and interfaces alive.
 * Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/capture/interfaces.h"
#include "agent/report/uplink.h"

struct ft_loop;
struct ft_probes;

/* The host's name and the interfaces are borrowed for good. */
struct ft_probes_config {
    const char *socket; /* NULL: none */
    const char *host;
    const struct ft_interfaces *interfaces;
    bool daemon_may_ask;
};

/* Flows asked for = refused + probed + those that wait. */
struct ft_probes_stats {
    uint64_t asked, refused, probed, waiting;
    uint64_t sent, failed;      /* packets; those that the kernel did not take */
    uint64_t answered, foreign; /* ICMP messages: to one of them, and others */
    uint64_t turned_away;       /* connections */
};

/* Listens. NULL with a complaint: -EPERM among others, without CAP_NET_RAW. */
struct ft_probes *ft_probes_new(struct ft_loop *loop, struct ft_uplink *uplink,
                                const struct ft_probes_config *config, char *error,
                                size_t error_bytes);
void ft_probes_free(struct ft_probes *probes);

/* The daemon asks. What comes of it, a refusal too, goes to it as a record. */
struct ft_probe_request;
void ft_probes_ask(struct ft_probes *probes, const struct ft_probe_request *request);

const struct ft_probes_stats *ft_probes_stats(const struct ft_probes *probes);

#endif

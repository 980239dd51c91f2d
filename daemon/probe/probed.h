// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PROBE_PROBED_H
#define FT_DAEMON_PROBE_PROBED_H
/*
 * What answered probes of a flow (fabrictrace.probe.v1, of an agent), as evidence for its path.
 *
 * An answer counts when its address is that of a switch that lies on an equal-cost path, as many
 * hops from the flow's source as the probe's TTL says. Where two neighbours on the way answered,
 * and one link or aggregate alone leads from one to the other, the flow leaves by it: a hint
 * (daemon/join/hints.h). Pure. Thread: one.
 */
#include <stdint.h>

#include "daemon/join/join.h"
#include "daemon/publish/emit.h"

struct ft_probe_list;

/* Switches of a path at most, as agents have it. */
#define FT_PROBED_SWITCHES 16

/* Answers and missing ones; used + unknown + strange + silent is what there was of both. The list
 * is the owner's of the rest. */
struct ft_probed {
    uint64_t flows;
    uint64_t used;
    uint64_t unknown;  /* of an address that no switch of the topology has */
    uint64_t strange;  /* of a switch that does not lie there on any path */
    uint64_t silent;   /* nothing answered */
    uint64_t parallel; /* pairs of neighbours with several links: the port is not known */
    uint64_t refused;  /* by the agent: nothing was sent */
    struct ft_probe_list *list;
};

/* Takes a record, publishes it with the names of switches and ports, and lists it. -EINVAL: it
 * cannot be. */
int ft_probed_take(struct ft_probed *p, const struct ft_join *join, const Fabrictrace__Probe *probe,
                   int64_t now_ms, const struct ft_emitter *emitter);

#endif

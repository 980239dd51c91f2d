// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_DISCOVERY_H
#define FT_DAEMON_DISCOVERY_DISCOVERY_H
/*
 * The topology from all that is known: the static file, the switches' reports (IF-MIB, LLDP-MIB)
 * and samples, which show the ports of hosts and which port leads to which. Where they disagree,
 * the earlier source in this list wins.
 *
 * A link that its switches report as down, or that neither side reports by LLDP any more, leaves
 * the topology, whoever shut it. It is a finding until it is back, was silent for an hour, or its
 * ports have other links: of another kind where an administrator shut down a port of it. Pure;
 * times come with the records, in Unix milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/discovery/attach.h"
#include "daemon/discovery/reports.h"
#include "daemon/publish/findings.h"
#include "lib/fabric/crossings.h"
#include "lib/fabric/topology.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_discovery;

struct ft_discovery_config {
    size_t switches_max;  /* reports kept */
    size_t addresses_max; /* attachments learnt; 0: none are */
    size_t ports_max;     /* of reports, links and ports down by sFlow, about; 0: a million */
};

/* NULL without memory. */
struct ft_discovery *ft_discovery_new(const struct ft_discovery_config *config);
void ft_discovery_free(struct ft_discovery *d);

/* A poll of a switch. As ft_reports_take(). */
int ft_discovery_report(struct ft_discovery *d, const Fabrictrace__SwitchReport *report,
                        int64_t now_ms);

/* Counters of a port, which may say that it is down. As ft_down_ports_take(). */
int ft_discovery_counters(struct ft_discovery *d, const Fabrictrace__PortCounters *poll,
                          int64_t now_ms);

/* A packet came in by a port without a link; a host said its name. As in daemon/discovery/attach.h.
 */
void ft_discovery_entered(struct ft_discovery *d, const struct ft_ip *address,
                          const struct ft_ip *agent, uint32_t ifindex, int64_t ms, bool twice);
void ft_discovery_named(struct ft_discovery *d, const struct ft_ip *address, const char *host,
                        int64_t now_ms);

/* Samples came from an exporter that belongs to no switch: a host may be at that one. For a while
 * new hosts of a switch that knows of no others are then taken to be only where the TTL of their
 * packets shows it. */
void ft_discovery_unknown_exporter(struct ft_discovery *d, int64_t now_ms);

/* Links found by samples, in terms of the switches of the present topology: borrowed for the builds
 * that follow. NULL: nothing. The file's topology is borrowed until the next call: where it says
 * what samples show, and nothing else is known, no build is due. */
void ft_discovery_see(struct ft_discovery *d, struct ft_crossings *crossings,
                      const struct ft_topology *present, const struct ft_topology *file);

/* They say something new: a build is due. */
void ft_discovery_touch(struct ft_discovery *d);

/* The clock that times come from was set back: nothing that is known is of later than this. First
 * addresses, in steps of so many from *index 0 on; true: there is more. Then all else. */
bool ft_discovery_set_back_step(struct ft_discovery *d, int64_t now_ms, uint32_t *index,
                                uint32_t items);
void ft_discovery_set_back(struct ft_discovery *d, int64_t now_ms);

/* Whether something was reported since the last build that may change the topology, and that build
 * is at least apart_ms ago. */
bool ft_discovery_due(struct ft_discovery *d, int64_t now_ms, int64_t apart_ms);

/* Builds it on the static topology, which is borrowed until it is over; every finding is gathered
 * anew. From the begin on until a step says that there is no more, nothing may be reported, and
 * what is asked for is of the build before. -ENOMEM: none was begun. */
int ft_discovery_begin(struct ft_discovery *d, const struct ft_topology *base, int64_t now_ms);
bool ft_discovery_building(const struct ft_discovery *d);

/* Continues; the work is counted in look-ups, about. True: there is more. After the last one *built
 * is the caller's, NULL when it cannot be built: a finding says why. */
bool ft_discovery_step(struct ft_discovery *d, uint64_t work, struct ft_topology **built);

/* All of that at once. */
struct ft_topology *ft_discovery_build(struct ft_discovery *d, const struct ft_topology *base,
                                       int64_t now_ms);

/* Whether a link of the fabric leads, or led, to a port; also one whose tiers are not known yet,
 * so that it is in no topology. */
bool ft_discovery_linked(const struct ft_discovery *d, const char *switch_name, const char *port);

/* How often the last build looked for a port, a device or what they share: grows with the size of
 * the fabric, not with its square. */
uint64_t ft_discovery_looks(const struct ft_discovery *discovery);

/* Of the last build. */
const struct ft_findings *ft_discovery_findings(const struct ft_discovery *d);

/* Whether the host on a port is known from samples alone. */
bool ft_discovery_learnt(const struct ft_discovery *d, const char *switch_name, const char *port);

/* Whether both ends of the link of a port hear each other by LLDP. */
bool ft_discovery_heard(const struct ft_discovery *d, const char *switch_name, const char *port);

/* Whether the link of a port, or a switch (port "") is known from samples alone. */
bool ft_discovery_sampled(const struct ft_discovery *d, const char *switch_name, const char *port);

/* What the last build found of a port's link, or of the attachment of a host. */
enum ft_link_state {
    FT_LINK_UP,        /* or not known to be down */
    FT_LINK_DOWN,      /* neither port is shut */
    FT_LINK_SHUT,      /* an administrator shut this port down */
    FT_LINK_PEER_SHUT, /* or the one at the other end alone */
};

/* Where a link that is not up leads, until the next call of something else. */
struct ft_link_down {
    const char *peer, *peer_port; /* NULL: a host's */
    int64_t since_ms;             /* 0: not known */
};

enum ft_link_state ft_discovery_state(const struct ft_discovery *d, const char *switch_name,
                                      const char *port, struct ft_link_down *out);

/* Whether an sFlow agent distinguishes ports that were shut from those that are down
 * (down_ports.h). */
bool ft_discovery_has_both(const struct ft_discovery *d, const struct ft_ip *agent);

/* Whether anything besides the file has ever spoken. */
bool ft_discovery_some(const struct ft_discovery *d);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_SURVEY_H
#define FT_DAEMON_DISCOVERY_SURVEY_H
/*
 * One look at everything that is known of the fabric: the static file, the switches' reports and
 * the attachments learnt from samples, brought into one list of switches, ports, links and NICs.
 *
 * survey_ends.c keeps the list of ports, survey.c gathers switches and ports, survey_strangers.c
 * switches that only their neighbours name, survey_links.c links, survey_hosts.c NICs,
 * survey_tiers.c tiers, survey_samples.c what the flows show that cross a link, survey_build.c
 * makes a topology of the result; discovery.c drives them. Where sources disagree the earlier one
 * wins (file, LLDP, samples), and a finding says so. Everything is borrowed from the sources and
 * good as long as they do not change. Private to discovery. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/discovery/attach.h"
#include "daemon/discovery/down_ports.h"
#include "daemon/discovery/ids.h"
#include "daemon/discovery/port_names.h"
#include "daemon/discovery/reports.h"
#include "daemon/publish/findings.h"
#include "lib/base/table.h"
#include "lib/base/task.h"
#include "lib/fabric/crossings.h"
#include "lib/fabric/topology.h"

#define FT_CLAIMS_MAX 2

enum ft_source {
    FT_SOURCE_NONE,
    FT_SOURCE_STATIC,
    FT_SOURCE_LLDP,
    FT_SOURCE_LEARNT,  /* a host, by its packets */
    FT_SOURCE_SAMPLES, /* a link, by the flows that cross it */
};

/* A switch. */
struct ft_node {
    char name[128];
    uint32_t base;                  /* in the static topology, FT_NONE */
    const struct ft_report *report; /* the newest, NULL */
    /* A neighbour's report of a switch that reports nothing itself; NULL for others. */
    const Fabrictrace__Neighbor *heard;
    bool stale;
    uint32_t first_end, end_count;
    enum ft_tier tier;
    uint32_t host_ends; /* ports with a NIC */
    bool sampled;       /* known from samples alone, by this agent address */
    struct ft_ip agent;
};

/* A port of a switch: one end of a link. */
struct ft_end {
    uint32_t node;
    uint32_t ifindex; /* 0: not known */
    uint64_t speed_bps;
    char name[128];
    uint32_t base; /* port in the static topology, FT_NONE */
    const Fabrictrace__PortInfo *info;
    const Fabrictrace__Neighbor *device; /* a neighbour that is not one of our switches */
    uint32_t claims[FT_CLAIMS_MAX];      /* ends that it hears */
    uint32_t claim_count, namers;
    bool hears_switch; /* one of ours, though perhaps not which port of it */
    bool aggregate;    /* others are its members, or the file says that it is one */
    bool in_fabric;    /* its aggregate hears a switch */
    bool was_linked;   /* as discovery remembers */
    bool had_host;     /* likewise: learnt from samples */
    uint32_t recalled; /* the other end of that link, FT_NONE */
    uint32_t lag;      /* the aggregate that it is a member of, FT_NONE */
    uint32_t members;  /* of an aggregate */
    uint32_t member;   /* the last of them, FT_NONE */
    bool lag_stated;   /* by the file */
    uint32_t link;     /* the other end, FT_NONE */
    enum ft_source link_source;
    uint32_t nic;   /* index of a found NIC, FT_NONE; those of the file are not found */
    bool word_down; /* according to sFlow, and SNMP has not contradicted since */
    /* Likewise, of one that is down: shut by its administrator, or enabled. */
    bool word_shut, word_enabled;
    bool down;
    bool host_down; /* and a host hangs there */
};

/* A NIC that the file does not attach. */
struct ft_found_nic {
    uint32_t base; /* NIC of the file that states no port, FT_NONE */
    char host[128];
    bool named; /* by its agent or LLDP, not by its address alone */
    uint32_t ends[2];
    uint32_t end_count;
    struct ft_ip addresses[32];
    uint32_t address_count;
    enum ft_source source;
    bool dropped;
};

/* What an SNMP agent answers may be as old as that. */
#define FT_SURVEY_CACHED_MS 5000

struct ft_survey {
    const struct ft_topology *base;
    const struct ft_reports *reports;
    const struct ft_down_ports *down_ports; /* NULL: nothing is said by sFlow */
    const struct ft_port_names *names;      /* likewise */
    const struct ft_attach *attach;         /* NULL: nothing is learnt */
    /* What samples say of cables, and the topology by whose switches they were taken; NULL: nothing
     * is known, none is yet. */
    struct ft_crossings *crossings;
    const struct ft_topology *present;
    struct ft_findings *findings;
    struct ft_ids *ids;
    struct ft_node *nodes;
    struct ft_end *ends;
    uint32_t node_count, end_count;
    size_t end_size;
    struct ft_table *numbered; /* ends by node and ifIndex */
    uint32_t *of_base;         /* ends by the port of the static topology */
    uint64_t looks;            /* ends that were looked at to find others */
    uint32_t *owner; /* node of each report, by its order; FT_NONE: that address never answered */
    struct ft_found_nic *nics;
    uint32_t nic_count;
    size_t nic_size;
    struct ft_crossing_found *sampled; /* ports that samples name, by agent and ifIndex */
    uint32_t sampled_count;
    uint32_t sampled_switches; /* that no other source reports */
    struct ft_task *task;      /* pauses when the work of a step is done; NULL: nobody waits */
    bool unknown_exporters;    /* some were heard of lately that belong to no switch */
    /* Hosts were left out, until it shows that they are there, or this time has come (INT64_MAX:
     * time alone does not show it); 0: none. */
    int64_t hosts_wait_ms;
    int64_t now_ms;
    /* Of a port that sFlow reported as down and SNMP soon after as up, or of a link that LLDP lost
     * and flows cross: what comes later decides. */
    bool disputed;
};

/* Something was looked up or looked at: in each loop over ports, rows, reports and addresses. */
static inline void ft_survey_pace(const struct ft_survey *s)
{
    ft_task_spend(s->task, 1);
}

/* Gathers switches and ports; the sources are set by the caller, the rest is zero. -ENOMEM. */
int ft_survey_gather(struct ft_survey *s);
void ft_survey_release(struct ft_survey *s);

/* A port of a switch, the last one added so far. NULL without memory. */
struct ft_end *ft_survey_add_end(struct ft_survey *s, uint32_t node, const char *name);

/* Makes and frees the index of ends. -ENOMEM. */
int ft_survey_index(struct ft_survey *s);
void ft_survey_unindex(struct ft_survey *s);

/* Sets an end's ifIndex; where two ends of a switch have the same, it belongs to the first. */
void ft_survey_number(struct ft_survey *s, uint32_t end, uint32_t ifindex);

/* The end of a switch with this ifIndex, FT_NONE. */
uint32_t ft_survey_end(struct ft_survey *s, uint32_t node, uint32_t ifindex);

/* The only member of an aggregate, as configured. FT_NONE: there are several, or none. */
uint32_t ft_survey_member(struct ft_survey *s, uint32_t aggregate);

/* Whether a link's ports are down, as their switches say. */
bool ft_survey_is_down(const struct ft_survey *s, uint32_t end);

/* Whether a port is down itself, as its switch says; and, of one that is, because its
 * administrator shut it down. */
bool ft_survey_says_down(const struct ft_survey *s, uint32_t end);
bool ft_survey_is_shut(const struct ft_survey *s, uint32_t end);

/* How long after the moment in which a link went down (by this host's clock) its other end may
 * still be to say that it was shut [ms]; 0: it has reported since, or never would say. */
int64_t ft_survey_may_say_shut(const struct ft_survey *s, uint32_t end, int64_t down_ms);

/* Whether a member of an aggregate is down for certain: its switch answers, and says so, or its
 * neighbour does. */
bool ft_survey_member_down(const struct ft_survey *s, uint32_t member);

/* The node that a neighbour row names: by its chassis, else by its name, else by an address of its
 * management. FT_IDS_NONE, FT_IDS_SEVERAL. */
uint32_t ft_survey_neighbour(const struct ft_survey *s, const Fabrictrace__Neighbor *row);

/* Switches that never answered, or that nobody polls, with the ports that their neighbours name.
 * Ends must know whether they were linked. -ENOMEM. */
int ft_survey_strangers(struct ft_survey *s);

/* A finding: nobody answers at a polled address, and no neighbour says who should. */
void ft_survey_note_nobody(struct ft_survey *s, const struct ft_report *r);

/* Links: those of the file, then what LLDP reports. */
void ft_survey_links(struct ft_survey *s);

/* Whether the two ends of a link hear each other by LLDP. */
bool ft_survey_is_heard(const struct ft_survey *s, uint32_t end);

/* What samples alone show: survey_samples.c. The first two belong to gathering; the last one adds
 * switches and links that no other source reports, once the others are known, and a finding where
 * samples contradict them. -ENOMEM. */
int ft_survey_read_samples(struct ft_survey *s);
int ft_survey_sampled_ports(struct ft_survey *s, uint32_t node);
int ft_survey_samples(struct ft_survey *s);

/* Whether an end of a link of before, which LLDP does not know any more, still is one: both ends
 * are up, and flows crossed from one to the other in the last seconds. Then it is a finding that
 * LLDP fails, at the first of them. */
bool ft_survey_crossed(struct ft_survey *s, uint32_t end);

/* Whether the TTL of packets shows that hosts, and no switch, are at a port of this agent. */
bool ft_survey_shows_hosts(const struct ft_survey *s, const struct ft_ip *agent, uint32_t ifindex);

/* NICs: learnt from samples, then as LLDP reports. -ENOMEM. */
int ft_survey_hosts(struct ft_survey *s);

/* Findings: ports of hosts that are down. Nothing leaves the topology: the host hangs there all the
 * same. */
void ft_survey_host_ports(struct ft_survey *s);

/* The tier of each switch; drops found NICs at switches that cannot be leaves. */
void ft_survey_tiers(struct ft_survey *s);

/* The topology of all that. Contradicting parts are left out and become findings. NULL when nothing
 * can be built. */
struct ft_topology *ft_survey_build(const struct ft_survey *s);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_DISCOVERY_IMPL_H
#define FT_DAEMON_DISCOVERY_DISCOVERY_IMPL_H
/* What the parts of discovery share: a build (discovery.c) and its links that are down (links.c).
 * Thread: one. */
#include "daemon/discovery/discovery.h"
#include "daemon/discovery/down_ports.h"
#include "daemon/discovery/port_names.h"
#include "daemon/discovery/survey.h"
#include "lib/base/table.h"
#include "lib/base/task.h"

/* A port by its names. */
struct ft_port_key {
    char switch_name[128];
    char port[128];
};

/* A link that was there, by either end. */
struct ft_known_link {
    struct ft_port_key port;
    struct ft_port_key peer;
    int64_t heard_ms; /* last build that found it, up or down */
    int64_t down_ms;  /* since when it is down; 0: it is up */
    int64_t shut_ms;  /* last build that found a port of it shut; 0: none did since it was up */
    uint32_t end;     /* the port now, if it is there in this build */
    uint64_t build;
};

/* What the last build found of a link by either end, or of a switch (port ""). */
struct ft_mark {
    struct ft_port_key port;
    bool heard;   /* both ends hear each other by LLDP */
    bool sampled; /* known from samples alone */
    enum ft_link_state state;
    int64_t since_ms; /* of that */
};

/* A build that is in progress. What others ask for meanwhile is that of the one before. */
struct ft_build {
    struct ft_survey survey;
    struct ft_task *task;
    struct ft_table *learnt, *marks;
    struct ft_findings findings;
    struct ft_topology *topology;
};

struct ft_discovery {
    struct ft_reports *reports;
    struct ft_down_ports *down_ports;
    struct ft_port_names *names;
    struct ft_attach *attach;
    struct ft_table *links;
    struct ft_table *learnt; /* ports whose hosts samples alone have shown */
    struct ft_table *marks;
    uint64_t looks;                 /* of the last build */
    struct ft_crossings *crossings; /* NULL: nobody looks */
    const struct ft_topology *present;
    struct ft_findings findings;
    size_t ports_max;
    bool dirty, some;
    bool disputed;         /* what the last build found of it, see survey.h */
    int64_t unproven_ms;   /* until when new hosts need proof */
    int64_t hosts_wait_ms; /* of the last build */
    int64_t built_ms;
    uint64_t builds;
    struct ft_build *build; /* NULL: none is in progress */
};

struct ft_port_key ft_port_key(const char *switch_name, const char *port);
struct ft_port_key ft_port_key_of(const struct ft_survey *s, uint32_t end);

/* Judges the links of the build that is in progress: those that are there, up or down as their
 * ports say, and those that were there and are not heard of any more. Then the ports of hosts. */
void ft_links_judge(struct ft_discovery *d);
void ft_links_judge_hosts(struct ft_discovery *d);

#endif

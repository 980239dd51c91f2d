// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_DEVICE_H
#define FT_SWITCHPOLL_SNMP_DEVICE_H
/*
 * What is known of one switch, built from the cells that its agent answered.
 *
 * A poll begins, hands in scalars and cells table by table, closes each table as complete or not,
 * and ends. A table that was not read completely leaves what was known before in place. Names of
 * LLDP ports are resolved here: an LLDP local port number is not an ifIndex unless the port id and
 * IF-MIB confirm it, and what cannot be resolved is counted and left out, never guessed.
 *
 * Pure: no network, clock or log. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/tuple.h"
#include "switchpoll/snmp/counters.h"
#include "switchpoll/snmp/identity.h"
#include "switchpoll/snmp/mib.h"
#include "switchpoll/snmp/walk.h"

#define FT_DEVICE_ADDRESSES_MAX 512
#define FT_DEVICE_PROBLEM_BYTES 400

struct ft_device_port {
    uint32_t ifindex;
    uint32_t poll; /* the last one that saw it in IF-MIB */
    bool missed;   /* by the last one that read IF-MIB completely, or so it seemed */
    char *name;    /* NULL: not answered, as all texts */
    char *alias;
    char *descr;
    char *mac;
    uint32_t type;      /* ifType; 0: not answered */
    uint64_t speed_bps; /* 0: not answered */
    bool has_discontinuity;
    uint32_t discontinuity_cs; /* ifCounterDiscontinuityTime */
    bool has_oper_up;
    bool oper_up;
    bool has_admin_up; /* enabled by its administrator, or not */
    bool admin_up;
    uint32_t lag_ifindex; /* 0: none */
    uint32_t lag_new;     /* being read */
    struct ft_switch_identity lldp;
    struct ft_snmp_counters counters;
    struct ft_wall counted; /* when the agent answered them */
    uint32_t pause_poll;    /* the last poll that saw it in dot3PauseTable */
    uint32_t pfc_poll;      /* and in ieee8021PfcIfTable */
};

/* A row of lldpLocPortTable. */
struct ft_device_local {
    uint32_t number;
    struct ft_switch_identity id;
    char *descr;
    uint32_t ifindex; /* 0: no port could be found for it */
};

struct ft_device_neighbor {
    uint32_t local;   /* lldpRemLocalPortNum */
    uint32_t remote;  /* lldpRemIndex */
    uint32_t mark;    /* lldpRemTimeMark */
    uint32_t ifindex; /* 0: unresolved */
    struct ft_switch_identity chassis;
    struct ft_switch_identity port;
    char *port_descr;
    char *name;
    bool has_forwards;
    bool forwards; /* it bridges or routes */
    struct ft_ip *addresses;
    size_t address_count;
};

struct ft_device_ports {
    struct ft_device_port *items; /* by ifindex */
    size_t count, size;
};

struct ft_device_locals {
    struct ft_device_local *items; /* by number */
    size_t count, size;
};

struct ft_device_neighbors {
    struct ft_device_neighbor *items; /* by local, remote and mark */
    size_t count, size;
};

struct ft_device_scalars {
    bool has_uptime;
    uint32_t uptime_cs; /* sysUpTime, hundredths of a second */
    bool has_if_change;
    uint32_t if_change_cs; /* ifTableLastChange */
    bool has_engine;
    uint64_t engine_boots;
    uint64_t engine_time_s;
};

/* Running totals, for the telemetry. */
struct ft_device_stats {
    uint64_t restarts;       /* of the agent */
    uint64_t resets;         /* counters that went back, which is not a wrap */
    uint64_t wraps;          /* 32-bit counters that began again */
    uint64_t frozen;         /* polls in which the agent answered stale counters */
    uint64_t unresolved;     /* now: LLDP neighbours whose local port is not known */
    uint64_t not_increasing; /* walks ended by object identifiers that do not increase */
    uint64_t truncated;      /* walks ended at the cap of rows */
};

/* Ports of all devices together, and how many they may have; the owner's of the devices. */
struct ft_device_room {
    size_t used, max;
};

struct ft_device_limits {
    size_t ports_max;
    struct ft_device_room *room; /* NULL: of each device alone */
    int64_t frozen_after_ns;     /* counters that have not moved for this long are called frozen */
    int64_t names_age_ns;        /* names are read again after this long in any case */
};

struct ft_device {
    struct ft_ip agent;
    struct ft_device_limits limits;
    char *name; /* sysName */
    struct ft_switch_identity chassis;
    bool has_lldp;
    struct ft_device_scalars scalars;
    struct ft_device_ports ports;
    struct ft_device_locals locals;
    struct ft_device_neighbors neighbors;
    struct ft_ip addresses[FT_DEVICE_ADDRESSES_MAX]; /* of IP-MIB */
    size_t address_count;
    struct ft_device_stats stats;

    uint32_t poll;
    bool polled;    /* once at least */
    bool restarted; /* found by this poll */
    bool names_due;
    bool counters_read; /* complete, by this poll */
    bool ports_away;    /* IF-MIB answered none in this poll, and did before */
    bool ports_missed;  /* or not all of them, and does not say that they changed */
    bool ports_changed; /* since the last poll, as the agent says, or may have */
    bool stale;         /* no counter moved since the last poll */
    bool frozen;        /* and none has for long */
    bool not_increasing;
    bool truncated;            /* this poll found more than the caps take */
    struct ft_mono begun;      /* of this poll */
    struct ft_mono moved;      /* when a counter last moved */
    struct ft_mono names_read; /* when names were last read completely */
    uint64_t moves;            /* of counters, in this poll */

    /* Being read. */
    struct ft_device_locals locals_new;
    struct ft_device_neighbors neighbors_new;
    size_t neighbor_rows; /* of lldpRemTable, when it was last read completely */
    bool neighbors_read;
    struct ft_ip addresses_new[FT_DEVICE_ADDRESSES_MAX];
    size_t address_new_count;
};

/* NULL without memory. */
struct ft_device *ft_device_new(const struct ft_ip *agent, const struct ft_device_limits *limits);
void ft_device_free(struct ft_device *d);

/* Begins a poll with the answer to ft_mib_system(). Notes a restart of the agent, and whether names
 * may have changed: the first poll, a restart, ifTableLastChange. */
void ft_device_begin(struct ft_device *d, const struct ft_snmp_varbind *varbinds, size_t count,
                     struct ft_mono now);

/* The answer to ft_mib_lldp(). */
void ft_device_lldp(struct ft_device *d, const struct ft_snmp_varbind *varbinds, size_t count);

/* Whether this poll found fewer neighbours than the one before. Then ft_mib_lldp() is to be asked
 * once more, with its answer (count 0: none) to the next function: an agent whose LLDP is served by
 * a sub-agent (AgentX, RFC 2741) answers as if there were no such table while that one is too slow.
 * Where LLDP is not answered any more the neighbours stay those of before. */
bool ft_device_lost_neighbors(const struct ft_device *d);
void ft_device_lldp_again(struct ft_device *d, const struct ft_snmp_varbind *varbinds,
                          size_t count);

/* A cell of a table; `when` the agent answered it. An unknown ifIndex makes names due. */
void ft_device_cell(struct ft_device *d, const struct ft_walk_cell *cell, struct ft_wall when);

/* The table was read completely, or not. An agent whose interfaces are served by a sub-agent
 * (AgentX, RFC 2741) answers as if it had no such table, or no more of it, while that one is away:
 * where it had ports before, what is known of them stays. Those that are missing among others go
 * when the next poll misses them, too, or at once where the agent says that its interfaces changed.
 */
void ft_device_close(struct ft_device *d, const struct ft_walk *walk, bool complete);

/* Whether this poll found neighbours, so that lldpLocPortTable is worth reading. It is read every
 * time: a restarted LLDP agent may number its ports anew. */
bool ft_device_has_new_neighbors(const struct ft_device *d);

/* Ends the poll: resolves ports, judges the counters. */
void ft_device_end(struct ft_device *d, struct ft_mono now);

/* What is not as it should be, as a person reads it; "" when all is well. */
void ft_device_problem(const struct ft_device *d, char problem[FT_DEVICE_PROBLEM_BYTES]);

#endif

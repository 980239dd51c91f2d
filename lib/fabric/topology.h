// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_TOPOLOGY_H
#define FT_FABRIC_TOPOLOGY_H
/*
 * The fabric as a graph: switches with ports, links between ports, hosts whose NICs hang on ports.
 *
 * Built once from a builder, then immutable; everything is named by small integers (ids), which
 * index arrays and are good for this topology only. A directed link is named by its egress port.
 * Ids are given in the order of adding, so equal input gives equal ids. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/diag.h"
#include "lib/base/tuple.h"

#define FT_NONE UINT32_MAX

/* A petabit a second; what is said to be faster is not known. */
#define FT_SPEED_MAX_BPS UINT64_C(1000000000000000)

/* One end of a hop is a port, or an aggregate of ports where that is all that is certain: the id of
 * the aggregate with this bit. Sightings of flows have 28 bits for one (evidence.h). */
#define FT_LAG_BIT 0x08000000u

static inline bool ft_is_lag(uint32_t end)
{
    return end != FT_NONE && (end & FT_LAG_BIT);
}

static inline bool ft_is_port(uint32_t end)
{
    return end < FT_LAG_BIT;
}

enum ft_tier {
    FT_TIER_UNKNOWN,
    FT_TIER_LEAF,
    FT_TIER_SPINE,
    FT_TIER_SUPERSPINE,
};

enum ft_direction {
    FT_DIRECTION_UP,   /* to the tier above */
    FT_DIRECTION_DOWN, /* to the tier below */
    FT_DIRECTION_HOST, /* to a NIC, or not a fabric link */
};

struct ft_switch {
    const char *name;
    enum ft_tier tier;
    bool tier_stated; /* else worked out */
    const struct ft_ip *addresses;
    uint32_t address_count;
    const uint32_t *ports; /* ids, in the order of adding */
    uint32_t port_count;
};

struct ft_port {
    const char *name;
    uint32_t switch_id;
    uint32_t ifindex;     /* 0: not known */
    uint64_t speed_bps;   /* 0: not known */
    uint32_t peer;        /* port at the other end of a fabric link, FT_NONE */
    uint32_t nic;         /* NIC that hangs here, FT_NONE */
    uint32_t lag_ifindex; /* the aggregate that means this port, as its only member; 0: none */
    uint32_t lag;         /* with FT_LAG_BIT: its aggregate, if that is complete; FT_NONE */
    uint32_t group;       /* ECMP group of the directed link that leaves here, FT_NONE */
    enum ft_direction direction;
};

/* Ports of a switch that are one to it (IEEE 802.1AX), and in the samples of many switches. */
struct ft_lag {
    const char *name;
    uint32_t switch_id;
    uint32_t ifindex; /* 0: not known */
    const uint32_t *members;
    uint32_t member_count;
    bool complete; /* each member leads somewhere; if not, samples that name it are of no use */
};

struct ft_nic {
    uint32_t host_id;
    uint32_t rail; /* FT_NONE: not stated */
    const struct ft_ip *addresses;
    uint32_t address_count;
    const uint32_t *attach; /* switch ports; two for dual ToR */
    uint32_t attach_count;
};

struct ft_host {
    const char *name;
    const uint32_t *nics;
    uint32_t nic_count;
};

/* Groups, as records name them: "leaf3/up", "leaf3/down". A link is its egress port. */
struct ft_group {
    const char *name;
    uint32_t switch_id;
    enum ft_tier tier;
    enum ft_direction direction;
    const uint32_t *links;
    uint32_t link_count;
};

struct ft_task;
struct ft_topology;
struct ft_topology_builder;

struct ft_topology_builder *ft_topology_builder_new(const char *fabric);
void ft_topology_builder_free(struct ft_topology_builder *b);

/* Where the next additions stand, for complaints: "file:line: key 'key': ...". All is copied; file
 * and key may be NULL. */
void ft_topology_at(struct ft_topology_builder *b, const char *file, unsigned line,
                    const char *key);

/* Counts what ft_topology_build() looks up, and pauses it when that is spent; borrowed until the
 * build is over. NULL, as at the start: nobody waits. */
void ft_topology_pace(struct ft_topology_builder *b, struct ft_task *task);

/* Speed of the ports that links and attachments from here on touch and that have none yet; 0, as at
 * the start: none. */
void ft_topology_speed(struct ft_topology_builder *b, uint64_t speed_bps);

/* Each addition complains into diag and returns FT_NONE, or -EINVAL, when it contradicts what is
 * there: a name twice, an address on two switches or NICs, a port linked twice, the same link
 * twice, a link of a switch to itself, a NIC on a fabric port, an ifIndex twice in a switch, an
 * unknown switch, two NICs on a port, a port in two aggregates. Names are 1 to 127 bytes. Adding a
 * port that is there completes it (ifIndex, speed). A switch for which ft_topology_add_port() was
 * called states all its ports: a link or NIC on another one is a complaint; for a switch that
 * states none, links and NICs add them.
 */
uint32_t ft_topology_add_switch(struct ft_topology_builder *b, const char *name, enum ft_tier tier,
                                struct ft_diag *diag);
int ft_topology_add_address(struct ft_topology_builder *b, uint32_t switch_id,
                            const struct ft_ip *address, struct ft_diag *diag);
uint32_t ft_topology_add_port(struct ft_topology_builder *b, uint32_t switch_id, const char *name,
                              uint32_t ifindex, uint64_t speed_bps, struct ft_diag *diag);
/* An aggregate, which samples may name by its ifIndex (0: not known) instead of a member's. A
 * sample of an aggregate with one member means that member. Members are ports that are there, in
 * one aggregate each. */
uint32_t ft_topology_add_lag(struct ft_topology_builder *b, uint32_t switch_id, const char *name,
                             uint32_t ifindex, struct ft_diag *diag);
int ft_topology_add_member(struct ft_topology_builder *b, uint32_t lag_id, const char *port,
                           struct ft_diag *diag);
int ft_topology_add_link(struct ft_topology_builder *b, const char *a, const char *a_port,
                         const char *z, const char *z_port, struct ft_diag *diag);
uint32_t ft_topology_add_host(struct ft_topology_builder *b, const char *name,
                              struct ft_diag *diag);
uint32_t ft_topology_add_nic(struct ft_topology_builder *b, uint32_t host_id, uint32_t rail,
                             struct ft_diag *diag);
int ft_topology_add_nic_address(struct ft_topology_builder *b, uint32_t nic_id,
                                const struct ft_ip *address, struct ft_diag *diag);
int ft_topology_attach(struct ft_topology_builder *b, uint32_t nic_id, const char *switch_name,
                       const char *port, struct ft_diag *diag);

/* Works out tiers that were not stated (distance from the hosts: a switch with a NIC is a leaf),
 * directions, groups and distances. NULL after a complaint (a link inside a tier is neither up nor
 * down; a tier that cannot be worked out; over 16,384 switches). The builder stays the caller's.
 * Memory: about 250 bytes a port, and 2 bytes for each pair of a switch with NICs and a switch. */
struct ft_topology *ft_topology_build(const struct ft_topology_builder *b, struct ft_diag *diag);
/* Another owner of it, who frees it as well: it never changes. Thread: one for all of them. */
struct ft_topology *ft_topology_keep(const struct ft_topology *t);
void ft_topology_free(struct ft_topology *t);

const char *ft_topology_fabric(const struct ft_topology *t);
uint32_t ft_topology_switches(const struct ft_topology *t);
uint32_t ft_topology_ports(const struct ft_topology *t);
uint32_t ft_topology_nics(const struct ft_topology *t);
uint32_t ft_topology_hosts(const struct ft_topology *t);
uint32_t ft_topology_groups(const struct ft_topology *t);
uint32_t ft_topology_lags(const struct ft_topology *t);

/* Ids must be below the counts. */
const struct ft_switch *ft_topology_switch(const struct ft_topology *t, uint32_t id);
const struct ft_port *ft_topology_port(const struct ft_topology *t, uint32_t id);
const struct ft_nic *ft_topology_nic(const struct ft_topology *t, uint32_t id);
const struct ft_host *ft_topology_host(const struct ft_topology *t, uint32_t id);
const struct ft_group *ft_topology_group(const struct ft_topology *t, uint32_t id);
/* By its id with or without FT_LAG_BIT. */
const struct ft_lag *ft_topology_lag(const struct ft_topology *t, uint32_t id);

/* FT_NONE when there is none. These are on the path of every observation: hash lookups. */
uint32_t ft_topology_find_switch(const struct ft_topology *t, const char *name);
uint32_t ft_topology_find_port(const struct ft_topology *t, uint32_t switch_id, const char *name);
uint32_t ft_topology_find_host(const struct ft_topology *t, const char *name);
uint32_t ft_topology_switch_at(const struct ft_topology *t, const struct ft_ip *address);
uint32_t ft_topology_port_at(const struct ft_topology *t, uint32_t switch_id, uint32_t ifindex);
uint32_t ft_topology_nic_at(const struct ft_topology *t, const struct ft_ip *address);

/* What an ifIndex in a sample means: a port, an aggregate (ft_is_lag()), FT_NONE. */
uint32_t ft_topology_end_at(const struct ft_topology *t, uint32_t switch_id, uint32_t ifindex);
/* An aggregate by its name, with its bit; FT_NONE. */
uint32_t ft_topology_find_lag(const struct ft_topology *t, uint32_t switch_id, const char *name);

/* The switch and name of an end that is not FT_NONE. */
uint32_t ft_topology_end_switch(const struct ft_topology *t, uint32_t end);
const char *ft_topology_end_name(const struct ft_topology *t, uint32_t end);

/* What is certain of an end that is either of two: the port or aggregate that they are or are in,
 * FT_NONE. */
uint32_t ft_topology_end_of_both(const struct ft_topology *t, uint32_t a, uint32_t b);

/* Whether two ends may be the same: equal, one is FT_NONE, or one an aggregate of the other. */
bool ft_topology_ends_agree(const struct ft_topology *t, uint32_t a, uint32_t b);

/* Whether an end is one of a link between switches; FT_NONE is not. */
bool ft_topology_is_fabric_end(const struct ft_topology *t, uint32_t end);

/* A switch's group of a direction, FT_NONE when it has none. */
uint32_t ft_topology_find_group(const struct ft_topology *t, uint32_t switch_id,
                                enum ft_direction direction);

/* Fabric links between two switches by the shortest path that goes up, then down. FT_NONE when
 * there is none, and when neither switch has NICs. */
uint32_t ft_topology_distance(const struct ft_topology *t, uint32_t from, uint32_t to);

/* The links of a group, by bit, behind which a NIC is nearest. The group has 64 at most. */
uint64_t ft_topology_nearest_links(const struct ft_topology *t, const struct ft_group *g,
                                   uint32_t nic);

/* "leaf", "up"; for records and group names. */
const char *ft_tier_name(enum ft_tier tier);
const char *ft_direction_name(enum ft_direction direction);

#endif

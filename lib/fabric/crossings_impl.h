// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_CROSSINGS_IMPL_H
#define FT_FABRIC_CROSSINGS_IMPL_H
/* The insides of the crossings, shared by crossings.c (what was seen) and crossings_judge.c (what
 * follows) only. */
#include "lib/base/table.h"
#include "lib/fabric/crossings.h"

#define FT_CROSSING_VOICES 8
#define FT_CROSSING_HOPS   6
#define FT_CROSSING_FAR    3
#define FT_CROSSING_NOBODY UINT32_MAX
/* So many packets from hosts show that hosts are at a port. */
#define FT_CROSSING_HOSTS_LEAST 3

/* By how much the TTL is lower at the second switch: by one between neighbours that sample at the
 * same point, by none or two where one of them does so after it has counted down. */
enum ft_crossing_step {
    FT_CROSSING_SAME,
    FT_CROSSING_NEXT,
    FT_CROSSING_NEXT_BUT_ONE,
    FT_CROSSING_NO_TTL, /* no TTL */
    FT_CROSSING_STEPS,
};

/* What flows say of one other port: those that leave here enter there, or the other way round. */
struct ft_crossing_voice {
    uint32_t port;   /* index of the other one */
    uint32_t serial; /* of its entry, since an index is used again */
    uint32_t votes[FT_CROSSING_STEPS];
    uint32_t far; /* flows that come back the same way are three TTLs apart: no neighbours */
    uint32_t samples;
    uint64_t flows, flows_before; /* a bit for each, by its hash: since the last ageing, before */
    int64_t first_ms, last_ms;
};

struct ft_crossing_entry {
    struct ft_crossing_port key;
    uint32_t node;
    uint32_t serial;
    uint32_t peer; /* index of the port that it is linked to, FT_CROSSING_NOBODY */
    uint32_t peer_serial;
    int peer_later;  /* 1: the peer's switch samples after the countdown, ours before it; or -1 */
    uint32_t agreed; /* likewise, as somebody said and flows agreed */
    uint32_t agreed_serial;
    uint32_t hosts; /* packets that came in from hosts, saturating */
    bool noted;     /* it is among the changed ones already */
    int64_t first_ms, last_ms;
    int64_t aged_ms;
    struct ft_crossing_voice out[FT_CROSSING_VOICES];
    struct ft_crossing_voice in[FT_CROSSING_VOICES];
};

/* Whether a switch samples packets before it counts their TTL down. */
enum ft_crossing_ttl {
    FT_CROSSING_TTL_UNKNOWN,
    FT_CROSSING_TTL_RECEIVED,
    FT_CROSSING_TTL_SENT,
};

struct ft_crossing_node {
    struct ft_ip agent;
    enum ft_crossing_ttl ttl;
    uint32_t ports;
    bool listed;                    /* in the inventory, when it was seen last */
    uint32_t fresh, fresh_less_one; /* first sightings with a TTL that hosts send, and one less */
    bool plain;                     /* it shows packets without a tunnel */
    int64_t uncounted_ms; /* when last it or a neighbour was seen not to count the TTL down, or 0 */
    int64_t last_ms;
};

/* A switch of a flow's path, while the flow keeps to its ports. */
struct ft_crossing_hop {
    uint32_t node;
    uint32_t in, out; /* indices of port entries, FT_CROSSING_NOBODY */
    int64_t since_ms, last_ms;
    uint8_t ttl; /* the highest: where a switch samples twice, the one as received */
};

struct ft_crossing_flow {
    uint64_t hash;
    int64_t last_ms;
    uint32_t hop_count;
    bool odd; /* its TTL is not the same all the time: what it says of hops is worth nothing */
    struct ft_crossing_hop hops[FT_CROSSING_HOPS];
};

/* Indices of ports of which something else was found since somebody asked. */
struct ft_crossing_changes {
    uint32_t *list;
    size_t count, size;
    bool all; /* there was no room for them */
};

struct ft_crossings {
    struct ft_crossings_config config;
    struct ft_table *flows, *ports, *nodes;
    size_t exporter_max, unlisted_max; /* ports of one switch, of all outside the inventory */
    size_t unlisted;                   /* ports that these have */
    bool inventory;
    uint32_t serial;
    uint32_t shift, phase; /* one flow of 1 << shift is looked at */
    uint32_t taken;        /* within the second */
    int64_t second;        /* the newest */
    int64_t turned_ms;     /* the phase, last */
    uint32_t at, flow_at;  /* where the next step begins */
    int64_t stepped_ms;
    bool news;
    struct ft_crossing_changes changes;
    struct ft_crossings_stats stats;
};

static inline uint32_t ft_crossing_votes(const struct ft_crossing_voice *v)
{
    return v->votes[0] + v->votes[1] + v->votes[2] + v->votes[3];
}

static inline struct ft_crossing_entry *ft_crossing_entry_at(const struct ft_crossings *x,
                                                             uint32_t index, uint32_t serial)
{
    struct ft_crossing_entry *p = index == FT_CROSSING_NOBODY ? NULL : ft_table_at(x->ports, index);

    return p && p->serial == serial ? p : NULL;
}

static inline struct ft_crossing_voice *ft_crossing_find(struct ft_crossing_voice *list,
                                                         uint32_t port, uint32_t serial)
{
    for (uint32_t i = 0; i < FT_CROSSING_VOICES; i++)
        if (list[i].port == port && list[i].serial == serial && ft_crossing_votes(&list[i]))
            return &list[i];
    return NULL;
}

/* Notes that something else is found of a port than before. */
void ft_crossings_note(struct ft_crossings *x, struct ft_crossing_entry *p);

/* Looks for the cable of a port, and whether what was found of it still holds. */
void ft_crossings_weigh(struct ft_crossings *x, struct ft_crossing_entry *p);

/* Whether flows go out by a port to one of another switch, and come back the same way. */
bool ft_crossing_leads_on(const struct ft_crossings *x, const struct ft_crossing_entry *p);

/* Works out at which point switches sample, from what hosts send and from cables. */
void ft_crossings_find_points(struct ft_crossings *x);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_EVIDENCE_H
#define FT_FABRIC_EVIDENCE_H
/*
 * What samples say about one flow's path, and the judgement of it.
 *
 * A sighting is "samples of this flow went through this switch from port `in` to port `out`", with
 * when and how many. Sightings are weighed against the equal-cost paths between the flow's ends:
 * one path left over is resolved, several are partial.
 *
 * Evidence belongs together in time. A flow may move between any two samples, so sightings speak
 * for one path only when they lie in one stretch:
 * - Those that contradict each other are on different paths. The newest that contradicts what came
 *   after it ends the stretch before; what is not newer than that is evidence of the past.
 * - Where other flows moved, or a link changed, older sightings are uncertain (lib/fabric/trust.h)
 *   until the flow is sampled there again.
 * - A path that was not known before needs sightings that overlap in time. Single samples that are
 *   no more than FT_APART_MS apart do as well, once no move was reported for the tolerance.
 * A path that is known stays known while new samples agree with it. Samples that come back again
 * and again to ports that they had left for others show several paths at once. Pure: times come in
 * with the samples.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/paths.h"
#include "lib/fabric/topology.h"
#include "lib/fabric/trust.h"

/* Spraying over 64 spines: 64 uplinks, 64 spines, 64 ways into the last leaf; and room. */
#define FT_SIGHTINGS_MAX 256
/* Three switches on a two-tier path. */
#define FT_SIGHTINGS_OWN 3

/* A longer pause between two samples at one hop begins a new stretch there. */
#define FT_STRETCH_GAP_MS 4000
/* How far apart two single samples may be that speak for one path. */
#define FT_APART_MS 2000
/* What is certain of a path that is not known completely was sampled so shortly before the newest
 * sample: the flow may have moved in between, and nothing else would show it. */
#define FT_NEAR_MS 1000

/* Switches that the topology does not know have this bit and a hash of their address below it. */
#define FT_SWITCH_UNKNOWN 0x80000000u

/* Sightings of a path that the flow has left carry the number of that path, from 1. */
#define FT_PRESENT   0
#define FT_PAST_NONE 15 /* of a path that was never known */

/* Unix milliseconds of the years up to 2248. */
#define FT_SIGHTING_MS_BITS     44
#define FT_SIGHTING_BYTES_MAX   ((UINT64_C(1) << 48) - 1)
#define FT_SIGHTING_SAMPLES_MAX ((1u << 28) - 1)
#define FT_LASTED_MAX_MS        ((1u << 24) - 1) /* more than four hours */

/* In the upper half of a number with FT_SWITCH_UNKNOWN, which stands in place of the switch. */
#define FT_SIGHTING_STRANGER (FT_SWITCH_UNKNOWN >> 16)

/* In place of a port or aggregate: the sample did not name one that we know. */
#define FT_SIGHTING_NO_END 0x0fffffffu

/* Each flow has some of these: 44 bytes, which alignment to 8 would make 48. */
struct ft_sighting {
    int64_t last_ms : FT_SIGHTING_MS_BITS;
    uint64_t past : 4;          /* FT_PRESENT; else it counts for the volume alone */
    uint64_t known_switch : 16; /* ft_sighting_switch() */
    uint64_t ends : 56;         /* ft_sighting_in() and, above 28 bits, ft_sighting_out() */
    uint64_t seconds : 8;       /* in which it had samples, ft_seconds_of() */
    uint32_t source; /* who took the samples: two sources may have sampled the same packets */
    uint32_t lasted_ms : 24; /* of the stretch that ends with last_ms; FT_LASTED_MAX_MS at most */
    uint32_t period : 8; /* packets that a sample stands for, ft_sighting_period(); 0: not known */
    uint32_t counts[2];  /* ft_sighting_samples(); above them ft_sighting_doubt(), _in_time() */
    uint32_t bytes_low[2];   /* of their bytes, ft_sighting_bytes() */
    uint16_t bytes_above[2]; /* the bits above those */
} __attribute__((packed, aligned(4)));

/* Its switch; of one that the topology does not know, which has no ports either, a number with
 * FT_SWITCH_UNKNOWN. */
static inline uint32_t ft_sighting_switch(const struct ft_sighting *s)
{
    uint32_t id = s->known_switch;

    return id & FT_SIGHTING_STRANGER ? id << 16 | (s->ends & 0xffff) : id;
}

static inline uint32_t ft_sighting_end(uint64_t kept)
{
    return kept == FT_SIGHTING_NO_END ? FT_NONE : (uint32_t)kept;
}

/* The ports or aggregates that samples came in and went out by; FT_NONE: they did not name one that
 * we know. */
static inline uint32_t ft_sighting_in(const struct ft_sighting *s)
{
    return s->known_switch & FT_SIGHTING_STRANGER ? FT_NONE
                                                  : ft_sighting_end(s->ends & FT_SIGHTING_NO_END);
}

static inline uint32_t ft_sighting_out(const struct ft_sighting *s)
{
    return ft_sighting_end(s->ends >> 28);
}

/* How a sighting keeps its hop: known_switch and ends. */
static inline uint16_t ft_sighting_switch_kept(uint32_t switch_id)
{
    return (uint16_t)(switch_id & FT_SWITCH_UNKNOWN ? switch_id >> 16 : switch_id);
}

static inline uint64_t ft_sighting_ends_kept(uint32_t switch_id, uint32_t in, uint32_t out)
{
    if (switch_id & FT_SWITCH_UNKNOWN)
        return (uint64_t)FT_SIGHTING_NO_END << 28 | (switch_id & 0xffff);
    return (uint64_t)(out & FT_SIGHTING_NO_END) << 28 | (in & FT_SIGHTING_NO_END);
}

static inline void ft_sighting_set_hop(struct ft_sighting *s, uint32_t switch_id, uint32_t in,
                                       uint32_t out)
{
    s->known_switch = ft_sighting_switch_kept(switch_id);
    s->ends = ft_sighting_ends_kept(switch_id, in, out);
}

static inline int64_t ft_sighting_first_ms(const struct ft_sighting *s)
{
    return s->last_ms - s->lasted_ms;
}

/* Seconds of a window (slot: its parity), FT_SECONDS_MAX at most: 4 bits each. */
#define FT_SECONDS_MAX 15u

static inline unsigned ft_seconds_of(uint8_t both, unsigned slot)
{
    return both >> (4 * slot) & FT_SECONDS_MAX;
}

static inline uint8_t ft_seconds_plus(uint8_t both, unsigned slot)
{
    return ft_seconds_of(both, slot) < FT_SECONDS_MAX ? (uint8_t)(both + (1u << (4 * slot))) : both;
}

static inline uint8_t ft_seconds_without(uint8_t both, unsigned slot)
{
    return (uint8_t)(both & ~(FT_SECONDS_MAX << (4 * slot)));
}

/* Samples in a window (slot: its parity), FT_SIGHTING_SAMPLES_MAX at most. */
static inline uint32_t ft_sighting_samples(const struct ft_sighting *s, unsigned slot)
{
    return s->counts[slot] & FT_SIGHTING_SAMPLES_MAX;
}

static inline void ft_sighting_set_samples(struct ft_sighting *s, unsigned slot, uint32_t samples)
{
    s->counts[slot] = (s->counts[slot] & ~FT_SIGHTING_SAMPLES_MAX) |
                      (samples < FT_SIGHTING_SAMPLES_MAX ? samples : FT_SIGHTING_SAMPLES_MAX);
}

static inline void ft_sighting_add_samples(struct ft_sighting *s, unsigned slot, uint32_t samples)
{
    uint32_t room = FT_SIGHTING_SAMPLES_MAX - ft_sighting_samples(s, slot);

    s->counts[slot] += samples < room ? samples : room;
}

#define FT_SIGHTING_DOUBT_MAX 127
#define FT_SIGHTING_IN_TIME   0x80000000u /* of counts[1] */

/* How far the closed windows speak for it that the switch sees a part of the flow alone, in the
 * units of lib/fabric/volume.h: FT_SIGHTING_DOUBT_MAX at most. */
static inline uint8_t ft_sighting_doubt(const struct ft_sighting *s)
{
    return (uint8_t)(s->counts[0] >> 28 | (s->counts[1] & ~FT_SIGHTING_IN_TIME) >> 28 << 4);
}

static inline void ft_sighting_set_doubt(struct ft_sighting *s, uint8_t doubt)
{
    s->counts[0] = ft_sighting_samples(s, 0) | (uint32_t)(doubt & 15u) << 28;
    s->counts[1] = ft_sighting_samples(s, 1) | (s->counts[1] & FT_SIGHTING_IN_TIME) |
                   (uint32_t)(doubt >> 4 & 7u) << 28;
}

/* Whether its first sample is early enough for its switch to count in the next window that is
 * closed, where it may have no samples. */
static inline bool ft_sighting_in_time(const struct ft_sighting *s)
{
    return s->counts[1] & FT_SIGHTING_IN_TIME;
}

static inline void ft_sighting_set_in_time(struct ft_sighting *s)
{
    s->counts[1] |= FT_SIGHTING_IN_TIME;
}

/* How many packets a sample of these stands for as a sighting keeps it, to 6 %: the power of two,
 * and 3 bits. 0: nobody says. */
static inline unsigned ft_sighting_period_kept(uint64_t packets, uint32_t samples)
{
    uint64_t period = samples == 1 ? packets : samples ? packets / samples : 0;
    unsigned power;

    if (period == 0)
        return 0;
    if (period > UINT32_MAX / 2)
        period = UINT32_MAX / 2;
    power = 31u - (unsigned)__builtin_clz((uint32_t)period);
    return (1 + (power << 3) + (unsigned)((period << 3 >> power) & 7)) & 255u;
}

static inline void ft_sighting_note_period(struct ft_sighting *s, uint64_t packets,
                                           uint32_t samples)
{
    unsigned kept = ft_sighting_period_kept(packets, samples);

    if (kept)
        s->period = kept & 255u;
}

static inline double ft_sighting_period(const struct ft_sighting *s)
{
    unsigned kept = s->period - 1u;

    return s->period ? (8.5 + (kept & 7)) / 8 * (double)(1u << (kept >> 3)) : 0;
}

/* Sum of sampling rate x frame length in a window (slot: its parity), at most
 * FT_SIGHTING_BYTES_MAX: 225 Tbit/s for ten seconds. */
static inline uint64_t ft_sighting_bytes(const struct ft_sighting *s, unsigned slot)
{
    return (uint64_t)s->bytes_above[slot] << 32 | s->bytes_low[slot];
}

static inline void ft_sighting_set_bytes(struct ft_sighting *s, unsigned slot, uint64_t bytes)
{
    if (bytes > FT_SIGHTING_BYTES_MAX)
        bytes = FT_SIGHTING_BYTES_MAX;
    s->bytes_low[slot] = (uint32_t)bytes;
    s->bytes_above[slot] = (uint16_t)(bytes >> 32);
}

static inline void ft_sighting_add_bytes(struct ft_sighting *s, unsigned slot, uint64_t bytes)
{
    uint64_t room = FT_SIGHTING_BYTES_MAX - ft_sighting_bytes(s, slot);

    ft_sighting_set_bytes(s, slot, ft_sighting_bytes(s, slot) + (bytes < room ? bytes : room));
}

/* Adds samples to those of a window (slot: its parity). Where they stand for more packets each than
 * those before, or for less, so many are kept as would have the error of both together at one rate:
 * the sum of rate x rate, not the number of samples, says how far it is off. */
void ft_sighting_add(struct ft_sighting *s, unsigned slot, uint64_t packets, uint32_t samples,
                     uint64_t bytes);

/* returns, stays: how often samples came back to a hop that they had left for another, and in how
 * many seconds they did not; recently. */
struct ft_evidence {
    union {
        struct ft_sighting own[FT_SIGHTINGS_OWN];
        struct ft_sighting *list; /* heap, where size is not 0 */
    } __attribute__((packed, aligned(4)));
    uint32_t count : 9;
    uint32_t size : 9; /* 0: own */
    uint32_t returns : 7;
    uint32_t stays : 7;
};

/* Samples of a flow at a switch, as folded. */
struct ft_seen {
    uint32_t switch_id;
    uint32_t in, out, source; /* as of a sighting; no ports of a switch that is not known */
    int64_t first_ms, last_ms;
    bool no_room; /* no memory may be taken for it */
};

enum ft_path_state {
    FT_PATH_UNRESOLVED,
    FT_PATH_RESOLVED,
    FT_PATH_PARTIAL,
    FT_PATH_MULTIPATH,
};

enum ft_reason {
    FT_REASON_NONE,
    FT_REASON_NO_SAMPLES,
    FT_REASON_UNKNOWN_SOURCE, /* the topology has no NIC with this address */
    FT_REASON_UNKNOWN_DESTINATION,
    FT_REASON_UNKNOWN_SWITCH,   /* only exporters that the topology does not know saw it */
    FT_REASON_NO_ROUTE,         /* the topology has no way between the ends */
    FT_REASON_OFF_PATH,         /* seen at a switch that no equal-cost path crosses */
    FT_REASON_AMBIGUOUS,        /* partial: samples leave several paths, or are too far apart */
    FT_REASON_CHANGING,         /* partial: a change of path is not complete */
    FT_REASON_UNCONFIRMED,      /* partial: a link of the only path left is not confirmed */
    FT_REASON_FEW_SAMPLES,      /* partial: flows are sprayed here, and few samples show one path */
    FT_REASON_SEVERAL_NETWORKS, /* flows of several networks have its 5-tuple */
};

struct ft_evidence_policy {
    int64_t hold_down_ms; /* the new path must have been seen alone for this long */
    int64_t tolerance_ms; /* how much later than others an exporter may report */
};

/* What a flow is judged by. */
struct ft_judging {
    const struct ft_topology *t;
    const struct ft_trust *trust; /* NULL: nothing is known of links and other flows */
    bool verify;                  /* the topology is not trusted until samples confirm it */
    struct ft_evidence_policy policy;
    int64_t window_ms;           /* of those whose samples count; 0: not known */
    uint32_t src_nic, dst_nic;   /* FT_NONE: an end not known */
    const struct ft_path *known; /* the path so far; NULL, or without hops: none is known */
    int64_t known_since_ms;
    bool is_known;    /* it has been the path without interruption */
    bool several;     /* the evidence is of several flows */
    int64_t first_ms; /* when the flow was first seen */
    int64_t now_ms;
};

struct ft_judgement {
    enum ft_path_state state;
    enum ft_reason reason;
    uint64_t candidates;
    bool contradicted;            /* samples are of several paths */
    bool sprayed;                 /* of these at once; partial where links are not confirmed */
    bool moved;                   /* resolved: from another path, one after the other */
    bool among_sprayed;           /* other flows here are sprayed */
    bool past[FT_SIGHTINGS_MAX];  /* evidence of an earlier path, by index */
    bool stray[FT_SIGHTINGS_MAX]; /* evidence of no path */
    int64_t stray_ms;             /* its newest sample; 0: there is none */
    int64_t since_ms;             /* resolved: known to be this path from then on */
    int64_t left_ms;              /* contradicted: the newest sample that says so */
    /* Resolved: complete; partial: the aggregate where candidates differ in its members alone, else
     * FT_NONE where they differ. */
    struct ft_path path;
    uint32_t switches[FT_PATH_HOPS_MAX]; /* partial: FT_NONE where candidates differ */
};

/* Starts empty; the memory of *ev is the caller's, ft_evidence_free() releases what it holds. */
void ft_evidence_init(struct ft_evidence *ev);
void ft_evidence_free(struct ft_evidence *ev);

/* Adds the times of samples to the sighting of their hop, made when there is none, and counts
 * whether the flow came back there. *before_ms: the sighting's last sample until then, INT64_MIN
 * where it is made. doubt_ms: samples elsewhere that are older than this do not make it one that
 * came back, since other flows moved too. NULL when there are too many or memory is short. Good
 * until the next call. */
struct ft_sighting *ft_evidence_see(struct ft_evidence *ev, const struct ft_seen *seen,
                                    int64_t uncertain_ms, int64_t *before_ms);

/* After ft_evidence_see(): whether its source sampled the flow elsewhere in that switch since the
 * sighting's last sample before, before_ms. */
bool ft_evidence_came_back(const struct ft_evidence *ev, const struct ft_sighting *s,
                           int64_t before_ms);

/* Drops sightings last seen before `before_ms`, and past ones without volume in the two open
 * windows; true when evidence of the present went. */
bool ft_evidence_forget(struct ft_evidence *ev, int64_t before_ms);

/* Weighs the evidence, and changes nothing. */
void ft_evidence_judge(const struct ft_evidence *ev, const struct ft_judging *by,
                       struct ft_judgement *out);

/* A path that was left, and the number that sightings of it get. */
struct ft_left {
    const struct ft_topology *t;
    const struct ft_path *path;
    uint8_t number;
};

/* Files what a judgement found to be past under the number of the path that was left, or of none
 * where it is not of it (left NULL: of none), and forgets the way of what is on no path: stretches
 * that continue from before it begin after it. */
void ft_evidence_apply(struct ft_evidence *ev, const struct ft_judgement *judgement,
                       const struct ft_left *left);

/* After ft_evidence_see(): whether the flow came back from other switches, which samples of one
 * source cannot decide; counted then. */
bool ft_evidence_recount(struct ft_evidence *ev, const struct ft_judging *by,
                         const struct ft_sighting *s, int64_t before_ms, int64_t uncertain_ms);

/* The equal-cost set that a flow on this path was sent by at a hop: the egress ports that lead on
 * to its destination. Returns how many were stored. */
size_t ft_evidence_choice(const struct ft_judging *by, const struct ft_path *path, uint32_t stage,
                          uint32_t *ports, size_t max);

/* The first stage of the known path at which the flow may have left it, and the last, as the
 * present evidence shows; false when that agrees with the path. */
bool ft_evidence_left_at(const struct ft_evidence *ev, const struct ft_judging *by, uint32_t *first,
                         uint32_t *last);

/* Recent samples by path, for the volume of a window with a change of path in it: of one past path,
 * or of the present one without what began before since_ms; at the switch with most. */
uint64_t ft_evidence_samples_of(const struct ft_evidence *ev, uint8_t past, int64_t since_ms,
                                unsigned slot);

/* When samples last attested each link of a path, of those that they attest: the first and the last
 * of these moments; INT64_MAX and INT64_MIN where they attest none. */
void ft_evidence_attested(const struct ft_evidence *ev, const struct ft_topology *t,
                          const struct ft_path *path, int64_t *first_ms, int64_t *last_ms);

/* The links of a path, bits by hop, that samples of a window show the flow on: those sampled at one
 * of their ends; and where samples at neither end name links, those that all paths share which the
 * samples allow. past: that of the sightings. */
uint32_t ft_evidence_links(const struct ft_evidence *ev, const struct ft_judging *by,
                           const struct ft_path *path, uint8_t past, unsigned slot);

/* The newest moment at which samples were enough to determine the path, which the evidence allows
 * alone; where those that determine it lie apart, when the first of them was seen last: slower. */
int64_t ft_evidence_certain_ms(const struct ft_evidence *ev, const struct ft_judging *by);

/* Whether present evidence began at a moment, or after it. */
bool ft_evidence_begun_since(const struct ft_evidence *ev, int64_t ms);

/* Whether samples on a path continue, without a pause, from before a moment to after it;
 * samples_min of them or more in the moment's window. */
bool ft_evidence_covers(const struct ft_evidence *ev, const struct ft_topology *t,
                        const struct ft_path *path, int64_t ms, unsigned slot,
                        uint32_t samples_min);

/* Whether a window has samples, and all of them agree with a path. */
bool ft_evidence_agrees(const struct ft_evidence *ev, const struct ft_topology *t,
                        const struct ft_path *path, unsigned slot);

/* Whether a window has samples of the present that are not of a path. */
bool ft_evidence_differs(const struct ft_evidence *ev, const struct ft_topology *t,
                         const struct ft_path *path, unsigned slot);

/* A path of a multipath flow and its part of the recent samples. Paths that only members of
 * aggregates distinguish, without samples, are one path with the aggregates as its ends. */
struct ft_path_share {
    struct ft_path path;
    double share;
};

/* The open windows whose samples count. */
enum ft_slots {
    FT_SLOT_EVEN = 1 << 0,
    FT_SLOT_ODD = 1 << 1,
    FT_SLOTS_BOTH = FT_SLOT_EVEN | FT_SLOT_ODD,
};

static inline enum ft_slots ft_slot_of(uint32_t window)
{
    return window & 1 ? FT_SLOT_ODD : FT_SLOT_EVEN;
}

/* The paths that a multipath flow was seen on; shares add up to 1. Of more paths than `max`, or
 * than are compared, those by one link are one path: of the switch where most samples distinguish
 * them, with FT_NONE for the ends beyond its links. Returns how many were stored: 0 where samples
 * are of fewer than two, or do not name these links. */
size_t ft_evidence_shares(const struct ft_evidence *ev, const struct ft_topology *t,
                          uint32_t src_nic, uint32_t dst_nic, enum ft_slots slots,
                          struct ft_path_share *shares, size_t max);

/* Recent samples at a hop's switch, and how many of them took the hop, or may have. */
void ft_evidence_at_hop(const struct ft_evidence *ev, const struct ft_topology *t,
                        const struct ft_hop *hop, uint64_t *here, uint64_t *by_hop);

/* Whether a switch above the leaves saw the flow. */
bool ft_evidence_above_leaf(const struct ft_evidence *ev, const struct ft_topology *t);

const char *ft_reason_name(enum ft_reason reason);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_JOIN_H
#define FT_DAEMON_JOIN_JOIN_H
/*
 * The join: what switches and hosts say of a flow, brought together on its 5-tuple.
 *
 * Observations and host reports come in, in any order; each flow keeps its evidence, its volume in
 * the open windows and the present judgement of its path. Two windows are open at a time,
 * distinguished by the parity of their number (Unix time / window length), so one can be closed
 * slice by slice while the next fills. Pure: no I/O, no clock; times come with the data, in Unix
 * milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "lib/fabric/dispersion.h"
#include "lib/fabric/evidence.h"
#include "lib/fabric/numbers.h"
#include "lib/fabric/topology.h"

enum ft_role {
    FT_ROLE_UNKNOWN,
    FT_ROLE_DATA,
    FT_ROLE_ACK,
    FT_ROLE_CNP, /* congestion notifications alone */
};

/* Acknowledgements and notifications are small: their flows count nowhere. */
static inline bool ft_role_answers(enum ft_role role)
{
    return role == FT_ROLE_ACK || role == FT_ROLE_CNP;
}

/* A record ends in exactly one of these. */
enum ft_join_result {
    FT_JOIN_OK,
    FT_JOIN_LATE,       /* its window is closed */
    FT_JOIN_AHEAD,      /* its window is not open yet: the sender's clock is ahead */
    FT_JOIN_TABLE_FULL, /* no room for another flow */
    FT_JOIN_SPREAD,     /* the flow was seen at too many switches and ports to remember another */
    FT_JOIN_RESULTS,
};

/* What few switches report of the samples. */
struct ft_observed_rest {
    struct ft_tuple outer; /* of the tunnel around the flow */
    bool has_outer, has_queue, has_transit;
    uint32_t queue_max_bytes; /* deepest output queue that a sample met */
    uint32_t transit_max_ns;  /* longest time of a sample in the switch */
};

/* One folded observation, as plain numbers. */
struct ft_observation {
    struct ft_tuple tuple;
    struct ft_ip agent;
    uint32_t in_ifindex; /* 0: not known */
    uint32_t out_ifindex;
    uint32_t source;  /* who took the samples, as in struct ft_sighting */
    uint32_t network; /* that the tunnel names (VNI), and 1; 0: none */
    uint8_t point;    /* where in the switch, enum of fabrictrace.proto */
    bool source_routed;
    int64_t start_ms;     /* of the interval that they were added up over; 0: not known */
    uint32_t interval_ms; /* likewise, its length */
    int64_t first_ms;
    int64_t last_ms;
    uint32_t samples;
    uint32_t ce_samples;
    uint32_t data_samples;
    uint32_t ack_samples;
    uint32_t cnp_samples; /* of them */
    uint64_t packets;     /* that the samples stand for; 0: nobody says */
    uint64_t bytes;
    const struct ft_observed_rest *rest; /* borrowed for the call; NULL: nothing */
    const struct ft_numbered *numbered;  /* likewise */
};

/* What a host said of a flow of its own. Texts are borrowed for the call. */
struct ft_host_report {
    struct ft_tuple tuple;
    int64_t time_ms; /* end of the interval */
    int64_t interval_ms;
    bool sending; /* the host is the flow's source */
    const char *host;
    uint64_t bytes;
    uint64_t data_packets;
    uint64_t ack_packets;
    uint64_t cnp_packets;         /* of them */
    uint32_t qp_local, qp_remote; /* of the flow's source and destination; FT_NONE: not known */
    uint32_t pid;                 /* 0: not known */
    const char *comm;             /* NULL: not known */
    const char *job;
    uint32_t tuple_source; /* enum of fabrictrace.proto */
    bool ended;
    bool source_routed;
    /* Of a flow whose other end the daemon found, see daemon/pairing/pairing.h. */
    uint32_t paired_by;                  /* enum ft_paired_by; 0: the host itself said all this */
    const char *peer_host, *peer_device; /* NULL: not known */
    const char *pair_comm;               /* communicator inside which it was found, NULL */
};

/* What the rate of a flow rests on. */
enum ft_rate_by {
    FT_RATE_SAMPLES,
    FT_RATE_HOST,
    FT_RATE_PSN,
};

/* The packet numbers of a flow in the open windows, and what those of a closed one said. */
struct ft_flow_numbers {
    struct ft_numbers slots[2];  /* by parity of the window */
    bool goes_on[2];             /* of each: it follows on the window before */
    struct ft_numbers_sent sent; /* where bytes_by is FT_RATE_PSN */
    uint32_t samples, starts, back, naks, rnrs, no_credits;
    uint32_t read_window; /* the newest in which its samples show that it READs; 0: none */
    /* A bit for each of the last windows up to marked_window: its samples were enough, and showed
     * that it sent packets again; those of its answers were NAKs. */
    uint32_t marked_window;
    uint8_t numbered, again, missed;
};

/* The host's side of a flow, kept for the flows that a host reported. */
struct ft_flow_host {
    const char *src_host; /* interned; NULL: that end did not report */
    const char *dst_host;
    const char *comm;
    const char *job;
    uint32_t qp_local, qp_remote;
    uint32_t pid;
    uint32_t tuple_source;
    uint8_t paired_by;       /* the daemon found the other end; 0: no */
    bool shown;              /* that was published */
    bool withdrawn;          /* and is not so */
    bool reported;           /* a host itself reported the flow */
    const char *peer_device; /* of the one that receives; interned */
    const char *pair_comm;   /* interned */
    int64_t sent_until_ms;   /* end of the last interval reported by the source; 0: none */
    int64_t listed_ms;       /* when a host last said that the flow is there */
    int64_t other_job_ms;    /* when its host last gave it to another job; 0: never */
    uint64_t sent_bytes[2];
};

/* The tunnel around a flow. */
struct ft_flow_tunnel {
    struct ft_tuple outer; /* of the newest sample in one */
    int64_t last_ms;       /* when that was taken */
    int64_t other_ms;      /* likewise the newest sample that says otherwise; 0: none does */
    bool learnt;           /* as of the flow, with this header */
    uint8_t learnt_in;     /* likewise */
};

/* The networks that samples name, as in struct ft_observation, see flow_networks.h. */
struct ft_flow_networks {
    uint32_t network, other;   /* of the newest sample, and of the newest that names another one */
    int64_t last_ms, other_ms; /* when they were taken; 0: there was no other */
    bool several;              /* so that nobody knows whose samples are whose */
};

/* An interval of which samples come in. */
struct ft_flow_interval {
    uint64_t links; /* with samples, by their position in the group */
    uint64_t samples;
    uint32_t start; /* the low bits of its Unix milliseconds */
    bool odd;       /* of the window */
};

/* Several pollers may report, one some seconds after the other. */
#define FT_FLOW_INTERVALS 4

/* How samples keep together, see flow_clumps.h. */
struct ft_flow_clumps {
    struct ft_clumps slots[2]; /* by parity of the window */
    struct ft_flow_interval intervals[FT_FLOW_INTERVALS];
    uint32_t group;   /* FT_NONE: none any more */
    uint32_t in;      /* where own: the port that the samples came in by */
    uint32_t begun;   /* as of an interval: those after it count */
    uint32_t window;  /* the newest that touched it */
    uint8_t point;    /* of ft_observation */
    bool own;         /* samples of the group's switch, else of the other ends of its links */
    bool fresh;       /* none came since */
    bool repeated[2]; /* samples of a link and an interval came twice */
};

/* What some flows have, in one allocation. */
enum ft_flow_part {
    FT_FLOW_HOST,     /* a host reported it */
    FT_FLOW_TUNNEL,   /* the last one that it was seen in */
    FT_FLOW_MOVES,    /* paths that it left in the open windows */
    FT_FLOW_NUMBERS,  /* none also where there is no memory for them */
    FT_FLOW_PATH,     /* the last resolved one, where its links do not say all of it */
    FT_FLOW_CLUMPS,   /* it is sprayed */
    FT_FLOW_NETWORKS, /* samples named one */
    FT_FLOW_PARTS,
};

/* Begins that allocation. In units of 8 bytes, from here on: where a part is, 0: there is none; and
 * the end of all. */
#define FT_FLOW_PART_UNIT 8
struct ft_flow_parts {
    uint8_t at[FT_FLOW_PARTS];
    uint8_t end;
} __attribute__((aligned(FT_FLOW_PART_UNIT)));

/* The last resolved path by its links, see flow_path.h. */
struct ft_flow_path {
    uint32_t hop_count; /* 0: none yet */
    uint32_t in;        /* of the first hop */
    struct {
        uint32_t out;
    } hops[FT_PATH_HOPS_MAX];
};

/* Moments in an entry are Unix milliseconds of the years up to 2248. */
#define FT_FLOW_MS_BITS 44

/* A moment as an entry can have it: before all others is as early as there is. */
static inline int64_t ft_flow_moment(int64_t ms)
{
    const int64_t earliest = -(INT64_C(1) << (FT_FLOW_MS_BITS - 1));

    return ms < earliest ? earliest : ms;
}

/* 272 bytes: what is smaller than its word stands in the bits that a moment leaves. */
struct ft_flow {
    struct ft_tuple tuple;
    struct ft_evidence evidence;
    struct ft_flow_parts *parts; /* NULL: none */
    int64_t first_ms : FT_FLOW_MS_BITS;
    uint64_t candidates : 20;
    int64_t last_ms : FT_FLOW_MS_BITS;
    uint64_t lag_ms : 9; /* of who took the samples, as far as it is known */
    uint64_t state : 3;  /* enum ft_path_state */
    uint64_t reason : 5; /* enum ft_reason */
    uint64_t role : 3;   /* enum ft_role */
    int64_t path_since_ms : FT_FLOW_MS_BITS;
    uint64_t published : 4; /* state as last published + 1; 0: never */
    uint64_t bytes_by : 2;  /* enum ft_rate_by */
    bool rate_published : 1;
    bool first_path_counted : 1;
    bool ended : 1;
    bool moved : 1;         /* it has left a path for another */
    bool learnt : 1;        /* its links are known to who learns the switches' hashes */
    uint64_t learnt_in : 4; /* when that was, in its own numbers */
    /* Its packets bear their path: no hash of a switch chooses it, and packets of one queue pair
     * may have a 5-tuple for each path. */
    bool source_routed : 1;
    int64_t published_ms : FT_FLOW_MS_BITS;
    uint64_t left_out : 2; /* windows, a bit for each parity, of which samples found no room */
    uint64_t seconds : 8;  /* in which it had samples, as in struct ft_sighting */
    uint64_t second : 8;   /* the newest of them: the low bits of its Unix time */
    uint64_t bytes;        /* of the last closed window that it was seen in */
    struct ft_flow_path path;
    uint32_t src_nic, dst_nic; /* FT_NONE: not in the topology */
    uint32_t window;           /* the newest window that touched the volumes */
    uint32_t samples;
    uint32_t bytes_window; /* number of the window of bytes, 0: none */
};

/* A part of a flow; NULL where it has none. Good until another is added or removed. */
static inline void *ft_flow_part(const struct ft_flow *flow, enum ft_flow_part part)
{
    struct ft_flow_parts *parts = flow->parts;

    return parts && parts->at[part] ? parts + parts->at[part] : NULL;
}

static inline struct ft_flow_host *ft_flow_host(const struct ft_flow *flow)
{
    return ft_flow_part(flow, FT_FLOW_HOST);
}

static inline struct ft_flow_tunnel *ft_flow_tunnel(const struct ft_flow *flow)
{
    return ft_flow_part(flow, FT_FLOW_TUNNEL);
}

static inline struct ft_flow_networks *ft_flow_networks(const struct ft_flow *flow)
{
    return ft_flow_part(flow, FT_FLOW_NETWORKS);
}

static inline struct ft_moves *ft_flow_moves(const struct ft_flow *flow)
{
    return ft_flow_part(flow, FT_FLOW_MOVES);
}

static inline struct ft_flow_numbers *ft_flow_numbers(const struct ft_flow *flow)
{
    return ft_flow_part(flow, FT_FLOW_NUMBERS);
}

struct ft_join_config {
    size_t flows_max;
    size_t beside_max; /* bytes that flows have beside their entries, all together; 0: any */
    int64_t window_ms;
    int64_t grace_ms;    /* after its end a window is closed, or later */
    int64_t evidence_ms; /* sightings older than this are forgotten */
    int64_t idle_ms;     /* a flow without sign of life is removed */
    struct ft_evidence_policy policy;
    bool trust_topology; /* its links need no samples that bear them out */
    uint64_t seed;       /* of the hash table; fixed in replay */
};

struct ft_join_hooks {
    /* A flow's state or path became another one. */
    void (*judged)(void *arg, struct ft_flow *flow);
    /* A resolved path was followed by another one, since flow->path_since_ms; `before` is the old.
     */
    void (*moved)(void *arg, struct ft_flow *flow, const struct ft_path *before, int64_t now_ms);
    /* A sample came in by a port that no link leads to. */
    void (*entered)(void *arg, const struct ft_observation *o, const struct ft_flow *flow,
                    uint32_t in);
    /* A sample of a flow whose job is known. */
    void (*of_job)(void *arg, const struct ft_observation *o, const char *job);
    void *arg;
};

/* Counters per egress port, for the share of CE-marked samples. */
struct ft_port_marks {
    uint64_t samples[2];
    uint64_t ce_samples[2];
    int64_t last_ms; /* of the newest sample; 0: none since the topology is known */
    uint32_t window;
};

/* What samples met at an egress port, by parity of the window. */
struct ft_port_depths {
    bool has_queue[2], has_transit[2];
    uint32_t queue_max_bytes[2], transit_max_ns[2];
    uint32_t window; /* the newest */
};

/* What samples of other daemons say of an egress port in a window. */
struct ft_port_said {
    uint64_t samples, ce_samples;
    int64_t last_ms; /* 0: none */
    bool has_queue, has_transit;
    uint32_t queue_max_bytes, transit_max_ns;
};

struct ft_join_stats {
    uint64_t observations[FT_JOIN_RESULTS];
    uint64_t recalled[FT_JOIN_RESULTS]; /* of these, those that count in no figure */
    uint64_t reports[FT_JOIN_RESULTS];
    uint64_t unknown_switch; /* of the observations that were joined */
    uint64_t unknown_port;
    uint64_t unnumbered_port;  /* of these, those of switches whose ports have no ifIndex at all */
    uint64_t several_networks; /* times that a flow was found to be several */
    uint64_t flows_new;
    uint64_t flows_removed;
};

struct ft_join;
struct ft_ranks;

/* The topology is borrowed until another replaces it. NULL without memory. */
struct ft_join *ft_join_new(const struct ft_join_config *config, const struct ft_topology *t,
                            const struct ft_join_hooks *hooks);
void ft_join_free(struct ft_join *join);

/* Takes another topology: sightings follow by the names of switch and port, flows have to be judged
 * anew (ft_join_judge_step()). Evidence over equal-cost sets that changed is uncertain until
 * now_ms. -ENOMEM, and the old one stays. */
int ft_join_set_topology(struct ft_join *join, const struct ft_topology *t, int64_t now_ms);

/* Judges up to so many more entries of the table after a change of topology. True: there are more;
 * until then no observations must come, for their flows would be judged by another topology. */
bool ft_join_judge_step(struct ft_join *join, uint32_t items);
bool ft_join_judging_all(const struct ft_join *join);

const struct ft_topology *ft_join_topology(const struct ft_join *join);

/* Whether samples of both ends, or LLDP, confirm the link that leaves a port. None is after
 * ft_join_set_topology(). */
void ft_join_confirm_link(struct ft_join *join, uint32_t port, bool confirmed);

/* Whether samples say that it leads elsewhere. */
void ft_join_contradict_link(struct ft_join *join, uint32_t port, bool contradicted);

/* The port at the other end of a link; FT_NONE at a host, and where samples contradict the link in
 * either direction: what is counted there is of another cable. */
uint32_t ft_join_other_end(const struct ft_join *join, uint32_t port);

/* Whether samples of about that window show that a flow READs, so that not all of its numbers are
 * those of its packets. */
bool ft_join_reads(const struct ft_flow *flow, uint32_t window);

/* Samples of what answers a flow in a window, and how many of them are negative: packets were
 * missed. False: none were seen. */
bool ft_join_answered(const struct ft_join *join, const struct ft_flow *flow, uint32_t window,
                      uint32_t *naks);

/* What one who sampled a flow in a window says of packets that were sent again. */
struct ft_join_again {
    uint32_t source;        /* who that is */
    uint32_t samples, back; /* with a lower number than one before: so many or more */
    double overtaken;       /* [0 to 1] whether its samples overtake each other: 0 never, 1 often */
    bool enters;            /* it is of the switch where the flow enters the fabric */
};

/* Those of a resolved flow that have a row (lib/fabric/numbers.h). How many there are. */
size_t ft_join_again(const struct ft_join *join, const struct ft_flow *flow, uint32_t window,
                     struct ft_join_again out[FT_NUMBERS_ROWS]);

/* Who the ranks behind the flows are, borrowed; NULL: nobody says. */
void ft_join_set_ranks(struct ft_join *join, const struct ft_ranks *ranks);
const struct ft_ranks *ft_join_ranks(const struct ft_join *join);

/* What is said of the ways of flows besides samples, borrowed; NULL: nothing. Cleared when the
 * topology is another one, and by ft_join_restart(). */
struct ft_hints;
void ft_join_set_hints(struct ft_join *join, struct ft_hints *hints);
struct ft_hints *ft_join_hints(const struct ft_join *join);

/* Says by which port a flow leaves the switch that it enters by `in`, from what others did there
 * (daemon/hashes/); false: that is not known. */
struct ft_hint;
struct ft_join_predictor {
    bool (*predict)(void *arg, const struct ft_join *join, const struct ft_flow *flow, uint32_t in,
                    struct ft_hint *hint);
    void *arg;
    bool (*is_ready)(void *arg); /* whether it can say it of any switch; NULL: always */
};
/* Copied; a NULL predict: nobody does. */
void ft_join_set_predictor(struct ft_join *join, const struct ft_join_predictor *predictor);
const struct ft_join_predictor *ft_join_predictor(const struct ft_join *join);

/* The same from what links counted (daemon/inference/), asked where nobody else says it. */
void ft_join_set_inferrer(struct ft_join *join, const struct ft_join_predictor *inferrer);
const struct ft_join_predictor *ft_join_inferrer(const struct ft_join *join);

/* Joins count observations in order, up to FT_JOIN_BATCH of them; together they are much faster
 * than one by one. Results are counted in the stats, and added up in results[]. */
#define FT_JOIN_BATCH 64
void ft_join_observe_batch(struct ft_join *join, const struct ft_observation *o, size_t count,
                           uint64_t results[FT_JOIN_RESULTS]);
enum ft_join_result ft_join_report(struct ft_join *join, const struct ft_host_report *r);

/* While this is on, observations are those that another daemon had: of a window that is closed they
 * are evidence for paths, and count in no figure; which paths they lead to that daemon has said. */
void ft_join_recall(struct ft_join *join, bool on);

/* What pairing said of a flow is not so, or not certain: it is forgotten, and what its hosts said
 * themselves with it, until they say it again. NULL when nothing was said. A flow that nobody else
 * knows of has ended by that. */
struct ft_flow *ft_join_withdraw(struct ft_join *join, const struct ft_tuple *tuple);

/* The lowest window still open; 0 before the first record. ft_join_open() sets it at start, when
 * the clock is not the records' own. */
uint32_t ft_join_window(const struct ft_join *join);
void ft_join_open(struct ft_join *join, uint32_t window);

/* Seals the lowest window: it takes no more, and its volumes can be read slice by slice while the
 * next one fills. ft_join_close() then gives its slot to the window after the next; every flow has
 * been aged in between, since names that no aged flow has are forgotten. */
void ft_join_seal(struct ft_join *join);
void ft_join_close(struct ft_join *join);

/* The newest window that took a record; 0 before the first. */
uint32_t ft_join_newest(const struct ft_join *join);

/* Forgets so many of the flows, for ft_join_restart() to follow; true: there are more. */
bool ft_join_forget(struct ft_join *join, uint32_t work);

/* Forgets every flow and whatever was counted, and opens a window that may be an older one: the
 * clock went back, and what is known seems to come from the future. Not while one is sealed. */
void ft_join_restart(struct ft_join *join, uint32_t window);

/* Number of the window that a moment lies in. */
uint32_t ft_join_window_of(const struct ft_join *join, int64_t ms);

/* Ages a flow at the close of a window: forgets old sightings, judges again, finalises the window's
 * volume, and removes the flow when idle (false: it is gone). What is old is so by when the window
 * was to be closed, unless now_ms is before that. */
bool ft_join_age(struct ft_join *join, struct ft_flow *flow, uint32_t window, int64_t now_ms);

/* Flows by index, for slices; NULL where there is none. */
uint32_t ft_join_limit(const struct ft_join *join);
struct ft_flow *ft_join_at(const struct ft_join *join, uint32_t index);
struct ft_flow *ft_join_find(const struct ft_join *join, const struct ft_tuple *tuple);
size_t ft_join_flows(const struct ft_join *join);
size_t ft_join_bytes(const struct ft_join *join);

/* When the newest sample was taken that is left of a flow, its last_ms if none is: those of a
 * switch that was not known are forgotten when the topology changes. */
int64_t ft_flow_seen_ms(const struct ft_flow *flow);

/* The header of the tunnel that a flow is in, as switches see it now; NULL where that is not known:
 * its newest samples do not show it, or others less than evidence_ms before showed another one, or
 * none. */
const struct ft_tuple *ft_flow_outer(const struct ft_join *join, const struct ft_flow *flow);

/* The newest moment at which samples determined a resolved flow's path. */
int64_t ft_join_path_ms(const struct ft_join *join, const struct ft_flow *flow);

/* Whether a resolved flow was on its path at a moment between its samples: they continue without a
 * pause, and nobody moved around it, or they leave no time to move away and back. */
bool ft_join_was_on_path(const struct ft_join *join, const struct ft_flow *flow, int64_t ms);

/* Whether samples of a resolved flow that did not move show it on its path in a window that began
 * at from_ms, or nobody has moved since samples last showed its path. Not where that began after
 * the window, unless all has been quiet. */
bool ft_join_is_placed(const struct ft_join *join, const struct ft_flow *flow, int64_t from_ms);

/* The links of a path of a flow, bits by hop, that samples of a window show it on (slot: its
 * parity). past: as in struct ft_sighting. */
uint32_t ft_join_links(const struct ft_join *join, const struct ft_flow *flow,
                       const struct ft_path *path, uint8_t past, unsigned slot);

/* Judges a flow now, without changing it: for records of flows that are not resolved. */
void ft_join_judge(const struct ft_join *join, const struct ft_flow *flow,
                   struct ft_judgement *out);

/* Samples taken at a switch in an open window, and the bytes they stand for, no packet counted
 * twice (daemon/join/sampled.h). */
void ft_join_sampled(const struct ft_join *join, uint32_t switch_id, uint32_t window,
                     uint64_t *samples, double *bytes);
/* Of them, those that came in by ports without link or NIC: the counters of links and hosts say
 * nothing of them. */
uint64_t ft_join_strays(const struct ft_join *join, uint32_t switch_id, uint32_t window);

const struct ft_port_marks *ft_join_marks(const struct ft_join *join, uint32_t port);
const struct ft_port_depths *ft_join_depths(const struct ft_join *join, uint32_t port);
void ft_join_said(struct ft_join *join, uint32_t port, uint32_t window,
                  const struct ft_port_said *said);
const struct ft_join_stats *ft_join_stats(const struct ft_join *join);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PAIRING_STATE_H
#define FT_DAEMON_PAIRING_STATE_H
/*
 * What the parts of daemon/pairing/pairing.h share, each of which needs only those before it:
 * ends.c finds ends and lists the uncertain ones, groups.c counts who is unique among all and in a
 * communicator, members.c keeps processes and their communicators, samples.c what samples show,
 * link.c the pairs and what is reported of them, lists.c hosts, ports and ends, sweep.c ages them
 * and looks for pairs, pairing.c takes records and answers. Private to them. Thread: one.
 *
 * Who finds that a pair is not certain any more puts one of its ends on the list of uncertain ones.
 * It is dissolved at the end of that step: what dissolving it puts on the list follows.
 *
 * Sets of ends that only matter when they have one member are kept as a count and a sum of indices.
 */
#include "daemon/join/names.h"
#include "daemon/pairing/pairing.h"
#include "lib/base/table.h"

#define FT_PAIRING_NAME      64
#define FT_PAIRING_COMM      17
#define FT_PAIRING_ADDRESSES 16
#define FT_PAIRING_COMMS     16
/* Ends of a process that count in its communicators: each one that it joins or leaves is a look at
 * all of them. With more, its communicators decide nothing. */
#define FT_PAIRING_PROCESS_ENDS 4096
/* How far the clocks of hosts and exporters may be apart. */
#define FT_PAIRING_CLOCKS_MS 2000
/* Both ends of a connection are listed within this time. */
#define FT_PAIRING_LISTED_MS 5000
/* A host that nobody has heard of for this time is none any more. */
#define FT_PAIRING_HOST_MS 3600000
/* Of two flows that cannot both be an end's, the one that was silent for so long is over. */
#define FT_PAIRING_OVER_MS 10000

struct ft_pairing_host {
    char name[FT_PAIRING_NAME];
    uint32_t listed, held;
    uint32_t users;      /* ports and processes */
    uint32_t anonymous;  /* ends of processes that its agent cannot see */
    int64_t complete_ms; /* when all that it had was held here last, by its clock; 0: not now */
    int64_t heard_ms;    /* by ours */
};

struct ft_pairing_port_key {
    char host[FT_PAIRING_NAME];
    char device[FT_PAIRING_NAME];
    uint32_t port;
};

struct ft_pairing_port {
    struct ft_pairing_port_key key;
    uint32_t host;
    uint32_t held;
    char driver[16];
    uint32_t address_count;
    struct ft_ip addresses[FT_PAIRING_ADDRESSES];
    bool more_addresses;
    uint32_t first_linked, last_linked; /* its ends that have a pair, as they got it; FT_NONE */
    int64_t heard_ms, interval_ms;
};

struct ft_pairing_address {
    struct ft_ip ip;
    uint32_t count;
    uint64_t sum; /* of ports */
};

struct ft_pairing_end_key {
    uint32_t port;
    uint32_t local;
};

struct ft_pairing_qp {
    struct ft_pairing_end_key key;
    uint32_t remote, pid;
    uint32_t seq; /* order in which ends came */
    uint32_t process, next, previous;
    uint32_t peer; /* of a pair that was found without samples; it names this one; FT_NONE */
    struct ft_pairing_end_key sampled_key;
    uint32_t sampled_seq;
    uint16_t sport;
    uint8_t state, by;
    bool has_sport, begun, kernel, reported;
    bool counted;   /* in the buckets of its groups */
    bool surplus;   /* its process has too many that count in communicators; this one does not */
    bool spent;     /* its peer is gone */
    bool uncertain; /* on the list of those whose pair is to be dissolved */
    bool sampled;   /* a sample went from it to an end that names it */
    bool has_tuple, has_reverse, observed;
    struct ft_ip src, dst; /* reported */
    struct ft_tuple tuple; /* that it sends by, once paired */
    int64_t since_ms, heard_ms, interval_ms;
    int64_t sampled_ms; /* last sample that confirmed it */
    const char *comm, *job;
    uint32_t comm_index; /* communicator by which it was paired, FT_NONE */
    uint32_t next_uncertain;
    uint32_t next_linked, previous_linked; /* of its port */
};

/* Pairs of the same two numbers within a group: two where each has an end at both of two ranks. */
#define FT_PAIRING_BUCKET_PAIRS 2

/* Ends that name each other's numbers, within a group: 0 all, else a communicator's index + 1. lo
 * have the lower number themselves; where both are equal all are lo. */
struct ft_pairing_bucket_key {
    uint32_t group, lo, hi;
};

struct ft_pairing_bucket {
    struct ft_pairing_bucket_key key;
    uint32_t lo_count, hi_count;
    uint64_t lo_sum, hi_sum;
    uint32_t left_seq;                       /* ends up to this one may have lost their peer */
    uint32_t pairs[FT_PAIRING_BUCKET_PAIRS]; /* an end of each that rests on this, + 1; 0: none */
};

/* An end whose host knows where it sends to, by what it says of its peer. */
struct ft_pairing_named_key {
    struct ft_ip ip;
    uint32_t local, remote;
};

struct ft_pairing_named {
    struct ft_pairing_named_key key;
    uint32_t count;
    uint64_t sum;
};

/* Ends that would make one flow, as far as a packet shows; sport 0: whatever their port is. */
struct ft_pairing_sampled_key {
    uint32_t port;
    uint32_t remote;
    uint32_t sport;
};

struct ft_pairing_sampled {
    struct ft_pairing_sampled_key key;
    uint32_t count;
    uint64_t sum;
    bool seen;
    bool other; /* and another one */
    struct ft_tuple tuple;
    int64_t first_ms;
};

struct ft_pairing_process_key {
    uint32_t host, pid;
};

struct ft_pairing_process {
    struct ft_pairing_process_key key;
    uint32_t first;   /* end of those that count in its communicators */
    uint32_t surplus; /* the first of those that do not, FT_NONE */
    uint32_t count;   /* of those that do */
    uint32_t members; /* of communicators that it is */
    uint32_t comm_count;
    bool more_comms;
    uint32_t comms[FT_PAIRING_COMMS];
    uint32_t ranks[FT_PAIRING_COMMS]; /* that it has there */
};

struct ft_pairing_comm {
    char id[FT_PAIRING_COMM];
    uint32_t ranks, open;
    uint32_t paired; /* ends that were paired by it; it is remembered as long as there are some */
    int64_t complete_ms; /* as of the last sweep: the least of its members' hosts; 0: not all are */
};

struct ft_pairing_member_key {
    uint32_t comm, rank;
};

struct ft_pairing_member {
    struct ft_pairing_member_key key;
    uint32_t process;
    int64_t heard_ms;
};

/* Ends that send by one tuple: their index twice, + 1 for the reverse direction. */
struct ft_pairing_tuple {
    struct ft_tuple tuple;
    uint32_t count;
    uint64_t sum;
};

/* A sweep, in steps. Nothing that it looks at changes before it is over. */
struct ft_pairing_sweep_state {
    bool on, names; /* names: names that nobody has are let go */
    uint32_t phase, index;
    uint32_t nic; /* up to which hosts list their queue pairs */
};

struct ft_pairing {
    struct ft_pairing_config config;
    struct ft_pairing_hooks hooks;
    struct ft_names *names;
    struct ft_table *hosts, *ports, *addresses, *ends;
    struct ft_table *buckets, *named, *sampled, *tuples;
    struct ft_table *processes, *comms, *members;
    struct ft_pairing_stats stats;
    uint32_t seq;
    uint64_t uncounted; /* no room to count an end: nobody is unique any more */
    int64_t now_ms, swept_ms;
    int64_t stranger_ms;                      /* last sample of a RoCE host without an agent */
    int64_t all_complete_ms;                  /* as of this sweep: the least of all hosts; 0 */
    uint32_t first_uncertain, last_uncertain; /* ends, FT_NONE */
    int8_t covered;                           /* of this sweep; -1: not known yet */
    struct ft_pairing_sweep_state sweep;
};

static inline struct ft_pairing_qp *ft_pairing_at(const struct ft_pairing *p, uint32_t index)
{
    return ft_table_at(p->ends, index);
}

static inline const struct ft_pairing_port *ft_pairing_port_of(const struct ft_pairing *p,
                                                               const struct ft_pairing_qp *end)
{
    return ft_table_at(p->ports, end->key.port);
}

static inline uint32_t ft_pairing_host_of(const struct ft_pairing *p,
                                          const struct ft_pairing_qp *end)
{
    return ft_pairing_port_of(p, end)->host;
}

/* ends.c: the only port with an address, FT_NONE; an end by its numbers, NULL. */
uint32_t ft_pairing_port_at(const struct ft_pairing *p, const struct ft_ip *ip);
struct ft_pairing_qp *ft_pairing_find(const struct ft_pairing *p, uint32_t port, uint32_t local);
/* The other end, as far as it is known and there; NULL. */
struct ft_pairing_qp *ft_pairing_peer(const struct ft_pairing *p, const struct ft_pairing_qp *end);
/* Puts an end on the list of those whose pair is to be dissolved; takes the first one, or NULL. */
void ft_pairing_mark_uncertain(struct ft_pairing *p, struct ft_pairing_qp *end);
struct ft_pairing_qp *ft_pairing_take_uncertain(struct ft_pairing *p);
/* Sets by what it was paired, FT_PAIRED_BY_NOTHING: it is not; its port lists those that are. */
void ft_pairing_set_by(struct ft_pairing *p, struct ft_pairing_qp *end, enum ft_paired_by by);
/* Whether a pair was found without samples and is not uncertain. */
bool ft_pairing_holds(const struct ft_pairing *p, const struct ft_pairing_qp *end);

/* groups.c */
void ft_pairing_group_add(struct ft_pairing *p, struct ft_pairing_qp *end);
/* gone: the end is no more, and whoever may have been its peer has none. */
void ft_pairing_group_remove(struct ft_pairing *p, struct ft_pairing_qp *end, bool gone);
/* Marks the buckets that a pair rests on, or clears them. */
void ft_pairing_group_mark(struct ft_pairing *p, const struct ft_pairing_qp *end, bool paired);
/* Its process has a communicator more, or less. */
void ft_pairing_group_enter(struct ft_pairing *p, uint32_t group, struct ft_pairing_qp *end);
void ft_pairing_group_leave(struct ft_pairing *p, uint32_t group, struct ft_pairing_qp *end);
/* Its pair does not rest on this group any more. */
void ft_pairing_group_release(struct ft_pairing *p, uint32_t group,
                              const struct ft_pairing_qp *end);
/* How far each group is completely known: at first, then from each host, then each communicator,
 * then each member. */
void ft_pairing_groups_begin(struct ft_pairing *p);

/* Looks at so many NICs whether their hosts list their queue pairs, until that is known. What is
 * left of so many. */
uint32_t ft_pairing_groups_cover(struct ft_pairing *p, uint32_t items);
void ft_pairing_groups_host(struct ft_pairing *p, void *host);
void ft_pairing_groups_comm(struct ft_pairing *p, void *comm);
void ft_pairing_groups_member(struct ft_pairing *p, void *member);
/* The only end that can be the peer, NULL; else *why. */
struct ft_pairing_qp *ft_pairing_groups_choose(struct ft_pairing *p,
                                               const struct ft_pairing_qp *end,
                                               enum ft_paired_by *by, uint32_t *comm,
                                               enum ft_pair_state *why);

/* members.c */
/* Makes an end one of its process's, or not any more: then another may count instead. */
void ft_pairing_process_add(struct ft_pairing *p, struct ft_pairing_qp *end);
void ft_pairing_process_remove(struct ft_pairing *p, struct ft_pairing_qp *end);
/* Sets the communicator that the pair of an end rests on, FT_NONE. */
void ft_pairing_members_rest(struct ft_pairing *p, struct ft_pairing_qp *end, uint32_t comm_index);
void ft_pairing_members_take(struct ft_pairing *p, const Fabrictrace__Communicator *c);
/* Forgets a member that was not announced for long; false: it was. */
bool ft_pairing_member_age(struct ft_pairing *p, struct ft_pairing_member *member);

/* samples.c */
void ft_pairing_samples_add(struct ft_pairing *p, struct ft_pairing_qp *end);
void ft_pairing_samples_remove(struct ft_pairing *p, struct ft_pairing_qp *end);
/* Whether samples alone determine the destination of an end; fills the tuple. */
bool ft_pairing_samples_determine(const struct ft_pairing *p, const struct ft_pairing_qp *end,
                                  struct ft_tuple *tuple);
/* A sample to a host that lists nothing. */
void ft_pairing_samples_take(struct ft_pairing *p, uint32_t port, const struct ft_tuple *tuple,
                             uint32_t dst_qp, int64_t ms);
/* Whether a flow can only be this end's: none other of its port sends to that number by that port;
 * or, where the driver's port is not known or another one was set, none other to that number at
 * all. A queue pair whose peer is gone may continue sending for a while. */
bool ft_pairing_samples_alone(struct ft_pairing *p, const struct ft_pairing_qp *end,
                              const struct ft_tuple *tuple, int64_t ms);
/* Whether a sample was taken after an end came, for all that clocks may be apart. */
bool ft_pairing_is_later(const struct ft_pairing_qp *end, int64_t ms);

/* link.c: a sample showed what an end sends by, towards an end that names it. That does not prove
 * the other one: the first may send to a queue pair that is gone, whose number is used anew. Both
 * directions are. */
void ft_pairing_confirm(struct ft_pairing *p, struct ft_pairing_qp *end, struct ft_pairing_qp *peer,
                        const struct ft_tuple *tuple, int64_t ms);
/* The pair of an end is no more: because it ended, or because it is not certain (to be withdrawn).
 * Pairs that become uncertain by that are dissolved with it. */
void ft_pairing_unlink(struct ft_pairing *p, struct ft_pairing_qp *end, bool ended);
/* Dissolves all uncertain pairs. */
void ft_pairing_unlink_uncertain(struct ft_pairing *p);
/* Reports again what is known. */
void ft_pairing_report_again(struct ft_pairing *p, struct ft_pairing_qp *end);
/* Looks for the peer of an end that has none, and for whether the peer of one is there. */
void ft_pairing_judge(struct ft_pairing *p, struct ft_pairing_qp *end);

/* lists.c: as ft_pairing_list(). */
int ft_pairing_lists_take(struct ft_pairing *p, const Fabrictrace__QueuePairs *list,
                          int64_t now_ms);
/* An end goes. gone: there is none any more; else it is only known in another way. */
void ft_pairing_remove_end(struct ft_pairing *p, struct ft_pairing_qp *end, bool gone);
void ft_pairing_drop_addresses(struct ft_pairing *p, struct ft_pairing_port *port);

#endif

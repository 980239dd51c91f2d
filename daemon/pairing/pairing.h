// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PAIRING_PAIRING_H
#define FT_DAEMON_PAIRING_PAIRING_H
/*
 * Queue pairs whose host does not know where they send to, and the search for their other ends.
 *
 * A pair is taken for one of these reasons, and never guessed:
 *  - samples show a flow from an address of one end to an address of the other, to its number, and
 *    both hosts list the two as each other's peer (FT_PAIRED_BY_BOTH_ENDS);
 *  - samples show one flow alone from this address and port to this number, and its host, which has
 * listed all its queue pairs since, has one alone that would make it (FT_PAIRED_BY_WIRE);
 *  - the other end's host knows that it sends here (FT_PAIRED_BY_PEER);
 *  - of all ends in the communicators of the process, but for those that samples paired in both
 *    directions, these two alone name each other, and every member's host has listed all its queue
 *    pairs since both were there (FT_PAIRED_BY_COMMUNICATOR);
 *  - the same for all ends of a fabric in which nobody is known without an agent, for two that came
 *    within seconds of each other (FT_PAIRED_BY_ALL_ENDS).
 * The last two take for granted that connected queue pairs are listed on both sides within seconds,
 * that a process does not use the same two numbers towards hosts that nobody knows, and that a rank
 * has no connection from one of its queue pairs to another. An end that names its own number may be
 * connected to itself, as NCCL's are that flush GPU memory: neither of the two applies. PSNs are no
 * help: they move with the traffic, and alike in all pairs of a job.
 *
 * A queue pair comes by two roads. Where the kernel shows its host the destination, the agent sends
 * a flow report, which goes to the join past this module, and lists the queue pair with its
 * addresses: it needs no pair, but may be the one that another names (FT_PAIR_REPORTED). Where it
 * does not, the list is all there is; the flow is reported from here, to the hook, as if the host
 * had said so, and only while the pair stands. Both roads may report one flow: each of its hosts
 * may know a half of it. An end goes with its own host: when that lists it as ended, lists another
 * by its number, or does not list it for two and a half intervals. Its pair ends with it, and the
 * flows with the pair. The other end stays until its own host lets it go, but without a peer for
 * good, since no queue pair changes its peer.
 *
 * Two ends become a pair in ft_pairing_sweep() or by a sample. They stop being one at once, with
 * the news that makes it less than certain: then what was said is withdrawn. When an end goes, ends
 * that may have been its peer are not paired any more but by samples.
 *
 * Capped; refused and aged ends are counted. Pure; times are Unix milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/join/join.h"
#include "daemon/publish/findings.h"
#include "lib/base/account.h"
#include "proto/fabrictrace.pb-c.h"
#include "proto/observed.h"

struct ft_pairing_config {
    size_t ends_max;
    size_t ports_max;
    size_t members_max; /* of communicators */
    bool link_local;    /* queue pairs outside of communicators may use link-local addresses */
    uint64_t seed;      /* fixed in a replay */
};

struct ft_pairing_hooks {
    /* What is known of a flow now, as if its host had said so. */
    void (*report)(void *arg, const struct ft_host_report *report);
    /* What was said of a flow is not certain any more. */
    void (*withdraw)(void *arg, const struct ft_tuple *tuple);
    /* Whether hosts that the topology knows list their queue pairs: those of so many NICs from *nic
     * on, which is then the next, UINT32_MAX after the last. Asked in a sweep until one does not.
     */
    bool (*covered)(void *arg, uint32_t *nic, uint32_t count);
    void *arg;
};

/* Where the search for an end's peer stands. */
enum ft_pair_state {
    FT_PAIR_WAITING, /* not all who could be it have been heard since it came */
    FT_PAIR_PAIRED,
    FT_PAIR_REPORTED, /* its own host knows where it sends to */
    FT_PAIR_NO_PEER,
    FT_PAIR_SEVERAL_PEERS,
    FT_PAIR_SEVERAL_ADDRESSES, /* the two ends have more than one address in common use */
    FT_PAIR_NO_ADDRESS,        /* or none */
    FT_PAIR_NO_PORT,           /* the driver's source port follows no known formula */
    FT_PAIR_SAME_HOST,         /* may never leave it */
    FT_PAIR_PEER_GONE,
    FT_PAIR_INCOMPLETE, /* who is not heard, or not complete, may have the peer */
    FT_PAIR_UNTIMED,    /* the only other end did not come at the same time, as far as is known */
    FT_PAIR_ITSELF,     /* names its own number: may be connected to itself */
    FT_PAIR_STATES,
};

/* As in enum PairedBy of fabrictrace.proto. */
enum ft_paired_by {
    FT_PAIRED_BY_NOTHING,
    FT_PAIRED_BY_SAMPLES,
    FT_PAIRED_BY_BOTH_HOSTS,
    FT_PAIRED_BY_COMMUNICATOR,
    FT_PAIRED_BY_FABRIC,
    FT_PAIRED_BY_PEER,
};

/* An end, for people. Texts live until the next record. */
struct ft_pairing_end {
    const char *host, *device, *driver; /* driver "": not known */
    uint32_t port, local, remote, pid;  /* pid 0: not known */
    const char *comm, *job;             /* NULL: not known */
    enum ft_pair_state state;
    enum ft_paired_by by;
    bool has_tuple, observed;
    struct ft_tuple tuple;
    const char *peer_host, *peer_device; /* NULL: not known */
    const char *comm_id;                 /* by which it was paired; NULL */
    int64_t since_ms;
};

struct ft_pairing_stats {
    uint64_t received, refused, ended, aged;
    uint64_t paired, withdrawn; /* since the start */
};

struct ft_pairing;

/* NULL without memory. */
struct ft_pairing *ft_pairing_new(const struct ft_pairing_config *config,
                                  const struct ft_pairing_hooks *hooks);
void ft_pairing_free(struct ft_pairing *p);

/* Frees a part of one that is used no more; false: that was all, and it is gone. */
bool ft_pairing_free_step(struct ft_pairing *p);

/* A host's list. -EINVAL: a field that is needed is missing or cannot be, or it names more than
 * agents do at a time, and nothing of it was taken; -ENOSPC: some found no room. */
int ft_pairing_list(struct ft_pairing *p, const Fabrictrace__QueuePairs *list, int64_t now_ms);

/* A member of a communicator came, is still there, or left. */
void ft_pairing_communicator(struct ft_pairing *p, const Fabrictrace__Communicator *c,
                             int64_t now_ms);

/* A sample. Cheap for flows of hosts that list nothing. */
void ft_pairing_observe(struct ft_pairing *p, const struct ft_observed *o, int64_t now_ms);

/* Forgets what was not announced again and looks for pairs, when it is time, at most `items` of
 * work: true, there is more. All of a sweep is as of its beginning. A record that comes meanwhile
 * ends it in one step, as ft_pairing_finish() does. */
bool ft_pairing_sweep(struct ft_pairing *p, int64_t now_ms, uint32_t items);
bool ft_pairing_sweeping(const struct ft_pairing *p);
void ft_pairing_finish(struct ft_pairing *p);

/* Whether some host lists its queue pairs under this address. */
bool ft_pairing_knows(const struct ft_pairing *p, const struct ft_ip *address);

size_t ft_pairing_ends(const struct ft_pairing *p);
size_t ft_pairing_bytes(const struct ft_pairing *p);

/* Iterates from *index 0; false at the end. */
bool ft_pairing_next(const struct ft_pairing *p, uint32_t *index, struct ft_pairing_end *end);

/* That at an index, which is one less than what a step of the iteration left; false: none. */
bool ft_pairing_end_at(const struct ft_pairing *p, uint32_t index, struct ft_pairing_end *end);

/* "waiting", "paired", "no_peer", ...; and "samples", "communicator", ... */
const char *ft_pair_state_name(enum ft_pair_state state);
const char *ft_paired_by_name(enum ft_paired_by by);

/* Adds a finding for each host and reason why queue pairs have no pair, in steps of a few
 * milliseconds: true, there is more; false, they are added. Borrows nothing between steps. NULL
 * without memory. */
struct ft_pairing_unpaired;

struct ft_pairing_unpaired *ft_pairing_unpaired_new(const struct ft_pairing *p, uint64_t seed);
void ft_pairing_unpaired_free(struct ft_pairing_unpaired *u);
bool ft_pairing_unpaired_step(struct ft_pairing_unpaired *u, const struct ft_pairing *p,
                              struct ft_findings *findings);

/* Adds the stage "queue_pairs". */
void ft_pairing_account(const struct ft_pairing *p, struct ft_account *account);
void ft_pairing_stats(const struct ft_pairing *p, struct ft_pairing_stats *stats);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_UNIT_RANKS_RIG_H
#define FT_TESTS_UNIT_RANKS_RIG_H
/*
 * Ranks that are announced, and what they send, for the tests of daemon/jobs/ranks.h.
 */
#include <stdint.h>
#include <stdio.h>

#include "daemon/jobs/ranks.h"
#include "tests/unit/unit.h"

static inline struct ft_ranks *make(size_t members, size_t edges)
{
    const struct ft_ranks_config config = {.members_max = members, .edges_max = edges};
    struct ft_ranks *r = ft_ranks_new(&config);

    ck_assert_ptr_nonnull(r);
    return r;
}

static inline int join_of(struct ft_ranks *r, const char *comm, uint32_t rank, uint32_t ranks,
                          const char *host, uint32_t pid, bool closed)
{
    Fabrictrace__Communicator c = FABRICTRACE__COMMUNICATOR__INIT;

    c.comm_id = (char *)(uintptr_t)comm;
    c.has_rank = c.has_ranks = c.has_pid = true;
    c.rank = rank;
    c.ranks = ranks;
    c.pid = pid;
    c.host = (char *)(uintptr_t)host;
    c.job = (char *)(uintptr_t) "88";
    c.has_closed = c.closed = closed;
    return ft_ranks_communicator(r, &c);
}

static inline int join(struct ft_ranks *r, const char *comm, uint32_t rank, const char *host,
                       uint32_t pid, bool closed)
{
    return join_of(r, comm, rank, 32, host, pid, closed);
}

/* An AllReduce over a ring in which a rank sends to one peer, by a process; 0: not known. */
static inline int send_of(struct ft_ranks *r, const char *comm, uint32_t rank, uint32_t peer,
                          uint32_t qp, uint32_t pid, const char *host)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic p = FABRICTRACE__PEER_TRAFFIC__INIT, *list = &p;

    c.comm_id = (char *)(uintptr_t)comm;
    c.has_rank = c.has_ranks = c.has_channels = c.has_bytes = true;
    c.rank = rank;
    c.ranks = 4;
    c.channels = 1;
    c.bytes = 1000;
    c.op = (char *)(uintptr_t) "AllReduce";
    c.algo = (char *)(uintptr_t) "RING";
    c.host = (char *)(uintptr_t)host;
    c.has_pid = pid != 0;
    c.pid = pid;
    p.has_peer = p.has_sent_messages = true;
    p.peer = peer;
    p.sent_bytes = 1500;
    p.sent_messages = 2;
    p.n_local_qps = qp != 0;
    p.local_qps = &qp;
    c.peers = &list;
    c.n_peers = 1;
    return ft_ranks_collective(r, &c);
}

static inline int send(struct ft_ranks *r, const char *comm, uint32_t rank, uint32_t peer,
                       uint32_t qp)
{
    return send_of(r, comm, rank, peer, qp, 0, rank % 2 ? "b" : "a");
}

static inline size_t match(const struct ft_ranks *r, const char *src, const char *dst, uint32_t pid,
                           uint32_t qp, struct ft_rank_pair *pairs)
{
    const struct ft_rank_query query = {src, dst, pid, qp};
    bool more = true;
    size_t n = ft_ranks_match(r, &query, pairs, &more);

    /* Who is not known may be somebody else. */
    ck_assert(more == (n > 0 && !pid && qp == UINT32_MAX));
    return n;
}

#endif

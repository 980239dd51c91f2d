// SPDX-License-Identifier: Apache-2.0
/*
 * The work of /api/v1/matrix is bounded: it looks at each member and edge a few times, however many
 * communicators there are. Counted by comparisons of texts, which is all that sorting and searching
 * do (the linker gives this program its own strcmp), and by steps of the iterations; not by time.
 */
#include "config.h"

#include "daemon/api/matrix.h"

#include <string.h>

#include "tests/unit/unit.h"

#define RANKS 64
#define FEW   125
#define MANY  1000

int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);
const struct ft_rank_member *__real_ft_ranks_next_member(const struct ft_ranks *r, uint32_t *i);
const struct ft_rank_member *__wrap_ft_ranks_next_member(const struct ft_ranks *r, uint32_t *i);
const struct ft_rank_edge *__real_ft_ranks_next_edge(const struct ft_ranks *r, uint32_t *i);
const struct ft_rank_edge *__wrap_ft_ranks_next_edge(const struct ft_ranks *r, uint32_t *i);

static uint64_t compared, iterated;

int __wrap_strcmp(const char *a, const char *b)
{
    compared++;
    return __real_strcmp(a, b);
}

const struct ft_rank_member *__wrap_ft_ranks_next_member(const struct ft_ranks *r, uint32_t *i)
{
    iterated++;
    return __real_ft_ranks_next_member(r, i);
}

const struct ft_rank_edge *__wrap_ft_ranks_next_edge(const struct ft_ranks *r, uint32_t *i)
{
    iterated++;
    return __real_ft_ranks_next_edge(r, i);
}

/* Each rank sends to the next one. */
static void join(struct ft_ranks *ranks, char *comm, uint32_t rank)
{
    Fabrictrace__Communicator c = FABRICTRACE__COMMUNICATOR__INIT;
    Fabrictrace__Collective o = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic p = FABRICTRACE__PEER_TRAFFIC__INIT, *list = &p;
    char host[] = "a", job[] = "88", op[] = "AllReduce", algo[] = "RING";

    c.comm_id = o.comm_id = comm;
    c.has_rank = c.has_ranks = c.has_pid = true;
    c.rank = o.rank = rank;
    c.ranks = o.ranks = RANKS;
    c.pid = 1 + rank;
    c.host = o.host = host;
    c.job = job;
    ck_assert_int_eq(ft_ranks_communicator(ranks, &c), 0);
    o.has_rank = o.has_ranks = o.has_channels = o.has_bytes = true;
    o.channels = 1;
    o.bytes = 1000;
    o.op = op;
    o.algo = algo;
    p.has_peer = p.has_sent_messages = true;
    p.peer = (rank + 1) % RANKS;
    p.sent_bytes = 1500;
    p.sent_messages = 2;
    o.peers = &list;
    o.n_peers = 1;
    ck_assert_int_eq(ft_ranks_collective(ranks, &o), 0);
}

static struct ft_ranks *make(uint32_t comms)
{
    const struct ft_ranks_config config = {.members_max = MANY * RANKS, .edges_max = MANY * RANKS};
    struct ft_ranks *ranks = ft_ranks_new(&config);
    char comm[FT_RANKS_ID];

    ck_assert_ptr_nonnull(ranks);
    /* The communicators' ranks come in turn, not one communicator after the other. */
    for (uint32_t rank = 0; rank < RANKS; rank++)
        for (uint32_t i = 0; i < comms; i++) {
            snprintf(comm, sizeof(comm), "%016x", i * 2654435761u);
            join(ranks, comm, rank);
        }
    return ranks;
}

/* The answer, of which one communicator is written; returns how much was compared for it. */
static uint64_t answer(const struct ft_ranks *ranks, uint32_t comms, const char *comm_id)
{
    struct ft_writer w;
    struct ft_list list = {.page = {.limit = 1}, .w = &w};
    size_t edges = 0;

    ft_writer_init(&w, 1 << 20);
    compared = iterated = 0;
    ft_api_write_matrix(&list, ranks, comm_id, NULL, NULL);
    ck_assert(ft_writer_ok(&w));
    ck_assert_uint_eq(list.total, comm_id ? 1 : comms);
    ck_assert_uint_eq(list.written, 1);
    ft_write_u8(&w, '\0');
    for (const char *at = (const char *)w.bytes; (at = strstr(at, "\"sent_bytes\"")); at++)
        edges++;
    ck_assert_uint_eq(edges, RANKS);
    ft_writer_free(&w);
    return compared;
}

START_TEST(the_work_grows_with_the_edges_alone)
{
    struct ft_ranks *few = make(FEW), *many = make(MANY);
    uint64_t less = answer(few, FEW, NULL), more = answer(many, MANY, NULL);

    ck_assert_uint_gt(less, FEW * RANKS);
    /* Two passes over members and edges each, and the end of each pass. */
    ck_assert_uint_eq(iterated, UINT64_C(4) * (MANY * RANKS + 1));
    /* Sorting compares an item with about as many as its number has bits: 13 of them, and 16. */
    ck_assert_uint_le(more, less * (MANY / FEW) * 3 / 2);
    ck_assert_uint_le(more, UINT64_C(2) * MANY * RANKS * 40);
    ft_ranks_free(few);
    ft_ranks_free(many);
}
END_TEST

START_TEST(one_communicator_is_found_among_many)
{
    struct ft_ranks *many = make(MANY);
    char comm[FT_RANKS_ID];

    snprintf(comm, sizeof(comm), "%016x", 77 * 2654435761u);
    ck_assert_uint_le(answer(many, MANY, comm), UINT64_C(2) * MANY * RANKS * 40);
    ft_ranks_free(many);
}
END_TEST

FT_UNIT_MAIN("matrix", the_work_grows_with_the_edges_alone, one_communicator_is_found_among_many)

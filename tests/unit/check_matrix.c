// SPDX-License-Identifier: Apache-2.0
/*
 * The work of /api/v1/matrix is bounded: it looks at each member and edge a few times, however many
 * communicators there are. Counted by comparisons of texts, which is all that sorting and searching
 * do (the linker gives this program its own strcmp), and by steps of the iterations; not by time.
 */
#include "config.h"

#include "daemon/api/matrix.h"

#include "daemon/jobs/ranks.h"
#include "tests/unit/answer_rig.h"

#define RANKS 64
#define FEW   125
#define MANY  1000

int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);
int __real_strncmp(const char *a, const char *b, size_t n);
int __wrap_strncmp(const char *a, const char *b, size_t n);
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

int __wrap_strncmp(const char *a, const char *b, size_t n)
{
    compared++;
    return __real_strncmp(a, b, n);
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
static void join(char *comm, uint32_t rank)
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
    ck_assert_int_eq(ft_ranks_communicator(view.stages->ranks, &c), 0);
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
    o.has_peers_dropped = o.has_sent_bytes_dropped = o.has_received_bytes_dropped = rank == 1;
    o.peers_dropped = rank == 1 ? 3 : 0;
    o.sent_bytes_dropped = rank == 1 ? 500 : 0;
    o.received_bytes_dropped = rank == 1 ? 7 : 0;
    ck_assert_int_eq(ft_ranks_collective(view.stages->ranks, &o), 0);
}

static void make(uint32_t comms)
{
    char comm[FT_RANKS_ID];

    open_all();
    /* The communicators' ranks come in turn, not one communicator after the other. */
    for (uint32_t rank = 0; rank < RANKS; rank++)
        for (uint32_t i = 0; i < comms; i++) {
            snprintf(comm, sizeof(comm), "%016x", i * 2654435761u);
            join(comm, rank);
        }
}

/* The answer, of which one communicator is written; returns how much was compared for it. */
static uint64_t written(uint32_t comms, const char *comm_id)
{
    const struct ft_http_request request = {{"limit", comm_id ? "comm" : NULL}, {"1", comm_id}};
    struct ft_writer all;
    char total[32];

    ft_writer_init(&all, 1 << 20);
    compared = iterated = 0;
    answer(ft_api_matrix, &request, NULL, &all);
    ft_write_u8(&all, '\0');
    snprintf(total, sizeof(total), "\"total\":%u", comm_id ? 1 : comms);
    ck_assert_ptr_nonnull(strstr((const char *)all.bytes, total));
    ck_assert_uint_eq(count_of((const char *)all.bytes, all.len, "\"schema\""), 1);
    ck_assert_uint_eq(count_of((const char *)all.bytes, all.len, "\"sent_bytes\""), RANKS);
    ck_assert_uint_eq(count_of((const char *)all.bytes, all.len, "\"pid\""), RANKS);
    ck_assert_ptr_nonnull(
        strstr((const char *)all.bytes, "\"transfers_dropped\":3,\"bytes_dropped\":507}"));
    ck_assert_uint_eq(count_of((const char *)all.bytes, all.len, "\"transfers_dropped\""), 1);
    ft_writer_free(&all);
    return compared;
}

START_TEST(the_work_grows_with_the_edges_alone)
{
    uint64_t less, more;

    make(FEW);
    less = written(FEW, NULL);
    close_all();
    make(MANY);
    more = written(MANY, NULL);
    close_all();
    ck_assert_uint_gt(less, FEW * RANKS);
    /* One pass over members and edges each, and its end. */
    ck_assert_uint_eq(iterated, UINT64_C(2) * (MANY * RANKS + 1));
    /* Sorting by a heap compares an item with about twice as many as its number has bits: 13 of
     * them, and 16. */
    ck_assert_uint_le(more, less * (MANY / FEW) * 3 / 2);
    ck_assert_uint_le(more, UINT64_C(2) * MANY * RANKS * 60);
}
END_TEST

START_TEST(one_communicator_is_found_among_many)
{
    char comm[FT_RANKS_ID];

    make(MANY);
    snprintf(comm, sizeof(comm), "%016x", 77 * 2654435761u);
    ck_assert_uint_le(written(MANY, comm), UINT64_C(2) * MANY * RANKS * 2);
    close_all();
}
END_TEST

FT_UNIT_MAIN("matrix", the_work_grows_with_the_edges_alone, one_communicator_is_found_among_many)

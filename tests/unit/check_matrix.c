// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/matrix.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct ft_ranks *ranks;
static struct ft_writer out;

static void begin(size_t members, size_t edges)
{
    const struct ft_ranks_config config = {.members_max = members, .edges_max = edges};

    ranks = ft_ranks_new(&config);
    ck_assert_ptr_nonnull(ranks);
    ft_writer_init(&out, 64 << 20);
}

static void end(void)
{
    ft_ranks_free(ranks);
    ft_writer_free(&out);
}

static void join(const char *comm, uint32_t rank, bool closed)
{
    Fabrictrace__Communicator c = FABRICTRACE__COMMUNICATOR__INIT;

    c.comm_id = (char *)(uintptr_t)comm;
    c.has_rank = c.has_ranks = c.has_pid = true;
    c.rank = rank;
    c.ranks = 2;
    c.pid = 7;
    c.host = (char *)(uintptr_t) "gpu01";
    c.has_closed = c.closed = closed;
    ck_assert_int_eq(ft_ranks_communicator(ranks, &c), 0);
}

static void send(const char *comm, const char *op, uint32_t rank, uint32_t peer)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic p = FABRICTRACE__PEER_TRAFFIC__INIT, *list = &p;

    c.comm_id = (char *)(uintptr_t)comm;
    c.has_rank = true;
    c.rank = rank;
    c.op = (char *)(uintptr_t)op;
    p.has_peer = p.has_sent_messages = true;
    p.peer = peer;
    p.sent_messages = 1;
    c.peers = &list;
    c.n_peers = 1;
    ck_assert_int_eq(ft_ranks_collective(ranks, &c), 0);
}

/* The whole list, by so many items at a time; how many slices that took. */
static uint32_t write_all(const char *comm, const char *op, uint32_t items, size_t comms)
{
    struct ft_matrix *m = ft_matrix_new(ranks, comm, op);
    uint32_t slices = 1;

    ck_assert_ptr_nonnull(m);
    ft_writer_reset(&out);
    for (; !ft_matrix_step(m, &out, items); slices++)
        ;
    ck_assert(ft_writer_ok(&out));
    ck_assert_uint_eq(ft_matrix_written(m), comms);
    ft_matrix_free(m);
    ft_write_u8(&out, 0);
    return slices;
}

#define EDGE "\"sent_bytes\":0,\"received_bytes\":0,\"sent_messages\":1,\"received_messages\":0}"
#define RANK ",\"host\":\"gpu01\",\"pid\":7}"

START_TEST(communicators_in_order_with_their_ranks_and_pairs)
{
    begin(100, 100);
    join("b", 1, false);
    join("b", 0, false);
    join("a", 3, false);
    send("b", "AllReduce", 1, 0);
    send("b", "AllGather", 0, 1);
    send("aa", "AllReduce", 0, 1); /* that nobody announced */
    send("b", "AllReduce", 0, 1);
    for (uint32_t items = 1; items < 40; items += 6) {
        write_all(NULL, NULL, items, 2);
        ck_assert_str_eq((const char *)out.bytes,
                         "{\"comm_id\":\"a\",\"ranks\":2,\"members\":[{\"rank\":3" RANK
                         "],\"edges\":[]},"
                         "{\"comm_id\":\"b\",\"ranks\":2,\"members\":[{\"rank\":0" RANK
                         ",{\"rank\":1" RANK "],\"edges\":["
                         "{\"src\":0,\"dst\":1,\"op\":\"AllGather\"," EDGE
                         ",{\"src\":0,\"dst\":1,\"op\":\"AllReduce\"," EDGE
                         ",{\"src\":1,\"dst\":0,\"op\":\"AllReduce\"," EDGE "]}");
        write_all("b", "AllGather", items, 1);
        ck_assert_ptr_null(strstr((const char *)out.bytes, "AllReduce"));
        write_all("none", NULL, items, 0);
        ck_assert_str_eq((const char *)out.bytes, "");
    }
    end();
}
END_TEST

/* The work of a slice has a bound, and that of all slices grows with what there is. */
START_TEST(a_thousand_communicators_take_one_look_at_each_pair)
{
    enum { COMMS = 1000, RANKS = 16, ITEMS = 100 };
    uint32_t members = COMMS * RANKS, edges = COMMS * RANKS, slices;
    char comm[FT_RANKS_ID];

    begin(members, edges);
    for (uint32_t c = 0; c < COMMS; c++)
        for (uint32_t r = 0; r < RANKS; r++) {
            snprintf(comm, sizeof(comm), "%08x", c * 2654435761u);
            join(comm, r, false);
            send(comm, "AllReduce", r, (r + 1) % RANKS);
        }
    slices = write_all(NULL, NULL, ITEMS, COMMS);
    /* Each is put in order and written; a communicator begins and ends two lists. */
    ck_assert_uint_le(slices, (2 * (members + edges) + 3 * COMMS) / ITEMS + 2);
    ck_assert_uint_ge(slices, 2 * (members + edges) / ITEMS);
    end();
}
END_TEST

/* What has gone while the answer is made is left out of it. */
START_TEST(what_goes_meanwhile_is_left_out)
{
    struct ft_matrix *m;

    begin(4, 100);
    ft_ranks_age(ranks, 1000000);
    join("a", 0, true);
    join("a", 1, false);
    join("b", 0, true);
    join("c", 0, false);
    send("a", "AllReduce", 0, 1);
    m = ft_matrix_new(ranks, NULL, NULL);
    ck_assert(!ft_matrix_step(m, &out, 7)); /* in order by now */
    /* Members that are over make room for this one. */
    join("d", 0, false);
    while (!ft_matrix_step(m, &out, 1))
        ;
    ft_write_u8(&out, 0);
    ck_assert_uint_eq(ft_matrix_written(m), 2);
    ck_assert_ptr_nonnull(strstr((const char *)out.bytes, "\"comm_id\":\"a\""));
    ck_assert_ptr_null(strstr((const char *)out.bytes, "\"comm_id\":\"b\""));
    ck_assert_ptr_null(strstr((const char *)out.bytes, "\"closed\""));
    ck_assert_ptr_nonnull(strstr((const char *)out.bytes, "\"comm_id\":\"c\""));
    ft_matrix_free(m);
    end();
}
END_TEST

FT_UNIT_MAIN("matrix", communicators_in_order_with_their_ranks_and_pairs,
             a_thousand_communicators_take_one_look_at_each_pair, what_goes_meanwhile_is_left_out)

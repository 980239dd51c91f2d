// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/ranks.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/ranks_rig.h"
#include "tests/unit/unit.h"

START_TEST(how_far_a_member_is_is_kept)
{
    Fabrictrace__Transfer t[3] = {FABRICTRACE__TRANSFER__INIT, FABRICTRACE__TRANSFER__INIT,
                                  FABRICTRACE__TRANSFER__INIT};
    Fabrictrace__Transfer *list[3] = {&t[0], &t[1], &t[2]};
    Fabrictrace__Progress in = FABRICTRACE__PROGRESS__INIT;
    struct ft_ranks *r = make(16, 16);
    const struct ft_rank_member *m;
    uint32_t index = 0;

    for (uint32_t i = 0; i < 3; i++) {
        t[i].has_since_ms = t[i].has_state = t[i].has_peer = t[i].has_number = true;
        t[i].since_ms = 100 - i;
        t[i].peer = i;
        t[i].number = i == 2 ? 8 : 7;
        t[i].state = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT;
    }
    in.comm_id = (char *)(uintptr_t) "aa";
    in.host = (char *)(uintptr_t) "a";
    in.has_rank = in.has_number = true;
    in.pid = 11;
    in.time_ms = 1000;
    in.number = in.begun = 7;
    in.op = (char *)(uintptr_t) "AllReduce";
    in.transfers = list;
    in.n_transfers = 3;
    /* Nobody knows it; then another process has the rank; then it says so itself. */
    ft_ranks_progress(r, &in);
    join(r, "aa", 0, "a", 12, false);
    ft_ranks_progress(r, &in);
    m = ft_ranks_next_member(r, &index);
    ck_assert_int_eq(m->progress.time_ms, 0);
    join(r, "aa", 0, "a", 12, true);
    join(r, "aa", 0, "a", 11, false);
    ft_ranks_progress(r, &in);
    ck_assert_int_eq(m->progress.time_ms, 1000);
    ck_assert_str_eq(m->progress.op, "AllReduce");
    /* The oldest is of a later operation. */
    ck_assert_uint_eq(m->progress.transfer_peer, 1);
    ck_assert_int_eq(m->progress.transfer_since_ms, 99);
    join(r, "aa", 0, "a", 11, false);
    ck_assert_int_eq(m->progress.time_ms, 1000);
    join(r, "aa", 0, "a", 11, true);
    join(r, "aa", 0, "a", 13, false);
    ck_assert_int_eq(m->progress.time_ms, 0);
    ft_ranks_free(r);
}
END_TEST

START_TEST(one_pair_is_certain)
{
    struct ft_ranks *r = make(16, 16);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];

    ck_assert_uint_eq(match(r, "a", "b", 0, UINT32_MAX, pairs), 0);
    ck_assert_int_eq(join(r, "c0", 0, "a", 10, false), 0);
    ck_assert_int_eq(join(r, "c0", 1, "b", 20, false), 0);
    ck_assert_int_eq(send(r, "c0", 0, 1, 0), 0);
    ck_assert_uint_eq(match(r, "a", "b", 0, UINT32_MAX, pairs), 1);
    ck_assert_str_eq(pairs[0].comm_id, "c0");
    ck_assert_str_eq(pairs[0].job, "88");
    ck_assert_uint_eq(pairs[0].src, 0);
    ck_assert_uint_eq(pairs[0].dst, 1);
    /* Nobody sends the other way, nor from another process. */
    ck_assert_uint_eq(match(r, "b", "a", 0, UINT32_MAX, pairs), 0);
    ck_assert_uint_eq(match(r, "a", "b", 11, UINT32_MAX, pairs), 0);
    ck_assert_uint_eq(match(r, "a", NULL, 0, UINT32_MAX, pairs), 0);
    ft_ranks_free(r);
}
END_TEST

START_TEST(several_pairs_are_candidates)
{
    struct ft_ranks *r = make(16, 16);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];

    for (uint32_t rank = 0; rank < 4; rank++)
        ck_assert_int_eq(join(r, "c0", rank, rank % 2 ? "b" : "a", 10 + rank, false), 0);
    ck_assert_int_eq(send(r, "c0", 0, 1, 71), 0);
    ck_assert_int_eq(send(r, "c0", 2, 3, 0), 0);
    ck_assert_uint_eq(match(r, "a", "b", 0, UINT32_MAX, pairs), 2);
    /* The process tells them apart, and so does a queue pair that NCCL named. */
    ck_assert_uint_eq(match(r, "a", "b", 12, UINT32_MAX, pairs), 1);
    ck_assert_uint_eq(pairs[0].src, 2);
    ck_assert_uint_eq(match(r, "a", "b", 0, 71, pairs), 1);
    ck_assert_uint_eq(pairs[0].dst, 1);
    /* A queue pair that is another process's by now says nothing. */
    ck_assert_uint_eq(match(r, "a", "b", 12, 71, pairs), 1);
    ck_assert_uint_eq(pairs[0].src, 2);
    ft_ranks_free(r);
}
END_TEST

/* Whose agent does not know its process may not be the flow's, which may have no plugin. */
START_TEST(a_rank_of_a_process_that_is_not_known_is_not_certain)
{
    const struct ft_rank_query query = {"a", "b", 11, UINT32_MAX};
    struct ft_ranks *r = make(16, 16);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];
    bool more = false;

    ck_assert_int_eq(join(r, "c0", 0, "a", 0, false), 0);
    ck_assert_int_eq(join(r, "c0", 1, "b", 0, false), 0);
    ck_assert_int_eq(send(r, "c0", 0, 1, 0), 0);
    ck_assert_uint_eq(ft_ranks_match(r, &query, pairs, &more), 1);
    ck_assert(more);
    ft_ranks_free(r);
}
END_TEST

START_TEST(a_closed_communicator_matches_nothing)
{
    struct ft_ranks *r = make(16, 16);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];

    join(r, "c0", 0, "a", 10, false);
    join(r, "c0", 1, "b", 20, false);
    send(r, "c0", 0, 1, 0);
    /* Late word of a process that another has followed. */
    ck_assert_int_eq(join(r, "c0", 0, "a", 9, true), -EEXIST);
    ck_assert_uint_eq(match(r, "a", "b", 0, UINT32_MAX, pairs), 1);
    ck_assert_int_eq(join(r, "c0", 0, "a", 10, true), 0);
    ck_assert_uint_eq(match(r, "a", "b", 0, UINT32_MAX, pairs), 0);
    /* The next communicator takes its place. */
    join(r, "c1", 0, "a", 10, false);
    join(r, "c1", 1, "b", 20, false);
    send(r, "c1", 0, 1, 0);
    ck_assert_uint_eq(match(r, "a", "b", 0, UINT32_MAX, pairs), 1);
    ck_assert_str_eq(pairs[0].comm_id, "c1");
    ft_ranks_free(r);
}
END_TEST

START_TEST(more_than_can_be_named_is_said)
{
    struct ft_ranks *r = make(64, 64);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];
    const struct ft_rank_query query = {"a", "b", 0, UINT32_MAX};
    bool more;

    for (uint32_t i = 0; i <= FT_RANKS_CANDIDATES_MAX; i++) {
        ck_assert_int_eq(join(r, "c0", 2 * i, "a", 0, false), 0);
        ck_assert_int_eq(join(r, "c0", 2 * i + 1, "b", 0, false), 0);
        ck_assert_int_eq(send(r, "c0", 2 * i, 2 * i + 1, 0), 0);
    }
    ck_assert_uint_eq(ft_ranks_match(r, &query, pairs, &more), FT_RANKS_CANDIDATES_MAX);
    ck_assert(more);
    ft_ranks_free(r);
}
END_TEST

START_TEST(full_or_wrong_is_an_error)
{
    struct ft_ranks *r = make(1, 1);

    ck_assert_int_eq(join(r, NULL, 0, "a", 1, false), -EINVAL);
    ck_assert_int_eq(join(r, "0123456789abcdef0", 0, "a", 1, false), -EINVAL);
    ck_assert_int_eq(join(r, "c0", 0, NULL, 1, false), -EINVAL);
    ck_assert_int_eq(join(r, "c0", 0, "a", 1, false), 0);
    ck_assert_int_eq(join(r, "c0", 1, "a", 1, false), -ENOSPC);
    ck_assert_int_eq(send(r, "c0", 0, 1, 0), 0);
    ck_assert_int_eq(send(r, "c0", 0, 2, 0), -ENOSPC);
    ft_ranks_free(r);
}
END_TEST

/* N bytes, n ranks; 306 M float32 over 8 ranks give 2.142 GB an edge. */
START_TEST(formulas)
{
    ck_assert_double_eq_tol(ft_ranks_expected("AllReduce", "RING", 306e6 * 4, 8, 1, 1), 2.142e9,
                            1e3);
    ck_assert_double_eq(ft_ranks_expected("AllReduce", "RING", 800, 4, 2, 1), 600);
    ck_assert_double_eq(ft_ranks_expected("AllReduce", "TREE", 800, 4, 2, 1), 400);
    ck_assert_double_eq(ft_ranks_expected("AllGather", "RING", 800, 4, 2, 1), 300);
    ck_assert_double_eq(ft_ranks_expected("ReduceScatter", "RING", 800, 4, 1, 1), 600);
    ck_assert_double_eq(ft_ranks_expected("Broadcast", "RING", 800, 4, 2, 1), 400);
    ck_assert_double_eq(ft_ranks_expected("Reduce", "RING", 800, 4, 1, 1), 800);
    ck_assert_double_eq(ft_ranks_expected("Send", NULL, 800, 4, 1, 2), 400);
    ck_assert_double_eq(ft_ranks_expected("AlltoAll", NULL, 800, 4, 1, 1), 200);
    ck_assert_double_eq(ft_ranks_expected("AllReduce", "NVLS", 800, 4, 1, 1), -1);
    ck_assert_double_eq(ft_ranks_expected(NULL, "RING", 800, 4, 1, 1), -1);
    ck_assert_double_eq(ft_ranks_expected("AllReduce", "RING", 800, 0, 1, 1), -1);
}
END_TEST

/* Each communicator has an id of its own, and there is no end of them. */
START_TEST(communicators_that_are_over_make_room)
{
    struct ft_ranks *r = make(16, 16);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];

    for (uint32_t i = 0; i < 100; i++) {
        char comm[FT_RANKS_ID], a[8], b[8];

        ft_ranks_age(r, (int64_t)i * 2000, UINT32_MAX);
        snprintf(comm, sizeof(comm), "c%u", i);
        /* Hosts, too, come and go. */
        snprintf(a, sizeof(a), "a%u", i);
        snprintf(b, sizeof(b), "b%u", i);
        ck_assert_int_eq(join(r, comm, 0, a, 10, false), 0);
        ck_assert_int_eq(join(r, comm, 1, b, 20, false), 0);
        ck_assert_int_eq(send_of(r, comm, 0, 1, 17 + i, 10, a), 0);
        ck_assert_uint_eq(match(r, a, b, 0, UINT32_MAX, pairs), 1);
        ck_assert_str_eq(pairs[0].comm_id, comm);
        ck_assert_int_eq(join(r, comm, 0, a, 10, true), 0);
        ck_assert_int_eq(join(r, comm, 1, b, 20, true), 0);
    }
    ft_ranks_free(r);
}
END_TEST

/* A host that died says no farewell for its ranks. */
/* Eight ranks of a host that send to another in two communicators: sixteen pairs, two a process. */
START_TEST(of_a_known_process_its_own_pairs_are_named)
{
    struct ft_ranks *r = make(64, 64);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];

    for (uint32_t i = 0; i < 8; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            const char *comm = k ? "c1" : "c0";

            ck_assert_int_eq(join(r, comm, 2 * i, "a", 100 + i, false), 0);
            ck_assert_int_eq(join(r, comm, 2 * i + 1, "b", 200 + i, false), 0);
            ck_assert_int_eq(send(r, comm, 2 * i, 2 * i + 1, 0), 0);
        }
    }
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert_uint_eq(match(r, "a", "b", 100 + i, UINT32_MAX, pairs), 2);
        ck_assert_uint_eq(pairs[0].src, 2 * i);
        ck_assert_uint_eq(pairs[1].src, 2 * i);
        ck_assert_str_ne(pairs[0].comm_id, pairs[1].comm_id);
    }
    ft_ranks_free(r);
}
END_TEST

START_TEST(who_is_not_announced_any_more_is_over)
{
    struct ft_ranks *r = make(16, 16);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];
    uint32_t index = 0;

    ft_ranks_age(r, 1000000, UINT32_MAX);
    join(r, "c0", 0, "a", 10, false);
    join(r, "c0", 1, "b", 20, false);
    send(r, "c0", 0, 1, 0);
    ft_ranks_age(r, 1110000, UINT32_MAX);
    join(r, "c0", 1, "b", 20, false);
    ck_assert_uint_eq(match(r, "a", "b", 0, UINT32_MAX, pairs), 1);
    ft_ranks_age(r, 1130000, UINT32_MAX);
    ck_assert_uint_eq(match(r, "a", "b", 0, UINT32_MAX, pairs), 0);
    join(r, "c0", 0, "a", 10, false);
    ck_assert_uint_eq(match(r, "a", "b", 0, UINT32_MAX, pairs), 1);
    /* It is still shown, and then no more. */
    ft_ranks_age(r, 1130000 + 3400000, UINT32_MAX);
    ck_assert_uint_eq(match(r, "a", "b", 0, UINT32_MAX, pairs), 0);
    ck_assert_ptr_nonnull(ft_ranks_next_member(r, &index));
    ck_assert_ptr_nonnull(ft_ranks_next_edge(r, &(uint32_t){0}));
    ft_ranks_age(r, 1130000 + 3700000, UINT32_MAX);
    ck_assert_ptr_null(ft_ranks_next_member(r, &(uint32_t){0}));
    ck_assert_ptr_null(ft_ranks_next_edge(r, &(uint32_t){0}));
    ft_ranks_free(r);
}
END_TEST

/* This host's clock is set back by an hour, and a host is switched off: its ranks are over as soon.
 */
START_TEST(a_clock_that_was_set_back)
{
    const struct ft_rank_query query = {"a", "b", 10, 7};
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];
    struct ft_ranks *r = make(16, 16);
    bool more;

    ft_ranks_age(r, 4600000, UINT32_MAX);
    ck_assert_int_eq(join(r, "c1", 0, "a", 10, false), 0);
    ck_assert_int_eq(join(r, "c1", 1, "b", 11, false), 0);
    ck_assert_int_eq(send(r, "c1", 0, 1, 7), 0);
    for (int64_t ms = 1000000; ms <= 1100000; ms += 10000)
        ft_ranks_age(r, ms, UINT32_MAX);
    ck_assert_uint_eq(ft_ranks_match(r, &query, pairs, &more), 1);
    for (int64_t ms = 1110000; ms <= 1140000; ms += 10000)
        ft_ranks_age(r, ms, UINT32_MAX);
    ck_assert_uint_eq(ft_ranks_match(r, &query, pairs, &more), 0);
    ck_assert(ft_ranks_member(r, "c1", 0)->closed);
    ft_ranks_free(r);
}
END_TEST

/* Agents list up to 128, and four queue pairs for each; each costs a look at all others. */
START_TEST(too_many_peers_are_none)
{
    enum { MANY = 100000 };
    Fabrictrace__PeerTraffic p = FABRICTRACE__PEER_TRAFFIC__INIT, **list;
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    struct ft_ranks *r = make(16, 16);
    uint32_t *qps = calloc(MANY, sizeof(*qps));

    list = calloc(MANY, sizeof(*list));
    ck_assert(list && qps);
    for (uint32_t i = 0; i < MANY; i++)
        list[i] = &p;
    p.has_peer = p.has_sent_messages = true;
    ck_assert_int_eq(join(r, "00", 0, "a", 10, false), 0);
    c.comm_id = (char *)(uintptr_t) "00";
    c.has_rank = true;
    c.host = (char *)(uintptr_t) "a";
    c.peers = list;
    c.n_peers = MANY;
    ck_assert_int_eq(ft_ranks_collective(r, &c), -EINVAL);
    c.n_peers = 1;
    p.local_qps = qps;
    p.n_local_qps = MANY;
    ck_assert_int_eq(ft_ranks_collective(r, &c), -EINVAL);
    ck_assert_uint_eq(ft_ranks_edges(r), 0);
    p.n_local_qps = 16;
    c.n_peers = 256;
    ck_assert_int_eq(ft_ranks_collective(r, &c), 0);
    free(list);
    free(qps);
    ft_ranks_free(r);
}
END_TEST

/* 40 communicators of two ranks, of which every other ends; a record comes after each step. */
static struct ft_ranks *age_in_steps(uint32_t items, uint32_t *steps)
{
    struct ft_ranks *r = make(200, 200);
    char comm[FT_RANKS_ID], a[8], b[8];
    int64_t ms = 1000000;

    ft_ranks_age(r, ms, UINT32_MAX);
    for (uint32_t i = 0; i < 40; i++) {
        snprintf(comm, sizeof(comm), "c%u", i);
        snprintf(a, sizeof(a), "a%u", i);
        snprintf(b, sizeof(b), "b%u", i);
        ck_assert_int_eq(join(r, comm, 0, a, 10, false), 0);
        ck_assert_int_eq(join(r, comm, 1, b, 20, false), 0);
        ck_assert_int_eq(send_of(r, comm, 0, 1, 17 + i, 10, a), 0);
    }
    for (int minutes = 0; minutes < 62; minutes++) {
        ms += 60000;
        ft_ranks_at(r, ms);
        for (uint32_t i = 0; i < 40; i += 2) {
            snprintf(comm, sizeof(comm), "c%u", i);
            snprintf(a, sizeof(a), "a%u", i);
            snprintf(b, sizeof(b), "b%u", i);
            join(r, comm, 0, a, 10, false);
            join(r, comm, 1, b, 20, false);
            send_of(r, comm, 0, 1, 17 + i, 0, NULL);
        }
        while (ft_ranks_age(r, ms, items)) {
            snprintf(comm, sizeof(comm), "d%u", *steps % 20);
            join(r, comm, 0, "d", 30, *steps % 3 == 0);
            ++*steps;
        }
    }
    return r;
}

START_TEST(ageing_in_steps_forgets_the_same)
{
    uint32_t none = 0, steps = 0, index = 0;
    struct ft_ranks *whole = age_in_steps(UINT32_MAX, &none), *slow = age_in_steps(1, &steps);
    const struct ft_rank_edge *e;
    const struct ft_rank_member *m;
    char comm[FT_RANKS_ID];

    ck_assert_uint_eq(none, 0);
    ck_assert_uint_gt(steps, 62 * 80);
    ck_assert_uint_eq(ft_ranks_edges(whole), 20);
    ck_assert_uint_eq(ft_ranks_edges(slow), 20);
    ck_assert_uint_eq(ft_ranks_members(whole), 40);
    ck_assert_uint_eq(ft_ranks_members(slow), 60); /* and those that came meanwhile */
    while ((e = ft_ranks_next_edge(slow, &index)))
        ck_assert_str_eq(e->comm_id, ft_ranks_edge_at(whole, index - 1)->comm_id);
    for (uint32_t i = 0; i < 40; i++) {
        snprintf(comm, sizeof(comm), "c%u", i);
        m = ft_ranks_member(slow, comm, 0);
        ck_assert((m != NULL) == (i % 2 == 0));
        ck_assert(!m || !m->closed);
    }
    ft_ranks_free(whole);
    ft_ranks_free(slow);
}
END_TEST

/* Of a full table one that has ended is found, in a few calls if need be, and no more is looked at
 * where there is none. */
START_TEST(a_full_table_is_searched_bit_by_bit)
{
    enum { MANY = 6000 };
    struct ft_ranks *r = make(MANY, 16);
    char comm[FT_RANKS_ID];
    int calls = 1;

    ft_ranks_age(r, 1000000, UINT32_MAX);
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(comm, sizeof(comm), "c%u", i);
        ck_assert_int_eq(join(r, comm, 0, "a", 10, i == MANY - 1), 0);
    }
    while (join(r, "new", 0, "a", 20, false))
        calls++;
    ck_assert_int_gt(calls, 1);
    ck_assert_int_lt(calls, 8);
    snprintf(comm, sizeof(comm), "c%u", MANY - 1);
    ck_assert_ptr_null(ft_ranks_member(r, comm, 0));
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(join(r, "newer", 0, "a", 20, false), -ENOSPC);
    join(r, "c5", 0, "a", 10, true);
    ck_assert_int_eq(join(r, "newer", 0, "a", 20, false), -ENOSPC); /* it rests for a second */
    ft_ranks_at(r, 1001000);
    for (calls = 0; join(r, "newer", 0, "a", 20, false); calls++)
        ck_assert_int_lt(calls, 8);
    ft_ranks_free(r);
}
END_TEST

/* A job that says that it is ranks of another: of their host or of another one, by announcing them,
 * closing them, or reporting operations and queue pairs of theirs. */
START_TEST(a_rank_is_who_was_the_first)
{
    struct ft_ranks *r = make(16, 16);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];
    const struct ft_rank_member *m;
    bool more;

    ft_ranks_at(r, 1000);
    ck_assert_int_eq(join(r, "aa", 0, "a", 11, false), 0);
    ck_assert_int_eq(join(r, "aa", 1, "b", 21, false), 0);
    ck_assert_int_eq(send(r, "aa", 0, 1, 7), 0);
    m = ft_ranks_member(r, "aa", 0);
    ck_assert_int_eq(join(r, "aa", 0, "a", 66, false), -EEXIST);
    ck_assert_int_eq(join(r, "aa", 0, "c", 11, false), -EEXIST);
    ck_assert_int_eq(join(r, "aa", 0, "a", 66, true), -EEXIST);
    ck_assert_str_eq(m->host, "a");
    ck_assert_uint_eq(m->pid, 11);
    ck_assert(!m->closed);
    ck_assert_uint_eq(ft_ranks_contested(r), 3);
    /* Another rank's operation, by host "b" as send() has it. */
    ck_assert_int_eq(join(r, "aa", 3, "c", 31, false), 0);
    ck_assert_int_eq(send(r, "aa", 3, 0, 9), -EEXIST);
    ck_assert_uint_eq(ft_ranks_edges(r), 1);
    ck_assert_uint_eq(ft_ranks_contested(r), 4);
    /* A rank of its own, with the other's queue pair, which stays that of who was the first. Of the
     * pairs of those hosts it is one more, and another device may have the same number: without its
     * process, nobody knows whose that is. */
    ck_assert_int_eq(join(r, "bb", 2, "a", 66, false), 0);
    ck_assert_int_eq(join(r, "bb", 1, "b", 22, false), 0);
    ck_assert_int_eq(send_of(r, "bb", 2, 1, 7, 66, "a"), 0);
    ck_assert_uint_eq(ft_ranks_contested(r), 5);
    ck_assert_uint_eq(match(r, "a", "b", 11, 7, pairs), 1);
    ck_assert_str_eq(pairs[0].comm_id, "aa");
    ck_assert_uint_eq(pairs[0].src, 0);
    ck_assert_uint_eq(ft_ranks_match(r, &(struct ft_rank_query){"a", "b", 0, 7}, pairs, &more), 2);
    ck_assert(more);
    /* It has left; and one that is silent has as well. */
    ck_assert_int_eq(join(r, "aa", 0, "a", 11, true), 0);
    ck_assert_int_eq(join(r, "aa", 0, "c", 66, false), 0);
    ck_assert_str_eq(m->host, "c");
    ft_ranks_at(r, 1000 + 120000);
    ck_assert_int_eq(join(r, "aa", 1, "c", 67, false), 0);
    ck_assert_uint_eq(ft_ranks_contested(r), 5);
    ft_ranks_free(r);
}
END_TEST

/* Numbers of queue pairs are a device's: two of a host may have one number. Who is meant is known
 * by the process, and by where the flow leads. */
START_TEST(a_number_of_two_devices_is_of_neither)
{
    struct ft_ranks *r = make(16, 16);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];
    bool more;

    ft_ranks_at(r, 1000000);
    join(r, "aa", 0, "a", 11, false);
    join(r, "aa", 1, "b", 21, false);
    join(r, "aa", 2, "c", 31, false);
    join(r, "bb", 0, "a", 12, false);
    join(r, "bb", 1, "b", 22, false);
    ck_assert_int_eq(send_of(r, "aa", 0, 1, 7, 11, "a"), 0);
    ck_assert_uint_eq(match(r, "a", "b", 0, 7, pairs), 1);
    /* It leads to another host than that of the pair that has it. */
    ck_assert_uint_eq(match(r, "a", "c", 11, 7, pairs), 0);
    /* Another process on another device: known by the process, and by that alone. */
    ck_assert_int_eq(send_of(r, "bb", 0, 1, 7, 12, "a"), 0);
    ck_assert_uint_eq(match(r, "a", "b", 11, 7, pairs), 1);
    ck_assert_str_eq(pairs[0].comm_id, "aa");
    ck_assert_uint_eq(match(r, "a", "b", 12, 7, pairs), 1);
    ck_assert_str_eq(pairs[0].comm_id, "bb");
    ck_assert_uint_eq(ft_ranks_match(r, &(struct ft_rank_query){"a", "b", 0, 7}, pairs, &more), 2);
    ck_assert(more);
    /* One process on two devices, to two hosts: it is of either. */
    ck_assert_int_eq(send_of(r, "aa", 0, 2, 8, 11, "a"), 0);
    ck_assert_int_eq(send_of(r, "aa", 0, 1, 8, 11, "a"), 0);
    ck_assert_uint_eq(match(r, "a", "c", 11, 8, pairs), 1);
    ck_assert_uint_eq(pairs[0].dst, 2);
    ck_assert_uint_eq(match(r, "a", "b", 11, 8, pairs), 1);
    ck_assert_uint_eq(pairs[0].dst, 1);
    /* And to one host, for two communicators: not even that shows it. */
    join(r, "cc", 0, "a", 11, false);
    join(r, "cc", 1, "b", 21, false);
    ck_assert_int_eq(send_of(r, "cc", 0, 1, 9, 11, "a"), 0);
    ck_assert_uint_eq(match(r, "a", "b", 11, 9, pairs), 1);
    ck_assert_int_eq(send_of(r, "aa", 0, 1, 9, 11, "a"), 0);
    ck_assert_uint_eq(match(r, "a", "b", 11, 9, pairs), 2);
    /* It is one's alone when the other was not heard of for long. */
    for (int64_t ms = 1030000; ms <= 1180000; ms += 30000) {
        ft_ranks_at(r, ms);
        join(r, "cc", 0, "a", 11, false);
        join(r, "cc", 1, "b", 21, false);
        join(r, "aa", 0, "a", 11, false);
        join(r, "aa", 1, "b", 21, false);
        ck_assert_int_eq(send_of(r, "cc", 0, 1, 9, 11, "a"), 0);
    }
    ck_assert_uint_eq(match(r, "a", "b", 11, 9, pairs), 1);
    ck_assert_str_eq(pairs[0].comm_id, "cc");
    ft_ranks_free(r);
}
END_TEST

/* A rank that another process on another host is by now is no pair of the host that it left. */
START_TEST(a_rank_that_moved_is_where_it_is)
{
    struct ft_ranks *r = make(16, 16);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];

    join(r, "aa", 0, "a", 11, false);
    join(r, "aa", 1, "b", 21, false);
    send_of(r, "aa", 0, 1, 7, 11, "a");
    join(r, "aa", 1, "b", 21, true);
    join(r, "aa", 1, "c", 31, false);
    ck_assert_uint_eq(match(r, "a", "b", 11, 7, pairs), 0);
    ck_assert_uint_eq(match(r, "a", "b", 0, UINT32_MAX, pairs), 0);
    ft_ranks_free(r);
}
END_TEST

/* Names are kept as far as there is room for them. */
START_TEST(hosts_of_long_names_are_known)
{
    char a[FT_RANKS_NAME + 20], b[FT_RANKS_NAME + 20];
    Fabrictrace__Progress in = FABRICTRACE__PROGRESS__INIT;
    struct ft_ranks *r = make(16, 16);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];

    memset(a, 'a', sizeof(a) - 1);
    memset(b, 'b', sizeof(b) - 1);
    a[sizeof(a) - 1] = b[sizeof(b) - 1] = '\0';
    join(r, "aa", 0, a, 11, false);
    join(r, "aa", 1, b, 21, false);
    ck_assert_int_eq(send_of(r, "aa", 0, 1, 7, 11, a), 0);
    ck_assert_uint_eq(match(r, a, b, 11, 7, pairs), 1);
    ck_assert_uint_eq(match(r, a, b, 11, UINT32_MAX, pairs), 1);
    in.comm_id = (char *)(uintptr_t) "aa";
    in.host = a;
    in.has_rank = true;
    in.pid = 11;
    in.time_ms = 1000;
    ft_ranks_progress(r, &in);
    ck_assert_int_eq(ft_ranks_member(r, "aa", 0)->progress.time_ms, 1000);
    in.host = b;
    in.time_ms = 2000;
    ft_ranks_progress(r, &in);
    ck_assert_int_eq(ft_ranks_member(r, "aa", 0)->progress.time_ms, 1000);
    ft_ranks_free(r);
}
END_TEST

FT_UNIT_MAIN("ranks", a_number_of_two_devices_is_of_neither, a_rank_that_moved_is_where_it_is,
             hosts_of_long_names_are_known, a_rank_is_who_was_the_first,
             ageing_in_steps_forgets_the_same, a_full_table_is_searched_bit_by_bit,
             a_clock_that_was_set_back, how_far_a_member_is_is_kept, one_pair_is_certain,
             several_pairs_are_candidates, a_rank_of_a_process_that_is_not_known_is_not_certain,
             a_closed_communicator_matches_nothing, more_than_can_be_named_is_said,
             of_a_known_process_its_own_pairs_are_named, too_many_peers_are_none,
             full_or_wrong_is_an_error, communicators_that_are_over_make_room,
             who_is_not_announced_any_more_is_over, formulas)

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/ranks.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/unit/ranks_rig.h"
#include "tests/unit/unit.h"

/* One process reports operations of communicators that it does not announce: as many as the tables
 * have room for, and more. */
START_TEST(what_nobody_announced_fills_no_table)
{
    struct ft_ranks *r = make(64, 64);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];
    char comm[FT_RANKS_ID];

    ft_ranks_age(r, 1000000, UINT32_MAX);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(comm, sizeof(comm), "%u", i);
        send_of(r, comm, 0, 1, 1 + i, 66, "x");
    }
    ck_assert_uint_eq(ft_ranks_edges(r), 0);
    ck_assert_int_eq(join(r, "c0", 0, "a", 10, false), 0);
    ck_assert_int_eq(join(r, "c0", 1, "b", 20, false), 0);
    ck_assert_int_eq(send(r, "c0", 0, 1, 7), 0);
    ck_assert_uint_eq(match(r, "a", "b", 10, 7, pairs), 1);
    ck_assert_uint_eq(match(r, "a", "b", 10, UINT32_MAX, pairs), 1);
    /* Whoever announces something else has announced none of this. */
    ck_assert_int_eq(join(r, "own", 0, "x", 66, false), 0);
    send_of(r, "foreign", 0, 1, 5000, 66, "x");
    ck_assert_uint_eq(ft_ranks_edges(r), 1);
    ft_ranks_age(r, 1070000, UINT32_MAX);
    ck_assert_uint_eq(ft_ranks_unannounced(r), 1001);
    ft_ranks_free(r);
}
END_TEST

static struct ft_rank_edge edge_between(const struct ft_ranks *r, uint32_t src, uint32_t dst)
{
    const struct ft_rank_edge *e;
    uint32_t index = 0;

    while ((e = ft_ranks_next_edge(r, &index)))
        if (e->src == src && e->dst == dst)
            return *e;
    return (struct ft_rank_edge){.src = src};
}

/* What came before its announcement is held against that, too. */
START_TEST(a_peer_that_its_communicator_has_not_is_none)
{
    struct ft_ranks *r = make(16, 16);

    ft_ranks_age(r, 1000000, UINT32_MAX);
    ck_assert_int_eq(send_of(r, "c0", 0, 9, 7, 10, "a"), -ENOENT);
    ck_assert_int_eq(send_of(r, "c0", 0, 1, 7, 10, "a"), -ENOENT);
    ck_assert_int_eq(join_of(r, "c0", 0, 4, "a", 10, false), 0);
    ck_assert_uint_eq(ft_ranks_edges(r), 1);
    ck_assert_uint_eq(ft_ranks_contested(r), 1);
    ft_ranks_free(r);
}
END_TEST

/* Announcements come by another topic than operations, and a daemon that is started anew hears of
 * a rank within half a minute: what it reported until then counts. */
START_TEST(an_announcement_may_come_later)
{
    struct ft_ranks *r = make(16, 16);

    ft_ranks_age(r, 1000000, UINT32_MAX);
    ck_assert_int_eq(send_of(r, "c0", 0, 1, 7, 10, "a"), -ENOENT);
    ck_assert_int_eq(send_of(r, "c0", 0, 1, 7, 10, "a"), -ENOENT);
    ck_assert_int_eq(send_of(r, "c0", 0, 2, 7, 10, "a"), -ENOENT);
    ck_assert_int_eq(send_of(r, "c0", 0, 1, 7, 11, "a"), -ENOENT);
    ck_assert_int_eq(send_of(r, "c0", 0, 1, 7, 10, "b"), -ENOENT);
    ck_assert_uint_eq(ft_ranks_edges(r), 0);
    ft_ranks_age(r, 1030000, UINT32_MAX);
    ck_assert_int_eq(join(r, "c0", 0, "a", 10, false), 0);
    ck_assert_uint_eq(ft_ranks_edges(r), 2);
    ck_assert_uint_eq(edge_between(r, 0, 1).sent_bytes, 3000);
    ck_assert_uint_eq(edge_between(r, 0, 1).sent_messages, 4);
    ck_assert_double_eq(edge_between(r, 0, 1).expected_bytes, 3000);
    ck_assert_str_eq(edge_between(r, 0, 1).comm_id, "c0");
    ck_assert_uint_eq(edge_between(r, 0, 2).sent_bytes, 1500);
    ck_assert_int_eq(send_of(r, "c0", 0, 1, 7, 10, "a"), 0);
    ck_assert_uint_eq(edge_between(r, 0, 1).sent_bytes, 4500);
    ck_assert_uint_eq(ft_ranks_unannounced(r), 0);
    /* The others never said that they are it. */
    ft_ranks_age(r, 1065000, UINT32_MAX);
    ck_assert_uint_eq(ft_ranks_unannounced(r), 2);
    ck_assert_uint_eq(ft_ranks_contested(r), 0);
    ft_ranks_free(r);
}
END_TEST

/* A rank of a process's own communicator, of as many ranks as it likes; and as many ranks as it
 * likes. Two other hosts need some of the tables all the same, now and later. */
START_TEST(no_host_takes_what_others_need)
{
    struct ft_ranks *r = make(60, 60);
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];
    char comm[FT_RANKS_ID];

    ft_ranks_age(r, 1000000, UINT32_MAX);
    ck_assert_int_eq(join_of(r, "own", 0, 1000000, "x", 66, false), 0);
    for (uint32_t i = 0; i < 500; i++)
        send_of(r, "own", 0, 1 + i, 1 + i, 66, "x");
    for (uint32_t i = 0; i < 500; i++) {
        snprintf(comm, sizeof(comm), "own%u", i);
        join(r, comm, 0, "x", 66, false);
    }
    ck_assert_uint_eq(ft_ranks_edges(r), 60);
    ck_assert_uint_eq(ft_ranks_members(r), 60);
    for (uint32_t i = 0; i < 10; i++) {
        snprintf(comm, sizeof(comm), "c%u", i);
        ck_assert_int_eq(join(r, comm, 0, "a", 10, false), 0);
        ck_assert_int_eq(join(r, comm, 1, "b", 20, false), 0);
        ck_assert_int_eq(send_of(r, comm, 0, 1, 7 + i, 10, "a"), 0);
        ck_assert_int_eq(send_of(r, comm, 1, 0, 7 + i, 20, "b"), 0);
        ck_assert_uint_ge(match(r, "a", "b", 10, 7 + i, pairs), 1);
        /* It comes back and takes nothing from them, who have less. */
        for (uint32_t k = 0; k < 500; k++) {
            send_of(r, "own", 0, 1 + k, 1 + k, 66, "x");
            join_of(r, "own", 0, 1000000, "x", 66, false);
        }
        ck_assert_uint_ge(match(r, "a", "b", 10, 7 + i, pairs), 1);
    }
    for (uint32_t i = 0; i < 10; i++) {
        snprintf(comm, sizeof(comm), "c%u", i);
        ck_assert_ptr_nonnull(ft_ranks_member(r, comm, 0));
        ck_assert_ptr_nonnull(ft_ranks_member(r, comm, 1));
    }
    ck_assert_uint_ge(ft_ranks_displaced(r), 20);
    /* Whoever has its share waits for what ends. */
    for (uint32_t i = 10; i < 40; i++) {
        snprintf(comm, sizeof(comm), "c%u", i);
        join(r, comm, 0, "a", 10, false);
    }
    ck_assert_int_eq(join(r, "more", 0, "a", 10, false), -ENOSPC);
    ft_ranks_free(r);
}
END_TEST

START_TEST(a_rank_that_its_communicator_does_not_have)
{
    struct ft_ranks *r = make(16, 16);

    ck_assert_int_eq(join_of(r, "c0", 4, 4, "a", 10, false), -EEXIST);
    ck_assert_int_eq(join_of(r, "c0", 3, 4, "a", 10, false), 0);
    ck_assert_int_eq(send_of(r, "c0", 3, 4, 0, 10, "a"), 0);
    ck_assert_uint_eq(ft_ranks_edges(r), 0);
    ck_assert_uint_eq(ft_ranks_contested(r), 2);
    ck_assert_int_eq(send_of(r, "c0", 3, 2, 0, 10, "a"), 0);
    ck_assert_uint_eq(ft_ranks_edges(r), 1);
    ft_ranks_free(r);
}
END_TEST

FT_UNIT_MAIN("ranks_room", a_peer_that_its_communicator_has_not_is_none,
             what_nobody_announced_fills_no_table, an_announcement_may_come_later,
             no_host_takes_what_others_need, a_rank_that_its_communicator_does_not_have)

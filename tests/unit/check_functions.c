// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/functions.h"

#include <stdio.h>

#include "daemon/diagnosis/recent.h"
#include "tests/unit/unit.h"

#define NOW INT64_C(1700000000000)

static struct ft_recent *recent;

static void begin(void)
{
    const struct ft_recent_config config = {.ranks_max = 16, .rows_max = 4096};

    recent = ft_recent_new(&config);
    ck_assert_ptr_nonnull(recent);
}

/* Rows that the rank has afterwards. */
static size_t run(const char *comm_id, const char *function, int64_t now_ms)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic peer = FABRICTRACE__PEER_TRAFFIC__INIT, *peers[] = {&peer};

    c.comm_id = (char *)(uintptr_t)comm_id;
    c.op = (char *)(uintptr_t)function;
    c.host = c.job = (char *)(uintptr_t)comm_id;
    c.has_rank = c.has_start_ms = c.has_duration_us = c.has_sequence = true;
    c.start_ms = (uint64_t)now_ms;
    c.duration_us = 1000;
    c.peers = peers;
    c.n_peers = 1;
    ck_assert_int_eq(ft_recent_collective(recent, &c, now_ms), 0);
    return ft_recent_find(recent, comm_id, 0)->count;
}

static void set_in_progress(const char *comm_id, const char *function, int64_t now_ms)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;

    p.comm_id = (char *)(uintptr_t)comm_id;
    p.op = (char *)(uintptr_t)function;
    p.host = p.job = (char *)(uintptr_t)comm_id;
    p.has_rank = p.has_start_ms = p.has_state = true;
    p.start_ms = (uint64_t)now_ms;
    p.state = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT;
    ck_assert_int_eq(ft_recent_progress(recent, &p, now_ms), 0);
}

static void on_over(void *arg, const struct ft_recent_job *job)
{
    (void)job;
    ++*(int *)arg;
}

/* A job may choose the names of its functions: those of NCCL are there for the others all the
 * same, and the rest once it is over. */
START_TEST(names_of_a_job_do_not_outlive_it)
{
    char name[FT_FUNCTIONS_BYTES];
    int over = 0;

    begin();
    for (int i = 0; i < 2 * FT_FUNCTIONS_MAX; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        run("a", name, NOW);
    }
    ck_assert_uint_gt(ft_recent_refused(recent), FT_FUNCTIONS_MAX);
    ck_assert_uint_lt(run("a", "f0", NOW), FT_FUNCTIONS_MAX);
    ck_assert_uint_eq(run("b", "AllReduce", NOW), 1);
    ck_assert_uint_eq(run("b", "AllToAllV", NOW), 1);
    while (ft_recent_age(recent, NOW + 100000, 1, on_over, &over))
        ;
    ck_assert_uint_eq(run("b", "AllToAllV", NOW + 100000), 1);
    while (ft_recent_age(recent, NOW + 120001, 1, on_over, &over))
        ;
    ck_assert_int_eq(over, 1);
    ck_assert_uint_eq(run("b", "AllToAllV", NOW + 120001), 2);
    ck_assert_uint_eq(run("b", "AllReduce", NOW + 120001), 3);
    ft_recent_free(recent);
}
END_TEST

/* The oldest rows of a full ring are written over, and an operation in progress has no row. */
START_TEST(names_stay_as_long_as_something_has_them)
{
    const struct ft_recent_rank *rank;
    int over = 0;

    begin();
    run("a", "Mine", NOW);
    set_in_progress("b", "Standing", NOW);
    while (ft_recent_age(recent, NOW, 1, on_over, &over))
        ;
    rank = ft_recent_find(recent, "a", 0);
    ck_assert_str_eq(ft_recent_function(recent, ft_recent_row(rank, 0)->function), "Mine");
    for (int i = 0; i < 1024; i++)
        run("a", "AllReduce", NOW);
    while (ft_recent_age(recent, NOW + 10000, 1, on_over, &over))
        ;
    run("a", "Another", NOW + 10000);
    ck_assert_str_eq(ft_recent_function(recent, ft_recent_row(rank, 1023)->function), "Another");
    rank = ft_recent_find(recent, "b", 0);
    ck_assert_str_eq(ft_recent_function(recent, rank->progress.row.function), "Standing");
    ft_recent_free(recent);
}
END_TEST

FT_UNIT_MAIN("functions", names_of_a_job_do_not_outlive_it,
             names_stay_as_long_as_something_has_them)

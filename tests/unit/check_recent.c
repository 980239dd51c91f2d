// SPDX-License-Identifier: Apache-2.0
/* How ranks are forgotten: in steps, and at once where they leave in order. */
#include "config.h"

#include "daemon/diagnosis/recent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define NOW INT64_C(1700000000000)

enum { JOBS = 4, OF_JOB = 64, RANKS = JOBS * OF_JOB, ROUNDS = FT_SANITIZED ? 5000 : 50000 };

static struct ft_recent *recent;
static unsigned over;

static void on_over(void *arg, const struct ft_recent_job *job)
{
    (void)arg;
    ck_assert_ptr_null(job->first);
    ck_assert_uint_eq(job->ranks, 0);
    over++;
}

static void open_recent(size_t ranks)
{
    const struct ft_recent_config config = {.ranks_max = ranks, .rows_max = ranks * 16};

    recent = ft_recent_new(&config);
    ck_assert_ptr_nonnull(recent);
    over = 0;
}

/* An operation of a rank; its job is its communicator. */
static void run(uint32_t job, uint32_t rank, int64_t now_ms)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic peer = FABRICTRACE__PEER_TRAFFIC__INIT, *list[] = {&peer};
    char comm[16];

    snprintf(comm, sizeof(comm), "%x", job);
    c.comm_id = comm;
    c.host = (char *)(uintptr_t) "h";
    c.op = (char *)(uintptr_t) "AllReduce";
    c.has_rank = c.has_pid = c.has_start_ms = c.has_duration_us = true;
    c.rank = rank;
    c.pid = 1 + rank;
    c.start_ms = (uint64_t)now_ms;
    c.operations = 1;
    c.peers = list;
    c.n_peers = 1;
    ck_assert_int_eq(ft_recent_collective(recent, &c, now_ms), 0);
}

static void leave(uint32_t job, uint32_t rank)
{
    char comm[16];

    snprintf(comm, sizeof(comm), "%x", job);
    ft_recent_leave(recent, comm, rank, "h", 1 + rank);
}

static bool age(int64_t now_ms, uint64_t work)
{
    return ft_recent_age(recent, now_ms, work, on_over, NULL);
}

/* Of all jobs, each of whose lists is sound. */
static size_t listed(void)
{
    const struct ft_recent_job *job;
    uint32_t index = 0;
    size_t all = 0;

    while ((job = ft_recent_next(recent, &index))) {
        const struct ft_recent_rank *before = NULL, *rank = job->first;
        size_t count = 0;

        for (; rank; before = rank, rank = rank->next, count++)
            ck_assert_ptr_eq(rank->before, before);
        ck_assert_ptr_eq(job->last, before);
        ck_assert_uint_eq(job->ranks, count);
        all += count;
    }
    return all;
}

/* However many have fallen silent at once. */
START_TEST(a_step_forgets_few)
{
    size_t left = 3000;
    unsigned steps = 0;

    open_recent(left);
    for (uint32_t i = 0; i < 3000; i++)
        run(1, i, NOW);
    ck_assert(!age(NOW, 10000));
    for (bool more = true; more; steps++) {
        more = age(NOW + 120001, 50);
        ck_assert_uint_ge(ft_recent_ranks(recent) + 8, left);
        left = ft_recent_ranks(recent);
        ck_assert_uint_eq(listed(), left);
    }
    ck_assert_uint_eq(left, 0);
    ck_assert_uint_eq(over, 1);
    ck_assert_uint_ge(steps, 3000 / 8);
    ft_recent_free(recent);
}
END_TEST

START_TEST(who_leaves_is_gone_at_once)
{
    open_recent(16);
    for (uint32_t i = 0; i < 4; i++) {
        run(1, i, NOW);
        run(2, i, NOW);
    }
    ck_assert(!age(NOW, 1000));
    leave(1, 1);
    leave(1, 1);
    ck_assert_uint_eq(ft_recent_ranks(recent), 7);
    ck_assert_uint_eq(listed(), 7);
    ck_assert_ptr_null(ft_recent_find(recent, "1", 1));
    for (uint32_t i = 0; i < 4; i++)
        leave(2, i);
    /* A job that begins anew before it is noticed that it was over is another one. */
    leave(1, 0);
    leave(1, 2);
    leave(1, 3);
    run(1, 7, NOW + 1);
    /* No sweep is due, and no rank is looked at for it. */
    ck_assert(!age(NOW + 2, 0));
    ck_assert_uint_eq(over, 2);
    ck_assert_uint_eq(listed(), 1);
    ft_recent_free(recent);
}
END_TEST

static uint32_t rolled = 1;

static uint32_t roll(uint32_t below)
{
    rolled ^= rolled << 13;
    rolled ^= rolled >> 17;
    rolled ^= rolled << 5;
    return rolled % below;
}

/* What a round did of a rank: when it was heard, 0: it left. Nothing is swept that was heard of,
 * and what was not is once a sweep has ended. */
static int64_t heard_ms[RANKS];

static void compare(int64_t swept_ms)
{
    size_t count = 0;

    for (uint32_t i = 0; i < RANKS; i++) {
        char comm[16];
        const struct ft_recent_rank *rank;

        snprintf(comm, sizeof(comm), "%x", i / OF_JOB);
        rank = ft_recent_find(recent, comm, i % OF_JOB);
        count += rank != NULL;
        if (heard_ms[i] == 0)
            ck_assert_ptr_null(rank);
        else if (swept_ms - heard_ms[i] <= 120000)
            ck_assert_ptr_nonnull(rank);
        else
            ck_assert_ptr_null(rank);
    }
    ck_assert_uint_eq(count, ft_recent_ranks(recent));
    ck_assert_uint_eq(count, listed());
}

START_TEST(records_may_come_between_steps)
{
    int64_t now_ms = NOW, begun_ms = 0;
    unsigned sweeps = 0;

    open_recent(RANKS);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t who = roll(RANKS);
        bool more;

        if (roll(8) == 0) {
            leave(who / OF_JOB, who % OF_JOB);
            heard_ms[who] = 0;
        } else if (who % 3) {
            run(who / OF_JOB, who % OF_JOB, now_ms);
            heard_ms[who] = now_ms;
        }
        if (begun_ms == 0)
            now_ms += roll(1000);
        more = age(now_ms, 1 + roll(30));
        ck_assert_uint_eq(listed(), ft_recent_ranks(recent));
        if (more) {
            begun_ms = now_ms;
        } else if (begun_ms) {
            compare(begun_ms);
            begun_ms = 0;
            sweeps++;
        }
        if (roll(3000) == 0 && begun_ms == 0)
            now_ms += 100000;
        /* A job ends, all of it. */
        for (uint32_t k = 0; k < OF_JOB && i % 500 == 499; k++) {
            leave(who / OF_JOB, k);
            heard_ms[who / OF_JOB * OF_JOB + k] = 0;
        }
    }
    ck_assert_uint_gt(sweeps, ROUNDS / 200);
    ck_assert_uint_gt(over, ROUNDS / 10000);
    ft_recent_free(recent);
}
END_TEST

/* An operation of a rank in a communicator of so many ranks, by a process of a host. */
static int say(const char *job, const char *comm, uint32_t rank, uint32_t ranks, const char *host,
               uint32_t pid, int64_t now_ms)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;

    p.job = (char *)(uintptr_t)job;
    p.comm_id = (char *)(uintptr_t)comm;
    p.host = (char *)(uintptr_t)host;
    p.has_rank = p.has_ranks = p.has_pid = true;
    p.rank = rank;
    p.ranks = ranks;
    p.pid = pid;
    return ft_recent_progress(recent, &p, now_ms);
}

/* Jobs that have ranks. */
static size_t jobs(void)
{
    const struct ft_recent_job *job;
    uint32_t index = 0;
    size_t n = 0;

    while ((job = ft_recent_next(recent, &index)))
        n += job->ranks > 0;
    return n;
}

/* Two groups of a job are one job from the communicator on that both are in; what merely has its
 * name never is. */
START_TEST(what_is_connected_is_one_job)
{
    open_recent(64);
    ck_assert_int_eq(say("88", "a", 0, 2, "h1", 10, NOW), 0);
    ck_assert_int_eq(say("88", "a", 1, 2, "h1", 11, NOW), 0);
    ck_assert_int_eq(say("88", "b", 0, 2, "h2", 10, NOW), 0);
    ck_assert_int_eq(say("88", "b", 1, 2, "h2", 11, NOW), 0);
    ck_assert_int_eq(say("88", "c", 0, 2, "h3", 10, NOW), 0);
    ck_assert_uint_eq(jobs(), 3);
    ck_assert_int_eq(say("88", "w", 0, 3, "h1", 10, NOW), 0);
    ck_assert_uint_eq(jobs(), 3);
    ck_assert_int_eq(say("88", "w", 1, 3, "h2", 11, NOW), 0);
    ck_assert_uint_eq(jobs(), 2);
    ck_assert_uint_eq(listed(), 7);
    ck_assert(!age(NOW, 1000));
    ck_assert_uint_eq(over, 1);
    /* Processes that are not known, of one host and name. */
    ck_assert_int_eq(say("88", "d", 0, 1, "h4", 0, NOW), 0);
    ck_assert_int_eq(say("88", "e", 0, 1, "h4", 0, NOW), 0);
    ck_assert_int_eq(say("89", "f", 0, 1, "h4", 0, NOW), 0);
    ck_assert_int_eq(say("", "g", 0, 1, "h4", 7, NOW), 0);
    ck_assert_int_eq(say("", "h", 0, 1, "h4", 7, NOW), 0);
    ck_assert_uint_eq(jobs(), 6);
    ft_recent_free(recent);
}
END_TEST

/* What a process says of ranks of others is counted, and changes nothing. */
START_TEST(a_rank_is_the_process_that_said_so_first)
{
    const struct ft_recent_rank *rank;
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;

    open_recent(64);
    ck_assert_int_eq(say("88", "a", 0, 4, "h1", 10, NOW), 0);
    rank = ft_recent_find(recent, "a", 0);
    ck_assert_int_eq(say("88", "a", 0, 4, "h2", 10, NOW + 100000), -EEXIST);
    ck_assert_int_eq(say("89", "a", 0, 4, "h1", 11, NOW + 100000), -EEXIST);
    /* Nor has the communicator ranks that it has not, or that nobody has. */
    ck_assert_int_eq(say("88", "a", 5, 1000000, "h2", 10, NOW), -EEXIST);
    ck_assert_int_eq(say("88", "a", 4, 4, "h2", 10, NOW), -EEXIST);
    ck_assert_int_eq(say("88", "a", 0, 5, "h1", 10, NOW), -EEXIST);
    ck_assert_uint_eq(ft_recent_contested(recent), 5);
    ck_assert_uint_eq(ft_recent_ranks(recent), 1);
    ck_assert_str_eq(rank->process->host, "h1");
    ck_assert_int_eq(rank->heard_ms, NOW);
    /* Nobody leaves for another, whose number another host's process may have. */
    ft_recent_leave(recent, "a", 0, "h2", 10);
    ck_assert_ptr_eq(ft_recent_find(recent, "a", 0), rank);
    /* It is free when its process died, or was silent for long. */
    p.comm_id = (char *)(uintptr_t) "a";
    p.job = (char *)(uintptr_t) "88";
    p.host = (char *)(uintptr_t) "h1";
    p.has_rank = p.has_pid = p.has_process = true;
    p.pid = 10;
    p.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE;
    ck_assert_int_eq(ft_recent_progress(recent, &p, NOW), 0);
    ck_assert_int_eq(say("88", "a", 0, 4, "h2", 10, NOW + 1), 0);
    ck_assert_int_eq(say("88", "a", 0, 4, "h3", 10, NOW + 120000), -EEXIST);
    ck_assert_int_eq(say("88", "a", 0, 4, "h3", 10, NOW + 120002), 0);
    ck_assert_str_eq(ft_recent_find(recent, "a", 0)->process->host, "h3");
    ck_assert_uint_eq(listed(), 1);
    ft_recent_free(recent);
}
END_TEST

/* One process does not take the room of all others. */
START_TEST(a_process_has_so_many_communicators)
{
    char comm[16];

    open_recent(2000);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(comm, sizeof(comm), "%x", i);
        ck_assert_int_eq(say("88", comm, 0, 2, "h1", 10, NOW), i < 512 ? 0 : -ENOSPC);
    }
    ck_assert_uint_eq(ft_recent_refused(recent), 1000 - 512);
    ck_assert_int_eq(say("88", "0", 1, 2, "h2", 10, NOW), 0);
    ft_recent_free(recent);
}
END_TEST

/* Groups become one job, and ranks leave, while others are swept: no list breaks, nothing that was
 * heard of is lost. */
START_TEST(jobs_become_one_between_steps)
{
    enum { PROCESSES = 32, COMMS = 48 };
    int64_t now_ms = NOW;
    size_t united = 0;

    open_recent(PROCESSES * COMMS);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t pid = roll(PROCESSES), c = roll(COMMS);
        char comm[16];
        size_t before = jobs(), ranks = ft_recent_ranks(recent);

        snprintf(comm, sizeof(comm), "%x", c);
        /* Few are in more than one. */
        if (roll(8) == 0) {
            ft_recent_leave(recent, comm, pid, "h", 1 + pid);
        } else if (c % PROCESSES == pid || roll(64) == 0) {
            ck_assert_int_eq(say("88", comm, pid, PROCESSES, "h", 1 + pid, now_ms), 0);
            ck_assert_int_eq(ft_recent_find(recent, comm, pid)->heard_ms, now_ms);
            united += ft_recent_ranks(recent) > ranks && jobs() < before;
        }
        now_ms += roll(300);
        age(now_ms, 1 + roll(10));
        ck_assert_uint_eq(listed(), ft_recent_ranks(recent));
    }
    ck_assert_uint_ge(united, 10);
    ck_assert_uint_gt(over, united);
    ft_recent_free(recent);
}
END_TEST

FT_UNIT_MAIN("recent", a_step_forgets_few, who_leaves_is_gone_at_once,
             records_may_come_between_steps, what_is_connected_is_one_job,
             a_rank_is_the_process_that_said_so_first, a_process_has_so_many_communicators,
             jobs_become_one_between_steps)

// SPDX-License-Identifier: Apache-2.0
/* Work on a stack of its own, in steps by the work done. */
#include "config.h"

#include "lib/base/task.h"

#include <stdint.h>
#include <string.h>

#include "tests/unit/unit.h"

struct job {
    struct ft_task *task;
    uint32_t rounds, done;
    uint64_t cost;
};

static void work(void *arg)
{
    struct job *job = arg;

    for (uint32_t i = 0; i < job->rounds; i++) {
        job->done++;
        ft_task_spend(job->task, job->cost);
    }
}

static void start(struct job *job, uint32_t rounds, uint64_t cost)
{
    *job = (struct job){.rounds = rounds, .cost = cost, .task = ft_task_new(work, job)};
    ck_assert_ptr_nonnull(job->task);
    ck_assert_uint_eq(job->done, 0);
}

START_TEST(a_step_ends_when_its_work_is_done)
{
    struct job job;

    start(&job, 10, 3);
    /* 3 + 3 + 3 is the first sum that spends 7. */
    for (uint32_t done = 3; done < 10; done += 3) {
        ck_assert(ft_task_step(job.task, 7));
        ck_assert_uint_eq(job.done, done);
    }
    ck_assert(!ft_task_step(job.task, 7));
    ck_assert_uint_eq(job.done, 10);
    /* It is over, and stays so. */
    ck_assert(!ft_task_step(job.task, 7));
    ck_assert_uint_eq(job.done, 10);
    ft_task_free(job.task);
}
END_TEST

START_TEST(steps_are_as_long_as_they_are_asked_for)
{
    struct job job;

    start(&job, 100, 1);
    ck_assert(ft_task_step(job.task, 0)); /* the least that there is */
    ck_assert_uint_eq(job.done, 1);
    ck_assert(ft_task_step(job.task, 50));
    ck_assert_uint_eq(job.done, 51);
    ck_assert(!ft_task_step(job.task, UINT64_MAX));
    ck_assert_uint_eq(job.done, 100);
    ft_task_free(job.task);
    start(&job, 3, UINT64_MAX); /* each is more than a step */
    for (uint32_t done = 1; done <= 3; done++) {
        ck_assert(ft_task_step(job.task, 10));
        ck_assert_uint_eq(job.done, done);
    }
    ck_assert(!ft_task_step(job.task, 10));
    ft_task_free(job.task);
    start(&job, 0, 1); /* nothing to do */
    ck_assert(!ft_task_step(job.task, 1));
    ft_task_free(job.task);
    ft_task_free(NULL);
}
END_TEST

/* What it holds on its stack is there after each pause, while others run on theirs. */
struct tree {
    struct ft_task *task;
    uint64_t seed, sum;
};

static uint64_t descend(struct tree *t, uint32_t depth, uint64_t at)
{
    uint64_t kept[8], sum = 0;

    for (uint32_t i = 0; i < 8; i++)
        kept[i] = at * 6364136223846793005u + i + t->seed;
    ft_task_spend(t->task, 1);
    for (uint32_t i = 0; depth && i < 2; i++)
        sum += descend(t, depth - 1, kept[i]);
    for (uint32_t i = 0; i < 8; i++)
        sum += kept[i];
    return sum;
}

static void sum_up(void *arg)
{
    struct tree *t = arg;

    t->sum = descend(t, 10, 1);
}

START_TEST(several_run_in_turn)
{
    struct tree alone[3], turns[3];
    bool more = true;
    uint32_t steps = 0;

    for (uint64_t i = 0; i < 3; i++) {
        alone[i] = (struct tree){.seed = i};
        sum_up(&alone[i]); /* without a task nobody counts */
        turns[i] = (struct tree){.seed = i};
        turns[i].task = ft_task_new(sum_up, &turns[i]);
        ck_assert_ptr_nonnull(turns[i].task);
    }
    for (; more; steps++) {
        more = false;
        for (uint32_t i = 0; i < 3; i++)
            more |= ft_task_step(turns[i].task, 1 + i);
    }
    ck_assert_uint_ge(steps, 2047); /* nodes of a tree of ten levels, one a step */
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(turns[i].sum, alone[i].sum);
        ft_task_free(turns[i].task);
    }
}
END_TEST

FT_UNIT_MAIN("task", a_step_ends_when_its_work_is_done, steps_are_as_long_as_they_are_asked_for,
             several_run_in_turn)

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_TASK_H
#define FT_BASE_TASK_H
/*
 * Work that is too long for one step of a loop and reads best as one function: it runs on a stack
 * of its own, and pauses by itself whenever the work of a step is spent. What it reads must not
 * change between its steps. The pauses depend on the work alone, never on a clock, so that the same
 * calls give the same steps. Owner: who calls _new. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_task {
    uint64_t left; /* of the step; only for ft_task_spend() */
};

/* Runs nothing yet. NULL without memory. */
struct ft_task *ft_task_new(void (*run)(void *arg), void *arg);

/* One that is not over must have been stepped to its end before: what its function holds is known
 * to that function alone. NULL is taken. */
void ft_task_free(struct ft_task *task);

/* Continues until about this much work is done. True: there is more. */
bool ft_task_step(struct ft_task *task, uint64_t work);

void ft_task_pause(struct ft_task *task);

/* qsort() that pauses. NULL: it does not. */
void ft_task_sort(struct ft_task *task, void *items, size_t count, size_t bytes,
                  int (*compare)(const void *a, const void *b));

/* For the function that runs: this much is done. NULL: nobody counts. */
static inline void ft_task_spend(struct ft_task *task, uint64_t work)
{
    if (!task)
        return;
    task->left = work < task->left ? task->left - work : 0;
    if (task->left == 0)
        ft_task_pause(task);
}

#endif

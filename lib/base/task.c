// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/task.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* Pages that nobody touches cost nothing. */
#define STACK_BYTES ((size_t)1 << 20)
/* Comparisons of a sort that count as one. */
#define COMPARES 8

struct stacked_task {
    struct ft_task task;
    void (*run)(void *arg);
    void *arg;
    uint8_t *stack;
    size_t guard;
    ucontext_t own, caller;
    volatile bool back; /* whoever getcontext() returns for was left before */
    bool over;
};

static struct stacked_task *stacked(struct ft_task *task)
{
    return (struct stacked_task *)(void *)((uint8_t *)task - offsetof(struct stacked_task, task));
}

/* As swapcontext(), at which AddressSanitizer prints a warning. */
static void jump(struct stacked_task *w, ucontext_t *from, const ucontext_t *to)
{
    w->back = false;
    if (getcontext(from))
        abort();
    if (w->back)
        return;
    w->back = true;
    setcontext(to);
    abort();
}

/* makecontext() passes numbers of 32 bits. */
static void enter(unsigned high, unsigned low)
{
    struct stacked_task *w = (struct stacked_task *)(uintptr_t)((uint64_t)high << 32 | low);

    w->run(w->arg);
    w->over = true;
}

struct ft_task *ft_task_new(void (*run)(void *arg), void *arg)
{
    struct stacked_task *w = calloc(1, sizeof(*w));
    uint64_t at = (uint64_t)(uintptr_t)w;

    if (!w)
        return NULL;
    w->run = run;
    w->arg = arg;
    w->guard = (size_t)sysconf(_SC_PAGESIZE);
    w->stack = mmap(NULL, w->guard + STACK_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (w->stack == MAP_FAILED) {
        free(w);
        return NULL;
    }
    /* It grows downwards: what would leave it ends the program instead of spoiling others' memory.
     */
    if (mprotect(w->stack, w->guard, PROT_NONE) || getcontext(&w->own)) {
        munmap(w->stack, w->guard + STACK_BYTES);
        free(w);
        return NULL;
    }
    w->own.uc_stack.ss_sp = w->stack + w->guard;
    w->own.uc_stack.ss_size = STACK_BYTES;
    w->own.uc_link = &w->caller;
    makecontext(&w->own, (void (*)(void))(uintptr_t)enter, 2, (unsigned)(at >> 32), (unsigned)at);
    return &w->task;
}

void ft_task_free(struct ft_task *task)
{
    struct stacked_task *w;

    if (!task)
        return;
    w = stacked(task);
    assert(w->over);
    munmap(w->stack, w->guard + STACK_BYTES);
    free(w);
}

bool ft_task_step(struct ft_task *task, uint64_t work)
{
    struct stacked_task *w = stacked(task);

    if (w->over)
        return false;
    task->left = work ? work : 1;
    jump(w, &w->caller, &w->own);
    return !w->over;
}

void ft_task_pause(struct ft_task *task)
{
    struct stacked_task *w = stacked(task);

    jump(w, &w->own, &w->caller);
}

struct sort {
    struct ft_task *task;
    int (*compare)(const void *a, const void *b);
    unsigned compares;
};

static int compare_and_spend(const void *a, const void *b, void *arg)
{
    struct sort *s = arg;

    if (++s->compares == COMPARES) {
        s->compares = 0;
        ft_task_spend(s->task, 1);
    }
    return s->compare(a, b);
}

void ft_task_sort(struct ft_task *task, void *items, size_t count, size_t bytes,
                  int (*compare)(const void *a, const void *b))
{
    struct sort s = {.task = task, .compare = compare};

    if (!count)
        return;
    if (task)
        qsort_r(items, count, bytes, compare_and_spend, &s);
    else
        qsort(items, count, bytes, compare);
}

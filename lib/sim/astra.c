// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/astra.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/sim/astra_system.h"

enum state {
    WAITING,
    FREE, /* nothing that it depends on is left */
    ONGOING,
    DONE,
};

struct task {
    enum state state;
    uint32_t left;  /* dependencies */
    uint64_t pass;  /* in which it became free */
    uint32_t first; /* children[first] up to the next task's */
};

struct sim;

/* The trace of one rank at work. */
struct workload {
    struct ft_astra_sys *sys;
    struct task *tasks;
    uint32_t *children;
    uint32_t lowest; /* no task below it is free */
    uint32_t free, ongoing, done;
    uint32_t cpu, compute, comm; /* nodes in flight; receives are in none */
    uint64_t pass;
    bool finished;
};

struct sim {
    const struct ft_astra_input *in;
    struct ft_astra_net *net;
    struct workload *loads;
    uint64_t *finished_ns;
    char *error;
    size_t error_bytes;
    int rc;
};

#define NO_SIZE "has a comm_size of 0, or none"

static void refuse(struct sim *sim, uint32_t rank, uint32_t node, const char *what)
{
    if (sim->rc == 0)
        snprintf(sim->error, sim->error_bytes, "rank %u: node %llu %s", rank,
                 (unsigned long long)sim->in->ranks[rank].nodes[node].id, what);
    sim->rc = sim->rc ? sim->rc : -EINVAL;
}

/* In flight of the kind that a node is; NULL where any number may be. */
static uint32_t *slot_of(struct workload *w, const struct ft_astra_node *node)
{
    if (node->cpu)
        return &w->cpu;
    if (node->kind == FT_ASTRA_COMPUTE)
        return &w->compute;
    return node->kind == FT_ASTRA_RECV ? NULL : &w->comm;
}

static bool is_skipped(const struct ft_astra_node *node)
{
    return node->kind == FT_ASTRA_SKIPPED ||
           (node->kind == FT_ASTRA_COMPUTE && node->runtime_ns == 0);
}

/* Who waited for what is skipped begins in the same pass. */
static void end_task(struct sim *sim, uint32_t rank, uint32_t node)
{
    bool skipped = is_skipped(&sim->in->ranks[rank].nodes[node]);
    struct workload *w = &sim->loads[rank];
    uint32_t *slot = slot_of(w, &sim->in->ranks[rank].nodes[node]);

    if (slot)
        --*slot;
    w->tasks[node].state = DONE;
    w->ongoing--;
    w->done++;
    for (uint32_t i = w->tasks[node].first; i < w->tasks[node + 1].first; i++) {
        struct task *child = &w->tasks[w->children[i]];

        if (--child->left > 0 || child->state != WAITING)
            continue;
        child->state = FREE;
        child->pass = skipped ? 0 : w->pass;
        w->free++;
        if (w->children[i] < w->lowest)
            w->lowest = w->children[i];
    }
}

static void message(struct sim *sim, uint32_t rank, uint32_t index)
{
    const struct ft_astra_node *node = &sim->in->ranks[rank].nodes[index];
    /* Numbers of nodes, not pointers: 0 means no call. */
    void *what = (void *)((uintptr_t)index << 1 | 1);

    if (node->peer >= sim->in->rank_count || node->peer == rank)
        refuse(sim, rank, index, "has a peer that is not another rank");
    else if (node->bytes == 0)
        refuse(sim, rank, index, NO_SIZE);
    else if (node->kind == FT_ASTRA_SEND)
        ft_astra_send(sim->net, node->tag, rank, node->peer, node->bytes, what);
    else
        ft_astra_receive(sim->net, node->tag, node->peer, rank, node->bytes, what);
}

static void issue(struct sim *sim, uint32_t rank, uint32_t index)
{
    struct workload *w = &sim->loads[rank];
    const struct ft_astra_node *node = &sim->in->ranks[rank].nodes[index];
    uint32_t *slot = slot_of(w, node);
    const char *what = NULL;

    w->tasks[index].state = ONGOING;
    w->free--;
    w->ongoing++;
    if (slot)
        ++*slot;
    if (is_skipped(node)) {
        end_task(sim, rank, index);
        return;
    }
    switch (node->kind) {
    case FT_ASTRA_SKIPPED:
        break;
    case FT_ASTRA_COMPUTE:
    case FT_ASTRA_SLEEP:
        ft_astra_sys_sleep(w->sys, index, node->runtime_ns);
        break;
    case FT_ASTRA_SEND:
    case FT_ASTRA_RECV:
        message(sim, rank, index);
        break;
    case FT_ASTRA_COLLECTIVE:
        what = node->bytes ? ft_astra_sys_collective(w->sys, index) : NO_SIZE;
        if (what)
            refuse(sim, rank, index, what);
        break;
    }
}

/* Those that were free when the pass began, and those behind what is skipped, by their ids, as far
 * as nothing of their kind runs. */
static void issue_free(struct sim *sim, uint32_t rank)
{
    struct workload *w = &sim->loads[rank];
    const struct ft_astra_rank *r = &sim->in->ranks[rank];
    uint32_t left = w->free, from = w->lowest, kept, freed;

    w->pass++;
    w->lowest = r->count;
    for (uint32_t i = from; i < r->count && left > 0; i++) {
        uint32_t *slot;

        if (w->tasks[i].state != FREE || w->tasks[i].pass == w->pass)
            continue;
        left--;
        slot = slot_of(w, &r->nodes[i]);
        if (slot && *slot > 0) {
            w->lowest = i < w->lowest ? i : w->lowest;
            continue;
        }
        if (!is_skipped(&r->nodes[i])) {
            issue(sim, rank, i);
            continue;
        }
        kept = w->lowest;
        w->lowest = r->count;
        issue(sim, rank, i);
        freed = w->lowest;
        w->lowest = freed < kept ? freed : kept;
        left = w->free;
        if (freed < i)
            i = freed - 1;
    }
}

static void look_whether_finished(struct sim *sim, uint32_t rank)
{
    struct workload *w = &sim->loads[rank];

    /* One that waits for what never comes is not done, though nothing of its rank runs any more. */
    if (w->ongoing || w->cpu || w->compute || w->comm || w->done < sim->in->ranks[rank].count)
        return;
    w->finished = true;
    sim->finished_ns[rank] = ft_astra_now(sim->net);
}

static void on_done(void *arg, uint32_t rank, uint32_t node)
{
    struct sim *sim = arg;

    if (sim->loads[rank].finished)
        return;
    end_task(sim, rank, node);
    issue_free(sim, rank);
    look_whether_finished(sim, rank);
}

static void on_wake(void *arg, uint32_t rank)
{
    ft_astra_sys_wake(((struct sim *)arg)->loads[rank].sys);
}

static void on_sent(void *arg, uint32_t rank, void *what)
{
    on_done(arg, rank, (uint32_t)((uintptr_t)what >> 1));
}

/* Pointers to streams are even. */
static void on_received(void *arg, uint32_t rank, void *what)
{
    if ((uintptr_t)what & 1)
        on_done(arg, rank, (uint32_t)((uintptr_t)what >> 1));
    else
        ft_astra_sys_received(((struct sim *)arg)->loads[rank].sys, what);
}

/* Who waits for whom, the other way round. */
static int link_tasks(struct workload *w, const struct ft_astra_rank *r)
{
    uint32_t deps = 0, linked, at;

    for (uint32_t i = 0; i < r->count; i++)
        deps += r->nodes[i].dep_count;
    w->tasks = calloc((size_t)r->count + 2, sizeof(*w->tasks));
    w->children = calloc((size_t)deps + 1, sizeof(*w->children));
    if (!w->tasks || !w->children)
        return -ENOMEM;
    for (uint32_t i = 0; i < r->count; i++) {
        w->tasks[i].left = r->nodes[i].dep_count;
        for (uint32_t k = 0; k < r->nodes[i].dep_count; k++)
            if ((at = r->deps[r->nodes[i].first_dep + k]) != UINT32_MAX)
                w->tasks[at + 1].first++;
    }
    for (uint32_t i = 0; i <= r->count; i++)
        w->tasks[i + 1].first += w->tasks[i].first;
    linked = w->tasks[r->count].first;
    for (uint32_t i = r->count; i-- > 0;)
        for (uint32_t k = r->nodes[i].dep_count; k-- > 0;)
            if ((at = r->deps[r->nodes[i].first_dep + k]) != UINT32_MAX)
                w->children[--w->tasks[at + 1].first] = i;
    /* Filled from behind, each start has moved to that of the task before. */
    for (uint32_t i = 0; i <= r->count; i++)
        w->tasks[i].first = w->tasks[i + 1].first;
    w->tasks[r->count].first = linked;
    for (uint32_t i = 0; i < r->count; i++) {
        if (w->tasks[i].left > 0)
            continue;
        w->tasks[i].state = FREE;
        w->free++;
    }
    return 0;
}

static int set_up(struct sim *sim)
{
    struct ft_astra_calls calls = {sim, on_wake, on_sent, on_received};
    struct ft_astra_owner owner = {sim, on_done};

    sim->net = ft_astra_net_new(&sim->in->network, &calls);
    sim->loads = calloc((size_t)sim->in->rank_count + 1, sizeof(*sim->loads));
    if (!sim->net || !sim->loads)
        return -ENOMEM;
    for (uint32_t i = 0; i < sim->in->rank_count; i++) {
        sim->finished_ns[i] = FT_ASTRA_UNFINISHED;
        sim->loads[i].sys = ft_astra_sys_new(sim->in, sim->net, i, &owner);
        if (!sim->loads[i].sys || link_tasks(&sim->loads[i], &sim->in->ranks[i]) < 0)
            return -ENOMEM;
    }
    return 0;
}

static void tear_down(struct sim *sim)
{
    for (uint32_t i = 0; sim->loads && i < sim->in->rank_count; i++) {
        ft_astra_sys_free(sim->loads[i].sys);
        free(sim->loads[i].tasks);
        free(sim->loads[i].children);
    }
    free(sim->loads);
    ft_astra_net_free(sim->net);
}

int ft_astra_run(const struct ft_astra_input *in, uint64_t *finished_ns, char *error,
                 size_t error_bytes)
{
    struct sim sim = {
        .in = in, .finished_ns = finished_ns, .error = error, .error_bytes = error_bytes};

    error[0] = '\0';
    sim.rc = set_up(&sim);
    for (uint32_t i = 0; sim.rc == 0 && i < in->rank_count; i++) {
        issue_free(&sim, i);
        look_whether_finished(&sim, i);
    }
    while (sim.rc == 0 && ft_astra_proceed(sim.net))
        ;
    if (sim.rc == 0 && ft_astra_net_endless(sim.net)) {
        snprintf(error, error_bytes, "something takes more than a century: rates and sizes?");
        sim.rc = -EINVAL;
    }
    for (uint32_t i = 0; sim.rc == 0 && i < in->rank_count; i++)
        if (ft_astra_net_failed(sim.net) || ft_astra_sys_failed(sim.loads[i].sys))
            sim.rc = -ENOMEM;
    tear_down(&sim);
    return sim.rc;
}

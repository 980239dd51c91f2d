// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/roles.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"

#define AT_ONCE    0.9 /* of the sends and receives of a rank; a stage has fewer */
#define NEAR       4   /* rows before and after one */
#define AROUND_MIN 3   /* two that send to each other are no ring */
/* As many stages of a pipeline can be distinguished, from either end. */
#define ROUNDS 32

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15ULL;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ULL;
    return x ^ x >> 32;
}

/* A role follows from the roles of those that a rank exchanges with, and on which side of it they
 * are in the order of ranks; how often does not matter. */
uint64_t *ft_roles_new(const struct ft_matched *m)
{
    uint64_t *roles = calloc(m->process_count + 1, sizeof(*roles));
    uint64_t *next = calloc(m->process_count + 1, sizeof(*next));

    for (int round = 0; roles && next && round < ROUNDS; round++) {
        for (size_t p = 0; p < m->process_count; p++)
            next[p] = mix(roles[p] + 1);
        ft_task_spend(m->task, 1 + m->process_count / 64);
        for (size_t i = 0; i < m->pair_count; i++) {
            const struct ft_pair *pair = &m->pairs[i];
            uint64_t up = pair->from < pair->to;

            if (i % 16 == 0)
                ft_task_spend(m->task, 1);
            if (i > 0 && pair->comm == pair[-1].comm && pair->from == pair[-1].from &&
                pair->to == pair[-1].to)
                continue;
            next[pair->from] += mix(roles[pair->to] * 4 + up);
            next[pair->to] += mix(roles[pair->from] * 4 + 2 + up);
        }
        for (size_t p = 0; m->pair_count > 0 && p < m->process_count; p++)
            roles[p] = next[p];
    }
    if (!next) {
        free(roles);
        roles = NULL;
    }
    free(next);
    return roles;
}

/* Of a process: whom it sends to and receives from, and whether those are several. */
struct ends {
    uint32_t to, from;
    bool several;
};

static void note_peer(uint32_t *peer, uint32_t other, bool *several)
{
    *several = *several || (*peer != FT_OPERATIONS_NONE && *peer != other);
    *peer = other;
}

/* Whether a process exchanges with a third one. */
static bool has_third(const struct ft_matched *m, uint32_t (*peers)[2], uint32_t process,
                      uint32_t peer)
{
    for (int i = 0; i < 2; i++) {
        if (peers[process][i] == FT_OPERATIONS_NONE)
            peers[process][i] = peer;
        if (peers[process][i] == peer)
            return false;
    }
    ft_task_spend(m->task, 1);
    return true;
}

/* Whether each process sends to one other alone, and receives from one other than that. */
static bool runs_round(const struct ends *ends, size_t count)
{
    for (size_t p = 0; p < count; p++)
        if (ends[p].several || ends[p].to == FT_OPERATIONS_NONE ||
            ends[p].from == FT_OPERATIONS_NONE || ends[p].to == ends[p].from)
            return false;
    return count >= AROUND_MIN;
}

/* Whether a row is a send, and another of its process a receive at the same time; or the other way
 * round. */
static bool at_once(const struct ft_matched *m, size_t row, size_t other)
{
    const struct ft_operation *a = &m->op[row], *b = &m->op[other];

    return m->pair_of[other] != FT_OPERATIONS_NONE &&
           m->kinds[a->function] != m->kinds[b->function] && a->start_ns < b->end_ns &&
           b->start_ns < a->end_ns;
}

/* Whether a process does all of its sends and receives at once, as in an exchange of borders: a
 * stage receives before it computes, and sends what it has computed. */
static bool exchanges(const struct ft_matched *m, size_t process)
{
    size_t all = 0, some = 0, first = m->first[process], end = m->first[process + 1];

    ft_task_spend(m->task, 1 + (end - first) / 8);
    for (size_t i = first; i < end; i++) {
        if (m->pair_of[i] == FT_OPERATIONS_NONE)
            continue;
        all++;
        for (size_t k = i > first + NEAR ? i - NEAR : first; k < end && k <= i + NEAR; k++)
            if (at_once(m, i, k)) {
                some++;
                break;
            }
    }
    return (double)some >= AT_ONCE * (double)all;
}

static bool all_exchange(const struct ft_matched *m)
{
    for (size_t p = 0; p < m->process_count; p++)
        if (!exchanges(m, p))
            return false;
    return true;
}

bool ft_roles_may_be_stages(const struct ft_matched *m)
{
    struct ends *ends = calloc(m->process_count + 1, sizeof(*ends));
    uint32_t(*peers)[2] = calloc(m->process_count + 1, sizeof(*peers));
    bool stages = true;

    for (size_t p = 0; ends && peers && p < m->process_count; p++) {
        ends[p].to = ends[p].from = FT_OPERATIONS_NONE;
        peers[p][0] = peers[p][1] = FT_OPERATIONS_NONE;
    }
    for (size_t i = 0; ends && peers && i < m->pair_count && stages; i++) {
        const struct ft_pair *pair = &m->pairs[i];

        if (i % 16 == 0)
            ft_task_spend(m->task, 1);
        note_peer(&ends[pair->from].to, pair->to, &ends[pair->from].several);
        note_peer(&ends[pair->to].from, pair->from, &ends[pair->to].several);
        stages = !has_third(m, peers, pair->from, pair->to) &&
                 !has_third(m, peers, pair->to, pair->from);
    }
    stages = stages && !(ends && runs_round(ends, m->process_count)) && !all_exchange(m);
    free(ends);
    free(peers);
    return stages;
}

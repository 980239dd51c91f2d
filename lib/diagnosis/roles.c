// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/roles.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"

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

// SPDX-License-Identifier: Apache-2.0
/*
 * Operations of one number that differ between ranks: another function, or another number of bytes
 * where ranks otherwise agree.
 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/task.h"
#include "lib/diagnosis/found.h"

/* Sizes are compared where so many operations before had the same at all ranks. */
#define AGREED_MIN   3
#define AGREED_SHARE 0.9
/* Of a function whose sizes may differ: where they never did, in so many, and this one stands. */
#define ALWAYS_MIN 8
/* More of these in one communicator: its numbers do not mean what they seem to. */
#define SOME_MAX 0.2

static bool same(const struct ft_operation *a, const struct ft_operation *b, bool bytes)
{
    return a->function == b->function && (!bytes || a->bytes == b->bytes);
}

/* Of a group: a rank whose operation the fewest have, and one of the most; false where all have the
 * same. */
static bool odd_one(const struct ft_matched *m, const struct ft_gathering *group, bool bytes,
                    uint32_t *least, uint32_t *most)
{
    size_t few = group->count + 1, many = 0;

    ft_task_spend(m->task, 1 + group->count / 8);
    for (size_t i = 1; i <= group->count; i++) {
        if (i == group->count)
            return false;
        if (!same(&m->op[m->order[group->first + i]], &m->op[m->order[group->first]], bytes))
            break;
    }
    for (size_t i = 0; i < group->count && i < 64; i++) {
        uint32_t row = m->order[group->first + i];
        size_t n = 0;

        ft_task_spend(m->task, 1 + group->count / 8);
        for (size_t k = 0; k < group->count; k++)
            n += same(&m->op[m->order[group->first + k]], &m->op[row], bytes);
        if (n < few) {
            few = n;
            *least = row;
        }
        if (n >= many) {
            many = n;
            *most = row;
        }
    }
    /* The odd one may stand behind those. */
    for (size_t k = 64; k < group->count; k++) {
        uint32_t row = m->order[group->first + k];

        if (!same(&m->op[row], &m->op[*most], bytes)) {
            *least = row;
            break;
        }
    }
    return true;
}

static int describe(const struct ft_matched *m, uint32_t odd, uint32_t usual,
                    struct ft_diagnoses *found)
{
    const struct ft_operation *a = &m->op[odd], *b = &m->op[usual];
    struct ft_diagnosis *d = ft_diagnoses_add(found, FT_SYNDROME_MISMATCH);

    if (!d)
        return -ENOMEM;
    d->process = a->process;
    d->peer = b->process;
    d->comm = b->comm;
    d->function = b->function;
    d->sequence = b->sequence;
    d->since_ns = a->start_ns;
    d->confidence = 0.95;
    for (int i = 0; i < 2; i++) {
        const struct ft_operation *op = i ? b : a;

        ft_texts_add(&d->reasons, "rank %u calls %s of %llu bytes as operation %llu of %s",
                     m->process[op->process].rank, ft_operations_function(m->ops, op->function),
                     (unsigned long long)op->bytes, (unsigned long long)op->sequence,
                     ft_operations_comm(m->ops, op->comm));
    }
    return 0;
}

static int find_in_comm(const struct ft_matched *m, uint32_t comm, struct ft_diagnoses *found)
{
    size_t first = m->comm_groups[comm], end = m->comm_groups[comm + 1], odd = 0, agreed = 0;
    size_t sized = 0;
    uint32_t least, most;
    bool by_bytes, always;

    for (size_t g = first; g < end; g++) {
        const struct ft_gathering *group = &m->groups[g];

        odd += odd_one(m, group, false, &least, &most);
        /* What did not end is not what is usual. */
        sized += group->count > 1 && group->unfinished == 0;
        agreed +=
            group->count > 1 && group->unfinished == 0 && !odd_one(m, group, true, &least, &most);
    }
    if ((double)odd > SOME_MAX * (double)(end - first) && odd > 2)
        return 0;
    by_bytes = agreed >= AGREED_MIN && (double)agreed >= AGREED_SHARE * (double)sized;
    always = agreed >= ALWAYS_MIN && agreed == sized;
    for (size_t g = first; g < end; g++) {
        const struct ft_gathering *group = &m->groups[g];
        bool uneven = ft_operations_uneven(m->ops, m->op[m->order[group->first]].function);
        bool bytes = by_bytes && (!uneven || (always && group->unfinished == group->count));

        /* The first is the cause of those behind it. */
        if (odd_one(m, group, bytes, &least, &most))
            return describe(m, least, most, found);
    }
    return 0;
}

static int find_in_pairs(const struct ft_matched *m, struct ft_diagnoses *found)
{
    size_t agreed = 0, both = 0;
    const struct ft_pair *odd = NULL;

    for (size_t i = 0; i < m->pair_count; i++) {
        const struct ft_pair *pair = &m->pairs[i];

        if (i % 8 == 0)
            ft_task_spend(m->task, 1);
        if (pair->send == FT_OPERATIONS_NONE || pair->recv == FT_OPERATIONS_NONE)
            continue;
        both++;
        if (m->op[pair->send].bytes == m->op[pair->recv].bytes)
            agreed++;
        else if (!odd || m->op[odd->send].start_ns > m->op[pair->send].start_ns)
            odd = pair;
    }
    if (!odd || agreed < AGREED_MIN || (double)agreed < AGREED_SHARE * (double)both)
        return 0;
    return describe(m, odd->send, odd->recv, found);
}

int ft_find_mismatches(const struct ft_matched *m, struct ft_diagnoses *found)
{
    int rc = 0;

    for (uint32_t comm = 0; comm < m->comm_count && rc == 0; comm++)
        rc = find_in_comm(m, comm, found);
    return rc ? rc : find_in_pairs(m, found);
}

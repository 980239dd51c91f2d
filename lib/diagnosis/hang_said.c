// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/found.h"
#include "lib/diagnosis/hang_impl.h"

/* Where hosts call ahead: which operation does not end is known, why is not. */
#define CALLED_AHEAD 0.6
/* Of some ranks of the communicator nothing is known: one of them may be what the others wait for.
 */
#define SOME_UNKNOWN 0.5

/* How long the longest of those reached has waited. */
uint64_t ft_hangs_waited(const struct ft_hangs *h)
{
    uint64_t longest = 0;

    ft_task_spend(h->m->task, 1 + h->reached_count / 16);
    for (size_t i = 0; i < h->reached_count; i++) {
        uint32_t node = h->reached[i];
        uint64_t ns;

        if (node >= h->m->process_count || h->waits->blocking[node] == FT_OPERATIONS_NONE)
            continue;
        ns = ft_hangs_since(h->now_ns[node], h->m->op[h->waits->blocking[node]].start_ns);
        if (longest < ns)
            longest = ns;
    }
    return longest;
}

/* How long a rank is in an operation, or was when the table ended. */
uint64_t ft_hangs_age_of(const struct ft_hangs *h, uint32_t row)
{
    return ft_hangs_since(h->seen_ns[h->m->op[row].process], h->m->op[row].start_ns);
}

/* The longest way to the root; of one that is too long what is nearest to the root. */
static void describe_chain(const struct ft_hangs *h, struct ft_diagnosis *d)
{
    for (uint32_t node = h->reached[h->reached_count - 1];; node = h->toward[node]) {
        if (node < h->m->process_count && d->chain_count == FT_DIAGNOSIS_CHAIN)
            memmove(d->chain, d->chain + 1, --d->chain_count * sizeof(*d->chain));
        if (node < h->m->process_count)
            d->chain[d->chain_count++] = node;
        if (h->toward[node] == node)
            return;
    }
}

/* Who waits, and for whom. */
int ft_hangs_say_waiting(struct ft_hangs *h, struct ft_diagnosis *d)
{
    d->waiting = calloc(FT_DIAGNOSIS_WAITING, sizeof(*d->waiting));
    if (!d->waiting)
        return -ENOMEM;
    for (size_t i = 0; i < h->reached_count; i++)
        if (h->reached[i] < h->m->process_count && h->reached[i] != d->process) {
            if (d->waiting_count < FT_DIAGNOSIS_WAITING)
                d->waiting[d->waiting_count] = h->reached[i];
            d->waiting_count++;
        }
    describe_chain(h, d);
    return 0;
}

/* The operation that a root's nearest waiter stands in. */
uint32_t ft_hangs_awaited(const struct ft_hangs *h)
{
    for (size_t i = 0; i < h->reached_count; i++)
        if (h->reached[i] < h->m->process_count &&
            h->waits->blocking[h->reached[i]] != FT_OPERATIONS_NONE)
            return h->waits->blocking[h->reached[i]];
    return FT_OPERATIONS_NONE;
}

struct ft_diagnosis *ft_hangs_add(struct ft_hangs *h, enum ft_syndrome syndrome, uint32_t row)
{
    struct ft_diagnosis *d = ft_diagnoses_add(h->found, syndrome);

    if (d && row != FT_OPERATIONS_NONE) {
        d->comm = h->m->op[row].comm;
        d->function = h->m->op[row].function;
        d->sequence = h->m->op[row].sequence;
        d->since_ns = h->m->op[row].start_ns;
    }
    return d;
}

static unsigned long long ms(uint64_t ns)
{
    return ns / 1000000;
}

/* What it did not enter. Of a send or receive it is the other side. */
static void say_absent(const struct ft_hangs *h, uint32_t process, uint32_t row,
                       struct ft_diagnosis *d)
{
    const struct ft_operation *op = &h->m->op[row];
    const char *function = ft_operations_function(h->m->ops, op->function);
    const char *comm = ft_operations_comm(h->m->ops, op->comm);
    uint32_t rank = h->m->process[process].rank;

    if (h->m->group_of[row] != FT_OPERATIONS_NONE)
        ft_texts_add(&d->reasons, "rank %u never entered %s %llu of communicator %s", rank,
                     function, (unsigned long long)op->sequence, comm);
    else
        ft_texts_add(&d->reasons,
                     "rank %u never entered its side of the %s of rank %u in communicator %s", rank,
                     function, h->m->process[op->process].rank, comm);
}

/* What is known of a communicator's ranks as far as they are. */
static void note_unknown(const struct ft_hangs *h, struct ft_diagnosis *d)
{
    d->ranks = ft_operations_ranks(h->m->ops, d->comm, &d->ranks_known);
    if (d->ranks && d->confidence > SOME_UNKNOWN)
        d->confidence = SOME_UNKNOWN;
}

int ft_hangs_say_process(struct ft_hangs *h, uint32_t process, uint32_t others, bool certain)
{
    uint32_t row = ft_hangs_awaited(h), last = h->waits->last_row[process];
    struct ft_diagnosis *d = ft_hangs_add(h, FT_SYNDROME_NONCOMM_HANG, row);
    uint64_t wait = ft_hangs_waited(h);

    if (!d)
        return -ENOMEM;
    d->process = process;
    d->others = others;
    d->confidence = certain ? 0.95 : 0.7;
    if (ft_hangs_say_waiting(h, d) < 0)
        return -ENOMEM;
    say_absent(h, process, row, d);
    ft_texts_add(&d->reasons,
                 "%zu ranks wait for it, directly or through others, for up to %llu ms",
                 d->waiting_count, ms(wait));
    if (last != FT_OPERATIONS_NONE)
        ft_texts_add(&d->reasons, "its last operation, %s %llu of communicator %s, ended",
                     ft_operations_function(h->m->ops, h->m->op[last].function),
                     (unsigned long long)h->m->op[last].sequence,
                     ft_operations_comm(h->m->ops, h->m->op[last].comm));
    if (!certain)
        ft_texts_add(&d->doubts, "the trace ends before the wait is longer than any before");
    if (others)
        ft_texts_add(&d->reasons, "%u more ranks of its host have not entered either", others);
    if (h->m->group_of[row] != FT_OPERATIONS_NONE)
        note_unknown(h, d);
    return 0;
}

/* Of a group that all have entered: how long ago the last of them did. */
uint64_t ft_hangs_entered_ago(const struct ft_hangs *h, const struct ft_gathering *group)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < group->count; i++) {
        uint64_t age = ft_hangs_age_of(h, h->m->order[group->first + i]);

        least = age < least ? age : least;
    }
    return least;
}

/* A rank whose own work never ends has called what comes after it, too. */
static void doubt_entered(const struct ft_hangs *h, struct ft_diagnosis *d)
{
    if (d->confidence <= ENDS_THERE)
        ft_texts_add(&d->doubts, "the table ends as soon as all ranks wait for it: one that was "
                                 "cut within it looks the same");
    if (!h->ahead)
        return;
    d->confidence = CALLED_AHEAD;
    ft_texts_add(&d->doubts, "starts are those of calls: a rank whose own work before it does not "
                             "end looks the same");
}

int ft_hangs_say_group(struct ft_hangs *h, const struct ft_gathering *group, double confidence)
{
    const struct ft_matched *m = h->m;
    uint32_t row = FT_OPERATIONS_NONE;
    uint64_t entered_ns = 0;
    struct ft_diagnosis *d;

    for (size_t i = 0; i < group->count; i++) {
        const struct ft_operation *op = &m->op[m->order[group->first + i]];

        if (op->end_ns == FT_OPERATIONS_NEVER)
            row = m->order[group->first + i];
        if (entered_ns < op->start_ns)
            entered_ns = op->start_ns;
    }
    d = ft_hangs_add(h, FT_SYNDROME_COMM_HANG, row);
    if (!d)
        return -ENOMEM;
    d->since_ns = entered_ns;
    d->confidence = confidence;
    if (group->unfinished == 1 && group->count > 2)
        d->process = m->op[row].process;
    if (ft_hangs_say_waiting(h, d) < 0)
        return -ENOMEM;
    d->ranks = ft_operations_ranks(m->ops, d->comm, &d->ranks_known);
    ft_texts_add(&d->reasons,
                 "all %zu %sranks of communicator %s entered %s %llu, %zu are in it still",
                 group->count, d->ranks ? "known " : "", ft_operations_comm(m->ops, d->comm),
                 ft_operations_function(m->ops, d->function), (unsigned long long)d->sequence,
                 group->unfinished);
    ft_texts_add(&d->reasons, "the last entered %llu ms ago; no other such took more than %llu ms",
                 ms(ft_hangs_entered_ago(h, group)), ms(ft_habits_transfer(m, row)));
    if (d->process == FT_OPERATIONS_NONE)
        ft_texts_add(&d->doubts,
                     "start and end alone do not show which of its transfers is blocked");
    doubt_entered(h, d);
    note_unknown(h, d);
    return 0;
}

int ft_hangs_say_pair(struct ft_hangs *h, const struct ft_pair *pair, uint32_t row,
                      double confidence)
{
    struct ft_diagnosis *d = ft_hangs_add(h, FT_SYNDROME_COMM_HANG, row);

    if (!d)
        return -ENOMEM;
    d->process = pair->from;
    d->peer = pair->to;
    d->side = FT_SIDE_ANY;
    d->confidence = confidence;
    if (ft_hangs_say_waiting(h, d) < 0)
        return -ENOMEM;
    ft_texts_add(
        &d->reasons,
        "rank %u sends to rank %u in communicator %s, both have entered, and it does not end",
        h->m->process[pair->from].rank, h->m->process[pair->to].rank,
        ft_operations_comm(h->m->ops, d->comm));
    ft_texts_add(&d->reasons, "since %llu ms; no other such took more than %llu ms",
                 ms(ft_hangs_age_of(h, row)), ms(ft_habits_transfer(h->m, row)));
    ft_texts_add(&d->doubts, "sender, receiver and the link between them look the same here");
    doubt_entered(h, d);
    return 0;
}

/* Sends and receives that were begun at once and stand together. One rank that is at one end of
 * each of them is the cause, or what leads to it; else nobody knows which of them is. */
int ft_hangs_say_launches(struct ft_hangs *h, uint32_t row, uint32_t rank, double confidence)
{
    struct ft_diagnosis *d = ft_hangs_add(h, FT_SYNDROME_COMM_HANG, row);

    if (!d)
        return -ENOMEM;
    d->process = rank;
    d->side = rank == FT_OPERATIONS_NONE ? FT_SIDE_NONE : FT_SIDE_ANY;
    d->confidence = confidence;
    if (ft_hangs_say_waiting(h, d) < 0)
        return -ENOMEM;
    ft_texts_add(&d->reasons,
                 "sends and receives of several ranks in communicator %s, which were begun at "
                 "once, do not end since %llu ms; no other such took more than %llu ms",
                 ft_operations_comm(h->m->ops, d->comm), ms(ft_hangs_age_of(h, row)),
                 ms(ft_habits_transfer(h->m, row)));
    if (rank != FT_OPERATIONS_NONE)
        ft_texts_add(&d->reasons, "rank %u is at one end of each", h->m->process[rank].rank);
    else
        ft_texts_add(&d->doubts, "which of them keeps the others from ending does not show");
    doubt_entered(h, d);
    return 0;
}

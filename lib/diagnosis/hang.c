// SPDX-License-Identifier: Apache-2.0
/*
 * Hangs: the roots of the wait-for graph. A node is a process or a group that some process stands
 * in; a process waits for its group or peer, a group for the members that have not entered it.
 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/ahead.h"
#include "lib/diagnosis/clocks.h"
#include "lib/diagnosis/found.h"
#include "lib/diagnosis/order.h"
#include "lib/diagnosis/outlived.h"
#include "lib/diagnosis/waits.h"

/* So many times as long as ever before is a hang, and so much longer is one in any case. */
#define CERTAIN         3
#define CERTAIN_MORE_NS UINT64_C(600000000000)
/* Transfers end together to within the skew of clocks. */
#define SKEW_NS ((uint64_t)FT_CLOCKS_SKEW_NS)
/* Where hosts call ahead: which operation does not end is known, why is not. */
#define CALLED_AHEAD 0.6
/* All of the job waits, and the table ends there: one that was cut there looks the same. */
#define ENDS_THERE 0.6
#define ABOUT      0.9 /* of what it usually takes a rank: it has as good as taken that */
/* At more roots than this the trace is cut in the middle of its work. */
#define ROOTS_MAX 64

struct hangs {
    const struct ft_matched *m;
    struct ft_waits *waits;
    struct ft_habits habits;
    struct ft_diagnoses *found;
    uint64_t *now_ns;  /* of each process, by its clock */
    uint64_t *seen_ns; /* the same, until when its rows reach */
    uint32_t *reached; /* nodes that wait for a root, from it outwards */
    uint32_t *toward;  /* of each node: the next one on the way to the root; NONE: not reached */
    size_t reached_count;
    bool *known;  /* nodes that are reported already, or lead to an end */
    bool ahead;   /* hosts call ahead: who is in an operation may not have begun it */
    bool no_more; /* nothing is known of the time after the newest row */
    bool closed;  /* the table has ended, and starts are when operations begin */
};

/* Who waits for a root, or for either end of a transfer. */
static void reach(struct hangs *h, uint32_t root, uint32_t end)
{
    const struct ft_waits *w = h->waits;

    for (size_t i = 0; i < w->node_count; i++)
        h->toward[i] = FT_OPERATIONS_NONE;
    ft_task_spend(h->m->task, 1 + w->node_count / 64);
    h->reached_count = 0;
    h->reached[h->reached_count++] = root;
    h->toward[root] = root;
    if (end != FT_OPERATIONS_NONE) {
        h->reached[h->reached_count++] = end;
        h->toward[end] = end;
    }
    for (size_t at = 0; at < h->reached_count; at++) {
        uint32_t node = h->reached[at];

        ft_task_spend(h->m->task, 1 + (w->in_first[node + 1] - w->in_first[node]) / 8);
        for (size_t e = w->in_first[node]; e < w->in_first[node + 1]; e++) {
            uint32_t from = w->in[e];

            if (h->toward[from] != FT_OPERATIONS_NONE)
                continue;
            h->toward[from] = node;
            h->reached[h->reached_count++] = from;
        }
    }
}

static uint64_t since(uint64_t now_ns, uint64_t then_ns)
{
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* How long is a hang, where it took so long at most before. */
static uint64_t certain(uint64_t longest_ns)
{
    uint64_t more_ns = (CERTAIN - 1) * longest_ns;

    return longest_ns + (more_ns < CERTAIN_MORE_NS ? more_ns : CERTAIN_MORE_NS);
}

/* How long the longest of those reached has waited. */
static uint64_t waited(const struct hangs *h)
{
    uint64_t longest = 0;

    ft_task_spend(h->m->task, 1 + h->reached_count / 16);
    for (size_t i = 0; i < h->reached_count; i++) {
        uint32_t node = h->reached[i];
        uint64_t ns;

        if (node >= h->m->process_count || h->waits->blocking[node] == FT_OPERATIONS_NONE)
            continue;
        ns = since(h->seen_ns[node], h->m->op[h->waits->blocking[node]].start_ns);
        if (longest < ns)
            longest = ns;
    }
    return longest;
}

/* Whether every process of the job waits for the root, or is it. */
static bool all_wait(const struct hangs *h)
{
    size_t count = 0;

    ft_task_spend(h->m->task, 1 + h->reached_count / 64);
    for (size_t i = 0; i < h->reached_count; i++)
        count += h->reached[i] < h->m->process_count;
    return count == h->m->process_count;
}

/* How long a rank is in an operation, or was when the table ended. */
static uint64_t age_of(const struct hangs *h, uint32_t row)
{
    return since(h->seen_ns[h->m->op[row].process], h->m->op[row].start_ns);
}

/* Whether the operation of a row, which members ranks have entered, stands; the last of them that
 * long ago. It is certain after a while; earlier where all of the job waits for it, though few
 * ranks are in it. Where it has ended for others, the rows of those in it may end sooner than
 * theirs. A table that ends as soon as all wait for it is of a job that stands, or was cut. */
static double stands(const struct hangs *h, uint64_t age, uint32_t row, size_t members, bool ended)
{
    uint64_t longest_ns = ft_habits_transfer(h->m, row);

    if (longest_ns == 0 || (ended && age <= certain(h->habits.own_max_ns) && !all_wait(h)))
        return 0;
    if (age > certain(longest_ns) + SKEW_NS)
        return 0.9;
    if (age > 2 * longest_ns && 2 * members <= h->m->process_count && all_wait(h))
        return 0.7;
    return h->closed && all_wait(h) ? ENDS_THERE : 0;
}

/* The longest way to the root; of one that is too long what is nearest to the root. */
static void describe_chain(const struct hangs *h, struct ft_diagnosis *d)
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
static int describe_waiting(struct hangs *h, struct ft_diagnosis *d)
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
static uint32_t awaited(const struct hangs *h)
{
    for (size_t i = 0; i < h->reached_count; i++)
        if (h->reached[i] < h->m->process_count &&
            h->waits->blocking[h->reached[i]] != FT_OPERATIONS_NONE)
            return h->waits->blocking[h->reached[i]];
    return FT_OPERATIONS_NONE;
}

static struct ft_diagnosis *add(struct hangs *h, enum ft_syndrome syndrome, uint32_t row)
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

/* A rank that others wait for and that is in no operation. 1 where it hangs for certain, 0 where it
 * may only be late, -1 where it is not even that. */
static int judge_process(const struct hangs *h, uint32_t process)
{
    uint64_t elapsed = since(h->now_ns[process], h->waits->last_ns[process]), wait = waited(h);
    const struct ft_habits *habits = &h->habits;
    uint64_t own = ft_habits_own(h->m, process, awaited(h)), late = habits->late_max_ns[process];
    uint64_t next = h->closed ? ft_habits_own_next(h->m, process) : FT_OPERATIONS_NEVER;

    if (elapsed > certain(habits->own_max_ns) && wait > certain(habits->wait_max_ns) &&
        wait > certain(own) && wait > SKEW_NS)
        return 1;
    own = next < FT_OPERATIONS_NEVER ? next : own;
    if ((double)elapsed < (h->no_more ? ABOUT : 1) * (double)own ||
        (late > CERTAIN * habits->late_usual_ns && wait < CERTAIN * late / 2))
        return -1;
    return 0;
}

/* What it did not enter. Of a send or receive it is the other side. */
static void say_absent(const struct hangs *h, uint32_t process, uint32_t row,
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

static int describe_process(struct hangs *h, uint32_t process, uint32_t others, bool certain)
{
    uint32_t row = awaited(h), last = h->waits->last_row[process];
    struct ft_diagnosis *d = add(h, FT_SYNDROME_NONCOMM_HANG, row);
    uint64_t wait = waited(h);

    if (!d)
        return -ENOMEM;
    d->process = process;
    d->others = others;
    d->confidence = certain ? 0.95 : 0.7;
    if (describe_waiting(h, d) < 0)
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
    return 0;
}

/* Roots that are processes: one rank, or ranks of one host; or, where that is certain, any few. */
static int find_stopped(struct hangs *h)
{
    const struct ft_waits *w = h->waits;
    uint32_t roots[ROOTS_MAX], certain_at[ROOTS_MAX];
    size_t count = 0, certain = 0, stuck = 0;
    bool one_host = true;
    int rc = 0;

    for (uint32_t p = 0; p < h->m->process_count; p++) {
        stuck += w->blocking[p] != FT_OPERATIONS_NONE;
        if (w->blocking[p] != FT_OPERATIONS_NONE || w->in_first[p] == w->in_first[p + 1])
            continue;
        if (count == ROOTS_MAX)
            return 0;
        one_host = one_host && (count == 0 || h->m->process[p].host == h->m->process[*roots].host);
        roots[count++] = p;
    }
    for (size_t i = 0; i < count; i++) {
        reach(h, roots[i], FT_OPERATIONS_NONE);
        if (judge_process(h, roots[i]) == 1)
            certain_at[certain++] = roots[i];
    }
    if (certain && (one_host || certain <= 4)) {
        for (size_t i = 0; i < (one_host ? 1 : certain) && rc == 0; i++) {
            reach(h, certain_at[i], FT_OPERATIONS_NONE);
            rc = describe_process(h, certain_at[i], one_host ? (uint32_t)certain - 1 : 0, true);
        }
        return rc;
    }
    /* No time has passed since: then nobody may be at work but one that is waited for, or all of
     * its host. */
    if (count == 0 || !one_host || stuck + count < h->m->process_count || stuck < count ||
        (count > 1 && count < ft_habits_host_ranks(h->m, *roots)))
        return 0;
    for (size_t i = 0; i < count; i++) {
        bool known = h->closed && ft_habits_own_next(h->m, roots[i]) < FT_OPERATIONS_NEVER;

        reach(h, roots[i], FT_OPERATIONS_NONE);
        if (judge_process(h, roots[i]) < 0 || (stuck == count && !known) ||
            (count > 1 && !known &&
             since(h->now_ns[roots[i]], w->last_ns[roots[i]]) <=
                 ft_habits_longest_own(h->m, roots[i])))
            return 0;
    }
    reach(h, *roots, FT_OPERATIONS_NONE);
    return describe_process(h, *roots, (uint32_t)count - 1, false);
}

/* Of a group that all have entered: how long ago the last of them did. */
static uint64_t entered_ago(const struct hangs *h, const struct ft_gathering *group)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < group->count; i++) {
        uint64_t age = age_of(h, h->m->order[group->first + i]);

        least = age < least ? age : least;
    }
    return least;
}

/* A rank whose own work never ends has called what comes after it, too. */
static void doubt_entered(const struct hangs *h, struct ft_diagnosis *d)
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

static int describe_group(struct hangs *h, const struct ft_gathering *group, double confidence)
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
    d = add(h, FT_SYNDROME_COMM_HANG, row);
    if (!d)
        return -ENOMEM;
    d->since_ns = entered_ns;
    d->confidence = confidence;
    if (group->unfinished == 1 && group->count > 2)
        d->process = m->op[row].process;
    if (describe_waiting(h, d) < 0)
        return -ENOMEM;
    ft_texts_add(&d->reasons,
                 "all %zu ranks of communicator %s entered %s %llu, %zu are in it still",
                 group->count, ft_operations_comm(m->ops, d->comm),
                 ft_operations_function(m->ops, d->function), (unsigned long long)d->sequence,
                 group->unfinished);
    ft_texts_add(&d->reasons, "the last entered %llu ms ago; no other such took more than %llu ms",
                 ms(entered_ago(h, group)), ms(ft_habits_transfer(m, row)));
    if (d->process == FT_OPERATIONS_NONE)
        ft_texts_add(&d->doubts,
                     "start and end alone do not show which of its transfers is blocked");
    doubt_entered(h, d);
    return 0;
}

static int describe_pair(struct hangs *h, const struct ft_pair *pair, uint32_t row,
                         double confidence)
{
    struct ft_diagnosis *d = add(h, FT_SYNDROME_COMM_HANG, row);

    if (!d)
        return -ENOMEM;
    d->process = pair->from;
    d->peer = pair->to;
    d->side = FT_SIDE_ANY;
    d->confidence = confidence;
    if (describe_waiting(h, d) < 0)
        return -ENOMEM;
    ft_texts_add(
        &d->reasons,
        "rank %u sends to rank %u in communicator %s, both have entered, and it does not end",
        h->m->process[pair->from].rank, h->m->process[pair->to].rank,
        ft_operations_comm(h->m->ops, d->comm));
    ft_texts_add(&d->reasons, "since %llu ms; no other such took more than %llu ms",
                 ms(age_of(h, row)), ms(ft_habits_transfer(h->m, row)));
    ft_texts_add(&d->doubts, "sender, receiver and the link between them look the same here");
    doubt_entered(h, d);
    return 0;
}

/* Sends and receives that were begun at once and stand together. One rank that is at one end of
 * each of them is the cause, or what leads to it; else nobody knows which of them is. */
static int describe_launches(struct hangs *h, uint32_t row, uint32_t rank, double confidence)
{
    struct ft_diagnosis *d = add(h, FT_SYNDROME_COMM_HANG, row);

    if (!d)
        return -ENOMEM;
    d->process = rank;
    d->side = rank == FT_OPERATIONS_NONE ? FT_SIDE_NONE : FT_SIDE_ANY;
    d->confidence = confidence;
    if (describe_waiting(h, d) < 0)
        return -ENOMEM;
    ft_texts_add(&d->reasons,
                 "sends and receives of several ranks in communicator %s, which were begun at "
                 "once, do not end since %llu ms; no other such took more than %llu ms",
                 ft_operations_comm(h->m->ops, d->comm), ms(age_of(h, row)),
                 ms(ft_habits_transfer(h->m, row)));
    if (rank != FT_OPERATIONS_NONE)
        ft_texts_add(&d->reasons, "rank %u is at one end of each", h->m->process[rank].rank);
    else
        ft_texts_add(&d->doubts, "which of them keeps the others from ending does not show");
    doubt_entered(h, d);
    return 0;
}

/* How long ago the later of both ends entered; one that is gone already has. */
static uint64_t later_ago(const struct hangs *h, const struct ft_pair *pair)
{
    uint64_t send = age_of(h, pair->send), recv = age_of(h, pair->recv);

    return send < recv ? send : recv;
}

/* Operations that all have entered and that do not end. */
static int find_standing(struct hangs *h)
{
    const struct ft_waits *w = h->waits;
    const struct ft_matched *m = h->m;
    double confidence;
    int rc = 0;

    for (uint32_t n = (uint32_t)m->process_count; n < w->node_count && rc == 0; n++) {
        const struct ft_gathering *group = &m->groups[w->group[n - m->process_count]];

        if (w->out_first[n] != w->out_first[n + 1])
            continue;
        reach(h, n, FT_OPERATIONS_NONE);
        confidence = stands(h, entered_ago(h, group), m->order[group->first], group->count,
                            group->unfinished < group->count);
        if (confidence > 0)
            rc = describe_group(h, group, confidence);
    }
    for (uint32_t p = 0; p < m->process_count && rc == 0; p++) {
        uint32_t row = w->standing[p];
        const struct ft_pair *pair;

        if (row == FT_OPERATIONS_NONE || h->known[p])
            continue;
        pair = &m->pairs[m->pair_of[row]];
        if (w->several[pair->from] || w->several[pair->to])
            continue;
        h->known[pair->from] = h->known[pair->to] = true;
        reach(h, pair->from, pair->to);
        confidence = stands(h, later_ago(h, pair), row, 2,
                            m->op[pair->send].end_ns != m->op[pair->recv].end_ns);
        if (confidence > 0)
            rc = describe_pair(h, pair, row, confidence);
    }
    return rc;
}

/* Launches of which several transfers stand: one diagnosis for each communicator. */
static int find_launches(struct hangs *h)
{
    const struct ft_waits *w = h->waits;
    const struct ft_matched *m = h->m;
    int rc = 0;

    for (uint32_t p = 0; p < m->process_count && rc == 0; p++) {
        uint32_t row = w->standing[p], rank;
        const struct ft_pair *pair;
        double confidence;
        bool known = false;

        if (!w->several[p])
            continue;
        for (size_t i = 0; i < h->found->count && !known; i++)
            known = h->found->items[i].comm == m->op[row].comm;
        if (known)
            continue;
        pair = &m->pairs[m->pair_of[row]];
        rank = ft_waits_in_all(w, m, m->op[row].comm);
        reach(h, pair->from, pair->to);
        confidence = stands(h, later_ago(h, pair), row, 2, false);
        if (confidence > 0)
            rc = describe_launches(h, row, rank, confidence);
    }
    return rc;
}

/* Whether the collectives that two ranks are in, and all of their ranks, have not ended for long.
 */
static bool both_stand(const struct hangs *h, uint32_t a, uint32_t b)
{
    uint32_t rows[2] = {h->waits->blocking[a], h->waits->blocking[b]};

    for (int i = 0; i < 2; i++) {
        const struct ft_gathering *group = &h->m->groups[h->m->group_of[rows[i]]];

        if (stands(h, entered_ago(h, group), rows[i], group->count,
                   group->unfinished < group->count) == 0)
            return false;
    }
    return true;
}

/* Processes that wait for each other in a circle: nobody can continue. */
static int find_circles(struct hangs *h)
{
    const struct ft_waits *w = h->waits;
    uint32_t p = 0, least, most;
    struct ft_diagnosis *d;

    ft_waits_mark_ends(w, h->known, h->reached);
    while (p < h->m->process_count && (h->known[p] || w->blocking[p] == FT_OPERATIONS_NONE))
        p++;
    if (p == h->m->process_count)
        return 0;
    if (!ft_waits_circle(w, h->m, p, &least, &most) &&
        (!h->ahead || !ft_order_odd(w, h->m, p, &least, &most) || !both_stand(h, least, most)))
        return 0;
    for (uint32_t q = 0; most == FT_OPERATIONS_NONE && q < h->m->process_count; q++)
        if (q != least && w->blocking[q] != FT_OPERATIONS_NONE && !h->known[q])
            most = q;
    if (most == FT_OPERATIONS_NONE)
        return 0;
    reach(h, least, FT_OPERATIONS_NONE);
    d = add(h, FT_SYNDROME_MISMATCH, w->blocking[least]);
    if (!d)
        return -ENOMEM;
    d->process = least;
    d->peer = most;
    d->confidence = 0.9;
    if (describe_waiting(h, d) < 0)
        return -ENOMEM;
    for (int i = 0; i < 2; i++) {
        uint32_t who = i ? most : least, row = w->blocking[who];

        ft_texts_add(&d->reasons, "rank %u is in %s %llu of communicator %s, with %u ranks",
                     h->m->process[who].rank,
                     ft_operations_function(h->m->ops, h->m->op[row].function),
                     (unsigned long long)h->m->op[row].sequence,
                     ft_operations_comm(h->m->ops, h->m->op[row].comm), w->company[who]);
    }
    ft_texts_add(&d->reasons, "they wait for each other, so none can continue");
    return 0;
}

int ft_find_hangs(const struct ft_matched *m, uint64_t now_ns, bool ended,
                  struct ft_diagnoses *found)
{
    struct hangs h = {.m = m, .found = found, .now_ns = ft_clocks_end(m, now_ns)};
    int rc = -ENOMEM;

    h.waits = ft_waits_new(m);
    h.seen_ns = calloc(m->process_count + 1, sizeof(*h.seen_ns));
    if (h.waits && h.now_ns && h.seen_ns && ft_habits_init(&h.habits, m) == 0) {
        ft_outlived_times(m, h.waits->proven, h.now_ns, h.waits->last_ns, h.seen_ns);
        h.ahead = ft_starts_are_calls(m);
        h.no_more = now_ns <= ft_operations_newest_ns(m->ops);
        h.closed = ended && !h.ahead;
        h.reached = calloc(h.waits->node_count + 1, sizeof(*h.reached));
        h.toward = calloc(h.waits->node_count + 1, sizeof(*h.toward));
        h.known = calloc(h.waits->node_count + 1, sizeof(*h.known));
        if (h.reached && h.toward && h.known) {
            rc = find_stopped(&h);
            if (rc == 0)
                rc = find_standing(&h);
            if (rc == 0)
                rc = find_launches(&h);
            if (rc == 0)
                rc = find_circles(&h);
        }
    }
    free(h.reached);
    free(h.toward);
    free(h.known);
    free(h.now_ns);
    free(h.seen_ns);
    ft_habits_free(&h.habits);
    ft_waits_free(h.waits);
    return rc;
}

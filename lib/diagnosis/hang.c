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
#include "lib/diagnosis/hang_impl.h"
#include "lib/diagnosis/order.h"
#include "lib/diagnosis/waits.h"

/* So many times as long as ever before is a hang, and so much longer is one in any case. */
#define CERTAIN         3
#define CERTAIN_MORE_NS UINT64_C(600000000000)
/* Transfers end together to within the skew of clocks. */
#define SKEW_NS ((uint64_t)FT_CLOCKS_SKEW_NS)
#define ABOUT   0.9 /* of what it usually takes a rank: it has as good as taken that */
/* At more roots than this the trace is cut in the middle of its work. */
#define ROOTS_MAX 64

/* Who waits for a root, or for either end of a transfer. */
static void reach(struct ft_hangs *h, uint32_t root, uint32_t end)
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

/* How long is a hang, where it took so long at most before. */
static uint64_t certain(uint64_t longest_ns)
{
    uint64_t more_ns = (CERTAIN - 1) * longest_ns;

    return longest_ns + (more_ns < CERTAIN_MORE_NS ? more_ns : CERTAIN_MORE_NS);
}

/* Whether every process of the job waits for the root, or is it. */
static bool all_wait(const struct ft_hangs *h)
{
    size_t count = 0;

    ft_task_spend(h->m->task, 1 + h->reached_count / 64);
    for (size_t i = 0; i < h->reached_count; i++)
        count += h->reached[i] < h->m->process_count;
    return count == h->m->process_count;
}

/* Whether the operation of a row, which members ranks have entered, stands; the last of them that
 * long ago. It is certain after a while; earlier where all of the job waits for it, though few
 * ranks are in it. Where it has ended for others, the rows of those in it may end sooner than
 * theirs. A table that ends as soon as all wait for it is of a job that stands, or was cut. */
static double stands(const struct ft_hangs *h, uint64_t age, uint32_t row, size_t members,
                     bool ended)
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

/* A rank that others wait for and that is in no operation. 1 where it hangs for certain, 0 where it
 * may only be late, -1 where it is not even that. */
static int judge_process(const struct ft_hangs *h, uint32_t process)
{
    uint64_t elapsed = ft_hangs_since(h->now_ns[process], h->waits->last_ns[process]),
             wait = ft_hangs_waited(h);
    const struct ft_habits *habits = &h->habits;
    uint64_t own = ft_habits_own(h->m, process, ft_hangs_awaited(h)),
             late = habits->late_max_ns[process];
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

/* Roots that are processes: one rank, or ranks of one host; or, where that is certain, any few. */
static int find_stopped(struct ft_hangs *h)
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
            rc = ft_hangs_say_process(h, certain_at[i], one_host ? (uint32_t)certain - 1 : 0, true);
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
             ft_hangs_since(h->now_ns[roots[i]], w->last_ns[roots[i]]) <=
                 ft_habits_longest_own(h->m, roots[i])))
            return 0;
    }
    reach(h, *roots, FT_OPERATIONS_NONE);
    return ft_hangs_say_process(h, *roots, (uint32_t)count - 1, false);
}

/* How long ago the later of both ends entered; one that is gone already has. */
static uint64_t later_ago(const struct ft_hangs *h, const struct ft_pair *pair)
{
    uint64_t send = ft_hangs_age_of(h, pair->send), recv = ft_hangs_age_of(h, pair->recv);

    return send < recv ? send : recv;
}

/* Operations that all have entered and that do not end. */
static int find_standing(struct ft_hangs *h)
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
        confidence = stands(h, ft_hangs_entered_ago(h, group), m->order[group->first], group->count,
                            group->unfinished < group->count);
        if (confidence > 0)
            rc = ft_hangs_say_group(h, group, confidence);
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
            rc = ft_hangs_say_pair(h, pair, row, confidence);
    }
    return rc;
}

/* Launches of which several transfers stand: one diagnosis for each communicator. */
static int find_launches(struct ft_hangs *h)
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
            rc = ft_hangs_say_launches(h, row, rank, confidence);
    }
    return rc;
}

/* Whether the collectives that two ranks are in, and all of their ranks, have not ended for long.
 */
static bool both_stand(const struct ft_hangs *h, uint32_t a, uint32_t b)
{
    uint32_t rows[2] = {h->waits->blocking[a], h->waits->blocking[b]};

    for (int i = 0; i < 2; i++) {
        const struct ft_gathering *group = &h->m->groups[h->m->group_of[rows[i]]];

        if (stands(h, ft_hangs_entered_ago(h, group), rows[i], group->count,
                   group->unfinished < group->count) == 0)
            return false;
    }
    return true;
}

/* Processes that wait for each other in a circle: nobody can continue. */
static int find_circles(struct ft_hangs *h)
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
    d = ft_hangs_add(h, FT_SYNDROME_MISMATCH, w->blocking[least]);
    if (!d)
        return -ENOMEM;
    d->process = least;
    d->peer = most;
    d->confidence = 0.9;
    if (ft_hangs_say_waiting(h, d) < 0)
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
    struct ft_hangs h = {.m = m, .found = found, .now_ns = ft_clocks_end(m, now_ns)};
    int rc = -ENOMEM;

    h.waits = ft_waits_new(m);
    h.seen_ns = calloc(m->process_count + 1, sizeof(*h.seen_ns));
    if (h.waits && h.now_ns && h.seen_ns && ft_habits_init(&h.habits, m) == 0) {
        h.ahead = ft_starts_are_calls(m);
        h.no_more = now_ns <= ft_operations_newest_ns(m->ops);
        ft_waits_outlived(m, h.waits, h.now_ns, h.no_more, h.seen_ns);
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

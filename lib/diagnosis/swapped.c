// SPDX-License-Identifier: Apache-2.0
/*
 * One rank that called two collectives of different communicators in another order than the others
 * do, once, though the job continued: those of the one waited for it, and it for those of the
 * other.
 *
 * Such orders differ without harm where operations run beside each other. So nothing is said of a
 * job in which any rank ever was in a collective and in anything else at the same time: had another
 * thread or stream called one of the two, those who waited for the rank would have called theirs
 * meanwhile. What a rank calls is compared with what others do by names of its own: its first
 * communicator, its second, and which functions. Lengths are compared that one clock measured.
 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/task.h"
#include "lib/diagnosis/found.h"

#define CLASSES_MAX 64  /* ranks that call the same, such as stages */
#define AGREE_MIN   3   /* ranks that say what the order is */
#define HABIT_MIN   8   /* times that each of them calls the two in that order */
#define ENDS_APART  4   /* a table may be cut: some ranks have begun a little more */
#define FELT        0.5 /* of the time between its two calls, that others wait */
#define FACTOR      UINT64_C(0x9e3779b97f4a7c15)

/* What a process does, one after the other: a collective each, or the sends and receives that run
 * at once. */
struct calls {
    uint64_t *prefix; /* what it did up to each of them, as a number */
    uint32_t *row;    /* the first row of each */
    size_t count;
};

struct class_of {
    uint32_t process; /* the first of it */
    size_t processes;
};

struct search {
    const struct ft_matched *m;
    uint64_t *prefix;
    uint32_t *row, *name; /* name: of a communicator, for the process that is looked at */
    struct calls *calls;  /* of each process */
    struct class_of classes[CLASSES_MAX];
    size_t class_count;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static bool is_collective(const struct search *s, uint32_t row)
{
    return s->m->group_of[row] != FT_OPERATIONS_NONE;
}

/* The k-th call of a process, as a number. */
static uint64_t call_of(const struct calls *c, size_t k)
{
    return c->prefix[k] - (k ? c->prefix[k - 1] * FACTOR : 0);
}

/* False: it was in a collective and in something else at the same time. */
static bool list_calls(struct search *s, uint32_t process)
{
    const struct ft_matched *m = s->m;
    struct calls *c = &s->calls[process];
    uint64_t until_ns = 0, names = 0, call = 0;
    bool collective = false;

    ft_task_spend(m->task, 1 + (m->first[process + 1] - m->first[process]) / 8);
    c->prefix = s->prefix + m->first[process];
    c->row = s->row + m->first[process];
    for (size_t i = m->first[process]; i < m->first[process + 1]; i++)
        s->name[m->op[i].comm] = 0;
    for (size_t i = m->first[process]; i < m->first[process + 1]; i++) {
        const struct ft_operation *op = &m->op[i];
        bool beside = op->start_ns < until_ns, here = is_collective(s, (uint32_t)i);

        if (beside && (here || collective))
            return false;
        collective = here;
        if (!s->name[op->comm])
            s->name[op->comm] = (uint32_t)++names;
        if (!beside) {
            c->row[c->count++] = (uint32_t)i;
            call = 0;
        }
        call += mix(((uint64_t)op->function << 32 | s->name[op->comm]) + 1);
        c->prefix[c->count - 1] = (c->count > 1 ? c->prefix[c->count - 2] * FACTOR : 0) + call;
        until_ns = until_ns > op->end_ns ? until_ns : op->end_ns;
    }
    return true;
}

static size_t common(const struct calls *a, const struct calls *b)
{
    return a->count < b->count ? a->count : b->count;
}

/* The first call that differs; as many as both have where none does. */
static size_t differ_at(const struct calls *a, const struct calls *b)
{
    size_t least = 0, most = common(a, b);

    while (least < most) {
        size_t k = least + (most - least) / 2;

        if (a->prefix[k] == b->prefix[k])
            least = k + 1;
        else
            most = k;
    }
    return least;
}

static bool as_long(const struct calls *a, const struct calls *b)
{
    return a->count < b->count + ENDS_APART && b->count < a->count + ENDS_APART;
}

/* Puts each process into a class; false where there are too many. */
static bool classify(struct search *s)
{
    for (uint32_t p = 0; p < s->m->process_count; p++) {
        const struct calls *mine = &s->calls[p];
        size_t k = 0;

        ft_task_spend(s->m->task, 1 + s->class_count / 4);
        for (; k < s->class_count; k++) {
            const struct calls *its = &s->calls[s->classes[k].process];

            if (as_long(mine, its) && differ_at(mine, its) == common(mine, its))
                break;
        }
        if (k == CLASSES_MAX)
            return false;
        if (k == s->class_count)
            s->classes[s->class_count++] = (struct class_of){.process = p};
        s->classes[k].processes++;
    }
    return true;
}

/* Whether two processes do the same but for two collectives of different communicators, the second
 * of which one does first; at: that one's first. */
static bool swapped(const struct search *s, const struct calls *odd, const struct calls *usual,
                    size_t *at)
{
    size_t k = differ_at(odd, usual), habit = 0;
    const struct ft_operation *op = s->m->op;

    if (!as_long(odd, usual) || k + 2 >= common(odd, usual) ||
        call_of(odd, k) != call_of(usual, k + 1) || call_of(odd, k + 1) != call_of(usual, k) ||
        !is_collective(s, odd->row[k]) || !is_collective(s, odd->row[k + 1]) ||
        op[odd->row[k]].comm == op[odd->row[k + 1]].comm)
        return false;
    for (size_t i = k + 2; i < common(odd, usual); i++)
        if (call_of(odd, i) != call_of(usual, i))
            return false;
    for (size_t i = 0; i + 1 < usual->count; i++)
        habit += call_of(usual, i) == call_of(usual, k) &&
                 call_of(usual, i + 1) == call_of(usual, k + 1);
    ft_task_spend(s->m->task, 1 + usual->count / 4);
    *at = k;
    return habit >= HABIT_MIN;
}

static uint64_t length_of(const struct ft_matched *m, uint32_t row)
{
    return m->op[row].end_ns - m->op[row].start_ns;
}

/* How long the others were in the operation of a row, at least and at most; false where it did not
 * end, or not all were in it. */
static bool others_were_in(const struct ft_matched *m, uint32_t row, uint64_t *least_ns,
                           uint64_t *most_ns)
{
    const struct ft_gathering *group = &m->groups[m->group_of[row]];

    *least_ns = UINT64_MAX;
    *most_ns = 0;
    if (group->unfinished || group->count < 2 || group->count < ft_matched_size(m, group->comm))
        return false;
    ft_task_spend(m->task, 1 + group->count / 8);
    for (size_t i = 0; i < group->count; i++) {
        uint32_t its = m->order[group->first + i];
        uint64_t ns = length_of(m, its);

        if (its == row)
            continue;
        *least_ns = *least_ns < ns ? *least_ns : ns;
        *most_ns = *most_ns > ns ? *most_ns : ns;
    }
    return true;
}

/* Whether it waited for the others in the one that it called too early, and they for it in the
 * other, for about as long as it had been away from that. */
static bool is_felt(const struct ft_matched *m, uint32_t early, uint32_t late, uint64_t *felt_ns)
{
    uint64_t least_ns, most_ns, away_ns = m->op[late].start_ns - m->op[early].start_ns;

    if (!others_were_in(m, early, &least_ns, &most_ns) || length_of(m, early) < most_ns ||
        !others_were_in(m, late, &least_ns, &most_ns) || length_of(m, late) > least_ns)
        return false;
    *felt_ns = least_ns - length_of(m, late);
    /* By a coarse clock both may start at once. */
    return away_ns > 0 && (double)*felt_ns >= FELT * (double)away_ns;
}

static int describe(const struct search *s, uint32_t early, uint32_t late, uint64_t felt_ns,
                    size_t agree, struct ft_diagnoses *found)
{
    struct ft_diagnosis *d = ft_diagnoses_add(found, FT_SYNDROME_MISMATCH);
    const struct ft_matched *m = s->m;
    const struct ft_operation *op = &m->op[early], *then = &m->op[late];
    const struct ft_gathering *group = &m->groups[m->group_of[late]];
    uint32_t rank = m->process[op->process].rank;

    if (!d)
        return -ENOMEM;
    d->process = op->process;
    d->peer = m->op[m->order[group->first]].process;
    if (d->peer == d->process)
        d->peer = m->op[m->order[group->first + 1]].process;
    d->comm = then->comm;
    d->function = then->function;
    d->sequence = then->sequence;
    d->since_ns = op->start_ns;
    d->confidence = 0.8;
    ft_texts_add(
        &d->reasons, "rank %u enters %s %llu of communicator %s before %s %llu of communicator %s",
        rank, ft_operations_function(m->ops, op->function), (unsigned long long)op->sequence,
        ft_operations_comm(m->ops, op->comm), ft_operations_function(m->ops, then->function),
        (unsigned long long)then->sequence, ft_operations_comm(m->ops, then->comm));
    ft_texts_add(&d->reasons,
                 "%zu ranks that call the same otherwise enter these two the other way round",
                 agree);
    ft_texts_add(&d->reasons, "the others of communicator %s wait for it, %.3f ms",
                 ft_operations_comm(m->ops, then->comm), (double)felt_ns / 1e6);
    ft_texts_add(&d->doubts, "the job continues");
    return 0;
}

/* The only process that does so; of several, none. */
static int find(const struct search *s, struct ft_diagnoses *found)
{
    uint32_t early = FT_OPERATIONS_NONE, late = FT_OPERATIONS_NONE;
    uint64_t felt_ns = 0;
    size_t agree = 0, at;

    for (size_t a = 0; a < s->class_count; a++)
        for (size_t b = 0; b < s->class_count && s->classes[a].processes == 1; b++) {
            const struct calls *odd = &s->calls[s->classes[a].process];

            if (s->classes[b].processes < AGREE_MIN ||
                !swapped(s, odd, &s->calls[s->classes[b].process], &at))
                continue;
            if (early != FT_OPERATIONS_NONE)
                return 0;
            early = odd->row[at];
            late = odd->row[at + 1];
            agree = s->classes[b].processes;
        }
    if (early == FT_OPERATIONS_NONE || !is_felt(s->m, early, late, &felt_ns))
        return 0;
    return describe(s, early, late, felt_ns, agree, found);
}

int ft_find_swapped(const struct ft_matched *m, struct ft_diagnoses *found)
{
    struct search s = {.m = m,
                       .prefix = calloc(m->op_count + 1, sizeof(*s.prefix)),
                       .row = calloc(m->op_count + 1, sizeof(*s.row)),
                       .name = calloc(m->comm_count + 1, sizeof(*s.name)),
                       .calls = calloc(m->process_count + 1, sizeof(*s.calls))};
    bool known = s.prefix && s.row && s.name && s.calls;
    int rc = known ? 0 : -ENOMEM;

    for (uint32_t p = 0; p < m->process_count && known; p++)
        known = list_calls(&s, p);
    if (known && classify(&s))
        rc = find(&s, found);
    free(s.prefix);
    free(s.row);
    free(s.name);
    free(s.calls);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/matched.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"

/* Times that the ends of both sides are less apart by order than by number. */
#define LESS_APART 3
/* Rows that one side may have more of than the other where a table begins; and the pairs, the
 * newest, by which that is known. */
#define SHIFT_MAX       8
#define SHIFT_PAIRS_MIN 8
#define SHIFT_PAIRS_MAX 64

/* A row to be matched. */
struct item {
    uint64_t sequence;
    uint64_t start_ns;
    uint32_t comm;
    uint32_t a, b; /* of a collective: function where it counts, repetition; of a pair: from, to */
    uint32_t process; /* of a pair: 1 at the receiver */
    uint32_t row;
};

#define COMPARE(x, y)                                                                              \
    if ((x) != (y))                                                                                \
    return (x) < (y) ? -1 : 1

static int by_number(const void *p, const void *q)
{
    const struct item *x = p, *y = q;

    COMPARE(x->comm, y->comm);
    COMPARE(x->process, y->process);
    COMPARE(x->sequence, y->sequence);
    COMPARE(x->a, y->a);
    COMPARE(x->start_ns, y->start_ns);
    COMPARE(x->row, y->row);
    return 0;
}

static int by_key(const void *p, const void *q)
{
    const struct item *x = p, *y = q;

    COMPARE(x->comm, y->comm);
    COMPARE(x->a, y->a);
    COMPARE(x->sequence, y->sequence);
    COMPARE(x->b, y->b);
    COMPARE(x->process, y->process);
    COMPARE(x->start_ns, y->start_ns);
    COMPARE(x->row, y->row);
    return 0;
}

static int by_pair(const void *p, const void *q)
{
    const struct item *x = p, *y = q;

    COMPARE(x->comm, y->comm);
    COMPARE(x->a, y->a);
    COMPARE(x->b, y->b);
    COMPARE(x->process, y->process);
    COMPARE(x->sequence, y->sequence);
    COMPARE(x->start_ns, y->start_ns);
    COMPARE(x->row, y->row);
    return 0;
}

static int by_pair_start(const void *p, const void *q)
{
    const struct item *x = p, *y = q;

    COMPARE(x->process, y->process);
    COMPARE(x->start_ns, y->start_ns);
    COMPARE(x->row, y->row);
    return 0;
}

static int by_time(const void *p, const void *q)
{
    const struct ft_gathering *x = p, *y = q;

    COMPARE(x->comm, y->comm);
    COMPARE(x->start_ns, y->start_ns);
    COMPARE(x->first, y->first);
    return 0;
}

static bool is_pair(const struct ft_matched *m, const struct ft_operation *op)
{
    return m->kinds[op->function] == FT_OPERATION_SEND ||
           m->kinds[op->function] == FT_OPERATION_RECV;
}

/* Items of one communicator, by number. Whether a rank has two functions of one number. */
static bool numbers_by_function(const struct item *items, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (items[i].process == items[i - 1].process &&
            items[i].sequence == items[i - 1].sequence && items[i].a != items[i - 1].a)
            return true;
    return false;
}

/* The same key again at a rank is another operation: repetitions get a number of their own. */
static void count_repetitions(struct item *items, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (items[i].process == items[i - 1].process &&
            items[i].sequence == items[i - 1].sequence && items[i].a == items[i - 1].a)
            items[i].b = items[i - 1].b + 1;
}

static bool same_group(const struct item *x, const struct item *y)
{
    return x->comm == y->comm && x->a == y->a && x->sequence == y->sequence && x->b == y->b;
}

/* Whether the items of one communicator, by key, have counterparts for most numbers. */
static bool numbers_agree(const struct item *items, size_t count, size_t members)
{
    size_t groups = 0;

    for (size_t i = 0; i < count; i++)
        groups += i == 0 || !same_group(&items[i], &items[i - 1]);
    return groups * (members + 1) <= 2 * count;
}

/* By their position in the order of each rank. */
static void number_anew(struct item *items, size_t count, const struct ft_matched *m)
{
    for (size_t i = 0; i < count; i++) {
        items[i].sequence = items[i].a = items[i].b = 0;
        items[i].start_ns = m->op[items[i].row].start_ns;
    }
    ft_task_sort(m->task, items, count, sizeof(*items), by_number);
    for (size_t i = 1; i < count; i++)
        if (items[i].process == items[i - 1].process)
            items[i].sequence = items[i - 1].sequence + 1;
}

/* The items of one communicator, by number, in the order of their groups. */
static void key_items(struct item *items, size_t count, const struct ft_matched *m)
{
    size_t members = 0;

    for (size_t i = 0; i < count; i++)
        members += i == 0 || items[i].process != items[i - 1].process;
    if (!numbers_by_function(items, count))
        for (size_t i = 0; i < count; i++)
            items[i].a = 0;
    count_repetitions(items, count);
    ft_task_sort(m->task, items, count, sizeof(*items), by_key);
    if (!numbers_agree(items, count, members)) {
        number_anew(items, count, m);
        ft_task_sort(m->task, items, count, sizeof(*items), by_key);
    }
}

static int add_members(struct ft_matched *m, const struct item *items, size_t count)
{
    size_t n = 0;

    m->members = calloc(count + 1, sizeof(*m->members));
    m->comm_members = calloc(m->comm_count + 1, sizeof(*m->comm_members));
    if (!m->members || !m->comm_members)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || items[i].comm != items[i - 1].comm ||
            items[i].process != items[i - 1].process)
            m->members[n++] =
                (struct ft_member){.comm = items[i].comm, .process = items[i].process};
        m->members[n - 1].groups++;
    }
    for (size_t c = 0, at = 0; c <= m->comm_count; c++) {
        while (at < n && m->members[at].comm < c)
            at++;
        m->comm_members[c] = at;
    }
    return 0;
}

static void add_group(struct ft_matched *m, const struct item *items, size_t first, size_t count)
{
    struct ft_gathering *group = &m->groups[m->group_count++];

    ft_task_spend(m->task, 1 + count / 4);
    *group = (struct ft_gathering){.start_ns = UINT64_MAX, .first = first, .comm = items->comm};
    for (size_t i = 0; i < count; i++) {
        const struct ft_operation *op = &m->op[items[i].row];

        /* Rows that differ in the function are of one number all the same. */
        m->order[first + group->count++] = items[i].row;
        group->unfinished += op->end_ns == FT_OPERATIONS_NEVER;
        group->sequence = op->sequence;
        if (group->start_ns > op->start_ns)
            group->start_ns = op->start_ns;
    }
}

static int make_groups(struct ft_matched *m, struct item *items, size_t count)
{
    ft_task_sort(m->task, items, count, sizeof(*items), by_number);
    if (add_members(m, items, count) < 0)
        return -1;
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && items[i + n].comm == items[i].comm;)
            n++;
        key_items(items + i, n, m);
    }
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && same_group(&items[i + n], &items[i]);)
            n++;
        add_group(m, items + i, i, n);
    }
    ft_task_sort(m->task, m->groups, m->group_count, sizeof(*m->groups), by_time);
    for (size_t c = 0, at = 0; c <= m->comm_count; c++) {
        while (at < m->group_count && m->groups[at].comm < c)
            at++;
        m->comm_groups[c] = at;
    }
    for (size_t g = 0; g < m->group_count; g++) {
        ft_task_spend(m->task, 1 + m->groups[g].count / 4);
        for (size_t i = 0; i < m->groups[g].count; i++)
            m->group_of[m->order[m->groups[g].first + i]] = (uint32_t)g;
    }
    return 0;
}

static void add_pair(struct ft_matched *m, const struct item *send, const struct item *recv)
{
    const struct item *some = send ? send : recv;

    ft_task_spend(m->task, 1);
    if (send)
        m->pair_of[send->row] = (uint32_t)m->pair_count;
    if (recv)
        m->pair_of[recv->row] = (uint32_t)m->pair_count;
    m->pairs[m->pair_count++] = (struct ft_pair){.send = send ? send->row : FT_OPERATIONS_NONE,
                                                 .recv = recv ? recv->row : FT_OPERATIONS_NONE,
                                                 .from = some->a,
                                                 .to = some->b,
                                                 .comm = some->comm};
}

/* How many numbers, each once at both sides, are the same; 0 where one is given twice. */
static size_t same_numbers(const struct item *sends, size_t s, const struct item *recvs, size_t r)
{
    size_t same = 0;

    for (size_t i = 1; i < s; i++)
        if (sends[i].sequence == sends[i - 1].sequence)
            return 0;
    for (size_t i = 1; i < r; i++)
        if (recvs[i].sequence == recvs[i - 1].sequence)
            return 0;
    for (size_t i = 0, k = 0; i < s && k < r;) {
        same += sends[i].sequence == recvs[k].sequence;
        if (sends[i].sequence <= recvs[k].sequence)
            i++;
        else
            k++;
    }
    return same;
}

/* Of pairs of two ranks: by how much more or less the ends of both sides are apart than those of
 * the pair before, on average. */
static double unevenness(const struct ft_matched *m, const struct ft_pair *pairs, size_t count)
{
    double sum = 0, last = 0;
    size_t n = 0;

    ft_task_spend(m->task, 1 + count / 8);
    for (size_t i = 0; i < count; i++) {
        uint64_t send, recv;

        if (pairs[i].send == FT_OPERATIONS_NONE || pairs[i].recv == FT_OPERATIONS_NONE)
            continue;
        send = m->op[pairs[i].send].end_ns;
        recv = m->op[pairs[i].recv].end_ns;
        if (send == FT_OPERATIONS_NEVER || recv == FT_OPERATIONS_NEVER)
            continue;
        sum += n ? fabs((double)recv - (double)send - last) : 0;
        last = (double)recv - (double)send;
        n++;
    }
    return n > 1 ? sum / (double)(n - 1) : 0;
}

/* Whether only the last have one side alone: then numbers say what the order does. */
static bool in_order(const struct ft_pair *pairs, size_t count)
{
    bool alone = false;

    for (size_t i = 0; i < count; i++) {
        bool one = pairs[i].send == FT_OPERATIONS_NONE || pairs[i].recv == FT_OPERATIONS_NONE;

        if (alone && !one)
            return false;
        alone = one;
    }
    return true;
}

static void pair_by_number(struct ft_matched *m, const struct item *sends, size_t s,
                           const struct item *recvs, size_t r)
{
    size_t i = 0, k = 0;

    while (i < s || k < r) {
        if (k == r || (i < s && sends[i].sequence < recvs[k].sequence))
            add_pair(m, &sends[i++], NULL);
        else if (i == s || recvs[k].sequence < sends[i].sequence)
            add_pair(m, NULL, &recvs[k++]);
        else
            add_pair(m, &sends[i++], &recvs[k++]);
    }
}

/* The same of the newest in order, of which the first of one side have no counterpart: of the
 * sends, or with a negative shift of the receives. INFINITY: too few. */
static double shifted(const struct ft_matched *m, const struct item *sends, size_t s,
                      const struct item *recvs, size_t r, int shift)
{
    size_t skip_s = shift > 0 ? (size_t)shift : 0, skip_r = shift < 0 ? (size_t)-shift : 0, least;
    double sum = 0, last = 0;
    size_t n = 0;

    if (s < skip_s + SHIFT_PAIRS_MIN || r < skip_r + SHIFT_PAIRS_MIN)
        return INFINITY;
    least = s - skip_s < r - skip_r ? s - skip_s : r - skip_r;
    ft_task_spend(m->task, 4);
    for (size_t i = least > SHIFT_PAIRS_MAX ? least - SHIFT_PAIRS_MAX : 0; i < least; i++) {
        uint64_t send = m->op[sends[skip_s + i].row].end_ns;
        uint64_t recv = m->op[recvs[skip_r + i].row].end_ns;

        if (send == FT_OPERATIONS_NEVER || recv == FT_OPERATIONS_NEVER)
            continue;
        sum += n ? fabs((double)recv - (double)send - last) : 0;
        last = (double)recv - (double)send;
        n++;
    }
    return n < SHIFT_PAIRS_MIN ? INFINITY : sum / (double)(n - 1);
}

/* Rows of both sides in order: where one side has some before the first of the other, their ends
 * are much less apart without these. */
static int find_shift(const struct ft_matched *m, const struct item *sends, size_t s,
                      const struct item *recvs, size_t r)
{
    double least = shifted(m, sends, s, recvs, r, 0) / LESS_APART;
    int best = 0;

    for (int k = 1; k <= SHIFT_MAX && isfinite(least) && least > 0; k++)
        for (int turned = 0; turned < 2; turned++) {
            double apart = shifted(m, sends, s, recvs, r, turned ? -k : k);

            if (apart >= least)
                continue;
            least = apart;
            best = turned ? -k : k;
        }
    return best;
}

static void pair_in_order(struct ft_matched *m, const struct item *sends, size_t s,
                          const struct item *recvs, size_t r, int shift)
{
    size_t i = 0, k = 0;

    for (; shift > 0; shift--)
        add_pair(m, &sends[i++], NULL);
    for (; shift < 0; shift++)
        add_pair(m, NULL, &recvs[k++]);
    for (; i < s || k < r; i++, k++)
        add_pair(m, i < s ? &sends[i] : NULL, k < r ? &recvs[k] : NULL);
}

static void pair_by_order(struct ft_matched *m, struct item *sends, size_t s, struct item *recvs,
                          size_t r)
{
    ft_task_sort(m->task, sends, s, sizeof(*sends), by_pair_start);
    ft_task_sort(m->task, recvs, r, sizeof(*recvs), by_pair_start);
    pair_in_order(m, sends, s, recvs, r, find_shift(m, sends, s, recvs, r));
}

/* Sends and receives of one pair of ranks in a communicator, by number. Where each rank counts for
 * itself, numbers of both sides may be the same by chance: both sides of a transfer end together,
 * and so the order counts where it leaves them much less apart. */
static void match_pair(struct ft_matched *m, struct item *sends, size_t s, struct item *recvs,
                       size_t r)
{
    size_t least = s < r ? s : r, first = m->pair_count;
    double numbered;
    int shift;

    if (same_numbers(sends, s, recvs, r) * 5 < least * 4 || least == 0) {
        pair_by_order(m, sends, s, recvs, r);
        return;
    }
    pair_by_number(m, sends, s, recvs, r);
    if (in_order(m->pairs + first, m->pair_count - first)) {
        shift = find_shift(m, sends, s, recvs, r);
        if (shift) {
            m->pair_count = first;
            pair_in_order(m, sends, s, recvs, r, shift);
        }
        return;
    }
    numbered = unevenness(m, m->pairs + first, m->pair_count - first);
    m->pair_count = first;
    pair_by_order(m, sends, s, recvs, r);
    if (unevenness(m, m->pairs + first, m->pair_count - first) < numbered / LESS_APART)
        return;
    m->pair_count = first;
    ft_task_sort(m->task, sends, s, sizeof(*sends), by_pair);
    ft_task_sort(m->task, recvs, r, sizeof(*recvs), by_pair);
    pair_by_number(m, sends, s, recvs, r);
}

static void make_pairs(struct ft_matched *m, struct item *items, size_t count)
{
    ft_task_sort(m->task, items, count, sizeof(*items), by_pair);
    for (size_t i = 0, n, s; i < count; i += n) {
        for (n = s = 0; i + n < count && items[i + n].comm == items[i].comm &&
                        items[i + n].a == items[i].a && items[i + n].b == items[i].b;
             n++)
            s += items[i + n].process == 0;
        match_pair(m, items + i, s, items + i + s, n - s);
    }
}

static void sum_own(struct ft_matched *m)
{
    for (size_t p = 0; p < m->process_count; p++) {
        uint64_t own = 0, until = UINT64_MAX;

        ft_task_spend(m->task, 1);
        for (size_t i = m->first[p]; i < m->first[p + 1]; i++) {
            const struct ft_operation *op = &m->op[i];

            if (until != UINT64_MAX && op->start_ns > until)
                own += op->start_ns - until;
            m->own_ns[i] = own;
            if (op->end_ns != FT_OPERATIONS_NEVER && (until == UINT64_MAX || until < op->end_ns))
                until = op->end_ns;
        }
    }
}

static int match(struct ft_matched *m)
{
    struct item *items = calloc(m->op_count + 1, sizeof(*items));
    struct item *pairs = calloc(m->op_count + 1, sizeof(*pairs));
    size_t count = 0, n = 0;
    int rc = -1;

    ft_task_spend(m->task, m->op_count / 16);
    for (size_t i = 0; items && pairs && i < m->op_count; i++) {
        const struct ft_operation *op = &m->op[i];
        struct item item = {.sequence = op->sequence,
                            .start_ns = op->start_ns,
                            .comm = op->comm,
                            .row = (uint32_t)i};

        if (i % 8 == 0)
            ft_task_spend(m->task, 1);
        m->group_of[i] = m->pair_of[i] = FT_OPERATIONS_NONE;
        if (!is_pair(m, op)) {
            item.a = op->function;
            item.process = op->process;
            items[count++] = item;
        } else if (op->peer != FT_OPERATIONS_NONE) {
            item.process = m->kinds[op->function] == FT_OPERATION_RECV;
            item.a = item.process ? op->peer : op->process;
            item.b = item.process ? op->process : op->peer;
            pairs[n++] = item;
        }
    }
    if (items && pairs && make_groups(m, items, count) == 0) {
        make_pairs(m, pairs, n);
        sum_own(m);
        rc = 0;
    }
    free(items);
    free(pairs);
    return rc;
}

struct ft_matched *ft_matched_new(const struct ft_operations *ops)
{
    struct ft_matched *m = calloc(1, sizeof(*m));
    size_t functions = ft_operations_functions(ops);

    if (!m)
        return NULL;
    m->ops = ops;
    m->task = ft_operations_task(ops);
    m->op = ft_operations_at(ops, &m->op_count);
    m->process = ft_operations_processes(ops, &m->process_count);
    m->first = ft_operations_first(ops);
    m->comm_count = ft_operations_comms(ops);
    m->groups = calloc(m->op_count + 1, sizeof(*m->groups));
    /* Pages that are touched for the first time cost as rows do. */
    ft_task_spend(m->task, m->op_count / 32);
    m->comm_groups = calloc(m->comm_count + 1, sizeof(*m->comm_groups));
    m->order = calloc(m->op_count + 1, sizeof(*m->order));
    m->pairs = calloc(m->op_count + 1, sizeof(*m->pairs));
    ft_task_spend(m->task, m->op_count / 32);
    m->group_of = calloc(m->op_count + 1, sizeof(*m->group_of));
    m->pair_of = calloc(m->op_count + 1, sizeof(*m->pair_of));
    m->own_ns = calloc(m->op_count + 1, sizeof(*m->own_ns));
    m->kinds = calloc(functions + 1, 1);
    if (m->groups && m->comm_groups && m->order && m->pairs && m->group_of && m->pair_of &&
        m->own_ns && m->kinds) {
        for (size_t f = 0; f < functions; f++)
            m->kinds[f] = (uint8_t)ft_operations_kind(ops, (uint32_t)f);
        if (match(m) == 0)
            return m;
    }
    ft_matched_free(m);
    return NULL;
}

void ft_matched_free(struct ft_matched *m)
{
    if (!m)
        return;
    free(m->groups);
    free(m->comm_groups);
    free(m->order);
    free(m->pairs);
    free(m->members);
    free(m->comm_members);
    free(m->group_of);
    free(m->pair_of);
    free(m->own_ns);
    free(m->kinds);
    free(m);
}

uint32_t ft_matched_row(const struct ft_matched *m, const struct ft_gathering *group,
                        uint32_t process)
{
    size_t low = 0, high = group->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (m->op[m->order[group->first + middle]].process < process)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == group->count || m->op[m->order[group->first + low]].process != process)
        return FT_OPERATIONS_NONE;
    return m->order[group->first + low];
}

uint32_t ft_matched_position(const struct ft_matched *m, uint32_t comm, uint32_t process)
{
    size_t low = m->comm_members[comm], end = m->comm_members[comm + 1], high = end;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (m->members[middle].process < process)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == end || m->members[low].process != process)
        return FT_OPERATIONS_NONE;
    return (uint32_t)(low - m->comm_members[comm]);
}

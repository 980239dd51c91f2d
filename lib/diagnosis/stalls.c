// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/stalls.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/task.h"

/* Logarithms: by chance, for all that is suspected together; and how much less likely all else is.
 */
#define CHANCE 9.2
#define APART  6.9
#define FEW    3 /* pairs that stall: fewer are themselves to blame */

enum what { LINK, SENDER, RECEIVER, FROM_HOST, TO_HOST, PAIR };

/* That something suspected has to do with a pair. */
struct part {
    enum what what;
    uint64_t id;
    uint32_t pair;
    bool answers;
};

struct count {
    double stalled, all;
};

struct court {
    const struct ft_stalls_pair *pairs;
    size_t count;
    struct part *parts;
    size_t part_count;
    struct count sum;
    struct ft_task *task;
};

static int by_suspect(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    if (x->what != y->what)
        return x->what < y->what ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    if (x->pair != y->pair)
        return x->pair < y->pair ? -1 : 1;
    return x->answers - y->answers;
}

static void add(struct court *c, enum what what, uint64_t id, size_t pair, bool answers)
{
    c->parts[c->part_count++] =
        (struct part){.what = what, .id = id, .pair = (uint32_t)pair, .answers = answers};
}

/* An end has to do with what it sends, and with the answers that it sends. */
static void add_pair(struct court *c, size_t i)
{
    const struct ft_stalls_pair *p = &c->pairs[i];

    if (!p->link_count || !p->operations)
        return;
    c->sum.all += p->operations;
    c->sum.stalled += p->stalled;
    for (uint32_t k = 0; k < p->link_count; k++)
        add(c, LINK, p->links[k], i, false);
    for (uint32_t k = 0; k < p->answer_count; k++)
        add(c, LINK, p->answers[k], i, true);
    add(c, SENDER, p->from, i, false);
    add(c, SENDER, p->to, i, true);
    add(c, RECEIVER, p->to, i, false);
    add(c, RECEIVER, p->from, i, true);
    add(c, FROM_HOST, p->from_host, i, false);
    add(c, FROM_HOST, p->to_host, i, true);
    add(c, TO_HOST, p->to_host, i, false);
    add(c, TO_HOST, p->from_host, i, true);
    add(c, PAIR, (uint64_t)p->from << 32 | p->to, i, false);
}

/* The logarithm of how likely the likeliest chance makes it. */
static double likelihood(struct count c)
{
    double share = c.all > 0 ? c.stalled / c.all : 0;

    if (!(share > 0) || !(share < 1))
        return 0;
    return c.stalled * log(share) + (c.all - c.stalled) * log1p(-share);
}

static double share(struct count c)
{
    return c.all > 0 ? c.stalled / c.all : 0;
}

static struct count less(struct count a, struct count b)
{
    return (struct count){a.stalled - b.stalled, a.all - b.all};
}

/* Takes a suspect together; parts from first on, of which it returns the number. */
static size_t weigh(const struct court *c, size_t first, struct count *data, struct count *answers)
{
    size_t i = first;

    *data = *answers = (struct count){0, 0};
    for (; i < c->part_count && c->parts[i].what == c->parts[first].what &&
           c->parts[i].id == c->parts[first].id;
         i++) {
        const struct part *p = &c->parts[i];
        struct count *of = p->answers ? answers : data;

        /* Whose data cross it is not counted again for the answers. */
        if (i > first && p[-1].pair == p->pair)
            continue;
        of->all += c->pairs[p->pair].operations;
        of->stalled += c->pairs[p->pair].stalled;
    }
    ft_task_spend(c->task, 1 + (i - first) / 8);
    return i - first;
}

/* How much likelier than chance alone a suspect makes what was seen. 0: no likelier. */
static double score(const struct court *c, struct count data, struct count *answers)
{
    struct count rest = less(less(c->sum, data), *answers);

    /* It makes no answers stall. */
    if (share(*answers) <= share(rest)) {
        rest = less(c->sum, data);
        *answers = (struct count){0, 0};
    }
    if (share(data) <= share(rest))
        return 0;
    return likelihood(data) + likelihood(*answers) + likelihood(rest) - likelihood(c->sum);
}

/* Whether several senders and receivers stall over the link. */
static bool is_shared(const struct court *c, size_t first, size_t parts,
                      struct ft_stalls_found *found)
{
    const struct ft_stalls_pair *one = NULL;
    bool from = false, to = false;

    for (size_t i = first; i < first + parts; i++) {
        const struct ft_stalls_pair *p = &c->pairs[c->parts[i].pair];

        if (c->parts[i].answers || (i > first && c->parts[i - 1].pair == c->parts[i].pair))
            continue;
        found->pairs++;
        if (!p->stalled)
            continue;
        found->pairs_stalled++;
        if (!one)
            one = p;
        from |= p->from != one->from;
        to |= p->to != one->to;
    }
    return from && to && found->pairs_stalled >= FEW;
}

static bool judge(struct court *c, struct ft_stalls_found *found)
{
    double best = 0, next = 0, suspects = 0;
    struct count best_data = {0, 0}, best_answers = {0, 0}, rest;
    size_t best_first = 0, best_parts = 0, parts;

    for (size_t i = 0; i < c->part_count; i += parts, suspects++) {
        struct count data, answers;
        double own;

        parts = weigh(c, i, &data, &answers);
        own = score(c, data, &answers);
        if (own <= best) {
            next = fmax(next, own);
            continue;
        }
        next = best;
        best = own;
        best_first = i;
        best_parts = parts;
        best_data = data;
        best_answers = answers;
    }
    if (best < CHANCE + log(fmax(suspects, 1)) || best - next < APART ||
        c->parts[best_first].what != LINK)
        return false;
    rest = less(less(c->sum, best_data), best_answers);
    *found = (struct ft_stalls_found){.link = (uint32_t)c->parts[best_first].id,
                                      .operations = (uint32_t)best_data.all,
                                      .stalled = (uint32_t)best_data.stalled,
                                      .other_operations = (uint32_t)rest.all,
                                      .others_stalled = (uint32_t)rest.stalled,
                                      .odds = best - next};
    return is_shared(c, best_first, best_parts, found);
}

int ft_stalls_find(const struct ft_stalls_pair *pairs, size_t count, struct ft_stalls_found *found,
                   struct ft_task *task)
{
    struct court c = {.pairs = pairs, .count = count, .task = task};
    struct ft_stalls_found one;
    size_t parts = 9 * count;
    int rc = 0;

    for (size_t i = 0; i < count; i++)
        parts += pairs[i].link_count + pairs[i].answer_count;
    c.parts = calloc(parts + 1, sizeof(*c.parts));
    if (!c.parts)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        add_pair(&c, i);
    ft_task_sort(task, c.parts, c.part_count, sizeof(*c.parts), by_suspect);
    if (c.sum.stalled > 0 && judge(&c, &one)) {
        *found = one;
        rc = 1;
    }
    free(c.parts);
    return rc;
}

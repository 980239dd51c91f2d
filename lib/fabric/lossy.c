// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/lossy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"

/* Flows that send again which are known one by one; those beyond are counted alone. */
#define FLOWS_MAX 4096
#define AGAIN_MIN 3
/* How often a window names some link by chance alone. */
#define CHANCE 1e-6
/* Another explanation that is at most so many times less likely is as good (a logarithm). */
#define AS_GOOD        6.9
#define SAMPLED        1.5 /* times as often as the others of the group */
#define CANDIDATES_MAX 256
#define OPEN           UINT32_MAX
#define SIGMAS         4 /* what is nearer to chance than that is not computed exactly */

struct tally {
    uint32_t flows, again;
    uint64_t samples;
};

/* Of a flow that sent again: links of its data, then those of its answers. */
struct kept {
    uint32_t parts[2 * FT_LOSSY_LINKS_MAX];
    uint32_t count;
    uint32_t id;
    uint32_t explained_by; /* a part; OPEN: none yet */
};

/* Parts are links: first each as one of data, then each as one of answers. */
struct ft_lossy {
    const uint32_t *group_of;
    uint32_t links, groups;
    struct tally *part;  /* 2 * links */
    struct tally *group; /* 2 * groups */
    struct kept *kept;
    size_t kept_count, kept_size;
};

struct ft_lossy *ft_lossy_new(const uint32_t *group_of, uint32_t links, uint32_t groups)
{
    struct ft_lossy *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->group_of = group_of;
    l->links = links;
    l->groups = groups;
    l->part = calloc(2 * (size_t)links + 1, sizeof(*l->part));
    l->group = calloc(2 * (size_t)groups + 1, sizeof(*l->group));
    if (l->part && l->group)
        return l;
    ft_lossy_free(l);
    return NULL;
}

void ft_lossy_free(struct ft_lossy *l)
{
    if (!l)
        return;
    free(l->part);
    free(l->group);
    free(l->kept);
    free(l);
}

void ft_lossy_reset(struct ft_lossy *l)
{
    memset(l->part, 0, 2 * (size_t)l->links * sizeof(*l->part));
    memset(l->group, 0, 2 * (size_t)l->groups * sizeof(*l->group));
    l->kept_count = 0;
}

/* Of the group of a part; NULL: it is in none. */
static struct tally *group_of(const struct ft_lossy *l, uint32_t part)
{
    bool answers = part >= l->links;
    uint32_t group = l->group_of[answers ? part - l->links : part];

    return group < l->groups ? &l->group[group + (answers ? l->groups : 0)] : NULL;
}

static void tally(struct tally *t, const struct ft_lossy_flow *flow)
{
    t->flows++;
    t->again += flow->again;
    t->samples += flow->samples;
}

static void add_part(struct ft_lossy *l, uint32_t part, const struct ft_lossy_flow *flow,
                     struct kept *kept)
{
    struct tally *group = group_of(l, part);

    tally(&l->part[part], flow);
    if (group)
        tally(group, flow);
    kept->parts[kept->count++] = part;
}

void ft_lossy_add(struct ft_lossy *l, const struct ft_lossy_flow *flow)
{
    struct kept kept = {.id = flow->id, .explained_by = OPEN}, *grown;

    for (uint32_t i = 0; i < flow->link_count && i < FT_LOSSY_LINKS_MAX; i++)
        if (flow->links[i] < l->links)
            add_part(l, flow->links[i], flow, &kept);
    for (uint32_t i = 0; i < flow->answer_count && i < FT_LOSSY_LINKS_MAX; i++)
        if (flow->answers[i] < l->links)
            add_part(l, l->links + flow->answers[i], flow, &kept);
    if (!flow->again || l->kept_count == FLOWS_MAX)
        return;
    grown = ft_grow(l->kept, l->kept_count, &l->kept_size, sizeof(*grown));
    if (!grown)
        return;
    l->kept = grown;
    l->kept[l->kept_count++] = kept;
}

void ft_lossy_count(const struct ft_lossy *l, uint32_t link, uint32_t *flows, uint32_t *again)
{
    *flows = link < l->links ? l->part[link].flows : 0;
    *again = link < l->links ? l->part[link].again : 0;
}

static double log_choose(double n, double k)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* Logarithm of the probability that of `again` among `all` flows, a part of `flows` drawn at random
 * has `here` or more (Fisher's exact test, one-sided). */
static double log_chance(uint32_t all, uint32_t again, uint32_t flows, uint32_t here)
{
    uint32_t most = again < flows ? again : flows;
    double first = log_choose(flows, here) + log_choose((double)all - flows, (double)again - here) -
                   log_choose(all, again);
    double sum = 1, term = 1;

    /* Terms fall fast above the mean. */
    for (uint32_t k = here; k < most; k++) {
        term *= (double)(flows - k) * (double)(again - k) /
                ((double)(k + 1) * ((double)all - flows - again + k + 1));
        if (term <= 1e-12)
            break;
        sum += term;
    }
    return fmin(0, first + log(sum));
}

/* How unlikely the part is by chance, as a logarithm; 0: it is not judged, or nearer to chance than
 * so many standard deviations. */
static double score(const struct ft_lossy *l, uint32_t part, double sigmas)
{
    const struct tally *t = &l->part[part], *g = group_of(l, part);
    double part_of, sigma;
    uint32_t others;

    if (t->again < AGAIN_MIN || !g)
        return 0;
    others = g->flows - t->flows;
    if (others == 0 || (double)t->again * g->flows <= (double)g->again * t->flows ||
        (double)t->samples / t->flows > SAMPLED * (double)(g->samples - t->samples) / others)
        return 0;
    /* The share of those that send again, and what chance makes of it here. */
    part_of = (double)g->again / g->flows;
    sigma = sqrt(t->flows * part_of * (1 - part_of) * others / (g->flows - 1.0));
    if (t->again - t->flows * part_of < sigmas * sigma)
        return 0;
    return -log_chance(g->flows, g->again, t->flows, t->again);
}

static bool crosses(const struct kept *k, uint32_t part)
{
    for (uint32_t i = 0; i < k->count; i++)
        if (k->parts[i] == part)
            return true;
    return false;
}

/* Whether most flows of a part that send again cross the other, too. */
static bool overlaps(const struct ft_lossy *l, uint32_t part, uint32_t other)
{
    size_t both = 0, all = 0;

    for (size_t i = 0; i < l->kept_count; i++) {
        if (l->kept[i].explained_by != OPEN || !crosses(&l->kept[i], part))
            continue;
        all++;
        both += crosses(&l->kept[i], other);
    }
    return 2 * both > all;
}

static void take_out(struct ft_lossy *l, uint32_t part)
{
    for (size_t i = 0; i < l->kept_count; i++) {
        struct kept *k = &l->kept[i];

        if (k->explained_by != OPEN || !crosses(k, part))
            continue;
        k->explained_by = part;
        for (uint32_t n = 0; n < k->count; n++) {
            struct tally *group = group_of(l, k->parts[n]);

            l->part[k->parts[n]].again--;
            l->part[k->parts[n]].flows--;
            if (group) {
                group->again--;
                group->flows--;
            }
        }
    }
}

/* Whether another part explains what this one does nearly as well. */
static bool is_ambiguous(const struct ft_lossy *l, uint32_t best, double most)
{
    for (uint32_t part = 0; part < 2 * l->links; part++)
        if (part != best && l->part[part].again >= AGAIN_MIN &&
            score(l, part, SIGMAS) > most - AS_GOOD && overlaps(l, best, part))
            return true;
    return false;
}

static void fill(const struct ft_lossy *l, uint32_t link, double score,
                 struct ft_lossy_found *found)
{
    const struct tally *t = &l->part[link], *g = group_of(l, link);

    *found = (struct ft_lossy_found){.link = link,
                                     .again = t->again,
                                     .flows = t->flows,
                                     .others_again = g->again - t->again,
                                     .others_flows = g->flows - t->flows,
                                     .p = exp(-score)};
}

bool ft_lossy_judge(const struct ft_lossy *l, uint32_t link, struct ft_lossy_found *found)
{
    double s = link < l->links ? score(l, link, 0) : 0;

    if (s > 0)
        fill(l, link, s, found);
    return s > 0;
}

/* Fills in what is too unlikely by chance for as many as were looked at. Returns how many. */
static size_t choose(struct ft_lossy *l, uint32_t candidates[CANDIDATES_MAX], double *bar)
{
    double judged = 1;
    size_t n = 0, kept = 0;

    *bar = -log(CHANCE);
    for (uint32_t part = 0; part < 2 * l->links; part++) {
        if (l->part[part].again < AGAIN_MIN)
            continue;
        judged++;
        if (n < CANDIDATES_MAX && score(l, part, SIGMAS) > *bar)
            candidates[n++] = part;
    }
    *bar += log(judged);
    for (size_t i = 0; i < n; i++)
        if (score(l, candidates[i], SIGMAS) > *bar)
            candidates[kept++] = candidates[i];
    return kept;
}

size_t ft_lossy_find(struct ft_lossy *l, struct ft_lossy_found *found, size_t max)
{
    uint32_t candidates[CANDIDATES_MAX];
    double bar;
    size_t count = choose(l, candidates, &bar), n = 0;

    while (n < max) {
        uint32_t best = 0;
        double most = 0;

        for (size_t i = 0; i < count; i++) {
            double s = score(l, candidates[i], SIGMAS);

            if (s > most) {
                most = s;
                best = candidates[i];
            }
        }
        if (most < bar)
            return n;
        if (best < l->links && !is_ambiguous(l, best, most))
            fill(l, best, most, &found[n++]);
        take_out(l, best);
        /* Of more flows than are kept some are left. */
        l->part[best].again = 0;
    }
    return n;
}

size_t ft_lossy_flows(const struct ft_lossy *l, uint32_t link, uint32_t *ids, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < l->kept_count && n < max; i++)
        if (l->kept[i].explained_by == link)
            ids[n++] = l->kept[i].id;
    return n;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/chance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 32
#define LINKS_MAX   4096
/* Steps of the exact computation that are affordable, in units of links x flows^4. */
#define EXACT_COST 2e8
/* With at most so many links one pass of draws keeps the tables of all numbers of flows. */
#define ALL_LINKS_MAX 128
#define SEED          UINT64_C(0x66616272696374)

/* All tables for m links, by the number of flows. */
struct member {
    uint64_t m;
    uint64_t exact_n;
    bool have_exact;
    struct ft_tail *tails;
};

struct ft_chance {
    struct member members[MEMBERS_MAX];
    size_t count;
};

struct ft_chance *ft_chance_new(void)
{
    return calloc(1, sizeof(struct ft_chance));
}

static void clear(struct ft_chance *chance)
{
    for (size_t i = 0; i < chance->count; i++) {
        struct member *member = &chance->members[i];

        for (uint64_t n = 0; n <= ft_chance_limit(member->m); n++)
            free(member->tails[n].tail);
        free(member->tails);
    }
    chance->count = 0;
}

void ft_chance_free(struct ft_chance *chance)
{
    if (!chance)
        return;
    clear(chance);
    free(chance);
}

uint64_t ft_chance_limit(uint64_t m)
{
    /* Beyond 5 flows a link only unions ask, and there 8 differ little from any more. */
    return m >= 2 && m <= LINKS_MAX ? 8 * m : 0;
}

static uint64_t pairs_of(uint64_t n)
{
    return n < 2 ? 0 : n * (n - 1) / 2;
}

static uint64_t exact_limit(uint64_t m)
{
    uint64_t n = (uint64_t)floor(pow(EXACT_COST / (double)m, 0.25));

    return n < ft_chance_limit(m) ? n : ft_chance_limit(m);
}

/* Row p of the triangle holds one weight for each number of pairs that p flows can make. */
static size_t row_of(uint64_t p)
{
    return p < 2 ? p : p * (p - 1) * (p - 2) / 6 + p;
}

/* Adds one link to the weights of every (flows placed, pairs): c flows on it are 1/c! as many ways
 * (m^-c keeps the numbers small). Downwards in place: a row needs only rows below it. */
static void add_link(double *weights, uint64_t most, double per_link)
{
    for (uint64_t placed = most; placed > 0; placed--) {
        double *to = weights + row_of(placed);
        double factor = 1;

        for (uint64_t c = 1; c <= placed; c++) {
            const double *from = weights + row_of(placed - c);
            uint64_t last = pairs_of(placed - c);

            factor *= per_link / (double)c;
            for (uint64_t q = 0; q <= last; q++)
                to[pairs_of(c) + q] += factor * from[q];
        }
    }
}

/* Turns weights, rising in pairs, into their tail. */
static bool make_tail(struct ft_tail *t, uint64_t least, const double *weight, uint32_t width,
                      bool exact)
{
    double sum = 0;

    t->tail = malloc(width * sizeof(*t->tail));
    if (!t->tail)
        return false;
    /* From the thin end, so that small weights are not lost. */
    for (uint32_t i = width; i-- > 0;) {
        sum += weight[i];
        t->tail[i] = sum;
    }
    for (uint32_t i = 0; i < width; i++)
        t->tail[i] /= sum;
    t->least = least;
    t->width = width;
    t->exact = exact;
    return true;
}

static bool make_exact(struct member *member)
{
    uint64_t most = member->exact_n;
    double *weights = calloc(row_of(most + 1), sizeof(*weights));
    bool ok = weights != NULL;

    if (!ok)
        return false;
    weights[0] = 1;
    for (uint64_t link = 0; link < member->m; link++)
        add_link(weights, most, 1 / (double)member->m);
    for (uint64_t n = 1; ok && n <= most; n++)
        ok = make_tail(&member->tails[n], 0, weights + row_of(n), (uint32_t)pairs_of(n) + 1, true);
    free(weights);
    member->have_exact = ok;
    return ok;
}

/* Counters of the draws of one number of flows. */
struct histogram {
    uint64_t least;
    uint32_t width;
    uint32_t *count;
};

/* 12 standard deviations to each side hold all that 20,000 draws bring; what is outside counts at
 * the ends. */
static bool make_histogram(struct histogram *h, uint64_t n, uint64_t m)
{
    double all = (double)pairs_of(n), share = 1 / (double)m;
    double mean = all * share, reach = 12 * sqrt(all * share * (1 - share));
    double top = mean + reach + 32;

    h->least = mean > reach ? (uint64_t)(mean - reach) : 0;
    h->width = (uint32_t)((top < all ? top : all) - (double)h->least) + 1;
    h->count = calloc(h->width, sizeof(*h->count));
    return h->count != NULL;
}

/* Throws FT_DRAWS times `last` flows, one after the other, and counts the pairs after each flow
 * from the first'th. Each draw has its own seed: what is drawn for n flows does not depend on last.
 */
static void throw_flows(struct histogram *h, uint64_t first, uint64_t last, uint64_t m,
                        uint16_t *on_link)
{
    for (uint64_t draw = 0; draw < FT_DRAWS; draw++) {
        struct ft_random random = {SEED ^ (m << 40) ^ (draw << 8)};
        uint64_t pairs = 0;

        memset(on_link, 0, m * sizeof(*on_link));
        for (uint64_t n = 1; n <= last; n++) {
            uint64_t link = (ft_random_next(&random) >> 32) * m >> 32;
            uint64_t at;

            pairs += on_link[link]++;
            if (n < first)
                continue;
            at = pairs > h[n].least ? pairs - h[n].least : 0;
            h[n].count[at < h[n].width ? at : h[n].width - 1]++;
        }
    }
}

static bool keep_histogram(struct ft_tail *tail, const struct histogram *h)
{
    double *weight = malloc(h->width * sizeof(*weight));
    bool ok = weight != NULL;

    for (uint32_t i = 0; ok && i < h->width; i++)
        weight[i] = h->count[i];
    ok = ok && make_tail(tail, h->least, weight, h->width, false);
    free(weight);
    return ok;
}

static bool make_drawn(struct member *member, uint64_t n)
{
    uint64_t first = n, last = n;
    struct histogram *h;
    uint16_t *on_link;
    bool ok;

    if (member->m <= ALL_LINKS_MAX) {
        first = n < 5 * member->m ? member->exact_n + 1 : 5 * member->m;
        last = n < 5 * member->m ? 5 * member->m - 1 : ft_chance_limit(member->m);
    }
    h = calloc(last + 1, sizeof(*h));
    on_link = malloc(member->m * sizeof(*on_link));
    ok = h && on_link;
    for (uint64_t i = first; ok && i <= last; i++)
        ok = make_histogram(&h[i], i, member->m);
    if (ok)
        throw_flows(h, first, last, member->m, on_link);
    for (uint64_t i = first; ok && i <= last; i++)
        if (member->tails[i].width == 0)
            ok = keep_histogram(&member->tails[i], &h[i]);
    for (uint64_t i = first; h && i <= last; i++)
        free(h[i].count);
    free(h);
    free(on_link);
    return ok;
}

static struct member *member_of(struct ft_chance *chance, uint64_t m)
{
    struct member *member;

    for (size_t i = 0; i < chance->count; i++)
        if (chance->members[i].m == m)
            return &chance->members[i];
    /* A fabric has a handful of sizes of groups; one that has more pays with time. */
    if (chance->count == MEMBERS_MAX)
        clear(chance);
    member = &chance->members[chance->count];
    *member = (struct member){.m = m, .exact_n = exact_limit(m)};
    member->tails = calloc(ft_chance_limit(m) + 1, sizeof(*member->tails));
    if (!member->tails)
        return NULL;
    chance->count++;
    return member;
}

const struct ft_tail *ft_chance_tail(struct ft_chance *chance, uint64_t n, uint64_t m)
{
    struct member *member;
    bool ok = true;

    if (n == 0 || n > ft_chance_limit(m))
        return NULL;
    member = member_of(chance, m);
    if (!member)
        return NULL;
    if (n <= member->exact_n && !member->have_exact)
        ok = make_exact(member);
    else if (n > member->exact_n && member->tails[n].width == 0)
        ok = make_drawn(member, n);
    return ok ? &member->tails[n] : NULL;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/hash_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fabric/hash_impl.h"

#define NO_MEMBER      FT_HASH_MEMBERS_MAX
#define INDEX_BITS_MAX 7
/* With so many more flows than directions between them it is clear that a hash is not linear. */
#define SPARE 16
/* Of flows on the wrong link a part may stand in the way: so many parts are tried. */
#define DRAWS 12
/* A model that errs in more than one flow in so many is none. */
#define ERRORS_ONE_IN 50

/* Spans the kernel by the differences of flows on the same link. */
static void span_kernel(struct ft_hash_basis *b, const struct ft_hash_flow *const *flows,
                        size_t count)
{
    const struct ft_hash_flow *first[FT_HASH_MEMBERS_MAX] = {NULL};

    for (size_t i = 0; i < count; i++) {
        const struct ft_hash_flow **same = &first[flows[i]->member];
        struct ft_hash_input d;

        if (!*same)
            *same = flows[i];
        d = ft_hash_difference(&flows[i]->in, &(*same)->in);
        ft_hash_extend(b, &d);
    }
}

/* Numbers the cosets of the kernel that have flows, each of them one link: of more than the links
 * need as bits where these are apart in the header already, as where the port of entry leaves only
 * some to choose from. False when there are too many bits, or when two links are in one. */
static bool number_cosets(struct ft_hash_basis *b, struct ft_hash_model *m,
                          const struct ft_hash_flow *const *flows, size_t count)
{
    for (unsigned i = 0; i < FT_HASH_MEMBERS_MAX; i++)
        m->member[i] = NO_MEMBER;
    m->index_bits = 0;
    for (size_t i = 0; i < count; i++) {
        struct ft_hash_input d = ft_hash_difference(&flows[i]->in, &m->origin);
        uint8_t code = 0;

        ft_hash_reduce(b, &d, &code);
        if (ft_hash_first_bit(&d) < FT_HASH_BITS) {
            uint8_t fresh = (uint8_t)(1u << m->index_bits);

            if (m->index_bits == INDEX_BITS_MAX)
                return false;
            m->index_bits++;
            ft_hash_insert(b, &d, ft_hash_first_bit(&d), code ^ fresh);
            code = fresh;
        }
        if (m->member[code] == NO_MEMBER)
            m->member[code] = flows[i]->member;
        if (m->member[code] != flows[i]->member)
            return false;
    }
    return true;
}

static int by_bit(const void *a, const void *b)
{
    const struct ft_hash_row *x = a, *y = b;

    return (int)x->bit - (int)y->bit;
}

/* A linear model of these flows, if there is one. The model has room for all rows. */
static bool fit(struct ft_hash_model *m, const struct ft_hash_flow *const *flows, size_t count)
{
    struct ft_hash_basis b;

    ft_hash_basis_begin(&b, m->rows);
    m->kind = FT_HASH_UNKNOWN;
    m->origin = flows[0]->in;
    span_kernel(&b, flows, count);
    if (!number_cosets(&b, m, flows, count))
        return false;
    m->kind = FT_HASH_LINEAR;
    m->row_count = b.count;
    qsort(m->rows, m->row_count, sizeof(*m->rows), by_bit);
    return true;
}

uint32_t ft_hash_predict(const struct ft_hash_model *m, const struct ft_hash_input *in)
{
    struct ft_hash_input d;
    uint8_t code = 0;

    if (m->kind != FT_HASH_LINEAR || !ft_hash_is_seen(m, in))
        return NO_MEMBER;
    d = ft_hash_difference(in, &m->origin);
    for (uint32_t i = 0; i < m->row_count; i++) {
        if (ft_hash_has_bit(&d, m->rows[i].bit)) {
            ft_hash_add(&d, &m->rows[i].in);
            code ^= m->rows[i].code;
        }
    }
    return ft_hash_first_bit(&d) < FT_HASH_BITS ? NO_MEMBER : m->member[code];
}

/* In how many independent directions flows differ; the rows of the model serve as room. */
static uint32_t directions(struct ft_hash_model *m, const struct ft_hash_flow *const *flows,
                           size_t count)
{
    struct ft_hash_basis b;

    ft_hash_basis_begin(&b, m->rows);
    for (size_t i = 1; i < count; i++) {
        struct ft_hash_input d = ft_hash_difference(&flows[i]->in, &flows[0]->in);

        ft_hash_extend(&b, &d);
    }
    return b.count;
}

/* Moves those that the model, of which nothing is proven yet, does not contradict to the front, and
 * counts them. */
static size_t agreeing(const struct ft_hash_model *m, const struct ft_hash_flow **flows,
                       size_t count)
{
    size_t right = 0;

    for (size_t i = 0; i < count; i++) {
        const struct ft_hash_flow *flow = flows[i];
        uint32_t member = ft_hash_predict(m, &flow->in);

        if (member != NO_MEMBER && member != flow->member)
            continue;
        flows[i] = flows[right];
        flows[right++] = flow;
    }
    return right;
}

/* Takes `part` of the flows by chance to the front. */
static void draw(const struct ft_hash_flow **flows, size_t count, size_t part, uint64_t *random)
{
    for (size_t i = 0; i < part; i++) {
        const struct ft_hash_flow *flow = flows[i];
        size_t other;

        *random ^= *random << 13; /* xorshift64, Marsaglia 2003 */
        *random ^= *random >> 7;
        *random ^= *random << 17;
        other = i + *random % (count - i);
        flows[i] = flows[other];
        flows[other] = flow;
    }
}

/* Some flows may be on a link that is not their hash's: parts without one of them fit. */
static bool fit_most(struct ft_hash_model *m, const struct ft_hash_flow **flows, size_t count,
                     size_t part, size_t *agreed)
{
    uint64_t random = UINT64_C(0x9e3779b97f4a7c15);

    for (unsigned i = 0; i < DRAWS; i++) {
        size_t right;

        draw(flows, count, part, &random);
        if (!fit(m, flows, part))
            continue;
        right = agreeing(m, flows, count);
        if ((count - right) * ERRORS_ONE_IN <= count && fit(m, flows, right)) {
            *agreed = right;
            return true;
        }
    }
    m->kind = FT_HASH_UNKNOWN;
    return false;
}

/* Flows that prove a linear choice, which differ in so many directions. */
static size_t proof_of(size_t rows)
{
    return rows + FT_HASH_PROOF + 1;
}

static void short_of_flows(struct ft_hash_model *m, size_t enough, size_t count)
{
    m->short_of = FT_HASH_SHORT_OF_FLOWS;
    m->short_least = enough > count ? (uint32_t)(enough - count) : 1;
    m->short_fields = 0;
}

/* Learns from flows in an order that it may change. */
static int learn(struct ft_hash_model *m, const struct ft_hash_flow **flows, size_t count,
                 uint32_t members, uint32_t seen_parts)
{
    size_t rank = directions(m, flows, count), agreed = count;
    size_t needed = rank + 2 * (size_t)members + SPARE;
    bool linear;
    int rc;

    if (!fit(m, flows, count) && count >= needed && !fit_most(m, flows, count, needed, &agreed))
        m->kind = FT_HASH_TABLE;
    if (m->kind == FT_HASH_UNKNOWN)
        short_of_flows(m, proof_of(rank), count);
    if (m->kind != FT_HASH_LINEAR)
        return 0;
    rc = ft_hash_prove(m, flows, agreed, members, seen_parts, &linear);
    if (rc || !linear || agreed < proof_of(m->row_count))
        m->kind = FT_HASH_UNKNOWN;
    if (!rc && agreed < proof_of(m->row_count))
        short_of_flows(m, proof_of(m->row_count), agreed);
    return rc;
}

int ft_hash_learn_seen(struct ft_hash_model *m, const struct ft_hash_flow *flows, size_t count,
                       uint32_t members, uint32_t seen_parts)
{
    const struct ft_hash_flow **order;
    struct ft_hash_row *rows;
    int rc = -ENOMEM;

    memset(m, 0, sizeof(*m));
    short_of_flows(m, proof_of(0), 0);
    if (count == 0)
        return 0;
    m->short_of = FT_HASH_SHORT_OF_NOTHING;
    order = calloc(count, sizeof(*order)); /* NOLINT(bugprone-sizeof-expression) */
    m->rows = calloc(FT_HASH_BITS, sizeof(*m->rows));
    for (size_t i = 0; order && i < count; i++)
        order[i] = &flows[i];
    if (order && m->rows)
        rc = learn(m, order, count, members, seen_parts);
    free(order);
    if (rc) {
        ft_hash_model_free(m);
        return rc;
    }
    if (m->kind != FT_HASH_LINEAR)
        m->row_count = 0;
    rows = realloc(m->rows, (m->row_count + 1) * sizeof(*rows));
    if (rows)
        m->rows = rows;
    return 0;
}

int ft_hash_learn(struct ft_hash_model *m, const struct ft_hash_flow *flows, size_t count,
                  uint32_t members)
{
    return ft_hash_learn_seen(m, flows, count, members, 0);
}

void ft_hash_model_free(struct ft_hash_model *m)
{
    free(m->rows);
    free(m->seen);
    memset(m, 0, sizeof(*m));
}

int ft_hash_uses(const struct ft_hash_model *m, enum ft_hash_field field, bool *uses)
{
    return ft_hash_depends(m, 1u << field, uses);
}

bool ft_hash_never_chooses(const struct ft_hash_model *m, uint32_t member)
{
    if (m->kind != FT_HASH_LINEAR)
        return false;
    for (uint32_t i = 0; i < 1u << m->index_bits; i++) {
        if (m->member[i] == member || m->member[i] == NO_MEMBER)
            return false;
    }
    return true;
}

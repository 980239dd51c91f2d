// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/hash_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_MEMBER FT_HASH_MEMBERS_MAX
/* Where each field begins, in bits. */
#define SRC_BIT        0
#define DST_BIT        128
#define SPORT_BIT      256
#define ENTRY_BIT      (FT_HASH_BITS - FT_HASH_ENTRIES_MAX)
#define INDEX_BITS_MAX 7
/* So many more flows than directions between them show that a hash is linear: another
 * would pass with a chance of 2 to the power of -12 between two links, less between more. */
#define PROOF 12
/* And with so many more that it is not. */
#define SPARE 16
/* Of flows on the wrong link a part may stand in the way: so many parts are tried. */
#define DRAWS 12
/* A model that errs in more than one flow in so many is none. */
#define ERRORS_ONE_IN 50

static const struct {
    uint32_t from, to;
} fields[FT_HASH_FIELDS] = {
    [FT_HASH_SRC] = {SRC_BIT, DST_BIT},
    [FT_HASH_DST] = {DST_BIT, SPORT_BIT},
    [FT_HASH_SPORT] = {SPORT_BIT, ENTRY_BIT},
    [FT_HASH_ENTRY] = {ENTRY_BIT, FT_HASH_BITS},
};

_Static_assert(SPORT_BIT + 16 == ENTRY_BIT, "the fields fill the input");

static void set_bit(struct ft_hash_input *in, uint32_t bit)
{
    in->word[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static bool has_bit(const struct ft_hash_input *in, uint32_t bit)
{
    return in->word[bit / 64] >> (bit % 64) & 1;
}

/* The first byte lowest on any machine: words go from the daemon to the tool. */
static void set_address(struct ft_hash_input *in, uint32_t bit, const struct ft_ip *ip)
{
    for (uint32_t i = 0; i < sizeof(ip->b); i++)
        in->word[(bit + 8 * i) / 64] |= (uint64_t)ip->b[i] << 8 * (i % 8);
}

void ft_hash_input(struct ft_hash_input *in, const struct ft_tuple *tuple, uint32_t entry)
{
    memset(in, 0, sizeof(*in));
    set_address(in, SRC_BIT, &tuple->src);
    set_address(in, DST_BIT, &tuple->dst);
    in->word[SPORT_BIT / 64] = tuple->sport;
    if (entry < FT_HASH_ENTRIES_MAX)
        set_bit(in, ENTRY_BIT + entry);
}

static void add(struct ft_hash_input *to, const struct ft_hash_input *what)
{
    for (unsigned i = 0; i < FT_HASH_WORDS; i++)
        to->word[i] ^= what->word[i];
}

/* Its first bit, in the order of elimination; FT_HASH_BITS of zero. */
static uint32_t first_bit(const struct ft_hash_input *in)
{
    for (unsigned i = 0; i < FT_HASH_WORDS; i++) {
        if (in->word[i])
            return 64 * i + (uint32_t)__builtin_ctzll(in->word[i]);
    }
    return FT_HASH_BITS;
}

static struct ft_hash_input difference(const struct ft_hash_input *a, const struct ft_hash_input *b)
{
    struct ft_hash_input d = *a;

    add(&d, b);
    return d;
}

/* Linearly independent rows, found by their first bit. */
struct basis {
    struct ft_hash_row *rows; /* borrowed, room for FT_HASH_BITS */
    uint32_t count;
    int16_t at[FT_HASH_BITS]; /* the row of a first bit, -1 */
};

static void basis_begin(struct basis *b, struct ft_hash_row *rows)
{
    b->rows = rows;
    b->count = 0;
    memset(b->at, 0xff, sizeof(b->at));
}

/* Leaves of a vector what is not a sum of rows, zero where it is one; their codes are added up. */
static void reduce(const struct basis *b, struct ft_hash_input *in, uint8_t *code)
{
    uint32_t bit = first_bit(in);

    while (bit < FT_HASH_BITS && b->at[bit] >= 0) {
        const struct ft_hash_row *row = &b->rows[b->at[bit]];

        add(in, &row->in);
        *code ^= row->code;
        bit = first_bit(in);
    }
}

static void insert(struct basis *b, const struct ft_hash_input *in, uint32_t bit, uint8_t code)
{
    b->at[bit] = (int16_t)b->count;
    b->rows[b->count++] = (struct ft_hash_row){*in, (uint16_t)bit, code};
}

/* Adds a vector, unless it is a sum of rows. */
static bool extend(struct basis *b, const struct ft_hash_input *vector)
{
    struct ft_hash_input left = *vector;
    uint8_t code = 0;

    reduce(b, &left, &code);
    if (first_bit(&left) == FT_HASH_BITS)
        return false;
    insert(b, &left, first_bit(&left), 0);
    return true;
}

/* Spans the kernel by the differences of flows on the same link. */
static void span_kernel(struct basis *b, const struct ft_hash_flow *const *flows, size_t count)
{
    const struct ft_hash_flow *first[FT_HASH_MEMBERS_MAX] = {NULL};

    for (size_t i = 0; i < count; i++) {
        const struct ft_hash_flow **same = &first[flows[i]->member];
        struct ft_hash_input d;

        if (!*same)
            *same = flows[i];
        d = difference(&flows[i]->in, &(*same)->in);
        extend(b, &d);
    }
}

/* Numbers the cosets of the kernel. False when there are more of them than links, or when two links
 * are in one. */
static bool number_cosets(struct basis *b, struct ft_hash_model *m,
                          const struct ft_hash_flow *const *flows, size_t count, uint32_t members)
{
    for (unsigned i = 0; i < FT_HASH_MEMBERS_MAX; i++)
        m->member[i] = NO_MEMBER;
    m->index_bits = 0;
    for (size_t i = 0; i < count; i++) {
        struct ft_hash_input d = difference(&flows[i]->in, &m->origin);
        uint8_t code = 0;

        reduce(b, &d, &code);
        if (first_bit(&d) < FT_HASH_BITS) {
            uint8_t fresh = (uint8_t)(1u << m->index_bits);

            if (m->index_bits == INDEX_BITS_MAX || fresh >= members)
                return false;
            m->index_bits++;
            insert(b, &d, first_bit(&d), code ^ fresh);
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
static bool fit(struct ft_hash_model *m, const struct ft_hash_flow *const *flows, size_t count,
                uint32_t members)
{
    struct basis b;

    basis_begin(&b, m->rows);
    m->kind = FT_HASH_UNKNOWN;
    m->origin = flows[0]->in;
    span_kernel(&b, flows, count);
    if (!number_cosets(&b, m, flows, count, members))
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

    if (m->kind != FT_HASH_LINEAR)
        return NO_MEMBER;
    d = difference(in, &m->origin);
    for (uint32_t i = 0; i < m->row_count; i++) {
        if (has_bit(&d, m->rows[i].bit)) {
            add(&d, &m->rows[i].in);
            code ^= m->rows[i].code;
        }
    }
    return first_bit(&d) < FT_HASH_BITS ? NO_MEMBER : m->member[code];
}

/* In how many independent directions flows differ; the rows of the model serve as room. */
static uint32_t directions(struct ft_hash_model *m, const struct ft_hash_flow *const *flows,
                           size_t count)
{
    struct basis b;

    basis_begin(&b, m->rows);
    for (size_t i = 1; i < count; i++) {
        struct ft_hash_input d = difference(&flows[i]->in, &flows[0]->in);

        extend(&b, &d);
    }
    return b.count;
}

/* Moves those that the model does not contradict to the front, and counts them. */
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
                     size_t part, uint32_t members)
{
    uint64_t random = UINT64_C(0x9e3779b97f4a7c15);

    for (unsigned i = 0; i < DRAWS; i++) {
        size_t right;

        draw(flows, count, part, &random);
        if (!fit(m, flows, part, members))
            continue;
        right = agreeing(m, flows, count);
        if ((count - right) * ERRORS_ONE_IN <= count && fit(m, flows, right, members))
            return true;
    }
    m->kind = FT_HASH_UNKNOWN;
    return false;
}

int ft_hash_learn(struct ft_hash_model *m, const struct ft_hash_flow *flows, size_t count,
                  uint32_t members)
{
    const struct ft_hash_flow **order;
    struct ft_hash_row *rows;
    size_t needed;

    memset(m, 0, sizeof(*m));
    if (count == 0)
        return 0;
    order = calloc(count, sizeof(*order)); /* NOLINT(bugprone-sizeof-expression) */
    m->rows = calloc(FT_HASH_BITS, sizeof(*m->rows));
    if (!order || !m->rows) {
        free(order);
        ft_hash_model_free(m);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        order[i] = &flows[i];
    needed = directions(m, order, count) + 2 * (size_t)members + SPARE;
    if (!fit(m, order, count, members) && count >= needed &&
        !fit_most(m, order, count, needed, members))
        m->kind = FT_HASH_TABLE;
    free(order);
    if (m->kind == FT_HASH_LINEAR && count < m->row_count + PROOF + 1)
        m->kind = FT_HASH_UNKNOWN;
    if (m->kind != FT_HASH_LINEAR)
        m->row_count = 0;
    rows = realloc(m->rows, (m->row_count + 1) * sizeof(*rows));
    if (rows)
        m->rows = rows;
    return 0;
}

void ft_hash_model_free(struct ft_hash_model *m)
{
    free(m->rows);
    memset(m, 0, sizeof(*m));
}

/* Without the bits of a field. */
static struct ft_hash_input outside(const struct ft_hash_input *in, enum ft_hash_field field)
{
    struct ft_hash_input out = *in;

    for (uint32_t bit = fields[field].from; bit < fields[field].to; bit++)
        out.word[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
    return out;
}

/* The rows are eliminated anew by the bits outside of the field: what is left of them there when
 * nothing is left outside spans the differences in that field alone. */
int ft_hash_uses(const struct ft_hash_model *m, enum ft_hash_field field, bool *uses)
{
    struct ft_hash_row *rows = calloc(FT_HASH_BITS, sizeof(*rows));
    struct basis b;

    if (!rows)
        return -ENOMEM;
    basis_begin(&b, rows);
    *uses = false;
    for (uint32_t i = 0; i < m->row_count; i++) {
        struct ft_hash_row row = m->rows[i];
        struct ft_hash_input rest = outside(&row.in, field);
        uint32_t bit = first_bit(&rest);

        while (bit < FT_HASH_BITS && b.at[bit] >= 0) {
            add(&row.in, &rows[b.at[bit]].in);
            row.code ^= rows[b.at[bit]].code;
            rest = outside(&row.in, field);
            bit = first_bit(&rest);
        }
        if (bit < FT_HASH_BITS)
            insert(&b, &row.in, bit, row.code);
        else
            *uses |= row.code != 0;
    }
    free(rows);
    return 0;
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

const char *ft_hash_field_name(enum ft_hash_field field)
{
    static const char *const names[FT_HASH_FIELDS] = {
        [FT_HASH_SRC] = "src",
        [FT_HASH_DST] = "dst",
        [FT_HASH_SPORT] = "sport",
        [FT_HASH_ENTRY] = "entry",
    };

    return names[field];
}

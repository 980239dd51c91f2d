// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mix.h"
#include "lib/fabric/hash_impl.h"

#define SRC   (1u << FT_HASH_SRC | 1u << FT_HASH_ENTRY) /* where a flow comes from */
#define DST   (1u << FT_HASH_DST)
#define SPORT (1u << FT_HASH_SPORT)
#define ALL   (SRC | DST | SPORT)

/* A part that may choose alone does not, but for one chance in two to the power of this. Addresses
 * without ports are what Linux hashes by default, and there are many switches; a hash of one field
 * alone is rare. */
#define ONE_PROOF_BITS 12
#define TWO_PROOF_BITS 20
#define ONES           3 /* parts that are one by themselves come first */

static const uint32_t parts[FT_HASH_PARTS] = {
    [FT_HASH_PART_FROM] = SRC, [FT_HASH_PART_TO] = DST, SPORT, SRC | DST, SRC | SPORT, DST | SPORT};

uint32_t ft_hash_part_fields(uint32_t part)
{
    return parts[part];
}

/* The same on any machine: it goes from the daemon to the tool. */
static uint32_t digest_of(const struct ft_hash_input *in, uint32_t part)
{
    struct ft_hash_input of = ft_hash_inside(in, parts[part]);
    uint64_t x = 0;

    for (unsigned i = 0; i < FT_HASH_WORDS; i++)
        x = ft_mix(x + of.word[i]);
    return (uint32_t)x;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* The digests of a part that flows have, in order, each once. */
static size_t values_of(uint32_t part, const struct ft_hash_flow *const *flows, size_t count,
                        uint32_t *values)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        values[i] = digest_of(&flows[i]->in, part);
    qsort(values, count, sizeof(*values), by_value);
    for (size_t i = 0; i < count; i++)
        if (n == 0 || values[i] != values[n - 1])
            values[n++] = values[i];
    return n;
}

static uint32_t directions(uint32_t part, const struct ft_hash_flow *const *flows, size_t count,
                           struct ft_hash_row *rows)
{
    struct ft_hash_basis b;

    ft_hash_basis_begin(&b, rows);
    for (size_t i = 1; i < count; i++) {
        struct ft_hash_input d = ft_hash_difference(&flows[i]->in, &flows[0]->in);

        d = ft_hash_inside(&d, parts[part]);
        ft_hash_extend(&b, &d);
    }
    return b.count;
}

/* The rows are eliminated anew by the bits outside of the fields: what is left of them there when
 * nothing is left outside spans the differences in those fields alone. */
int ft_hash_depends(const struct ft_hash_model *m, uint32_t set, bool *depends)
{
    struct ft_hash_row *rows = calloc(FT_HASH_BITS, sizeof(*rows));
    struct ft_hash_basis b;

    if (!rows)
        return -ENOMEM;
    ft_hash_basis_begin(&b, rows);
    *depends = false;
    for (uint32_t i = 0; i < m->row_count; i++) {
        struct ft_hash_row row = m->rows[i];
        struct ft_hash_input rest = ft_hash_inside(&row.in, ALL & ~set);
        uint32_t bit = ft_hash_first_bit(&rest);

        while (bit < FT_HASH_BITS && b.at[bit] >= 0) {
            ft_hash_add(&row.in, &rows[b.at[bit]].in);
            row.code ^= rows[b.at[bit]].code;
            rest = ft_hash_inside(&row.in, ALL & ~set);
            bit = ft_hash_first_bit(&rest);
        }
        if (bit < FT_HASH_BITS)
            ft_hash_insert(&b, &row.in, bit, row.code);
        else
            *depends |= row.code != 0;
    }
    free(rows);
    return 0;
}

double ft_hash_chance_bits(const struct ft_hash_model *m, uint32_t members)
{
    double most = ceil(log2(members));

    return m->index_bits == 0 ? log2(members) : m->index_bits < most ? m->index_bits : most;
}

/* Whether values of a part rule out that it chooses alone, by a hash that is not linear: each that
 * is a sum of others would be on the link that follows from them by chance only. Where all flows
 * take one link, each value but the first would. */
static bool is_ruled_out(const struct ft_hash_model *m, uint32_t part, size_t values, uint32_t rank,
                         uint32_t members)
{
    double needed = part < ONES ? ONE_PROOF_BITS : TWO_PROOF_BITS;
    double bits = ft_hash_chance_bits(m, members);
    uint32_t fitted = m->index_bits ? rank : 0;

    return values > fitted && (double)(values - 1 - fitted) * bits >= needed;
}

/* How many more would, at least: more bits of the index than these links have there cannot be. */
static uint32_t values_short(const struct ft_hash_model *m, uint32_t part, size_t values,
                             uint32_t rank, uint32_t members)
{
    double needed = part < ONES ? ONE_PROOF_BITS : TWO_PROOF_BITS;
    uint32_t fitted = m->index_bits ? rank : 0;
    uint32_t enough = fitted + 1 + (uint32_t)ceil(needed / ceil(log2(members)));

    return enough > values ? enough - (uint32_t)values : 1;
}

/* The part that is short of most is named: each flow brings a value of all parts. */
static void short_of_values(struct ft_hash_model *m, uint32_t part, uint32_t least)
{
    if (m->short_of == FT_HASH_SHORT_OF_VALUES && m->short_least >= least)
        return;
    m->short_of = FT_HASH_SHORT_OF_VALUES;
    m->short_least = least;
    m->short_fields = parts[part];
}

int ft_hash_prove(struct ft_hash_model *m, const struct ft_hash_flow *const *flows, size_t count,
                  uint32_t members, uint32_t seen_parts, bool *linear)
{
    uint32_t *seen = calloc(count * FT_HASH_PARTS + 1, sizeof(*seen)), *fewer;
    struct ft_hash_row *rows = calloc(FT_HASH_BITS, sizeof(*rows));
    uint32_t used = 0;
    int rc = seen && rows ? 0 : -ENOMEM;

    *linear = true;
    m->unproven = 0;
    for (uint32_t part = 0; !rc && part < FT_HASH_PARTS; part++) {
        size_t n = values_of(part, flows, count, seen + used);
        uint32_t rank = directions(part, flows, count, rows);
        bool proven = is_ruled_out(m, part, n, rank, members), depends = false;

        rc = ft_hash_depends(m, ALL & ~parts[part], &depends);
        m->seen_at[part] = used;
        *linear &= depends || proven;
        if (!depends && !proven)
            short_of_values(m, part, values_short(m, part, n, rank, members));
        if (!proven || seen_parts >> part & 1) {
            m->unproven |= 1u << part;
            used += (uint32_t)n;
        }
    }
    m->seen_at[FT_HASH_PARTS] = used;
    fewer = rc ? NULL : realloc(seen, (used + 1) * sizeof(*seen));
    free(rows);
    free(m->seen);
    m->seen = fewer ? fewer : rc ? NULL : seen;
    if (rc)
        free(seen);
    return rc;
}

bool ft_hash_is_seen(const struct ft_hash_model *m, const struct ft_hash_input *in)
{
    for (uint32_t part = 0; part < FT_HASH_PARTS; part++) {
        uint32_t from = m->seen_at[part], digest;

        if (!(m->unproven >> part & 1))
            continue;
        digest = digest_of(in, part);
        if (!bsearch(&digest, m->seen + from, m->seen_at[part + 1] - from, sizeof(digest),
                     by_value))
            return false;
    }
    return true;
}

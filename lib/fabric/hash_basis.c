// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "lib/fabric/hash_impl.h"

/* Where each field begins, in bits. */
#define SRC_BIT   0
#define DST_BIT   128
#define SPORT_BIT 256
#define ENTRY_BIT (FT_HASH_BITS - FT_HASH_ENTRIES_MAX)

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

bool ft_hash_has_bit(const struct ft_hash_input *in, uint32_t bit)
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

uint32_t ft_hash_entry(const struct ft_hash_input *in)
{
    struct ft_hash_input entry = ft_hash_inside(in, 1u << FT_HASH_ENTRY);

    return ft_hash_first_bit(&entry) - ENTRY_BIT;
}

void ft_hash_add(struct ft_hash_input *to, const struct ft_hash_input *what)
{
    for (unsigned i = 0; i < FT_HASH_WORDS; i++)
        to->word[i] ^= what->word[i];
}

uint32_t ft_hash_first_bit(const struct ft_hash_input *in)
{
    for (unsigned i = 0; i < FT_HASH_WORDS; i++) {
        if (in->word[i])
            return 64 * i + (uint32_t)__builtin_ctzll(in->word[i]);
    }
    return FT_HASH_BITS;
}

struct ft_hash_input ft_hash_difference(const struct ft_hash_input *a,
                                        const struct ft_hash_input *b)
{
    struct ft_hash_input d = *a;

    ft_hash_add(&d, b);
    return d;
}

/* The bits from `from` on of a word. */
static uint64_t bits_from(uint32_t word, uint32_t from)
{
    if (from <= 64 * word)
        return UINT64_MAX;
    return from >= 64 * word + 64 ? 0 : UINT64_MAX << (from - 64 * word);
}

struct ft_hash_input ft_hash_inside(const struct ft_hash_input *in, uint32_t set)
{
    struct ft_hash_input out = {{0}};

    for (uint32_t f = 0; f < FT_HASH_FIELDS; f++) {
        if (!(set >> f & 1))
            continue;
        for (uint32_t i = fields[f].from / 64; i <= (fields[f].to - 1) / 64; i++)
            out.word[i] |= in->word[i] & bits_from(i, fields[f].from) & ~bits_from(i, fields[f].to);
    }
    return out;
}

void ft_hash_basis_begin(struct ft_hash_basis *b, struct ft_hash_row *rows)
{
    b->rows = rows;
    b->count = 0;
    memset(b->at, 0xff, sizeof(b->at));
}

void ft_hash_reduce(const struct ft_hash_basis *b, struct ft_hash_input *in, uint8_t *code)
{
    uint32_t bit = ft_hash_first_bit(in);

    while (bit < FT_HASH_BITS && b->at[bit] >= 0) {
        const struct ft_hash_row *row = &b->rows[b->at[bit]];

        ft_hash_add(in, &row->in);
        *code ^= row->code;
        bit = ft_hash_first_bit(in);
    }
}

void ft_hash_insert(struct ft_hash_basis *b, const struct ft_hash_input *in, uint32_t bit,
                    uint8_t code)
{
    b->at[bit] = (int16_t)b->count;
    b->rows[b->count++] = (struct ft_hash_row){*in, (uint16_t)bit, code};
}

bool ft_hash_extend(struct ft_hash_basis *b, const struct ft_hash_input *vector)
{
    struct ft_hash_input left = *vector;
    uint8_t code = 0;

    ft_hash_reduce(b, &left, &code);
    if (ft_hash_first_bit(&left) == FT_HASH_BITS)
        return false;
    ft_hash_insert(b, &left, ft_hash_first_bit(&left), 0);
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

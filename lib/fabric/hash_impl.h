// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_HASH_IMPL_H
#define FT_FABRIC_HASH_IMPL_H
/*
 * Shared by the parts of the hash model alone: vectors of bits over GF(2) and bases of them
 * (hash_basis.c), and how far a function that fits its flows is proven (hash_proof.c). Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/fabric/hash_model.h"

/* So many more flows than directions between them show that a hash is linear: another
 * would pass with a chance of 2 to the power of -12 between two links, less between more. */
#define FT_HASH_PROOF 12

/* Linearly independent rows, found by their first bit. */
struct ft_hash_basis {
    struct ft_hash_row *rows; /* borrowed, room for FT_HASH_BITS */
    uint32_t count;
    int16_t at[FT_HASH_BITS]; /* the row of a first bit, -1 */
};

void ft_hash_add(struct ft_hash_input *to, const struct ft_hash_input *what);
bool ft_hash_has_bit(const struct ft_hash_input *in, uint32_t bit);
/* Its first bit, in the order of elimination; FT_HASH_BITS of zero. */
uint32_t ft_hash_first_bit(const struct ft_hash_input *in);
struct ft_hash_input ft_hash_difference(const struct ft_hash_input *a,
                                        const struct ft_hash_input *b);
/* Of the fields of a set, a bit each, what is in them. */
struct ft_hash_input ft_hash_inside(const struct ft_hash_input *in, uint32_t fields);

void ft_hash_basis_begin(struct ft_hash_basis *b, struct ft_hash_row *rows);
/* Leaves of a vector what is not a sum of rows, zero where it is one; their codes are added up. */
void ft_hash_reduce(const struct ft_hash_basis *b, struct ft_hash_input *in, uint8_t *code);
void ft_hash_insert(struct ft_hash_basis *b, const struct ft_hash_input *in, uint32_t bit,
                    uint8_t code);
/* Adds a vector, unless it is a sum of rows. */
bool ft_hash_extend(struct ft_hash_basis *b, const struct ft_hash_input *vector);

/* Whether flows that differ in none but these fields certainly take different links. */
int ft_hash_depends(const struct ft_hash_model *model, uint32_t fields, bool *depends);

/* What of a linear model the flows that it agrees with prove (struct ft_hash_proof); *linear:
 * whether they rule out that some part of the header is hashed otherwise and chooses alone. */
int ft_hash_prove(struct ft_hash_model *model, const struct ft_hash_flow *const *flows,
                  size_t count, uint32_t members, uint32_t seen_parts, bool *linear);

#endif

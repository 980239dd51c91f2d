// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/hash_model.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/fabric/hash_impl.h"

#define QP_BITS 24
/* In an input they stand where the last ports of entry would. */
#define ENTRIES (FT_HASH_ENTRIES_MAX - QP_BITS)
/* As when the daemon holds a model out (daemon/hashes/hashes.c). */
#define HELD_OUT_ONE_IN 4
#define PREDICTED_LEAST 16
#define RIGHT_LEAST     0.99

/* Adds a number to those that are no sum of each other. */
static uint32_t add_number(uint32_t rows[QP_BITS], uint32_t number)
{
    for (uint32_t bit = 0; bit < QP_BITS && number; bit++) {
        if (!(number >> bit & 1))
            continue;
        if (!rows[bit]) {
            rows[bit] = number;
            return 1;
        }
        number ^= rows[bit];
    }
    return 0;
}

/* Each row has the queue pairs' numbers of the flows that it is the sum of, added likewise. */
int ft_hash_qps(const struct ft_hash_flow *flows, size_t count, struct ft_hash_qps *out)
{
    struct ft_hash_row *rows = calloc(FT_HASH_BITS, sizeof(*rows));
    uint32_t numbers[FT_HASH_BITS], apart[QP_BITS] = {0};
    const struct ft_hash_flow *first = NULL;
    struct ft_hash_basis b;

    if (!rows)
        return -ENOMEM;
    *out = (struct ft_hash_qps){.known = 0};
    ft_hash_basis_begin(&b, rows);
    for (size_t i = 0; i < count; i++) {
        struct ft_hash_input d;
        uint32_t bit, number;

        if (!flows[i].qp)
            continue;
        out->known++;
        if (!first)
            first = &flows[i];
        d = ft_hash_difference(&flows[i].in, &first->in);
        number = (flows[i].qp ^ first->qp) & ((1u << QP_BITS) - 1);
        bit = ft_hash_first_bit(&d);
        while (bit < FT_HASH_BITS && b.at[bit] >= 0) {
            number ^= numbers[b.at[bit]];
            ft_hash_add(&d, &rows[b.at[bit]].in);
            bit = ft_hash_first_bit(&d);
        }
        if (bit == FT_HASH_BITS) {
            out->apart += add_number(apart, number);
        } else {
            numbers[b.count] = number;
            ft_hash_insert(&b, &d, bit, 0);
        }
    }
    free(rows);
    return 0;
}

static bool with_qp(struct ft_hash_flow *out, const struct ft_hash_flow *flow)
{
    uint32_t entry = ft_hash_entry(&flow->in);

    if (!flow->qp || (entry >= ENTRIES && entry < FT_HASH_ENTRIES_MAX))
        return false;
    *out = *flow;
    out->in.word[FT_HASH_WORDS - 1] |= (uint64_t)(flow->qp & ((1u << QP_BITS) - 1))
                                       << (64 - QP_BITS);
    return true;
}

int ft_hash_takes_qp(const struct ft_hash_flow *flows, size_t count, uint32_t members, bool *takes)
{
    struct ft_hash_flow *part = calloc(count + 1, sizeof(*part)), held;
    struct ft_hash_model model;
    uint32_t predicted = 0, right = 0;
    size_t n = 0;
    int rc = part ? 0 : -ENOMEM;

    for (size_t i = 0; !rc && i < count; i++)
        if (i % HELD_OUT_ONE_IN)
            n += with_qp(&part[n], &flows[i]);
    rc = rc ? rc : ft_hash_learn(&model, part, n, members);
    if (!rc) {
        for (size_t i = 0; i < count; i += HELD_OUT_ONE_IN) {
            uint32_t member =
                with_qp(&held, &flows[i]) ? ft_hash_predict(&model, &held.in) : FT_HASH_MEMBERS_MAX;

            predicted += member != FT_HASH_MEMBERS_MAX;
            right += member != FT_HASH_MEMBERS_MAX && member == held.member;
        }
        *takes = predicted >= PREDICTED_LEAST && right >= RIGHT_LEAST * predicted;
        ft_hash_model_free(&model);
    }
    free(part);
    return rc;
}

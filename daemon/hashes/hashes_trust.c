// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>

#include "daemon/hashes/hashes_impl.h"

/* A model is linear when so many held-out flows were predicted, and so many of them rightly. */
#define PREDICTED_LEAST 16
#define RIGHT_LEAST     0.99
/* Flows are predicted by a model that was right for RIGHT_LEAST of so many, and of whose newest 64
 * no more than so many contradicted it. */
#define TRUSTED_LEAST   64
#define WRONG_OF_NEWEST 1
/* A resilient table has 64 buckets or more. Where one of 64 was dealt anew, so many flows meet it
 * but for one chance in a thousand, and the link is predicted no more. */
#define AGREED_LEAST 448
/* That destination queue pairs are not hashed has to be so certain, in powers of two, where so many
 * flows' are known. */
#define QP_PROOF_BITS  12
#define QP_KNOWN_LEAST 16
/* So many flows that are new make it worth learning anew; later a quarter of those there are. */
#define NEW_LEAST 16

uint32_t ft_hash_set_due_in(const struct ft_hash_set *s)
{
    uint32_t enough = s->learnt_count / 4 > NEW_LEAST ? s->learnt_count / 4 : NEW_LEAST;

    return s->fresh < enough ? enough - s->fresh : 0;
}

static bool is_right(const struct ft_hash_set *s)
{
    return s->right >= RIGHT_LEAST * s->predicted;
}

static bool is_proven(const struct ft_hash_set *s)
{
    return s->predicted >= PREDICTED_LEAST && is_right(s);
}

bool ft_hash_set_may_take_qp(const struct ft_hash_set *s)
{
    double bits = s->model.index_bits ? ft_hash_chance_bits(&s->model, s->member_count) : 1;

    return s->qps.known >= QP_KNOWN_LEAST && s->qps.apart * bits < QP_PROOF_BITS;
}

bool ft_hash_set_is_trusted(const struct ft_hash_set *s)
{
    return s->model.kind == FT_HASH_LINEAR && is_proven(s) && s->predicted >= TRUSTED_LEAST &&
           s->agreed >= AGREED_LEAST && !ft_hash_set_may_take_qp(s) &&
           __builtin_popcountll(s->newest_wrong) <= WRONG_OF_NEWEST;
}

bool ft_hash_set_is_sure(const struct ft_hash_set *s, uint32_t member)
{
    return ft_hash_set_is_trusted(s) && s->doubts[member] == 0;
}

enum ft_hash_kind ft_hash_set_kind(const struct ft_hash_set *s)
{
    if (s->model.kind == FT_HASH_LINEAR && !is_proven(s))
        return FT_HASH_UNKNOWN;
    return s->model.kind;
}

bool ft_hash_set_names_outer(const struct ft_hash_set *s, const struct ft_hash_set *outer)
{
    return ft_hash_set_kind(outer) == FT_HASH_LINEAR &&
           (ft_hash_set_kind(s) != FT_HASH_LINEAR ||
            (ft_hash_set_is_trusted(outer) && !ft_hash_set_is_trusted(s)));
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* How many more than there are it takes. */
static uint32_t beyond(double enough, double there)
{
    return there < enough ? (uint32_t)ceil(enough - there) : 0;
}

/* So many were missing when it was learnt; where as many came since, it has to be learnt anew. */
static uint32_t still(const struct ft_hash_set *s, uint32_t missing)
{
    return missing > s->fresh ? missing - s->fresh : ft_hash_set_due_in(s);
}

static struct ft_hash_why short_of(const struct ft_hash_set *s)
{
    const struct ft_hash_model *m = &s->model;

    if (m->short_of == FT_HASH_SHORT_OF_VALUES)
        return (struct ft_hash_why){FT_HASH_WHY_FEW_VALUES, m->short_least, m->short_fields};
    return (struct ft_hash_why){FT_HASH_WHY_FEW_FLOWS, still(s, m->short_least), 0};
}

/* When it is learnt anew, what is held out is predicted anew, and more of it may be. */
static struct ft_hash_why few_predicted(const struct ft_hash_set *s, uint32_t enough)
{
    return (struct ft_hash_why){FT_HASH_WHY_FEW_PREDICTED,
                                lesser(beyond(enough, s->predicted), ft_hash_set_due_in(s)), 0};
}

/* Then all that are kept may agree with it, too. */
static struct ft_hash_why few_agree(const struct ft_hash_set *s)
{
    uint32_t kept = beyond(AGREED_LEAST, s->flow_count), due = ft_hash_set_due_in(s);

    return (struct ft_hash_why){
        FT_HASH_WHY_FEW_AGREE, lesser(beyond(AGREED_LEAST, s->agreed), kept > due ? kept : due), 0};
}

/* Each flow shows one thing more at most, and as many bits of its link as distinguish the links. */
static struct ft_hash_why queue_pairs(const struct ft_hash_set *s)
{
    double enough = ceil(QP_PROOF_BITS / ceil(log2(s->member_count)));

    return (struct ft_hash_why){FT_HASH_WHY_QUEUE_PAIRS, still(s, beyond(enough, s->qps.apart)), 0};
}

struct ft_hash_why ft_hash_set_why(const struct ft_hash_set *s)
{
    const struct ft_hash_why none = {.reason = FT_HASH_WHY_NONE};

    if (s->model.kind == FT_HASH_TABLE)
        return none;
    if (s->model.kind == FT_HASH_UNKNOWN)
        return short_of(s);
    if (s->predicted < PREDICTED_LEAST)
        return few_predicted(s, PREDICTED_LEAST);
    if (!is_right(s))
        return (struct ft_hash_why){.reason = FT_HASH_WHY_WRONG};
    if (s->predicted < TRUSTED_LEAST)
        return few_predicted(s, TRUSTED_LEAST);
    if (s->agreed < AGREED_LEAST)
        return few_agree(s);
    if (ft_hash_set_may_take_qp(s))
        return queue_pairs(s);
    if (__builtin_popcountll(s->newest_wrong) > WRONG_OF_NEWEST)
        return (struct ft_hash_why){.reason = FT_HASH_WHY_CONTRADICTED};
    return none;
}

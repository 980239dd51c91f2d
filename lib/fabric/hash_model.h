// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_HASH_MODEL_H
#define FT_FABRIC_HASH_MODEL_H
/*
 * Learns how a switch chooses among the links of an equal-cost group, from flows whose link is
 * known.
 *
 * Most switches hash the header by a CRC or by XOR, and use some bits of the result as the index of
 * the link. Such a choice is affine over GF(2) in the header's bits: flows that take the same link
 * differ by a vector of one linear subspace (the kernel), whatever the seed and in whatever order
 * the switch lists its links. So the kernel is spanned by the differences of flows on the same
 * link, and each of its cosets is one link; nothing has to be known of the polynomial. A keyed
 * hash (Linux) or a modulo other than a power of two is not linear: its differences soon span
 * everything, which shows. (RePaC, USENIX ATC 2021, uses that linearity; the elimination here is
 * our own.)
 *
 * That shows only in flows whose hashed values are sums of others': a keyed hash of the addresses
 * alone fits any linear function between four hosts, however many source ports they use. So what
 * fits is linear only where no part of the header that may choose alone is without such a proof,
 * and a flow is predicted only where each part of it was seen, or is of a kind that is proven.
 * Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"

/* Bits of what may be hashed: addresses, source port, and one bit for each port of entry. */
#define FT_HASH_BITS        512
#define FT_HASH_WORDS       (FT_HASH_BITS / 64)
#define FT_HASH_ENTRIES_MAX 240
/* More links than this are not learnt. */
#define FT_HASH_MEMBERS_MAX 128

struct ft_hash_input {
    uint64_t word[FT_HASH_WORDS];
};

enum ft_hash_field {
    FT_HASH_SRC,
    FT_HASH_DST,
    FT_HASH_SPORT,
    FT_HASH_ENTRY, /* the port by which the packet came in */
    FT_HASH_FIELDS,
};

/* What a switch may hash of a flow that comes in by the entry-th known port of that switch; an
 * entry of FT_HASH_ENTRIES_MAX and above counts as none. */
void ft_hash_input(struct ft_hash_input *in, const struct ft_tuple *tuple, uint32_t entry);

/* The entry of an input; FT_HASH_ENTRIES_MAX: none. */
uint32_t ft_hash_entry(const struct ft_hash_input *in);

/* A flow and the link that it took, 0 .. FT_HASH_MEMBERS_MAX - 1. */
struct ft_hash_flow {
    struct ft_hash_input in;
    uint32_t member;
    uint32_t qp; /* destination queue pair; 0: not known */
};

enum ft_hash_kind {
    FT_HASH_UNKNOWN, /* too few flows, or they contradict each other */
    FT_HASH_LINEAR,
    FT_HASH_TABLE, /* not linear: only flows that were seen are known */
};

/* Why flows leave it open whether a choice is linear. */
enum ft_hash_short {
    FT_HASH_SHORT_OF_NOTHING,
    FT_HASH_SHORT_OF_FLOWS,  /* any function that is linear, or nearly any, would fit so few */
    FT_HASH_SHORT_OF_VALUES, /* a part of the header has too few values */
};

struct ft_hash_row {
    struct ft_hash_input in;
    uint16_t bit; /* the first that is set in it; rows are in the order of these */
    uint8_t code; /* what it adds to the index of a flow */
};

/* Parts of a header by themselves: where from (address and port of entry), where to, the source
 * port, and any two of these. */
#define FT_HASH_PARTS     6
#define FT_HASH_PART_FROM 0
#define FT_HASH_PART_TO   1

struct ft_hash_model {
    enum ft_hash_kind kind;
    uint32_t index_bits; /* the flows' links are distinguished by so many bits, 7 at most: more than
                            as many links need where the port of entry leaves other links each */
    uint32_t row_count;
    struct ft_hash_input origin;
    struct ft_hash_row *rows;             /* in echelon form */
    uint32_t member[FT_HASH_MEMBERS_MAX]; /* by index; FT_HASH_MEMBERS_MAX: not seen */
    uint32_t unproven; /* a bit for each part: of others than were seen nothing is known */
    uint32_t *seen;    /* digests of the values of unproven parts, each part's in order */
    uint32_t seen_at[FT_HASH_PARTS + 1]; /* where a part's begin */
    /* Of an unknown one. At least so many more flows are needed, for each direction that they add
     * to those that are known adds one; or values of these fields together, a bit each: fewer only
     * where flows that differ in the others alone take different links. */
    enum ft_hash_short short_of;
    uint32_t short_least, short_fields;
};

/* Learns from flows, of which none is given twice, between `members` links. Up to one flow in fifty
 * may be on a link that is not its hash's (it moved meanwhile). -ENOMEM leaves the model empty. */
int ft_hash_learn(struct ft_hash_model *model, const struct ft_hash_flow *flows, size_t count,
                  uint32_t members);
/* The same, but of these parts, a bit each, flows are predicted for values alone that a flow had
 * that was learnt from, whatever is proven. */
int ft_hash_learn_seen(struct ft_hash_model *model, const struct ft_hash_flow *flows, size_t count,
                       uint32_t members, uint32_t seen_parts);
void ft_hash_model_free(struct ft_hash_model *model);

/* The link of a flow by a linear model; FT_HASH_MEMBERS_MAX where the flows that it was learnt from
 * do not determine it, or do not prove it. */
uint32_t ft_hash_predict(const struct ft_hash_model *model, const struct ft_hash_input *in);

/* Whether each unproven part of a flow has a value that a flow had that was learnt from. */
bool ft_hash_is_seen(const struct ft_hash_model *model, const struct ft_hash_input *in);

/* Bits of a flow's link that another choice has as the model says by chance only: those of its
 * index, which may be more than distinguish the links, or as many as do that. */
double ft_hash_chance_bits(const struct ft_hash_model *model, uint32_t members);

/* The fields of a part, a bit each. */
uint32_t ft_hash_part_fields(uint32_t part);

/* Whether flows that differ in that field alone certainly take different links. */
int ft_hash_uses(const struct ft_hash_model *model, enum ft_hash_field field, bool *uses);

/* Whether no flow like those seen can take that link, by a linear model. */
bool ft_hash_never_chooses(const struct ft_hash_model *model, uint32_t member);

/* Of flows whose destination queue pair is known. A switch may hash that, too: where it follows
 * from the header in all flows that were seen, a model of the header alone is right for these and
 * wrong for others. In `apart` directions it does not: were it hashed, a model that says all these
 * flows rightly would have one chance in the links to the power of that. */
struct ft_hash_qps {
    uint32_t known; /* flows */
    uint32_t apart;
};
int ft_hash_qps(const struct ft_hash_flow *flows, size_t count, struct ft_hash_qps *out);

/* Whether a choice that is not linear in the header is so with the destination queue pair. */
int ft_hash_takes_qp(const struct ft_hash_flow *flows, size_t count, uint32_t members, bool *takes);

/* "linear"; "sport" */
const char *ft_hash_field_name(enum ft_hash_field field);

#endif

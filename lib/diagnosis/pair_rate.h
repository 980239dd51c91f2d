// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_PAIR_RATE_H
#define FT_DIAGNOSIS_PAIR_RATE_H
/*
 * Which pairs of a job have become slow, by the samples of their flows alone: no operation, no rank
 * and no byte count of a host is known.
 *
 * Of two samples in one bin of time, the more a pair sends at a time, the more there are: the sum
 * of the products of their bytes gives the rate while it sends, and the time in which it does,
 * without bias at random sampling, and says how far both are by chance. A pair is slow whose rate
 * is less than its own usual one, and whose time is longer by as much beside that of its siblings.
 * One that has more or less to send, or whose packets fewer switches sample, has one of both alone.
 *
 * Who is to blame is for blame.h: a sender, a receiver, a pair, or a link. Pairs that pass on what
 * slow ones bring are slow with them, as in a ring: of pairs in a chain none is named, nor where
 * one in the chain could not be judged. Where the middle of all pairs has changed, the job does
 * other work, or all wait for each other: nothing is judged. Where a link or an end gives all that
 * cross it as much, who is limited by it sends no less than anyone there: a pair acquits only what
 * a slow one with no higher rate suffers from. Pure. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/blame.h"

struct ft_task;

#define FT_PAIR_RATE_BIN_MS 500
#define FT_PAIR_RATE_BINS   128
#define FT_PAIR_RATE_SPANS  12

enum ft_pair_rate_state {
    FT_PAIR_RATE_UNKNOWN, /* too few samples, or nothing is known of its past */
    FT_PAIR_RATE_EVEN,
    FT_PAIR_RATE_UNDECIDED,
    FT_PAIR_RATE_SLOW,
};

/* A pair; zero is new. */
struct ft_pair_rate {
    /* By the number of the bin; those before the first are done. */
    float bytes[FT_PAIR_RATE_BINS], squares[FT_PAIR_RATE_BINS];
    uint16_t counts[FT_PAIR_RATE_BINS]; /* samples that are not folded yet */
    int64_t first_bin;
    /* Of the newest spans, a ring; and of those that are to be judged. */
    float sums[FT_PAIR_RATE_SPANS], spans[FT_PAIR_RATE_SPANS];
    uint32_t taken[FT_PAIR_RATE_SPANS];
    uint32_t newest;
    double sum, products;
    uint64_t samples;
    /* Usual: logarithms of bytes a bin while it sends, and of the share of time in which it does;
     * and how far it was from that at most. */
    double usual_rate, usual_share, wobble;
    double away; /* how far it is from that, until it is even again */
    uint32_t known;
    /* Set by the caller. */
    uint32_t from, to, from_host, to_host;
    const uint32_t *links; /* that its traffic crosses; borrowed */
    uint32_t link_count;   /* 0: not known */
    /* Of the first 32, a bit each: those that only a part of its traffic crosses; and ports to its
     * receiver. */
    uint32_t partly, last;
    /* As last judged. */
    enum ft_pair_rate_state state;
    double rate, share, noise;
    double off, middle; /* logarithms, how much slower: the less of both, and between them */
};

/* Samples between two moments, of that many bytes together. */
void ft_pair_rate_take(struct ft_pair_rate *p, int64_t first_ms, int64_t last_ms, uint64_t samples,
                       double bytes);

/* Nothing before this moment comes any more: it is of the newest span, or begins a new one. */
void ft_pair_rate_fold(struct ft_pair_rate *p, int64_t end_ms, bool begins);

/* So many spans are to be judged, up to FT_PAIR_RATE_SPANS. */
void ft_pair_rate_choose(struct ft_pair_rate *p, uint32_t spans);

/* Whether the samples in these are enough. */
bool ft_pair_rate_suffices(const struct ft_pair_rate *p);

enum ft_pair_rate_outcome {
    FT_PAIR_RATE_NOT_JUDGED, /* too few pairs, or none has a past yet */
    FT_PAIR_RATE_OTHER_WORK, /* the middle of the pairs has changed */
    FT_PAIR_RATE_JUDGED,
};

/* Judges what was chosen, so many bins, and learns what is usual of pairs that are even, which no
 * span is to be used for twice. A pair that sends in less than this share of the
 * time is not to be judged. Cells of the blames are numbers of pairs. To be freed by
 * ft_blames_free() where it was judged. The task, which may be NULL, pauses: what is taken
 * meanwhile changes nothing, but nothing may be folded. -ENOMEM. */
int ft_pair_rate_judge(struct ft_pair_rate *const *pairs, size_t count, uint32_t ends, double bins,
                       double least_share, bool learns, enum ft_pair_rate_outcome *outcome,
                       struct ft_blames *out, struct ft_task *task);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_BLAME_H
#define FT_DIAGNOSIS_BLAME_H
/*
 * What makes pairs slow, by the matrix of delay per byte, sender by receiver: a sender, a receiver,
 * a pair, or a link under several pairs.
 *
 * Median polish takes the matrix apart (polish.h): a row above the bar is a sender, a column a
 * receiver, a residual a pair. The bar is the caller's least and four median absolute deviations of
 * the residuals. A slow end makes all of its pairs slow: pairs that are not acquit it, whatever the
 * medians say. Before that, a link that all slow pairs of several senders and receivers have in
 * common is what they suffer from. Where a pair has no like in its row or column, as in a ring,
 * links decide as far as they can: a pair that is not slow acquits every link that all of its
 * traffic crosses, and its own ends. What is not acquitted stays possible. Pure. Owner: the caller.
 * Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/diagnosis.h"

#define FT_BLAME_NONE UINT32_MAX

struct ft_task;

/* A pair that was measured. */
struct ft_blame_cell {
    double value;          /* logarithm of its delay per byte, over what is usual for its like */
    uint32_t from, to;     /* ends, numbered from 0 */
    const uint32_t *links; /* that its traffic crosses, any numbers; borrowed */
    uint32_t link_count;   /* 0: not known */
    /* Of the first 32 of them, a bit each: what only a part of its traffic crosses, none of which
     * it acquits; and ports to its receiver. */
    uint32_t partly, last;
    bool before; /* measured before others became slow: it acquits no link */
};

struct ft_blame {
    enum ft_side side;   /* SENDER: from; RECEIVER: to; PAIR: between; ANY: not known which */
    uint32_t from, to;   /* of the worst pair */
    uint32_t link;       /* the one link that can be the cause; NONE: several, or an end */
    uint32_t cell;       /* that pair's */
    uint32_t slow;       /* pairs that it explains */
    uint32_t all;        /* pairs of that end, or over that link */
    uint32_t links_open; /* of that pair: links that no other pair acquits */
    uint32_t open;       /* which of its first 32 links these are, a bit each */
    bool sender_clean, receiver_clean; /* acquitted by another pair of theirs */
    /* Of a single pair: all slow pairs of that end, several, have a possible link in common. */
    bool sender_or_link, receiver_or_link;
    double ratio; /* of the pairs that it explains, the middle */
};

struct ft_blames {
    struct ft_blame *items;
    size_t count;
    double bar; /* logarithm above which a pair counted as slow */
    /* Ends that pairs of theirs acquit: of end i [2 * i] as a sender, [2 * i + 1] as a receiver. */
    bool *acquitted;
    bool *slow; /* of each pair: above the bar */
};

/* least: the least logarithm that counts as slow. usual: what the centre of the matrix was before,
 * NAN where that is not known. Where most pairs are slow against that, or nothing decides among
 * many, none is blamed but rows and columns. The worst first. -ENOMEM. */
int ft_blame_find(const struct ft_blame_cell *cells, size_t count, uint32_t ends, double least,
                  double usual, struct ft_blames *out, struct ft_task *task);
void ft_blames_free(struct ft_blames *blames);

#endif

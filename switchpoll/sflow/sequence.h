// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_SEQUENCE_H
#define FT_SWITCHPOLL_SFLOW_SEQUENCE_H
/*
 * One stream of sFlow sequence numbers (sFlow v5 section 5, "sequence_number"): what is missing of
 * the last 64 numbers, so that a number that comes late takes back the gap it was counted as.
 * Numbers wrap at 2^32. Plain values; owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

/* A jump ahead by this many is another stream, not a gap. */
#define FT_SEQUENCE_JUMP_MAX (1u << 20)
#define FT_SEQUENCE_WINDOW   64

struct ft_sequence {
    uint32_t last;    /* the highest */
    uint32_t span;    /* numbers since the first, saturates at FT_SEQUENCE_WINDOW */
    uint64_t missing; /* bit i: last - i was skipped */
    /* Before the last jump, while nothing has followed it: one stray number must not stay counted
     * as all that it skipped. */
    uint32_t before_last, before_span;
    uint64_t before_missing;
    uint32_t jumped; /* what it added to the gap */
    bool outlying;
};

enum ft_sequence_step {
    FT_SEQUENCE_AHEAD, /* the first, the next one, or one after a gap */
    FT_SEQUENCE_LATE,  /* was counted as missing */
    FT_SEQUENCE_SEEN,  /* was here before */
    FT_SEQUENCE_EARLY, /* just before the first one seen */
    FT_SEQUENCE_FAR,   /* too far ahead or back to belong here */
    FT_SEQUENCE_BACK,  /* continues where the stream was before the last jump, which was an outlier
                        */
};

/* Where a number stands; changes nothing. */
enum ft_sequence_step ft_sequence_look(const struct ft_sequence *s, uint32_t number);

/* Takes a number that is AHEAD, LATE or BACK; others change nothing. Returns what it adds to the
 * gap: the numbers skipped, -1 for a late one, or what a stray one had added, taken back. */
int64_t ft_sequence_take(struct ft_sequence *s, uint32_t number);

/* Takes a number that is the very next one, as nearly all are. False leaves all as it was. */
static inline bool ft_sequence_next(struct ft_sequence *s, uint32_t number)
{
    if (s->span == 0 || number - s->last != 1)
        return false;
    s->missing <<= 1;
    s->last = number;
    s->span += s->span < FT_SEQUENCE_WINDOW;
    s->outlying = false;
    return true;
}

/* Begins anew with a number; the stream before may still continue (BACK). */
void ft_sequence_restart(struct ft_sequence *s, uint32_t number);

#endif

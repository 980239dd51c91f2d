// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_BEFORE_H
#define FT_SWITCHPOLL_SFLOW_BEFORE_H
/*
 * The highest packet numbers that sums of earlier intervals ended with, so that a number that goes
 * back from one interval to the next is found as within one.
 *
 * A number counts for as long as those of its queue pair cannot have advanced by a quarter of all
 * numbers since, as fast as it sent, and for 5 s at most: longer than a sender waits for an
 * acknowledgement by NCCL's default (4.3 s), shorter than a queue pair takes to have its number
 * again. Sums are known by 64 bits of a hash; a slot holds four, and one more displaces the
 * oldest: of what is forgotten nothing is said. It grows with the sums. Owner: the caller.
 * Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"

struct ft_before;

/* Of at most `max` sums, at least 4. NULL without memory. */
struct ft_before *ft_before_new(uint64_t max);
void ft_before_free(struct ft_before *b);

/* How a sum ended. */
struct ft_before_sum {
    uint32_t qp;      /* destination; 24 bits */
    uint32_t highest; /* number; 24 bits */
    uint8_t kind;     /* whose the numbers are: of enum ft_psn_kind */
    struct ft_wall last;
    uint64_t packets; /* that its samples stand for, */
    uint32_t samples; /* and their count, */
    uint32_t interval_ms;
};

/* Before many sums are noted: room for them, as far as there may be. */
void ft_before_expect(struct ft_before *b, size_t sums);

/* Numbers that are further ahead may be lower again: a quarter of 2^24. */
#define FT_BEFORE_AHEAD_MAX (1u << 22)
/* Of a sum of n samples, so many more may have been as likely as not to be seen in its time. */
#define FT_BEFORE_MORE    8
#define FT_BEFORE_HOLD_MS 5000
#define FT_BEFORE_STEP_MS 20 /* of the time that a number counts for */
#define FT_BEFORE_STEPS   (FT_BEFORE_HOLD_MS / FT_BEFORE_STEP_MS)
#define FT_BEFORE_LOW_24  0xffffffu

/* In steps, for how long no more than FT_BEFORE_AHEAD_MAX packets can have followed. */
static inline uint32_t ft_before_steps(const struct ft_before_sum *sum)
{
    double packets = (double)(int64_t)sum->packets * ((double)sum->samples + FT_BEFORE_MORE);
    double steps =
        (double)FT_BEFORE_AHEAD_MAX / FT_BEFORE_STEP_MS * sum->interval_ms * sum->samples / packets;

    return steps < FT_BEFORE_STEPS ? (uint32_t)steps : FT_BEFORE_STEPS;
}

/* Words, each of 24 bits and 8 above. Of ft_before_note(). */
void ft_before_put(struct ft_before *b, uint64_t hash, uint32_t highest_kind, uint32_t qp_steps,
                   uint32_t at_ms);

/* Here, since every sum is noted: it is packed where it is at hand. */
static inline void ft_before_note(struct ft_before *b, uint64_t hash,
                                  const struct ft_before_sum *sum)
{
    if (sum->samples == 0 || sum->packets == 0 || sum->kind == 0)
        return;
    ft_before_put(b, hash, (sum->highest & FT_BEFORE_LOW_24) | (uint32_t)sum->kind << 24,
                  (sum->qp & FT_BEFORE_LOW_24) | ft_before_steps(sum) << 24,
                  (uint32_t)sum->last.ms);
}

/* Asks for the slot of a sum, so that the wait for memory overlaps with others. */
void ft_before_hint(const struct ft_before *b, uint64_t hash);

/* The highest number that a sum of the same key, queue pair and kind had; false: it is not known,
 * or of too long ago. */
bool ft_before_find(const struct ft_before *b, uint64_t hash, uint32_t qp, uint8_t kind,
                    struct ft_wall now, uint32_t *highest);

size_t ft_before_bytes(const struct ft_before *b);

#endif

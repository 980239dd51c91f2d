// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_HOLDS_H
#define FT_FABRIC_HOLDS_H
/*
 * How unevenly those who sample hold their samples back, learnt from packet numbers.
 *
 * What arrived by a moment reaches up to a packet that was sent somewhat before it: by how much is
 * the lag at that moment. A lag that is always the same moves both ends of a window alike; one that
 * differs makes what came in a window stand for more or less than a window. The packets of a steady
 * flow say how much it differs: of three moments, an interval apart, the middle one lies half way
 * in numbers, but for the lags. Of each moment the median of several flows is kept, for what they
 * have in common, and their median size, for what each has by itself; and of the last moments the
 * median of either, which flows that stop and go now and then do not change. The larger counts.
 * Where all flows of a source change their rate all the time it is too large, and never too small.
 * Owner: the caller. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

struct ft_holds;

/* At most so many sources; others have the lag of one of which nothing is known. NULL without
 * memory. */
struct ft_holds *ft_holds_new(size_t max, uint64_t seed);
void ft_holds_free(struct ft_holds *holds);

/* What a flow says of a moment. */
struct ft_hold {
    float off_ms;     /* how far its number was from half way */
    float gap_ms;     /* its samples were that far apart, in the mean */
    float between_ms; /* the last before the moment and the first after it; below 0: overtaken */
};

/* moment: any unit, alike for all of a source. */
void ft_holds_note(struct ft_holds *holds, uint32_t source, uint32_t moment,
                   const struct ft_hold *lag);

/* How much longer the span of an interval is than its samples' gaps of this length say: where a
 * source sends each sample when it likes, some of the next interval were sent before the last of
 * those of this one. 0: not known, or none are. */
double ft_holds_overlap_ms(struct ft_holds *holds, uint32_t source, double gap_ms);

/* [0 to 1] whether its samples overtake each other: 0 never, 1 often. */
double ft_holds_overtaken(struct ft_holds *holds, uint32_t source);

/* By how much the variance of an end of a flow's span, gap_ms squared where its samples keep their
 * order, is larger as they overtake each other; and its third moment, which is twice the cube. */
double ft_holds_apart_ms2(struct ft_holds *holds, uint32_t source, double gap_ms,
                          double *third_ms3);

/* Standard deviation of a source's lag, never too small for how little is known of it. holds may be
 * NULL. */
double ft_holds_ms(struct ft_holds *holds, uint32_t source);

/* The same; 0: nothing is known. */
double ft_holds_known_ms(struct ft_holds *holds, uint32_t source);

/* Uniform over a second, in which a sample has to be sent (sFlow v5). */
#define FT_HOLD_UNKNOWN_MS 290.0
/* Uniform over 50 ms, which is hard to see between samples: clocks, queues, times in ms. Where
 * samples are so close that it would show, less. */
#define FT_HOLD_LEAST_MS 15.0
/* The least there is: exporters send samples in batches, with times in milliseconds. */
#define FT_HOLD_SEEN_MS 4.0

#endif

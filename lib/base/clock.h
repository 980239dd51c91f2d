// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_CLOCK_H
#define FT_BASE_CLOCK_H
/*
 * The two clocks, as two types that do not mix.
 *
 * Monotonic time measures spans and drives timers; wall time (Unix, UTC) names moments in records.
 * Only the outermost code asks for the time; everything below is handed a `now`, so that a test or
 * a replay runs in virtual time.
 */
#include <stdint.h>

struct ft_mono {
    int64_t ns;
};

struct ft_wall {
    int64_t ms;
};

struct ft_mono ft_mono_now(void);
struct ft_wall ft_wall_now(void);

static inline int64_t ft_mono_since_ns(struct ft_mono now, struct ft_mono then)
{
    return now.ns - then.ns;
}

#endif

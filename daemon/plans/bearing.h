// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PLANS_BEARING_H
#define FT_DAEMON_PLANS_BEARING_H
/*
 * Whether samples bear out the path that a plan predicts of a queue pair with its port. Pure.
 * Thread: one.
 */
#include <stdint.h>

#include "daemon/join/join.h"
#include "proto/fabrictrace.pb-c.h"

enum ft_bearing {
    FT_BEARING_NONE,    /* no samples since, or no prediction */
    FT_BEARING_UNKNOWN, /* samples, which leave several paths */
    FT_BEARING_SAME,
    FT_BEARING_OTHER,
};

/* The newest sample of a flow; INT64_MIN: there is none. */
int64_t ft_bearing_sampled_ms(const struct ft_flow *flow);

/* What samples after a moment say of the path of a flow. */
enum ft_bearing ft_bearing_judge(const struct ft_join *join, const struct ft_flow *flow,
                                 int64_t after_ms, Fabrictrace__Hop *const *predicted,
                                 size_t count);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_ARGS_MOMENT_H
#define FT_CLI_ARGS_MOMENT_H
/*
 * A moment as a person writes it. Pure but for the time zone (TZ).
 */
#include "lib/base/clock.h"

/* "10:41" or "10:41:20" (the last such time of day before now), "2026-11-20 10:41:20" with a blank
 * or a T between and a Z behind for UTC, "-90s", "-5m", "-1h" before now, also without the '-',
 * "@1700000000" seconds of Unix time. -EINVAL for anything else, and for a time that is not over
 * yet. */
int ft_moment_parse(const char *text, struct ft_wall now, struct ft_wall *moment);

#endif

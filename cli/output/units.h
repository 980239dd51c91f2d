// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_OUTPUT_UNITS_H
#define FT_CLI_OUTPUT_UNITS_H
/*
 * Numbers as a person reads them. Every function writes a terminated text and returns it.
 */
#include <stdint.h>

#include "lib/base/clock.h"

#define FT_UNIT_BYTES 32

/* "24.1 Gb/s"; powers of 1000. */
char *ft_unit_rate(char text[FT_UNIT_BYTES], double bps);

/* The number alone in the unit that `like_bps` gets: "22.0" beside "24.1 Gb/s". */
char *ft_unit_rate_like(char text[FT_UNIT_BYTES], double bps, double like_bps);

/* "1.2 GB"; powers of 1000. */
char *ft_unit_size(char text[FT_UNIT_BYTES], double bytes);

/* "41 %" of a ratio; one decimal below 10 %. */
char *ft_unit_percent(char text[FT_UNIT_BYTES], double ratio);

/* A probability: "0.97", "0.031", "2e-5", "<1e-6". */
char *ft_unit_p(char text[FT_UNIT_BYTES], double p);

/* A time that something takes, to three digits: "12.5 us", "1.25 ms", "3.10 s", "640 s". */
char *ft_unit_duration(char text[FT_UNIT_BYTES], double ns);

/* Local time of day, "10:41:20"; with the date before it when that is not the day of now. */
char *ft_unit_time(char text[FT_UNIT_BYTES], uint64_t unix_ms, struct ft_wall now);

#endif

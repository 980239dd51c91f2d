// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/output/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char prefixes[] = " kMGTPE";

/* Steps of 1000 down to what prints below 1000.0. */
static unsigned steps(double v)
{
    unsigned i = 0;

    while (v >= 999.95 && i + 2 < sizeof(prefixes)) {
        v /= 1000;
        i++;
    }
    return i;
}

static char *scaled(char text[FT_UNIT_BYTES], double v, unsigned i, const char *unit)
{
    const char prefix[2] = {i ? prefixes[i] : 0, 0};

    snprintf(text, FT_UNIT_BYTES, "%.*f %s%s", i ? 1 : 0, v / pow(1000, i), prefix, unit);
    return text;
}

char *ft_unit_rate(char text[FT_UNIT_BYTES], double bps)
{
    return scaled(text, bps, steps(bps), "b/s");
}

char *ft_unit_rate_like(char text[FT_UNIT_BYTES], double bps, double like_bps)
{
    unsigned i = steps(like_bps);

    snprintf(text, FT_UNIT_BYTES, "%.*f", i ? 1 : 0, bps / pow(1000, i));
    return text;
}

char *ft_unit_size(char text[FT_UNIT_BYTES], double bytes)
{
    return scaled(text, bytes, steps(bytes), "B");
}

char *ft_unit_percent(char text[FT_UNIT_BYTES], double ratio)
{
    double percent = 100 * ratio;

    snprintf(text, FT_UNIT_BYTES, "%.*f %%", percent >= 9.95 || percent == 0 ? 0 : 1, percent);
    return text;
}

char *ft_unit_p(char text[FT_UNIT_BYTES], double p)
{
    char *zero;

    if (p < 1e-6) {
        strcpy(text, "<1e-6");
    } else if (p < 0.1) {
        snprintf(text, FT_UNIT_BYTES, "%.2g", p);
        zero = strstr(text, "e-0");
        if (zero)
            memmove(zero + 2, zero + 3, strlen(zero + 3) + 1);
    } else {
        snprintf(text, FT_UNIT_BYTES, "%.2f", p);
    }
    return text;
}

char *ft_unit_duration(char text[FT_UNIT_BYTES], double ns)
{
    /* What would round to 1000 of a unit is one of the next. */
    if (ns < 999.5e3)
        snprintf(text, FT_UNIT_BYTES, "%.3g us", ns / 1e3);
    else if (ns < 999.5e6)
        snprintf(text, FT_UNIT_BYTES, "%.3g ms", ns / 1e6);
    else
        snprintf(text, FT_UNIT_BYTES, "%.*f s", ns < 99.95e9 ? ns < 9.995e9 ? 2 : 1 : 0, ns / 1e9);
    return text;
}

char *ft_unit_time(char text[FT_UNIT_BYTES], uint64_t unix_ms, struct ft_wall now)
{
    time_t then = (time_t)(unix_ms / 1000), today = (time_t)(now.ms / 1000);
    struct tm a, b;

    if (!localtime_r(&then, &a) || !localtime_r(&today, &b)) {
        snprintf(text, FT_UNIT_BYTES, "?");
        return text;
    }
    strftime(text, FT_UNIT_BYTES,
             a.tm_year == b.tm_year && a.tm_yday == b.tm_yday ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S",
             &a);
    return text;
}

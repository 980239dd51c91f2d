// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/clock.h"

#include <time.h>

struct ft_mono ft_mono_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (struct ft_mono){(int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec};
}

struct ft_wall ft_wall_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (struct ft_wall){(int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000};
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/pace.h"

#include <stddef.h>

#define NS_PER_MS  INT64_C(1000000)
#define BEHIND_NS  (1500 * NS_PER_MS)
#define BEHIND_MIN 1000
/* A longer interval helps once what waits is taken in; where it does not, the next one follows
 * before records come after their window. */
#define STEP_NS        (1000 * NS_PER_MS)
#define CALM_INTERVALS 3
#define PART_MAX       32
#define CALM_MIN_NS    (10000 * NS_PER_MS)

/* Each is a part of the daemon's windows of 10 s, and ends when they do. */
static const uint32_t levels_ms[] = {2000, 5000, 10000};

#define LEVELS (sizeof(levels_ms) / sizeof(levels_ms[0]))

void ft_pace_begin(struct ft_pace *pace, uint32_t base_ms, uint32_t most_ms, struct ft_mono now)
{
    *pace = (struct ft_pace){.base_ms = base_ms,
                             .most_ms = most_ms,
                             .interval_ms = base_ms,
                             .part = 1,
                             .changed_at = now,
                             .calm_since = now};
}

/* The interval after the present one; the same: there is none. */
static uint32_t longer(const struct ft_pace *pace)
{
    for (size_t i = 0; i < LEVELS; i++)
        if (levels_ms[i] > pace->interval_ms && levels_ms[i] <= pace->most_ms)
            return levels_ms[i];
    return pace->interval_ms;
}

static uint32_t shorter(const struct ft_pace *pace)
{
    for (size_t i = LEVELS; i-- > 0;)
        if (levels_ms[i] < pace->interval_ms && levels_ms[i] > pace->base_ms)
            return levels_ms[i];
    return pace->base_ms;
}

static bool change(struct ft_pace *pace, uint32_t interval_ms, struct ft_mono now)
{
    bool changed = interval_ms != pace->interval_ms;

    if (changed)
        pace->changed_at = pace->calm_since = now;
    pace->interval_ms = interval_ms;
    return changed;
}

static bool change_part(struct ft_pace *pace, uint32_t part, struct ft_mono now)
{
    if (part == pace->part || part > PART_MAX)
        return false;
    pace->changed_at = pace->calm_since = now;
    pace->part = part;
    return true;
}

/* Behind: a longer interval, and once the longest had its time, fewer flows in each. */
static bool yield(struct ft_pace *pace, struct ft_mono now)
{
    int64_t since_ns = ft_mono_since_ns(now, pace->changed_at);

    pace->calm_since = now;
    if (since_ns >= STEP_NS && change(pace, longer(pace), now))
        return true;
    return pace->interval_ms > pace->base_ms && since_ns >= pace->interval_ms * NS_PER_MS &&
           change_part(pace, 2 * pace->part, now);
}

bool ft_pace_step(struct ft_pace *pace, uint64_t waiting, int64_t waits_ns, bool crowded,
                  struct ft_mono now)
{
    uint32_t short_ms = pace->part > 1 ? pace->interval_ms : shorter(pace);
    int64_t short_ns = short_ms * NS_PER_MS, calm_ns;

    if (waiting < BEHIND_MIN)
        waits_ns = 0;
    if (waits_ns >= BEHIND_NS || crowded)
        return yield(pace, now);
    if (waits_ns >= (short_ns < BEHIND_NS ? short_ns : BEHIND_NS) / 2)
        pace->calm_since = now;
    calm_ns = CALM_INTERVALS * (int64_t)pace->interval_ms * NS_PER_MS;
    if (ft_mono_since_ns(now, pace->calm_since) < (calm_ns > CALM_MIN_NS ? calm_ns : CALM_MIN_NS))
        return false;
    return pace->part > 1 ? change_part(pace, pace->part / 2, now)
                          : change(pace, shorter(pace), now);
}

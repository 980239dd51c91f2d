// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/output/choice.h"

#include <stdlib.h>
#include <string.h>

static const char *const severities[] = {"info", "warning", "critical"};

#define SEVERITIES (sizeof(severities) / sizeof(severities[0]))

struct begun {
    uint64_t since_ms;
    size_t at;
};

static bool *marks(const struct ft_value *records)
{
    size_t count = ft_value_count(records);

    return calloc(count ? count : 1, sizeof(bool));
}

static size_t rank_of(const char *severity)
{
    size_t i = 0;

    while (severity && i < SEVERITIES && strcmp(severities[i], severity) != 0)
        i++;
    return severity ? i : 0;
}

bool *ft_choice_severity(const struct ft_value *records, const char *least)
{
    bool *keep = marks(records);

    for (size_t i = 0; keep && i < ft_value_count(records); i++)
        keep[i] = rank_of(ft_value_str(ft_value_at(records, i), "severity")) >= rank_of(least);
    return keep;
}

/* The newest first; of one moment, what the daemon has last. */
static int by_age(const void *left, const void *right)
{
    const struct begun *a = left, *b = right;

    if (a->since_ms != b->since_ms)
        return a->since_ms > b->since_ms ? -1 : 1;
    return a->at > b->at ? -1 : 1;
}

bool *ft_choice_newest(const struct ft_value *records, size_t limit)
{
    size_t count = ft_value_count(records);
    struct begun *begun = calloc(count ? count : 1, sizeof(*begun));
    bool *keep = begun ? marks(records) : NULL;

    for (size_t i = 0; keep && i < count; i++) {
        begun[i].at = i;
        ft_value_uint(ft_value_at(records, i), "since_ms", &begun[i].since_ms);
    }
    if (keep)
        qsort(begun, count, sizeof(*begun), by_age);
    for (size_t i = 0; keep && i < count && i < limit; i++)
        keep[begun[i].at] = true;
    free(begun);
    return keep;
}

bool *ft_choice_first(const struct ft_value *records, size_t limit)
{
    bool *keep = marks(records);

    for (size_t i = 0; keep && i < ft_value_count(records) && i < limit; i++)
        keep[i] = true;
    return keep;
}

bool *ft_choice_last(const struct ft_value *records, size_t limit)
{
    size_t count = ft_value_count(records);
    bool *keep = marks(records);

    for (size_t i = limit < count ? count - limit : 0; keep && i < count; i++)
        keep[i] = true;
    return keep;
}

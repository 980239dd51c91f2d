// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/group/progress.h"

#include <stdlib.h>

/* Windows of which parts have come, of those that are not published. */
#define OPEN_MAX 64

struct part {
    bool ours, ended;
    bool held;
    int64_t held_ms;
    int64_t next;                 /* to be read */
    int64_t at_seal, before_seal; /* next, when the last window was sealed and the one before */
    int64_t published_ms;
};

struct open_window {
    int64_t start_ms, offset; /* of its first part */
};

struct ft_group_progress {
    struct ft_group_progress_config config;
    struct part *parts;
    bool begun, behind;
    int64_t now_ms; /* while it is behind, and before it has begun */
    struct open_window open[OPEN_MAX];
    size_t open_count;
};

struct ft_group_progress *ft_group_progress_new(const struct ft_group_progress_config *config)
{
    struct ft_group_progress *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->config = *config;
    p->parts = calloc(config->partitions, sizeof(*p->parts));
    if (p->parts)
        return p;
    free(p);
    return NULL;
}

void ft_group_progress_free(struct ft_group_progress *p)
{
    if (!p)
        return;
    free(p->parts);
    free(p);
}

void ft_group_progress_gain(struct ft_group_progress *p, uint32_t partition, int64_t from,
                            int64_t published_ms)
{
    if (partition < p->config.partitions)
        p->parts[partition] = (struct part){.ours = true,
                                            .next = from,
                                            .at_seal = from,
                                            .before_seal = from,
                                            .published_ms = published_ms};
}

void ft_group_progress_lose(struct ft_group_progress *p, uint32_t partition)
{
    if (partition < p->config.partitions)
        p->parts[partition] = (struct part){.ours = false};
}

/* Nothing of a window is missing that began so long ago. */
static int64_t oldest(const struct ft_group_progress *p, int64_t now_ms)
{
    int64_t window_ms = p->config.window_ms;

    return (now_ms - p->config.back_ms) / window_ms * window_ms + 2 * window_ms;
}

int64_t ft_group_progress_begin(struct ft_group_progress *p, int64_t now_ms)
{
    int64_t first_ms = -1;

    if (p->begun)
        return -1;
    p->begun = true;
    for (uint32_t i = 0; i < p->config.partitions; i++) {
        const struct part *part = &p->parts[i];

        if (part->ours && part->published_ms >= 0 &&
            (first_ms < 0 || part->published_ms < first_ms))
            first_ms = part->published_ms;
    }
    if (first_ms >= 0 && first_ms < oldest(p, now_ms))
        first_ms = oldest(p, now_ms);
    p->behind = first_ms >= 0 && first_ms <= now_ms;
    p->now_ms = first_ms;
    return p->behind ? first_ms : -1;
}

bool ft_group_progress_holds(struct ft_group_progress *p, uint32_t partition, int64_t time_ms,
                             int64_t window_ms)
{
    struct part *part = partition < p->config.partitions ? &p->parts[partition] : NULL;

    if (!part || !p->behind || p->config.of_parts ||
        time_ms < window_ms + p->config.window_ms + p->config.grace_ms)
        return false;
    part->held = true;
    part->held_ms = time_ms;
    return true;
}

void ft_group_progress_read(struct ft_group_progress *p, uint32_t partition, int64_t offset)
{
    if (partition >= p->config.partitions)
        return;
    p->parts[partition].next = offset + 1;
    p->parts[partition].held = false;
}

void ft_group_progress_part(struct ft_group_progress *p, int64_t offset, int64_t window_ms)
{
    for (size_t i = 0; i < p->open_count; i++)
        if (p->open[i].start_ms == window_ms)
            return;
    if (p->open_count < OPEN_MAX)
        p->open[p->open_count++] = (struct open_window){window_ms, offset};
}

void ft_group_progress_end(struct ft_group_progress *p, uint32_t partition)
{
    if (partition < p->config.partitions)
        p->parts[partition].ended = true;
}

bool ft_group_progress_is_behind(const struct ft_group_progress *p)
{
    return p->behind;
}

int64_t ft_group_progress_now(struct ft_group_progress *p, int64_t now_ms)
{
    int64_t at_ms = now_ms;
    bool all_ended = true;

    if (!p->begun && p->now_ms == 0)
        p->now_ms = now_ms;
    if (!p->begun)
        return p->now_ms;
    if (!p->behind)
        return now_ms;
    for (uint32_t i = 0; i < p->config.partitions; i++) {
        const struct part *part = &p->parts[i];

        if (!part->ours || (part->ended && !part->held))
            continue;
        if (!part->held)
            return p->now_ms;
        all_ended = false;
        if (part->held_ms < at_ms)
            at_ms = part->held_ms;
    }
    if (at_ms > p->now_ms)
        p->now_ms = at_ms;
    p->behind = !all_ended;
    return p->now_ms;
}

void ft_group_progress_seal(struct ft_group_progress *p)
{
    for (uint32_t i = 0; i < p->config.partitions; i++) {
        p->parts[i].before_seal = p->parts[i].at_seal;
        p->parts[i].at_seal = p->parts[i].next;
    }
}

/* From the first part of a window that is open; without any, from the next message. */
static int64_t first_open(struct ft_group_progress *p, int64_t end_ms, int64_t next)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->open_count; i++) {
        if (p->open[i].start_ms < end_ms)
            continue;
        if (p->open[i].offset < next)
            next = p->open[i].offset;
        p->open[kept++] = p->open[i];
    }
    p->open_count = kept;
    return next;
}

size_t ft_group_progress_list(struct ft_group_progress *p, int64_t end_ms, const char *topic,
                              struct ft_kafka_position *list)
{
    size_t n = 0;

    for (uint32_t i = 0; i < p->config.partitions; i++) {
        struct part *part = &p->parts[i];
        int64_t from = part->before_seal;

        if (!part->ours || part->next < 0)
            continue;
        /* Partials are in one partition. */
        if (p->config.of_parts)
            from = i == 0 ? first_open(p, end_ms, part->next) : part->next;
        /* Who had it before may have published more. */
        if (part->published_ms < end_ms)
            part->published_ms = end_ms;
        list[n++] = (struct ft_kafka_position){topic, (int32_t)i, from, part->published_ms};
    }
    return n;
}

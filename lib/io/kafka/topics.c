// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/topics.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TOPICS_MAX 64
#define WAIT_NS    (INT64_C(60) * 1000000000)

struct topic {
    char *name;
    struct ft_mono since; /* when it was found missing */
    int32_t partitions;   /* that it has at least */
    bool missing;
};

struct ft_kafka_topics {
    struct topic list[TOPICS_MAX];
    size_t count,
        last; /* last: the one that was asked for before, since many of one topic follow */
};

struct ft_kafka_topics *ft_kafka_topics_new(void)
{
    return calloc(1, sizeof(struct ft_kafka_topics));
}

void ft_kafka_topics_free(struct ft_kafka_topics *t)
{
    for (size_t i = 0; t && i < t->count; i++)
        free(t->list[i].name);
    free(t);
}

static struct topic *find(struct ft_kafka_topics *t, const char *name)
{
    if (t->last < t->count && strcmp(t->list[t->last].name, name) == 0)
        return &t->list[t->last];
    for (t->last = 0; t->last < t->count; t->last++)
        if (strcmp(t->list[t->last].name, name) == 0)
            return &t->list[t->last];
    return NULL;
}

void ft_kafka_topics_seen(struct ft_kafka_topics *t, const char *name, int32_t partition)
{
    struct topic *topic = find(t, name);
    char *copy;

    if (!topic && t->count < TOPICS_MAX && (copy = strdup(name))) {
        topic = &t->list[t->count++];
        topic->name = copy;
    }
    if (!topic)
        return;
    topic->missing = false;
    if (partition >= topic->partitions)
        topic->partitions = partition + 1;
}

enum ft_kafka_missing ft_kafka_topics_missing(struct ft_kafka_topics *t, const char *name,
                                              int32_t partition, struct ft_mono now)
{
    struct topic *topic = find(t, name);

    if (!topic || partition >= topic->partitions)
        return FT_KAFKA_MISSING_LOST;
    if (!topic->missing) {
        topic->missing = true;
        topic->since = now;
        return FT_KAFKA_MISSING_BEGAN;
    }
    return ft_mono_since_ns(now, topic->since) < WAIT_NS ? FT_KAFKA_MISSING_WAITS
                                                         : FT_KAFKA_MISSING_LOST;
}

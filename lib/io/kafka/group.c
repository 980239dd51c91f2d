// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/group.h"

#ifdef HAVE_KAFKA
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "lib/base/clock.h"

#define ASK_MS    5000                       /* for each answer of the brokers */
#define PAUSE_MS  100                        /* before the same is asked again */
#define AGAIN_NS  (INT64_C(60) * 1000000000) /* while that may help */
#define NS_PER_MS 1000000

/* Where partitions begin: the thread's until it is done. */
struct question {
    pthread_t thread;
    rd_kafka_t *client;
    int wake;
    int64_t from_ms;
    rd_kafka_topic_partition_list_t *parts; /* with their beginnings, in the end */
    struct ft_kafka_owned *owned;
    rd_kafka_resp_err_t err; /* the first */
    atomic_bool done, stop;  /* stop: nobody waits for what is not answered yet */
};

struct ft_kafka_group {
    struct ft_kafka_group_config config;
    struct question *question; /* NULL: nothing is asked */
    bool leaving;
};

static void note(struct question *q, rd_kafka_resp_err_t err)
{
    if (err && !q->err)
        q->err = err;
}

/* Who knows neither the time nor how far it was read begins with what comes from now on. */
static int64_t begin_of(int64_t at_time, int64_t read_to, int64_t end)
{
    int64_t begin = at_time >= 0 ? at_time : end >= 0 ? end : RD_KAFKA_OFFSET_STORED;

    return read_to >= 0 && (begin < 0 || read_to < begin) ? read_to : begin;
}

/* A number, of whoever committed; else -1. */
static int64_t note_of(const rd_kafka_topic_partition_t *p)
{
    char text[24] = "", *end;
    long long number;

    if (p->offset < 0 || !p->metadata || p->metadata_size == 0 || p->metadata_size >= sizeof(text))
        return -1;
    memcpy(text, p->metadata, p->metadata_size);
    number = strtoll(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end ? (int64_t)number : -1;
}

/* Of brokers that are about to know: coordinators that have just become so, and offsets of a
 * transaction that is about to end. */
static bool is_passing(rd_kafka_resp_err_t err)
{
    switch (err) {
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__WAIT_COORD:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT:
        return true;
    default:
        return false;
    }
}

/* Without it what came since would be passed over, and windows that are not published. */
static rd_kafka_resp_err_t ask_read(const struct question *q, rd_kafka_topic_partition_list_t *read)
{
    struct ft_mono start = ft_mono_now();
    rd_kafka_resp_err_t err;

    for (;;) {
        err = rd_kafka_committed(q->client, read, ASK_MS);
        for (int i = 0; i < read->cnt && !err; i++)
            err = read->elems[i].err;
        if (!is_passing(err) || atomic_load(&q->stop) ||
            ft_mono_since_ns(ft_mono_now(), start) > AGAIN_NS)
            return err;
        poll(NULL, 0, PAUSE_MS);
    }
}

static void *ask(void *arg)
{
    struct question *q = arg;
    rd_kafka_topic_partition_list_t *times = rd_kafka_topic_partition_list_copy(q->parts);
    rd_kafka_topic_partition_list_t *read = rd_kafka_topic_partition_list_copy(q->parts);
    static const uint64_t one = 1;

    for (int i = 0; i < q->parts->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &q->parts->elems[i];
        int64_t low, high = -1;
        rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__INTR;

        if (!atomic_load(&q->stop))
            err = rd_kafka_query_watermark_offsets(q->client, p->topic, p->partition, &low, &high,
                                                   ASK_MS);

        note(q, err);
        q->owned[i] = (struct ft_kafka_owned){
            .partition = p->partition, .until = err ? -1 : high, .note = -1};
        times->elems[i].offset = q->from_ms;
        read->elems[i].offset = RD_KAFKA_OFFSET_INVALID;
    }
    if (!atomic_load(&q->stop))
        note(q, rd_kafka_offsets_for_times(q->client, times, ASK_MS));
    if (!atomic_load(&q->stop))
        note(q, ask_read(q, read));
    for (int i = 0; i < q->parts->cnt; i++) {
        int64_t at_time = times->elems[i].err ? -1 : times->elems[i].offset;

        /* Unanswered it is still the time that was asked for. */
        if (at_time == q->from_ms)
            at_time = -1;
        q->owned[i].note = note_of(&read->elems[i]);
        q->owned[i].from = begin_of(at_time, read->elems[i].offset, q->owned[i].until);
        q->parts->elems[i].offset = q->owned[i].from;
    }
    rd_kafka_topic_partition_list_destroy(times);
    rd_kafka_topic_partition_list_destroy(read);
    atomic_store(&q->done, true);
    eventfd_write(q->wake, one);
    return NULL;
}

static void free_question(struct question *q)
{
    if (q->parts)
        rd_kafka_topic_partition_list_destroy(q->parts);
    free(q->owned);
    free(q);
}

/* librdkafka waits for the assignment, and stays a member meanwhile. Without thread or memory
 * they are read from where they were read to. */
static rd_kafka_error_t *begin_to_ask(struct ft_kafka_group *g,
                                      const rd_kafka_topic_partition_list_t *parts)
{
    struct question *q = parts->cnt > 0 ? calloc(1, sizeof(*q)) : NULL;

    if (q) {
        q->client = g->config.client;
        q->wake = g->config.wake;
        q->from_ms = ft_wall_now().ms - g->config.back_ns / NS_PER_MS;
        q->parts = rd_kafka_topic_partition_list_copy(parts);
        q->owned = calloc((size_t)parts->cnt, sizeof(*q->owned));
        if (q->owned && pthread_create(&q->thread, NULL, ask, q) == 0) {
            g->question = q;
            return NULL;
        }
        free_question(q);
    }
    return rd_kafka_incremental_assign(g->config.client, parts);
}

static void report_lost(struct ft_kafka_group *g, const rd_kafka_topic_partition_list_t *parts)
{
    int32_t *list = calloc((size_t)parts->cnt + 1, sizeof(*list));

    for (int i = 0; list && i < parts->cnt; i++)
        list[i] = parts->elems[i].partition;
    if (list && parts->cnt > 0 && g->config.on_lost && !g->leaving)
        g->config.on_lost(g->config.arg, list, (size_t)parts->cnt);
    free(list);
}

static void discard(rd_kafka_error_t *error)
{
    if (error)
        rd_kafka_error_destroy(error);
}

/* Waits for the answer that is on its way, if need be. */
static rd_kafka_error_t *take_over(struct ft_kafka_group *g)
{
    struct question *q = g->question;
    rd_kafka_error_t *error;

    atomic_store(&q->stop, true);
    pthread_join(q->thread, NULL);
    g->question = NULL;
    if (g->config.on_owned && !g->leaving)
        g->config.on_owned(g->config.arg, q->owned, (size_t)q->parts->cnt);
    error = rd_kafka_incremental_assign(g->config.client, q->parts);
    if (!error && q->err)
        error = rd_kafka_error_new(q->err, "what was there before is not read back: %s",
                                   rd_kafka_err2str(q->err));
    free_question(q);
    return error;
}

rd_kafka_error_t *ft_kafka_group_rebalance(struct ft_kafka_group *g, int err,
                                           const rd_kafka_topic_partition_list_t *parts)
{
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && !g->leaving)
        return begin_to_ask(g, parts);
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
        return rd_kafka_incremental_assign(g->config.client, parts);
    /* What is being asked for is owed, before it can be taken back. */
    if (g->question)
        discard(take_over(g));
    report_lost(g, parts);
    return rd_kafka_incremental_unassign(g->config.client, parts);
}

rd_kafka_error_t *ft_kafka_group_turn(struct ft_kafka_group *g)
{
    return g->question && atomic_load(&g->question->done) ? take_over(g) : NULL;
}

struct ft_kafka_group *ft_kafka_group_new(const struct ft_kafka_group_config *config,
                                          const char *topic, int *err)
{
    struct ft_kafka_group *g = calloc(1, sizeof(*g));
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);

    *err = g ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    if (g) {
        g->config = *config;
        rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
        *err = rd_kafka_subscribe(config->client, topics);
    }
    rd_kafka_topic_partition_list_destroy(topics);
    if (!*err)
        return g;
    free(g);
    return NULL;
}

void ft_kafka_group_leave(struct ft_kafka_group *g)
{
    if (!g)
        return;
    g->leaving = true;
    /* Without the assignment that is owed librdkafka would not end. */
    if (g->question)
        discard(take_over(g));
}

void ft_kafka_group_free(struct ft_kafka_group *g)
{
    free(g);
}
#endif

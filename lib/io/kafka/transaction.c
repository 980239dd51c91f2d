// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/transaction.h"

#include <errno.h>

#ifndef HAVE_KAFKA
/* No client can exist here. */
struct ft_kafka_transaction *ft_kafka_transaction_new(struct rd_kafka_s *client, int wake)
{
    (void)client;
    (void)wake;
    return NULL;
}

void ft_kafka_transaction_free(struct ft_kafka_transaction *t)
{
    (void)t;
}

void ft_kafka_transaction_stop(struct ft_kafka_transaction *t)
{
    (void)t;
}

void ft_kafka_transaction_resume(struct ft_kafka_transaction *t, struct rd_kafka_s *client)
{
    (void)t;
    (void)client;
}

bool ft_kafka_transaction_open(const struct ft_kafka_transaction *t)
{
    (void)t;
    return false;
}

int ft_kafka_transaction_offsets(struct ft_kafka_transaction *t,
                                 const struct ft_kafka_offsets *offsets, size_t count)
{
    (void)t;
    (void)offsets;
    (void)count;
    return -ENOTSUP;
}

void ft_kafka_transaction_commit(struct ft_kafka_transaction *t)
{
    (void)t;
}

void ft_kafka_transaction_abort(struct ft_kafka_transaction *t)
{
    (void)t;
}

enum ft_kafka_outcome ft_kafka_transaction_look(struct ft_kafka_transaction *t, int *err,
                                                char *text, size_t text_bytes)
{
    (void)t;
    (void)err;
    (void)text;
    (void)text_bytes;
    return FT_KAFKA_BROKEN;
}
#else
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "lib/io/kafka/consumer.h"

#define ASK_MS     1000 /* for each answer; then a step looks whether it is to end */
#define PAUSE_MS   100  /* before the same is asked again */
#define NOTE_BYTES 24

/* How far one consumer read. */
struct reader {
    rd_kafka_t *consumer;
    rd_kafka_topic_partition_list_t *parts;
    rd_kafka_consumer_group_metadata_t *group; /* as it is when the step begins */
};

struct readers {
    struct reader list[FT_KAFKA_OFFSETS_MAX];
    size_t count;
};

enum step { BEGIN, COMMIT, ABORT };

struct ft_kafka_transaction {
    rd_kafka_t *client;
    int wake;
    bool open, running;
    struct readers next; /* of the next commit */
    /* The thread's until it is done. */
    pthread_t thread;
    enum step step;
    struct readers readers;
    enum ft_kafka_outcome outcome;
    rd_kafka_error_t *error;
    atomic_bool done, stop;
    bool forgotten; /* the consumers of the step are gone */
};

static void forget(struct readers *r)
{
    for (size_t i = 0; i < r->count; i++) {
        rd_kafka_topic_partition_list_destroy(r->list[i].parts);
        if (r->list[i].group)
            rd_kafka_consumer_group_metadata_destroy(r->list[i].group);
    }
    r->count = 0;
}

/* What is not committed is to be, unless there is something newer. */
static void keep_offsets(struct ft_kafka_transaction *t)
{
    if (t->outcome != FT_KAFKA_COMMITTED && t->next.count == 0 && !t->forgotten) {
        for (size_t i = 0; i < t->readers.count; i++) {
            if (t->readers.list[i].group)
                rd_kafka_consumer_group_metadata_destroy(t->readers.list[i].group);
            t->readers.list[i].group = NULL;
        }
        t->next = t->readers;
        t->readers.count = 0;
    }
    forget(&t->readers);
}

static rd_kafka_error_t *begin(struct ft_kafka_transaction *t, size_t i)
{
    (void)i;
    return rd_kafka_init_transactions(t->client, ASK_MS);
}

static rd_kafka_error_t *send_offsets(struct ft_kafka_transaction *t, size_t i)
{
    const struct reader *r = &t->readers.list[i];

    return rd_kafka_send_offsets_to_transaction(t->client, r->parts, r->group, ASK_MS);
}

static rd_kafka_error_t *commit(struct ft_kafka_transaction *t, size_t i)
{
    (void)i;
    return rd_kafka_commit_transaction(t->client, ASK_MS);
}

static rd_kafka_error_t *abort_one(struct ft_kafka_transaction *t, size_t i)
{
    (void)i;
    return rd_kafka_abort_transaction(t->client, ASK_MS);
}

/* While that may help. The same call continues what it began. */
static rd_kafka_error_t *insist(struct ft_kafka_transaction *t,
                                rd_kafka_error_t *(*call)(struct ft_kafka_transaction *t, size_t i),
                                size_t i)
{
    rd_kafka_error_t *error;

    while ((error = call(t, i)) && rd_kafka_error_is_retriable(error) && !atomic_load(&t->stop)) {
        rd_kafka_error_destroy(error);
        poll(NULL, 0, PAUSE_MS);
    }
    return error;
}

static rd_kafka_error_t *do_commit(struct ft_kafka_transaction *t)
{
    rd_kafka_error_t *error = NULL;

    for (size_t i = 0; i < t->readers.count && !error; i++)
        error = insist(t, send_offsets, i);
    return error ? error : insist(t, commit, 0);
}

/* Of a failed step the first error is kept: it says why. */
static void undo(struct ft_kafka_transaction *t)
{
    rd_kafka_error_t *error = insist(t, abort_one, 0);

    t->outcome = error ? FT_KAFKA_BROKEN : FT_KAFKA_ABORTED;
    if (error && t->error)
        rd_kafka_error_destroy(error);
    else if (error)
        t->error = error;
}

static void *work(void *arg)
{
    struct ft_kafka_transaction *t = arg;
    rd_kafka_error_t *error = NULL;
    static const uint64_t one = 1;

    if (t->step == BEGIN) {
        t->error = insist(t, begin, 0);
        t->outcome = t->error ? FT_KAFKA_BROKEN : FT_KAFKA_OPENED;
    } else if (t->step == COMMIT) {
        t->error = do_commit(t);
        t->outcome = t->error ? FT_KAFKA_BROKEN : FT_KAFKA_COMMITTED;
        /* Where it is not known whether a commit was done, an abort is not asked for. */
        if (t->error && !rd_kafka_error_is_fatal(t->error) &&
            !rd_kafka_error_is_retriable(t->error))
            undo(t);
    } else {
        undo(t);
    }
    if (t->outcome != FT_KAFKA_BROKEN)
        error = rd_kafka_begin_transaction(t->client);
    if (error) {
        t->outcome = FT_KAFKA_BROKEN;
        t->error = error;
    }
    atomic_store(&t->done, true);
    eventfd_write(t->wake, one);
    return NULL;
}

static void run(struct ft_kafka_transaction *t, enum step step)
{
    t->open = false;
    t->step = step;
    t->outcome = FT_KAFKA_BROKEN;
    atomic_store(&t->done, false);
    t->running = pthread_create(&t->thread, NULL, work, t) == 0;
    if (!t->running)
        atomic_store(&t->done, true);
}

struct ft_kafka_transaction *ft_kafka_transaction_new(rd_kafka_t *client, int wake)
{
    struct ft_kafka_transaction *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->wake = wake;
    ft_kafka_transaction_resume(t, client);
    return t;
}

void ft_kafka_transaction_stop(struct ft_kafka_transaction *t)
{
    atomic_store(&t->stop, true);
    if (t->running)
        pthread_join(t->thread, NULL);
    t->running = t->open = false;
    atomic_store(&t->done, false);
    if (t->error)
        rd_kafka_error_destroy(t->error);
    t->error = NULL;
    t->outcome = FT_KAFKA_BROKEN;
    keep_offsets(t);
}

void ft_kafka_transaction_resume(struct ft_kafka_transaction *t, rd_kafka_t *client)
{
    t->client = client;
    atomic_store(&t->stop, false);
    run(t, BEGIN);
}

void ft_kafka_transaction_free(struct ft_kafka_transaction *t)
{
    if (!t)
        return;
    ft_kafka_transaction_stop(t);
    forget(&t->next);
    free(t);
}

bool ft_kafka_transaction_open(const struct ft_kafka_transaction *t)
{
    return t->open;
}

/* With what is noted of each partition: the brokers keep it beside its offset. */
static rd_kafka_topic_partition_list_t *list_of(const struct ft_kafka_offsets *offsets)
{
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new((int)offsets->count);

    for (size_t i = 0; i < offsets->count; i++) {
        const struct ft_kafka_position *at = &offsets->list[i];
        rd_kafka_topic_partition_t *p =
            rd_kafka_topic_partition_list_add(parts, at->topic, at->partition);
        char note[NOTE_BYTES];

        p->offset = at->offset;
        snprintf(note, sizeof(note), "%" PRId64, at->note);
        if (at->note >= 0)
            p->metadata = strdup(note); /* librdkafka frees it */
        p->metadata_size = p->metadata ? strlen(note) : 0;
    }
    return parts;
}

int ft_kafka_transaction_offsets(struct ft_kafka_transaction *t,
                                 const struct ft_kafka_offsets *offsets, size_t count)
{
    forget(&t->next);
    t->forgotten = count == 0;
    for (size_t i = 0; i < count && i < FT_KAFKA_OFFSETS_MAX; i++)
        if (offsets[i].count > 0)
            t->next.list[t->next.count++] = (struct reader){
                ft_kafka_consumer_handle(offsets[i].consumer), list_of(&offsets[i]), NULL};
    return 0;
}

void ft_kafka_transaction_commit(struct ft_kafka_transaction *t)
{
    t->readers = t->next;
    t->next.count = 0;
    for (size_t i = 0; i < t->readers.count; i++)
        t->readers.list[i].group = rd_kafka_consumer_group_metadata(t->readers.list[i].consumer);
    run(t, COMMIT);
}

void ft_kafka_transaction_abort(struct ft_kafka_transaction *t)
{
    run(t, ABORT);
}

enum ft_kafka_outcome ft_kafka_transaction_look(struct ft_kafka_transaction *t, int *err,
                                                char *text, size_t text_bytes)
{
    *err = 0;
    if (t->open || !atomic_load(&t->done))
        return FT_KAFKA_NOTHING;
    atomic_store(&t->done, false);
    if (t->running)
        pthread_join(t->thread, NULL);
    t->running = false;
    t->open = t->outcome != FT_KAFKA_BROKEN;
    keep_offsets(t);
    if (t->error) {
        *err = rd_kafka_error_code(t->error);
        snprintf(text, text_bytes, "transaction: %s", rd_kafka_error_string(t->error));
        rd_kafka_error_destroy(t->error);
        t->error = NULL;
    }
    return t->outcome;
}
#endif

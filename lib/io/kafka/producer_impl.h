// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_PRODUCER_IMPL_H
#define FT_IO_KAFKA_PRODUCER_IMPL_H
/*
 * What the files of the producer share: messages from when they are taken to their report
 * (kept.c), the transactions that they are in (commit.c), and the spool (kafka.c).
 */
#include "lib/base/clock.h"
#include "lib/base/writer.h"
#include "lib/io/disk/spool.h"
#include "lib/io/kafka/client.h"
#include "lib/io/kafka/transaction.h"

#define NS_PER_MS INT64_C(1000000)
#define RENEW_NS  (1000 * NS_PER_MS) /* between two clients, where each fails */

/* A message from when it is taken to its report. */
struct ft_kafka_kept {
    struct ft_kafka_kept *before, *after;
    uint64_t number; /* in the spool; 0: it is not there */
    uint64_t serial;
    uint32_t weight;
    uint8_t fails;
    bool sent; /* librdkafka has it */
    size_t len;
    uint8_t bytes[]; /* entry.h */
};

struct ft_kafka {
    struct ft_kafka_client *client;
    struct ft_spool *spool; /* NULL: none */
    char *spool_folder;
    struct ft_watch *tick;
    void (*on_error)(void *arg, const char *key, const char *text);
    void *arg;
    int (*prefix)(void *arg, const struct ft_kafka_outgoing *message,
                  struct ft_kafka_prefix *prefix);
    void *prefix_arg;
    struct ft_kafka_kept *first, *last; /* in the order in which they were taken */
    uint64_t bytes, unsent;             /* of them */
    struct ft_writer entry;
    struct ft_kafka_stats stats;
    struct ft_kafka_client_stats client_stats;
    int64_t spool_after_ns;
    struct ft_mono progress; /* the last delivery, or since when anything waits for one */
    struct ft_mono renewed;
    bool proven; /* this client has delivered, or lost, a message: it reconnects by itself */
    bool away;   /* nothing was delivered for long, and what waits is in the spool */
    bool ending;
    /* In transactions; NULL: without. */
    struct ft_kafka_transaction *transaction;
    uint64_t messages_max, bytes_max, serial;
    uint64_t commit_to; /* the last message of the last commit, requested or done */
    bool requested, committing, undo, undo_all;
    bool spoilt; /* the one that is open cannot be committed */
    bool broken; /* the client takes no more */
    bool rival;  /* another client has the name: for good */
    struct ft_mono tried, fenced;
    bool was_fenced, was_tried;
};

void ft_kafka_report(struct ft_kafka *k, const char *key, const char *text);

/* NULL without memory. number: in the spool. */
struct ft_kafka_kept *ft_kafka_add(struct ft_kafka *k, const void *bytes, size_t len,
                                   uint64_t number, uint32_t weight);
void ft_kafka_drop(struct ft_kafka *k, struct ft_kafka_kept *m);

/* Hands it to librdkafka. What it refuses for good is counted, and gone. */
int ft_kafka_pass_on(struct ft_kafka *k, struct ft_kafka_kept *m);

/* Sends what was not sent, in its order: -EAGAIN when some is left. */
int ft_kafka_resend(struct ft_kafka *k);

/* Whether it may be sent now: of a transaction that is to be committed nothing more. */
bool ft_kafka_may_send(const struct ft_kafka *k, const struct ft_kafka_kept *m);

/* In transactions: as ft_kafka_send(), of what is in k->entry. */
int ft_kafka_hold(struct ft_kafka *k, uint32_t weight);

/* What the brokers answered, and the next step. */
void ft_kafka_advance(struct ft_kafka *k);

/* Of a client that was fenced: whether another one has its name, which is said. Two would end each
 * other's transactions for ever. */
bool ft_kafka_has_rival(struct ft_kafka *k);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_TRANSACTION_H
#define FT_IO_KAFKA_TRANSACTION_H
/*
 * Transactions of a producer (KIP-98, KIP-447). What is sent between two commits, and how far
 * consumers read, become visible together or never. Each step that waits for the brokers runs in a
 * thread of its own, one at a time; meanwhile nothing may be sent. Used by kafka.c alone. Thread:
 * the loop's.
 */
#include <stdbool.h>
#include <stddef.h>

#include "lib/io/kafka/producer.h"

struct ft_kafka_transaction;
struct rd_kafka_s;

enum ft_kafka_outcome {
    FT_KAFKA_NOTHING,   /* no step has ended since */
    FT_KAFKA_OPENED,    /* for the first time: sending may begin */
    FT_KAFKA_COMMITTED, /* the next one is open */
    FT_KAFKA_ABORTED,   /* of what was sent nothing is visible; the next one is open */
    FT_KAFKA_BROKEN,    /* it takes another client */
};

/* Begins with a client, whose transactional.id ends what an earlier one had open. wake: an eventfd,
 * written when a step has ended. NULL without memory. */
struct ft_kafka_transaction *ft_kafka_transaction_new(struct rd_kafka_s *client, int wake);

/* Waits for the step that is in progress: a second, where no broker answers. Takes NULL. */
void ft_kafka_transaction_free(struct ft_kafka_transaction *t);

/* Before the client is freed, and with the one that follows. Offsets are kept. */
void ft_kafka_transaction_stop(struct ft_kafka_transaction *t);
void ft_kafka_transaction_resume(struct ft_kafka_transaction *t, struct rd_kafka_s *client);

/* Whether messages may be sent. */
bool ft_kafka_transaction_open(const struct ft_kafka_transaction *t);

/* What the next commit says of consumers, instead of what was to be said before; copied. The
 * consumers stay until then, or until this is called with none. -ENOMEM. */
int ft_kafka_transaction_offsets(struct ft_kafka_transaction *t,
                                 const struct ft_kafka_offsets *offsets, size_t count);

/* Only of an open one. */
void ft_kafka_transaction_commit(struct ft_kafka_transaction *t);
void ft_kafka_transaction_abort(struct ft_kafka_transaction *t);

/* How the last step ended, once. Where it failed, *err (rd_kafka_resp_err_t) and a text; else 0. */
enum ft_kafka_outcome ft_kafka_transaction_look(struct ft_kafka_transaction *t, int *err,
                                                char *text, size_t text_bytes);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_GROUP_READER_H
#define FT_DAEMON_GROUP_READER_H
/*
 * What agents and pollers sent into the ingest topics, on its way into the pipeline: of the topic
 * of flows the partitions of this daemon, of the others all; for the aggregator of a group what its
 * members say as well. Who may write there is for Kafka's access control to say; the rest is held
 * against the same limits as what comes over TCP. Owner: the daemon. Thread: the loop's.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/pipeline/pipeline.h"
#include "lib/base/account.h"
#include "lib/io/loop.h"

struct ft_group_reader;
struct ft_group_role;
struct ft_receiver;
struct ft_arrivals_tap;
struct ft_settings;
struct ft_run;

struct ft_group_reader_config {
    const struct ft_settings *settings;
    const struct ft_run *run; /* says where they stand */
    struct ft_group_role *role;
    struct ft_pipeline *pipeline;
    const char *source_id;             /* of this daemon */
    struct ft_kafka *kafka;            /* publishes, in transactions; NULL: without */
    struct ft_receiver *receiver;      /* what it is in the middle of ends first; NULL: none */
    const struct ft_arrivals_tap *tap; /* NULL: nobody */
};

/* NULL after a complaint in the log. */
struct ft_group_reader *ft_group_reader_new(struct ft_loop *loop,
                                            const struct ft_group_reader_config *config);
void ft_group_reader_free(struct ft_group_reader *reader);

/* With transactions: the time by which windows are closed, while those of before a restart are made
 * up for; else now. Takes NULL. */
int64_t ft_group_reader_now(struct ft_group_reader *reader, int64_t now_ms);

/* After each step of the pipeline: what a window led to is committed when it is closed. Takes NULL.
 */
void ft_group_reader_look(struct ft_group_reader *reader);

/* Before the reader is freed: what is committed stays, the rest is to be read again. Takes NULL. */
void ft_group_reader_undo(struct ft_group_reader *reader, int64_t timeout_ns);

/* Adds the stages "messages" and "topics". Takes NULL. */
void ft_group_reader_account(const struct ft_group_reader *reader, struct ft_account *account);

/* Messages of senders that there was no room to remember: what of them came twice, or not at all,
 * is not counted. */
uint64_t ft_group_reader_unnumbered(const struct ft_group_reader *reader);

#endif

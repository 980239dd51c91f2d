// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PUBLISH_PUBLISH_H
#define FT_DAEMON_PUBLISH_PUBLISH_H
/*
 * Publishing: each record is encoded once and handed to every sink. A sink that fails counts what
 * it loses and holds up no other. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/account.h"
#include "lib/base/writer.h"
#include "lib/io/kafka/producer.h"
#include "lib/io/loop.h"
#include "proto/fabrictrace.pb-c.h"

/* A record on its way out; all borrowed for the call. */
struct ft_published {
    const Fabrictrace__Record *record;
    const char *schema;
    const char *json; /* one line, without its newline; empty when it could not be written */
    size_t json_len;
};

/* received = processed + pending + failed + refused + every further drop. */
struct ft_sink_stats {
    uint64_t received, processed, pending, failed, refused;
    struct ft_account_drop drops[FT_ACCOUNT_DROPS - 2];
    size_t drop_count;
};

struct ft_registered;
struct ft_registry_config;

struct ft_sink {
    const char *name; /* of its kind */
    const char *spec; /* as in the configuration, for people; NULL: not from there */
    void (*write)(void *self, const struct ft_published *out);
    /* Pushes out what is buffered; at most timeout_ns. 0, or -errno of what is stuck. */
    int (*flush)(void *self, int64_t timeout_ns);
    /* Opens its file anew, after a log rotation. May be NULL. */
    void (*reopen)(void *self);
    void (*stats)(void *self, struct ft_sink_stats *stats);
    void (*free)(void *self);
    void *self;
    struct ft_kafka *kafka;                 /* of that sink; else NULL */
    const struct ft_registered *registered; /* likewise, where it has a schema registry */
};

struct ft_publisher;

struct ft_publisher *ft_publisher_new(void);

/* Frees the sinks too. */
void ft_publisher_free(struct ft_publisher *publisher);

/* Takes the sink over, also on failure (it is freed then). -ENOMEM. */
int ft_publisher_take(struct ft_publisher *publisher, struct ft_sink *sink);

/* Shows whatever goes out to this function too, which counts nothing. Once. */
void ft_publisher_tap(struct ft_publisher *publisher,
                      void (*tap)(void *arg, const struct ft_published *out), void *arg);

/* The function for an emitter; self is the publisher. */
void ft_publisher_record(void *self, const Fabrictrace__Record *record);

/* Pushes out what is buffered. 0, or -errno of the first sink that is stuck, whose spec is *which
 * then. */
int ft_publisher_flush(struct ft_publisher *publisher, int64_t timeout_ns, const char **which);
void ft_publisher_reopen(struct ft_publisher *publisher);
size_t ft_publisher_sinks(const struct ft_publisher *publisher);

/* Name and accounting of the i-th sink. */
const char *ft_publisher_sink(const struct ft_publisher *publisher, size_t i,
                              struct ft_sink_stats *stats);

/* That of the Kafka sink, for its figures and transactions; NULL where there is none. */
struct ft_kafka *ft_publisher_kafka(const struct ft_publisher *publisher);

/* The schemas of that sink in a registry; NULL where there is none. */
const struct ft_registered *ft_publisher_registered(const struct ft_publisher *publisher);

/* Adds a stage for each sink. */
void ft_publisher_account(const struct ft_publisher *publisher, struct ft_account *account);

/* The i-th sink as its configuration names it: of two files each its own. */
const char *ft_publisher_spec(const struct ft_publisher *publisher, size_t i);

/* NDJSON into a file, "-" for standard output. NULL with a complaint that names the file. */
struct ft_sink *ft_sink_file_new(const char *path, char *error, size_t error_bytes);

/* From now on a slow reader of that sink is waited for, rather than its lines lost: in a replay,
 * which nobody else waits for. */
void ft_sink_file_wait(struct ft_sink *sink);

struct ft_sink_kafka_config {
    struct ft_kafka_config kafka;
    const char *topic_prefix;
    bool protobuf;
    const char *producer;                      /* source id of this daemon, for a header */
    const struct ft_registry_config *registry; /* NULL: none */
};

/* Kafka topics named prefix + schema; headers: fabrictrace-records(7). NULL with a complaint. */
struct ft_sink *ft_sink_kafka_new(struct ft_loop *loop, const struct ft_sink_kafka_config *config,
                                  char *error, size_t error_bytes);

/* Adds the sink of a setting: file:PATH, file:- or kafka. wait: as ft_sink_file_wait(). -errno with
 * a complaint. */
int ft_publisher_open(struct ft_publisher *publisher, const char *spec, struct ft_loop *loop,
                      const struct ft_sink_kafka_config *kafka, bool wait, char *error,
                      size_t error_bytes);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_REGISTRY_H
#define FT_IO_KAFKA_REGISTRY_H
/*
 * A schema registry that speaks Confluent's protocol: it is given the schema of each subject, and
 * gives each an id, which goes in front of every message (daemon/publish/registered.h). Asked for
 * one subject after another; what it refuses, or does not answer, is asked again for ever, at
 * longer and longer intervals. Ids are kept in memory alone: they hold as long
 * as a registry has its data. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/http/web_client.h"
#include "lib/io/loop.h"

#define FT_REGISTRY_ERROR_BYTES 640

struct ft_registry_config {
    const char *url; /* "https://registry.example:8081", the root of its API */
    /* content_type, timeout_ns and answer_bytes_max of it are the registry's own. */
    struct ft_web_client_config http;
    bool registers; /* else a schema must be there */
    /* Each failure, for the log (rate limited by the caller). May be NULL. */
    void (*on_error)(void *arg, const char *text);
    void *arg;
};

struct ft_registry_stats {
    uint32_t subjects, known;
    uint64_t requests, failures;
};

struct ft_registry;

/* NULL with a reason. */
struct ft_registry *ft_registry_new(struct ft_loop *loop, const struct ft_registry_config *config,
                                    char *error, size_t error_bytes);
void ft_registry_free(struct ft_registry *registry);

/* Adds a subject; type: "JSON" or "PROTOBUF". It is asked for from then on. -ENOMEM;
 * -ENOSPC: there are 1,024. */
int ft_registry_add(struct ft_registry *registry, const char *subject, const char *type,
                    const char *schema);

/* Whether the ids of all subjects are known. */
bool ft_registry_ready(const struct ft_registry *registry);

/* That of a subject; -EAGAIN: it is not known yet, -ENOENT: there is no such subject. */
int ft_registry_id(const struct ft_registry *registry, const char *subject, uint32_t *id);

void ft_registry_stats(const struct ft_registry *registry, struct ft_registry_stats *stats);

/* Why the last request failed; NULL: it did not. */
const char *ft_registry_trouble(const struct ft_registry *registry);

#endif

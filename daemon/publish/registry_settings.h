// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PUBLISH_REGISTRY_SETTINGS_H
#define FT_DAEMON_PUBLISH_REGISTRY_SETTINGS_H
/*
 * What the settings say of a schema registry, with the secrets read from their files. Owner: the
 * caller, who closes it when the registry is made: that keeps its own copy. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/diag.h"
#include "lib/config/options.h"
#include "lib/config/program.h"
#include "lib/io/kafka/registry.h"

struct ft_registry_settings {
    char *url; /* NULL: no registry */
    char *user, *password_file, *token_file;
    char *ca, *cert, *key;
    bool registers;
};

/* Rows of the table, of the struct ft_registry_settings at this offset. */
#define FT_REGISTRY_OPTIONS(at)                                                                    \
    {.key = "kafka.registry.url",                                                                  \
     .type = FT_OPTION_STRING,                                                                     \
     .offset = (at) + offsetof(struct ft_registry_settings, url),                                  \
     .help = "Schema registry with Confluent's API (https://registry.example:8081). With it each " \
             "published message begins with the id of its schema, and what has none yet waits in " \
             "kafka.spool: see SCHEMA REGISTRY in fabrictraced(8)."},                              \
        {.key = "kafka.registry.register",                                                         \
         .type = FT_OPTION_BOOL,                                                                   \
         .offset = (at) + offsetof(struct ft_registry_settings, registers),                        \
         .standard = "yes",                                                                        \
         .help = "Whether to register schemas that the registry does not have. With no, somebody " \
                 "else does (fabrictraced --schemas)."},                                           \
        {.key = "kafka.registry.user",                                                             \
         .type = FT_OPTION_STRING,                                                                 \
         .offset = (at) + offsetof(struct ft_registry_settings, user),                             \
         .help = "Name to show to the registry, with kafka.registry.password_file."},              \
        {.key = "kafka.registry.password_file",                                                    \
         .type = FT_OPTION_STRING,                                                                 \
         .offset = (at) + offsetof(struct ft_registry_settings, password_file),                    \
         .help = "File of one line with its password, which not everybody may read, or "           \
                 "credential:NAME for a credential of the service manager."},                      \
        {.key = "kafka.registry.token_file",                                                       \
         .type = FT_OPTION_STRING,                                                                 \
         .offset = (at) + offsetof(struct ft_registry_settings, token_file),                       \
         .help = "Instead of both: likewise a token (Authorization: Bearer)."},                    \
        {.key = "kafka.registry.ca",                                                               \
         .type = FT_OPTION_STRING,                                                                 \
         .offset = (at) + offsetof(struct ft_registry_settings, ca),                               \
         .help = "Authorities of its certificate (PEM), instead of the system's. This file and "   \
                 "the next two are read by the user that the daemon runs as."},                    \
        {.key = "kafka.registry.cert",                                                             \
         .type = FT_OPTION_STRING,                                                                 \
         .offset = (at) + offsetof(struct ft_registry_settings, cert),                             \
         .help = "Certificate to show to it (PEM)."},                                              \
    {                                                                                              \
        .key = "kafka.registry.key", .type = FT_OPTION_STRING,                                     \
        .offset = (at) + offsetof(struct ft_registry_settings, key),                               \
        .help = "Its key (PEM), which not everybody may read."                                     \
    }

struct ft_registry_opened {
    struct ft_registry_config config; /* borrows from the settings and from the next */
    char *password, *token;
};

/* -errno with a complaint that names the file of a secret. */
int ft_registry_settings_open(const struct ft_registry_settings *settings,
                              struct ft_registry_opened *out, char *error, size_t error_bytes);

/* Overwrites the secrets. */
void ft_registry_settings_close(struct ft_registry_opened *opened);

/* Complains of each key that cannot be, with its line. keeps: what waits for the registry is kept,
 * in a spool or until the next commit. */
void ft_registry_settings_check(const struct ft_registry_settings *settings, bool keeps,
                                const struct ft_run *run, struct ft_diag *diag);

#endif

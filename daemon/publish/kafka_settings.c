// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/kafka_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/secret.h"
#include "lib/config/yaml.h"
#include "lib/io/kafka/consumer.h"
#include "lib/io/kafka/properties.h"

#define ERROR_BYTES 512
#define ID_BYTES    512
/* A transaction may be open for so long, or for some windows. */
#define TRANSACTION_NS (INT64_C(60) * 1000000000)
#define WINDOWS_OPEN   3
#define KEY_FILE       "ssl.key.location="
#define KEY_FILE_LEN   (sizeof(KEY_FILE) - 1)

/* It holds over a restart, so that this one ends what a killed one had open. */
static char *transactional_id(const struct ft_settings *s, const char *source_id)
{
    char text[ID_BYTES];

    snprintf(text, sizeof(text), "%sfabrictraced-%s",
             s->kafka_topic_prefix ? s->kafka_topic_prefix : "", source_id);
    return strdup(text);
}

int ft_kafka_settings_open(const struct ft_settings *s, const char *source_id,
                           struct ft_kafka_settings *out, char *error, size_t error_bytes)
{
    int64_t windows_ns = WINDOWS_OPEN * s->window_ns;
    struct ft_kafka_settings k = {
        .config = {.brokers = s->kafka_brokers,
                   .client_id = "fabrictraced",
                   .queue_messages_max = s->kafka_queue_messages,
                   .queue_bytes_max = s->kafka_queue_bytes,
                   .message_timeout_ns = s->kafka_message_timeout_ns,
                   .spool = s->kafka_spool && *s->kafka_spool ? s->kafka_spool : NULL,
                   .spool_bytes_max = s->kafka_spool_bytes,
                   .spool_after_ns = s->kafka_spool_after_ns,
                   .spool_keeps_oldest = s->kafka_spool_full == FT_SPOOL_REFUSES_NEWEST}};
    int rc = ft_kafka_properties_read((const char *const *)s->kafka_properties.items,
                                      s->kafka_properties.count,
                                      (const char *const *)s->kafka_secrets.items,
                                      s->kafka_secrets.count, &k.properties, error, error_bytes);

    if (rc < 0)
        return rc;
    if (s->kafka_transactions && !(k.transactional_id = transactional_id(s, source_id))) {
        ft_kafka_properties_free(k.properties);
        snprintf(error, error_bytes, "no memory");
        return -ENOMEM;
    }
    k.config.transactional_id = k.transactional_id;
    k.config.transaction_ns = windows_ns > TRANSACTION_NS ? windows_ns : TRANSACTION_NS;
    k.config.properties = (const char *const *)k.properties;
    *out = k;
    return 0;
}

void ft_kafka_settings_close(struct ft_kafka_settings *k)
{
    ft_kafka_properties_free(k->properties);
    free(k->transactional_id);
    *k = (struct ft_kafka_settings){.properties = NULL};
}

/* The line of a member of `section` in the file, as a map or as a list of NAME=VALUE; 0: the file
 * has none. */
static unsigned line_in_file(const struct ft_yaml *root, const char *section, const char *name,
                             size_t name_len)
{
    const struct ft_yaml *members = ft_yaml_get(ft_yaml_get(root, "kafka"), section);
    bool map = members && ft_yaml_kind(members) == FT_YAML_MAP;

    for (size_t i = 0; members && i < ft_yaml_count(members); i++) {
        const char *text = map ? ft_yaml_key(members, i) : ft_yaml_text(ft_yaml_item(members, i));

        if (text && strncmp(text, name, name_len) == 0 &&
            (text[name_len] == '\0' || text[name_len] == '='))
            return map ? ft_yaml_key_line(members, i) : ft_yaml_line(ft_yaml_item(members, i));
    }
    return 0;
}

/* FILE:LINE of the very member. */
static void complain(const struct ft_run *run, struct ft_diag *diag, const char *section,
                     const char *item, const char *text)
{
    size_t name_len = strcspn(item, "=");
    struct ft_diag *quiet = ft_diag_new();
    char key[32];
    struct ft_yaml *root;
    unsigned line;

    snprintf(key, sizeof(key), "kafka.%s", section);
    root = quiet && ft_run_in_file(run, key) ? ft_yaml_load(ft_run_file(run), quiet) : NULL;
    line = root ? line_in_file(root, section, item, name_len) : 0;
    ft_diag_add(diag, line ? ft_run_file(run) : "--set", line, "key '%s.%.*s': %s", key,
                (int)name_len, item, text);
    ft_yaml_free(root);
    ft_diag_free(quiet);
}

static void check_properties(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    bool secret = false;
    char error[ERROR_BYTES];

    for (size_t i = 0; i < s->kafka_properties.count; i++) {
        const char *item = s->kafka_properties.items[i];

        secret = secret || ft_secret_setting(item);
        if (ft_kafka_check_property(item, error, sizeof(error)) < 0)
            complain(run, diag, "properties", item, error);
        else if (strncmp(item, KEY_FILE, KEY_FILE_LEN) == 0 &&
                 ft_secret_check(item + KEY_FILE_LEN, error, sizeof(error)) < 0)
            complain(run, diag, "properties", item, error);
    }
    if (secret && ft_run_in_file(run, "kafka.properties") &&
        ft_secret_check(ft_run_file(run), error, sizeof(error)) < 0)
        ft_run_complain(run, diag, "kafka.properties", "a secret is in a file where %s", error);
}

static void check_secrets(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    char error[ERROR_BYTES], *property;

    for (size_t i = 0; i < s->kafka_secrets.count; i++) {
        const char *item = s->kafka_secrets.items[i];

        property = NULL;
        if (ft_kafka_secret_read(item, &property, error, sizeof(error)) < 0 ||
            ft_kafka_check_property(property, error, sizeof(error)) < 0)
            complain(run, diag, "secrets", item, error);
        if (property)
            explicit_bzero(property, strlen(property));
        free(property);
    }
}

/* Where it is made, or is. */
static void check_spool(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    const char *slash = strrchr(s->kafka_spool, '/');
    char *parent = slash ? strndup(s->kafka_spool,
                                   slash == s->kafka_spool ? 1 : (size_t)(slash - s->kafka_spool))
                         : strdup(".");
    struct stat st;

    if (stat(s->kafka_spool, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            ft_run_complain(run, diag, "kafka.spool", "'%s' is not a folder", s->kafka_spool);
        else if (access(s->kafka_spool, W_OK | X_OK) < 0)
            ft_run_complain(run, diag, "kafka.spool", "'%s': %s", s->kafka_spool, strerror(errno));
    } else if (parent && access(parent, W_OK | X_OK) < 0) {
        ft_run_complain(run, diag, "kafka.spool", "'%s': %s", parent, strerror(errno));
    }
    free(parent);
}

/* What sends, and what reads (daemon/group/reader.c). */
static int check_clients(const struct ft_settings *s, const struct ft_kafka_config *config,
                         char *error, size_t error_bytes)
{
    const struct ft_kafka_consumer_config reads = {.brokers = config->brokers,
                                                   .client_id = config->client_id,
                                                   .group = "check",
                                                   .properties = config->properties,
                                                   .in_transactions = s->kafka_transactions};
    int rc = ft_kafka_check(config, error, error_bytes);

    if (rc == 0 && s->kafka_ingest)
        rc = ft_kafka_consumer_check(&reads, error, error_bytes);
    return rc;
}

void ft_kafka_settings_check(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    size_t before = ft_diag_count(diag);
    struct ft_kafka_settings k;
    char error[ERROR_BYTES];

    check_properties(run, diag);
    check_secrets(run, diag);
    ft_registry_settings_check(&s->kafka_registry,
                               s->kafka_transactions || (s->kafka_spool && *s->kafka_spool), run,
                               diag);
    if (s->kafka_spool && *s->kafka_spool)
        check_spool(run, diag);
    /* Settings that are each right may not go together. */
    if (ft_diag_count(diag) > before ||
        ft_kafka_settings_open(s, "check", &k, error, sizeof(error)) < 0)
        return;
    if (check_clients(s, &k.config, error, sizeof(error)) < 0)
        ft_run_complain(run, diag, s->kafka_properties.count ? "kafka.properties" : "sinks", "%s",
                        error);
    ft_kafka_settings_close(&k);
}

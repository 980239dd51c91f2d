// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/topics/checks.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/secret.h"
#include "lib/config/yaml.h"
#include "lib/io/kafka/producer.h"
#include "lib/io/kafka/properties.h"

#define ERROR_BYTES     512
#define TOPIC_BYTES_MAX 249 /* that Kafka takes */
#define PORT_MAX        65535
#define PORT_DIGITS     5
#define KEY_FILE        "ssl.key.location="
#define KEY_FILE_LEN    (sizeof(KEY_FILE) - 1)

/* What may be a name, or an address. */
static bool is_host(const char *host, const char *end)
{
    if (host == end || *host == '-')
        return false;
    for (; host < end; host++)
        if (!isalnum((unsigned char)*host) && !strchr("-._:[]%", *host))
            return false;
    return true;
}

/* A broker, perhaps behind the name of a protocol: HOST, HOST:PORT, [ADDRESS]:PORT. librdkafka
 * would take another port where one is none. */
static bool is_broker(const char *text, size_t len)
{
    const char *scheme = memmem(text, len, "://", 3), *host = scheme ? scheme + 3 : text;
    const char *end = text + len;
    const char *colon = memrchr(host, ':', (size_t)(end - host));
    unsigned long port = 0;

    /* An IPv6 address alone has several. */
    if (colon && memchr(host, ':', (size_t)(colon - host)) && colon[-1] != ']')
        colon = NULL;
    if (colon && (end - colon < 2 || end - colon > PORT_DIGITS + 1))
        return false;
    for (const char *digit = colon ? colon + 1 : end; digit < end; digit++) {
        if (*digit < '0' || *digit > '9')
            return false;
        port = 10 * port + (unsigned long)(*digit - '0');
    }
    return is_host(host, colon ? colon : end) && (!colon || (port > 0 && port <= PORT_MAX));
}

static void check_brokers(const struct ft_kafka_checked *s, const struct ft_run *run,
                          struct ft_diag *diag)
{
    size_t count = 0;

    for (const char *at = s->brokers ? s->brokers : ""; *at; count++) {
        const char *next;
        size_t len;

        at += strspn(at, ", ");
        len = strcspn(at, ",");
        next = at + len;
        while (len && at[len - 1] == ' ')
            len--;
        if (len == 0)
            break;
        if (!is_broker(at, len))
            ft_run_complain(run, diag, "kafka.brokers", "'%.*s' is not HOST:PORT", (int)len, at);
        at = next;
    }
    if (count == 0)
        ft_run_complain(run, diag, "kafka.brokers", "it names no broker");
}

/* Topics are named behind it: no message could be sent to one that cannot be. */
static void check_prefix(const struct ft_kafka_checked *s, const struct ft_run *run,
                         struct ft_diag *diag)
{
    const char *prefix = s->topic_prefix ? s->topic_prefix : "";
    size_t len =
        strspn(prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    size_t room = TOPIC_BYTES_MAX - strlen(s->topic);

    if (prefix[len])
        ft_run_complain(run, diag, "kafka.topic_prefix",
                        "'%s': names of topics have letters, digits, '.', '_' and '-'", prefix);
    else if (len > room)
        ft_run_complain(run, diag, "kafka.topic_prefix",
                        "longer than %zu characters, which leave room for '%s'", room, s->topic);
}

/* The line of a member of `section` in the file, as a map, as a list of NAME=VALUE or as the one
 * text; 0: the file has none. */
static unsigned line_in_file(const struct ft_yaml *root, const char *section, const char *name,
                             size_t name_len)
{
    const struct ft_yaml *members = ft_yaml_get(ft_yaml_get(root, "kafka"), section);
    bool map = members && ft_yaml_kind(members) == FT_YAML_MAP;

    if (members && ft_yaml_text(members))
        return ft_yaml_line(members);
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
    root = quiet && run && ft_run_in_file(run, key) ? ft_yaml_load(ft_run_file(run), quiet) : NULL;
    line = root ? line_in_file(root, section, item, name_len) : 0;
    ft_diag_add(diag, line ? ft_run_file(run) : "--set", line, "key '%s.%.*s': %s", key,
                (int)name_len, item, text);
    ft_yaml_free(root);
    ft_diag_free(quiet);
}

static void check_properties(const struct ft_kafka_checked *s, const struct ft_run *run,
                             struct ft_diag *diag)
{
    bool secret = false;
    char error[ERROR_BYTES];

    for (size_t i = 0; i < s->properties->count; i++) {
        const char *item = s->properties->items[i];

        secret = secret || ft_secret_setting(item);
        if (ft_kafka_check_property(item, error, sizeof(error)) < 0)
            complain(run, diag, "properties", item, error);
        else if (strncmp(item, KEY_FILE, KEY_FILE_LEN) == 0 &&
                 ft_secret_check(item + KEY_FILE_LEN, error, sizeof(error)) < 0)
            complain(run, diag, "properties", item, error);
    }
    if (secret && run && ft_run_in_file(run, "kafka.properties") &&
        ft_secret_check(ft_run_file(run), error, sizeof(error)) < 0)
        ft_run_complain(run, diag, "kafka.properties", "a secret is in a file where %s", error);
}

static void check_secrets(const struct ft_kafka_checked *s, const struct ft_run *run,
                          struct ft_diag *diag)
{
    char error[ERROR_BYTES], *property;

    for (size_t i = 0; i < s->secrets->count; i++) {
        const char *item = s->secrets->items[i];

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
static void check_spool(const struct ft_kafka_checked *s, const struct ft_run *run,
                        struct ft_diag *diag)
{
    const char *slash = strrchr(s->spool, '/');
    char *parent =
        slash ? strndup(s->spool, slash == s->spool ? 1 : (size_t)(slash - s->spool)) : strdup(".");
    struct stat st;

    if (stat(s->spool, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            ft_run_complain(run, diag, "kafka.spool", "'%s' is not a folder", s->spool);
        else if (access(s->spool, W_OK | X_OK) < 0)
            ft_run_complain(run, diag, "kafka.spool", "'%s': %s", s->spool, strerror(errno));
    } else if (parent && access(parent, W_OK | X_OK) < 0) {
        ft_run_complain(run, diag, "kafka.spool", "'%s': %s", parent, strerror(errno));
    }
    free(parent);
}

void ft_kafka_check_forms(const struct ft_kafka_checked *s, const struct ft_run *run,
                          struct ft_diag *diag)
{
    check_brokers(s, run, diag);
    if (s->spool && !*s->spool)
        ft_run_complain(run, diag, "kafka.spool", "it is empty");
}

void ft_kafka_checks(const struct ft_kafka_checked *s, const struct ft_run *run,
                     struct ft_diag *diag)
{
    ft_kafka_check_forms(s, run, diag);
    check_prefix(s, run, diag);
    check_properties(s, run, diag);
    check_secrets(s, run, diag);
    if (s->spool && *s->spool)
        check_spool(s, run, diag);
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/properties.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/secret.h"

#define REASON_BYTES 512

int ft_kafka_secret_read(const char *item, char **property, char *error, size_t error_bytes)
{
    size_t name = strcspn(item, "=");
    char *text = NULL;
    int rc;

    if (!item[name]) {
        snprintf(error, error_bytes, "'%s' is not name=FILE", item);
        return -EINVAL;
    }
    rc = ft_secret_password(item + name + 1, &text, error, error_bytes);
    if (rc == 0 && asprintf(property, "%.*s=%s", (int)name, item, text) < 0) {
        snprintf(error, error_bytes, "no memory");
        *property = NULL;
        rc = -ENOMEM;
    }
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
    return rc;
}

int ft_kafka_properties_read(const char *const *plain, size_t plain_count,
                             const char *const *secrets, size_t secret_count, char ***properties,
                             char *error, size_t error_bytes)
{
    char **list = calloc(plain_count + secret_count + 1, sizeof(*list));
    char reason[REASON_BYTES];
    int rc = list ? 0 : -ENOMEM;

    for (size_t i = 0; rc == 0 && i < plain_count; i++)
        if (!(list[i] = strdup(plain[i])))
            rc = -ENOMEM;
    if (rc < 0)
        snprintf(error, error_bytes, "no memory");
    for (size_t i = 0; rc == 0 && i < secret_count; i++) {
        rc = ft_kafka_secret_read(secrets[i], &list[plain_count + i], reason, sizeof(reason));
        if (rc < 0)
            snprintf(error, error_bytes, "kafka.secrets: %s", reason);
    }
    if (rc == 0)
        *properties = list;
    else
        ft_kafka_properties_free(list);
    return rc;
}

void ft_kafka_properties_free(char **properties)
{
    for (char **p = properties; p && *p; p++) {
        explicit_bzero(*p, strlen(*p));
        free(*p);
    }
    free(properties);
}

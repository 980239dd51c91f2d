// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_PROPERTIES_H
#define FT_IO_KAFKA_PROPERTIES_H
/*
 * The further settings of librdkafka that a program was given, with the secrets out of their files.
 */
#include <stddef.h>

/* "name=FILE" into "name=what is in it", which the caller overwrites and frees. -errno with a
 * reason. */
int ft_kafka_secret_read(const char *item, char **property, char *error, size_t error_bytes);

/* "name=value" and "name=FILE" into one list of "name=value", NULL-terminated. -errno with a reason
 * that names the file. */
int ft_kafka_properties_read(const char *const *plain, size_t plain_count,
                             const char *const *secrets, size_t secret_count, char ***properties,
                             char *error, size_t error_bytes);

/* Overwrites them. Takes NULL. */
void ft_kafka_properties_free(char **properties);

#endif

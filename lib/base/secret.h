// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_SECRET_H
#define FT_BASE_SECRET_H
/*
 * Files that hold keys and passwords, and settings that do. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

/* 0 when no more than the file's owner and group may read or write it; -errno with a complaint that
 * names no file: it cannot be looked at, or -EACCES, it is open to everybody. */
int ft_secret_check(const char *path, char *error, size_t error_bytes);

/* Whether a setting written "name=value" holds a secret by its name: ssl.key.password,
 * sasl.password, ... */
bool ft_secret_setting(const char *setting);

#endif

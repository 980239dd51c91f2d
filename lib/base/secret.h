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

/* Where a file of the settings is, PATH_MAX bytes: written "credential:NAME" it is in the service
 * manager's folder of credentials. -ENOENT: there is no such folder. */
int ft_secret_file(const char *path, char *file);

/* Reads a secret of one line out of a file or credential. *text is the caller's to free. -errno
 * with a complaint that names the file; -EINVAL: it is not 16 to 1024 printable characters, which
 * guess nobody. */
int ft_secret_read(const char *path, char **text, char *error, size_t error_bytes);

/* Likewise of what others made: 1 to 1024 printable characters. */
int ft_secret_password(const char *path, char **text, char *error, size_t error_bytes);

/* Whether a setting written "name=value" holds a secret by its name: ssl.key.password,
 * sasl.password, ... */
bool ft_secret_setting(const char *setting);

#endif

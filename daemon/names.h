// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_NAMES_H
#define FT_DAEMON_NAMES_H
/*
 * Interned names: host, job and command names repeat over thousands of flows, so each is kept once.
 * A name is cut at 63 bytes. Capped; over the cap a name is NULL (not known). Thread: one.
 */
#include <stddef.h>

struct ft_names;

struct ft_names *ft_names_new(size_t cap);
void ft_names_free(struct ft_names *names);

/* The one copy of a text, good until the names are freed; NULL for NULL, "" or when full. */
const char *ft_names_intern(struct ft_names *names, const char *text);

#endif

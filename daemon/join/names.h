// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_NAMES_H
#define FT_DAEMON_JOIN_NAMES_H
/*
 * Interned names: host, job and command names repeat over thousands of flows, so each is kept once.
 * A name is cut at 63 bytes. Capped; over the cap a name is NULL (not known). Jobs come and go for
 * ever: whoever holds names either says now and then which are in use, and the others are
 * forgotten, or holds and drops each. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>

struct ft_names;

struct ft_names *ft_names_new(size_t cap);
void ft_names_free(struct ft_names *names);

/* The one copy of a text, good until it is swept out or the names are freed; NULL for NULL, "" or
 * when full. */
const char *ft_names_intern(struct ft_names *names, const char *text);

/* Whether a sweep is worth its while: half of the room is taken. */
bool ft_names_crowded(const struct ft_names *names);

/* A sweep: after ft_names_begin(), ft_names_use() for every name that is held; ft_names_sweep()
 * then forgets those that were neither used nor interned since. NULL is ignored. */
void ft_names_begin(struct ft_names *names);
void ft_names_use(struct ft_names *names, const char *name);
void ft_names_sweep(struct ft_names *names);

/* Instead of sweeps: a name that was held as often as it is dropped is forgotten. NULL is ignored.
 */
const char *ft_names_hold(struct ft_names *names, const char *name);
void ft_names_drop(struct ft_names *names, const char *name);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_FETCH_FETCH_H
#define FT_CLI_FETCH_FETCH_H
/*
 * Asks the daemon: the request of a command, the answer parsed, every failure reported with what to
 * do.
 */
#include <stdio.h>

#include "cli/args/args.h"
#include "cli/output/answer.h"
#include "lib/base/writer.h"

/* Exit status of explain for what the daemon does not know. */
#define FT_EXIT_NOT_FOUND 1
/* And of doctor and events where something stands that needs somebody. */
#define FT_EXIT_STANDS 1
/* No exit status: the request was ended by its stop_fd or a signal, and nothing was said. */
#define FT_FETCH_ENDED (-1)

/* The window that --at names, a record of fabrictrace.window.v1 in the answer, which is the
 * caller's: 0. Else the exit status after a complaint to err: EX_USAGE where it is not kept, with
 * what is; or as of ft_fetch(). */
int ft_fetch_window(const struct ft_args *args, struct ft_answer **answer, FILE *err);

/* What a look back needs beside its events: since when windows and events are kept, 0 where none
 * is, and the events that are active now, which is the caller's. Returns as ft_fetch(). */
int ft_fetch_kept(const struct ft_args *args, uint64_t *kept_ms, struct ft_answer **active,
                  FILE *err);

/* 0 and an answer of the caller's; else, after a complaint to err, the exit status: EX_UNAVAILABLE
 * without a daemon, FT_EXIT_NOT_FOUND (of args->name
 * without a complaint), EX_NOHOST for a host that nobody knows, EX_USAGE for what
 * the daemon refuses, EX_PROTOCOL for an invalid answer, EX_OSERR without memory. */
int ft_fetch(const struct ft_args *args, struct ft_answer **answer, FILE *err);

/* Likewise the answer to this target, which is written as in a request, as the daemon gave it. */
int ft_fetch_target(const struct ft_args *args, const char *target, struct ft_answer **answer,
                    FILE *err);

/* A text as a part of such a target. */
void ft_fetch_add_text(struct ft_writer *w, const char *text);

/* Likewise, but writes the answer to this target to out, however large it is. */
int ft_fetch_save(const struct ft_args *args, const char *target, int64_t timeout_ns, FILE *out,
                  FILE *err);

#endif

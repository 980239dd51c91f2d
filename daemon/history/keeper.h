// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HISTORY_KEEPER_H
#define FT_DAEMON_HISTORY_KEEPER_H
/*
 * Keeps the history in its file: reads it at the start, writes it every few minutes in slices, and
 * at the end. What goes wrong is reported in the log, and harms nothing else. Thread: the loop's.
 */
#include "daemon/history/history.h"
#include "lib/io/loop.h"

struct ft_keeper;

/* path NULL: "history" in the folder that STATE_DIRECTORY names. events inherits those that stood
 * (ft_events_inherit), and is what the history watches. NULL: it is not kept. */
struct ft_keeper *ft_keeper_new(struct ft_loop *loop, struct ft_history *history,
                                struct ft_events *events, const char *path);

/* Writes it at once. Takes NULL. */
void ft_keeper_finish(struct ft_keeper *keeper);
void ft_keeper_free(struct ft_keeper *keeper);

#endif

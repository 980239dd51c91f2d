// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HISTORY_SNAPSHOT_H
#define FT_DAEMON_HISTORY_SNAPSHOT_H
/*
 * The history in a file, over a restart of the daemon.
 *
 * Written in slices beside the file, which it then replaces, so that a file is complete or the one
 * before; a checksum finds other damage. Of other versions of the records the events alone are
 * taken: rows are understood by the version that wrote them. Events that stood are over when they
 * are read again, unless somebody watches which stand (ft_history_watch), who then has them stand.
 * Thread: the loop's.
 */
#include <stddef.h>
#include <stdint.h>

#include "daemon/history/history.h"

struct ft_snapshot;

/* Begins to write what is kept now. NULL with a complaint. */
struct ft_snapshot *ft_snapshot_new(struct ft_history *history, const char *path, char *error,
                                    size_t error_bytes);

/* Writes the next part: 1 while there is more, 0 when the file is in place, -errno. */
int ft_snapshot_step(struct ft_snapshot *snapshot);

/* Gives up a file that is not in place. */
void ft_snapshot_free(struct ft_snapshot *snapshot);

/* Reads a file into an empty history, which is empty again when the file is broken: -EBADMSG, or
 * what open() or read() said, with a complaint. -ESTALE, likewise: of another version, the events
 * are there. */
int ft_snapshot_load(struct ft_history *history, const char *path, char *error, size_t error_bytes);

/* Likewise the bytes between its head and its checksum. Foreign. */
int ft_snapshot_decode(struct ft_history *history, const uint8_t *bytes, size_t len);

/* The same of what is kept now, in parts, for another file than the history's own: without its head
 * and checksum, for as long as ft_row_version() stays the same. NULL without memory. */
struct ft_snapshot *ft_snapshot_parts(struct ft_history *history);

/* The next part, which is good until the next call: 1; 0: that was all; -ENOMEM. */
int ft_snapshot_part(struct ft_snapshot *snapshot, const uint8_t **bytes, size_t *len);

/* Makes a history what the parts, one behind the other, say: windows are numbered from `number` on,
 * as they were, and events that stood stand. -EBADMSG, -ENOMEM: it is empty then. Foreign. */
int ft_snapshot_restore(struct ft_history *history, uint64_t number, const uint8_t *bytes,
                        size_t len);

#endif

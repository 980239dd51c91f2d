// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_SPREAD_KEPT_H
#define FT_DAEMON_SPREAD_KEPT_H
/*
 * The records of spread of a window, kept for the API in the order of what they are about: a queue
 * pair, connection or job at a group has the same position in every window, so that a list can
 * continue in the records of a later one. Capped by bytes. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/emit.h"
#include "lib/base/writer.h"
#include "proto/fabrictrace.pb-c.h"

#define FT_SPREAD_RECORDS_MAX      (1u << 15)
#define FT_SPREAD_RECORD_BYTES_MAX (7u << 19)
/* Of records and their order together. */
#define FT_SPREAD_KEPT_MAX                                                                         \
    (FT_SPREAD_RECORD_BYTES_MAX + FT_SPREAD_RECORDS_MAX * sizeof(struct ft_spread_at))

struct ft_spread_at {
    uint64_t position;
    size_t offset;
};

struct ft_spread_kept {
    struct ft_writer records;
    struct ft_spread_at *order;
    size_t count, size;
};

void ft_spread_kept_init(struct ft_spread_kept *kept);
void ft_spread_kept_free(struct ft_spread_kept *kept);
void ft_spread_kept_clear(struct ft_spread_kept *kept);

/* Adds a copy; false: there is no room. */
bool ft_spread_kept_add(struct ft_spread_kept *kept, const Fabrictrace__Record *record);

/* To be called once all are there. */
void ft_spread_kept_order(struct ft_spread_kept *kept);

/* Emits the first record whose position is *position or later; *position is its own meanwhile, and
 * behind it afterwards. Begins at 0. false: that was all. */
bool ft_spread_kept_next(const struct ft_spread_kept *kept, uint64_t *position,
                         const struct ft_emitter *emitter);

#endif

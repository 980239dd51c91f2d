// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_SPREAD_SPREAD_H
#define FT_DAEMON_SPREAD_SPREAD_H
/*
 * How queue pairs, connections (pairs of hosts) and jobs spread over the equal-cost links that they
 * could take (lib/fabric/spread.h), from the samples of a window: fabrictrace.spread.v1.
 *
 * It is measured at each group of links that lead up. The samples of the group's own switch say
 * which link a packet left by; where it takes none, those at the other ends of the links do.
 * A queue pair is a flow; where packets bear their paths and each path may have a 5-tuple of its
 * own (source_routed), it is all flows from a host to a queue pair of a NIC. Records of the last
 * closed window are kept for the API. Capped: connections and jobs in a window, queue pairs of
 * several flows and their bytes, bytes of the records that are kept. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/join/join.h"
#include "daemon/publish/emit.h"
#include "daemon/spread/kept.h"

/* Connections and jobs at one group each, in a window; queue pairs of source-routed flows likewise.
 */
#define FT_SPREAD_ENTRIES_MAX 4096
#define FT_SPREAD_QPS_MAX     4096

/* Bytes of what is known of them all, which are more where groups have more links: of 32, all find
 * room. Queue pairs have a quarter of it at most. */
#define FT_SPREAD_ROOM (61u << 17)

/* Of all of it: two windows of records, and the entries with 40 for the table (lib/base/table.h).
 */
#define FT_SPREAD_ENTRY_BYTES 72
#define FT_SPREAD_QP_BYTES    160
#define FT_SPREAD_BYTES_MAX                                                                        \
    (2 * FT_SPREAD_KEPT_MAX + FT_SPREAD_ENTRIES_MAX * FT_SPREAD_ENTRY_BYTES +                      \
     FT_SPREAD_QPS_MAX * FT_SPREAD_QP_BYTES + FT_SPREAD_ROOM)

struct ft_spread;

/* NULL without memory. */
struct ft_spread *ft_spread_new(uint64_t seed);
void ft_spread_free(struct ft_spread *s);

/* At the close of a window: begins it; takes a flow that was seen in it, and publishes its queue
 * pair where that took several links; publishes the next connection or job, false when that was
 * all: then what the window had is what is kept. */
void ft_spread_begin(struct ft_spread *s);
void ft_spread_flow(struct ft_spread *s, const struct ft_join *join, const struct ft_flow *flow,
                    const struct ft_span *span, const struct ft_emitter *emitter);
bool ft_spread_step(struct ft_spread *s, const struct ft_join *join, const struct ft_span *span,
                    const struct ft_emitter *emitter);

/* Emits the record of the last closed window at this position or behind it, as
 * ft_spread_kept_next() does. false: that was all. */
bool ft_spread_next(const struct ft_spread *s, uint64_t *position,
                    const struct ft_emitter *emitter);

/* Connections, jobs and such queue pairs, and records to be kept, that there was no room for since
 * the start. */
uint64_t ft_spread_refused(const struct ft_spread *s);

#endif

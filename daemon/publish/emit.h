// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PUBLISH_EMIT_H
#define FT_DAEMON_PUBLISH_EMIT_H
/*
 * Records of fabrictrace.proto, filled from the daemon's state and handed on.
 *
 * A record is built on the stack, borrows every name, and is good only during the call of the
 * emitter's function: who keeps it encodes it. Pure. Thread: one.
 */
#include <stdint.h>

#include "daemon/join/join.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_emitter {
    void (*record)(void *arg, const Fabrictrace__Record *record);
    void *arg;
};

/* The window that a record speaks of. */
struct ft_span {
    int64_t start_ms;
    int64_t end_ms;
};

/* A flow's rate in the last closed window that saw it, with its 95 % interval from sampling
 * (lib/fabric/volume.h, or by packet numbers); a host's own count has none. All 0 before the
 * first window. */
struct ft_rate {
    uint64_t bps, lo_bps, hi_bps;
};
struct ft_rate ft_flow_rate(const struct ft_flow *flow, int64_t window_ms);

/* How many messages it sent in the window that its bytes are of; false: not known. */
bool ft_flow_messages(const struct ft_flow *flow, uint64_t *messages);

/* The variance of its bytes, as a part of their square. */
double ft_flow_variance(const struct ft_flow *flow, int64_t window_ms);

/* The present state of a flow. */
void ft_emit_path(const struct ft_emitter *emitter, const struct ft_join *join,
                  struct ft_flow *flow, const struct ft_span *span);

/* Fills a hop's names, samples and share; one of its ends must be known. */
void ft_emit_hop(Fabrictrace__Hop *out, const struct ft_join *join, const struct ft_flow *flow,
                 const struct ft_hop *hop);

/* Fills the 5-tuple; borrows it. */
void ft_emit_tuple(Fabrictrace__Flow *out, const struct ft_tuple *tuple);

/* What each event has. What it says, of what and by which evidence, its caller sets; time_ms is
 * when this was so, since_ms since when. */
void ft_emit_event(Fabrictrace__Event *out, Fabrictrace__Kind kind, Fabrictrace__Severity severity,
                   const char *fabric, int64_t since_ms, int64_t time_ms);

/* The link that leaves by a port: both ends, and its group. */
void ft_emit_link(Fabrictrace__Evidence *out, const struct ft_topology *t, uint32_t id);

/* Whether a flow of data that a host sends fills so much of its link to the fabric, by its volume
 * in one of the last windows. */
bool ft_flow_is_elephant(const struct ft_join *join, const struct ft_flow *flow, int64_t window_ms,
                         double share);

#endif

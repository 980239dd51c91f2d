// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_FOLD_H
#define FT_SWITCHPOLL_SFLOW_FOLD_H
/*
 * Folds flow samples of one interval into Observation records.
 *
 * Samples that agree in switch, sub-agent, in and out port, 5-tuple, network of the tunnel (VNI),
 * sampling point and fate become one sum in a capped table; no memory is taken per sample once the
 * table has its size. Where a sample was taken follows from its data source: the port it came in by
 * (ingress) or the port it leaves by (egress). A source that is neither, or both, does not say; its
 * samples make a sum of their own, and the record names it: two sources of a switch may have
 * sampled the same packets (at entry and at exit), or each its own ports' (line cards), which
 * whoever adds sums up must weigh. A packet number that is lower than one of an interval before
 * counts as one that went back in it (before.h). Flushing emits in the order in which the sums
 * began, those of more than a second in the order of their last samples, to 100 ms: so equal input
 * gives equal output, and whoever compares what several sums say of one flow finds that of one time
 * together. Where not all can be sent, one flow in so many is, with all of its sums at all switches
 * and by all pollers: another in each interval, until each was sent once. Those with many samples
 * always are. Input: decoded samples. Output: records to a sink. Owner: the caller. Thread: one.
 */
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/tuple.h"
#include "proto/sflow.h"
#include "switchpoll/output/sink.h"

struct ft_fold;

/* At most `max` sums an interval. NULL without memory. */
struct ft_fold *ft_fold_new(uint64_t max, uint64_t seed);
void ft_fold_free(struct ft_fold *fold);

/* Adds a sample with a packet (has_packet). It is pending at once; samples are added to the table
 * in batches, so that their waits for memory overlap. One that finds the table full is refused. */
void ft_fold_add(struct ft_fold *fold, const struct ft_ip *agent, uint32_t sub_agent,
                 const struct ft_sflow_flow *flow, struct ft_wall when);

/* Flushes the pending batch into the table. */
void ft_fold_apply(struct ft_fold *fold);

/* From the next flush on one flow in so many is emitted; 1: all. */
void ft_fold_thin(struct ft_fold *fold, uint32_t part);

/* Samples, and sums of them, that were not emitted for that, since the fold was made. */
uint64_t ft_fold_thinned(const struct ft_fold *fold, uint64_t *sums);

/* Settles, emits an Observation for each sum and empties the table. Returns the samples of those
 * that were emitted. */
uint64_t ft_fold_flush(struct ft_fold *fold, struct ft_wall start, uint32_t interval_ms,
                       const struct ft_record_sink *sink);

/* Samples folded and not yet flushed. */
uint64_t ft_fold_pending(const struct ft_fold *fold);

/* Samples refused since the fold was made. */
uint64_t ft_fold_refused(const struct ft_fold *fold);

/* Samples whose rate or length cannot be, and was cut. */
uint64_t ft_fold_implausible(const struct ft_fold *fold);

/* Sums in the table now, and the bytes the table holds. */
uint64_t ft_fold_sums(const struct ft_fold *fold);
uint64_t ft_fold_bytes(const struct ft_fold *fold);

#endif

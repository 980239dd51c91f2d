// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_RHYTHMS_H
#define FT_DAEMON_DIAGNOSIS_RHYTHMS_H
/*
 * When jobs send, by the samples of their flows alone: the period of each, and the part of the time
 * in which it sends (lib/diagnosis/rhythm.h), as fabrictrace.rhythm.v1 at the close of a window.
 * No plugin is needed: a flow is a job's where the agent of its sender says whose queue pair it is.
 * Where it has none, a job that stands still or has become slow is diagnosed by the same (stall.h),
 * and so are pairs of its hosts that are slower than their siblings and than before (pair_rates.h).
 *
 * Several switches sample a packet: how much a job sends is not known by that, only when. What its
 * flows sent in the window stands beside it (job_sent.h). Of a job whose queue pairs were gone
 * (stall.h) nothing is known when it sends again: it is another run. Capped: jobs at a time; one
 * without samples for as long as rates are kept is forgotten. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/diagnosis/pair_rates.h"
#include "daemon/diagnosis/stall.h"
#include "daemon/join/join.h"
#include "daemon/publish/emit.h"
#include "daemon/publish/events.h"

#define FT_RHYTHMS_JOBS_MAX 256
#define FT_RHYTHMS_BIN_MS   500

struct ft_rhythms;

/* NULL without memory. */
struct ft_rhythms *ft_rhythms_new(uint64_t seed);
void ft_rhythms_free(struct ft_rhythms *r);

/* Samples of a flow of the job between two moments. */
void ft_rhythms_take(struct ft_rhythms *r, const char *job, const struct ft_observation *o);

/* What distinguishes a standstill from an end and from blindness (stall.h): an agent reported
 * a queue pair of the job, its plugin reported anything, anything at all was sampled. */
void ft_rhythms_alive(struct ft_rhythms *r, const char *job, int64_t ms);
void ft_rhythms_plugin(struct ft_rhythms *r, const char *job, int64_t ms);
void ft_rhythms_sampled(struct ft_rhythms *r, int64_t ms);

/* While a window closes, after the beginning: a flow that sent in it. */
void ft_rhythms_flow(struct ft_rhythms *r, const struct ft_join *join, const struct ft_flow *flow,
                     const struct ft_span *span);

/* After another topology was taken over, whose ports have other numbers. */
void ft_rhythms_forget_ports(struct ft_rhythms *r);

/* At the close of a window: begins, and evaluates and emits the next job, and raises the events of
 * what stands where there are events; false: that was all. */
void ft_rhythms_begin(struct ft_rhythms *r);
bool ft_rhythms_step(struct ft_rhythms *r, const char *fabric, const struct ft_span *span,
                     const struct ft_emitter *emitter, struct ft_events *events, uint32_t window);

/* Emits the next diagnosis that stands, if the next slot has one; index as below. */
bool ft_rhythms_next_stall(const struct ft_rhythms *r, const char *fabric, uint32_t *index,
                           const struct ft_emitter *emitter);

/* Diagnoses of a syndrome that stand. */
size_t ft_rhythms_stalls(const struct ft_rhythms *r, Fabrictrace__Syndrome syndrome);

/* Emits the next job as of the last closed window. index begins at 0; false: that was all. */
bool ft_rhythms_next(const struct ft_rhythms *r, const char *fabric, uint32_t *index,
                     const struct ft_emitter *emitter);

/* Observations whose job, or pair of hosts, found no room. */
uint64_t ft_rhythms_refused(const struct ft_rhythms *r);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_PIPELINE_H
#define FT_SWITCHPOLL_SFLOW_PIPELINE_H
/*
 * What a live run and a replay share: datagrams go through an ingest into an output, with a Loss
 * record at regular times and at the end. All time is handed in. Owner: the caller. Thread: the
 * loop's own.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "switchpoll/output/loss.h"
#include "switchpoll/output/output.h"
#include "switchpoll/settings.h"
#include "switchpoll/sflow/ingest.h"
#include "switchpoll/sflow/pace.h"

struct ft_sflow_pipeline;

/* source_id and output are borrowed for the pipeline's life; settings only during the call. seed
 * is for the hash tables. NULL without memory. */
struct ft_sflow_pipeline *ft_sflow_pipeline_new(const struct ft_switchpoll_settings *settings,
                                                const char *source_id, uint64_t seed,
                                                struct ft_output *output);
void ft_sflow_pipeline_free(struct ft_sflow_pipeline *p);

/* Takes over what may change while it runs: the intervals, whose sFlow is taken. */
void ft_sflow_pipeline_reload(struct ft_sflow_pipeline *p,
                              const struct ft_switchpoll_settings *settings);

/* One UDP payload, received at `when`. */
void ft_sflow_pipeline_datagram(struct ft_sflow_pipeline *p, const uint8_t *bytes, size_t len,
                                struct ft_wall when);

/* Call a few times an interval: flushes what is over, and reports the loss when it is due. */
void ft_sflow_pipeline_tick(struct ft_sflow_pipeline *p, struct ft_wall now);

/* How many records wait for the daemon, the oldest for how long, and whether there is little room
 * for more: a few times an interval. Samples are then folded over longer, or no longer so long:
 * true where that changed. */
bool ft_sflow_pipeline_pace(struct ft_sflow_pipeline *p, uint64_t waiting, int64_t waits_ns,
                            bool crowded, struct ft_mono now);

/* Over how long samples are folded now, and as configured. */
uint32_t ft_sflow_pipeline_interval_ms(const struct ft_sflow_pipeline *p, uint32_t *base_ms);

/* One flow in so many is sent in an interval. */
uint32_t ft_sflow_pipeline_part(const struct ft_sflow_pipeline *pipeline);

/* Flushes all, with a last Loss record. */
void ft_sflow_pipeline_end(struct ft_sflow_pipeline *p, struct ft_wall now);

/* What the socket lost since the program started; for the Loss records. */
void ft_sflow_pipeline_set_kernel_drops(struct ft_sflow_pipeline *p, uint64_t drops);

/* Has more accounts to add: of threads with ingests of their own. */
void ft_sflow_pipeline_set_more(struct ft_sflow_pipeline *p,
                                void (*more)(void *arg, struct ft_ingest_stats *stats), void *arg);

/* SNMP requests since the program started; for the Loss records. */
void ft_sflow_pipeline_set_snmp(struct ft_sflow_pipeline *p, const struct ft_snmp_stats *requests);

/* The accounting as it is now. */
void ft_sflow_pipeline_facts(const struct ft_sflow_pipeline *p, struct ft_loss_facts *facts);

/* Borrowed; for reading. */
const struct ft_sflow_exporters *ft_sflow_pipeline_exporters(const struct ft_sflow_pipeline *p);

#endif

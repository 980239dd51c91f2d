// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_EXPORTERS_H
#define FT_SWITCHPOLL_SFLOW_EXPORTERS_H
/*
 * Who sends sFlow, and what of it did not arrive.
 *
 * Keeps a sequence per (agent, sub-agent) for datagrams and per data source for samples. A gap is
 * what was skipped; a late datagram takes its gap back, and so does the stream that continues where
 * it was before a number that was an outlier; a sequence or uptime that goes back is a
 * restart and no gap; the same datagram twice is a duplicate. Tables are capped: an exporter that
 * does not fit is still processed, only not followed, and that is counted.
 * Inputs: decoded heads and samples. Outputs: verdicts and counts. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/tuple.h"
#include "proto/sflow.h"
#include "switchpoll/sflow/sequence.h"

/* One exporter. The totals are since it was first seen. */
struct ft_exporter {
    struct ft_ip agent;
    uint32_t sub_agent;
    uint32_t uptime_ms; /* as the newest datagram states */
    uint32_t before_ms; /* before a jump that nothing has followed yet */
    struct ft_sequence sequence;
    struct ft_wall last_seen;
    uint64_t datagrams;
    uint64_t gap; /* datagrams missing */
    uint64_t restarts;
    uint64_t duplicates;
    uint64_t reordered;
    uint64_t flow_samples;
    uint64_t samples_gap; /* flow samples missing, over all data sources */
    uint64_t agent_drops; /* samples the agent says it dropped because of missing resources */
    uint32_t epoch;       /* counts restarts, for the data sources */
    uint64_t prints[FT_SEQUENCE_WINDOW];
};

/* Over all exporters, those forgotten included. */
struct ft_sflow_exporters_stats {
    uint64_t arrived;      /* datagrams with a readable head, without duplicates */
    uint64_t flow_samples; /* in them */
    uint64_t gap;
    uint64_t samples_gap;
    uint64_t restarts;
    uint64_t duplicates;
    uint64_t reordered;
    uint64_t agent_drops;
    uint64_t untracked;         /* datagrams of exporters that the table had no room for */
    uint64_t untracked_samples; /* samples of data sources that the table had no room for */
    uint64_t odd_drops; /* counts of drops that grew by more than the packets to sample from */
    uint64_t exporters; /* now in the table */
    uint64_t sources;
};

enum ft_sflow_exporters_verdict {
    FT_EXPORTERS_FRESH,     /* new, also after a gap or a restart */
    FT_EXPORTERS_LATE,      /* out of order: process it */
    FT_EXPORTERS_DUPLICATE, /* the same datagram again: skip it */
};

struct ft_sflow_exporters;

/* NULL without memory. */
struct ft_sflow_exporters *ft_sflow_exporters_new(uint64_t exporters_max, uint64_t sources_max,
                                                  uint64_t seed);
void ft_sflow_exporters_free(struct ft_sflow_exporters *x);

/* Notes a datagram. print is a fingerprint of its bytes, that distinguishes a duplicate from a
 * clash of sequences. *exporter is NULL when the table is full. */
enum ft_sflow_exporters_verdict ft_sflow_exporters_datagram(struct ft_sflow_exporters *x,
                                                            const struct ft_sflow_head *head,
                                                            uint64_t print, struct ft_wall when,
                                                            struct ft_exporter **exporter);

/* Notes a flow sample of the datagram last noted. exporter may be NULL. */
void ft_sflow_exporters_flow(struct ft_sflow_exporters *x, struct ft_exporter *exporter,
                             const struct ft_sflow_flow *flow);

/* Forgets exporters silent for longer than this, with their data sources; of the others data
 * sources that are silent for a day longer. Whoever was seen later than now was seen before the
 * clock was set back: that counts as now. */
void ft_sflow_exporters_expire(struct ft_sflow_exporters *x, struct ft_wall now, int64_t silent_ms);

void ft_sflow_exporters_stats(const struct ft_sflow_exporters *x,
                              struct ft_sflow_exporters_stats *stats);

/* Iterates from *index (start at 0); NULL at the end. */
const struct ft_exporter *ft_sflow_exporters_next(const struct ft_sflow_exporters *x,
                                                  uint32_t *index);

#endif

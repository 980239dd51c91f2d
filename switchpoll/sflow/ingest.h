// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_INGEST_H
#define FT_SWITCHPOLL_SFLOW_INGEST_H
/*
 * From sFlow datagrams to records, with everything that enters accounted for.
 *
 * A datagram is decoded, its exporter noted and its samples folded; at the end of each interval
 * (by the time of the datagrams) the sums go to the sink. Time comes with each datagram, so a
 * replay runs in the capture's time. A datagram only a little older than the interval counts in it;
 * one much older means that the clock was set back, and the intervals begin anew there.
 * Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/config/options.h"
#include "proto/sflow.h"
#include "switchpoll/output/sink.h"
#include "switchpoll/sflow/exporters.h"
#include "switchpoll/sflow/ports.h"

struct ft_ingest_config {
    uint32_t interval_ms;
    uint64_t sums_max;
    uint64_t ports_max;
    uint64_t exporters_max;
    uint64_t sources_max;
    uint64_t seed; /* of the hash tables */
    struct ft_record_sink sink;
};

/* Datagrams: received = processed + the five that follow.
 * Samples: samples = samples_processed + samples_pending + those that follow. */
struct ft_ingest_stats {
    uint64_t datagrams;
    uint64_t datagrams_processed;
    uint64_t not_sflow_v5;
    uint64_t malformed;
    uint64_t truncated; /* ends inside its head or framing */
    uint64_t duplicate;
    uint64_t unlisted; /* of an exporter that is not in the list of those that are taken */

    uint64_t samples;
    uint64_t samples_processed;
    uint64_t samples_pending;
    uint64_t unknown_format;
    uint64_t malformed_samples;
    uint64_t not_ip; /* no tuple: another protocol, or no sampled header */
    uint64_t header_short;
    uint64_t header_bad;
    uint64_t table_full;
    uint64_t thinned;          /* the daemon cannot take them all */
    uint64_t no_port_counters; /* counter samples of neither a port nor a processor */

    uint64_t implausible;  /* flow samples whose rate or length cannot be, and was cut */
    uint64_t discards;     /* flow samples that are notifications of discarded packets */
    uint64_t usid_known;   /* flow samples whose destination was a container, and named */
    uint64_t usid_unknown; /* others: it is not known what stays of it */
    uint64_t records[FT_SFLOW_RECORD_KINDS];
    uint64_t broken_records;
    uint64_t sums;         /* in the table now */
    uint64_t sums_bytes;   /* memory the table holds */
    uint64_t observations; /* emitted */
    uint64_t ended_early;  /* intervals, since the table was nearly full */
    struct ft_ports_stats ports;
    struct ft_sflow_exporters_stats exporters;
};

struct ft_ingest;

/* NULL without memory. */
struct ft_ingest *ft_ingest_new(const struct ft_ingest_config *config);
void ft_ingest_free(struct ft_ingest *ingest);

/* Takes datagrams of these exporters alone, addresses and prefixes, by the agent address in them;
 * none: of all. -EINVAL, -ENOMEM: nothing has changed. */
int ft_ingest_take_exporters(struct ft_ingest *ingest, const struct ft_strings *exporters);

/* From now on destinations in these blocks are named by what stays of them (proto/usid.h); none: no
 * destination is. -EINVAL: nothing has changed. */
int ft_ingest_take_blocks(struct ft_ingest *ingest, const struct ft_strings *blocks,
                          uint64_t local);

/* Takes the payload of one UDP datagram, received at `when`. Returns whether it closed
 * an interval: records went to the sink. */
bool ft_ingest_datagram(struct ft_ingest *ingest, const uint8_t *bytes, size_t len,
                        struct ft_wall when);

/* Flushes the interval when it is over by `now` and nothing came to say so. Returns whether. */
bool ft_ingest_tick(struct ft_ingest *ingest, struct ft_wall now);

/* Flushes what there is. */
void ft_ingest_flush(struct ft_ingest *ingest);

/* Changes the interval, from the next one on; flushes the one that runs. Longer intervals than the
 * base are those of a daemon that is behind: they end early where the table gets full. */
void ft_ingest_set_interval(struct ft_ingest *ingest, uint32_t base_ms, uint32_t interval_ms);

/* One flow in so many is sent in an interval (fold.h). */
void ft_ingest_thin(struct ft_ingest *ingest, uint32_t part);

/* Forgets exporters that are silent for longer than this (exporters.h). */
void ft_ingest_expire(struct ft_ingest *ingest, struct ft_wall now, int64_t silent_ms);

void ft_ingest_stats(const struct ft_ingest *ingest, struct ft_ingest_stats *stats);

/* Adds one account to another, figure by figure. */
void ft_ingest_stats_add(struct ft_ingest_stats *sum, const struct ft_ingest_stats *more);

/* Borrowed; for reading. */
const struct ft_sflow_exporters *ft_ingest_exporters(const struct ft_ingest *ingest);

#endif

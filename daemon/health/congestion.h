// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HEALTH_CONGESTION_H
#define FT_DAEMON_HEALTH_CONGESTION_H
/*
 * Congestion as the hosts' RDMA ports feel it: signs of lost packets (out of sequence,
 * retransmitted, timed out) and congestion notifications, from fabrictrace.host.v1. A port is
 * congested when an interval has at least 10 of them (100 notifications) and more than five
 * standard deviations above what it usually has, taken as Poisson. What is usual is learned while
 * the port is not congested; lost packets are unusual from the start. Each congested port is an
 * active event that names its host, until three reports in a row are calm: bursts may leave every
 * other interval out. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/events.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_congestion;

/* At most ports_max ports are judged, and 1,024 of a host. NULL without memory. */
struct ft_congestion *ft_congestion_new(size_t ports_max);
void ft_congestion_free(struct ft_congestion *congestion);

/* Judges a port by its report. */
void ft_congestion_take(struct ft_congestion *congestion, const Fabrictrace__HostCounters *host,
                        int64_t now_ms);

/* What the ports of a host felt by their last reports, each growth within its interval. */
struct ft_congestion_felt {
    uint64_t out_of_sequence, retransmissions, timeouts, cnp_sent, cnp_handled;
    uint64_t not_ready; /* by the driver's own counters whose names have rnr in them */
};

/* False: none of the host's ports has reported recently. */
bool ft_congestion_of(const struct ft_congestion *congestion, const char *host, int64_t now_ms,
                      struct ft_congestion_felt *out);

/* Raises the ports that are congested, unless their last report is older than three of its
 * intervals: the next of them at most, from *index 0 on. *work: in flows of a window's close.
 * False: that was all. fabric is borrowed. */
bool ft_congestion_raise(const struct ft_congestion *congestion, uint32_t *index,
                         struct ft_events *events, uint32_t window, int64_t now_ms,
                         const char *fabric, uint32_t *work);

/* Reports of ports that were not judged, since there is no room for more. */
uint64_t ft_congestion_refused(const struct ft_congestion *congestion);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_METRICS_H
#define FT_DAEMON_API_METRICS_H
/*
 * What the daemon can show on its metrics page: one table, from which the page, the manual page and
 * the number of series come.
 */
#include "daemon/settings.h"
#include "lib/fabric/topology.h"
#include "lib/io/common_metrics.h"

/* Kinds of events that there is room for. */
#define FT_METRICS_KINDS 24

enum ft_daemon_metric {
    FT_METRIC_FABRIC_INFO = FT_METRIC_COMMON_COUNT,
    FT_METRIC_RECORDS,
    FT_METRIC_RECORDS_IMPLAUSIBLE,
    FT_METRIC_FIRST_PATH,
    FT_METRIC_FIRST_PATH_MAX,
    FT_METRIC_FLOWS,
    FT_METRIC_FLOW_TABLE_BYTES,
    FT_METRIC_TABLE_ENTRIES,
    FT_METRIC_TABLE_LIMIT,
    FT_METRIC_UNKNOWN_SWITCH,
    FT_METRIC_UNKNOWN_PORT,
    FT_METRIC_WINDOWS,
    FT_METRIC_WINDOWS_SKIPPED,
    FT_METRIC_CLOCK_SET_BACK,
    FT_METRIC_WINDOW_START,
    FT_METRIC_WINDOW_END,
    FT_METRIC_CLOSE_LAG,
    FT_METRIC_CLOSE_SECONDS,
    FT_METRIC_PATH_RECORDS,
    FT_METRIC_EVENTS,
    FT_METRIC_EVENT_SINCE,
    FT_METRIC_DETOURS_REFUSED,
    FT_METRIC_EVENTS_REFUSED,
    FT_METRIC_RANK_PAIRS_REFUSED,
    FT_METRIC_OPERATIONS_FORGOTTEN,
    FT_METRIC_QPS,
    FT_METRIC_QPS_WITHDRAWN,
    FT_METRIC_PAIRING_BYTES,
    FT_METRIC_SINK_RECORDS,
    FT_METRIC_SINK_PENDING,
    FT_METRIC_PAYLOADS,
    FT_METRIC_PEERS,
    FT_METRIC_CONNECTIONS_REFUSED,
    FT_METRIC_CROWDED_OUT,
    FT_METRIC_INCIDENT_BYTES,
    FT_METRIC_INCIDENT_SECONDS,
    FT_METRIC_INCIDENT_DROPPED,
    FT_METRIC_LINK_INFO,
    FT_METRIC_LINK_FLOWS,
    FT_METRIC_LINK_LOAD,
    FT_METRIC_LINK_SPEED,
    FT_METRIC_LINK_UTILIZATION,
    FT_METRIC_LINK_SHARE,
    FT_METRIC_LINK_CE,
    FT_METRIC_LINK_UNEXPLAINED,
    FT_METRIC_LINK_QUEUE_MAX,
    FT_METRIC_LINK_TRANSIT_MAX,
    FT_METRIC_LINK_BYTES,
    FT_METRIC_LINK_COUNTER_BYTES,
    FT_METRIC_LINK_DISCARDS,
    FT_METRIC_LINK_ERRORS,
    FT_METRIC_LINK_PAUSE_IN,
    FT_METRIC_LINK_PAUSE_OUT,
    FT_METRIC_LINK_PFC_IN,
    FT_METRIC_LINK_PFC_OUT,
    FT_METRIC_IMBALANCE_LINKS,
    FT_METRIC_IMBALANCE_GROUPS,
    FT_METRIC_IMBALANCE_IDLE_GROUPS,
    FT_METRIC_IMBALANCE_FLOWS,
    FT_METRIC_IMBALANCE_FLOWS_UNPLACED,
    FT_METRIC_IMBALANCE_BYTES,
    FT_METRIC_IMBALANCE_FIM,
    FT_METRIC_IMBALANCE_FIM_BYTES,
    FT_METRIC_IMBALANCE_FIM_EXPECTED,
    FT_METRIC_IMBALANCE_P_VALUE,
    FT_METRIC_IMBALANCE_MAX_OVER_MEAN,
    FT_METRIC_IMBALANCE_COV,
    FT_METRIC_IMBALANCE_JAIN,
    FT_METRIC_IMBALANCE_EFFECTIVE_LINKS,
    FT_METRIC_IMBALANCE_BOTTLENECK,
    FT_METRIC_IMBALANCE_VERDICT,
    FT_METRIC_SPINE_CROSSINGS,
    FT_METRIC_SPINE_CROSSINGS_SHARE,
    FT_METRIC_RAIL_CROSSINGS,
    FT_METRIC_RAIL_CROSSINGS_SHARE,
    FT_METRIC_JOB_RANKS,
    FT_METRIC_JOB_HOSTS,
    FT_METRIC_JOB_COMMUNICATORS,
    FT_METRIC_JOB_SLOW_RANKS,
    FT_METRIC_JOB_SLOWNESS,
    FT_METRIC_JOB_COLLISIONS,
    FT_METRIC_JOBS_UNTOLD,
    FT_METRIC_EVENTS_UNTOLD,
    FT_METRIC_LINKS_UNTOLD,
};

extern const struct ft_prom_table ft_daemon_metrics;

/* Whether a directed link has figures on the page (the setting metrics.links). */
bool ft_metrics_has_link(enum ft_metrics_links which, enum ft_direction direction);

/* The most series of a topology with these settings, and what they come from, for --check. The
 * topology of the file: what discovery adds is reported by the figures for each. */
uint64_t ft_metrics_series(const struct ft_settings *settings, size_t sinks,
                           const struct ft_topology *t);
void ft_metrics_print_size(const struct ft_settings *settings, size_t sinks,
                           const struct ft_topology *t, FILE *out);

#endif

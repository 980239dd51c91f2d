// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_VIEW_H
#define FT_DAEMON_API_VIEW_H
/*
 * What the HTTP API and the metrics page look at: the stages of a running daemon, borrowed. Thread:
 * the loop's.
 */
#include <stdbool.h>
#include <stdint.h>

struct ft_pipeline;
struct ft_stages;
struct ft_publisher;
struct ft_receiver;
struct ft_window_figures;
struct ft_history;
struct ft_http;
struct ft_loop;
struct ft_oracle;
struct ft_group_reader;
struct ft_orders;
struct ft_comparisons;
struct ft_recorder;
struct ft_settings;
struct ft_head;
struct ft_account;

/* Settings as they were at the start, for the metrics page. */
struct ft_view_limits {
    uint64_t flows_max, events_max, ends_max, connections_max, links_max;
    uint64_t shown_events_max, jobs_max;
};

struct ft_view {
    struct ft_pipeline *pipeline;
    const struct ft_stages *stages; /* of the pipeline */
    struct ft_publisher *publisher;
    struct ft_history *history;
    const struct ft_loop *loop;
    struct ft_http *http;           /* NULL: no port */
    struct ft_receiver *receiver;   /* NULL in a replay, and once the daemon stops */
    struct ft_group_reader *topics; /* NULL: nothing comes over Kafka */
    bool replay;                    /* of records that have ended: no more will come */
    int64_t recorded_from_ms; /* of an incident that began after its daemon; 0: of all of it */
    int64_t window_ms;        /* as it was at the start */
    struct ft_window_figures *figures;
    int64_t close_lag_ms;  /* of the last window: from its end until it was closed */
    int64_t close_took_ns; /* and its close alone */
    struct ft_view_limits limits;
    struct ft_orders *orders; /* NULL: pages follow keys alone */
    struct ft_comparisons *comparisons;
    const struct ft_oracle *oracle; /* NULL: switches are not asked */
    /* For the file of an incident. */
    struct ft_recorder *recorder;       /* NULL: nothing is kept for one */
    const struct ft_settings *settings; /* as they were at the start */
    const struct ft_head *incident_head;
    void (*add_stages)(void *arg, struct ft_account *account);
    void *add_stages_arg;
    uint32_t instance; /* distinguishes this run from others, for tags */
    uint64_t seed;     /* of the tables that an answer makes for itself */
};

#endif

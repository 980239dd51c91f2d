// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_VIEW_H
#define FT_DAEMON_API_VIEW_H
/*
 * What the HTTP API and the metrics page look at: the stages of a running daemon, borrowed. Thread:
 * the loop's.
 */
#include <stdint.h>

struct ft_pipeline;
struct ft_stages;
struct ft_publisher;
struct ft_receiver;
struct ft_store;
struct ft_history;
struct ft_http;
struct ft_loop;

struct ft_view {
    struct ft_pipeline *pipeline;
    const struct ft_stages *stages; /* of the pipeline */
    struct ft_publisher *publisher;
    struct ft_store *store;
    struct ft_history *history;
    const struct ft_loop *loop;
    const struct ft_http *http;   /* NULL: no port */
    struct ft_receiver *receiver; /* NULL in a replay, and once the daemon stops */
    int64_t window_ms;            /* as it was at the start */
    uint32_t instance;            /* reports this run of the daemon from others, for tags */
};

#endif

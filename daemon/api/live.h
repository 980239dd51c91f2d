// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_LIVE_H
#define FT_DAEMON_API_LIVE_H
/*
 * What is new, for /api/v1/stream: a message "window" when a window has closed, with the fabric's
 * imbalance record, and a message "event" with each event record. A sink of the publisher, to come
 * after the history, so that whoever hears of a window can ask for it. Thread: the loop's.
 */
#include "daemon/publish/publish.h"

struct ft_http_channel;
struct ft_live;

/* The stream as a sink, which frees it. NULL without memory. */
struct ft_sink *ft_live_new(struct ft_live **live);

/* Where it goes; NULL: nowhere (any more). */
void ft_live_to(struct ft_live *live, struct ft_http_channel *channel);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_METRICS_TEXT_H
#define FT_DAEMON_API_METRICS_TEXT_H
/*
 * The daemon's metrics page: what it sees of the fabric and how it fares itself. Labels are names
 * of a bounded kind (link, group, event, job, sink, reason), never a flow.
 */
#include "lib/base/writer.h"

struct ft_view;

void ft_metrics_text(const struct ft_view *view, struct ft_writer *w);

#endif

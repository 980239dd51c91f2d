// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_METRICS_TEXT_H
#define FT_DAEMON_API_METRICS_TEXT_H
/*
 * The daemon's own figures in Prometheus text form: accounting, flows, and the imbalance of each
 * group. Labels are names of a bounded kind (group, sink, reason), never a flow.
 */
#include "lib/base/writer.h"

struct ft_view;

void ft_metrics_text(const struct ft_view *view, struct ft_writer *w);

#endif

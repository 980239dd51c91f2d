// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_TELEMETRY_H
#define FT_SWITCHPOLL_SFLOW_TELEMETRY_H
/*
 * The program's own figures as families of its metrics page. Labels name exporters at the most,
 * never a flow. Pure: figures in, text out.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/prometheus.h"
#include "switchpoll/output/loss.h"
#include "switchpoll/sflow/exporters.h"

struct ft_telemetry {
    struct ft_loss_facts facts;
    const struct ft_sflow_exporters *const *exporters; /* tables; an exporter is in one of them */
    size_t exporter_tables;
    uint64_t sums_max, exporters_max, sources_max; /* all tables together */
    uint64_t receive_buffer_bytes;
    bool has_sender; /* records go to a daemon */
    bool connected;
    uint64_t records_repeated;             /* by a sender that went to another daemon */
    uint64_t queue_bytes, queue_bytes_max; /* of the sender */
};

/* page is of ft_poll_metrics (switchpoll/metrics.h). */
void ft_telemetry_write(const struct ft_telemetry *t, struct ft_prom *page);

#endif

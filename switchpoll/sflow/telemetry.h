// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_TELEMETRY_H
#define FT_SWITCHPOLL_SFLOW_TELEMETRY_H
/*
 * The program's own figures in the Prometheus text format (version 0.0.4). Labels name exporters at
 * the most, never a flow. Pure: figures in, text out.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/writer.h"
#include "switchpoll/output/loss.h"
#include "switchpoll/sflow/exporters.h"

struct ft_telemetry {
    struct ft_loss_facts facts;
    const struct ft_sflow_exporters *const *exporters; /* tables; an exporter is in one of them */
    size_t exporter_tables;
    uint64_t receive_buffer_bytes;
    bool has_sender; /* records go to a daemon */
    bool connected;
};

void ft_telemetry_write(const struct ft_telemetry *t, struct ft_writer *w);

#endif

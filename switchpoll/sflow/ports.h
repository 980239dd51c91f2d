// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_PORTS_H
#define FT_SWITCHPOLL_SFLOW_PORTS_H
/*
 * Counters of one interval: the last ones of each (switch, port) become a PortCounters record,
 * those of each processor a Processor record. Capped. Input: decoded generic interface counters
 * (sFlow v5 section 5.3, structure 0:1) with the Ethernet errors and LACP state of their port, and
 * processor counters. Output: records to a sink, ports first, each in the order in which it first
 * appeared. Owner: the caller. Thread: one.
 */
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/tuple.h"
#include "proto/sflow.h"
#include "switchpoll/output/sink.h"

struct ft_ports;

/* received = emitted + superseded + refused + pending; ports and processors together. */
struct ft_ports_stats {
    uint64_t received;
    uint64_t emitted;
    uint64_t superseded; /* newer ones of the same port came in the same interval */
    uint64_t refused;    /* the table was full */
    uint64_t pending;
};

/* NULL without memory. */
struct ft_ports *ft_ports_new(uint64_t max, uint64_t seed);
void ft_ports_free(struct ft_ports *ports);

/* -ENOBUFS when the table is full, here and in the next. */
int ft_ports_put(struct ft_ports *ports, const struct ft_ip *agent,
                 const struct ft_sflow_counters *counters, struct ft_wall when);

int ft_ports_put_processor(struct ft_ports *ports, const struct ft_ip *agent, uint32_t sub_agent,
                           const struct ft_sflow_processor *processor, struct ft_wall when);

void ft_ports_flush(struct ft_ports *ports, const struct ft_record_sink *sink);
void ft_ports_stats(const struct ft_ports *ports, struct ft_ports_stats *stats);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_REPORT_H
#define FT_SWITCHPOLL_SNMP_REPORT_H
/*
 * What is known of a switch, as records: a SwitchReport with its ports and neighbours, and a
 * PortCounters for each port that was counted. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "switchpoll/output/sink.h"
#include "switchpoll/snmp/device.h"

struct ft_snmp_report {
    const struct ft_device *device;
    const struct ft_ip *also; /* addresses of the switch beside those that it answers */
    size_t also_count;
    uint32_t interval_ms;
    bool reachable;
    const char *problem; /* "": none */
    const char *source;  /* id of this poller */
};

/* Emits the SwitchReport. Neighbours on a port that could not be resolved are left out; the problem
 * reports them. -ENOMEM: nothing was emitted. */
int ft_report_switch(const struct ft_snmp_report *report, struct ft_wall now,
                     const struct ft_record_sink *sink);

/* Emits the counters of this poll, unless none has moved since the last one: an agent that answers
 * the same twice has stale values, and they would stand for ports without traffic. Returns how many
 * records. */
size_t ft_report_counters(const struct ft_device *device, const struct ft_record_sink *sink);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_COUNTERS_RIG_H
#define FT_TESTS_COUNTERS_RIG_H
/*
 * Counters of ports, by themselves and through the whole pipeline in virtual time: a 2 x 2
 * leaf-spine in which leaf 0 sends, and what comes out as JSON lines.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/doctor.h"
#include "daemon/join/counters.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "proto/record.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define WINDOW_MS 10000
#define WINDOW    100
#define START_MS  (WINDOW * (int64_t)WINDOW_MS)

static struct ft_topology *topology;

static struct ft_pipeline *pipeline;

/* A poll of one port as a record. */
struct poll {
    Fabrictrace__PortCounters c;
    Fabrictrace__Record record;
    struct ft_ip agent;
};

static inline void make_poll(struct poll *p, uint32_t switch_id, uint32_t ifindex, int64_t ms,
                             uint64_t in_bytes, uint64_t out_bytes)
{
    size_t len;

    fabrictrace__port_counters__init(&p->c);
    fabrictrace__record__init(&p->record);
    p->agent = leafspine_switch_ip(switch_id);
    p->c.has_agent = p->c.has_time_ms = p->c.has_ifindex = p->c.has_source = true;
    p->c.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&p->agent, &len);
    p->c.agent.len = len;
    p->c.time_ms = (uint64_t)ms;
    p->c.ifindex = ifindex;
    p->c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SNMP;
    p->c.has_in_bytes = p->c.has_out_bytes = p->c.has_speed_bps = true;
    p->c.in_bytes = in_bytes;
    p->c.out_bytes = out_bytes;
    p->c.speed_bps = LINK_BPS;
    p->record.kind_case = FABRICTRACE__RECORD__KIND_COUNTERS;
    p->record.counters = &p->c;
}

static inline void poll(uint32_t switch_id, uint32_t ifindex, int64_t ms, uint64_t in_bytes,
                        uint64_t out_bytes)
{
    struct poll p;

    make_poll(&p, switch_id, ifindex, ms, in_bytes, out_bytes);
    p.c.has_in_pause = p.c.has_in_pfc = true;
    p.c.in_pause = out_bytes / 1000;
    p.c.in_pfc = out_bytes / 500;
    ft_pipeline_record(pipeline, &p.record, ms);
}

#endif

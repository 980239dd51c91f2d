// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORTS_MAX    64
#define STATE_ACTIVE 4 /* enum ib_port_state */

struct port {
    char device[FT_RDMA_NAME_BYTES];
    char netdev[FT_RDMA_NAME_BYTES];
    uint32_t number, driver, look;
    bool has_state, active;
    struct ft_mono time;
    size_t count;
    struct ft_rdma_counter counters[FT_RDMA_COUNTERS_MAX];
};

struct ft_rdma_ports {
    const char *sysfs;
    uint32_t look;
    size_t count;
    struct port ports[PORTS_MAX];
};

struct ft_rdma_ports *ft_rdma_ports_new(const char *sysfs)
{
    struct ft_rdma_ports *p = calloc(1, sizeof(*p));

    if (p)
        p->sysfs = sysfs;
    return p;
}

void ft_rdma_ports_free(struct ft_rdma_ports *p)
{
    free(p);
}

void ft_rdma_ports_look(struct ft_rdma_ports *p)
{
    p->look++;
}

static struct port *find_port(struct ft_rdma_ports *p, const char *device, uint32_t number)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->ports[i].number == number && strcmp(p->ports[i].device, device) == 0)
            return &p->ports[i];
    return NULL;
}

void ft_rdma_ports_note(struct ft_rdma_ports *p, const char *device, uint32_t driver,
                        const struct ft_rdma_port *info, const char *netdev)
{
    struct port *port = find_port(p, device, info->number);

    if (!port) {
        if (p->count == PORTS_MAX)
            return;
        port = &p->ports[p->count++];
        *port = (struct port){.number = info->number};
        snprintf(port->device, sizeof(port->device), "%s", device);
    }
    port->look = p->look;
    port->driver = driver;
    port->has_state = info->has_state;
    port->active = info->state == STATE_ACTIVE;
    snprintf(port->netdev, sizeof(port->netdev), "%s", netdev);
}

/* Some drivers have counters of 32 bits (mlx5 those of its queues), which begin again: from their
 * upper half to the lower one the shorter difference is the one forward. Any other way back is a
 * driver that was loaded anew. */
static uint64_t growth_of(uint64_t before, uint64_t now)
{
    const uint64_t half = UINT64_C(1) << 31;
    uint64_t wrapped = (now - before) & UINT32_MAX;

    if (now >= before)
        return now - before;
    return before >= half && before <= UINT32_MAX && wrapped < half ? wrapped : 0;
}

static void report_port(const char *sysfs, struct port *port, struct ft_mono now,
                        struct ft_wall wall,
                        void (*emit)(void *arg, const struct ft_rdma_port_report *report),
                        void *arg)
{
    struct ft_rdma_counter before[FT_RDMA_COUNTERS_MAX];
    uint64_t growth[FT_RDMA_COUNTERS_MAX] = {0};
    size_t count = port->count;
    struct ft_rdma_port_report report = {
        .device = port->device,
        .port = port->number,
        .netdev = port->netdev,
        .driver = port->driver,
        .has_state = port->has_state,
        .active = port->active,
        .speed_bps = ft_rdma_speed_bps(sysfs, port->device, port->number),
        .time = wall,
        .counters = port->counters,
        .growth = growth,
    };

    memcpy(before, port->counters, sizeof(before));
    port->count =
        ft_rdma_counters(sysfs, port->device, port->number, port->counters, FT_RDMA_COUNTERS_MAX);
    report.count = port->count;
    /* Another set of counters belongs to another driver than before. */
    if (count > 0 && count == port->count) {
        report.interval_ns = ft_mono_since_ns(now, port->time);
        for (size_t i = 0; i < count; i++)
            growth[i] = growth_of(before[i].value, port->counters[i].value);
    }
    port->time = now;
    emit(arg, &report);
}

void ft_rdma_ports_report(struct ft_rdma_ports *p, struct ft_mono now, struct ft_wall wall,
                          void (*emit)(void *arg, const struct ft_rdma_port_report *report),
                          void *arg)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->count; i++) {
        if (p->ports[i].look != p->look)
            continue;
        if (kept != i)
            p->ports[kept] = p->ports[i];
        report_port(p->sysfs, &p->ports[kept++], now, wall, emit, arg);
    }
    p->count = kept;
}

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_PORTS_H
#define FT_AGENT_RDMA_PORTS_H
/*
 * The RDMA ports of the host and what their counters grew by. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rdma/sysfs.h"
#include "lib/base/clock.h"

/* Counters of a port, with what they grew by since the report before. Lives until the callback
 * returns. */
struct ft_rdma_port_report {
    const char *device;
    uint32_t port;
    const char *netdev; /* "": none */
    uint32_t driver;    /* enum rdma_driver_id */
    bool has_state, active;
    uint64_t speed_bps; /* 0: not reported */
    struct ft_wall time;
    int64_t interval_ns; /* 0: the first report, without growth */
    size_t count;
    const struct ft_rdma_counter *counters;
    const uint64_t *growth;
};

struct ft_rdma_ports;

/* sysfs as in agent/rdma/sysfs.h, borrowed. NULL without memory. */
struct ft_rdma_ports *ft_rdma_ports_new(const char *sysfs);
void ft_rdma_ports_free(struct ft_rdma_ports *ports);

/* Starts a look at all devices; then each of their ports is noted. What is not noted is forgotten
 * with the next report. Ports beyond 64 are not reported. */
void ft_rdma_ports_look(struct ft_rdma_ports *ports);
void ft_rdma_ports_note(struct ft_rdma_ports *ports, const char *device, uint32_t driver,
                        const struct ft_rdma_port *port, const char *netdev);

/* Reads and reports every port. */
void ft_rdma_ports_report(struct ft_rdma_ports *ports, struct ft_mono now, struct ft_wall wall,
                          void (*emit)(void *arg, const struct ft_rdma_port_report *report),
                          void *arg);

#endif

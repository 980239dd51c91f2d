// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_TABLE_IMPL_H
#define FT_AGENT_RDMA_TABLE_IMPL_H
/*
 * Shared by the parts of agent/rdma/table.h alone, each of which needs only those before it: the
 * flows that queue pairs make (table_flows.c), and the queue pairs (table.c).
 */
#include "agent/rdma/sport.h"
#include "agent/rdma/table.h"
#include "lib/base/table.h"

/* Who reported the destination of a queue pair. */
enum ft_rdma_table_reporter {
    FT_RDMA_BY_NOBODY,
    FT_RDMA_BY_CM,
    FT_RDMA_BY_PACKET,
    FT_RDMA_BY_QUERY,
};

struct ft_rdma_table_qp_key {
    uint32_t device;
    uint32_t lqpn;
};

struct ft_rdma_table_qp {
    struct ft_rdma_table_qp_key key;
    uint32_t round;
    uint32_t port, rqpn, pid, domain;
    uint32_t sq_psn, rq_psn;
    uint8_t type, state;
    bool connected;
    bool asked;
    uint8_t reported_by;      /* enum ft_rdma_table_reporter */
    uint8_t port_source;      /* enum ft_rdma_source */
    bool return_port_unknown; /* nobody knows the port of the other direction */
    bool begun, gone, kernel;
    bool reported;         /* one with this key was reported */
    uint8_t reported_form; /* what of it; 0: nothing yet */
    uint16_t sport;
    struct ft_mono asked_at, reported_at;
    struct ft_wall first_seen;
    struct ft_ip src, dst;
};

struct ft_rdma_table_tuple_key {
    struct ft_tuple tuple;
    uint32_t direction;
};

struct ft_rdma_table_flow {
    struct ft_rdma_table_tuple_key key;
    uint32_t round;
    struct ft_rdma_table_qp_key qp;
    uint32_t lqpn, rqpn, pid;
    uint32_t device_port;
    uint8_t source;
    bool shared; /* by several queue pairs */
    bool reported;
    bool captured;
    struct ft_mono last_report;
    struct ft_mono captured_at;
    struct ft_wall first_seen;
};

/* What a packet of a queue pair without destination would show. */
struct ft_rdma_table_hint_key {
    struct ft_ip local;
    uint32_t dst_qp;
    uint16_t sport;
    uint16_t direction;
};

struct ft_rdma_table_hint {
    struct ft_rdma_table_hint_key key;
    struct ft_rdma_table_qp_key qp;
    bool shared;
};

struct ft_rdma_table {
    struct ft_rdma_table_config config;
    struct ft_rdma_device_port device_ports[FT_RDMA_DEVICE_PORTS_MAX];
    uint32_t device_port_count;
    bool device_port_reported[FT_RDMA_DEVICE_PORTS_MAX];
    struct ft_mono device_port_reported_at[FT_RDMA_DEVICE_PORTS_MAX];
    struct ft_rdma_end ends[FT_RDMA_ENDS_MAX];
    uint32_t ask_from;        /* where the next questions begin: nobody is left out for long */
    uint32_t round, complete; /* complete: the last that ended */
    uint32_t odd_rounds;      /* in a row */
    struct ft_table *qps, *flows, *hints;
    struct ft_rdma_table_stats stats;
};

/* A row need not name its port where the device has one alone. */
static inline uint32_t ft_rdma_table_port_of(const struct ft_rdma_table *t, uint32_t device,
                                             uint32_t port)
{
    for (uint32_t i = 0; i < t->device_port_count; i++)
        if (t->device_ports[i].device == device && (port == 0 || t->device_ports[i].port == port))
            return i;
    return FT_RDMA_DEVICE_PORTS_MAX;
}

static inline bool ft_rdma_table_can_compute(const struct ft_rdma_table *t, uint32_t device_port)
{
    return device_port < FT_RDMA_DEVICE_PORTS_MAX &&
           ft_rdma_sport_is_computable(t->device_ports[device_port].driver);
}

/* Counts a queue pair of the round that ends by what is known of it, and adds its flows or, where
 * its destination is not known, what packets of it would show. */
void ft_rdma_table_flows_of(struct ft_rdma_table *t, struct ft_rdma_table_qp *qp);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_TABLE_H
#define FT_AGENT_RDMA_TABLE_H
/*
 * The host's queue pairs and the flows that they make: rows of the kernel's lists in, flow reports
 * out, and for a flow that was captured the queue pair that it belongs to.
 *
 * A connected queue pair sends on one 5-tuple and receives on the reverse addresses. Both are known
 * once its destination is: by a query, by the connection manager, or by a captured packet. The
 * source port is computed where the driver follows the kernel's formula; what was captured counts
 * as observed. Without destination or port there is no tuple; never is one guessed.
 *
 * Work comes in rounds: begin, all rows of all devices, end. What a round does not list is gone.
 * Time is handed in. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/capture/flows.h"
#include "agent/rdma/nldev.h"
#include "agent/rdma/sysfs.h"
#include "lib/base/clock.h"
#include "lib/base/tuple.h"
#include "proto/usid.h"

struct ft_rdma_table_config {
    size_t qps_max;
    uint64_t seed;
    int64_t refresh_ns; /* between two reports of a flow that capture does not report */
    struct ft_usid_blocks blocks;
};

/* A port of a device, as the rows of a round refer to it. Copied. */
struct ft_rdma_device_port {
    uint32_t device, port;
    uint32_t driver; /* enum rdma_driver_id */
    char netdev[FT_RDMA_NAME_BYTES];
    size_t gid_count;
    struct ft_rdma_gid gids[FT_RDMA_GIDS_MAX];
};

#define FT_RDMA_DEVICE_PORTS_MAX 64

enum ft_rdma_source {
    FT_RDMA_UNKNOWN,
    FT_RDMA_COMPUTED,
    FT_RDMA_OBSERVED,
};

/* A queue pair as the other end of a question about its destination. */
struct ft_rdma_asked_for {
    uint32_t device, port, lqpn, rqpn, sq_psn, rq_psn, pid;
    bool done; /* for who asks */
};

/* What a query reports. sgid_index picks the source address. flow_label 0: none was set. */
struct ft_rdma_answer {
    struct ft_ip dst;
    uint32_t sgid_index;
    uint32_t flow_label;
    uint16_t sport; /* read from the device; 0: not reported */
};

/* A flow as a queue pair makes it. Lives until the callback returns. */
struct ft_rdma_flow {
    struct ft_tuple tuple;
    enum ft_flow_direction direction;
    enum ft_rdma_source source;
    bool has_qp; /* false: several queue pairs share the tuple */
    uint32_t lqpn, rqpn;
    uint32_t pid;       /* 0: not known, or several */
    const char *netdev; /* that has its own address; "" when not known */
    struct ft_wall first_seen;
    bool ended;
};

/* A connected queue pair as its own end knows it. */
struct ft_rdma_end {
    uint32_t lqpn, rqpn, pid;
    uint8_t state;
    uint32_t sq_psn, rq_psn;
    bool has_dst; /* then src is known too */
    struct ft_ip src, dst;
    enum ft_rdma_source source; /* of sport */
    uint16_t sport;
    struct ft_wall first_seen;
    bool begun; /* the table saw it come; else it was in the first list already */
    bool kernel;
    bool ended;
};

/* Queue pairs of the last round: listed is the sum of the next five. */
struct ft_rdma_table_stats {
    uint64_t listed;
    uint64_t resolved;
    uint64_t unconnected;        /* of a type or in a state without a peer */
    uint64_t no_destination;     /* its destination is not known */
    uint64_t no_port;            /* the driver's source port follows no known formula */
    uint64_t refused;            /* the table was full */
    uint64_t no_owner;           /* of those, neither the kernel's nor of a process seen here */
    uint64_t rows, rows_refused; /* of all rounds */
    uint64_t connected;          /* of the last round that ended, with those refused */
};

struct ft_rdma_table;

/* NULL without memory. */
struct ft_rdma_table *ft_rdma_table_new(const struct ft_rdma_table_config *config);
void ft_rdma_table_free(struct ft_rdma_table *table);
void ft_rdma_table_refresh(struct ft_rdma_table *table, int64_t refresh_ns);

/* Destinations in these blocks are named as those of captured packets are (proto/usid.h). */
void ft_rdma_table_take_blocks(struct ft_rdma_table *table, const struct ft_usid_blocks *blocks);

/* Forgets all device ports; then each again. -ENOSPC past FT_RDMA_DEVICE_PORTS_MAX. */
void ft_rdma_table_clear_ports(struct ft_rdma_table *table);
int ft_rdma_table_add_port(struct ft_rdma_table *table,
                           const struct ft_rdma_device_port *device_port);

/* The i-th device port; NULL past the last. */
const struct ft_rdma_device_port *ft_rdma_table_port_at(const struct ft_rdma_table *table,
                                                        size_t i);

void ft_rdma_table_begin(struct ft_rdma_table *table);
void ft_rdma_table_qp(struct ft_rdma_table *table, uint32_t device, const struct ft_rdma_qp *qp,
                      struct ft_wall wall);

/* After the queue pairs of its device. */
void ft_rdma_table_cm_id(struct ft_rdma_table *table, uint32_t device,
                         const struct ft_rdma_cm_id *id);

/* Connected queue pairs that were not asked about since `before`; at most max. */
size_t ft_rdma_table_to_query(struct ft_rdma_table *table, struct ft_mono before,
                              struct ft_rdma_asked_for *asked, size_t max);
void ft_rdma_table_asked(struct ft_rdma_table *table, const struct ft_rdma_asked_for *asked,
                         struct ft_mono now);
void ft_rdma_table_answer(struct ft_rdma_table *table, uint32_t device, uint32_t lqpn,
                          const struct ft_rdma_answer *answer);

/* Whether the round may end. Not while a row of it could not be read, which may be any queue pair:
 * then all that was known stays, and nothing is forgotten. Where that continues for more than three
 * rounds in a row, what is gone must not stay for ever. */
bool ft_rdma_table_may_end(struct ft_rdma_table *table, bool odd);

/* Ends the round: what it did not list is gone. */
void ft_rdma_table_end(struct ft_rdma_table *table);

/* Reports each flow that is new, due or over, but for those that capture reports. */
void ft_rdma_table_report(struct ft_rdma_table *table, struct ft_mono now,
                          void (*emit)(void *arg, const struct ft_rdma_flow *flow), void *arg);

/* Reports the connected queue pairs that came, changed or ended since they were reported, and of
 * each again after every refresh interval; up to FT_RDMA_ENDS_MAX of one device port at a time, and
 * of one without any by an empty list. */
#define FT_RDMA_ENDS_MAX 256
void ft_rdma_table_ends(struct ft_rdma_table *table, struct ft_mono now,
                        void (*emit)(void *arg, const struct ft_rdma_device_port *device_port,
                                     const struct ft_rdma_end *ends, size_t count),
                        void *arg);

/* The queue pair behind a captured flow; false when there is none, or more than one could be it.
 * The first match also gives the queue pair its destination. */
bool ft_rdma_table_match(struct ft_rdma_table *table, const struct ft_flow_report *report,
                         struct ft_mono now, struct ft_rdma_flow *flow);

void ft_rdma_table_stats(const struct ft_rdma_table *table, struct ft_rdma_table_stats *stats);

#endif

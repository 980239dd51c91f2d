// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_RDMA_IMPL_H
#define FT_AGENT_RDMA_RDMA_IMPL_H
/*
 * Shared by the parts of the RDMA source alone: what the kernel lists (rdma_lists.c); the rounds,
 * the queries for destinations and the reports (rdma.c).
 */
#include "agent/rdma/devices.h"
#include "agent/rdma/monitor.h"
#include "agent/rdma/nldev.h"
#include "agent/rdma/qpc.h"
#include "agent/rdma/query.h"
#include "agent/rdma/rdma.h"
#include "lib/io/netlink.h"

#define FT_RDMA_ASK_MAX     1024
#define FT_RDMA_QUERIED_MAX 16384

struct ft_rdma {
    struct ft_rdma_config config;
    struct ft_rdma_hooks hooks;
    struct ft_netlink *netlink;
    struct ft_rdma_monitor *monitor; /* NULL: without a loop */
    struct ft_rdma_table *table;
    struct ft_owners *owners;
    struct ft_rdma_ports *ports;
    struct ft_rdma_devices devices;
    uint64_t complete_ticks; /* when the last complete list was begun */
    bool polled, counted, opened;
    bool reported; /* of a change: a round is due */
    struct ft_mono polled_at, looked_at, counted_at, opened_at;
    struct ft_rdma_status status;
    /* Of the round at work. */
    struct ft_rdma_known *current;
    bool links_changed;
    bool odd; /* a row of queue pairs could not be read */
    /* At the last look: beyond what a port has room for, and ports beyond what there is for them.
     */
    size_t gids_refused, ports_refused;
    bool limited; /* the status' problem is what is beyond a limit */
    struct ft_wall wall;
    struct ft_mono now;
    struct ft_rdma_device_port device_port;
    uint32_t asked_lqpn, asked_rqpn;
    struct ft_rdma_qpc qpc;
    bool qpc_known;
    bool no_context; /* the kernel does not report the device's contexts */
    struct ft_rdma_asked_for asked[FT_RDMA_ASK_MAX];
    struct ft_rdma_queried queried[FT_RDMA_QUERIED_MAX];
};

/* Counts a message that was read, or could not be. */
void ft_rdma_decoded(struct ft_rdma *r, int rc);

/* Asks the kernel; message is called for each answer. -errno. */
int ft_rdma_ask(struct ft_rdma *r, enum ft_nldev_request request, uint32_t device,
                ft_netlink_message message);

/* Opens the socket, if there is something to ask; false, and the status says why not. */
bool ft_rdma_open(struct ft_rdma *r);

/* Which devices there are; then their drivers, ports and addresses. */
void ft_rdma_list_devices(struct ft_rdma *r);
void ft_rdma_look(struct ft_rdma *r);

/* Has what is beyond a limit as the status' problem, as long as something is. */
void ft_rdma_note_limits(struct ft_rdma *r);

/* 0, or what cut the list of a device short: a round that did not see everything must not forget.
 */
int ft_rdma_list_queue_pairs(struct ft_rdma *r);

#endif

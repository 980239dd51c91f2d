// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_NLDEV_H
#define FT_AGENT_RDMA_NLDEV_H
/*
 * What the kernel reports of RDMA devices over netlink (RDMA_NL_NLDEV of rdma/rdma_netlink.h), from
 * bytes to plain rows. A message is decoded completely before its first row is handed on; one with
 * a length that does not fit or a row without what identifies it is refused completely. Attributes
 * that nobody here knows are skipped; those that a kernel, a driver or a missing privilege leaves
 * out are normal. Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"

#define FT_RDMA_NAME_BYTES 64

/* Types of netlink messages. */
enum ft_nldev_request {
    FT_NLDEV_DEVICES,
    FT_NLDEV_PORTS,
    FT_NLDEV_QPS,
    FT_NLDEV_CM_IDS,
    FT_NLDEV_CHARDEV,
    FT_NLDEV_QP_RAW, /* of one queue pair; the answer is for agent/rdma/qpc.h */
    FT_NLDEV_SYSTEM, /* what the RDMA subsystem itself can do */
};

struct ft_rdma_device {
    uint32_t index;
    uint32_t ports;
    char name[FT_RDMA_NAME_BYTES];
};

struct ft_rdma_port {
    uint32_t number; /* from 1 */
    bool has_state;
    uint8_t state; /* enum ib_port_state; 4: active */
    char netdev[FT_RDMA_NAME_BYTES];
};

/* Values of enum ib_qp_type and ib_qp_state in the kernel. */
#define FT_QP_TYPE_RC   2
#define FT_QP_TYPE_UC   3
#define FT_QP_TYPE_UD   4
#define FT_QP_STATE_RTR 2
#define FT_QP_STATE_RTS 3
#define FT_QP_STATE_SQD 4

struct ft_rdma_qp {
    uint32_t port; /* 0: not reported */
    uint32_t lqpn;
    bool has_rqpn; /* of connected types only */
    uint32_t rqpn;
    bool has_type;
    uint8_t type;
    bool has_state;
    uint8_t state;
    bool has_psn;
    uint32_t sq_psn, rq_psn;
    bool has_domain;
    uint32_t domain; /* protection domain: distinguishes two of one number */
    uint32_t pid;    /* of the thread that made it; 0: none that can be seen from here */
    char kernel_name[FT_RDMA_NAME_BYTES]; /* of a queue pair of the kernel's own; else "" */
};

struct ft_rdma_cm_id {
    uint32_t port;
    bool has_lqpn;
    uint32_t lqpn;
    uint8_t state; /* of the kernel's connection manager */
    struct ft_ip src, dst;
    uint16_t sport, dport; /* 0: no address */
    uint32_t pid;
};

/* Which character device of a device a process opens, and which driver answers there. */
struct ft_rdma_chardev {
    uint64_t rdev;   /* as stat(2) has it */
    uint32_t driver; /* enum rdma_driver_id */
};

/* Notifications of the kernel, from Linux 6.12 on. */
enum ft_rdma_change {
    FT_RDMA_CHANGED, /* in a way that nobody here knows */
    FT_RDMA_CAME,
    FT_RDMA_WENT,
    FT_RDMA_ATTACHED, /* a network interface, to a port */
    FT_RDMA_DETACHED,
    FT_RDMA_RENAMED,
    FT_RDMA_INTERFACE_RENAMED,
};

/* Texts are "" where the kernel does not report them. */
struct ft_rdma_event {
    enum ft_rdma_change change;
    char device[FT_RDMA_NAME_BYTES];
    char netdev[FT_RDMA_NAME_BYTES];
};

/* The multicast group of such messages, and their type. */
#define FT_NLDEV_NOTIFY_GROUP 4
uint16_t ft_nldev_event_type(void);

/* The type of the netlink message that asks for something. */
uint16_t ft_nldev_type(enum ft_nldev_request request);

#define FT_NLDEV_ATTRIBUTES 64

/* The attributes of a request about a device (FT_NLDEV_DEVICES asks about all and FT_NLDEV_SYSTEM
 * about none; they have none); lqpn is for FT_NLDEV_QP_RAW. Returns their length. */
size_t ft_nldev_attributes(enum ft_nldev_request request, uint32_t device, uint32_t lqpn,
                           uint8_t attributes[FT_NLDEV_ATTRIBUTES]);

/* Payload of one message of an answer. 0, -EBADMSG and no row. */
int ft_nldev_device(const uint8_t *bytes, size_t len, struct ft_rdma_device *device);
int ft_nldev_port(const uint8_t *bytes, size_t len, struct ft_rdma_port *port);
int ft_nldev_chardev(const uint8_t *bytes, size_t len, struct ft_rdma_chardev *chardev);
int ft_nldev_event(const uint8_t *bytes, size_t len, struct ft_rdma_event *event);

/* As above, of lists: of a message that breaks off no row; a row that cannot be read is skipped,
 * the others are handed over, and -EBADMSG reports it. */
int ft_nldev_qps(const uint8_t *bytes, size_t len,
                 void (*row)(void *arg, const struct ft_rdma_qp *qp), void *arg);
int ft_nldev_cm_ids(const uint8_t *bytes, size_t len,
                    void (*row)(void *arg, const struct ft_rdma_cm_id *id), void *arg);

/* Of the answer to FT_NLDEV_SYSTEM: whether the kernel reports changes. As above. */
int ft_nldev_monitors(const uint8_t *bytes, size_t len, bool *monitors);

#endif

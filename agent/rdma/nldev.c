// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/nldev.h"

#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/rdma/nlattr.h"

#define QPN_MAX 0xFFFFFFu /* 24 bits: IBTA volume 1 section 9.2 */
/* rdma/rdma_netlink.h of Linux 6.12; what we are built with may be older. */
#define CMD_MONITOR       28
#define ATTR_EVENT_TYPE   102 /* u8, enum rdma_nl_notify_event_type */
#define ATTR_MONITOR_MODE 103 /* u8 */

uint16_t ft_nldev_type(enum ft_nldev_request request)
{
    static const uint16_t commands[] = {
        [FT_NLDEV_DEVICES] = RDMA_NLDEV_CMD_GET,
        [FT_NLDEV_PORTS] = RDMA_NLDEV_CMD_PORT_GET,
        [FT_NLDEV_QPS] = RDMA_NLDEV_CMD_RES_QP_GET,
        [FT_NLDEV_CM_IDS] = RDMA_NLDEV_CMD_RES_CM_ID_GET,
        [FT_NLDEV_CHARDEV] = RDMA_NLDEV_CMD_GET_CHARDEV,
        [FT_NLDEV_QP_RAW] = RDMA_NLDEV_CMD_RES_QP_GET_RAW,
        [FT_NLDEV_SYSTEM] = RDMA_NLDEV_CMD_SYS_GET,
    };

    return (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, commands[request]);
}

uint16_t ft_nldev_event_type(void)
{
    return (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, CMD_MONITOR);
}

static size_t put(uint8_t *at, uint16_t type, const void *value, uint16_t value_bytes)
{
    uint16_t len = (uint16_t)(4 + value_bytes);

    memcpy(at, &len, sizeof(len));
    memcpy(at + sizeof(len), &type, sizeof(type));
    memset(at + 4, 0, (value_bytes + 3u) & ~3u);
    memcpy(at + 4, value, value_bytes);
    return (len + 3u) & ~3u;
}

size_t ft_nldev_attributes(enum ft_nldev_request request, uint32_t device, uint32_t lqpn,
                           uint8_t attributes[FT_NLDEV_ATTRIBUTES])
{
    static const char uverbs[] = "uverbs";
    size_t n = 0;

    if (request == FT_NLDEV_DEVICES || request == FT_NLDEV_SYSTEM)
        return 0;
    n += put(attributes, RDMA_NLDEV_ATTR_DEV_INDEX, &device, sizeof(device));
    if (request == FT_NLDEV_CHARDEV)
        n += put(attributes + n, RDMA_NLDEV_ATTR_CHARDEV_TYPE, uverbs, sizeof(uverbs));
    if (request == FT_NLDEV_QP_RAW)
        n += put(attributes + n, RDMA_NLDEV_ATTR_RES_LQPN, &lqpn, sizeof(lqpn));
    return n;
}

int ft_nldev_device(const uint8_t *bytes, size_t len, struct ft_rdma_device *device)
{
    struct ft_rdma_device d = {0};
    struct ft_nlattr a;
    struct ft_reader r;
    bool bad = false, has_index = false;
    int rc;

    ft_reader_init(&r, bytes, len);
    while ((rc = ft_nlattr_next(&r, &a)) > 0) {
        switch (a.type) {
        case RDMA_NLDEV_ATTR_DEV_INDEX:
            d.index = ft_nlattr_u32(&a, &bad);
            has_index = true;
            break;
        case RDMA_NLDEV_ATTR_DEV_NAME:
            ft_nlattr_text(&a, d.name, sizeof(d.name));
            break;
        case RDMA_NLDEV_ATTR_PORT_INDEX:
            d.ports = ft_nlattr_u32(&a, &bad);
            break;
        default:
            break;
        }
    }
    if (rc || bad || !has_index || !d.name[0])
        return -EBADMSG;
    *device = d;
    return 0;
}

int ft_nldev_port(const uint8_t *bytes, size_t len, struct ft_rdma_port *port)
{
    struct ft_rdma_port p = {0};
    struct ft_nlattr a;
    struct ft_reader r;
    bool bad = false;
    int rc;

    ft_reader_init(&r, bytes, len);
    while ((rc = ft_nlattr_next(&r, &a)) > 0) {
        switch (a.type) {
        case RDMA_NLDEV_ATTR_PORT_INDEX:
            p.number = ft_nlattr_u32(&a, &bad);
            break;
        case RDMA_NLDEV_ATTR_PORT_STATE:
            p.state = ft_nlattr_u8(&a, &bad);
            p.has_state = true;
            break;
        case RDMA_NLDEV_ATTR_NDEV_NAME:
            ft_nlattr_text(&a, p.netdev, sizeof(p.netdev));
            break;
        default:
            break;
        }
    }
    if (rc || bad || p.number == 0)
        return -EBADMSG;
    *port = p;
    return 0;
}

int ft_nldev_chardev(const uint8_t *bytes, size_t len, struct ft_rdma_chardev *chardev)
{
    struct ft_rdma_chardev c = {0};
    struct ft_nlattr a;
    struct ft_reader r;
    bool bad = false, has_rdev = false;
    int rc;

    ft_reader_init(&r, bytes, len);
    while ((rc = ft_nlattr_next(&r, &a)) > 0) {
        switch (a.type) {
        case RDMA_NLDEV_ATTR_CHARDEV:
            c.rdev = ft_nlattr_u64(&a, &bad);
            has_rdev = true;
            break;
        case RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID:
            /* The header says u64, the kernel writes a u32. */
            c.driver = ft_reader_left(&a.value) == sizeof(uint64_t)
                           ? (uint32_t)ft_nlattr_u64(&a, &bad)
                           : ft_nlattr_u32(&a, &bad);
            break;
        default:
            break;
        }
    }
    if (rc || bad || !has_rdev)
        return -EBADMSG;
    *chardev = c;
    return 0;
}

int ft_nldev_event(const uint8_t *bytes, size_t len, struct ft_rdma_event *event)
{
    static const enum ft_rdma_change changes[] = {FT_RDMA_CAME,     FT_RDMA_WENT,
                                                  FT_RDMA_ATTACHED, FT_RDMA_DETACHED,
                                                  FT_RDMA_RENAMED,  FT_RDMA_INTERFACE_RENAMED};
    struct ft_rdma_event e = {.change = FT_RDMA_CHANGED};
    bool bad = false, has_type = false;
    struct ft_nlattr a;
    struct ft_reader r;
    uint8_t type;
    int rc;

    ft_reader_init(&r, bytes, len);
    while ((rc = ft_nlattr_next(&r, &a)) > 0) {
        switch (a.type) {
        case ATTR_EVENT_TYPE:
            type = ft_nlattr_u8(&a, &bad);
            e.change =
                type < sizeof(changes) / sizeof(changes[0]) ? changes[type] : FT_RDMA_CHANGED;
            has_type = true;
            break;
        case RDMA_NLDEV_ATTR_DEV_NAME:
            ft_nlattr_text(&a, e.device, sizeof(e.device));
            break;
        case RDMA_NLDEV_ATTR_NDEV_NAME:
            ft_nlattr_text(&a, e.netdev, sizeof(e.netdev));
            break;
        default:
            break;
        }
    }
    if (rc || bad || !has_type)
        return -EBADMSG;
    *event = e;
    return 0;
}

int ft_nldev_monitors(const uint8_t *bytes, size_t len, bool *monitors)
{
    bool bad = false, found = false;
    struct ft_nlattr a;
    struct ft_reader r;
    int rc;

    ft_reader_init(&r, bytes, len);
    while ((rc = ft_nlattr_next(&r, &a)) > 0)
        if (a.type == ATTR_MONITOR_MODE)
            found = ft_nlattr_u8(&a, &bad) != 0;
    if (rc || bad)
        return -EBADMSG;
    *monitors = found;
    return 0;
}

static int read_qp(struct ft_reader r, struct ft_rdma_qp *qp)
{
    bool bad = false, has_lqpn = false;
    struct ft_nlattr a;
    int rc;

    *qp = (struct ft_rdma_qp){0};
    while ((rc = ft_nlattr_next(&r, &a)) > 0) {
        switch (a.type) {
        case RDMA_NLDEV_ATTR_PORT_INDEX:
            qp->port = ft_nlattr_u32(&a, &bad);
            break;
        case RDMA_NLDEV_ATTR_RES_LQPN:
            qp->lqpn = ft_nlattr_u32(&a, &bad);
            has_lqpn = true;
            break;
        case RDMA_NLDEV_ATTR_RES_RQPN:
            qp->rqpn = ft_nlattr_u32(&a, &bad);
            qp->has_rqpn = true;
            break;
        case RDMA_NLDEV_ATTR_RES_TYPE:
            qp->type = ft_nlattr_u8(&a, &bad);
            qp->has_type = true;
            break;
        case RDMA_NLDEV_ATTR_RES_STATE:
            qp->state = ft_nlattr_u8(&a, &bad);
            qp->has_state = true;
            break;
        case RDMA_NLDEV_ATTR_RES_SQ_PSN:
            qp->sq_psn = ft_nlattr_u32(&a, &bad);
            qp->has_psn = true;
            break;
        case RDMA_NLDEV_ATTR_RES_RQ_PSN:
            qp->rq_psn = ft_nlattr_u32(&a, &bad);
            break;
        case RDMA_NLDEV_ATTR_RES_PDN:
            qp->domain = ft_nlattr_u32(&a, &bad);
            qp->has_domain = true;
            break;
        case RDMA_NLDEV_ATTR_RES_PID:
            qp->pid = ft_nlattr_u32(&a, &bad);
            break;
        case RDMA_NLDEV_ATTR_RES_KERN_NAME:
            ft_nlattr_text(&a, qp->kernel_name, sizeof(qp->kernel_name));
            break;
        default:
            break;
        }
    }
    return rc || bad || !has_lqpn || qp->lqpn > QPN_MAX || qp->rqpn > QPN_MAX ? -EBADMSG : 0;
}

/* struct sockaddr_in or sockaddr_in6 at the start of a sockaddr_storage. An address that is not set
 * or of another family is none. */
static void read_address(const struct ft_nlattr *attr, struct ft_ip *ip, uint16_t *port, bool *bad)
{
    struct ft_reader r = attr->value;
    const uint8_t *head = ft_read_bytes(&r, sizeof(sa_family_t));
    const uint8_t *address;
    sa_family_t family;
    uint16_t number;

    if (!head) {
        *bad = true;
        return;
    }
    memcpy(&family, head, sizeof(family));
    if (family != AF_INET && family != AF_INET6)
        return;
    number = ft_read_be16(&r);
    if (family == AF_INET6)
        ft_read_skip(&r, sizeof(uint32_t)); /* flow information */
    address = ft_read_bytes(&r, family == AF_INET ? 4 : 16);
    if (!address) {
        *bad = true;
        return;
    }
    *ip = family == AF_INET ? ft_ip4(address) : ft_ip6(address);
    *port = number;
}

static int read_cm_id(struct ft_reader r, struct ft_rdma_cm_id *id)
{
    bool bad = false;
    struct ft_nlattr a;
    int rc;

    *id = (struct ft_rdma_cm_id){0};
    while ((rc = ft_nlattr_next(&r, &a)) > 0) {
        switch (a.type) {
        case RDMA_NLDEV_ATTR_PORT_INDEX:
            id->port = ft_nlattr_u32(&a, &bad);
            break;
        case RDMA_NLDEV_ATTR_RES_LQPN:
            id->lqpn = ft_nlattr_u32(&a, &bad);
            id->has_lqpn = true;
            break;
        case RDMA_NLDEV_ATTR_RES_STATE:
            id->state = ft_nlattr_u8(&a, &bad);
            break;
        case RDMA_NLDEV_ATTR_RES_SRC_ADDR:
            read_address(&a, &id->src, &id->sport, &bad);
            break;
        case RDMA_NLDEV_ATTR_RES_DST_ADDR:
            read_address(&a, &id->dst, &id->dport, &bad);
            break;
        case RDMA_NLDEV_ATTR_RES_PID:
            id->pid = ft_nlattr_u32(&a, &bad);
            break;
        default:
            break;
        }
    }
    return rc || bad || id->lqpn > QPN_MAX ? -EBADMSG : 0;
}

/* Finds the list in a message and calls on_entry for each of its entries. */
static int each_entry(const uint8_t *bytes, size_t len, uint16_t list, uint16_t entry,
                      int (*on_entry)(void *arg, const struct ft_reader *entry), void *arg)
{
    struct ft_nlattr outer, inner;
    struct ft_reader r;
    int rc;

    ft_reader_init(&r, bytes, len);
    while ((rc = ft_nlattr_next(&r, &outer)) > 0) {
        if (outer.type != list)
            continue;
        while ((rc = ft_nlattr_next(&outer.value, &inner)) > 0) {
            rc = inner.type == entry ? on_entry(arg, &inner.value) : 0;
            if (rc)
                return rc;
        }
        if (rc)
            return rc;
    }
    return rc;
}

static int is_framed(void *arg, const struct ft_reader *entry)
{
    (void)arg;
    (void)entry;
    return 0;
}

struct rows {
    void (*qp)(void *arg, const struct ft_rdma_qp *qp);
    void (*cm_id)(void *arg, const struct ft_rdma_cm_id *id);
    void *arg;
    bool odd; /* one was skipped */
};

static int on_qp(void *arg, const struct ft_reader *entry)
{
    struct rows *rows = arg;
    struct ft_rdma_qp qp;

    if (read_qp(*entry, &qp))
        rows->odd = true;
    else
        rows->qp(rows->arg, &qp);
    return 0;
}

static int on_cm_id(void *arg, const struct ft_reader *entry)
{
    struct rows *rows = arg;
    struct ft_rdma_cm_id id;

    if (read_cm_id(*entry, &id))
        rows->odd = true;
    else
        rows->cm_id(rows->arg, &id);
    return 0;
}

/* A message that breaks off has no row; one row that cannot be read costs itself. */
static int each_row(const uint8_t *bytes, size_t len, uint16_t list, uint16_t entry,
                    int (*on_entry)(void *arg, const struct ft_reader *entry), struct rows *rows)
{
    int rc = each_entry(bytes, len, list, entry, is_framed, NULL);

    if (rc == 0)
        rc = each_entry(bytes, len, list, entry, on_entry, rows);
    return rc == 0 && rows->odd ? -EBADMSG : rc;
}

int ft_nldev_qps(const uint8_t *bytes, size_t len,
                 void (*row)(void *arg, const struct ft_rdma_qp *qp), void *arg)
{
    struct rows rows = {.qp = row, .arg = arg};

    return each_row(bytes, len, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY, on_qp, &rows);
}

int ft_nldev_cm_ids(const uint8_t *bytes, size_t len,
                    void (*row)(void *arg, const struct ft_rdma_cm_id *id), void *arg)
{
    struct rows rows = {.cm_id = row, .arg = arg};

    return each_row(bytes, len, RDMA_NLDEV_ATTR_RES_CM_ID, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY,
                    on_cm_id, &rows);
}

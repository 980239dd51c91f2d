// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/rdma/rdma_impl.h"
#include "lib/io/verbs.h"

#define NS_PER_S INT64_C(1000000000)
/* The kernel's module may come later than the agent. */
#define REOPEN_NS (30 * NS_PER_S)

void ft_rdma_decoded(struct ft_rdma *r, int rc)
{
    r->status.messages++;
    if (rc)
        r->status.malformed++;
}

int ft_rdma_ask(struct ft_rdma *r, enum ft_nldev_request request, uint32_t device,
                ft_netlink_message message)
{
    uint8_t attributes[FT_NLDEV_ATTRIBUTES];
    size_t len = ft_nldev_attributes(request, device, r->asked_lqpn, attributes);
    bool dump = request != FT_NLDEV_CHARDEV && request != FT_NLDEV_QP_RAW;
    int rc =
        ft_netlink_request(r->netlink, ft_nldev_type(request), dump, attributes, len, message, r);

    if (rc == -EINTR)
        r->status.lists_cut++;
    else if (rc)
        r->status.requests_failed++;
    return rc;
}

static void on_device(void *arg, const uint8_t *bytes, size_t len)
{
    struct ft_rdma *r = arg;
    struct ft_rdma_device info;
    int rc = ft_nldev_device(bytes, len, &info);

    ft_rdma_decoded(r, rc);
    if (rc == 0 && ft_rdma_devices_take(&r->devices, &info))
        r->links_changed = true;
}

static void on_chardev(void *arg, const uint8_t *bytes, size_t len)
{
    struct ft_rdma *r = arg;
    struct ft_rdma_chardev chardev;
    int rc = ft_nldev_chardev(bytes, len, &chardev);

    ft_rdma_decoded(r, rc);
    if (rc)
        return;
    r->current->rdev = chardev.rdev;
    r->current->driver = chardev.driver;
}

/* In one piece by libibverbs where the device may be opened, else slot by slot. The interfaces'
 * names are sysfs's in any case: a number would be of the device's network namespace. Returns how
 * many there are. */
static size_t read_gids(struct ft_rdma *r, uint32_t port, struct ft_rdma_gid *gids)
{
    const char *device = r->current->info.name;
    struct ft_verbs_gid found[FT_RDMA_GIDS_MAX];
    size_t count;

    r->status.by_verbs =
        r->config.verbs && ft_verbs_gids(device, port, found, FT_RDMA_GIDS_MAX, &count) == 0;
    if (!r->status.by_verbs)
        return ft_rdma_gids(r->config.sysfs, device, port, gids, FT_RDMA_GIDS_MAX);
    for (size_t i = 0; i < count && i < FT_RDMA_GIDS_MAX; i++) {
        gids[i] = (struct ft_rdma_gid){.index = found[i].index, .ip = found[i].ip};
        ft_rdma_gid_netdev(r->config.sysfs, device, port, found[i].index, gids[i].netdev);
    }
    return count;
}

static void on_port(void *arg, const uint8_t *bytes, size_t len)
{
    struct ft_rdma *r = arg;
    struct ft_rdma_port port;
    int rc = ft_nldev_port(bytes, len, &port);
    size_t gids;

    ft_rdma_decoded(r, rc);
    if (rc)
        return;
    r->device_port = (struct ft_rdma_device_port){
        .device = r->current->info.index,
        .port = port.number,
        .driver = r->current->driver,
    };
    snprintf(r->device_port.netdev, sizeof(r->device_port.netdev), "%s", port.netdev);
    gids = read_gids(r, port.number, r->device_port.gids);
    r->device_port.gid_count = gids < FT_RDMA_GIDS_MAX ? gids : FT_RDMA_GIDS_MAX;
    r->gids_refused += gids - r->device_port.gid_count;
    /* A kernel in another network namespace than the device's does not name the interface. */
    for (size_t i = 0; !r->device_port.netdev[0] && i < r->device_port.gid_count; i++)
        memcpy(r->device_port.netdev, r->device_port.gids[i].netdev, sizeof(r->device_port.netdev));
    r->ports_refused += ft_rdma_table_add_port(r->table, &r->device_port) < 0;
    ft_rdma_ports_note(r->ports, r->current->info.name, r->current->driver, &port,
                       r->device_port.netdev);
}

static void on_qp(void *arg, const struct ft_rdma_qp *qp)
{
    struct ft_rdma *r = arg;

    ft_rdma_table_qp(r->table, r->current->info.index, qp, r->wall);
}

static void on_qps(void *arg, const uint8_t *bytes, size_t len)
{
    struct ft_rdma *r = arg;
    int rc = ft_nldev_qps(bytes, len, on_qp, r);

    ft_rdma_decoded(r, rc);
    r->odd |= rc != 0;
}

static void on_cm_id(void *arg, const struct ft_rdma_cm_id *id)
{
    struct ft_rdma *r = arg;

    ft_rdma_table_cm_id(r->table, r->current->info.index, id);
}

static void on_cm_ids(void *arg, const uint8_t *bytes, size_t len)
{
    ft_rdma_decoded(arg, ft_nldev_cm_ids(bytes, len, on_cm_id, arg));
}

void ft_rdma_look(struct ft_rdma *r)
{
    r->gids_refused = r->ports_refused = 0;
    ft_rdma_table_clear_ports(r->table);
    ft_rdma_ports_look(r->ports);
    for (size_t i = 0; i < r->devices.count; i++) {
        r->current = &r->devices.list[i];
        if (r->current->driver == RDMA_DRIVER_UNKNOWN)
            ft_rdma_ask(r, FT_NLDEV_CHARDEV, r->current->info.index, on_chardev);
        ft_rdma_ask(r, FT_NLDEV_PORTS, r->current->info.index, on_port);
    }
    r->looked_at = r->now;
    r->links_changed = false;
}

void ft_rdma_note_limits(struct ft_rdma *r)
{
    char *problem = r->status.problem;
    size_t bytes = sizeof(r->status.problem);

    if (r->limited)
        problem[0] = '\0';
    r->limited = r->devices.refused || r->ports_refused || r->gids_refused;
    if (r->devices.refused)
        snprintf(problem, bytes, "%" PRIu64 " RDMA devices beyond the limit of %d are ignored",
                 r->devices.refused, FT_RDMA_DEVICES_MAX);
    else if (r->ports_refused)
        snprintf(problem, bytes,
                 "%zu ports of RDMA devices beyond the limit of %d are ignored: neither their "
                 "counters nor flows of their queue pairs are known",
                 r->ports_refused, FT_RDMA_DEVICE_PORTS_MAX);
    else if (r->gids_refused)
        snprintf(problem, bytes,
                 "%zu addresses of RDMA ports beyond the limit of %d a port are ignored: flows of "
                 "queue pairs that use them are not known",
                 r->gids_refused, FT_RDMA_GIDS_MAX);
}

bool ft_rdma_open(struct ft_rdma *r)
{
    int rc;

    if (r->netlink)
        return true;
    /* To ask where nothing is would make the kernel load its RDMA modules. */
    if (access(r->config.sysfs, F_OK)) {
        snprintf(r->status.problem, sizeof(r->status.problem), "this host has no RDMA devices");
        return false;
    }
    if (r->opened && ft_mono_since_ns(r->now, r->opened_at) < REOPEN_NS)
        return false;
    r->opened = true;
    r->opened_at = r->now;
    rc = ft_netlink_new(NETLINK_RDMA, &r->netlink);
    if (rc) {
        snprintf(r->status.problem, sizeof(r->status.problem), "the kernel lists no RDMA: %s",
                 strerror(-rc));
        return false;
    }
    r->status.problem[0] = '\0';
    /* Before the list is read, so that nothing comes in between. Few kernels have it. */
    if (r->monitor)
        ft_rdma_monitor_start(r->monitor, r->netlink);
    return true;
}

static void close_socket(struct ft_rdma *r)
{
    if (r->monitor)
        ft_rdma_monitor_stop(r->monitor);
    ft_netlink_free(r->netlink);
    r->netlink = NULL;
}

void ft_rdma_list_devices(struct ft_rdma *r)
{
    int rc;

    ft_rdma_devices_begin(&r->devices);
    rc = ft_rdma_ask(r, FT_NLDEV_DEVICES, 0, on_device);
    /* A device port may be the port of another device now. */
    if (rc == 0 && ft_rdma_devices_end(&r->devices))
        r->links_changed = true;
    if (rc && rc != -EINTR) {
        snprintf(r->status.problem, sizeof(r->status.problem), "RDMA devices: %s", strerror(-rc));
        /* The family without its devices' module refuses every request. */
        close_socket(r);
        r->limited = false;
        r->devices.refused = r->devices.count = 0;
        r->links_changed = true;
    }
}

/* 0, or what cut the list of a device short: a round that did not see everything must not forget.
 */
int ft_rdma_list_queue_pairs(struct ft_rdma *r)
{
    int rc = 0;

    r->odd = false;
    for (size_t i = 0; i < r->devices.count; i++) {
        int err;

        r->current = &r->devices.list[i];
        err = ft_rdma_ask(r, FT_NLDEV_QPS, r->current->info.index, on_qps);
        if (err && err != -ENODEV && err != -EINVAL)
            rc = err;
        ft_rdma_ask(r, FT_NLDEV_CM_IDS, r->current->info.index, on_cm_ids);
    }
    if (!ft_rdma_table_may_end(r->table, r->odd) && rc == 0)
        rc = -EBADMSG;
    return rc;
}

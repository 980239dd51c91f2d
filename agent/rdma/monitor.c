// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/monitor.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdlib.h>

#include "agent/rdma/nldev.h"
#include "lib/base/log.h"

/* A device comes with a message for itself, one for its name and one for each port. */
#define QUIET_NS INT64_C(100000000)

struct ft_rdma_monitor {
    struct ft_loop *loop;
    void (*changed)(void *arg);
    void *arg;
    struct ft_netlink_listener *listener;
    struct ft_watch *conclude;
    struct ft_rdma_monitor_stats stats;
};

static void on_quiet(void *arg)
{
    struct ft_rdma_monitor *m = arg;

    m->changed(m->arg);
}

static void look_soon(struct ft_rdma_monitor *m)
{
    if (!ft_watch_once_armed(m->conclude))
        ft_watch_once_arm(m->conclude, QUIET_NS);
}

static const char *words(enum ft_rdma_change change)
{
    switch (change) {
    case FT_RDMA_CAME:
        return "came";
    case FT_RDMA_WENT:
        return "went";
    case FT_RDMA_ATTACHED:
        return "got an interface";
    case FT_RDMA_DETACHED:
        return "lost its interface";
    case FT_RDMA_RENAMED:
        return "was renamed";
    case FT_RDMA_INTERFACE_RENAMED:
        return "has an interface that was renamed";
    case FT_RDMA_CHANGED:
        break;
    }
    return "changed";
}

void ft_rdma_monitor_message(struct ft_rdma_monitor *m, uint16_t type, const uint8_t *bytes,
                             size_t len)
{
    struct ft_rdma_event event;

    if (type != ft_nldev_event_type())
        return;
    m->stats.messages++;
    if (ft_nldev_event(bytes, len, &event)) {
        m->stats.malformed++;
        return;
    }
    ft_log(FT_LOG_DEBUG, "rdma device '%s': %s%s%s", event.device, words(event.change),
           event.netdev[0] ? ": " : "", event.netdev);
    look_soon(m);
}

static void on_message(void *arg, uint16_t type, const uint8_t *bytes, size_t len)
{
    ft_rdma_monitor_message(arg, type, bytes, len);
}

static void on_lost(void *arg)
{
    struct ft_rdma_monitor *m = arg;

    m->stats.lost++;
    look_soon(m);
}

static void on_system(void *arg, const uint8_t *bytes, size_t len)
{
    /* A message that cannot be read does not show this ability. */
    ft_nldev_monitors(bytes, len, arg);
}

struct ft_rdma_monitor *ft_rdma_monitor_new(struct ft_loop *loop, void (*changed)(void *arg),
                                            void *arg)
{
    struct ft_rdma_monitor *m = calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    m->loop = loop;
    m->changed = changed;
    m->arg = arg;
    m->conclude = ft_watch_stage(ft_watch_once(loop, on_quiet, m), "rdma");
    if (!m->conclude) {
        free(m);
        return NULL;
    }
    return m;
}

void ft_rdma_monitor_free(struct ft_rdma_monitor *m)
{
    if (!m)
        return;
    ft_rdma_monitor_stop(m);
    ft_watch_free(m->conclude);
    free(m);
}

int ft_rdma_monitor_start(struct ft_rdma_monitor *m, struct ft_netlink *netlink)
{
    const struct ft_netlink_listener_config config = {
        .protocol = NETLINK_RDMA,
        .group = FT_NLDEV_NOTIFY_GROUP,
        .message = on_message,
        .lost = on_lost,
        .arg = m,
    };
    bool monitors = false;
    int rc = ft_netlink_request(netlink, ft_nldev_type(FT_NLDEV_SYSTEM), false, NULL, 0, on_system,
                                &monitors);

    if (rc || !monitors)
        return rc ? rc : -EOPNOTSUPP;
    ft_rdma_monitor_stop(m);
    return ft_netlink_listen(m->loop, &config, &m->listener);
}

void ft_rdma_monitor_stop(struct ft_rdma_monitor *m)
{
    ft_netlink_listener_free(m->listener);
    m->listener = NULL;
}

bool ft_rdma_monitor_listens(const struct ft_rdma_monitor *m)
{
    return m->listener != NULL;
}

void ft_rdma_monitor_stats(const struct ft_rdma_monitor *m, struct ft_rdma_monitor_stats *stats)
{
    *stats = m->stats;
}

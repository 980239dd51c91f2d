// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/rdma.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/rdma/rdma_impl.h"
#include "agent/rdma/sport.h"

#define NS_PER_S   INT64_C(1000000000)
#define OWNERS_MAX 8192
/* Addresses, speeds and drivers seldom change; a new device is looked at in the same round. */
#define LOOK_NS (10 * NS_PER_S)
/* Destinations are asked for once, and again in case that a number was used anew. */
#define ASK_AGAIN_NS (30 * NS_PER_S)

static const char cannot_query[] = "queue pairs cannot be queried without CAP_SYS_PTRACE";

const char *ft_rdma_driver_name(uint32_t driver)
{
    static const char *const names[] = {
        [RDMA_DRIVER_MLX5] = "mlx5",   [RDMA_DRIVER_MLX4] = "mlx4",
        [RDMA_DRIVER_CXGB4] = "cxgb4", [RDMA_DRIVER_BNXT_RE] = "bnxt_re",
        [RDMA_DRIVER_IRDMA] = "irdma", [RDMA_DRIVER_QEDR] = "qedr",
        [RDMA_DRIVER_HNS] = "hns",     [RDMA_DRIVER_RXE] = "rxe",
        [RDMA_DRIVER_EFA] = "efa",     [RDMA_DRIVER_SIW] = "siw",
        [RDMA_DRIVER_ERDMA] = "erdma",
    };

    return driver < sizeof(names) / sizeof(names[0]) ? names[driver] : NULL;
}

static void on_change(void *arg)
{
    struct ft_rdma *r = arg;

    r->reported = true;
    r->hooks.changed(r->hooks.arg);
}

struct ft_rdma *ft_rdma_new(const struct ft_rdma_config *config, const struct ft_rdma_hooks *hooks)
{
    const struct ft_rdma_table_config table = {
        .qps_max = config->qps_max,
        .seed = config->seed,
        .refresh_ns = config->refresh_ns,
        .blocks = config->blocks,
    };
    const struct ft_owners_config owners = {
        .root = config->proc,
        .job_variable = config->job_variable,
        .owners_max = OWNERS_MAX,
    };
    struct ft_rdma *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->config = *config;
    r->devices.names = config->devices;
    r->devices.name_count = config->device_count;
    r->hooks = *hooks;
    r->table = ft_rdma_table_new(&table);
    r->owners = ft_owners_new(&owners);
    r->ports = ft_rdma_ports_new(config->sysfs);
    if (config->loop)
        r->monitor = ft_rdma_monitor_new(config->loop, on_change, r);
    if (!r->table || !r->owners || !r->ports || !r->monitor != !config->loop) {
        ft_rdma_free(r);
        return NULL;
    }
    return r;
}

void ft_rdma_free(struct ft_rdma *r)
{
    if (!r)
        return;
    ft_rdma_monitor_free(r->monitor);
    ft_netlink_free(r->netlink);
    ft_rdma_table_free(r->table);
    ft_owners_free(r->owners);
    ft_rdma_ports_free(r->ports);
    free(r);
}

void ft_rdma_configure(struct ft_rdma *r, const struct ft_rdma_config *config)
{
    r->config.interval_ns = config->interval_ns;
    r->config.counters_ns = config->counters_ns;
    r->config.refresh_ns = config->refresh_ns;
    r->config.job_variable = config->job_variable;
    r->config.query = config->query;
    if (!config->query && strcmp(r->status.problem, cannot_query) == 0)
        r->status.problem[0] = '\0';
    r->devices.names = config->devices;
    r->devices.name_count = config->device_count;
    ft_rdma_table_refresh(r->table, config->refresh_ns);
    ft_rdma_table_take_blocks(r->table, &config->blocks);
    ft_owners_job_variable(r->owners, config->job_variable);
}

static void take_answer(struct ft_rdma *r, const struct ft_rdma_asked_for *w, size_t count)
{
    const struct ft_rdma_queried *q =
        ft_rdma_query_pick(r->queried, count, w->rqpn, w->sq_psn, w->rq_psn);

    if (q) {
        const struct ft_rdma_answer answer = {
            .dst = q->dst, .sgid_index = q->sgid_index, .flow_label = q->flow_label};

        ft_rdma_table_answer(r->table, w->device, w->lqpn, &answer);
    } else {
        r->status.queries_ambiguous++;
    }
}

/* The process that a queue pair was made by; 0 when it is not known. */
static uint32_t process_of(struct ft_rdma *r, const struct ft_rdma_asked_for *w)
{
    const struct ft_owner *owner = ft_owners_get(r->owners, w->pid);

    return owner ? owner->process : 0;
}

/* Asks the process that owns one of these queue pairs about all of its own on the device. */
static void query_process(struct ft_rdma *r, const struct ft_rdma_known *d,
                          const struct ft_rdma_asked_for *first, size_t asked)
{
    const struct ft_owner *owner = ft_owners_get(r->owners, first->pid);
    size_t count = 0;
    int rc;

    /* The process is gone, or too new to be distinguished from another with its number: the next
     * round asks again. */
    if (!owner)
        return;
    rc = ft_rdma_query(r->config.proc, owner->process, d->rdev, d->driver, r->queried,
                       FT_RDMA_QUERIED_MAX, &count);
    /* Else its number may have been another's when it was asked. */
    if (rc == 0 && !ft_owners_alive(r->owners, owner))
        rc = -ESRCH;
    r->status.queries++;
    if (rc) {
        r->status.queries_failed++;
        if (rc == -EPERM && !r->limited)
            snprintf(r->status.problem, sizeof(r->status.problem), "%s", cannot_query);
    }
    for (size_t i = 0; i < asked; i++) {
        struct ft_rdma_asked_for *w = &r->asked[i];

        if (w->device != d->info.index || w->done || process_of(r, w) != owner->process)
            continue;
        w->done = true;
        ft_rdma_table_asked(r->table, w, r->now);
        if (rc == 0)
            take_answer(r, w, count);
    }
}

static void on_raw(void *arg, const uint8_t *bytes, size_t len)
{
    struct ft_rdma *r = arg;
    int rc = ft_rdma_qpc_message(bytes, len, r->asked_rqpn, &r->qpc);

    r->qpc_known = rc == 0;
    ft_rdma_decoded(r, rc == -EBADMSG ? rc : 0);
}

/* What the device itself has, which the kernel shows to whoever has CAP_NET_ADMIN. */
static bool read_context(struct ft_rdma *r, const struct ft_rdma_asked_for *w)
{
    struct ft_rdma_answer answer;
    int rc;

    r->asked_lqpn = w->lqpn;
    r->asked_rqpn = w->rqpn;
    r->qpc_known = false;
    rc = ft_rdma_ask(r, FT_NLDEV_QP_RAW, w->device, on_raw);
    if (rc == -EPERM || rc == -EOPNOTSUPP)
        r->no_context = true;
    if (rc || !r->qpc_known)
        return false;
    answer = (struct ft_rdma_answer){
        .dst = r->qpc.dst, .sgid_index = r->qpc.sgid_index, .sport = r->qpc.sport};
    ft_rdma_table_answer(r->table, w->device, w->lqpn, &answer);
    return true;
}

/* Each query may be a command to firmware: so many a round, the others in the next. */
static void query(struct ft_rdma *r)
{
    const struct ft_mono before = {r->now.ns - ASK_AGAIN_NS};
    size_t asked = ft_rdma_table_to_query(r->table, before, r->asked, FT_RDMA_ASK_MAX);

    for (size_t i = 0; i < asked; i++) {
        const struct ft_rdma_asked_for *w = &r->asked[i];
        const struct ft_rdma_known *d = ft_rdma_devices_find(&r->devices, w->device);

        if (!d || w->done)
            continue;
        if (d->driver == RDMA_DRIVER_MLX5 && !r->no_context && read_context(r, w))
            ft_rdma_table_asked(r->table, w, r->now);
        else if (d->rdev)
            query_process(r, d, w, asked);
    }
}

/* proc(5): start times of processes are in these, rounded down. */
static uint64_t boot_ticks(void)
{
    struct timespec now;
    uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * hz + (uint64_t)now.tv_nsec * hz / NS_PER_S;
}

void ft_rdma_poll(struct ft_rdma *r, struct ft_mono now, struct ft_wall wall)
{
    uint64_t ticks = boot_ticks();
    struct ft_mono start;

    if (r->polled && !r->reported &&
        ft_mono_since_ns(now, r->polled_at) + r->config.interval_ns / 10 < r->config.interval_ns)
        return;
    if (r->reported)
        r->links_changed = true;
    r->reported = false;
    r->polled = true;
    r->polled_at = now;
    r->now = now;
    r->wall = wall;
    ft_owners_round(r->owners, ticks);
    start = ft_mono_now();
    if (ft_rdma_open(r))
        ft_rdma_list_devices(r);
    if (r->links_changed || ft_mono_since_ns(now, r->looked_at) >= LOOK_NS)
        ft_rdma_look(r);
    ft_rdma_note_limits(r);
    ft_rdma_table_begin(r->table);
    if (!r->netlink || ft_rdma_list_queue_pairs(r) == 0) {
        if (r->netlink && r->config.query)
            query(r);
        ft_rdma_table_end(r->table);
        r->complete_ticks = ticks;
    } else {
        /* The flows are still those of the round before, and so are their owners. */
        ft_owners_round(r->owners, r->complete_ticks);
    }
    r->status.rounds++;
    r->status.round_ns += (uint64_t)ft_mono_since_ns(ft_mono_now(), start);
}

static void add_owner(struct ft_rdma *r, struct ft_flow_report *report,
                      const struct ft_rdma_flow *flow)
{
    const struct ft_owner *owner = NULL;

    if (flow->pid)
        owner = flow->ended ? ft_owners_last(r->owners, flow->pid)
                            : ft_owners_get(r->owners, flow->pid);
    report->has_qp = flow->has_qp;
    report->lqpn = flow->lqpn;
    report->rqpn = flow->rqpn;
    if (!owner)
        return;
    report->pid = owner->process;
    report->comm = owner->comm;
    report->job = owner->job[0] ? owner->job : NULL;
}

void ft_rdma_annotate(struct ft_rdma *r, struct ft_flow_report *report, struct ft_mono now)
{
    struct ft_rdma_flow flow;

    if (!ft_rdma_table_match(r->table, report, now, &flow))
        return;
    add_owner(r, report, &flow);
    /* Quiet is not over while the queue pair is there. */
    report->ended = false;
}

struct reporting {
    struct ft_rdma *rdma;
    struct ft_wall wall;
};

static void on_flow(void *arg, const struct ft_rdma_flow *flow)
{
    const struct reporting *reporting = arg;
    struct ft_flow_report report = {
        .tuple = flow->tuple,
        .direction = flow->direction,
        .time = reporting->wall,
        .first_seen = flow->first_seen,
        .uncounted = true,
        .computed = flow->source == FT_RDMA_COMPUTED,
        .ended = flow->ended,
    };

    add_owner(reporting->rdma, &report, flow);
    reporting->rdma->hooks.flow(reporting->rdma->hooks.arg, &report, flow->netdev);
}

static void on_ends(void *arg, const struct ft_rdma_device_port *device_port,
                    const struct ft_rdma_end *ends, size_t count)
{
    const struct reporting *reporting = arg;
    struct ft_rdma *r = reporting->rdma;
    const struct ft_rdma_known *d = ft_rdma_devices_find(&r->devices, device_port->device);
    struct ft_rdma_table_stats stats;
    struct ft_rdma_ends_report report = {
        .time = reporting->wall,
        .interval_ns = r->config.refresh_ns,
        .device = d ? d->info.name : "",
        .device_port = device_port,
        .computed = ft_rdma_sport_is_computable(device_port->driver),
        .ends = ends,
        .count = count,
    };

    ft_rdma_table_stats(r->table, &stats);
    report.listed = stats.connected;
    for (size_t i = 0; i < count; i++)
        report.owners[i] =
            ends[i].pid && !ends[i].ended ? ft_owners_get(r->owners, ends[i].pid) : NULL;
    if (d)
        r->hooks.ends(r->hooks.arg, &report);
}

void ft_rdma_report(struct ft_rdma *r, struct ft_mono now, struct ft_wall wall)
{
    struct reporting reporting = {r, wall};

    r->now = now;
    ft_rdma_table_report(r->table, now, on_flow, &reporting);
    if (r->hooks.ends)
        ft_rdma_table_ends(r->table, now, on_ends, &reporting);
    if (r->counted &&
        ft_mono_since_ns(now, r->counted_at) + r->config.counters_ns / 20 < r->config.counters_ns)
        return;
    r->counted = true;
    r->counted_at = now;
    ft_rdma_ports_report(r->ports, now, wall, r->hooks.port, r->hooks.arg);
}

void ft_rdma_account(const struct ft_rdma *r, struct ft_account *account)
{
    struct ft_account_stage *stage = ft_account_stage(account, "rdma_messages", "messages");
    struct ft_rdma_table_stats table;
    struct ft_rdma_status status;

    ft_rdma_status(r, &status);
    stage->received = status.messages;
    stage->processed = status.messages - status.malformed;
    ft_account_drop(stage, "malformed", status.malformed);
    ft_rdma_table_stats(r->table, &table);
    stage = ft_account_stage(account, "rdma_rows", "rows");
    stage->received = table.rows;
    stage->processed = table.rows - table.rows_refused;
    ft_account_drop(stage, "table_full", table.rows_refused);
}

void ft_rdma_status(const struct ft_rdma *r, struct ft_rdma_status *status)
{
    struct ft_rdma_monitor_stats monitor;

    *status = r->status;
    status->devices = r->devices.count;
    for (size_t i = 0; i < r->devices.count; i++)
        status->has_contexts =
            status->has_contexts || r->devices.list[i].driver == RDMA_DRIVER_MLX5;
    status->no_context = r->no_context;
    ft_owners_stats(r->owners, &status->owners);
    if (r->monitor) {
        ft_rdma_monitor_stats(r->monitor, &monitor);
        status->notified = ft_rdma_monitor_listens(r->monitor);
        status->messages += monitor.messages;
        status->malformed += monitor.malformed;
    }
    ft_rdma_table_stats(r->table, &status->table);
}

const char *ft_rdma_problem(const struct ft_rdma *r)
{
    return r->status.problem;
}

static void add_interface(struct ft_rdma_port_view *view, const char *name)
{
    if (!name[0] || view->interface_count == FT_RDMA_VIEW_INTERFACES)
        return;
    for (size_t i = 0; i < view->interface_count; i++)
        if (strcmp(view->interfaces[i], name) == 0)
            return;
    view->interfaces[view->interface_count++] = name;
}

bool ft_rdma_port_at(const struct ft_rdma *r, size_t i, struct ft_rdma_port_view *view)
{
    const struct ft_rdma_device_port *device_port = ft_rdma_table_port_at(r->table, i);
    const struct ft_rdma_known *d =
        device_port ? ft_rdma_devices_find(&r->devices, device_port->device) : NULL;

    if (!device_port)
        return false;
    *view = (struct ft_rdma_port_view){
        .device = d ? d->info.name : "",
        .port = device_port->port,
        .driver = ft_rdma_driver_name(device_port->driver),
        .computed = ft_rdma_sport_is_computable(device_port->driver),
    };
    for (size_t g = 0; g < device_port->gid_count; g++)
        add_interface(view, device_port->gids[g].netdev);
    add_interface(view, device_port->netdev);
    return true;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/engine.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/capture/aggregates.h"
#include "agent/jobs/jobs.h"
#include "agent/report/status.h"

/* How soon a member of an aggregate that went down is not named any more. */
#define LOOK_NS INT64_C(2000000000)

struct ft_engine {
    struct ft_interfaces *interfaces;
    struct ft_flows *flows;
    struct ft_capture *capture;
    struct ft_uplink *uplink;
    struct ft_jobs *jobs;
    struct ft_aggregates *aggregates; /* NULL: a replay */
    struct ft_mono looked_at;
    struct ft_rdma *rdma; /* NULL: off, or a replay */
    void (*rdma_changed)(void *arg);
    void *rdma_changed_arg;
    bool has_interfaces, query; /* configured */
    bool probes;                /* those that the daemon asks for */
    const char *user;           /* NULL: nothing is reported of what is seen */
    unsigned held;
    bool no_trace, status_sent;
    uint64_t no_owner; /* queue pairs at the last status */
    struct ft_mono now;
    int64_t tick_ns, loss_ns;
    struct ft_mono last_loss;
};

/* Hands on a report with the members of the aggregate that its interface is. */
static void send_flow(struct ft_engine *engine, struct ft_flow_report *report,
                      const char *interface)
{
    const struct ft_aggregate *a =
        engine->aggregates ? ft_aggregates_get(engine->aggregates, interface) : NULL;

    if (a && report->direction == FT_FLOW_TX) {
        report->members = a->sending;
        report->member_count = a->sending_count;
    } else if (a && report->direction == FT_FLOW_RX) {
        report->members = a->receiving;
        report->member_count = a->receiving_count;
    }
    ft_uplink_flow(engine->uplink, report, interface);
}

static void emit(void *arg, const struct ft_flow_report *report)
{
    struct ft_engine *engine = arg;
    struct ft_flow_report known = *report;

    if (engine->rdma)
        ft_rdma_annotate(engine->rdma, &known, engine->now);
    send_flow(engine, &known, ft_interfaces_name(engine->interfaces, report->interface));
}

static void emit_rdma_flow(void *arg, const struct ft_flow_report *report, const char *netdev)
{
    struct ft_flow_report known = *report;

    send_flow(arg, &known, netdev);
}

static void emit_rdma_port(void *arg, const struct ft_rdma_port_report *report)
{
    struct ft_engine *engine = arg;

    ft_uplink_host(engine->uplink, report);
}

static void emit_rdma_ends(void *arg, const struct ft_rdma_ends_report *report)
{
    struct ft_engine *engine = arg;

    ft_uplink_queue_pairs(engine->uplink, report);
}

static void take_blocks(struct ft_engine *engine, const struct ft_agent_settings *settings)
{
    const struct ft_usid_blocks blocks = ft_agent_blocks(settings);

    ft_capture_take_blocks(engine->capture, &blocks);
}

struct ft_engine *ft_engine_new(const struct ft_agent_settings *settings, uint64_t seed,
                                struct ft_uplink *uplink)
{
    struct ft_flows_config flows = ft_agent_flows_config(settings, seed);
    struct ft_engine *engine = calloc(1, sizeof(*engine));

    if (!engine)
        return NULL;
    engine->uplink = uplink;
    engine->tick_ns = settings->tick_ns;
    engine->loss_ns = settings->loss_ns;
    engine->has_interfaces = settings->interfaces.count > 0;
    engine->probes = settings->probe_daemon && !settings->topics.brokers;
    engine->query = settings->rdma_query;
    engine->interfaces = ft_interfaces_new();
    engine->flows = ft_flows_new(&flows, emit, engine);
    if (engine->interfaces && engine->flows)
        engine->capture = ft_capture_new(engine->interfaces, engine->flows);
    if (!engine->capture) {
        ft_engine_free(engine);
        return NULL;
    }
    take_blocks(engine, settings);
    return engine;
}

void ft_engine_free(struct ft_engine *engine)
{
    if (!engine)
        return;
    ft_capture_free(engine->capture);
    ft_flows_free(engine->flows);
    ft_interfaces_free(engine->interfaces);
    ft_rdma_free(engine->rdma);
    ft_aggregates_free(engine->aggregates);
    free(engine);
}

void ft_engine_start(struct ft_engine *engine, struct ft_mono now)
{
    engine->last_loss = now;
}

int ft_engine_watch_aggregates(struct ft_engine *engine, const char *root)
{
    engine->aggregates = ft_aggregates_new(root);
    return engine->aggregates ? 0 : -ENOMEM;
}

void ft_engine_configure(struct ft_engine *engine, const struct ft_agent_settings *settings)
{
    struct ft_flows_config flows = ft_agent_flows_config(settings, 0);

    ft_flows_configure(engine->flows, &flows);
    engine->tick_ns = settings->tick_ns;
    engine->loss_ns = settings->loss_ns;
    engine->has_interfaces = settings->interfaces.count > 0;
    engine->probes = settings->probe_daemon && !settings->topics.brokers;
    engine->query = settings->rdma_query;
    take_blocks(engine, settings);
    if (engine->jobs)
        ft_jobs_refresh(engine->jobs, settings->refresh_ns);
    if (engine->rdma) {
        const struct ft_rdma_config rdma = ft_agent_rdma_config(settings, 0);

        ft_rdma_configure(engine->rdma, &rdma);
    }
}

static void on_rdma_change(void *arg)
{
    struct ft_engine *engine = arg;

    engine->rdma_changed(engine->rdma_changed_arg);
}

int ft_engine_start_rdma(struct ft_engine *engine, const struct ft_agent_settings *settings,
                         uint64_t seed, struct ft_loop *loop, void (*changed)(void *arg), void *arg)
{
    struct ft_rdma_config rdma = ft_agent_rdma_config(settings, seed);
    const struct ft_rdma_hooks hooks = {emit_rdma_flow, emit_rdma_port, emit_rdma_ends,
                                        on_rdma_change, engine};

    rdma.loop = loop;
    engine->rdma_changed = changed;
    engine->rdma_changed_arg = arg;
    engine->rdma = ft_rdma_new(&rdma, &hooks);
    return engine->rdma ? 0 : -ENOMEM;
}

/* Nothing that was gathered for the uplink may point to what a look replaces. */
static void look_at_aggregates(struct ft_engine *engine, bool now_at_all)
{
    if (!engine->aggregates ||
        (!now_at_all && ft_mono_since_ns(engine->now, engine->looked_at) < LOOK_NS))
        return;
    ft_uplink_flush(engine->uplink);
    ft_aggregates_look(engine->aggregates);
    engine->looked_at = engine->now;
}

int ft_engine_rdma_round(struct ft_engine *engine, struct ft_mono now, struct ft_wall wall)
{
    engine->now = now;
    look_at_aggregates(engine, true);
    ft_rdma_poll(engine->rdma, now, wall);
    ft_rdma_report(engine->rdma, now, wall);
    return ft_uplink_flush(engine->uplink);
}

const struct ft_rdma *ft_engine_rdma(const struct ft_engine *engine)
{
    return engine->rdma;
}

struct ft_interfaces *ft_engine_interfaces(struct ft_engine *engine)
{
    return engine->interfaces;
}

struct ft_flows *ft_engine_flows(struct ft_engine *engine)
{
    return engine->flows;
}

struct ft_capture *ft_engine_capture(struct ft_engine *engine)
{
    return engine->capture;
}

void ft_engine_set_jobs(struct ft_engine *engine, struct ft_jobs *jobs)
{
    engine->jobs = jobs;
}

void ft_engine_account(struct ft_engine *engine, struct ft_account *account)
{
    struct ft_flows_stats flows;
    struct ft_account_stage *stage;

    *account = (struct ft_account){0};
    ft_capture_account(engine->capture, account);
    ft_flows_stats(engine->flows, &flows);
    stage = ft_account_stage(account, "flows", "flows");
    stage->received = flows.created;
    stage->processed = flows.ended;
    stage->pending = flows.active;
    if (engine->jobs)
        ft_jobs_account(engine->jobs, account);
    if (engine->rdma)
        ft_rdma_account(engine->rdma, account);
    ft_uplink_account(engine->uplink, account);
}

/* The drivers of the host's devices, each once. */
static size_t list_drivers(const struct ft_rdma *rdma, struct ft_missing_driver *drivers,
                           size_t max)
{
    struct ft_rdma_port_view view;
    size_t count = 0;

    for (size_t i = 0; ft_rdma_port_at(rdma, i, &view); i++) {
        bool known = false;

        for (size_t d = 0; d < count; d++)
            known = known || drivers[d].name == view.driver;
        if (!known && count < max)
            drivers[count++] = (struct ft_missing_driver){view.driver, view.computed};
    }
    return count;
}

size_t ft_engine_missing(struct ft_engine *engine,
                         struct ft_missing missing_capabilities[FT_MISSING_MAX])
{
    struct ft_missing_driver drivers[FT_MISSING_MAX];
    struct ft_capture_stats capture = {0};
    struct ft_rdma_status rdma;
    struct ft_sight sight = {
        .held = engine->held,
        .interfaces = engine->has_interfaces,
        .query = engine->query,
        .no_trace = engine->no_trace,
        .drivers = drivers,
    };

    for (size_t i = 0; !sight.captures && ft_capture_stats(engine->capture, i, &capture); i++)
        sight.captures = capture.configured;
    if (engine->rdma) {
        ft_rdma_status(engine->rdma, &rdma);
        sight.devices = rdma.devices;
        sight.driver_count = list_drivers(engine->rdma, drivers, FT_MISSING_MAX);
        sight.has_contexts = rdma.has_contexts;
        sight.no_context = rdma.no_context;
        sight.connected = rdma.table.listed - rdma.table.unconnected - rdma.table.refused;
        sight.no_destination = rdma.table.no_destination;
        /* A process that exits leaves queue pairs without owner for a moment. */
        sight.no_owner =
            rdma.table.no_owner < engine->no_owner ? rdma.table.no_owner : engine->no_owner;
        sight.owners = rdma.owners.known;
        sight.denied = rdma.owners.denied;
        sight.hidden = rdma.owners.hidden;
    }
    return ft_missing_list(&sight, missing_capabilities);
}

/* Aggregates are known once somebody asks: here for those that no flow goes over yet. */
static void ask_for_aggregates(struct ft_engine *engine)
{
    struct ft_rdma_port_view view;
    struct ft_capture_stats capture;

    for (size_t i = 0; engine->rdma && ft_rdma_port_at(engine->rdma, i, &view); i++)
        for (size_t n = 0; n < view.interface_count; n++)
            ft_aggregates_get(engine->aggregates, view.interfaces[n]);
    for (size_t i = 0; ft_capture_stats(engine->capture, i, &capture); i++)
        ft_aggregates_get(engine->aggregates, capture.interface);
}

static void send_status(struct ft_engine *engine, struct ft_wall wall)
{
    struct ft_missing missing_capabilities[FT_MISSING_MAX];
    struct ft_status status = {
        .time = wall,
        .interval_ns = engine->loss_ns,
        .user = engine->user,
        .held = engine->held,
        .missing_capabilities = missing_capabilities,
        .rdma = engine->rdma,
        .aggregates = engine->aggregates,
        .probes = engine->probes,
    };
    struct ft_rdma_status rdma = {0};

    if (!engine->user)
        return;
    if (engine->aggregates)
        ask_for_aggregates(engine);
    status.missing_count = ft_engine_missing(engine, missing_capabilities);
    ft_uplink_status(engine->uplink, &status);
    if (engine->rdma)
        ft_rdma_status(engine->rdma, &rdma);
    engine->no_owner = rdma.table.no_owner;
    engine->status_sent = true;
}

void ft_engine_set_self(struct ft_engine *engine, const char *user, unsigned held, bool no_trace)
{
    engine->user = user;
    engine->held = held;
    engine->no_trace = no_trace;
}

static void send_loss(struct ft_engine *engine, struct ft_mono now, struct ft_wall wall)
{
    struct ft_account account;

    /* What is flushed first counts as sent, not as pending. */
    ft_uplink_flush(engine->uplink);
    ft_engine_account(engine, &account);
    ft_uplink_loss(engine->uplink, &account, wall);
    engine->last_loss = now;
}

int ft_engine_tick(struct ft_engine *engine, struct ft_mono now, struct ft_wall wall)
{
    engine->now = now;
    look_at_aggregates(engine, false);
    if (engine->rdma)
        ft_rdma_poll(engine->rdma, now, wall);
    ft_flows_tick(engine->flows, now, wall);
    if (engine->rdma)
        ft_rdma_report(engine->rdma, now, wall);
    /* As with the flows: the tick nearest to the time. */
    if (ft_mono_since_ns(now, engine->last_loss) + engine->tick_ns / 2 >= engine->loss_ns) {
        send_status(engine, wall);
        send_loss(engine, now, wall);
    } else if (!engine->status_sent) {
        send_status(engine, wall);
    }
    return ft_uplink_flush(engine->uplink);
}

int ft_engine_finish(struct ft_engine *engine, struct ft_mono now, struct ft_wall wall)
{
    engine->now = now;
    ft_flows_flush(engine->flows, now, wall);
    if (engine->jobs)
        ft_jobs_flush(engine->jobs);
    send_loss(engine, now, wall);
    return ft_uplink_flush(engine->uplink);
}

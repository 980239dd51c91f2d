// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/diagnosis/diagnoser.h"
#include "daemon/diagnosis/rhythms.h"
#include "daemon/discovery/changes.h"
#include "daemon/discovery/topology_diff.h"
#include "daemon/pipeline/pipeline_impl.h"

#define DISCOVER_MS 1000
/* Judging takes a tenth of the time at most. */
#define DISCOVER_FLOWS_A_MS 100

void ft_pipeline_find_edge(struct ft_pipeline *p)
{
    const struct ft_topology *t = p->topology;
    uint32_t ports = ft_topology_ports(t);

    free(p->edge);
    p->edge = p->stages.discovery ? calloc((size_t)ports + 1, sizeof(*p->edge)) : NULL;
    for (uint32_t i = 0; p->edge && i < ports; i++) {
        const struct ft_port *port = ft_topology_port(t, i);

        const char *name = ft_topology_switch(t, port->switch_id)->name;

        /* Where samples alone know the switch, their TTL shows which packets come from hosts. */
        p->edge[i] = port->peer == FT_NONE &&
                     !ft_discovery_linked(p->stages.discovery, name, port->name) &&
                     !ft_discovery_sampled(p->stages.discovery, name, "");
    }
}

static bool is_listed(void *arg, uint32_t switch_id)
{
    const struct ft_pipeline *p = arg;

    return !p->stages.discovery ||
           !ft_discovery_sampled(p->stages.discovery,
                                 ft_topology_switch(p->topology, switch_id)->name, "");
}

static void list_switches(struct ft_pipeline *p)
{
    if (p->stages.wiring)
        ft_wiring_list(p->stages.wiring, is_listed, p);
}

static void confirm_in_join(void *arg, uint32_t port)
{
    struct ft_pipeline *p = arg;

    bool all = !p->stages.wiring || !ft_wiring_missing(p->stages.wiring, port);

    /* A path rests on all links that the switch may send by, not on one of them alone. */
    ft_join_confirm_link(p->stages.join, port, all && ft_pipeline_confirms(p, port));
    ft_join_contradict_link(p->stages.join, port,
                            p->stages.wiring && ft_wiring_contradicts(p->stages.wiring, port));
}

static void confirm_links(struct ft_pipeline *p)
{
    for (uint32_t i = 0; i < ft_topology_ports(p->topology); i++)
        if (ft_topology_port(p->topology, i)->peer != FT_NONE)
            confirm_in_join(p, i);
}

/* Makes a topology the present one; the one before is freed unless it is the base. */
static int install(struct ft_pipeline *p, struct ft_topology *topology)
{
    int rc;

    ft_pipeline_flush(p);
    ft_pipeline_finish_close(p);
    rc = ft_join_set_topology(p->stages.join, topology, p->now_ms);
    if (rc)
        return rc;
    if (p->stages.wiring && ft_wiring_follow(p->stages.wiring, topology)) {
        ft_join_set_topology(p->stages.join, p->topology, p->now_ms);
        return -ENOMEM;
    }
    /* Loads of the old size would be written past their end. */
    rc = ft_window_resize(p->stages.window);
    if (rc) {
        ft_join_set_topology(p->stages.join, p->topology, p->now_ms);
        if (p->stages.wiring)
            ft_wiring_follow(p->stages.wiring, p->topology);
        return rc;
    }
    if (p->topology != p->base)
        ft_topology_free(p->topology);
    p->topology = topology;
    list_switches(p);
    ft_pipeline_find_edge(p);
    confirm_links(p);
    if (p->stages.counters)
        ft_counters_follow(p->stages.counters, topology);
    if (p->stages.inference)
        ft_inference_follow(p->stages.inference, topology);
    ft_pair_links_forget_ports(p->stages.pairs);
    ft_rhythms_forget_ports(p->stages.rhythms);
    return 0;
}

static void see(struct ft_pipeline *p)
{
    ft_discovery_see(p->stages.discovery,
                     p->stages.wiring ? ft_wiring_crossings(p->stages.wiring) : NULL, p->topology,
                     p->base);
}

static void adopt(struct ft_pipeline *p, struct ft_topology *t)
{
    ft_changes_hold(p->stages.events, ft_topology_fabric(p->base),
                    ft_discovery_findings(p->stages.discovery), p->now_ms);
    if (!t)
        return;
    if (ft_topology_same(p->topology, t)) {
        ft_topology_free(t);
        list_switches(p);
        ft_pipeline_find_edge(p);
        confirm_links(p);
        return;
    }
    ft_changes_report(p->stages.events, p->topology, t, p->now_ms);
    if (install(p, t))
        ft_topology_free(t);
}

static bool is_building(const struct ft_pipeline *p)
{
    return p->stages.discovery && ft_discovery_building(p->stages.discovery);
}

bool ft_pipeline_in_progress(const struct ft_pipeline *p)
{
    return p->set_back || is_building(p) || ft_join_judging_all(p->stages.join) ||
           (p->stages.diagnoser && ft_diagnoser_looking(p->stages.diagnoser)) ||
           (p->stages.pairing && ft_pairing_sweeping(p->stages.pairing));
}

bool ft_pipeline_discover(struct ft_pipeline *p, uint64_t work)
{
    struct ft_topology *t;

    if (is_building(p)) {
        if (ft_discovery_step(p->stages.discovery, work, &t))
            return true;
        adopt(p, t);
    }
    return ft_join_judge_step(p->stages.join, work < UINT32_MAX ? (uint32_t)work : UINT32_MAX);
}

void ft_pipeline_complete(struct ft_pipeline *p)
{
    if (p->stages.diagnoser && ft_diagnoser_looking(p->stages.diagnoser))
        ft_diagnoser_finish(p->stages.diagnoser);
    if (p->stages.pairing)
        ft_pairing_finish(p->stages.pairing);
    ft_pipeline_discover(p, UINT64_MAX);
}

void ft_pipeline_hurry(struct ft_pipeline *p, bool on)
{
    p->hurry = on;
}

void ft_pipeline_drop_discovery(struct ft_pipeline *p)
{
    struct ft_topology *t;

    if (!is_building(p))
        return;
    ft_discovery_step(p->stages.discovery, UINT64_MAX, &t);
    ft_topology_free(t);
}

int ft_pipeline_set_topology(struct ft_pipeline *p, struct ft_topology *base)
{
    struct ft_topology *old_base = p->base, *built = base;
    int rc;

    ft_pipeline_complete(p);
    if (p->stages.discovery && ft_discovery_some(p->stages.discovery)) {
        see(p);
        built = ft_discovery_build(p->stages.discovery, base, p->now_ms);
        if (!built)
            built = base;
        ft_changes_hold(p->stages.events, ft_topology_fabric(base),
                        ft_discovery_findings(p->stages.discovery), p->now_ms);
    }
    rc = install(p, built);
    if (rc) {
        if (built != base)
            ft_topology_free(built);
        return rc;
    }
    p->base = base;
    if (p->stages.discovery)
        see(p);
    ft_topology_free(old_base);
    return 0;
}

void ft_pipeline_rediscover(struct ft_pipeline *p, int64_t due_ms)
{
    /* Another topology means to judge every flow anew: about a second for a million. */
    int64_t apart_ms = DISCOVER_MS + (int64_t)ft_join_flows(p->stages.join) / DISCOVER_FLOWS_A_MS;
    uint64_t unknown = ft_join_stats(p->stages.join)->unknown_switch;

    if (!p->stages.discovery)
        return;
    if (unknown != p->unknown_seen)
        ft_discovery_unknown_exporter(p->stages.discovery, p->now_ms);
    p->unknown_seen = unknown;
    if (!ft_discovery_due(p->stages.discovery, due_ms, apart_ms))
        return;
    see(p);
    ft_discovery_begin(p->stages.discovery, p->base, p->now_ms);
}

bool ft_pipeline_confirms(const struct ft_pipeline *p, uint32_t id)
{
    const struct ft_port *port = ft_topology_port(p->topology, id);

    return (p->stages.wiring && ft_wiring_confirms(p->stages.wiring, id)) ||
           (p->stages.discovery &&
            ft_discovery_heard(p->stages.discovery,
                               ft_topology_switch(p->topology, port->switch_id)->name, port->name));
}

void ft_pipeline_weigh_links(struct ft_pipeline *p, int64_t now_ms)
{
    if (!p->stages.wiring)
        return;
    ft_wiring_step(p->stages.wiring, now_ms, confirm_in_join, p);
    if (p->stages.discovery && ft_wiring_take_news(p->stages.wiring))
        ft_discovery_touch(p->stages.discovery);
}

/* The source of packets that come from a host: where it hangs. */
void ft_pipeline_cross(struct ft_pipeline *p, const struct ft_observation *o, uint8_t ttl)
{
    uint32_t switch_id;

    if (!ft_wiring_observe(p->stages.wiring, o, ttl, p->now_ms) || !p->stages.discovery)
        return;
    switch_id = ft_topology_switch_at(p->topology, &o->agent);
    if (switch_id == FT_NONE ||
        ft_discovery_sampled(p->stages.discovery, ft_topology_switch(p->topology, switch_id)->name,
                             ""))
        ft_discovery_entered(p->stages.discovery, &o->tuple.src, &o->agent, o->in_ifindex,
                             o->last_ms, false);
}

const char *ft_pipeline_source(const struct ft_pipeline *p, uint32_t id)
{
    const struct ft_port *port = ft_topology_port(p->topology, id);
    const char *name = ft_topology_switch(p->topology, port->switch_id)->name;
    uint32_t base_switch = ft_topology_find_switch(p->base, name);
    uint32_t base_port =
        base_switch == FT_NONE ? FT_NONE : ft_topology_find_port(p->base, base_switch, port->name);
    const struct ft_port *stated =
        base_port == FT_NONE ? NULL : ft_topology_port(p->base, base_port);

    if (stated && (port->peer != FT_NONE ? stated->peer : stated->nic) != FT_NONE)
        return "static";
    if (port->peer != FT_NONE && p->stages.discovery &&
        ft_discovery_sampled(p->stages.discovery, name, port->name))
        return "samples";
    if (port->peer == FT_NONE && p->stages.discovery &&
        ft_discovery_learnt(p->stages.discovery, name, port->name))
        return "learnt";
    return "lldp";
}

const struct ft_topology *ft_pipeline_file(const struct ft_pipeline *p)
{
    return p->base;
}

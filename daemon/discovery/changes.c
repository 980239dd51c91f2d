// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/changes.h"

#include <stdio.h>

#include "daemon/discovery/topology_diff.h"

#define SINGLE_MAX 16

struct publishing {
    struct ft_events *events;
    const char *fabric;
    int64_t now_ms;
    size_t switches[2], links[2], hosts[2]; /* went, came */
};

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void count_change(void *arg, const struct ft_change *c)
{
    struct publishing *t = arg;

    if (c->what == FT_CHANGE_SWITCH)
        t->switches[c->came]++;
    else if (c->what == FT_CHANGE_LINK)
        t->links[c->came]++;
    else
        t->hosts[c->came]++;
}

static void publish_change(void *arg, const struct ft_change *c)
{
    struct publishing *t = arg;
    const char *verb = c->came ? "came" : "went";
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    Fabrictrace__Event event;
    char subject[260], message[640];

    ft_emit_event(&event, FABRICTRACE__KIND__KIND_TOPOLOGY_CHANGE,
                  FABRICTRACE__SEVERITY__SEVERITY_INFO, t->fabric, t->now_ms, t->now_ms);
    evidence.switch_ = text(c->switch_name);
    evidence.port = text(c->port);
    evidence.peer = text(c->peer);
    evidence.peer_port = text(c->peer_port);
    if (c->what == FT_CHANGE_SWITCH) {
        snprintf(subject, sizeof(subject), "%s", c->switch_name);
        snprintf(message, sizeof(message), "switch %s %s", c->switch_name, verb);
    } else {
        snprintf(subject, sizeof(subject), "%s/%s", c->switch_name, c->port);
        if (c->what == FT_CHANGE_LINK)
            snprintf(message, sizeof(message), "the link from %s %s to %s %s %s", c->switch_name,
                     c->port, c->peer, c->peer_port, verb);
        else
            snprintf(message, sizeof(message), "host %s %s %s %s %s", c->peer, verb,
                     c->came ? "to" : "from", c->switch_name, c->port);
    }
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_once(t->events, &event);
}

void ft_changes_report(struct ft_events *events, const struct ft_topology *before,
                       const struct ft_topology *after, int64_t now_ms)
{
    struct publishing t = {.events = events, .fabric = ft_topology_fabric(after), .now_ms = now_ms};
    size_t count = ft_topology_diff(before, after, count_change, &t);
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    Fabrictrace__Event event;
    char message[256];

    if (count == 0)
        return;
    if (count <= SINGLE_MAX) {
        ft_topology_diff(before, after, publish_change, &t);
        return;
    }
    ft_emit_event(&event, FABRICTRACE__KIND__KIND_TOPOLOGY_CHANGE,
                  FABRICTRACE__SEVERITY__SEVERITY_INFO, t.fabric, now_ms, now_ms);
    snprintf(message, sizeof(message),
             "%zu switches, %zu links and %zu attachments of hosts added; %zu, %zu and %zu removed",
             t.switches[1], t.links[1], t.hosts[1], t.switches[0], t.links[0], t.hosts[0]);
    evidence.has_count = true;
    evidence.count = count;
    event.subject = text(t.fabric);
    event.message = message;
    event.evidence = &evidence;
    ft_events_once(events, &event);
}

static size_t name_shut(const struct ft_finding *f, Fabrictrace__PortName out[2])
{
    size_t count = 0;

    for (int peer = 0; peer < 2; peer++) {
        if (!(peer ? f->peer_shut : f->shut))
            continue;
        fabrictrace__port_name__init(&out[count]);
        out[count].switch_ = text(peer ? f->peer : f->switch_name);
        out[count++].port = text(peer ? f->peer_port : f->port);
    }
    return count;
}

static void hold(struct ft_events *events, const char *fabric, const struct ft_finding *f,
                 int64_t now_ms)
{
    static const Fabrictrace__Kind kinds[] = {
        [FT_FINDING_CONTRADICTION] = FABRICTRACE__KIND__KIND_TOPOLOGY_CHANGE,
        [FT_FINDING_LINK_DOWN] = FABRICTRACE__KIND__KIND_LINK_DOWN,
        [FT_FINDING_LINK_SHUT] = FABRICTRACE__KIND__KIND_LINK_SHUT,
        [FT_FINDING_MISCABLING] = FABRICTRACE__KIND__KIND_MISCABLING,
    };
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    Fabrictrace__PortName ports[2], *shut[2] = {&ports[0], &ports[1]};
    Fabrictrace__Event event;
    char subject[260], message[640];

    ft_emit_event(&event, kinds[f->kind], FABRICTRACE__SEVERITY__SEVERITY_INFO, fabric, now_ms,
                  now_ms);
    if (f->kind != FT_FINDING_LINK_SHUT)
        event.severity = FABRICTRACE__SEVERITY__SEVERITY_WARNING;
    if (f->since_ms)
        event.since_ms = (uint64_t)f->since_ms;
    snprintf(subject, sizeof(subject), "%s%s%s", *f->switch_name ? f->switch_name : fabric,
             *f->port ? "/" : "", f->port);
    snprintf(message, sizeof(message), "%s%s%s: %s", f->switch_name, *f->port ? " " : "", f->port,
             f->text);
    evidence.switch_ = *f->switch_name ? text(f->switch_name) : NULL;
    evidence.port = *f->port ? text(f->port) : NULL;
    evidence.peer = *f->peer ? text(f->peer) : NULL;
    evidence.peer_port = *f->peer_port ? text(f->peer_port) : NULL;
    evidence.shut_ports = shut;
    evidence.n_shut_ports = name_shut(f, ports);
    if (f->kind == FT_FINDING_MISCABLING) {
        evidence.found_peer = *f->found ? text(f->found) : NULL;
        evidence.found_peer_port = *f->found_port ? text(f->found_port) : NULL;
        evidence.has_count = evidence.has_flows = true;
        evidence.count = f->samples;
        evidence.flows = f->flows;
    }
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_hold(events, &event);
}

void ft_changes_hold(struct ft_events *events, const char *fabric,
                     const struct ft_findings *findings, int64_t now_ms)
{
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].kind != FT_FINDING_NOTE)
            hold(events, fabric, &findings->items[i], now_ms);
    ft_events_release(events, now_ms);
}

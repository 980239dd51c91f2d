// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/polarized.h"

#include <stdio.h>
#include <time.h>

/* What ports say of the members without flows. */
struct states {
    size_t down, shut; /* members; shut ones are not among those that are down */
    Fabrictrace__PortName name[2 * FT_IDLE_MAX], *names[2 * FT_IDLE_MAX];
    size_t named; /* ports that were shut */
};

static void look(const struct ft_polarized *p, const struct ft_idle *idle, struct states *out)
{
    out->down = out->shut = out->named = 0;
    for (size_t i = 0; p->counters && i < idle->count; i++) {
        const struct ft_port *port = ft_topology_port(p->topology, idle->ports[i]);
        const uint32_t ends[2] = {idle->ports[i], port->peer};
        bool down = false, shut = false;

        for (int k = 0; k < 2; k++) {
            const struct ft_port *end = NULL;
            struct ft_port_report state;

            if (ends[k] == FT_NONE || !ft_counters_state(p->counters, ends[k], p->now_ms, &state))
                continue;
            down |= state.went_down;
            shut |= state.shut;
            if (!state.shut)
                continue;
            end = ft_topology_port(p->topology, ends[k]);
            fabrictrace__port_name__init(&out->name[out->named]);
            out->name[out->named].switch_ =
                (char *)(uintptr_t)ft_topology_switch(p->topology, end->switch_id)->name;
            out->name[out->named].port = (char *)(uintptr_t)end->name;
            out->names[out->named] = &out->name[out->named];
            out->named++;
        }
        out->shut += shut;
        out->down += down && !shut;
    }
}

static bool all_down(const struct ft_idle *idle, const struct states *states)
{
    return states->shut + states->down == idle->total;
}

static const char *cause_of(const struct ft_idle *idle, const struct states *states)
{
    if (states->shut == idle->total)
        return "shut down by an administrator";
    if (all_down(idle, states))
        return states->shut ? "link down, or shut down by an administrator" : "link down";
    return states->shut ? "shut down by an administrator, link down, or out of the group"
           : idle->half ? "link down, out of the group, or a hash that takes these flows elsewhere"
                        : "link down, or out of the group";
}

/* Members that the learnt hash never chooses, and that no flow takes in this window. */
static size_t never_chosen(const struct ft_polarized *p, uint32_t ports[FT_IDLE_MAX])
{
    size_t all =
        p->hashes ? ft_hashes_never(p->hashes, p->topology, p->group, ports, FT_IDLE_MAX) : 0;
    size_t count = 0;

    for (size_t i = 0; i < all; i++) {
        const struct ft_load *load = &p->loads->link[ports[i]];

        if (load->certain == 0 && load->narrow == 0 && load->bytes == 0)
            ports[count++] = ports[i];
    }
    return count;
}

/* " and 3 more" */
static void put_more(char *text, size_t size, size_t count)
{
    *text = '\0';
    if (count > 1)
        snprintf(text, size, " and %zu more", count - 1);
}

static void describe_never(char *text, size_t size, const struct ft_polarized *p,
                           const uint32_t *ports, size_t count)
{
    const struct ft_port *first = ft_topology_port(p->topology, ports[0]);
    char more[32];

    put_more(more, sizeof(more), count);
    snprintf(text, size,
             "the hash learnt of %s takes no flow to %s%s: a polarised hash, or a group without %s",
             ft_topology_switch(p->topology, first->switch_id)->name, first->name, more,
             count > 1 ? "them" : "it");
}

/* "no flow on Ethernet104 since 2026-11-20 10:00:50 UTC: ..." */
static void describe(char *text, size_t size, const struct ft_polarized *p,
                     const struct ft_idle *idle, const struct states *states)
{
    const time_t since_s = (time_t)(idle->since_ms / 1000);
    struct tm tm;
    char more[32], since[40] = "";

    put_more(more, sizeof(more), idle->total);
    if (idle->since_ms && gmtime_r(&since_s, &tm))
        strftime(since, sizeof(since), " since %Y-%m-%d %H:%M:%S UTC", &tm);
    snprintf(text, size, "no flow on %s%s%s: %s",
             ft_topology_port(p->topology, idle->ports[0])->name, more, since,
             cause_of(idle, states));
}

static void name_ports(const struct ft_polarized *p, const uint32_t *ports, size_t count,
                       char **names)
{
    for (size_t i = 0; i < count; i++)
        names[i] = (char *)(uintptr_t)ft_topology_port(p->topology, ports[i])->name;
}

void ft_polarized_raise(const struct ft_polarized *p, const struct ft_idle *found,
                        struct ft_events *events)
{
    const Fabrictrace__Imbalance *figures = p->figures;
    Fabrictrace__Event event;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    char cause[256] = "look for a polarised hash, a mis-sized group or a dead member";
    char message[512], *ports[FT_IDLE_MAX], *never[FT_IDLE_MAX];
    uint32_t never_ports[FT_IDLE_MAX];
    size_t nevers = never_chosen(p, never_ports), named = found->count;
    struct states states;

    look(p, found, &states);
    if (found->half && !found->stopped && !all_down(found, &states))
        named = states.named = 0;
    if (named)
        describe(cause, sizeof(cause), p, found, &states);
    else if (nevers)
        describe_never(cause, sizeof(cause), p, never_ports, nevers);
    snprintf(message, sizeof(message),
             "the %llu flows of %s are spread with FIM %.1f where chance gives %.1f (p = %.2g): "
             "%s",
             (unsigned long long)figures->flows, p->group->name, figures->fim,
             figures->fim_expected, figures->p_value, cause);
    name_ports(p, found->ports, named, ports);
    name_ports(p, never_ports, nevers, never);
    evidence.idle_ports = ports;
    evidence.n_idle_ports = named;
    evidence.has_idle_since_ms = named && found->since_ms;
    evidence.idle_since_ms = (uint64_t)found->since_ms;
    evidence.never_chosen = never;
    evidence.n_never_chosen = nevers;
    evidence.shut_ports = states.names;
    evidence.n_shut_ports = states.named;
    evidence.switch_ =
        (char *)(uintptr_t)ft_topology_switch(p->topology, p->group->switch_id)->name;
    evidence.group = (char *)(uintptr_t)p->group->name;
    evidence.has_p_value = evidence.has_fim = evidence.has_fim_expected = true;
    evidence.has_flows = true;
    evidence.flows = figures->flows;
    evidence.p_value = figures->p_value;
    evidence.fim = figures->fim;
    evidence.fim_expected = figures->fim_expected;
    ft_emit_event(&event, FABRICTRACE__KIND__KIND_POLARIZATION,
                  named && states.shut == found->total ? FABRICTRACE__SEVERITY__SEVERITY_INFO
                                                       : FABRICTRACE__SEVERITY__SEVERITY_WARNING,
                  figures->fabric, (int64_t)figures->window_start_ms,
                  (int64_t)figures->window_end_ms);
    event.subject = (char *)(uintptr_t)p->group->name;
    event.message = message;
    event.evidence = &evidence;
    ft_events_raise_pausing(events, p->window, &event);
}

/* The group is even: it is so again where it has about as many flows as when it was not. Of half of
 * them the same imbalance has about the root of that p, which is far from even; fewer say nothing,
 * as in a pause of a job. */
void ft_polarized_end(const Fabrictrace__Imbalance *figures, const struct ft_span *span,
                      struct ft_events *events)
{
    Fabrictrace__Event event = FABRICTRACE__EVENT__INIT;
    Fabrictrace__Event *before;
    const uint8_t *packed;
    bool enough;
    size_t len;

    event.kind = FABRICTRACE__KIND__KIND_POLARIZATION;
    event.subject = figures->name;
    packed = ft_events_now(events, &event, &len);
    before = packed ? fabrictrace__event__unpack(NULL, len, packed) : NULL;
    if (!before)
        return;
    enough = before->evidence && before->evidence->has_flows &&
             2 * figures->flows >= before->evidence->flows;
    fabrictrace__event__free_unpacked(before, NULL);
    if (enough)
        ft_events_clear(events, &event, span->end_ms);
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/doctor.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/discovery/discovery.h"
#include "daemon/discovery/wiring.h"
#include "daemon/health/agents.h"
#include "daemon/health/clocks.h"
#include "daemon/health/detours.h"
#include "daemon/health/exporters.h"
#include "daemon/health/losses.h"
#include "daemon/health/processors.h"
#include "daemon/health/unrated.h"
#include "daemon/join/counters.h"
#include "daemon/pairing/pairing.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/events.h"

#define ADVISE_CLOCK "synchronise all hosts with one NTP or PTP server"

static void look_at_loss(void *arg, const Fabrictrace__Record *record)
{
    struct ft_findings *findings = arg;
    const Fabrictrace__Loss *loss = record->loss;

    for (size_t s = 0; s < loss->n_stages; s++) {
        const Fabrictrace__Stage *stage = loss->stages[s];

        for (size_t d = 0; d < stage->n_drops; d++) {
            const Fabrictrace__Drop *drop = stage->drops[d];
            const char *advice = ft_losses_advice(stage->name, drop->reason);

            if (drop->count && advice)
                ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL, advice,
                                "%.60s '%.80s' lost %" PRIu64 " of %" PRIu64 " %.20s: %.40s",
                                loss->program, loss->source, drop->count, stage->received,
                                stage->unit ? stage->unit : "", drop->reason);
        }
    }
}

/* What becomes of records inside the daemon is told by look_at_records(). */
static void look_at_own_loss(void *arg, const Fabrictrace__Record *record)
{
    Fabrictrace__Loss outside = *record->loss;
    Fabrictrace__Record changed = *record;
    Fabrictrace__Stage *stages[FT_ACCOUNT_STAGES];

    outside.n_stages = 0;
    outside.stages = stages;
    for (size_t i = 0; i < record->loss->n_stages && outside.n_stages < FT_ACCOUNT_STAGES; i++)
        if (strcmp(record->loss->stages[i]->name, "records") != 0)
            stages[outside.n_stages++] = record->loss->stages[i];
    changed.loss = &outside;
    look_at_loss(arg, &changed);
}

static void look_at_records(const struct ft_pipeline_stats *s, const struct ft_stages *stages,
                            struct ft_findings *findings)
{
    const struct ft_join_stats *j = ft_join_stats(stages->join);

    if (s->fates[FT_RECORD_AHEAD])
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL, ADVISE_CLOCK,
                        "%" PRIu64 " records came from the future: a sender's clock is ahead",
                        s->fates[FT_RECORD_AHEAD]);
    if (s->fates[FT_RECORD_LATE])
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "synchronise clocks with one server; if they are, increase 'grace'",
                        "%" PRIu64 " records came after their window was closed",
                        s->fates[FT_RECORD_LATE]);
    if (s->fates[FT_RECORD_LATE_OURS])
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "check the load of this host, and what stopped the daemon",
                        "%" PRIu64 " records were late because this daemon was stopped for a while",
                        s->fates[FT_RECORD_LATE_OURS]);
    if (s->fates[FT_RECORD_INVALID])
        ft_findings_add(
            findings, FT_FINDING_NOTE, NULL, NULL, "install the same version of all programs",
            "%" PRIu64 " records had a required field missing", s->fates[FT_RECORD_INVALID]);
    if (s->fates[FT_RECORD_UNAUTHORIZED])
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        ft_losses_advice("records", "unauthorized"),
                        "%" PRIu64 " records were outside what their sender may report",
                        s->fates[FT_RECORD_UNAUTHORIZED]);
    if (s->fates[FT_RECORD_TABLE_FULL])
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "give it more memory (memory_max), or the cap that is too low; --check "
                        "prints them",
                        "%" PRIu64 " records found no room in a table",
                        s->fates[FT_RECORD_TABLE_FULL]);
    if (j->unknown_switch)
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "add the exporter's agent address to its switch, or poll that switch",
                        "%" PRIu64 " observations came from exporters that belong to no switch",
                        j->unknown_switch);
    if (j->unknown_port > j->unnumbered_port)
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "poll the switch, or state the ifIndex of its ports in the topology file",
                        "%" PRIu64 " times an observation named a port that is not known",
                        j->unknown_port - j->unnumbered_port);
}

/* A switch that says nothing itself is named for that, and not for all that follows from it. */
static bool is_blind(const struct ft_findings *findings, const char *switch_name)
{
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].blind && strcmp(findings->items[i].switch_name, switch_name) == 0)
            return true;
    return false;
}

/* Whether any port has counters by SNMP. */
static bool some_polled(const struct ft_stages *stages)
{
    const struct ft_topology *t = ft_join_topology(stages->join);
    const struct ft_counters *counters = stages->counters;

    for (uint32_t i = 0; counters && i < ft_topology_ports(t); i++)
        if (ft_counters_known(counters, i, true))
            return true;
    return false;
}

/* Ports with a link or a host that have no counters or no speed; told once for a whole switch, and
 * once for the fabric where nobody reads any. */
static void look_at_ports(const struct ft_stages *stages, struct ft_findings *findings)
{
    const struct ft_topology *t = ft_join_topology(stages->join);
    const struct ft_counters *counters = stages->counters;

    bool polled = some_polled(stages);

    if (counters && !polled && ft_topology_switches(t) > 0)
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "add the switches to a poller's snmp.switches",
                        "no counters by SNMP of any of %u switches: unexplained traffic and "
                        "sampling rates cannot be verified",
                        ft_topology_switches(t));
    for (uint32_t i = 0; i < ft_topology_switches(t); i++) {
        const struct ft_switch *s = ft_topology_switch(t, i);
        uint32_t used = 0, uncounted = 0, unnumbered = 0, without = FT_NONE;

        if (is_blind(findings, s->name))
            continue;
        for (uint32_t k = 0; k < s->port_count; k++) {
            const struct ft_port *port = ft_topology_port(t, s->ports[k]);

            if (port->peer == FT_NONE && port->nic == FT_NONE)
                continue;
            used++;
            unnumbered += port->ifindex == 0;
            if (counters && !ft_counters_known(counters, s->ports[k], true)) {
                uncounted++;
                without = s->ports[k];
            }
        }
        if (uncounted && polled)
            ft_findings_add(findings, FT_FINDING_NOTE, s->name,
                            uncounted == 1 ? ft_topology_port(t, without)->name : NULL,
                            "add it to a poller's snmp.switches",
                            "%u of its %u used ports have no counters by SNMP", uncounted, used);
        if (unnumbered)
            ft_findings_add(
                findings, FT_FINDING_NOTE, s->name, NULL,
                "add it to a poller's snmp.switches, or put them into the topology file",
                "%u of its %u used ports have no ifIndex: samples from these ports cannot be "
                "matched",
                unnumbered, used);
    }
    if (ft_topology_switches(t) == 0)
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "send sFlow from the switches to a poller, add them to its snmp.switches, "
                        "or write a topology file",
                        "no switch is known");
}

/* Bits of an actor's state in a LACPDU (IEEE 802.1AX-2014 section 6.4.2.3). */
#define LACP_IN_SYNC      0x08
#define LACP_COLLECTING   0x10
#define LACP_DISTRIBUTING 0x20
#define LACP_DEFAULTED    0x40 /* no word from the partner */
#define LACP_EXPIRED      0x80 /* none any more */
#define LACP_CARRIES      (LACP_IN_SYNC | LACP_COLLECTING | LACP_DISTRIBUTING)
#define LACP_STATE        (LACP_CARRIES | LACP_DEFAULTED | LACP_EXPIRED)

#define BROKEN_LEAST 10 /* frames in the last windows that are worth a word */

static void look_at_health(const struct ft_switch *s, const struct ft_port *port,
                           const struct ft_port_health *h, struct ft_findings *findings)
{
    if (h->fcs_errors + h->symbol_errors >= BROKEN_LEAST)
        ft_findings_add(findings, FT_FINDING_NOTE, s->name, port->name,
                        "clean or replace the cable or transceivers",
                        "it received %.0f frames with a wrong check sequence and %.0f symbol "
                        "errors in %.0f s",
                        h->fcs_errors, h->symbol_errors, h->seconds);
    if (h->too_long >= BROKEN_LEAST)
        ft_findings_add(findings, FT_FINDING_NOTE, s->name, port->name,
                        "configure the same MTU on both sides of the link",
                        "it received %.0f frames that are too long in %.0f s", h->too_long,
                        h->seconds);
    if (h->lanes_low || h->lanes_high)
        ft_findings_add(findings, FT_FINDING_NOTE, s->name, port->name,
                        h->lanes_low ? "clean or replace the fibre, or the far end's transceiver"
                                     : "attenuate the light, or use a transceiver of less reach",
                        "%u of its %u lanes receive %s light than its transceiver needs",
                        h->lanes_low ? h->lanes_low : h->lanes_high, h->lanes,
                        h->lanes_low ? "less" : "more");
    if (h->has_lag && (h->lag_state & LACP_STATE) != LACP_CARRIES)
        ft_findings_add(
            findings, FT_FINDING_NOTE, s->name, port->name, "check LACP on both sides of the link",
            "a member of an aggregate (ifIndex %u), but LACP excludes it from forwarding",
            h->lag_ifindex);
}

static void look_at_healths(const struct ft_stages *stages, int64_t now_ms,
                            struct ft_findings *findings)
{
    const struct ft_topology *t = ft_join_topology(stages->join);
    const struct ft_counters *counters = stages->counters;

    for (uint32_t i = 0; counters && i < ft_topology_switches(t); i++) {
        const struct ft_switch *s = ft_topology_switch(t, i);

        for (uint32_t k = 0; k < s->port_count; k++) {
            struct ft_port_health health;

            ft_counters_health(counters, s->ports[k], now_ms, &health);
            look_at_health(s, ft_topology_port(t, s->ports[k]), &health, findings);
        }
    }
    ft_processors_find(stages->processors, t, now_ms, findings);
    ft_unrated_find(stages->unrated, t, now_ms, findings);
}

/* An event that finds no room is not told at all. */
static void look_at_events(const struct ft_events *events, struct ft_findings *findings)
{
    uint64_t refused = ft_events_refused(events);

    if (refused)
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "resolve active events, or increase events_max",
                        "%" PRIu64 " times an event was not raised because %zu are active already",
                        refused, ft_events_count(events));
}

void ft_doctor_look(struct ft_pipeline *p, struct ft_findings *findings)
{
    const struct ft_stages *stages = ft_pipeline_stages(p);
    int64_t now_ms = ft_pipeline_now_ms(p);
    struct ft_emitter emitter = {look_at_loss, findings}, own = {look_at_own_loss, findings};
    const struct ft_discovery *discovery = stages->discovery;
    const struct ft_topology *t = ft_join_topology(stages->join);

    for (size_t i = 0; discovery && i < ft_discovery_findings(discovery)->count; i++) {
        const struct ft_finding *f = &ft_discovery_findings(discovery)->items[i];
        struct ft_finding *to = ft_findings_add(findings, f->kind, NULL, NULL, NULL, "%s", "");

        if (to)
            *to = *f;
    }
    if (stages->wiring)
        ft_wiring_find(stages->wiring, now_ms, findings);
    if (stages->exporters)
        ft_exporters_find(stages->exporters, t, findings);
    ft_detours_find(stages->detours, findings);
    ft_clocks_find(stages->clocks, findings);
    look_at_ports(stages, findings);
    look_at_healths(stages, now_ms, findings);
    look_at_records(ft_pipeline_stats(p), stages, findings);
    look_at_events(stages->events, findings);
    ft_agents_find(stages->agents, now_ms, findings);
    if (stages->pairing)
        ft_pairing_find_unpaired(stages->pairing, findings);
    ft_pipeline_emit_loss(p, &own, now_ms);
    ft_pipeline_each_loss(p, &emitter);
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/discovery/discovery.h"
#include "daemon/discovery/wiring.h"
#include "daemon/hashes/hashes.h"
#include "daemon/health/agents.h"
#include "daemon/health/clocks.h"
#include "daemon/health/detours.h"
#include "daemon/health/exporters.h"
#include "daemon/health/losses.h"
#include "daemon/health/processors.h"
#include "daemon/health/unrated.h"
#include "daemon/inference/inference.h"
#include "daemon/join/counters.h"
#include "daemon/oracle/oracle.h"
#include "daemon/pairing/pairing.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/events.h"
#include "daemon/publish/registered.h"
#include "lib/fabric/hash_model.h"

#define ADVISE_SLOW                                                                                \
    "give the daemon a core of its own, or divide the flows among several (group.role); lower "    \
    "sampling rates help as well"
#define ADVISE_RECORDING                                                                           \
    "windows, their links, imbalance and elephants, and events are complete; for the rest keep "   \
    "more "                                                                                        \
    "(incident) and record a longer time (fabrictrace record --last)"
#define ADVISE_CLOCK "synchronise all hosts with one NTP or PTP server"

/* Of one step. */
#define SWITCHES 50
#define PORTS    2000
#define PROGRAMS 200

struct ft_doctor {
    struct ft_pipeline *pipeline;
    uint64_t seed;
    const struct ft_stages *stages;
    const struct ft_oracle *oracle;         /* NULL: nobody is asked */
    const struct ft_registered *registered; /* NULL: no schema registry */
    uint64_t unnumbered;                    /* messages over Kafka whose numbers are not kept */
    int64_t recorded_from_ms;               /* 0: of a complete one, or live */
    struct ft_findings findings;
    size_t part;
    uint32_t index; /* in the part */
    bool polled;    /* a port has counters by SNMP */
    struct ft_agents_position agents;
    struct ft_pairing_unpaired *unpaired;
};

static void look_at_loss(void *arg, const Fabrictrace__Record *record)
{
    struct ft_findings *findings = arg;
    const Fabrictrace__Loss *loss = record->loss;

    if (loss->has_fold_ms)
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL, ADVISE_SLOW,
                        "%.60s '%.80s' folds samples over %.1f s: this daemon cannot keep up",
                        loss->program, loss->source, loss->fold_ms / 1000.0);
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

/* What becomes of records inside the daemon is reported by look_at_records(). */
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
                        "raise memory_max, or the setting of the table that is full: table_entries "
                        "of /metrics shows which, fabrictraced --check prints the settings",
                        "%" PRIu64 " records found no room in a table of this daemon",
                        s->fates[FT_RECORD_TABLE_FULL]);
    if (j->unknown_switch)
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "add the exporter's agent address to its switch in the topology file, or "
                        "that switch to a poller's snmp.switches",
                        "%" PRIu64 " observations came from exporters that belong to no switch",
                        j->unknown_switch);
    if (j->unknown_port > j->unnumbered_port)
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "add the switch to a poller's snmp.switches, or state the ifindex of its "
                        "ports in the topology file",
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
static bool look_for_counters(struct ft_doctor *d)
{
    const struct ft_topology *t = ft_join_topology(d->stages->join);
    const struct ft_counters *counters = d->stages->counters;

    if (!counters)
        return false;
    for (uint32_t i = 0; i < PORTS && !d->polled && d->index < ft_topology_ports(t); i++)
        d->polled = ft_counters_known(counters, d->index++, true);
    if (!d->polled && d->index < ft_topology_ports(t))
        return true;
    if (!d->polled && ft_topology_switches(t) > 0)
        ft_findings_add(&d->findings, FT_FINDING_NOTE, NULL, NULL,
                        "add the switches to a poller's snmp.switches",
                        "no counters by SNMP of any of %u switches: unexplained traffic and "
                        "sampling rates cannot be verified",
                        ft_topology_switches(t));
    return false;
}

/* Ports with a link or a host that have no counters or no speed; reported once for a switch, and
 * once for the fabric where nobody reads any. */
static void look_at_switch(const struct ft_doctor *d, const struct ft_switch *s,
                           struct ft_findings *findings)
{
    const struct ft_topology *t = ft_join_topology(d->stages->join);
    const struct ft_counters *counters = d->stages->counters;
    uint32_t used = 0, uncounted = 0, unnumbered = 0, without = FT_NONE;

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
    if (uncounted && d->polled)
        ft_findings_add(findings, FT_FINDING_NOTE, s->name,
                        uncounted == 1 ? ft_topology_port(t, without)->name : NULL,
                        "add it to a poller's snmp.switches",
                        "%u of its %u used ports have no counters by SNMP", uncounted, used);
    if (unnumbered)
        ft_findings_add(findings, FT_FINDING_NOTE, s->name, NULL,
                        "add it to a poller's snmp.switches, or put them into the topology file",
                        "%u of its %u used ports have no ifIndex: samples from these ports cannot "
                        "be matched",
                        unnumbered, used);
}

/* As many switches as a step may look at, by their ports; true: there are more. */
static bool each_switch(struct ft_doctor *d,
                        void (*look)(const struct ft_doctor *d, const struct ft_switch *s,
                                     struct ft_findings *findings))
{
    const struct ft_topology *t = ft_join_topology(d->stages->join);
    uint32_t switches = 0, ports = 0;

    while (d->index < ft_topology_switches(t) && switches < SWITCHES && ports < PORTS) {
        const struct ft_switch *s = ft_topology_switch(t, d->index++);

        look(d, s, &d->findings);
        switches++;
        ports += s->port_count;
    }
    return d->index < ft_topology_switches(t);
}

static void look_at_seeing(const struct ft_doctor *d, const struct ft_switch *s,
                           struct ft_findings *findings)
{
    if (!is_blind(findings, s->name))
        look_at_switch(d, s, findings);
}

static bool look_at_ports(struct ft_doctor *d)
{
    if (each_switch(d, look_at_seeing))
        return true;
    if (ft_topology_switches(ft_join_topology(d->stages->join)) == 0)
        ft_findings_add(&d->findings, FT_FINDING_NOTE, NULL, NULL,
                        "send sFlow from the switches to a poller, add them to its snmp.switches, "
                        "or write a topology file",
                        "no switch is known");
    return false;
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
                        "it received %.0f frames with FCS errors and %.0f symbol errors in %.0f s",
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
            "a member of a LAG (ifIndex %u), but LACP excludes it from forwarding", h->lag_ifindex);
}

#define FLAPS_LEAST 2 /* times in so long that are worth a word */
#define FLAPS_MS    3600000

/* A port that went down more than once in an hour, though nobody shut it down. */
static void look_at_flaps(const struct ft_doctor *d, const struct ft_switch *s, uint32_t port,
                          int64_t now_ms, struct ft_findings *findings)
{
    uint32_t downs;

    if (!ft_counters_downs(d->stages->counters, port, ft_join_other_end(d->stages->join, port),
                           now_ms - FLAPS_MS, now_ms + 1000, &downs) ||
        downs < FLAPS_LEAST)
        return;
    ft_findings_add(findings, FT_FINDING_NOTE, s->name,
                    ft_topology_port(ft_join_topology(d->stages->join), port)->name,
                    "check the cable, the transceivers and the other end of the link",
                    "it went down %u times in the last hour", downs);
}

static void look_at_switch_health(const struct ft_doctor *d, const struct ft_switch *s,
                                  struct ft_findings *findings)
{
    const struct ft_topology *t = ft_join_topology(d->stages->join);
    int64_t now_ms = ft_pipeline_now_ms(d->pipeline);

    for (uint32_t k = 0; k < s->port_count; k++) {
        struct ft_port_health health;

        ft_counters_health(d->stages->counters, s->ports[k], now_ms, &health);
        look_at_health(s, ft_topology_port(t, s->ports[k]), &health, findings);
        look_at_flaps(d, s, s->ports[k], now_ms, findings);
    }
}

static bool look_at_healths(struct ft_doctor *d)
{
    return d->stages->counters && each_switch(d, look_at_switch_health);
}

/* An event that finds no room is not published at all. */
static void look_at_events(const struct ft_events *events, struct ft_findings *findings)
{
    uint64_t refused = ft_events_refused(events);

    if (refused)
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "resolve active events, or increase events_max",
                        "%" PRIu64 " times an event was not raised because %zu are active already",
                        refused, ft_events_count(events));
}

static bool look_at_discovery(struct ft_doctor *d)
{
    const struct ft_discovery *discovery = d->stages->discovery;

    for (size_t i = 0; discovery && i < ft_discovery_findings(discovery)->count; i++) {
        const struct ft_finding *f = &ft_discovery_findings(discovery)->items[i];
        struct ft_finding *to = ft_findings_add(&d->findings, f->kind, NULL, NULL, NULL, "%s", "");

        if (to)
            *to = *f;
    }
    return false;
}

static bool look_at_wiring(struct ft_doctor *d)
{
    return d->stages->wiring && ft_wiring_find(d->stages->wiring, ft_pipeline_now_ms(d->pipeline),
                                               &d->index, &d->findings);
}

static bool look_at_exporters(struct ft_doctor *d)
{
    const struct ft_topology *t = ft_join_topology(d->stages->join);

    if (d->stages->exporters)
        ft_exporters_find(d->stages->exporters, t, &d->findings);
    ft_detours_find(d->stages->detours, &d->findings);
    ft_clocks_find(d->stages->clocks, &d->findings);
    return false;
}

static bool look_at_load(struct ft_doctor *d)
{
    const struct ft_topology *t = ft_join_topology(d->stages->join);
    int64_t now_ms = ft_pipeline_now_ms(d->pipeline);

    ft_processors_find(d->stages->processors, t, now_ms, &d->findings);
    ft_unrated_find(d->stages->unrated, t, now_ms, &d->findings);
    look_at_records(ft_pipeline_stats(d->pipeline), d->stages, &d->findings);
    look_at_events(d->stages->events, &d->findings);
    return false;
}

static bool look_at_recording(struct ft_doctor *d)
{
    struct ft_finding *f;

    if (d->recorded_from_ms == 0)
        return false;
    f = ft_findings_add(&d->findings, FT_FINDING_NOTE, NULL, NULL, ADVISE_RECORDING,
                        "this is a recording that began after its daemon: ranks, queue pairs and "
                        "states of hosts that were reported before it are missing, and counts, "
                        "times of flows and paths begin with it");
    if (f)
        f->since_ms = d->recorded_from_ms;
    return false;
}

static bool look_at_oracle(struct ft_doctor *d)
{
    if (d->oracle)
        ft_oracle_find(d->oracle, &d->findings);
    return false;
}

static bool look_at_registry(struct ft_doctor *d)
{
    if (d->registered)
        ft_registered_find(d->registered, &d->findings);
    return false;
}

static bool look_at_topics(struct ft_doctor *d)
{
    if (d->unnumbered)
        ft_findings_add(&d->findings, FT_FINDING_NOTE, NULL, NULL, "raise sources_max",
                        "%" PRIu64 " messages over Kafka came of more senders than there is room "
                        "for: what of them is missing or comes twice is not noticed",
                        d->unnumbered);
    return false;
}

static bool look_at_hashes(struct ft_doctor *d)
{
    uint64_t wide = d->stages->hashes ? ft_hashes_wide(d->stages->hashes) : 0;

    if (wide)
        ft_findings_add(
            &d->findings, FT_FINDING_NOTE, NULL, NULL,
            "sample the switches with so many links: paths of flows without samples are not "
            "predicted there",
            "at %" PRIu64 " hops of flows the switch has more than %d equal-cost links: "
            "how it chooses is not learnt",
            wide, FT_HASH_MEMBERS_MAX);
    return false;
}

static bool look_at_inference(struct ft_doctor *d)
{
    if (d->stages->inference)
        ft_inference_find(d->stages->inference, &d->findings);
    return false;
}

static bool look_at_agents(struct ft_doctor *d)
{
    for (int i = 0; i < PROGRAMS; i++)
        if (!ft_agents_find(d->stages->agents, ft_pipeline_now_ms(d->pipeline), &d->agents,
                            &d->findings))
            return false;
    return true;
}

static bool look_at_pairing(struct ft_doctor *d)
{
    if (!d->stages->pairing)
        return false;
    if (!d->unpaired)
        d->unpaired = ft_pairing_unpaired_new(d->stages->pairing, d->seed);
    return d->unpaired && ft_pairing_unpaired_step(d->unpaired, d->stages->pairing, &d->findings);
}

static bool look_at_losses(struct ft_doctor *d)
{
    const struct ft_emitter emitter = {look_at_loss, &d->findings};
    const struct ft_emitter own = {look_at_own_loss, &d->findings};

    if (d->index == 0)
        ft_pipeline_emit_loss(d->pipeline, &own, ft_pipeline_now_ms(d->pipeline));
    for (int i = 0; i < PROGRAMS; i++)
        if (!ft_pipeline_next_loss(d->pipeline, &d->index, &emitter))
            return false;
    return true;
}

static bool (*const parts[])(struct ft_doctor *d) = {
    look_at_recording, look_at_discovery, look_at_wiring,  look_at_exporters,
    look_for_counters, look_at_ports,     look_at_healths, look_at_load,
    look_at_oracle,    look_at_inference, look_at_agents,  look_at_pairing,
    look_at_losses,    look_at_registry,  look_at_topics,  look_at_hashes,
};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

struct ft_doctor *ft_doctor_new(struct ft_pipeline *pipeline, uint64_t seed)
{
    struct ft_doctor *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->pipeline = pipeline;
    d->seed = seed;
    d->stages = ft_pipeline_stages(pipeline);
    return d;
}

void ft_doctor_oracle(struct ft_doctor *d, const struct ft_oracle *oracle)
{
    d->oracle = oracle;
}

void ft_doctor_registered(struct ft_doctor *d, const struct ft_registered *registered)
{
    d->registered = registered;
}

void ft_doctor_unnumbered(struct ft_doctor *d, uint64_t messages)
{
    d->unnumbered = messages;
}

void ft_doctor_recorded(struct ft_doctor *d, int64_t from_ms)
{
    d->recorded_from_ms = from_ms;
}

void ft_doctor_free(struct ft_doctor *d)
{
    if (!d)
        return;
    ft_pairing_unpaired_free(d->unpaired);
    ft_findings_free(&d->findings);
    free(d);
}

bool ft_doctor_step(struct ft_doctor *d)
{
    if (d->part < PARTS && !parts[d->part](d)) {
        d->part++;
        d->index = 0;
    }
    return d->part < PARTS;
}

const struct ft_findings *ft_doctor_findings(const struct ft_doctor *d)
{
    return &d->findings;
}

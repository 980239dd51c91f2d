// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/discovery/survey.h"
#include "lib/base/bound.h"
#include "lib/base/grow.h"

#define ADVISE_CABLE "look at the cable; if it is right, correct the file, or the switch's LLDP"
#define ADVISE_LLDP  "see whether LLDP runs at both switches, and has the time to"
#define CROSSED_MS   15000 /* samples come in late by some seconds */
#define ADVISE_ALIAS "give the switch this agent address in the topology file, or look at the cable"

static int by_port(const void *a, const void *b)
{
    return memcmp(&((const struct ft_crossing_found *)a)->port,
                  &((const struct ft_crossing_found *)b)->port, sizeof(struct ft_crossing_port));
}

int ft_survey_read_samples(struct ft_survey *s)
{
    struct ft_crossing_found f, *grown;
    uint32_t index = 0;
    size_t size = 0;

    while (s->crossings && ft_crossings_next(s->crossings, &index, &f)) {
        grown = ft_grow(s->sampled, s->sampled_count, &size, sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        s->sampled = grown;
        s->sampled[s->sampled_count++] = f;
        ft_survey_pace(s);
    }
    if (s->sampled_count)
        qsort(s->sampled, s->sampled_count, sizeof(*s->sampled), by_port);
    return 0;
}

/* The ports of an agent lie together: where they begin. */
static uint32_t first_of(const struct ft_survey *s, const struct ft_ip *agent)
{
    const struct ft_crossing_found key = {.port.agent = *agent};

    return (uint32_t)ft_lower_bound(&key, s->sampled, s->sampled_count, sizeof(key), by_port);
}

static bool is_of(const struct ft_survey *s, uint32_t i, const struct ft_ip *agent)
{
    return i < s->sampled_count && ft_ip_equal(&s->sampled[i].port.agent, agent);
}

bool ft_survey_shows_hosts(const struct ft_survey *s, const struct ft_ip *agent, uint32_t ifindex)
{
    for (uint32_t i = first_of(s, agent); is_of(s, i, agent); i++)
        if (s->sampled[i].port.ifindex == ifindex)
            return s->sampled[i].has_hosts && !s->sampled[i].from_switch;
    return false;
}

/* What the exporter calls it by sFlow, unless another port of the switch has that name. */
static const char *said_name(const struct ft_survey *s, uint32_t node, const struct ft_ip *agent,
                             uint32_t ifindex)
{
    const char *name = s->names ? ft_port_names_find(s->names, agent, ifindex) : NULL;
    const struct ft_node *n = &s->nodes[node];

    for (uint32_t i = n->first_end; name && i < n->first_end + n->end_count; i++)
        if (strcmp(s->ends[i].name, name) == 0)
            name = NULL;
    return name;
}

static struct ft_end *add_port(struct ft_survey *s, uint32_t node, const struct ft_ip *agent,
                               uint32_t ifindex)
{
    const char *said = said_name(s, node, agent, ifindex);
    struct ft_end *end;
    char name[32];

    ft_survey_pace(s);
    snprintf(name, sizeof(name), "#%u", ifindex);
    end = ft_survey_add_end(s, node, said ? said : name);
    if (end)
        ft_survey_number(s, s->end_count - 1, ifindex);
    if (end && said && ft_port_names_unsteady(s->names, agent, ifindex))
        ft_findings_add(s->findings, FT_FINDING_NOTE, s->nodes[node].name, said,
                        "let the switch's sFlow agent name each ifIndex alike, or poll it by SNMP",
                        "sFlow's counter samples of ifIndex %u say another name in turn: that it "
                        "is this port is not certain",
                        ifindex);
    return end;
}

/* Ports that no other source reports: only those that lead somewhere. */
static int add_ports_of(struct ft_survey *s, uint32_t node, const struct ft_ip *agent)
{
    for (uint32_t i = first_of(s, agent); is_of(s, i, agent); i++) {
        uint32_t ifindex = s->sampled[i].port.ifindex;

        if (s->sampled[i].linked && ft_survey_end(s, node, ifindex) == FT_NONE &&
            !add_port(s, node, agent, ifindex))
            return -ENOMEM;
    }
    return 0;
}

int ft_survey_sampled_ports(struct ft_survey *s, uint32_t node)
{
    const struct ft_node *n = &s->nodes[node];
    const struct ft_switch *sw = n->base == FT_NONE ? NULL : ft_topology_switch(s->base, n->base);
    int rc = 0;

    /* Which port of the file the number means is not known. */
    for (uint32_t i = n->first_end; i < n->first_end + n->end_count; i++)
        if (s->ends[i].ifindex == 0 && s->ends[i].base != FT_NONE)
            return 0;
    for (uint32_t a = 0; sw && rc == 0 && a < sw->address_count; a++)
        rc = add_ports_of(s, node, &sw->addresses[a]);
    if (rc == 0 && n->report)
        rc = add_ports_of(s, node, &n->report->agent);
    return rc;
}

static uint32_t end_at(struct ft_survey *s, const struct ft_crossing_port *port)
{
    uint32_t node = ft_ids_find_address(s->ids, &port->agent);

    ft_survey_pace(s);
    return node < s->node_count ? ft_survey_end(s, node, port->ifindex) : FT_NONE;
}

static bool is_free(const struct ft_survey *s, uint32_t at)
{
    const struct ft_end *end = &s->ends[at];

    return end->link == FT_NONE && !end->device && !end->aggregate && end->lag == FT_NONE &&
           (end->base == FT_NONE || ft_topology_port(s->base, end->base)->nic == FT_NONE);
}

static void note_alias(struct ft_survey *s, const struct ft_crossing_found *f, uint32_t at)
{
    const struct ft_end *end = &s->ends[at], *said = &s->ends[end->link];
    char agent[FT_IP_TEXT_BYTES];

    ft_ip_format(&f->port.agent, agent);
    ft_findings_add(s->findings, FT_FINDING_NOTE, s->nodes[end->node].name, end->name, ADVISE_ALIAS,
                    "samples show that port #%u of exporter %s, which belongs to no switch, is at "
                    "its other end; it is linked to %.100s %.60s",
                    f->port.ifindex, agent, s->nodes[said->node].name, said->name);
}

/* Whether an exporter that nobody knows is a switch of its own: a link of it is found, and none
 * replaces a link that is known. Where nothing is known at all, its hosts are enough. */
static bool is_switch(struct ft_survey *s, uint32_t first)
{
    const struct ft_ip *agent = &s->sampled[first].port.agent;
    bool linked = false, hosts = false, alias = false;

    for (uint32_t i = first; is_of(s, i, agent); i++) {
        const struct ft_crossing_found *f = &s->sampled[i];
        uint32_t at = f->linked ? end_at(s, &f->peer) : FT_NONE;

        hosts |= f->has_hosts;
        linked |= f->linked;
        if (at != FT_NONE && s->ends[at].link != FT_NONE) {
            note_alias(s, f, at);
            alias = true;
        }
    }
    return !alias && (linked || (hosts && ft_topology_switches(s->base) == 0 &&
                                 ft_reports_count(s->reports) == 0));
}

static int add_switch(struct ft_survey *s, uint32_t first)
{
    const struct ft_ip agent = s->sampled[first].port.agent;
    struct ft_node *nodes = realloc(s->nodes, (s->node_count + 1) * sizeof(*nodes));
    uint32_t node = s->node_count;

    if (!nodes)
        return -ENOMEM;
    s->nodes = nodes;
    s->nodes[node] = (struct ft_node){
        .base = FT_NONE, .first_end = s->end_count, .sampled = true, .agent = agent};
    ft_ip_format(&agent, s->nodes[node].name);
    s->node_count++;
    for (uint32_t i = first; is_of(s, i, &agent); i++)
        if (!add_port(s, node, &agent, s->sampled[i].port.ifindex))
            return -ENOMEM;
    ft_ids_add_address(s->ids, &agent, node);
    return 0;
}

static int add_switches(struct ft_survey *s)
{
    uint32_t known = s->node_count, next;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < s->sampled_count; i = next) {
        const struct ft_ip *agent = &s->sampled[i].port.agent;

        for (next = i; is_of(s, next, agent); next++)
            ;
        if (ft_ids_find_address(s->ids, agent) == FT_IDS_NONE && is_switch(s, i))
            rc = add_switch(s, i);
    }
    if (s->node_count > known)
        s->sampled_switches = s->node_count - known;
    return rc;
}

/* The file or LLDP knows the link, and samples the number of a port of it. */
static void number(struct ft_survey *s, uint32_t at, const struct ft_crossing_port *peer)
{
    uint32_t node = ft_ids_find_address(s->ids, &peer->agent);
    struct ft_end *far =
        at == FT_NONE || s->ends[at].link == FT_NONE ? NULL : &s->ends[s->ends[at].link];

    if (far && far->node == node && far->ifindex == 0 &&
        ft_survey_end(s, node, peer->ifindex) == FT_NONE)
        ft_survey_number(s, (uint32_t)(far - s->ends), peer->ifindex);
}

static void link_ports(struct ft_survey *s)
{
    for (uint32_t i = 0; i < s->sampled_count; i++)
        if (s->sampled[i].linked)
            number(s, end_at(s, &s->sampled[i].port), &s->sampled[i].peer);
    for (uint32_t i = 0; i < s->sampled_count; i++) {
        const struct ft_crossing_found *f = &s->sampled[i];
        uint32_t a = f->linked ? end_at(s, &f->port) : FT_NONE;
        uint32_t z = f->linked ? end_at(s, &f->peer) : FT_NONE;

        if (a == FT_NONE || z == FT_NONE || s->ends[a].node == s->ends[z].node || !is_free(s, a) ||
            !is_free(s, z))
            continue;
        s->ends[a].link = z;
        s->ends[z].link = a;
        s->ends[a].link_source = s->ends[z].link_source = FT_SOURCE_SAMPLES;
    }
}

/* A port as its samples are taken in: the switch by its first address in the present topology. */
static bool name_of(const struct ft_survey *s, uint32_t at, struct ft_crossing_port *out)
{
    const struct ft_end *end = &s->ends[at];
    uint32_t id = ft_topology_find_switch(s->present, s->nodes[end->node].name);
    const struct ft_switch *sw = id == FT_NONE ? NULL : ft_topology_switch(s->present, id);

    ft_survey_pace(s);
    if (!sw || sw->address_count == 0 || end->ifindex == 0)
        return false;
    *out = (struct ft_crossing_port){.agent = sw->addresses[0], .ifindex = end->ifindex};
    return true;
}

static const struct ft_crossing_found *sampled_at(const struct ft_survey *s,
                                                  const struct ft_crossing_port *port)
{
    struct ft_crossing_found key = {.port = *port};

    return s->sampled_count ? bsearch(&key, s->sampled, s->sampled_count, sizeof(key), by_port)
                            : NULL;
}

/* Whether flows show that a port leads to another one, and used it in the last seconds. */
static bool leads_to(const struct ft_survey *s, const struct ft_crossing_port *port,
                     const struct ft_crossing_port *peer)
{
    const struct ft_crossing_found *f = sampled_at(s, port);

    return f && f->linked && memcmp(&f->peer, peer, sizeof(*peer)) == 0 &&
           s->now_ms - f->last_ms <= CROSSED_MS;
}

bool ft_survey_crossed(struct ft_survey *s, uint32_t a)
{
    uint32_t z = s->ends[a].recalled;
    const struct ft_end *near = &s->ends[a], *far = &s->ends[z == FT_NONE ? a : z];
    struct ft_crossing_port ends[2];

    if (z == FT_NONE || !s->present || ft_survey_is_down(s, a) || ft_survey_is_down(s, z) ||
        !name_of(s, a, &ends[0]) || !name_of(s, z, &ends[1]) || !leads_to(s, &ends[0], &ends[1]) ||
        !leads_to(s, &ends[1], &ends[0]))
        return false;
    s->disputed = true;
    if (a < z)
        ft_findings_add(s->findings, FT_FINDING_NOTE, s->nodes[near->node].name, near->name,
                        ADVISE_LLDP,
                        "neither it nor %.100s %.60s receives LLDP from the other any more, yet "
                        "flows cross the link",
                        s->nodes[far->node].name, far->name);
    return true;
}

static bool agree(const struct ft_survey *s, uint32_t a, uint32_t z)
{
    struct ft_crossing_judgement j;
    struct ft_crossing_port ends[2];

    if (!name_of(s, a, &ends[0]) || !name_of(s, z, &ends[1]))
        return false;
    ft_crossings_judge(s->crossings, ends, &j);
    return j.verdict == FT_CROSSING_AGREES;
}

/* The end of a link that is swapped with the one whose other end samples saw here, and which has
 * the link that this one should have; FT_NONE. */
static uint32_t swapped_with(const struct ft_survey *s, uint32_t said, uint32_t is)
{
    uint32_t across = s->ends[is].link;

    return across != FT_NONE && agree(s, across, said) ? across : FT_NONE;
}

/* Told at the first end of the link, whichever of its ends the samples speak of: at the port that
 * leads elsewhere, or to the port where something else leads. */
static void report_miscabling(struct ft_survey *s, uint32_t at, uint32_t is, bool here,
                              const struct ft_crossing_proof *proof)
{
    const struct ft_end *end = &s->ends[at], *said = &s->ends[end->link], *other = &s->ends[is];
    uint32_t across = here ? swapped_with(s, end->link, is) : FT_NONE;
    bool near = across != FT_NONE && s->ends[across].node == end->node;
    char swapped[240] = "";
    struct ft_finding *f;

    if (across != FT_NONE)
        snprintf(swapped, sizeof(swapped), "; with %.60s%s%.60s the other way round: swapped",
                 near ? "" : s->nodes[s->ends[across].node].name, near ? "" : " ",
                 s->ends[across].name);
    f = ft_findings_add(
        s->findings, FT_FINDING_MISCABLING, s->nodes[end->node].name, end->name, ADVISE_CABLE,
        "%s it goes to %.60s %.40s; %llu samples of %u flows show %s%.60s %.40s%s%.120s",
        end->link_source == FT_SOURCE_STATIC ? "the file says" : "LLDP says",
        s->nodes[said->node].name, said->name, (unsigned long long)proof->samples, proof->flows,
        here ? "" : "that ", s->nodes[other->node].name, other->name, here ? "" : " goes there",
        swapped);
    if (!f)
        return;
    snprintf(f->peer, sizeof(f->peer), "%s", s->nodes[said->node].name);
    snprintf(f->peer_port, sizeof(f->peer_port), "%s", said->name);
    f->samples = proof->samples;
    f->flows = proof->flows;
    if (!here)
        return;
    snprintf(f->found, sizeof(f->found), "%s", s->nodes[other->node].name);
    snprintf(f->found_port, sizeof(f->found_port), "%s", other->name);
}

/* Links that somebody states, and samples contradict. */
static void judge_claims(struct ft_survey *s)
{
    for (uint32_t i = 0; i < s->end_count; i++) {
        const struct ft_end *end = &s->ends[i];
        struct ft_crossing_judgement j;
        struct ft_crossing_port ends[2];
        uint32_t other;

        if (end->link == FT_NONE || end->link < i || end->link_source == FT_SOURCE_SAMPLES ||
            !name_of(s, i, &ends[0]) || !name_of(s, end->link, &ends[1]))
            continue;
        ft_crossings_judge(s->crossings, ends, &j);
        other = j.verdict == FT_CROSSING_DIFFERS ? end_at(s, &j.other) : FT_NONE;
        if (other != FT_NONE)
            report_miscabling(s, i, other, j.end == 0, &j.proof);
    }
}

int ft_survey_samples(struct ft_survey *s)
{
    int rc;

    if (!s->crossings)
        return 0;
    rc = add_switches(s);
    if (rc)
        return rc;
    link_ports(s);
    if (s->present)
        judge_claims(s);
    return 0;
}

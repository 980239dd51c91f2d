// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADVISE_FILE "correct the topology file, or the switch"

/* An address where nothing has ever answered: a mistake, or a switch that is not there yet. */
static bool is_nobody(const struct ft_report *r)
{
    const Fabrictrace__SwitchReport *m = r->message;

    return ft_report_silent(m) && !m->name && !m->chassis_id && m->n_ports == 0;
}

void ft_survey_note_nobody(struct ft_survey *s, const struct ft_report *r)
{
    char agent[FT_IP_TEXT_BYTES];

    ft_ip_format(&r->agent, agent);
    ft_findings_add(s->findings, FT_FINDING_NOTE, agent, NULL,
                    "check the address, its SNMP credentials and access list, or remove it from "
                    "the poller's switches",
                    "no SNMP answer from this address so far%s%.200s",
                    r->message->problem ? ": " : "",
                    r->message->problem ? r->message->problem : "");
}

/* The static switch that owns an address of the report; the polled address speaks first. */
static uint32_t base_by_address(const struct ft_survey *s, const struct ft_report *r)
{
    uint32_t found = ft_topology_switch_at(s->base, &r->agent);
    struct ft_ip ip;

    ft_survey_pace(s);
    for (size_t i = 0; found == FT_NONE && i < r->message->n_addresses; i++)
        if (ft_ip_from_bytes(r->message->addresses[i].data, r->message->addresses[i].len, &ip) == 0)
            found = ft_topology_switch_at(s->base, &ip);
    return found;
}

static void give_report(struct ft_survey *s, uint32_t node, const struct ft_report *r)
{
    struct ft_node *n = &s->nodes[node];

    if (!n->report || r->time_ms > n->report->time_ms)
        n->report = r;
}

struct unmatched {
    const struct ft_report *report;
    uint32_t index; /* among the reports */
};

static int compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

/* Reports of one switch by several of its addresses lie together. */
static int by_identity(const void *a, const void *b)
{
    const struct ft_report *x = ((const struct unmatched *)a)->report;
    const struct ft_report *y = ((const struct unmatched *)b)->report;
    int by = compare_text(x->message->name, y->message->name);

    if (by == 0)
        by = (int)x->message->chassis_kind - (int)y->message->chassis_kind;
    if (by == 0)
        by = compare_text(x->message->chassis_id, y->message->chassis_id);
    return by ? by : memcmp(&x->agent, &y->agent, sizeof(x->agent));
}

static bool same_switch(const struct ft_report *a, const struct ft_report *b)
{
    return a->message->chassis_id && *a->message->chassis_id && b->message->chassis_id &&
           a->message->chassis_kind == b->message->chassis_kind &&
           strcmp(a->message->chassis_id, b->message->chassis_id) == 0 &&
           compare_text(a->message->name, b->message->name) == 0;
}

static bool usable_name(const char *name)
{
    return name && *name && strnlen(name, 128) < 128;
}

static void add_nodes(struct ft_survey *s, struct unmatched *list, uint32_t count)
{
    struct ft_ids *names = ft_ids_new();
    uint32_t first = s->node_count;

    qsort(list, count, sizeof(*list), by_identity);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || !same_switch(list[i - 1].report, list[i].report)) {
            s->nodes[s->node_count] = (struct ft_node){.base = FT_NONE};
            s->node_count++;
        }
        s->owner[list[i].index] = s->node_count - 1;
        give_report(s, s->node_count - 1, list[i].report);
    }
    for (uint32_t i = 0; names && i < s->node_count; i++)
        ft_ids_add(names, 0, 0, i < first ? s->nodes[i].name : s->nodes[i].report->message->name,
                   i);
    for (uint32_t i = first; i < s->node_count; i++, ft_survey_pace(s)) {
        const struct ft_report *r = s->nodes[i].report;
        const char *name = r->message->name;
        char agent[FT_IP_TEXT_BYTES];

        ft_ip_format(&r->agent, agent);
        if (!usable_name(name))
            snprintf(s->nodes[i].name, sizeof(s->nodes[i].name), "%s", agent);
        else if (names && ft_ids_find(names, 0, 0, name) == i)
            snprintf(s->nodes[i].name, sizeof(s->nodes[i].name), "%s", name);
        else
            snprintf(s->nodes[i].name, sizeof(s->nodes[i].name), "%.80s@%s", name, agent);
    }
    ft_ids_free(names);
}

static int gather_nodes(struct ft_survey *s)
{
    uint32_t switches = ft_topology_switches(s->base), index = 0, count = 0, i = 0;
    size_t reports = ft_reports_count(s->reports);
    struct unmatched *left = calloc(reports + 1, sizeof(*left));
    const struct ft_report *r;

    s->nodes = calloc(switches + reports + 1, sizeof(*s->nodes));
    s->owner = calloc(reports + 1, sizeof(*s->owner));
    if (!left || !s->nodes || !s->owner) {
        free(left);
        return -ENOMEM;
    }
    for (; s->node_count < switches; s->node_count++) {
        struct ft_node *n = &s->nodes[s->node_count];

        n->base = s->node_count;
        snprintf(n->name, sizeof(n->name), "%s", ft_topology_switch(s->base, n->base)->name);
    }
    for (; (r = ft_reports_next(s->reports, &index)); i++) {
        s->owner[i] = base_by_address(s, r);
        if (s->owner[i] != FT_NONE)
            give_report(s, s->owner[i], r);
    }
    /* By name only where no address spoke, so that a doubled name does not merge two switches. */
    for (index = i = 0; (r = ft_reports_next(s->reports, &index)); i++) {
        uint32_t base;

        if (s->owner[i] != FT_NONE)
            continue;
        if (is_nobody(r))
            continue;
        base = r->message->name ? ft_topology_find_switch(s->base, r->message->name) : FT_NONE;
        if (base != FT_NONE && !s->nodes[base].report) {
            s->owner[i] = base;
            give_report(s, base, r);
        } else {
            left[count++] = (struct unmatched){r, i};
        }
    }
    add_nodes(s, left, count);
    free(left);
    return 0;
}

static int gather_base_ports(struct ft_survey *s, uint32_t node)
{
    const struct ft_switch *sw = ft_topology_switch(s->base, s->nodes[node].base);

    for (uint32_t i = 0; i < sw->port_count; i++) {
        const struct ft_port *port = ft_topology_port(s->base, sw->ports[i]);
        struct ft_end *end = ft_survey_add_end(s, node, port->name);

        if (!end)
            return -ENOMEM;
        end->base = sw->ports[i];
        end->speed_bps = port->speed_bps;
        s->of_base[sw->ports[i]] = s->end_count - 1;
        ft_survey_number(s, s->end_count - 1, port->ifindex);
    }
    return 0;
}

static int gather_base_lags(struct ft_survey *s, uint32_t node)
{
    for (uint32_t i = 0; i < ft_topology_lags(s->base); i++) {
        const struct ft_lag *lag = ft_topology_lag(s->base, i);
        uint32_t id = s->end_count;
        struct ft_end *end;

        if (lag->switch_id != s->nodes[node].base)
            continue;
        end = ft_survey_add_end(s, node, lag->name);
        if (!end)
            return -ENOMEM;
        end->aggregate = true;
        ft_survey_number(s, id, lag->ifindex);
        for (uint32_t m = 0; m < lag->member_count; m++) {
            struct ft_end *member = &s->ends[s->of_base[lag->members[m]]];

            member->lag = id;
            member->lag_stated = true;
        }
    }
    return 0;
}

/* The end that the file already made for a reported port: by ifIndex, else by a name without one.
 */
static struct ft_end *known_end(struct ft_survey *s, const struct ft_ids *names, uint32_t node,
                                const Fabrictrace__PortInfo *info)
{
    uint32_t at = ft_survey_end(s, node, info->ifindex);
    struct ft_end *end;

    if (at != FT_NONE)
        return &s->ends[at];
    at = ft_ids_find(names, 0, 0, info->name);
    if (at >= s->end_count)
        return NULL;
    end = &s->ends[at];
    if (end->ifindex)
        ft_findings_add(s->findings, FT_FINDING_CONTRADICTION, s->nodes[node].name, info->name,
                        ADVISE_FILE, "the file has ifIndex %u, the switch reports %u", end->ifindex,
                        info->ifindex);
    else
        ft_survey_number(s, at, info->ifindex);
    return end;
}

/* Names of the ports that the file made; NULL without memory. */
static struct ft_ids *name_ends(const struct ft_survey *s, uint32_t node)
{
    const struct ft_node *n = &s->nodes[node];
    struct ft_ids *names = ft_ids_new();

    for (uint32_t i = 0; names && i < n->end_count; i++, ft_survey_pace(s))
        ft_ids_add(names, 0, 0, s->ends[n->first_end + i].name, n->first_end + i);
    return names;
}

static int gather_reported_ports(struct ft_survey *s, uint32_t node)
{
    const Fabrictrace__SwitchReport *m = s->nodes[node].report->message;
    bool in_file = s->nodes[node].base != FT_NONE;
    struct ft_ids *names = in_file ? name_ends(s, node) : NULL;
    int rc = in_file && !names ? -ENOMEM : 0;
    char unnamed[32];

    for (size_t i = 0; rc == 0 && i < m->n_ports; i++) {
        const Fabrictrace__PortInfo *info = m->ports[i];
        struct ft_end *end;

        ft_survey_pace(s);
        if (info->ifindex == 0)
            continue;
        end = in_file ? known_end(s, names, node, info) : NULL;
        snprintf(unnamed, sizeof(unnamed), "#%u", info->ifindex);
        if (!end)
            end = ft_survey_add_end(s, node, usable_name(info->name) ? info->name : unnamed);
        if (!end) {
            rc = -ENOMEM;
            break;
        }
        if (!end->ifindex)
            ft_survey_number(s, (uint32_t)(end - s->ends), info->ifindex);
        if (!end->speed_bps)
            end->speed_bps = info->speed_bps;
        end->info = info;
    }
    ft_ids_free(names);
    return rc;
}

/* Members as the switch reports them, where the file does not say. */
static void gather_members(struct ft_survey *s, uint32_t node)
{
    const struct ft_node *n = &s->nodes[node];

    for (uint32_t i = n->first_end; i < n->first_end + n->end_count; i++) {
        struct ft_end *end = &s->ends[i];
        uint32_t lag = end->info ? end->info->lag_ifindex : 0;
        uint32_t at = ft_survey_end(s, node, lag);

        if (end->lag_stated && lag && at != end->lag)
            ft_findings_add(
                s->findings, FT_FINDING_CONTRADICTION, n->name, end->name, ADVISE_FILE,
                "the file has it in aggregate %.60s, the switch in another one: using the file",
                s->ends[end->lag].name);
        if (end->lag_stated || at == FT_NONE || at == i || end->aggregate)
            continue;
        end->lag = at;
        s->ends[at].aggregate = true;
    }
    for (uint32_t i = n->first_end; i < n->first_end + n->end_count; i++) {
        struct ft_end *lag = s->ends[i].lag == FT_NONE ? NULL : &s->ends[s->ends[i].lag];

        if (!lag)
            continue;
        lag->members++;
        lag->member = i;
    }
}

/* An aggregate has the MAC address of a member; LLDP speaks of members. */
static void add_port_ids(struct ft_survey *s, uint32_t node)
{
    const struct ft_node *n = &s->nodes[node];

    for (uint32_t i = n->first_end; i < n->first_end + n->end_count; i++) {
        const struct ft_end *end = &s->ends[i];
        const Fabrictrace__PortInfo *info = end->info;

        ft_survey_pace(s);
        ft_ids_add(s->ids, node, FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME,
                   info && info->name ? info->name : end->name, i);
        if (!info)
            continue;
        ft_ids_add_own(s->ids, node, info->lldp_id_kind, info->lldp_id, i);
        ft_ids_add(s->ids, node, FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_ALIAS, info->alias, i);
        if (!end->aggregate)
            ft_ids_add(s->ids, node, FABRICTRACE__ID_KIND__ID_KIND_MAC, info->mac, i);
    }
}

static void add_switch_ids(struct ft_survey *s)
{
    const struct ft_report *r;
    uint32_t index = 0, i = 0;
    struct ft_ip ip;

    for (uint32_t n = 0; n < ft_topology_switches(s->base); n++) {
        const struct ft_switch *sw = ft_topology_switch(s->base, n);

        ft_ids_add(s->ids, FT_IDS_NAMES, 0, sw->name, n);
        for (uint32_t a = 0; a < sw->address_count; a++)
            ft_ids_add_address(s->ids, &sw->addresses[a], n);
    }
    for (; (r = ft_reports_next(s->reports, &index)); i++) {
        const Fabrictrace__SwitchReport *m = r->message;
        uint32_t node = s->owner[i];

        ft_survey_pace(s);
        if (node == FT_NONE)
            continue;
        ft_ids_add(s->ids, FT_IDS_CHASSIS, m->chassis_kind, m->chassis_id, node);
        ft_ids_add(s->ids, FT_IDS_NAMES, 0, m->name, node);
        ft_ids_add_address(s->ids, &r->agent, node);
        for (size_t a = 0; a < m->n_addresses; a++)
            if (ft_ip_from_bytes(m->addresses[a].data, m->addresses[a].len, &ip) == 0)
                ft_ids_add_address(s->ids, &ip, node);
    }
}

static void note_state(struct ft_survey *s, const struct ft_node *n)
{
    const struct ft_report *r = n->report;

    if (n->stale)
        ft_findings_add(s->findings, FT_FINDING_NOTE, n->name, NULL,
                        "check the switch poller that has it in its configuration",
                        "no report for three intervals: its last known ports are shown");
    else if (ft_report_silent(r->message))
        ft_findings_add(s->findings, FT_FINDING_NOTE, n->name, NULL,
                        "check its address, its SNMP credentials and access list",
                        "it does not answer SNMP%s%.200s", r->message->problem ? ": " : "",
                        r->message->problem ? r->message->problem : "");
    else if (r->lldp_missing)
        ft_findings_add(s->findings, FT_FINDING_NOTE, n->name, NULL, "enable LLDP and LLDP-MIB",
                        r->lldp_lost
                            ? "it answers no LLDP any more: using the last known neighbours"
                            : "it answers no LLDP: its links are known only from its neighbours");
    else if (r->message->problem && !r->lldp_absent)
        ft_findings_add(s->findings, FT_FINDING_NOTE, n->name, NULL, NULL, "%.300s",
                        r->message->problem);
}

/* SNMP may answer from a cache: what it said up soon after sFlow's word does not count. */
static void hear_words(struct ft_survey *s)
{
    struct ft_down_port word;
    uint32_t index = 0;

    while (s->down_ports && ft_down_ports_next(s->down_ports, &index, &word)) {
        uint32_t node = ft_ids_find_address(s->ids, &word.agent);
        uint32_t at = node < s->node_count ? ft_survey_end(s, node, word.ifindex) : FT_NONE;
        const struct ft_report *r = at == FT_NONE ? NULL : s->nodes[node].report;
        const Fabrictrace__PortInfo *info = at == FT_NONE ? NULL : s->ends[at].info;
        bool snmp_up = r && !s->nodes[node].stale && !ft_report_silent(r->message) && info &&
                       info->has_oper_up && info->oper_up && r->time_ms > word.time_ms;
        bool later;

        ft_survey_pace(s);
        if (at == FT_NONE)
            continue;
        s->ends[at].word_down = !snmp_up || r->time_ms - word.time_ms < FT_SURVEY_CACHED_MS;
        later = r && !s->nodes[node].stale && !ft_report_silent(r->message) && info &&
                info->has_admin_up && r->time_ms - word.time_ms >= FT_SURVEY_CACHED_MS;
        s->ends[at].word_shut = word.shut && !(later && info->admin_up);
        s->ends[at].word_enabled = word.enabled && !later;
        s->disputed |= snmp_up && s->ends[at].word_down;
    }
}

int ft_survey_gather(struct ft_survey *s)
{
    s->ids = ft_ids_new();
    if (!s->ids || ft_survey_index(s) || gather_nodes(s) || ft_survey_read_samples(s))
        return -ENOMEM;
    for (uint32_t i = 0; i < s->node_count; i++) {
        struct ft_node *n = &s->nodes[i];

        n->first_end = s->end_count;
        n->stale = n->report && ft_report_stale(s->reports, n->report);
        if ((n->base != FT_NONE && (gather_base_ports(s, i) || gather_base_lags(s, i))) ||
            (n->report && gather_reported_ports(s, i)) || ft_survey_sampled_ports(s, i))
            return -ENOMEM;
        gather_members(s, i);
        add_port_ids(s, i);
        if (n->report)
            note_state(s, n);
    }
    add_switch_ids(s);
    hear_words(s);
    return 0;
}

void ft_survey_release(struct ft_survey *s)
{
    ft_ids_free(s->ids);
    free(s->nodes);
    free(s->ends);
    free(s->owner);
    free(s->nics);
    free(s->sampled);
    ft_survey_unindex(s);
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/discovery/survey.h"

/* The builder's complaints are findings: what contradicts is left out, the rest is built. */
static void log_refused(const struct ft_survey *s, struct ft_diag **diag, const char *switch_name,
                        const char *port)
{
    struct ft_diag *fresh;

    ft_survey_pace(s);
    if (ft_diag_count(*diag) == 0)
        return;
    for (size_t i = 0; ft_diag_text(*diag, i); i++)
        ft_findings_add(s->findings, FT_FINDING_CONTRADICTION, switch_name, port,
                        "look at the switch's configuration, or state it in the topology file",
                        "%.300s", ft_diag_text(*diag, i));
    fresh = ft_diag_new();
    if (!fresh)
        return;
    ft_diag_free(*diag);
    *diag = fresh;
}

static bool is_own_address(const struct ft_ip *ip)
{
    static const uint8_t none[15];

    if (ft_ip_is4(ip))
        return ip->b[12] != 127 && ip->b[12] != 0 && !(ip->b[12] == 169 && ip->b[13] == 254);
    return !(ip->b[0] == 0xfe && (ip->b[1] & 0xc0) == 0x80) && memcmp(ip->b, none, 15) != 0;
}

static void take_address(const struct ft_survey *s, struct ft_topology_builder *b,
                         struct ft_ids *seen, uint32_t node, const struct ft_ip *ip,
                         struct ft_diag *diag)
{
    ft_survey_pace(s);
    if (ft_ids_find_address(seen, ip) != FT_IDS_NONE)
        return;
    /* An address that two switches have, such as a shared gateway, identifies neither. */
    if (is_own_address(ip) && ft_ids_find_address(s->ids, ip) == node)
        ft_topology_add_address(b, node, ip, diag);
    ft_ids_add_address(seen, ip, node);
}

static void add_addresses(const struct ft_survey *s, struct ft_topology_builder *b,
                          struct ft_diag **diag)
{
    const struct ft_report *r;
    uint32_t index = 0, i = 0;
    struct ft_ip ip;
    struct ft_ids *seen = ft_ids_new();

    for (uint32_t n = 0; n < ft_topology_switches(s->base); n++) {
        const struct ft_switch *sw = ft_topology_switch(s->base, n);

        for (uint32_t a = 0; a < sw->address_count; a++) {
            ft_survey_pace(s);
            ft_topology_add_address(b, n, &sw->addresses[a], *diag);
            ft_ids_add_address(seen, &sw->addresses[a], n);
        }
    }
    for (; seen && (r = ft_reports_next(s->reports, &index)); i++) {
        if (s->owner[i] == FT_NONE)
            continue;
        for (size_t a = 0; a <= r->message->n_addresses; a++) {
            const ProtobufCBinaryData *bytes = &r->message->addresses[a ? a - 1 : 0];

            ip = r->agent;
            if (a && ft_ip_from_bytes(bytes->data, bytes->len, &ip))
                continue;
            take_address(s, b, seen, s->owner[i], &ip, *diag);
        }
        log_refused(s, diag, s->nodes[s->owner[i]].name, NULL);
    }
    for (uint32_t n = 0; seen && n < s->node_count; n++) {
        const Fabrictrace__Neighbor *row = s->nodes[n].heard;

        for (size_t a = 0; row && a < row->n_addresses; a++)
            if (ft_ip_from_bytes(row->addresses[a].data, row->addresses[a].len, &ip) == 0)
                take_address(s, b, seen, n, &ip, *diag);
        if (s->nodes[n].sampled)
            take_address(s, b, seen, n, &s->nodes[n].agent, *diag);
        log_refused(s, diag, s->nodes[n].name, NULL);
    }
    ft_ids_free(seen);
}

static bool is_path_link(const struct ft_survey *s, const struct ft_end *end)
{
    enum ft_tier here, there;

    if (end->link == FT_NONE || end->down)
        return false;
    here = s->nodes[end->node].tier;
    there = s->nodes[s->ends[end->link].node].tier;
    return here != FT_TIER_UNKNOWN && there != FT_TIER_UNKNOWN && here != there;
}

static bool leads_somewhere(const struct ft_survey *s, uint32_t at)
{
    const struct ft_end *end = &s->ends[at];

    return is_path_link(s, end) || (end->nic != FT_NONE && !s->nics[end->nic].dropped) ||
           (end->base != FT_NONE && ft_topology_port(s->base, end->base)->nic != FT_NONE);
}

/* An aggregate with those of its members that may be up. */
static void add_lag(const struct ft_survey *s, struct ft_topology_builder *b, uint32_t aggregate,
                    struct ft_diag **diag)
{
    const struct ft_end *lag = &s->ends[aggregate];
    const struct ft_node *n = &s->nodes[lag->node];
    uint32_t id = FT_NONE, lost = FT_NONE, some = 0;

    for (uint32_t i = n->first_end; i < n->first_end + n->end_count; i++) {
        if (s->ends[i].lag != aggregate || ft_survey_member_down(s, i))
            continue;
        if (id == FT_NONE)
            id = ft_topology_add_lag(b, lag->node, lag->name, lag->ifindex, *diag);
        if (id != FT_NONE)
            ft_topology_add_member(b, id, s->ends[i].name, *diag);
        if (leads_somewhere(s, i))
            some++;
        else
            lost = i;
    }
    log_refused(s, diag, n->name, lag->name);
    if (some && lost != FT_NONE)
        ft_findings_add(s->findings, FT_FINDING_NOTE, n->name, lag->name,
                        "enable LLDP on both sides, or put the link into the topology file",
                        "the link of its member %.100s is not known, so samples that name the "
                        "aggregate cannot be used",
                        s->ends[lost].name);
}

static void add_switches(const struct ft_survey *s, struct ft_topology_builder *b,
                         struct ft_diag **diag)
{
    for (uint32_t i = 0; i < s->node_count; i++)
        ft_topology_add_switch(b, s->nodes[i].name, s->nodes[i].tier, *diag);
    add_addresses(s, b, diag);
    for (uint32_t i = 0; i < s->end_count; i++) {
        const struct ft_end *end = &s->ends[i];

        /* Samples that name an aggregate of several members do not say which. */
        if (end->aggregate && end->link == FT_NONE)
            continue;
        ft_topology_add_port(b, end->node, end->name, end->ifindex, end->speed_bps, *diag);
        log_refused(s, diag, s->nodes[end->node].name, end->name);
    }
    for (uint32_t i = 0; i < s->end_count; i++)
        if (s->ends[i].aggregate && s->ends[i].link == FT_NONE)
            add_lag(s, b, i, diag);
    for (uint32_t i = 0; i < s->end_count; i++) {
        const struct ft_end *end = &s->ends[i], *far;

        if (!is_path_link(s, end) || end->link < i)
            continue;
        far = &s->ends[end->link];
        ft_topology_add_link(b, s->nodes[end->node].name, end->name, s->nodes[far->node].name,
                             far->name, *diag);
        log_refused(s, diag, s->nodes[end->node].name, end->name);
    }
}

static void add_static_hosts(const struct ft_survey *s, struct ft_topology_builder *b,
                             uint32_t *nics, struct ft_diag *diag)
{
    for (uint32_t h = 0; h < ft_topology_hosts(s->base); h++) {
        const struct ft_host *host = ft_topology_host(s->base, h);
        uint32_t id = ft_topology_add_host(b, host->name, diag);

        for (uint32_t i = 0; i < host->nic_count; i++) {
            const struct ft_nic *nic = ft_topology_nic(s->base, host->nics[i]);
            uint32_t n = ft_topology_add_nic(b, id, nic->rail, diag);

            nics[host->nics[i]] = n;
            ft_survey_pace(s);
            for (uint32_t a = 0; a < nic->address_count; a++)
                ft_topology_add_nic_address(b, n, &nic->addresses[a], diag);
            for (uint32_t a = 0; a < nic->attach_count; a++) {
                const struct ft_port *port = ft_topology_port(s->base, nic->attach[a]);

                ft_topology_attach(b, n, ft_topology_switch(s->base, port->switch_id)->name,
                                   port->name, diag);
            }
        }
    }
}

static int by_host(const void *a, const void *b)
{
    const struct ft_found_nic *x = *(const struct ft_found_nic *const *)a;
    const struct ft_found_nic *y = *(const struct ft_found_nic *const *)b;
    int by = strcmp(x->host, y->host);

    if (by)
        return by;
    return x->ends[0] < y->ends[0] ? -1 : x->ends[0] > y->ends[0];
}

static void attach_found(const struct ft_survey *s, struct ft_topology_builder *b,
                         const struct ft_found_nic *nic, uint32_t id, struct ft_diag **diag)
{
    for (uint32_t i = 0; i < nic->address_count; i++)
        if (ft_topology_nic_at(s->base, &nic->addresses[i]) == FT_NONE)
            ft_topology_add_nic_address(b, id, &nic->addresses[i], *diag);
    for (uint32_t i = 0; i < nic->end_count; i++) {
        const struct ft_end *end = &s->ends[nic->ends[i]];

        ft_topology_attach(b, id, s->nodes[end->node].name, end->name, *diag);
        log_refused(s, diag, s->nodes[end->node].name, end->name);
    }
}

static void add_found_hosts(const struct ft_survey *s, struct ft_topology_builder *b,
                            const uint32_t *nics, struct ft_diag **diag)
{
    const struct ft_found_nic **list = calloc(s->nic_count + 1, sizeof(*list));
    struct ft_ids *hosts = ft_ids_new();
    uint32_t count = 0;

    for (uint32_t h = 0; hosts && h < ft_topology_hosts(s->base); h++, ft_survey_pace(s))
        ft_ids_add(hosts, 0, 0, ft_topology_host(s->base, h)->name, h);
    for (uint32_t i = 0; list && i < s->nic_count; i++)
        if (!s->nics[i].dropped && s->nics[i].end_count && *s->nics[i].host)
            list[count++] = &s->nics[i];
    if (count)
        qsort(list, count, sizeof(*list), by_host);
    for (uint32_t i = 0; hosts && i < count; i++) {
        const struct ft_found_nic *nic = list[i];
        uint32_t host = ft_ids_find(hosts, 0, 0, nic->host);

        if (nic->base != FT_NONE) {
            attach_found(s, b, nic, nics[nic->base], diag);
            continue;
        }
        if (host == FT_IDS_NONE) {
            host = ft_topology_add_host(b, nic->host, *diag);
            ft_ids_add(hosts, 0, 0, nic->host, host);
        }
        if (host != FT_NONE)
            attach_found(s, b, nic, ft_topology_add_nic(b, host, FT_NONE, *diag), diag);
        log_refused(s, diag, NULL, NULL);
    }
    ft_ids_free(hosts);
    free(list);
}

struct ft_topology *ft_survey_build(const struct ft_survey *s)
{
    struct ft_topology_builder *b = ft_topology_builder_new(ft_topology_fabric(s->base));
    uint32_t *nics = calloc(ft_topology_nics(s->base) + 1, sizeof(*nics));
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *t = NULL;

    if (b && nics && diag) {
        ft_topology_pace(b, s->task);
        add_switches(s, b, &diag);
        add_static_hosts(s, b, nics, diag);
        log_refused(s, &diag, NULL, NULL);
        add_found_hosts(s, b, nics, &diag);
        t = ft_topology_build(b, diag);
        log_refused(s, &diag, NULL, NULL);
    }
    ft_diag_free(diag);
    free(nics);
    ft_topology_builder_free(b);
    return t;
}

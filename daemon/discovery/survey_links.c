// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "daemon/discovery/survey.h"

#define ADVISE_PORT_ID                                                                             \
    "let the neighbour send its interface name as LLDP port id, or state the link in the "         \
    "topology file"
#define ADVISE_CABLE "check the cable; if the topology file is wrong, correct it"

static const struct ft_node *node_of(const struct ft_survey *s, uint32_t end)
{
    return &s->nodes[s->ends[end].node];
}

static void take_static_links(struct ft_survey *s)
{
    for (uint32_t i = 0; i < s->end_count; i++) {
        struct ft_end *end = &s->ends[i];
        uint32_t peer = end->base == FT_NONE ? FT_NONE : ft_topology_port(s->base, end->base)->peer;

        if (peer == FT_NONE)
            continue;
        end->link = s->of_base[peer];
        s->looks++;
        end->link_source = FT_SOURCE_STATIC;
    }
}

uint32_t ft_survey_neighbour(const struct ft_survey *s, const Fabrictrace__Neighbor *row)
{
    uint32_t found = ft_ids_find(s->ids, FT_IDS_CHASSIS, row->chassis_kind, row->chassis_id);
    bool several = found == FT_IDS_SEVERAL;
    struct ft_ip ip;

    if (found >= s->node_count)
        found = ft_ids_find(s->ids, FT_IDS_NAMES, 0, row->name);
    several |= found == FT_IDS_SEVERAL;
    for (size_t i = 0; found >= s->node_count && i < row->n_addresses; i++)
        if (ft_ip_from_bytes(row->addresses[i].data, row->addresses[i].len, &ip) == 0)
            found = ft_ids_find_address(s->ids, &ip);
    if (found < s->node_count)
        return found;
    return several ? FT_IDS_SEVERAL : FT_IDS_NONE;
}

static uint32_t port_of(const struct ft_survey *s, uint32_t node, const Fabrictrace__Neighbor *row)
{
    uint32_t found = ft_ids_find_own(s->ids, node, row->port_kind, row->port_id);

    switch (row->port_kind) {
    case FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME:
    case FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_ALIAS:
    case FABRICTRACE__ID_KIND__ID_KIND_MAC:
        if (found == FT_IDS_NONE)
            found = ft_ids_find(s->ids, node, row->port_kind, row->port_id);
        break;
    default:
        /* A local id means something only in its owner's own words. */
        break;
    }
    return found < s->end_count ? found : FT_NONE;
}

static bool hears(const struct ft_end *end, uint32_t far)
{
    for (uint32_t i = 0; i < end->claim_count; i++)
        if (end->claims[i] == far)
            return true;
    return false;
}

/* Which port a row means that names an aggregate: what is not certain stays the aggregate. */
static uint32_t through_lag(struct ft_survey *s, uint32_t end)
{
    uint32_t member = end == FT_NONE ? FT_NONE : ft_survey_member(s, end);

    return member == FT_NONE ? end : member;
}

static void read_row(struct ft_survey *s, uint32_t node, const Fabrictrace__Neighbor *row)
{
    uint32_t at = through_lag(s, ft_survey_end(s, node, row->ifindex));
    struct ft_end *end = at == FT_NONE ? NULL : &s->ends[at];
    uint32_t neighbour = ft_survey_neighbour(s, row);
    uint32_t far;

    ft_survey_pace(s);
    if (!end) {
        if (neighbour != FT_IDS_NONE)
            ft_findings_add(s->findings, FT_FINDING_NOTE, s->nodes[node].name, NULL, ADVISE_PORT_ID,
                            "the neighbour '%.100s' does not report an interface name as port id",
                            row->name ? row->name : "");
        return;
    }
    if (neighbour == FT_IDS_NONE) {
        end->device = row;
        return;
    }
    end->hears_switch = true;
    if (neighbour == FT_IDS_SEVERAL || neighbour == node) {
        ft_findings_add(s->findings, FT_FINDING_NOTE, s->nodes[node].name, end->name,
                        "give each switch its own chassis id and name",
                        "its neighbour is '%.100s', %s", row->name ? row->name : "",
                        neighbour == node ? "which is the switch itself"
                                          : "the name of several switches");
        return;
    }
    /* Where the id names no port the other side may know better; if not, a finding will say so. */
    far = through_lag(s, port_of(s, neighbour, row));
    if (far != FT_NONE && end->claim_count < FT_CLAIMS_MAX && !hears(end, far))
        end->claims[end->claim_count++] = far;
}

static void read_rows(struct ft_survey *s)
{
    for (uint32_t n = 0; n < s->node_count; n++) {
        const struct ft_report *r = s->nodes[n].report;

        for (size_t i = 0; r && !s->nodes[n].stale && i < r->message->n_neighbors; i++)
            read_row(s, n, r->message->neighbors[i]);
    }
}

/* No host is learnt at the members of an aggregate that leads to a switch. */
static void mark_members(struct ft_survey *s)
{
    for (uint32_t i = 0; i < s->end_count; i++) {
        uint32_t at = s->ends[i].lag;

        s->ends[i].in_fabric =
            at != FT_NONE && (s->ends[at].hears_switch || s->ends[at].was_linked);
    }
}

static bool has_static_nic(const struct ft_survey *s, const struct ft_end *end)
{
    return end->base != FT_NONE && ft_topology_port(s->base, end->base)->nic != FT_NONE;
}

static bool is_free(const struct ft_survey *s, uint32_t end)
{
    return s->ends[end].link == FT_NONE && !has_static_nic(s, &s->ends[end]);
}

static void link_up(struct ft_survey *s, uint32_t a, uint32_t z)
{
    s->ends[a].link = z;
    s->ends[z].link = a;
    s->ends[a].link_source = s->ends[z].link_source = FT_SOURCE_LLDP;
}

/* Both sides hear each other. */
static void take_mutual(struct ft_survey *s)
{
    for (uint32_t i = 0; i < s->end_count; i++)
        for (uint32_t k = 0; k < s->ends[i].claim_count; k++) {
            uint32_t far = s->ends[i].claims[k];

            ft_survey_pace(s);
            if (hears(&s->ends[far], i) && is_free(s, i) && is_free(s, far))
                link_up(s, i, far);
        }
}

/* One side hears the other, which hears nobody else. */
static void take_one_sided(struct ft_survey *s)
{
    for (uint32_t i = 0; i < s->end_count; i++)
        if (is_free(s, i) && s->ends[i].claim_count == 1)
            s->ends[s->ends[i].claims[0]].namers++;
    for (uint32_t i = 0; i < s->end_count; i++) {
        const struct ft_end *end = &s->ends[i];
        uint32_t far = end->claim_count == 1 ? end->claims[0] : FT_NONE;

        if (far != FT_NONE && is_free(s, i) && is_free(s, far) && s->ends[far].namers == 1 &&
            s->ends[far].claim_count == 0 && end->namers == 0)
            link_up(s, i, far);
    }
}

/* It answers SNMP, but not LLDP: no neighbour claim by it or of it proves that a link is missing.
 */
static bool is_mute(const struct ft_node *n)
{
    const Fabrictrace__SwitchReport *m = n->report && !n->stale ? n->report->message : NULL;

    return m && !m->has_lldp && !ft_report_silent(m);
}

/* The links that a switch had when its LLDP died, as far as no port hears anybody else. */
static void take_recalled(struct ft_survey *s)
{
    for (uint32_t i = 0; i < s->end_count; i++) {
        uint32_t far = s->ends[i].recalled;

        if (far == FT_NONE || !is_mute(node_of(s, i)) || !is_free(s, i) || !is_free(s, far) ||
            s->ends[i].device || s->ends[far].device || s->ends[i].hears_switch ||
            s->ends[far].hears_switch || s->ends[i].namers || s->ends[far].namers)
            continue;
        link_up(s, i, far);
    }
}

static void note_claim(struct ft_survey *s, uint32_t at, uint32_t heard)
{
    const struct ft_end *end = &s->ends[at], *far = &s->ends[heard];
    const char *name = node_of(s, at)->name;

    if (has_static_nic(s, end) || has_static_nic(s, far)) {
        ft_findings_add(
            s->findings, FT_FINDING_CONTRADICTION, name, end->name, ADVISE_CABLE,
            "its neighbour is %.60s %.60s, but the file has a NIC on that link: using the file",
            node_of(s, heard)->name, far->name);
        return;
    }
    if (end->link != FT_NONE && end->link_source == FT_SOURCE_STATIC) {
        ft_findings_add(
            s->findings, FT_FINDING_CONTRADICTION, name, end->name, ADVISE_CABLE,
            "its neighbour is %.60s %.60s, but the file links it to %.60s %.60s: using the file",
            node_of(s, heard)->name, far->name, node_of(s, end->link)->name,
            s->ends[end->link].name);
        return;
    }
    if (far->link != FT_NONE)
        ft_findings_add(s->findings, FT_FINDING_CONTRADICTION, name, end->name,
                        "check the cable, or wait until old neighbours have expired",
                        "its neighbour is %.60s %.60s, which is linked to %.60s %.60s",
                        node_of(s, heard)->name, far->name, node_of(s, far->link)->name,
                        s->ends[far->link].name);
    else
        ft_findings_add(
            s->findings, FT_FINDING_CONTRADICTION, name, end->name,
            "check the cable, or wait until old neighbours have expired",
            "its neighbour %.60s %.60s reports other devices on that port; link ignored",
            node_of(s, heard)->name, far->name);
}

static void note_leftovers(struct ft_survey *s)
{
    for (uint32_t i = 0; i < s->end_count; i++) {
        const struct ft_end *end = &s->ends[i];

        for (uint32_t k = 0; k < end->claim_count; k++, ft_survey_pace(s))
            if (end->link != end->claims[k])
                note_claim(s, i, end->claims[k]);
        if (end->hears_switch && end->claim_count == 0 && end->link == FT_NONE)
            ft_findings_add(s->findings, FT_FINDING_NOTE, node_of(s, i)->name, end->name,
                            ADVISE_PORT_ID,
                            "its neighbour is a switch, but the port id of that switch is unknown");
    }
}

void ft_survey_links(struct ft_survey *s)
{
    take_static_links(s);
    read_rows(s);
    mark_members(s);
    take_mutual(s);
    take_one_sided(s);
    take_recalled(s);
    note_leftovers(s);
}

bool ft_survey_is_heard(const struct ft_survey *s, uint32_t at)
{
    uint32_t far = s->ends[at].link;

    return far != FT_NONE && hears(&s->ends[at], far) && hears(&s->ends[far], at);
}

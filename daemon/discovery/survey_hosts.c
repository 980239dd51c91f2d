// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/discovery/survey.h"
#include "lib/base/grow.h"

/* More addresses behind one port are no host, but a router or a switch that nobody polls. */
#define ADDRESSES_MAX 16
/* Two of the intervals at which LLDP speaks if nobody configures another (IEEE 802.1AB,
 * msgTxInterval of 30 s). */
#define LLDP_COMPLETE_MS 60000
#define ADVISE_POLL                                                                                \
    "add the switch behind it to the poller's switches, or put it into the topology file"

/* An address with the one or two ports that it was learnt at. */
struct sighted {
    const struct ft_attached *attached;
    uint32_t ends[2];
    uint32_t end_count;
};

static struct ft_found_nic *add_nic(struct ft_survey *s, enum ft_source source)
{
    struct ft_found_nic *grown = ft_grow(s->nics, s->nic_count, &s->nic_size, sizeof(*grown));

    if (!grown)
        return NULL;
    s->nics = grown;
    s->nics[s->nic_count] = (struct ft_found_nic){.base = FT_NONE, .source = source};
    return &s->nics[s->nic_count++];
}

static bool has_static_nic(const struct ft_survey *s, const struct ft_end *end)
{
    return end->base != FT_NONE && ft_topology_port(s->base, end->base)->nic != FT_NONE;
}

static bool forwards(const struct ft_end *end)
{
    return end->device && end->device->has_forwards && end->device->forwards;
}

/* "gpu01" and "gpu01.example.com" are one host. */
static bool same_host(const char *a, const char *b)
{
    return a && b && strcspn(a, ".") == strcspn(b, ".") && strncmp(a, b, strcspn(a, ".")) == 0;
}

/* A port that is not, and was not, part of the fabric. */
static bool is_edge(const struct ft_end *end)
{
    return end->link == FT_NONE && !end->hears_switch && !end->was_linked && !end->aggregate &&
           !end->in_fabric;
}

/* An edge port where samples may show a host. */
static bool may_have_host(const struct ft_survey *s, const struct ft_end *end, const char *host)
{
    return !has_static_nic(s, end) && (!forwards(end) || same_host(end->device->name, host));
}

/* Whether the file links the switch to others: then its other ports are for hosts. */
static bool has_static_links(const struct ft_survey *s, const struct ft_node *n)
{
    for (uint32_t i = n->first_end; i < n->first_end + n->end_count; i++)
        if (s->ends[i].link != FT_NONE && s->ends[i].link_source == FT_SOURCE_STATIC)
            return true;
    return false;
}

/* Whether LLDP names other switches behind ports of the switch, and has had the time to name all.
 */
static bool has_heard_all(struct ft_survey *s, const struct ft_node *n)
{
    int64_t complete_ms =
        n->report && n->report->lldp_since_ms ? n->report->lldp_since_ms + LLDP_COMPLETE_MS : 0;
    bool hears = false;

    for (uint32_t i = n->first_end; i < n->first_end + n->end_count && !hears; i++)
        hears = s->ends[i].hears_switch;
    if (!hears || !complete_ms)
        return false;
    if (s->now_ms >= complete_ms)
        return true;
    if (!s->hosts_wait_ms || complete_ms < s->hosts_wait_ms)
        s->hosts_wait_ms = complete_ms;
    return false;
}

/* The host may be at a switch that nobody knows yet, or whose links are not known yet. A device
 * that says by LLDP whether it forwards is what it says. */
static bool is_certain(struct ft_survey *s, const struct ft_end *end, const struct ft_attachment *p)
{
    const struct ft_node *n = &s->nodes[end->node];

    return !s->unknown_exporters || (end->device && end->device->has_forwards) || end->had_host ||
           ft_survey_shows_hosts(s, &p->agent, p->ifindex) || has_static_links(s, n) ||
           has_heard_all(s, n);
}

static void note_elsewhere(struct ft_survey *s, const struct ft_attached *at, uint32_t nic,
                           uint32_t end)
{
    const struct ft_nic *n = ft_topology_nic(s->base, nic);
    char text[FT_IP_TEXT_BYTES];

    for (uint32_t i = 0; i < n->attach_count; i++)
        if (n->attach[i] == s->ends[end].base)
            return;
    ft_ip_format(&at->address, text);
    ft_findings_add(s->findings, FT_FINDING_CONTRADICTION, s->nodes[s->ends[end].node].name,
                    s->ends[end].name, "correct the topology file, or move the host back",
                    "packets of %s (host %.80s) arrive here, but the file has its NIC elsewhere: "
                    "using the file",
                    text, ft_topology_host(s->base, n->host_id)->name);
}

/* Turns an address's attachments into ports; false when it hangs nowhere that counts. */
static bool attachment(struct ft_survey *s, const struct ft_attached *at, struct sighted *out)
{
    uint32_t nic = ft_topology_nic_at(s->base, &at->address);
    bool in_file = nic != FT_NONE && ft_topology_nic(s->base, nic)->attach_count > 0;

    *out = (struct sighted){.attached = at};
    if (ft_ids_find_address(s->ids, &at->address) != FT_IDS_NONE)
        return false;
    for (uint32_t i = 0; i < at->attachment_count; i++) {
        const struct ft_attachment *p = &at->attachments[i];
        uint32_t node = ft_ids_find_address(s->ids, &p->agent);
        uint32_t end =
            p->believed && node < s->node_count ? ft_survey_end(s, node, p->ifindex) : FT_NONE;

        ft_survey_pace(s);
        if (end == FT_NONE || !is_edge(&s->ends[end]))
            continue;
        if (in_file)
            note_elsewhere(s, at, nic, end);
        if (in_file || !may_have_host(s, &s->ends[end], at->host))
            continue;
        if (!is_certain(s, &s->ends[end], p)) {
            s->hosts_wait_ms = s->hosts_wait_ms ? s->hosts_wait_ms : INT64_MAX;
            continue;
        }
        if (out->end_count && out->ends[0] == end)
            continue;
        if (out->end_count == 2)
            return false;
        out->ends[out->end_count++] = end;
    }
    return out->end_count > 0;
}

static bool join_ends(struct ft_survey *s, uint32_t nic_id, const struct sighted *from)
{
    struct ft_found_nic *nic = &s->nics[nic_id];

    for (uint32_t i = 0; i < from->end_count; i++) {
        struct ft_end *end = &s->ends[from->ends[i]];

        if (end->nic == nic_id)
            continue;
        if (end->nic != FT_NONE || nic->end_count == 2)
            return false;
        nic->ends[nic->end_count++] = from->ends[i];
        end->nic = nic_id;
    }
    return true;
}

static int take_sighted(struct ft_survey *s, const struct sighted *from)
{
    uint32_t id = FT_NONE;
    struct ft_found_nic *nic;

    for (uint32_t i = 0; i < from->end_count && id == FT_NONE; i++)
        id = s->ends[from->ends[i]].nic;
    if (id == FT_NONE) {
        if (!add_nic(s, FT_SOURCE_LEARNT))
            return -ENOMEM;
        id = s->nic_count - 1;
    }
    ft_survey_pace(s);
    nic = &s->nics[id];
    if (!join_ends(s, id, from) || nic->address_count == ADDRESSES_MAX)
        return 0;
    nic->addresses[nic->address_count++] = from->attached->address;
    if (nic->base == FT_NONE)
        nic->base = ft_topology_nic_at(s->base, &from->attached->address);
    if (from->attached->host && !nic->named) {
        nic->named = true;
        snprintf(nic->host, sizeof(nic->host), "%s", from->attached->host);
    }
    return 0;
}

/* Counts the addresses of each port; those of a crowded one are no host's. */
static bool is_crowded(const uint32_t *crowd, const struct sighted *from)
{
    for (uint32_t i = 0; i < from->end_count; i++)
        if (crowd[from->ends[i]] > ADDRESSES_MAX)
            return true;
    return false;
}

static void note_crowded(struct ft_survey *s, const uint32_t *crowd)
{
    for (uint32_t i = 0; i < s->end_count; i++)
        if (crowd[i] > ADDRESSES_MAX)
            ft_findings_add(s->findings, FT_FINDING_NOTE, s->nodes[s->ends[i].node].name,
                            s->ends[i].name, ADVISE_POLL,
                            "packets from %u addresses arrive here: several hosts are behind it",
                            crowd[i]);
}

static int learn(struct ft_survey *s)
{
    struct sighted *list = NULL, *grown, one;
    uint32_t *crowd = calloc(s->end_count + 1, sizeof(*crowd));
    uint32_t index = 0, count = 0;
    size_t size = 0;
    const struct ft_attached *at;
    int rc = crowd ? 0 : -ENOMEM;

    while (rc == 0 && (at = ft_attach_next(s->attach, &index))) {
        if (!attachment(s, at, &one))
            continue;
        grown = ft_grow(list, count, &size, sizeof(*grown));
        if (!grown) {
            rc = -ENOMEM;
            break;
        }
        list = grown;
        for (uint32_t i = 0; i < one.end_count; i++)
            crowd[one.ends[i]]++;
        list[count++] = one;
    }
    /* Those with two ports first: they say which ports belong to one NIC. */
    for (uint32_t ports = 2; rc == 0 && ports > 0; ports--)
        for (uint32_t i = 0; rc == 0 && i < count; i++)
            if (list[i].end_count == ports && !is_crowded(crowd, &list[i]))
                rc = take_sighted(s, &list[i]);
    if (rc == 0)
        note_crowded(s, crowd);
    free(list);
    free(crowd);
    return rc;
}

static bool is_device(const struct ft_survey *s, const struct ft_end *end)
{
    return end->device && end->link == FT_NONE && !end->hears_switch && !forwards(end) &&
           !has_static_nic(s, end);
}

static const char *device_name(const Fabrictrace__Neighbor *row)
{
    if (row->name && *row->name)
        return row->name;
    return row->chassis_id && *row->chassis_id ? row->chassis_id : NULL;
}

/* An address of management that several ports name belongs to the host, not to one of its NICs. */
static void add_device_addresses(struct ft_survey *s, struct ft_found_nic *nic, uint32_t at)
{
    const Fabrictrace__Neighbor *row = s->ends[at].device;
    struct ft_ip ip;
    char text[FT_IP_TEXT_BYTES];

    for (size_t i = 0; i < row->n_addresses && nic->address_count < ADDRESSES_MAX; i++) {
        ft_survey_pace(s);
        if (ft_ip_from_bytes(row->addresses[i].data, row->addresses[i].len, &ip))
            continue;
        ft_ip_format(&ip, text);
        if (ft_ids_find(s->ids, FT_IDS_DEVICES, 0, text) == at &&
            ft_ids_find_address(s->ids, &ip) == FT_IDS_NONE &&
            ft_topology_nic_at(s->base, &ip) == FT_NONE)
            nic->addresses[nic->address_count++] = ip;
    }
}

static void add_device_ids(struct ft_survey *s)
{
    struct ft_ip ip;
    char text[FT_IP_TEXT_BYTES];

    for (uint32_t n = 0; n < s->nic_count; n++)
        for (uint32_t i = 0; i < s->nics[n].address_count; i++) {
            ft_survey_pace(s);
            ft_ip_format(&s->nics[n].addresses[i], text);
            ft_ids_add(s->ids, FT_IDS_DEVICES, 0, text, FT_IDS_SEVERAL);
        }
    for (uint32_t e = 0; e < s->end_count; e++) {
        const struct ft_end *end = &s->ends[e];

        for (size_t i = 0; is_device(s, end) && i < end->device->n_addresses; i++) {
            const ProtobufCBinaryData *bytes = &end->device->addresses[i];

            ft_survey_pace(s);
            if (ft_ip_from_bytes(bytes->data, bytes->len, &ip) == 0) {
                ft_ip_format(&ip, text);
                ft_ids_add(s->ids, FT_IDS_DEVICES, 0, text, e);
            }
        }
    }
}

static int take_devices(struct ft_survey *s)
{
    add_device_ids(s);
    for (uint32_t e = 0; e < s->end_count; e++) {
        const char *name = is_device(s, &s->ends[e]) ? device_name(s->ends[e].device) : NULL;
        struct ft_found_nic *nic;

        if (!name)
            continue;
        ft_survey_pace(s);
        if (s->ends[e].nic == FT_NONE) {
            nic = add_nic(s, FT_SOURCE_LLDP);
            if (!nic)
                return -ENOMEM;
            s->ends[e].nic = s->nic_count - 1;
            nic->ends[nic->end_count++] = e;
        }
        nic = &s->nics[s->ends[e].nic];
        add_device_addresses(s, nic, e);
        /* Over what its agent says: LLDP comes before samples, and a name should not change when
         * the first samples do. */
        snprintf(nic->host, sizeof(nic->host), "%.127s", name);
        nic->named = true;
    }
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct ft_ip));
}

static void resolve_nics(struct ft_survey *s)
{
    for (uint32_t n = 0; n < s->nic_count; n++) {
        struct ft_found_nic *nic = &s->nics[n];

        ft_survey_pace(s);
        /* Equal however it was found out. */
        qsort(nic->addresses, nic->address_count, sizeof(nic->addresses[0]), by_bytes);
        if (!nic->named && nic->address_count)
            ft_ip_format(&nic->addresses[0], nic->host);
        for (uint32_t i = 0; i < nic->end_count; i++)
            s->nodes[s->ends[nic->ends[i]].node].host_ends++;
    }
}

int ft_survey_hosts(struct ft_survey *s)
{
    int rc = s->attach ? learn(s) : 0;

    for (uint32_t e = 0; e < s->end_count; e++)
        s->nodes[s->ends[e].node].host_ends += has_static_nic(s, &s->ends[e]);
    if (rc == 0)
        rc = take_devices(s);
    if (rc == 0)
        resolve_nics(s);
    return rc;
}

void ft_survey_host_ports(struct ft_survey *s)
{
    for (uint32_t i = 0; i < s->end_count; i++) {
        struct ft_end *end = &s->ends[i];
        uint32_t nic = end->base == FT_NONE ? FT_NONE : ft_topology_port(s->base, end->base)->nic;
        const char *host = NULL;
        struct ft_finding *f;

        if (nic != FT_NONE)
            host = ft_topology_host(s->base, ft_topology_nic(s->base, nic)->host_id)->name;
        else if (end->nic != FT_NONE)
            host = s->nics[end->nic].host;
        if (!host || end->link != FT_NONE || !ft_survey_is_down(s, i))
            continue;
        end->host_down = true;
        if (ft_survey_is_shut(s, i))
            f = ft_findings_add(s->findings, FT_FINDING_LINK_SHUT, s->nodes[end->node].name,
                                end->name, "nothing, if that is planned work",
                                "the port of host %.127s is down: an administrator shut it down",
                                host);
        else
            f = ft_findings_add(s->findings, FT_FINDING_LINK_DOWN, s->nodes[end->node].name,
                                end->name, "look at the cable, its optics and the host's NIC",
                                "the port of host %.127s is down", host);
        if (!f)
            continue;
        snprintf(f->peer, sizeof(f->peer), "%s", host);
        f->shut = f->kind == FT_FINDING_LINK_SHUT;
    }
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/topology.h"

#include "proto/json.h"

static void member(struct ft_writer *w, const char *name)
{
    ft_write_fmt(w, "\"%s\":", name);
}

static void text_member(struct ft_writer *w, const char *name, const char *text)
{
    member(w, name);
    ft_json_write_text(w, text);
}

static void comma(struct ft_writer *w, uint32_t i)
{
    if (i)
        ft_write_u8(w, ',');
}

static void write_addresses(struct ft_writer *w, const struct ft_ip *addresses, uint32_t count)
{
    char text[FT_IP_TEXT_BYTES];

    member(w, "addresses");
    ft_write_u8(w, '[');
    for (uint32_t i = 0; i < count; i++) {
        comma(w, i);
        ft_ip_format(&addresses[i], text);
        ft_json_write_text(w, text);
    }
    ft_write_u8(w, ']');
}

static void write_origin(struct ft_writer *w, const struct ft_api_origins *origins, uint32_t id,
                         bool linked)
{
    const struct ft_api_origin origin = origins->of(origins->arg, id);

    ft_write_u8(w, ',');
    text_member(w, "source", origin.source);
    if (linked)
        ft_write_fmt(w, ",\"confirmed\":%s", origin.confirmed ? "true" : "false");
    if (linked && origin.samples)
        ft_write_fmt(w, ",\"samples\":%llu,\"flows\":%u", (unsigned long long)origin.samples,
                     origin.flows);
}

static void write_port(struct ft_writer *w, const struct ft_topology *t, uint32_t id,
                       const struct ft_api_origins *origins)
{
    const struct ft_port *port = ft_topology_port(t, id);

    ft_write_u8(w, '{');
    text_member(w, "name", port->name);
    if (port->ifindex)
        ft_write_fmt(w, ",\"ifindex\":%u", port->ifindex);
    if (port->lag_ifindex)
        ft_write_fmt(w, ",\"lag_ifindex\":%u", port->lag_ifindex);
    if (port->speed_bps)
        ft_write_fmt(w, ",\"speed_bps\":%llu", (unsigned long long)port->speed_bps);
    if (port->peer != FT_NONE) {
        const struct ft_port *peer = ft_topology_port(t, port->peer);

        ft_write_u8(w, ',');
        text_member(w, "peer", ft_topology_switch(t, peer->switch_id)->name);
        ft_write_u8(w, ',');
        text_member(w, "peer_port", peer->name);
    }
    if (port->nic != FT_NONE) {
        ft_write_u8(w, ',');
        text_member(w, "host", ft_topology_host(t, ft_topology_nic(t, port->nic)->host_id)->name);
    }
    if (port->group != FT_NONE) {
        ft_write_u8(w, ',');
        text_member(w, "group", ft_topology_group(t, port->group)->name);
    }
    if (origins && (port->peer != FT_NONE || port->nic != FT_NONE))
        write_origin(w, origins, id, port->peer != FT_NONE);
    ft_write_u8(w, '}');
}

static void write_lags(struct ft_writer *w, const struct ft_topology *t, uint32_t switch_id)
{
    uint32_t written = 0;

    for (uint32_t i = 0; i < ft_topology_lags(t); i++) {
        const struct ft_lag *lag = ft_topology_lag(t, i);

        if (lag->switch_id != switch_id)
            continue;
        ft_write_str(w, written++ ? ",{" : ",\"lags\":[{");
        text_member(w, "name", lag->name);
        if (lag->ifindex)
            ft_write_fmt(w, ",\"ifindex\":%u", lag->ifindex);
        ft_write_str(w, ",\"members\":[");
        for (uint32_t k = 0; k < lag->member_count; k++) {
            comma(w, k);
            ft_json_write_text(w, ft_topology_port(t, lag->members[k])->name);
        }
        ft_write_str(w, "]}");
    }
    if (written)
        ft_write_u8(w, ']');
}

static void write_switch(struct ft_writer *w, const struct ft_topology *t, uint32_t id,
                         const struct ft_api_origins *origins)
{
    const struct ft_switch *s = ft_topology_switch(t, id);

    ft_write_u8(w, '{');
    text_member(w, "name", s->name);
    ft_write_u8(w, ',');
    text_member(w, "tier", ft_tier_name(s->tier));
    ft_write_u8(w, ',');
    write_addresses(w, s->addresses, s->address_count);
    ft_write_str(w, ",\"ports\":[");
    for (uint32_t i = 0; i < s->port_count; i++) {
        comma(w, i);
        write_port(w, t, s->ports[i], origins);
    }
    ft_write_u8(w, ']');
    write_lags(w, t, id);
    ft_write_u8(w, '}');
}

static void write_nic(struct ft_writer *w, const struct ft_topology *t, uint32_t id)
{
    const struct ft_nic *nic = ft_topology_nic(t, id);

    ft_write_u8(w, '{');
    write_addresses(w, nic->addresses, nic->address_count);
    if (nic->rail != FT_NONE)
        ft_write_fmt(w, ",\"rail\":%u", nic->rail);
    ft_write_str(w, ",\"attach\":[");
    for (uint32_t i = 0; i < nic->attach_count; i++) {
        const struct ft_port *port = ft_topology_port(t, nic->attach[i]);

        comma(w, i);
        ft_write_u8(w, '{');
        text_member(w, "switch", ft_topology_switch(t, port->switch_id)->name);
        ft_write_u8(w, ',');
        text_member(w, "port", port->name);
        ft_write_u8(w, '}');
    }
    ft_write_str(w, "]}");
}

static void write_open(struct ft_writer *w, const struct ft_findings *open)
{
    ft_write_str(w, ",\"open\":[");
    for (size_t i = 0; i < open->count; i++) {
        comma(w, i != 0);
        ft_write_u8(w, '{');
        text_member(w, "switch", open->items[i].switch_name);
        ft_write_u8(w, ',');
        text_member(w, "port", open->items[i].port);
        ft_write_u8(w, '}');
    }
    ft_write_u8(w, ']');
}

void ft_api_write_topology(struct ft_writer *w, const struct ft_topology *t,
                           const struct ft_api_origins *origins)
{
    ft_write_u8(w, '{');
    text_member(w, "fabric", ft_topology_fabric(t));
    ft_write_str(w, ",\"switches\":[");
    for (uint32_t i = 0; i < ft_topology_switches(t); i++) {
        comma(w, i);
        write_switch(w, t, i, origins);
    }
    ft_write_str(w, "],\"hosts\":[");
    for (uint32_t i = 0; i < ft_topology_hosts(t); i++) {
        const struct ft_host *host = ft_topology_host(t, i);

        comma(w, i);
        ft_write_u8(w, '{');
        text_member(w, "name", host->name);
        ft_write_str(w, ",\"nics\":[");
        for (uint32_t n = 0; n < host->nic_count; n++) {
            comma(w, n);
            write_nic(w, t, host->nics[n]);
        }
        ft_write_str(w, "]}");
    }
    ft_write_u8(w, ']');
    if (origins && origins->open && origins->open->count)
        write_open(w, origins->open);
    ft_write_str(w, "}\n");
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/topology.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/api/list.h"
#include "daemon/discovery/discovery.h"
#include "daemon/discovery/wiring.h"
#include "daemon/join/join.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/findings.h"
#include "lib/fabric/topology.h"
#include "lib/io/http/http.h"
#include "proto/json.h"

#define PORTS_A_STEP 2000
#define NICS_A_STEP  2000

enum part {
    OPEN,    /* what samples leave open, */
    ORIGINS, /* and how links are known: found before anything is written */
    SWITCHES,
    HOSTS,
};

/* How a link or an attachment is known. */
struct origin {
    const char *source; /* NULL: the port has neither */
    bool confirmed, has_proof;
    struct ft_crossing_proof proof;
};

/* All of an answer is of one topology, though the join may have another before it is sent. */
struct of_topology {
    const struct ft_view *view;
    struct ft_topology *topology; /* kept */
    struct origin *origins;       /* of its ports */
    enum part part;
    uint32_t index; /* in the part */
    struct ft_findings open;
};

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void fill_address(ProtobufCBinaryData *out, const struct ft_ip *ip)
{
    out->data = (uint8_t *)(uintptr_t)ft_ip_bytes(ip, &out->len);
}

static void find_origin(struct origin *out, const struct of_topology *o, uint32_t id)
{
    const struct ft_port *port = ft_topology_port(o->topology, id);
    const struct ft_wiring *wiring = o->view->stages->wiring;

    if (port->peer == FT_NONE && port->nic == FT_NONE)
        return;
    out->source = ft_pipeline_source(o->view->pipeline, id);
    if (port->peer == FT_NONE)
        return;
    out->confirmed = ft_pipeline_confirms(o->view->pipeline, id);
    if (wiring && ft_wiring_confirms(wiring, id)) {
        out->proof = ft_wiring_proof(wiring, id);
        out->has_proof = out->proof.samples != 0;
    }
}

static void fill_origin(Fabrictrace__TopologyPort *out, const struct origin *origin, bool linked)
{
    out->source = text(origin->source);
    out->has_confirmed = linked;
    out->confirmed = origin->confirmed;
    out->has_samples = out->has_flows = origin->has_proof;
    out->samples = origin->proof.samples;
    out->flows = origin->proof.flows;
}

/* Of a port whose link, or whose host, is down. */
static void fill_state(Fabrictrace__TopologyPort *out, const struct of_topology *o,
                       const char *switch_name, const char *port)
{
    static const Fabrictrace__PortState states[] = {
        [FT_LINK_DOWN] = FABRICTRACE__PORT_STATE__PORT_STATE_DOWN,
        [FT_LINK_SHUT] = FABRICTRACE__PORT_STATE__PORT_STATE_SHUT,
        [FT_LINK_PEER_SHUT] = FABRICTRACE__PORT_STATE__PORT_STATE_PEER_SHUT,
    };
    const struct ft_discovery *d = o->view->stages->discovery;
    struct ft_link_down down;
    enum ft_link_state state = d ? ft_discovery_state(d, switch_name, port, &down) : FT_LINK_UP;

    /* The link of an earlier build: it is up again, and the next topology has it so. */
    if (state == FT_LINK_UP || out->peer)
        return;
    out->has_state = true;
    out->state = states[state];
    out->down_peer = text(down.peer);
    out->down_peer_port = text(down.peer_port);
    out->has_down_since_ms = down.since_ms != 0;
    out->down_since_ms = (uint64_t)down.since_ms;
}

static void fill_port(Fabrictrace__TopologyPort *out, const struct of_topology *o, uint32_t id)
{
    const struct ft_topology *t = o->topology;
    const struct ft_port *port = ft_topology_port(t, id);

    fabrictrace__topology_port__init(out);
    out->name = text(port->name);
    out->has_ifindex = port->ifindex != 0;
    out->ifindex = port->ifindex;
    out->has_lag_ifindex = port->lag_ifindex != 0;
    out->lag_ifindex = port->lag_ifindex;
    out->has_speed_bps = port->speed_bps != 0;
    out->speed_bps = port->speed_bps;
    if (port->peer != FT_NONE) {
        const struct ft_port *peer = ft_topology_port(t, port->peer);

        out->peer = text(ft_topology_switch(t, peer->switch_id)->name);
        out->peer_port = text(peer->name);
    }
    if (port->nic != FT_NONE)
        out->host = text(ft_topology_host(t, ft_topology_nic(t, port->nic)->host_id)->name);
    if (port->group != FT_NONE)
        out->group = text(ft_topology_group(t, port->group)->name);
    if (port->peer != FT_NONE || port->nic != FT_NONE)
        fill_origin(out, &o->origins[id], port->peer != FT_NONE);
    fill_state(out, o, ft_topology_switch(t, port->switch_id)->name, port->name);
}

/* Memory of one message, given back all at once. */
struct memory {
    void *blocks[64];
    size_t count;
    bool failed;
};

static void *get(struct memory *m, size_t count, size_t bytes)
{
    void *block =
        m->count < sizeof(m->blocks) / sizeof(m->blocks[0]) ? calloc(count + 1, bytes) : NULL;

    if (block)
        m->blocks[m->count++] = block;
    else
        m->failed = true;
    return block;
}

static void give_back(struct memory *m)
{
    while (m->count)
        free(m->blocks[--m->count]);
}

static void fill_ports(Fabrictrace__TopologySwitch *out, const struct of_topology *o,
                       const struct ft_switch *s, struct memory *m)
{
    Fabrictrace__TopologyPort *ports = get(m, s->port_count, sizeof(*ports));

    out->ports = get(m, s->port_count, sizeof(Fabrictrace__TopologyPort *));
    if (m->failed)
        return;
    for (uint32_t i = 0; i < s->port_count; i++) {
        fill_port(&ports[i], o, s->ports[i]);
        out->ports[out->n_ports++] = &ports[i];
    }
}

static uint32_t lags_of(const struct ft_topology *t, uint32_t switch_id)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < ft_topology_lags(t); i++)
        n += ft_topology_lag(t, i)->switch_id == switch_id;
    return n;
}

static void fill_lags(Fabrictrace__TopologySwitch *out, const struct ft_topology *t,
                      uint32_t switch_id, struct memory *m)
{
    uint32_t count = lags_of(t, switch_id), ports = ft_topology_switch(t, switch_id)->port_count;
    Fabrictrace__TopologyLag *lags;
    char **names;

    if (!count)
        return;
    lags = get(m, count, sizeof(*lags));
    out->lags = get(m, count, sizeof(Fabrictrace__TopologyLag *));
    names = get(m, ports, sizeof(char *));
    for (uint32_t i = 0; !m->failed && i < ft_topology_lags(t); i++) {
        const struct ft_lag *lag = ft_topology_lag(t, i);
        Fabrictrace__TopologyLag *to = &lags[out->n_lags];

        if (lag->switch_id != switch_id || lag->member_count > ports)
            continue;
        fabrictrace__topology_lag__init(to);
        to->name = text(lag->name);
        to->has_ifindex = lag->ifindex != 0;
        to->ifindex = lag->ifindex;
        to->members = names;
        for (uint32_t k = 0; k < lag->member_count; k++)
            names[to->n_members++] = text(ft_topology_port(t, lag->members[k])->name);
        names += lag->member_count;
        ports -= lag->member_count;
        out->lags[out->n_lags++] = to;
    }
}

static void fill_addresses(size_t *count, ProtobufCBinaryData **list, const struct ft_ip *addresses,
                           uint32_t n, struct memory *m)
{
    *list = get(m, n, sizeof(**list));
    for (uint32_t i = 0; *list && i < n; i++)
        fill_address(&(*list)[(*count)++], &addresses[i]);
}

static uint32_t write_switch(struct ft_writer *w, const struct of_topology *o, uint32_t id)
{
    const struct ft_switch *s = ft_topology_switch(o->topology, id);
    Fabrictrace__TopologySwitch out = FABRICTRACE__TOPOLOGY_SWITCH__INIT;
    struct memory memory = {.count = 0};

    out.name = text(s->name);
    out.tier = text(ft_tier_name(s->tier));
    fill_addresses(&out.n_addresses, &out.addresses, s->addresses, s->address_count, &memory);
    fill_ports(&out, o, s, &memory);
    fill_lags(&out, o->topology, id, &memory);
    if (memory.failed || ft_json_write(w, &out.base, NULL))
        w->failed = true;
    give_back(&memory);
    return s->port_count + 1;
}

static void fill_nic(Fabrictrace__TopologyNic *out, const struct ft_topology *t,
                     const struct ft_nic *nic, struct memory *m)
{
    Fabrictrace__PortName *names = get(m, nic->attach_count, sizeof(*names));

    fabrictrace__topology_nic__init(out);
    fill_addresses(&out->n_addresses, &out->addresses, nic->addresses, nic->address_count, m);
    out->has_rail = nic->rail != FT_NONE;
    out->rail = nic->rail;
    out->attach = get(m, nic->attach_count, sizeof(Fabrictrace__PortName *));
    for (uint32_t i = 0; !m->failed && i < nic->attach_count; i++) {
        const struct ft_port *port = ft_topology_port(t, nic->attach[i]);

        fabrictrace__port_name__init(&names[i]);
        names[i].switch_ = text(ft_topology_switch(t, port->switch_id)->name);
        names[i].port = text(port->name);
        out->attach[out->n_attach++] = &names[i];
    }
}

/* The NICs of a host in messages of their own memory: a host may have many. */
static uint32_t write_host(struct ft_writer *w, const struct of_topology *o, uint32_t id)
{
    const struct ft_host *host = ft_topology_host(o->topology, id);
    bool any = false;

    ft_write_str(w, "{\"name\":");
    ft_json_write_text(w, host->name);
    for (uint32_t n = 0; n < host->nic_count; n++) {
        struct memory memory = {.count = 0};
        Fabrictrace__TopologyNic nic;

        fill_nic(&nic, o->topology, ft_topology_nic(o->topology, host->nics[n]), &memory);
        ft_write_str(w, any ? "," : ",\"nics\":[");
        any = true;
        if (memory.failed || ft_json_write(w, &nic.base, NULL))
            w->failed = true;
        give_back(&memory);
    }
    ft_write_str(w, any ? "]}" : "}");
    return host->nic_count + 1;
}

static void write_open(struct ft_writer *w, const struct ft_findings *open)
{
    for (size_t i = 0; i < open->count; i++) {
        Fabrictrace__PortName name = FABRICTRACE__PORT_NAME__INIT;

        name.switch_ = open->items[i].switch_name;
        name.port = open->items[i].port;
        ft_write_str(w, i ? "," : ",\"open\":[");
        ft_json_write(w, &name.base, NULL);
    }
    if (open->count)
        ft_write_u8(w, ']');
}

/* Adds some of a part; true when that was its last. */
static bool write_part(struct of_topology *o, struct ft_writer *w, uint32_t count, uint32_t budget,
                       uint32_t (*write)(struct ft_writer *w, const struct of_topology *o,
                                         uint32_t id))
{
    for (uint32_t done = 0; o->index < count && done < budget; o->index++) {
        if (o->index)
            ft_write_u8(w, ',');
        done += write(w, o, o->index);
    }
    return o->index >= count;
}

/* Begins, or begins again, with the topology of the join. -ENOMEM. */
static int follow(struct of_topology *o)
{
    const struct ft_topology *t = ft_join_topology(o->view->stages->join);

    if (t == o->topology)
        return 0;
    ft_topology_free(o->topology);
    ft_findings_free(&o->open);
    free(o->origins);
    o->topology = ft_topology_keep(t);
    o->origins = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*o->origins));
    o->part = OPEN;
    o->index = 0;
    return o->origins ? 0 : -ENOMEM;
}

static void next_part(struct of_topology *o, enum part part)
{
    o->part = part;
    o->index = 0;
}

/* True when that was the last of what may change while the answer is sent. */
static bool look(struct of_topology *o)
{
    const struct ft_wiring *wiring = o->view->stages->wiring;
    int64_t now_ms = ft_pipeline_now_ms(o->view->pipeline);
    uint32_t ports = ft_topology_ports(o->topology);

    if (o->part == OPEN) {
        if (!wiring || !ft_wiring_find(wiring, now_ms, &o->index, &o->open))
            next_part(o, ORIGINS);
        return false;
    }
    for (uint32_t i = 0; i < PORTS_A_STEP && o->index < ports; i++, o->index++)
        find_origin(&o->origins[o->index], o, o->index);
    return o->index >= ports;
}

static void write_begin(struct ft_writer *w, const struct of_topology *o)
{
    ft_write_str(w, "{\"schema\":\"fabrictrace.topology.v1\",\"fabric\":");
    ft_json_write_text(w, ft_topology_fabric(o->topology));
    ft_write_str(w, ",\"switches\":[");
}

static int more(void *arg, struct ft_writer *w)
{
    struct of_topology *o = arg;

    switch (o->part) {
    case OPEN:
    case ORIGINS:
        if (follow(o) < 0)
            return -ENOMEM;
        if (look(o)) {
            write_begin(w, o);
            next_part(o, SWITCHES);
        }
        return 1;
    case SWITCHES:
        if (write_part(o, w, ft_topology_switches(o->topology), PORTS_A_STEP, write_switch)) {
            ft_write_str(w, "],\"hosts\":[");
            next_part(o, HOSTS);
        }
        return 1;
    case HOSTS:
        break;
    }
    if (!write_part(o, w, ft_topology_hosts(o->topology), NICS_A_STEP, write_host))
        return 1;
    ft_write_u8(w, ']');
    write_open(w, &o->open);
    ft_write_str(w, "}\n");
    return 0;
}

static void free_topology(void *arg)
{
    struct of_topology *o = arg;

    ft_topology_free(o->topology);
    ft_findings_free(&o->open);
    free(o->origins);
    free(o);
}

int ft_api_topology(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {NULL};
    const struct ft_view *view = arg;
    const char *stranger = ft_http_unknown_query(request, names);
    struct of_topology *o = calloc(1, sizeof(*o));
    struct ft_http_slices slices = {more, free_topology, o, sizeof(*o)};

    if (o)
        o->view = view;
    if (!o || stranger || follow(o) < 0) {
        if (o)
            free_topology(o);
        return stranger ? ft_api_refuse(body, 400, "'%.40s' is not a filter here", stranger)
                        : ft_api_refuse(body, 503, "no memory");
    }
    slices.bytes += ft_topology_ports(o->topology) * sizeof(*o->origins);
    return ft_http_answer_slices(request, &slices)
               ? ft_api_refuse(body, 503, "too many responses are pending: try again later")
               : 200;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/wiring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is further from the present is refused elsewhere, and would keep the rest from ageing. */
#define AHEAD_MS  10000
#define BEHIND_MS 60000
#define OPEN_MS   60000 /* what is not found after this time is worth a word */
#define RECENT_MS 60000
#define LOOKS     10000 /* of a step of a search */

struct ft_wiring {
    struct ft_crossings *crossings;
    const struct ft_topology *t;
    struct ft_crossing_judgement *links; /* by port id */
    bool *missing_capabilities;          /* by switch id: it has open ports */
    bool *listed;                        /* likewise: something besides samples reports it */
    bool *unknown;                       /* by index of a sampled port: the topology knows less */
    size_t sampled_max;                  /* of these */
    uint32_t unknown_count;
    bool anew;         /* the topology is another one than `unknown` is of */
    int64_t looked_ms; /* for them, last */
    uint32_t at;       /* where the next step begins */
    int64_t stepped_ms;
    bool news;
};

/* Until somebody says otherwise, all are in the inventory. */
static bool *all_listed(const struct ft_topology *t)
{
    bool *listed = calloc((size_t)ft_topology_switches(t) + 1, sizeof(*listed));

    for (uint32_t i = 0; listed && i < ft_topology_switches(t); i++)
        listed[i] = true;
    return listed;
}

struct ft_wiring *ft_wiring_new(const struct ft_crossings_config *config,
                                const struct ft_topology *t)
{
    struct ft_wiring *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->t = t;
    w->crossings = ft_crossings_new(config);
    w->links = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*w->links));
    w->missing_capabilities =
        calloc((size_t)ft_topology_switches(t) + 1, sizeof(*w->missing_capabilities));
    w->listed = all_listed(t);
    w->sampled_max = config->ports_max;
    w->unknown = calloc(w->sampled_max + 1, sizeof(*w->unknown));
    if (!w->crossings || !w->links || !w->missing_capabilities || !w->listed || !w->unknown) {
        ft_wiring_free(w);
        return NULL;
    }
    ft_crossings_set_inventory(w->crossings, ft_topology_switches(t) > 0);
    return w;
}

void ft_wiring_free(struct ft_wiring *w)
{
    if (!w)
        return;
    ft_crossings_free(w->crossings);
    free(w->links);
    free(w->missing_capabilities);
    free(w->listed);
    free(w->unknown);
    free(w);
}

void ft_wiring_list(struct ft_wiring *w, bool (*is_listed)(void *arg, uint32_t switch_id),
                    void *arg)
{
    bool some = false;

    for (uint32_t i = 0; i < ft_topology_switches(w->t); i++) {
        w->listed[i] = is_listed(arg, i);
        some |= w->listed[i];
    }
    ft_crossings_set_inventory(w->crossings, some);
}

void ft_wiring_restart(struct ft_wiring *w)
{
    ft_crossings_restart(w->crossings);
    w->stepped_ms = 0;
}

/* A port as samples name it, of the present topology; false when they cannot. */
static bool name_port(const struct ft_topology *t, uint32_t port, struct ft_crossing_port *out)
{
    const struct ft_port *p = ft_topology_port(t, port);
    const struct ft_switch *s = ft_topology_switch(t, p->switch_id);

    if (s->address_count == 0 || p->ifindex == 0)
        return false;
    *out = (struct ft_crossing_port){.agent = s->addresses[0], .ifindex = p->ifindex};
    return true;
}

static void judge(struct ft_wiring *w, uint32_t port)
{
    uint32_t peer = ft_topology_port(w->t, port)->peer;
    struct ft_crossing_port ends[2];

    if (peer == FT_NONE || peer < port || !name_port(w->t, port, &ends[0]) ||
        !name_port(w->t, peer, &ends[1]))
        return;
    ft_crossings_judge(w->crossings, ends, &w->links[port]);
    w->links[peer] = w->links[port];
}

/* Flows of other switches cross it, and where it leads is not known. */
static bool is_open(const struct ft_wiring *w, const struct ft_crossing_found *f, int64_t now_ms,
                    uint32_t *switch_id, uint32_t *end)
{
    *switch_id = ft_topology_switch_at(w->t, &f->port.agent);
    *end = *switch_id == FT_NONE ? FT_NONE : ft_topology_end_at(w->t, *switch_id, f->port.ifindex);
    if (f->has_hosts || !(f->from_switch || f->to_switch) || now_ms - f->last_ms > RECENT_MS ||
        ft_is_lag(*end))
        return false;
    return !ft_is_port(*end) || (ft_topology_port(w->t, *end)->peer == FT_NONE &&
                                 ft_topology_port(w->t, *end)->nic == FT_NONE);
}

static void look_for_open(const struct ft_wiring *w, int64_t now_ms, bool *missing_capabilities)
{
    struct ft_crossing_found f;
    uint32_t index = 0, switch_id, end;

    while (ft_crossings_next(w->crossings, &index, &f))
        if (f.to_switch && is_open(w, &f, now_ms, &switch_id, &end) && switch_id != FT_NONE)
            missing_capabilities[switch_id] = true;
}

int ft_wiring_follow(struct ft_wiring *w, const struct ft_topology *t)
{
    struct ft_crossing_judgement *links = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*links));
    bool *missing_capabilities =
        calloc((size_t)ft_topology_switches(t) + 1, sizeof(*missing_capabilities));

    bool *listed = all_listed(t);

    if (!links || !missing_capabilities || !listed) {
        free(links);
        free(missing_capabilities);
        free(listed);
        return -ENOMEM;
    }
    free(w->links);
    free(w->missing_capabilities);
    free(w->listed);
    w->listed = listed;
    w->links = links;
    w->missing_capabilities = missing_capabilities;
    w->t = t;
    w->at = 0;
    w->anew = true;
    for (uint32_t i = 0; i < ft_topology_ports(t); i++)
        judge(w, i);
    look_for_open(w, w->stepped_ms, w->missing_capabilities);
    return 0;
}

/* An ifIndex as this module knows the port; 0: it is not known which port it is. */
static uint32_t own_ifindex(const struct ft_topology *t, uint32_t switch_id, uint32_t ifindex)
{
    uint32_t end = ifindex ? ft_topology_end_at(t, switch_id, ifindex) : FT_NONE;

    if (ft_is_lag(end))
        return 0;
    return ft_is_port(end) && ft_topology_port(t, end)->ifindex ? ft_topology_port(t, end)->ifindex
                                                                : ifindex;
}

/* Tuples are hashed by a multiplication a word: they meet a table's own hash later. A flow in a
 * tunnel is another one than the same flow outside: its TTL is the tunnel's; and in another network
 * it is somebody else's. */
static uint64_t hash_of(const struct ft_observation *o)
{
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t words[sizeof(o->tuple) / sizeof(uint64_t)];
    uint64_t hash = (uint64_t)o->network << 1 | (o->rest && o->rest->has_outer);

    memcpy(words, &o->tuple, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        hash = (hash ^ words[i]) * odd;
        hash ^= hash >> 29;
    }
    hash *= odd;
    return hash ^ hash >> 32;
}

bool ft_wiring_observe(struct ft_wiring *w, const struct ft_observation *o, uint8_t ttl,
                       int64_t now_ms)
{
    struct ft_crossing c = {.agent = o->agent,
                            .in = o->in_ifindex,
                            .out = o->out_ifindex,
                            .flow = hash_of(o),
                            .first_ms = o->first_ms,
                            .last_ms = o->last_ms,
                            .samples = o->samples,
                            .ttl = ttl,
                            .tunnel = o->rest && o->rest->has_outer};
    uint32_t switch_id;

    if (o->last_ms > now_ms + AHEAD_MS || o->last_ms < now_ms - BEHIND_MS ||
        !ft_crossings_follows(w->crossings, c.flow, o->last_ms))
        return false;
    switch_id = ft_topology_switch_at(w->t, &o->agent);
    if (switch_id != FT_NONE) {
        c.agent = ft_topology_switch(w->t, switch_id)->addresses[0];
        c.listed = w->listed[switch_id];
        c.in = own_ifindex(w->t, switch_id, c.in);
        c.out = own_ifindex(w->t, switch_id, c.out);
    }
    return ft_crossings_observe(w->crossings, &c);
}

static bool is_change(const struct ft_crossing_judgement *a, const struct ft_crossing_judgement *b)
{
    return a->verdict != b->verdict ||
           (a->verdict == FT_CROSSING_DIFFERS &&
            (a->end != b->end || memcmp(&a->other, &b->other, sizeof(a->other)) != 0));
}

static void step_link(struct ft_wiring *w, uint32_t port, void (*changed)(void *arg, uint32_t port),
                      void *arg)
{
    const struct ft_crossing_judgement before = w->links[port];

    judge(w, port);
    if (!is_change(&before, &w->links[port]))
        return;
    w->news |=
        before.verdict == FT_CROSSING_DIFFERS || w->links[port].verdict == FT_CROSSING_DIFFERS;
    changed(arg, port);
    changed(arg, ft_topology_port(w->t, port)->peer);
}

static void step_missing(struct ft_wiring *w, int64_t now_ms,
                         void (*changed)(void *arg, uint32_t port), void *arg)
{
    bool *missing_capabilities =
             calloc((size_t)ft_topology_switches(w->t) + 1, sizeof(*missing_capabilities)),
         *before;

    if (!missing_capabilities)
        return;
    look_for_open(w, now_ms, missing_capabilities);
    before = w->missing_capabilities;
    w->missing_capabilities = missing_capabilities;
    for (uint32_t i = 0; i < ft_topology_switches(w->t); i++) {
        const struct ft_switch *s = ft_topology_switch(w->t, i);

        for (uint32_t k = 0; before[i] != missing_capabilities[i] && k < s->port_count; k++)
            if (ft_topology_port(w->t, s->ports[k])->peer != FT_NONE)
                changed(arg, s->ports[k]);
    }
    free(before);
}

void ft_wiring_step(struct ft_wiring *w, int64_t now_ms, void (*changed)(void *arg, uint32_t port),
                    void *arg)
{
    uint32_t ports = ft_topology_ports(w->t), count = ports;
    int64_t ms = now_ms - w->stepped_ms;

    if (ms == 0)
        return;
    ft_crossings_step(w->crossings, now_ms);
    if (ms > 0 && ms < 1000)
        count = (uint32_t)((ports * (uint64_t)ms + 999) / 1000);
    w->stepped_ms = now_ms;
    if (now_ms < w->looked_ms || now_ms - w->looked_ms >= 1000) {
        w->looked_ms = now_ms;
        step_missing(w, now_ms, changed, arg);
    }
    for (uint32_t i = 0; i < count; i++) {
        step_link(w, w->at, changed, arg);
        w->at = w->at + 1 < ports ? w->at + 1 : 0;
    }
}

static uint32_t port_at(const struct ft_topology *t, const struct ft_crossing_port *port)
{
    uint32_t switch_id = ft_topology_switch_at(t, &port->agent);

    return switch_id == FT_NONE ? FT_NONE : ft_topology_port_at(t, switch_id, port->ifindex);
}

/* Whether the topology knows less of a port than was found. */
static bool is_unknown(const struct ft_wiring *w, const struct ft_crossing_found *f)
{
    uint32_t a, z;

    if (!f->linked)
        return f->has_hosts && port_at(w->t, &f->port) == FT_NONE;
    a = port_at(w->t, &f->port);
    z = port_at(w->t, &f->peer);
    return a == FT_NONE || z == FT_NONE || ft_topology_port(w->t, a)->peer != z;
}

static void look_at(struct ft_wiring *w, uint32_t index)
{
    struct ft_crossing_found f;
    bool unknown = ft_crossings_found(w->crossings, index, &f) && is_unknown(w, &f);

    w->unknown_count += unknown;
    w->unknown_count -= w->unknown[index];
    w->unknown[index] = unknown;
}

static void look_at_all(struct ft_wiring *w)
{
    memset(w->unknown, 0, w->sampled_max * sizeof(*w->unknown));
    w->unknown_count = 0;
    for (uint32_t i = 0; i < ft_crossings_limit(w->crossings); i++)
        look_at(w, i);
    w->anew = false;
}

/* Whether the topology knows less, so that it is worth to look at the fabric anew. There may be
 * news many times a second while there are more ports than a look at all of them is worth. */
static bool knows_more(struct ft_wiring *w)
{
    enum ft_crossings_changed changed;
    uint32_t index;

    while ((changed = ft_crossings_take_changed(w->crossings, &index)) == FT_CROSSINGS_ONE)
        if (!w->anew)
            look_at(w, index);
    if (w->anew || changed == FT_CROSSINGS_ALL)
        look_at_all(w);
    return w->unknown_count > 0;
}

bool ft_wiring_take_news(struct ft_wiring *w)
{
    bool news = (ft_crossings_take_news(w->crossings) && knows_more(w)) || w->news;

    w->news = false;
    return news;
}

bool ft_wiring_missing(const struct ft_wiring *w, uint32_t port)
{
    return w->missing_capabilities[ft_topology_port(w->t, port)->switch_id];
}

bool ft_wiring_confirms(const struct ft_wiring *w, uint32_t port)
{
    return w->links[port].verdict == FT_CROSSING_AGREES;
}

bool ft_wiring_contradicts(const struct ft_wiring *w, uint32_t port)
{
    return w->links[port].verdict == FT_CROSSING_DIFFERS;
}

struct ft_crossing_proof ft_wiring_proof(const struct ft_wiring *w, uint32_t port)
{
    return w->links[port].proof;
}

struct ft_crossings *ft_wiring_crossings(const struct ft_wiring *w)
{
    return w->crossings;
}

static void note_open(const struct ft_wiring *w, const struct ft_crossing_found *f, int64_t now_ms,
                      struct ft_findings *findings)
{
    uint32_t switch_id, end;
    char agent[FT_IP_TEXT_BYTES], port[32];

    if (now_ms - f->first_ms < OPEN_MS || !is_open(w, f, now_ms, &switch_id, &end))
        return;
    ft_ip_format(&f->port.agent, agent);
    snprintf(port, sizeof(port), "#%u", f->port.ifindex);
    ft_findings_add(findings, FT_FINDING_NOTE,
                    switch_id == FT_NONE ? agent : ft_topology_switch(w->t, switch_id)->name,
                    ft_is_port(end) ? ft_topology_port(w->t, end)->name : port,
                    "enable sFlow on the switch at the other side, let a poller read LLDP, or put "
                    "the link into the topology file",
                    "flows of other switches cross it, but its remote port is not known yet");
}

bool ft_wiring_find(const struct ft_wiring *w, int64_t now_ms, uint32_t *index,
                    struct ft_findings *findings)
{
    struct ft_crossing_found f;

    for (int i = 0; i < LOOKS; i++) {
        if (!ft_crossings_next(w->crossings, index, &f))
            return false;
        note_open(w, &f, now_ms, findings);
    }
    return true;
}

void ft_wiring_account(const struct ft_wiring *w, struct ft_account *account)
{
    const struct ft_crossings_stats *s = ft_crossings_stats(w->crossings);
    struct ft_account_stage *stage = ft_account_stage(account, "wiring", "observations");

    stage->received = s->observed;
    stage->processed = s->taken + s->left_out;
    ft_account_drop(stage, "flows_full", s->flows_full);
    ft_account_drop(stage, "ports_full", s->ports_full);
    ft_account_drop(stage, "exporter_full", s->exporter_full);
    ft_account_drop(stage, "unlisted_full", s->unlisted_full);
}

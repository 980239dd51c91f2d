// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/identity.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/prefix.h"
#include "lib/base/table.h"
#include "lib/base/tuple.h"
#include "proto/record.h"

#define SCHEME         "URI:fabrictrace://"
#define HOST_BYTES     64
#define PREFIXES_MAX   256
#define CLAIM_LASTS_MS (INT64_C(180) * 1000)
#define LOOKS          32 /* at a full table, for each that is new */

enum role {
    ROLE_NONE,
    ROLE_AGENT,
    ROLE_POLLER,
};

static const struct {
    const char *name, *program;
} roles[] = {
    [ROLE_AGENT] = {"agent/", "fabrictrace-agent"},
    [ROLE_POLLER] = {"switchpoll/", "fabrictrace-switchpoll"},
};

struct inventory {
    char *poller;
    struct ft_prefix *prefixes;
    size_t count;
};

/* An address that an agent has reported as its host's. */
struct claim {
    struct ft_ip ip;
    int64_t heard_ms;
    bool certified;
    char host[HOST_BYTES];
};

struct ft_identities {
    char **peers;
    size_t peer_count;
    struct inventory *inventories;
    size_t inventory_count;
    struct ft_table *claims;
    int64_t now_ms;
    uint32_t hand; /* where a full table of addresses is searched next */
};

struct ft_identity {
    enum role role;
    char *source_id;
    char **hosts; /* of an agent */
    size_t host_count;
    struct ft_ip *addresses; /* that the certificate has */
    size_t address_count;
    const struct inventory *inventory; /* NULL: every switch */
};

/* The role that a text such as "agent/gpu01" begins with, and the name behind it. */
static enum role role_of(const char *text, const char **name)
{
    for (enum role r = ROLE_AGENT; r <= ROLE_POLLER; r++) {
        size_t len = strlen(roles[r].name);

        if (strncmp(text, roles[r].name, len) == 0 && text[len]) {
            *name = text + len;
            return r;
        }
    }
    return ROLE_NONE;
}

/* The end of a peer's name as the certificate has it: a URI may hold '=' itself. */
static const char *peer_sign(const char *text)
{
    const char *name;

    for (const char *sign = strchr(text, '='); sign; sign = strchr(sign + 1, '='))
        if (role_of(sign + 1, &name))
            return sign;
    return NULL;
}

bool ft_identity_is_peer(const char *text)
{
    return (strncmp(text, "URI:", 4) == 0 || strncmp(text, "DNS:", 4) == 0 ||
            strncmp(text, "IP:", 3) == 0) &&
           peer_sign(text);
}

/* Without an output, prefixes are only checked. */
static bool read_prefixes(const char *text, struct ft_prefix *prefixes, size_t *count)
{
    struct ft_prefix one;

    for (*count = 0; *count < PREFIXES_MAX; text++) {
        size_t len = strcspn(text, ",");

        if (ft_prefix_parse(text, len, prefixes ? &prefixes[*count] : &one))
            return false;
        (*count)++;
        text += len;
        if (!*text)
            return true;
    }
    return false;
}

bool ft_identity_is_inventory(const char *text)
{
    const char *sign = strchr(text, '=');
    size_t count;

    return sign && sign > text && read_prefixes(sign + 1, NULL, &count);
}

static bool copy_inventory(const char *text, struct inventory *out)
{
    const char *sign = strchr(text, '=');

    out->poller = strndup(text, (size_t)(sign - text));
    out->prefixes = calloc(PREFIXES_MAX, sizeof(*out->prefixes));
    return out->poller && out->prefixes && read_prefixes(sign + 1, out->prefixes, &out->count);
}

struct ft_identities *ft_identities_new(const struct ft_identities_config *config)
{
    struct ft_identities *ids = calloc(1, sizeof(*ids));
    bool ok = ids;

    if (!ids)
        return NULL;
    ids->claims = ft_table_new(sizeof(struct claim), sizeof(struct ft_ip), config->addresses_max,
                               config->seed);
    ids->peers = calloc(config->peers->count + 1, sizeof(*ids->peers));
    ids->inventories = calloc(config->inventory->count + 1, sizeof(*ids->inventories));
    ok = ids->claims && ids->peers && ids->inventories;
    for (size_t i = 0; ok && i < config->peers->count; i++)
        ok = (ids->peers[ids->peer_count++] = strdup(config->peers->items[i]));
    for (size_t i = 0; ok && i < config->inventory->count; i++)
        ok = copy_inventory(config->inventory->items[i], &ids->inventories[ids->inventory_count++]);
    if (ok)
        return ids;
    ft_identities_free(ids);
    return NULL;
}

void ft_identities_free(struct ft_identities *ids)
{
    if (!ids)
        return;
    for (size_t i = 0; i < ids->peer_count; i++)
        free(ids->peers[i]);
    for (size_t i = 0; i < ids->inventory_count; i++) {
        free(ids->inventories[i].poller);
        free(ids->inventories[i].prefixes);
    }
    free(ids->peers);
    free(ids->inventories);
    ft_table_free(ids->claims);
    free(ids);
}

static bool add_host(struct ft_identity *id, const char *name, size_t len)
{
    id->hosts[id->host_count] = strndup(name, len);
    return id->hosts[id->host_count++];
}

/* What one name of the certificate grants: *role and the name behind it are those of the last one
 * that fits the program and the source; other agents' names are hosts, too. */
struct grants {
    struct ft_identity *id;
    bool explicit; /* some name says a role */
    bool source;   /* the source id is among them */
    bool memory;
};

static void take_role(struct grants *g, enum role role, const char *name)
{
    g->explicit = true;
    if (role != g->id->role)
        return;
    g->source = g->source || strcmp(name, g->id->source_id) == 0;
    if (role == ROLE_AGENT)
        g->memory &= add_host(g->id, name, strlen(name));
}

static void take_stated(struct grants *g, const struct ft_identities *ids, const char *item)
{
    size_t scheme = strlen(SCHEME), len = strlen(item);
    const char *name;
    enum role role = ROLE_NONE;

    if (strncmp(item, SCHEME, scheme) == 0)
        role = role_of(item + scheme, &name);
    if (role)
        take_role(g, role, name);
    for (size_t i = 0; i < ids->peer_count; i++) {
        const char *sign = peer_sign(ids->peers[i]);

        if ((size_t)(sign - ids->peers[i]) != len || strncmp(ids->peers[i], item, len) != 0)
            continue;
        role = role_of(sign + 1, &name);
        take_role(g, role, name);
    }
}

/* Where nothing states a role: a host's own certificate, full_bytes or without its domain. */
static void take_dns(struct grants *g, const char *name)
{
    const char *source = g->id->source_id;
    size_t label = strcspn(name, ".");

    if (g->id->role != ROLE_AGENT || strchr(name, '*'))
        return;
    g->memory &= add_host(g->id, name, strlen(name)) && add_host(g->id, name, label);
    g->source = g->source || strcasecmp(name, source) == 0 ||
                (strlen(source) == label && strncasecmp(name, source, label) == 0);
}

static void take_address(struct ft_identity *id, const char *text)
{
    if (ft_ip_parse(text, &id->addresses[id->address_count]) == 0)
        id->address_count++;
}

static bool take_names(struct ft_identity *id, const struct ft_identities *ids,
                       const struct ft_peer_names *names, bool *memory)
{
    struct grants g = {.id = id, .memory = true};

    for (size_t i = 0; i < names->count; i++) {
        take_stated(&g, ids, names->items[i]);
        if (strncmp(names->items[i], "IP:", 3) == 0)
            take_address(id, names->items[i] + 3);
    }
    for (size_t i = 0; i < names->count && !g.explicit; i++)
        if (strncmp(names->items[i], "DNS:", 4) == 0)
            take_dns(&g, names->items[i] + 4);
    *memory = g.memory;
    return g.source;
}

/* The reason names what the certificate has, so that who made it sees what is missing. */
static void complain(const struct ft_identity *id, const char *program, const char *source_id,
                     const struct ft_peer_names *names, char *reason, size_t reason_bytes)
{
    size_t len;

    if (!id->role) {
        snprintf(reason, reason_bytes, "'%s' is not a program that reports records", program);
        return;
    }
    len = (size_t)snprintf(reason, reason_bytes, "its certificate is not that of %s%s, but of",
                           roles[id->role].name, source_id);
    for (size_t i = 0; i < names->count && len < reason_bytes; i++)
        len += (size_t)snprintf(reason + len, reason_bytes - len, " %s", names->items[i]);
    if (names->count == 0 && len < reason_bytes)
        snprintf(reason + len, reason_bytes - len, " no program: it has no subjectAltName");
}

struct ft_identity *ft_identity_new(const struct ft_identities *ids, const char *program,
                                    const char *source_id, const struct ft_peer_names *names,
                                    char *reason, size_t reason_bytes)
{
    struct ft_identity *id = calloc(1, sizeof(*id));
    bool memory = false;

    snprintf(reason, reason_bytes, "no memory");
    if (!id)
        return NULL;
    for (enum role r = ROLE_AGENT; r <= ROLE_POLLER; r++)
        if (strcmp(program, roles[r].program) == 0)
            id->role = r;
    id->source_id = strdup(source_id);
    /* A name may be a host in three ways: full_bytes, without its domain, by each of the peers. */
    id->hosts = calloc(names->count * (ids->peer_count + 3) + 1, sizeof(*id->hosts));
    id->addresses = calloc(names->count + 1, sizeof(*id->addresses));
    if (id->source_id && id->hosts && id->addresses) {
        if (!id->role || !take_names(id, ids, names, &memory)) {
            complain(id, program, source_id, names, reason, reason_bytes);
            memory = false;
        }
    }
    if (!memory) {
        ft_identity_free(id);
        return NULL;
    }
    for (size_t i = 0; id->role == ROLE_POLLER && i < ids->inventory_count; i++)
        if (strcmp(ids->inventories[i].poller, source_id) == 0)
            id->inventory = &ids->inventories[i];
    return id;
}

void ft_identity_free(struct ft_identity *id)
{
    if (!id)
        return;
    for (size_t i = 0; i < id->host_count; i++)
        free(id->hosts[i]);
    free(id->hosts);
    free(id->addresses);
    free(id->source_id);
    free(id);
}

/* A record under judgement, all the way down. */
struct question {
    struct ft_identities *ids;
    const struct ft_identity *id;
    const struct ft_topology *file;
    int64_t now_ms;
    char *reason;
};

__attribute__((format(printf, 2, 3))) static bool refuse(const struct question *q,
                                                         const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(q->reason, FT_IDENTITY_TEXT_BYTES, format, args);
    va_end(args);
    return false;
}

/* A host that is not named is nobody's. */
static bool own_host(const struct question *q, const char *host)
{
    for (size_t i = 0; i < q->id->host_count && host; i++)
        if (strcasecmp(q->id->hosts[i], host) == 0)
            return true;
    return !host || !*host || refuse(q, "it names host '%.64s'", host);
}

static bool own_source(const struct question *q, const char *source)
{
    return !source || strcmp(source, q->id->source_id) == 0 ||
           refuse(q, "it names source '%.64s'", source);
}

static bool same_label(const char *a, const char *b)
{
    size_t len = strcspn(a, ".");

    return len == strcspn(b, ".") && strncasecmp(a, b, len) == 0;
}

/* Addresses that many hosts have alike: link-local, loopback, none (RFC 4291, RFC 3927). */
static bool is_shared(const struct ft_ip *ip)
{
    static const struct ft_prefix shared[] = {
        {{{0xfe, 0x80}}, 10},
        {{{[10] = 0xff, 0xff, 169, 254}}, 112},
        {{{[10] = 0xff, 0xff, 127}}, 104},
        {{{[15] = 1}}, 128},
        {{{0}}, 128},
    };

    for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
        if (ft_prefix_has(&shared[i], ip))
            return true;
    return false;
}

static bool is_certified(const struct ft_identity *id, const struct ft_ip *ip)
{
    for (size_t i = 0; i < id->address_count; i++)
        if (ft_ip_equal(&id->addresses[i], ip))
            return true;
    return false;
}

static bool has_lapsed(void *arg, void *entry)
{
    const struct ft_identities *ids = arg;

    return llabs(ids->now_ms - ((const struct claim *)entry)->heard_ms) > CLAIM_LASTS_MS;
}

/* An entry for an address; where the table is full, lapsed ones are replaced. */
static struct claim *claim_of(struct ft_identities *ids, const struct ft_ip *ip, int64_t now_ms,
                              bool *fresh)
{
    struct claim *claim = ft_table_insert(ids->claims, ip, fresh);

    ids->now_ms = now_ms;
    if (!claim && ft_table_make_room(ids->claims, &ids->hand, LOOKS, has_lapsed, ids))
        claim = ft_table_insert(ids->claims, ip, fresh);
    return claim;
}

static bool claim_address(const struct question *q, const struct ft_ip *ip, bool make,
                          const char *text)
{
    struct claim *claim = ft_table_find(q->ids->claims, ip);
    bool certified = is_certified(q->id, ip), fresh;
    const char *host = q->id->hosts[0];

    if (claim && strncmp(claim->host, host, HOST_BYTES - 1) != 0 &&
        (claim->certified || !certified) && llabs(q->now_ms - claim->heard_ms) <= CLAIM_LASTS_MS)
        return refuse(q, "%s is an address of host '%s'", text, claim->host);
    if (!make)
        return true;
    if (!claim)
        claim = claim_of(q->ids, ip, q->now_ms, &fresh);
    if (!claim)
        return refuse(
            q, "the table of learnt addresses is full: %s is not accepted (discovery.learnt_max)",
            text);
    claim->heard_ms = q->now_ms;
    claim->certified = certified;
    snprintf(claim->host, sizeof(claim->host), "%s", host);
    return true;
}

/* Whether an address is not that of another host; where nobody knows, this agent may report it. */
static bool own_address(const struct question *q, const struct ft_ip *ip, bool claim)
{
    uint32_t nic = q->file ? ft_topology_nic_at(q->file, ip) : FT_NONE;
    char text[FT_IP_TEXT_BYTES];
    const char *owner;

    if (is_shared(ip))
        return true;
    ft_ip_format(ip, text);
    if (nic == FT_NONE)
        return claim_address(q, ip, claim, text);
    owner = ft_topology_host(q->file, ft_topology_nic(q->file, nic)->host_id)->name;
    for (size_t i = 0; i < q->id->host_count; i++)
        if (same_label(q->id->hosts[i], owner))
            return true;
    return refuse(q, "%s is an address of host '%.64s' in the topology file", text, owner);
}

/* What is not an address at all is checked elsewhere. */
static bool own_bytes(const struct question *q, bool has, const ProtobufCBinaryData *bytes)
{
    struct ft_ip ip;

    return !has || ft_ip_from_bytes(bytes->data, bytes->len, &ip) || own_address(q, &ip, true);
}

static bool own_flow(const struct question *q, const Fabrictrace__FlowReport *r)
{
    struct ft_tuple tuple;

    if (!own_host(q, r->host))
        return false;
    if (!r->flow || ft_flow_to_tuple(r->flow, &tuple))
        return true;
    if (r->direction == FABRICTRACE__DIRECTION__DIRECTION_TX)
        return own_address(q, &tuple.src, true);
    /* Of a flow that passes by, the agent knows neither end as its own. */
    return own_address(q, &tuple.dst, r->direction == FABRICTRACE__DIRECTION__DIRECTION_RX);
}

static bool own_queue_pairs(const struct question *q, const Fabrictrace__QueuePairs *list)
{
    bool own = own_source(q, list->source) && own_host(q, list->host);

    for (size_t i = 0; own && i < list->n_addresses; i++)
        own = own_bytes(q, true, &list->addresses[i]);
    for (size_t i = 0; own && i < list->n_queue_pairs; i++)
        own = own_bytes(q, list->queue_pairs[i]->has_src, &list->queue_pairs[i]->src);
    return own;
}

/* What is of no queue pair has no flow. */
static bool own_plan_port(const struct question *q, const Fabrictrace__PlanPort *port)
{
    return own_host(q, port->host) && (!port->source || own_source(q, port->source)) &&
           (!port->flow || own_bytes(q, port->flow->has_src, &port->flow->src));
}

static bool own_probe(const struct question *q, const Fabrictrace__Probe *probe)
{
    return own_host(q, probe->host) &&
           (!probe->flow || own_bytes(q, probe->flow->has_src, &probe->flow->src));
}

static bool agent_may(const struct question *q, const Fabrictrace__Record *record)
{
    switch (record->kind_case) {
    case FABRICTRACE__RECORD__KIND_FLOW:
        return own_flow(q, record->flow);
    case FABRICTRACE__RECORD__KIND_QUEUE_PAIRS:
        return own_queue_pairs(q, record->queue_pairs);
    case FABRICTRACE__RECORD__KIND_HOST:
        return own_source(q, record->host->source) && own_host(q, record->host->host);
    case FABRICTRACE__RECORD__KIND_HOST_STATUS:
        return own_source(q, record->host_status->source) && own_host(q, record->host_status->host);
    case FABRICTRACE__RECORD__KIND_COMMUNICATOR:
        return own_host(q, record->communicator->host);
    case FABRICTRACE__RECORD__KIND_COLLECTIVE:
        return own_host(q, record->collective->host);
    case FABRICTRACE__RECORD__KIND_PROGRESS:
        return own_host(q, record->progress->host);
    case FABRICTRACE__RECORD__KIND_RANK_STATES:
        return own_host(q, record->rank_states->host);
    case FABRICTRACE__RECORD__KIND_PLAN_PORT:
        return own_plan_port(q, record->plan_port);
    case FABRICTRACE__RECORD__KIND_PROBE:
        return own_probe(q, record->probe);
    default:
        return refuse(q, "an agent may not report records of this kind");
    }
}

static bool own_switch_at(const struct question *q, const struct ft_ip *ip)
{
    const struct inventory *inventory = q->id->inventory;
    char text[FT_IP_TEXT_BYTES];

    if (!inventory)
        return true;
    for (size_t i = 0; i < inventory->count; i++)
        if (ft_prefix_has(&inventory->prefixes[i], ip))
            return true;
    ft_ip_format(ip, text);
    return refuse(q, "switch %s is not in its inventory", text);
}

static bool own_switch(const struct question *q, bool has, const ProtobufCBinaryData *bytes)
{
    struct ft_ip ip;

    return !has || ft_ip_from_bytes(bytes->data, bytes->len, &ip) || own_switch_at(q, &ip);
}

/* What names no address is judged elsewhere. */
static bool own_source_switch(const struct question *q, const Fabrictrace__Observations *m,
                              size_t i)
{
    uint32_t agent = m->sources[i]->agent;

    return agent >= m->n_addresses || own_switch(q, true, &m->addresses[agent]);
}

static bool poller_may(const struct question *q, const Fabrictrace__Record *record)
{
    const Fabrictrace__SwitchReport *report = record->switch_report;
    bool own = true;

    switch (record->kind_case) {
    case FABRICTRACE__RECORD__KIND_OBSERVATION:
        return own_switch(q, record->observation->has_agent, &record->observation->agent);
    case FABRICTRACE__RECORD__KIND_OBSERVATIONS:
        for (size_t i = 0; own && i < record->observations->n_sources; i++)
            own = own_source_switch(q, record->observations, i);
        return own;
    case FABRICTRACE__RECORD__KIND_COUNTERS:
        return own_switch(q, record->counters->has_agent, &record->counters->agent);
    case FABRICTRACE__RECORD__KIND_PROCESSOR:
        return own_switch(q, record->processor->has_agent, &record->processor->agent);
    case FABRICTRACE__RECORD__KIND_SWITCH_REPORT:
        own = own_source(q, report->source) && own_switch(q, report->has_agent, &report->agent);
        for (size_t i = 0; own && i < report->n_addresses; i++)
            own = own_switch(q, true, &report->addresses[i]);
        return own;
    default:
        return refuse(q, "a poller may not report records of this kind");
    }
}

bool ft_identity_allows(struct ft_identities *ids, const struct ft_identity *id,
                        const Fabrictrace__Record *record, const struct ft_topology *file,
                        int64_t now_ms, char reason[FT_IDENTITY_TEXT_BYTES])
{
    const struct question q = {ids, id, file, now_ms, reason};
    const Fabrictrace__Loss *loss = record->loss;

    if (record->kind_case == FABRICTRACE__RECORD__KIND_LOSS)
        return (!loss->program || strcmp(loss->program, roles[id->role].program) == 0 ||
                refuse(&q, "it names program '%.64s'", loss->program)) &&
               own_source(&q, loss->source);
    return id->role == ROLE_AGENT ? agent_may(&q, record) : poller_may(&q, record);
}

bool ft_identity_allows_observed(const struct ft_identity *id, const struct ft_observed *o,
                                 char reason[FT_IDENTITY_TEXT_BYTES])
{
    const struct question q = {.id = id, .reason = reason};

    return id->role == ROLE_AGENT ? refuse(&q, "an agent may not report records of this kind")
                                  : own_switch_at(&q, &o->agent);
}

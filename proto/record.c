// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/batch.h"
#include "proto/json.h"

static int flow_key(const Fabrictrace__Flow *flow, char *key)
{
    struct ft_tuple tuple;

    if (!flow || ft_flow_to_tuple(flow, &tuple))
        return -EINVAL;
    ft_tuple_format_key(&tuple, key);
    return 0;
}

static int two_part_key(const char *a, const char *b, char *key)
{
    if (!a || !b)
        return -EINVAL;
    snprintf(key, FT_RECORD_KEY_BYTES, "%s/%s", a, b);
    return 0;
}

static int observation_key(const Fabrictrace__Record *record, char *key)
{
    return flow_key(record->observation->flow, key);
}

/* Of many flows: by the first switch, so that a reader has the observations of a poller in order.
 */
static int observations_key(const Fabrictrace__Record *record, char *key)
{
    const Fabrictrace__Observations *o = record->observations;
    char agent[FT_IP_TEXT_BYTES];
    struct ft_ip ip;

    if (o->n_sources == 0 || o->sources[0]->agent >= o->n_addresses ||
        ft_ip_from_bytes(o->addresses[o->sources[0]->agent].data,
                         o->addresses[o->sources[0]->agent].len, &ip))
        return -EINVAL;
    ft_ip_format(&ip, agent);
    snprintf(key, FT_RECORD_KEY_BYTES, "%s", agent);
    return 0;
}

static int flow_report_key(const Fabrictrace__Record *record, char *key)
{
    return flow_key(record->flow->flow, key);
}

static int path_key(const Fabrictrace__Record *record, char *key)
{
    return flow_key(record->path->flow, key);
}

static int counters_key(const Fabrictrace__Record *record, char *key)
{
    const Fabrictrace__PortCounters *c = record->counters;
    char agent[FT_IP_TEXT_BYTES];
    struct ft_ip ip;

    if (!c->has_agent || !c->has_ifindex || ft_ip_from_bytes(c->agent.data, c->agent.len, &ip))
        return -EINVAL;
    ft_ip_format(&ip, agent);
    snprintf(key, FT_RECORD_KEY_BYTES, "%s/%u", agent, (unsigned)c->ifindex);
    return 0;
}

static int processor_key(const Fabrictrace__Record *record, char *key)
{
    const Fabrictrace__Processor *p = record->processor;
    char agent[FT_IP_TEXT_BYTES];
    struct ft_ip ip;

    if (!p->has_agent || ft_ip_from_bytes(p->agent.data, p->agent.len, &ip))
        return -EINVAL;
    ft_ip_format(&ip, agent);
    snprintf(key, FT_RECORD_KEY_BYTES, "%s", agent);
    return 0;
}

static int loss_key(const Fabrictrace__Record *record, char *key)
{
    if (!record->loss->source)
        return -EINVAL;
    snprintf(key, FT_RECORD_KEY_BYTES, "%s", record->loss->source);
    return 0;
}

static int switch_report_key(const Fabrictrace__Record *record, char *key)
{
    const Fabrictrace__SwitchReport *s = record->switch_report;
    char agent[FT_IP_TEXT_BYTES];
    struct ft_ip ip;

    if (!s->has_agent || ft_ip_from_bytes(s->agent.data, s->agent.len, &ip))
        return -EINVAL;
    ft_ip_format(&ip, agent);
    snprintf(key, FT_RECORD_KEY_BYTES, "%s", agent);
    return 0;
}

static int communicator_key(const Fabrictrace__Record *record, char *key)
{
    return two_part_key(record->communicator->comm_id, record->communicator->host, key);
}

static int collective_key(const Fabrictrace__Record *record, char *key)
{
    return two_part_key(record->collective->comm_id, record->collective->host, key);
}

static int progress_key(const Fabrictrace__Record *record, char *key)
{
    return two_part_key(record->progress->comm_id, record->progress->host, key);
}

static int host_key(const Fabrictrace__Record *record, char *key)
{
    if (!record->host->source)
        return -EINVAL;
    snprintf(key, FT_RECORD_KEY_BYTES, "%s", record->host->source);
    return 0;
}

static int host_status_key(const Fabrictrace__Record *record, char *key)
{
    if (!record->host_status->source)
        return -EINVAL;
    snprintf(key, FT_RECORD_KEY_BYTES, "%s", record->host_status->source);
    return 0;
}

static int queue_pairs_key(const Fabrictrace__Record *record, char *key)
{
    if (!record->queue_pairs->host)
        return -EINVAL;
    snprintf(key, FT_RECORD_KEY_BYTES, "%s", record->queue_pairs->host);
    return 0;
}

static int link_key(const Fabrictrace__Record *record, char *key)
{
    return two_part_key(record->link->switch_, record->link->port, key);
}

static int imbalance_key(const Fabrictrace__Record *record, char *key)
{
    const Fabrictrace__Imbalance *i = record->imbalance;
    char scope[FT_JSON_ENUM_BYTES];

    if (!i->has_scope)
        return -EINVAL;
    ft_json_enum_text(&fabrictrace__scope__descriptor, (int32_t)i->scope, scope);
    return two_part_key(scope, i->name, key);
}

static int event_key(const Fabrictrace__Record *record, char *key)
{
    const Fabrictrace__Event *e = record->event;
    char kind[FT_JSON_ENUM_BYTES];

    if (!e->has_kind)
        return -EINVAL;
    ft_json_enum_text(&fabrictrace__kind__descriptor, (int32_t)e->kind, kind);
    return two_part_key(kind, e->subject, key);
}

static int diagnosis_key(const Fabrictrace__Record *record, char *key)
{
    const Fabrictrace__Diagnosis *d = record->diagnosis;

    /* Of one without a daemon, the job is not known. */
    return two_part_key(d->job ? d->job : "", d->communicator ? d->communicator : "", key);
}

static int plan_key(const Fabrictrace__Record *record, char *key)
{
    if (!record->plan->job)
        return -EINVAL;
    snprintf(key, FT_RECORD_KEY_BYTES, "%s", record->plan->job);
    return 0;
}

static int plan_port_key(const Fabrictrace__Record *record, char *key)
{
    return two_part_key(record->plan_port->job, record->plan_port->host, key);
}

static int hash_key(const Fabrictrace__Record *record, char *key)
{
    const Fabrictrace__Hash *h = record->hash;

    /* NICs choose. */
    return two_part_key(h->switch_ ? h->switch_ : "", h->group, key);
}

static int probe_key(const Fabrictrace__Record *record, char *key)
{
    return flow_key(record->probe->flow, key);
}

static int spread_key(const Fabrictrace__Record *record, char *key)
{
    return two_part_key(record->spread->switch_, record->spread->group, key);
}

static int rhythm_key(const Fabrictrace__Record *record, char *key)
{
    if (!record->rhythm->job)
        return -EINVAL;
    snprintf(key, FT_RECORD_KEY_BYTES, "%s", record->rhythm->job);
    return 0;
}

static int rank_states_key(const Fabrictrace__Record *record, char *key)
{
    const Fabrictrace__RankStates *m = record->rank_states;

    return two_part_key(m->comm_id ? m->comm_id : m->group, m->host, key);
}

static int partial_key(const Fabrictrace__Record *record, char *key)
{
    if (!record->partial->source)
        return -EINVAL;
    snprintf(key, FT_RECORD_KEY_BYTES, "%s", record->partial->source);
    return 0;
}

struct kind {
    Fabrictrace__Record__KindCase kind;
    const char *schema;
    const char *member; /* what a line of JSON begins with */
    const ProtobufCMessageDescriptor *descriptor;
    int (*key)(const Fabrictrace__Record *record, char *key);
};

/* A schema's name, and its member in JSON. */
#define SCHEMA(name) "fabrictrace." name ".v1", "\"schema\":\"fabrictrace." name ".v1\""

static const struct kind kinds[] = {
    {FABRICTRACE__RECORD__KIND_OBSERVATION, SCHEMA("observation"),
     &fabrictrace__observation__descriptor, observation_key},
    {FABRICTRACE__RECORD__KIND_FLOW, SCHEMA("flow"), &fabrictrace__flow_report__descriptor,
     flow_report_key},
    {FABRICTRACE__RECORD__KIND_COUNTERS, SCHEMA("counters"),
     &fabrictrace__port_counters__descriptor, counters_key},
    {FABRICTRACE__RECORD__KIND_LOSS, SCHEMA("loss"), &fabrictrace__loss__descriptor, loss_key},
    {FABRICTRACE__RECORD__KIND_SWITCH_REPORT, SCHEMA("switch_report"),
     &fabrictrace__switch_report__descriptor, switch_report_key},
    {FABRICTRACE__RECORD__KIND_HOST, SCHEMA("host"), &fabrictrace__host_counters__descriptor,
     host_key},
    {FABRICTRACE__RECORD__KIND_COMMUNICATOR, SCHEMA("communicator"),
     &fabrictrace__communicator__descriptor, communicator_key},
    {FABRICTRACE__RECORD__KIND_COLLECTIVE, SCHEMA("collective"),
     &fabrictrace__collective__descriptor, collective_key},
    {FABRICTRACE__RECORD__KIND_HOST_STATUS, SCHEMA("host_status"),
     &fabrictrace__host_status__descriptor, host_status_key},
    {FABRICTRACE__RECORD__KIND_PROCESSOR, SCHEMA("processor"), &fabrictrace__processor__descriptor,
     processor_key},
    {FABRICTRACE__RECORD__KIND_QUEUE_PAIRS, SCHEMA("queue_pairs"),
     &fabrictrace__queue_pairs__descriptor, queue_pairs_key},
    {FABRICTRACE__RECORD__KIND_OBSERVATIONS, SCHEMA("observations"),
     &fabrictrace__observations__descriptor, observations_key},
    {FABRICTRACE__RECORD__KIND_PROGRESS, SCHEMA("progress"), &fabrictrace__progress__descriptor,
     progress_key},
    {FABRICTRACE__RECORD__KIND_PATH, SCHEMA("path"), &fabrictrace__path__descriptor, path_key},
    {FABRICTRACE__RECORD__KIND_LINK, SCHEMA("link"), &fabrictrace__link__descriptor, link_key},
    {FABRICTRACE__RECORD__KIND_IMBALANCE, SCHEMA("imbalance"), &fabrictrace__imbalance__descriptor,
     imbalance_key},
    {FABRICTRACE__RECORD__KIND_EVENT, SCHEMA("event"), &fabrictrace__event__descriptor, event_key},
    {FABRICTRACE__RECORD__KIND_DIAGNOSIS, SCHEMA("diagnosis"), &fabrictrace__diagnosis__descriptor,
     diagnosis_key},
    {FABRICTRACE__RECORD__KIND_HASH, SCHEMA("hash"), &fabrictrace__hash__descriptor, hash_key},
    {FABRICTRACE__RECORD__KIND_SPREAD, SCHEMA("spread"), &fabrictrace__spread__descriptor,
     spread_key},
    {FABRICTRACE__RECORD__KIND_PLAN, SCHEMA("plan"), &fabrictrace__plan__descriptor, plan_key},
    {FABRICTRACE__RECORD__KIND_PARTIAL, SCHEMA("partial"), &fabrictrace__partial__descriptor,
     partial_key},
    {FABRICTRACE__RECORD__KIND_PLAN_PORT, SCHEMA("plan_port"), &fabrictrace__plan_port__descriptor,
     plan_port_key},
    {FABRICTRACE__RECORD__KIND_PROBE, SCHEMA("probe"), &fabrictrace__probe__descriptor, probe_key},
    {FABRICTRACE__RECORD__KIND_RHYTHM, SCHEMA("rhythm"), &fabrictrace__rhythm__descriptor,
     rhythm_key},
    {FABRICTRACE__RECORD__KIND_RANK_STATES, SCHEMA("rank_states"),
     &fabrictrace__rank_states__descriptor, rank_states_key},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const struct kind *find_kind(Fabrictrace__Record__KindCase kind)
{
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].kind == kind)
            return &kinds[i];
    return NULL;
}

static const struct kind *find_schema(const char *schema)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].schema, schema) == 0)
            return &kinds[i];
    return NULL;
}

size_t ft_record_kinds(void)
{
    return KINDS;
}

Fabrictrace__Record__KindCase ft_record_kind(size_t i)
{
    return i < KINDS ? kinds[i].kind : FABRICTRACE__RECORD__KIND__NOT_SET;
}

const char *ft_record_schema(Fabrictrace__Record__KindCase kind)
{
    const struct kind *k = find_kind(kind);

    return k ? k->schema : NULL;
}

/* The members of the oneof share their memory; each is a message, which starts with its base. */
static const ProtobufCMessage *message_of(const Fabrictrace__Record *record)
{
    return record->observation ? &record->observation->base : NULL;
}

const ProtobufCMessage *ft_record_message(const Fabrictrace__Record *record)
{
    return find_kind(record->kind_case) ? message_of(record) : NULL;
}

void ft_record_key(const Fabrictrace__Record *record, char key[FT_RECORD_KEY_BYTES])
{
    key[0] = '\0';
    if (ft_record_message(record) && find_kind(record->kind_case)->key(record, key))
        key[0] = '\0';
}

static const ProtobufCFieldDescriptor *member_of(const ProtobufCMessage *message, const char *name,
                                                 ProtobufCType type)
{
    const ProtobufCFieldDescriptor *field =
        message ? protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name) : NULL;

    return field && field->type == type ? field : NULL;
}

const char *ft_record_fabric(const Fabrictrace__Record *record)
{
    const ProtobufCMessage *message = ft_record_message(record);
    const ProtobufCFieldDescriptor *field = member_of(message, "fabric", PROTOBUF_C_TYPE_STRING);

    return field ? *(char *const *)((const char *)message + field->offset) : NULL;
}

bool ft_record_window(const Fabrictrace__Record *record, uint64_t *start_ms)
{
    const ProtobufCMessage *message = ft_record_message(record);
    const ProtobufCFieldDescriptor *field =
        member_of(message, "window_start_ms", PROTOBUF_C_TYPE_UINT64);

    if (!field || !*(const protobuf_c_boolean *)((const char *)message + field->quantifier_offset))
        return false;
    *start_ms = *(const uint64_t *)((const char *)message + field->offset);
    return true;
}

int ft_record_to_json(const Fabrictrace__Record *record, struct ft_writer *w)
{
    const struct kind *kind = find_kind(record->kind_case);
    const ProtobufCMessage *message = kind ? message_of(record) : NULL;

    if (!message)
        return -EINVAL;
    return ft_json_write(w, message, kind->member);
}

static const ProtobufCMessageDescriptor *pick_schema(const char *schema)
{
    const struct kind *k = find_schema(schema);

    return k ? k->descriptor : NULL;
}

static int read_record(const char *line, size_t len, enum ft_json_writer by,
                       Fabrictrace__Record **record, char *error, size_t error_bytes)
{
    ProtobufCMessage *message;
    Fabrictrace__Record *r = malloc(sizeof(*r));
    int rc;

    if (!r) {
        snprintf(error, error_bytes, "out of memory");
        return -ENOMEM;
    }
    fabrictrace__record__init(r);
    rc = ft_json_read(line, len, by, "schema", pick_schema, &message, error, error_bytes);
    if (rc) {
        free(r);
        return rc;
    }
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].descriptor == message->descriptor)
            r->kind_case = kinds[i].kind;
    r->observation = (Fabrictrace__Observation *)message;
    *record = r;
    return 0;
}

int ft_record_from_json(const char *line, size_t len, Fabrictrace__Record **record, char *error,
                        size_t error_bytes)
{
    return read_record(line, len, FT_JSON_BY_HAND, record, error, error_bytes);
}

int ft_record_from_newer(const char *line, size_t len, Fabrictrace__Record **record, char *error,
                         size_t error_bytes)
{
    return read_record(line, len, FT_JSON_BY_NEWER, record, error, error_bytes);
}

void ft_record_free(Fabrictrace__Record *record)
{
    if (record)
        fabrictrace__record__free_unpacked(record, NULL);
}

int ft_batch_pack(Fabrictrace__Record *const *records, size_t count, struct ft_writer *w)
{
    Fabrictrace__Batch batch = FABRICTRACE__BATCH__INIT;
    uint8_t *room;
    size_t n;

    batch.records = (Fabrictrace__Record **)records;
    batch.n_records = count;
    n = fabrictrace__batch__get_packed_size(&batch);
    room = ft_write_room(w, n);
    if (!room)
        return -ENOSPC;
    fabrictrace__batch__pack(&batch, room);
    return 0;
}

int ft_flow_to_tuple(const Fabrictrace__Flow *flow, struct ft_tuple *tuple)
{
    struct ft_tuple t = {.sport = (uint16_t)flow->sport,
                         .dport = (uint16_t)flow->dport,
                         .proto = (uint8_t)flow->proto};

    if (!flow->has_src || !flow->has_dst || !flow->has_sport || !flow->has_dport ||
        !flow->has_proto || flow->sport > UINT16_MAX || flow->dport > UINT16_MAX ||
        flow->proto > UINT8_MAX)
        return -EINVAL;
    if (ft_ip_from_bytes(flow->src.data, flow->src.len, &t.src) ||
        ft_ip_from_bytes(flow->dst.data, flow->dst.len, &t.dst))
        return -EINVAL;
    *tuple = t;
    return 0;
}

void ft_flow_from_tuple(Fabrictrace__Flow *flow, const struct ft_tuple *tuple)
{
    fabrictrace__flow__init(flow);
    flow->has_src = flow->has_dst = flow->has_sport = flow->has_dport = flow->has_proto = 1;
    flow->src.data = (uint8_t *)ft_ip_bytes(&tuple->src, &flow->src.len);
    flow->dst.data = (uint8_t *)ft_ip_bytes(&tuple->dst, &flow->dst.len);
    flow->sport = tuple->sport;
    flow->dport = tuple->dport;
    flow->proto = tuple->proto;
}

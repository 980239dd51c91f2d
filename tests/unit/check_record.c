// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/batch.h"
#include "tests/unit/unit.h"

/* A message with every field set to something that tells it from the others, or with every third
 * field left out. */
struct filler {
    unsigned next;
    bool sparse;
};

static ProtobufCMessage *filled(const ProtobufCMessageDescriptor *d, struct filler *filler);

static void fill_value(const ProtobufCFieldDescriptor *f, void *at, struct filler *filler)
{
    static const uint8_t address[16] = {0xfd, [15] = 9};
    unsigned n = ++filler->next;
    ProtobufCBinaryData *bytes = at;
    const ProtobufCEnumDescriptor *type = f->descriptor;

    switch (f->type) {
    case PROTOBUF_C_TYPE_UINT32:
        *(uint32_t *)at = UINT32_MAX - n;
        break;
    case PROTOBUF_C_TYPE_UINT64:
        *(uint64_t *)at = n % 2 ? UINT64_MAX - n : n;
        break;
    case PROTOBUF_C_TYPE_SINT32:
        *(int32_t *)at = INT32_MIN + (int32_t)n;
        break;
    case PROTOBUF_C_TYPE_INT64:
        *(int64_t *)at = INT64_MIN + (int64_t)n;
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)at = n * 0.25;
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = n % 2;
        break;
    case PROTOBUF_C_TYPE_ENUM:
        *(int32_t *)at = type->values[n % type->n_values].value;
        break;
    case PROTOBUF_C_TYPE_STRING:
        ck_assert_int_gt(asprintf((char **)at, "%s \"%u\"", f->name, n), 0);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        bytes->len = n % 2 ? 16 : 4;
        bytes->data = malloc(bytes->len);
        memcpy(bytes->data, address + 16 - bytes->len, bytes->len);
        bytes->data[0] = 10;
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at = filled(f->descriptor, filler);
        break;
    default:
        ck_abort_msg("%s is of a type that no record has had", f->name);
    }
}

static ProtobufCMessage *filled(const ProtobufCMessageDescriptor *d, struct filler *filler)
{
    ProtobufCMessage *m = malloc(d->sizeof_message);
    uint8_t *base = (uint8_t *)m;

    protobuf_c_message_init(d, m);
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];

        if (filler->sparse && (i + filler->next) % 3 == 0)
            continue;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            bool bytes = f->type == PROTOBUF_C_TYPE_BYTES;
            bool number = f->type == PROTOBUF_C_TYPE_UINT32 || f->type == PROTOBUF_C_TYPE_SINT32;
            bool wide = f->type == PROTOBUF_C_TYPE_UINT64;
            size_t step = bytes    ? sizeof(ProtobufCBinaryData)
                          : number ? sizeof(uint32_t)
                                   : sizeof(void *);
            uint8_t *elements = calloc(2, step);

            ck_assert(bytes || number || wide || f->type == PROTOBUF_C_TYPE_STRING ||
                      f->type == PROTOBUF_C_TYPE_MESSAGE);
            *(size_t *)(void *)(base + f->quantifier_offset) = 2;
            *(void **)(void *)(base + f->offset) = elements;
            fill_value(f, elements, filler);
            fill_value(f, elements + step, filler);
            continue;
        }
        fill_value(f, base + f->offset, filler);
        if (f->type != PROTOBUF_C_TYPE_STRING && f->type != PROTOBUF_C_TYPE_MESSAGE)
            *(protobuf_c_boolean *)(base + f->quantifier_offset) = 1;
    }
    return m;
}

/* Each kind by its field in Record. */
static Fabrictrace__Record *filled_record(size_t i, bool sparse)
{
    const ProtobufCMessageDescriptor *d = &fabrictrace__record__descriptor;
    struct filler filler = {.sparse = sparse};
    Fabrictrace__Record *r = malloc(sizeof(*r));

    fabrictrace__record__init(r);
    r->kind_case = ft_record_kind(i);
    for (unsigned k = 0; k < d->n_fields; k++)
        if (d->fields[k].id == (uint32_t)r->kind_case)
            r->observation = (Fabrictrace__Observation *)filled(d->fields[k].descriptor, &filler);
    return r;
}

static uint8_t *packed(const Fabrictrace__Record *r, size_t *len)
{
    uint8_t *bytes;

    *len = fabrictrace__record__get_packed_size(r);
    bytes = malloc(*len);
    fabrictrace__record__pack(r, bytes);
    return bytes;
}

START_TEST(table_covers_the_contract)
{
    ck_assert_uint_eq(ft_record_kinds(), fabrictrace__record__descriptor.n_fields);
    for (size_t i = 0; i < ft_record_kinds(); i++) {
        const ProtobufCFieldDescriptor *f = &fabrictrace__record__descriptor.fields[i];
        char schema[100];

        ck_assert_uint_eq(f->id, (uint32_t)ft_record_kind(i));
        snprintf(schema, sizeof(schema), "fabrictrace.%s.v1", f->name);
        ck_assert_str_eq(ft_record_schema(ft_record_kind(i)), schema);
    }
    ck_assert_int_eq(ft_record_kind(99), FABRICTRACE__RECORD__KIND__NOT_SET);
    ck_assert_ptr_null(ft_record_schema(FABRICTRACE__RECORD__KIND__NOT_SET));
}
END_TEST

START_TEST(every_kind_there_and_back)
{
    for (size_t i = 0; i < 2 * ft_record_kinds(); i++) {
        Fabrictrace__Record *r = filled_record(i / 2, i % 2), *back = NULL;
        char error[200] = "", first[100];
        uint8_t *a, *b;
        size_t a_len, b_len;
        struct ft_writer w;

        ft_writer_init(&w, 1 << 20);
        ck_assert_int_eq(ft_record_to_json(r, &w), 0);
        snprintf(first, sizeof(first), "{\"schema\":\"%s\",", ft_record_schema(r->kind_case));
        ck_assert_mem_eq(w.bytes, first, strlen(first));
        ck_assert_ptr_null(memchr(w.bytes, '\n', w.len));
        ck_assert_msg(ft_record_from_json((char *)w.bytes, w.len, &back, error, sizeof(error)) == 0,
                      "%.*s: %s", (int)w.len, (char *)w.bytes, error);
        ck_assert_int_eq(back->kind_case, r->kind_case);
        a = packed(r, &a_len);
        b = packed(back, &b_len);
        ck_assert_uint_eq(a_len, b_len);
        ck_assert_mem_eq(a, b, a_len);
        free(a);
        free(b);
        ft_record_free(r);
        ft_record_free(back);
        ft_writer_free(&w);
    }
}
END_TEST

static void refuses(const char *line, const char *expected)
{
    Fabrictrace__Record *r = NULL;
    char error[200] = "";

    ck_assert_int_eq(ft_record_from_json(line, strlen(line), &r, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, expected);
    ck_assert_ptr_null(r);
}

START_TEST(refused_lines)
{
    struct ft_writer w;
    Fabrictrace__Record none = FABRICTRACE__RECORD__INIT;

    refuses("{\"fabric\":\"lab\"}", "member 'schema': missing");
    refuses("{\"schema\":1}", "member 'schema': missing");
    refuses("{\"schema\":\"fabrictrace.path.v2\"}", "member 'schema': unknown name");
    refuses("{\"schema\":\"fabrictrace.path.v1\",\"hopps\":[]}", "member 'hopps': unknown");
    refuses("[]", "not a JSON object");
    ft_record_free(NULL);
    ft_writer_init(&w, 100);
    ck_assert_int_eq(ft_record_to_json(&none, &w), -EINVAL);
    ft_writer_free(&w);
}
END_TEST

static void key_is(const char *line, const char *expected)
{
    Fabrictrace__Record *r;
    char error[200] = "", key[FT_RECORD_KEY_BYTES];

    ck_assert_msg(ft_record_from_json(line, strlen(line), &r, error, sizeof(error)) == 0, "%s: %s",
                  line, error);
    ft_record_key(r, key);
    ck_assert_str_eq(key, expected);
    ft_record_free(r);
}

#define FLOW                                                                                       \
    "\"flow\":{\"src\":\"10.0.1.1\",\"dst\":\"10.0.3.1\",\"sport\":49441,\"dport\":4791,"          \
    "\"proto\":17}"

/* Members and words that are not known yet, at any depth, are absent; what is wrong stays so. */
START_TEST(lines_of_newer_programs)
{
    static const char newer[] =
        "{\"schema\":\"fabrictrace.path.v1\",\"colour\":{\"a\":[1,null]},\"role\":\"herald\","
        "\"state\":\"resolved\",\"hops\":[{\"switch\":\"s\",\"mood\":1,\"evidence\":\"dreamt\"}],"
        "\"tuple_source\":77}";
    static const char wrong[] = "{\"schema\":\"fabrictrace.path.v1\",\"role\":true}";
    Fabrictrace__Record *record;
    char error[200];

    ck_assert_int_eq(ft_record_from_json(newer, strlen(newer), &record, error, sizeof(error)),
                     -EINVAL);
    ck_assert_str_eq(error, "member 'colour': unknown");
    ck_assert_int_eq(ft_record_from_newer(newer, strlen(newer), &record, error, sizeof(error)), 0);
    ck_assert(!record->path->has_role);
    ck_assert_int_eq(record->path->state, FABRICTRACE__STATE__STATE_RESOLVED);
    ck_assert_uint_eq(record->path->n_hops, 1);
    ck_assert_str_eq(record->path->hops[0]->switch_, "s");
    ck_assert(!record->path->hops[0]->has_evidence);
    ck_assert_int_eq(record->path->tuple_source, 77);
    ft_record_free(record);
    ck_assert_int_eq(ft_record_from_newer(wrong, strlen(wrong), &record, error, sizeof(error)),
                     -EINVAL);
    ck_assert_str_eq(error, "member 'role': the name of a value is needed");
}
END_TEST

START_TEST(keys)
{
    Fabrictrace__Record none = FABRICTRACE__RECORD__INIT;
    char key[FT_RECORD_KEY_BYTES];

    key_is("{\"schema\":\"fabrictrace.path.v1\"," FLOW "}", "10.0.1.1,10.0.3.1,49441,4791,17");
    key_is("{\"schema\":\"fabrictrace.flow.v1\"," FLOW "}", "10.0.1.1,10.0.3.1,49441,4791,17");
    key_is("{\"schema\":\"fabrictrace.observation.v1\"," FLOW "}",
           "10.0.1.1,10.0.3.1,49441,4791,17");
    key_is("{\"schema\":\"fabrictrace.link.v1\",\"switch\":\"leaf1\",\"port\":\"Ethernet49\"}",
           "leaf1/Ethernet49");
    key_is("{\"schema\":\"fabrictrace.imbalance.v1\",\"scope\":\"group\",\"name\":\"leaf1/up\"}",
           "group/leaf1/up");
    key_is("{\"schema\":\"fabrictrace.event.v1\",\"kind\":\"path_change\",\"subject\":\"x\"}",
           "path_change/x");
    key_is("{\"schema\":\"fabrictrace.counters.v1\",\"agent\":\"fd00::b\",\"ifindex\":49}",
           "fd00::b/49");
    key_is("{\"schema\":\"fabrictrace.loss.v1\",\"source\":\"gpu01\"}", "gpu01");

    key_is("{\"schema\":\"fabrictrace.path.v1\"}", "");
    key_is("{\"schema\":\"fabrictrace.path.v1\",\"flow\":{\"src\":\"10.0.1.1\"}}", "");
    key_is("{\"schema\":\"fabrictrace.link.v1\",\"switch\":\"leaf1\"}", "");
    key_is("{\"schema\":\"fabrictrace.imbalance.v1\",\"name\":\"leaf1/up\"}", "");
    key_is("{\"schema\":\"fabrictrace.event.v1\",\"subject\":\"x\"}", "");
    key_is("{\"schema\":\"fabrictrace.counters.v1\",\"ifindex\":49}", "");
    key_is("{\"schema\":\"fabrictrace.loss.v1\"}", "");
    ft_record_key(&none, key);
    ck_assert_str_eq(key, "");
}
END_TEST

/* What Kafka partitions by: of each kind, with what it needs and without. */
START_TEST(keys_of_every_kind)
{
    static const char *const rows[][3] = {
        {"switch_report", "\"agent\":\"10.0.0.9\"", "10.0.0.9"},
        {"processor", "\"agent\":\"fd00::9\"", "fd00::9"},
        {"observations", "\"addresses\":[\"10.0.1.1\",\"10.0.0.7\"],\"sources\":[{\"agent\":1}]",
         "10.0.0.7"},
        {"communicator", "\"comm_id\":\"0xab\",\"host\":\"gpu01\"", "0xab/gpu01"},
        {"collective", "\"comm_id\":\"0xab\",\"host\":\"gpu01\"", "0xab/gpu01"},
        {"progress", "\"comm_id\":\"0xab\",\"host\":\"gpu01\"", "0xab/gpu01"},
        {"host", "\"source\":\"gpu01\"", "gpu01"},
        {"host_status", "\"source\":\"gpu01\"", "gpu01"},
        {"queue_pairs", "\"host\":\"gpu01\"", "gpu01"},
        {"plan", "\"job\":\"train\"", "train"},
        {"plan_port", "\"job\":\"train\",\"host\":\"gpu01\"", "train/gpu01"},
        {"hash", "\"switch\":\"leaf1\",\"group\":\"up\"", "leaf1/up"},
        {"spread", "\"switch\":\"leaf1\",\"group\":\"up\"", "leaf1/up"},
        {"rhythm", "\"job\":\"train\"", "train"},
        {"rank_states", "\"comm_id\":\"0xab\",\"host\":\"gpu01\"", "0xab/gpu01"},
        {"rank_states", "\"group\":\"default_pg\",\"host\":\"gpu01\"", "default_pg/gpu01"},
        {"partial", "\"source\":\"daemon2\"", "daemon2"},
        {"probe", FLOW, "10.0.1.1,10.0.3.1,49441,4791,17"},
    };
    char line[400];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(line, sizeof(line), "{\"schema\":\"fabrictrace.%s.v1\",%s}", rows[i][0],
                 rows[i][1]);
        key_is(line, rows[i][2]);
        snprintf(line, sizeof(line), "{\"schema\":\"fabrictrace.%s.v1\"}", rows[i][0]);
        key_is(line, "");
    }
    /* An index beyond the addresses is a peer's lie. */
    key_is("{\"schema\":\"fabrictrace.observations.v1\",\"addresses\":[\"10.0.1.1\"],"
           "\"sources\":[{\"agent\":1}]}",
           "");
    /* Of a diagnosis without a daemon the job is not known. */
    key_is("{\"schema\":\"fabrictrace.diagnosis.v1\"}", "/");
    key_is("{\"schema\":\"fabrictrace.diagnosis.v1\",\"job\":\"train\",\"communicator\":\"c1\"}",
           "train/c1");
}
END_TEST

START_TEST(long_keys_are_cut)
{
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;
    Fabrictrace__Record r = FABRICTRACE__RECORD__INIT;
    char key[FT_RECORD_KEY_BYTES], source[1000];

    memset(source, 'x', sizeof(source));
    source[sizeof(source) - 1] = '\0';
    loss.source = source;
    r.kind_case = FABRICTRACE__RECORD__KIND_LOSS;
    r.loss = &loss;
    ft_record_key(&r, key);
    ck_assert_uint_eq(strlen(key), FT_RECORD_KEY_BYTES - 1);
}
END_TEST

#define BATCH 50

struct applied {
    struct ft_writer packed;
    unsigned calls;
};

static void apply(void *arg, const Fabrictrace__Record *record)
{
    struct applied *applied = arg;
    size_t len;
    uint8_t *bytes = packed(record, &len);

    ft_write_bytes(&applied->packed, bytes, len);
    free(bytes);
    applied->calls++;
}

/* Lists filled with anything do not fit together, and would spoil the batch: check_columns.c. */
static Fabrictrace__Record *batch_record(size_t i)
{
    size_t kind = i % ft_record_kinds();

    return filled_record(ft_record_kind(kind) == FABRICTRACE__RECORD__KIND_OBSERVATIONS ? 0 : kind,
                         i % 3 == 0);
}

START_TEST(batches)
{
    struct applied applied = {.calls = 0}, expected = {.calls = 0};
    Fabrictrace__Record *records[BATCH];
    uint64_t known = 7, unknown = 7;
    struct ft_writer w;

    ft_writer_init(&w, 1 << 20);
    ft_writer_init(&applied.packed, 1 << 20);
    ft_writer_init(&expected.packed, 1 << 20);
    for (size_t i = 0; i < BATCH; i++) {
        records[i] = batch_record(i);
        apply(&expected, records[i]);
    }
    ck_assert_int_eq(ft_batch_pack(records, BATCH, &w), 0);
    ck_assert_int_eq(ft_batch_unpack(w.bytes, w.len, apply, &applied, &known, &unknown), 0);
    ck_assert_uint_eq(known, BATCH);
    ck_assert_uint_eq(unknown, 0);
    ck_assert_uint_eq(applied.calls, BATCH);
    ck_assert_uint_eq(applied.packed.len, expected.packed.len);
    ck_assert_mem_eq(applied.packed.bytes, expected.packed.bytes, expected.packed.len);

    /* cut anywhere: either whole records remain, or nothing is applied */
    for (size_t n = 0; n < w.len; n++) {
        uint8_t *copy = malloc(n ? n : 1);

        memcpy(copy, w.bytes, n);
        applied.calls = 0;
        known = 7;
        if (ft_batch_unpack(copy, n, apply, &applied, &known, &unknown) == 0) {
            ck_assert_uint_eq(applied.calls, known);
            ck_assert_uint_lt(known, BATCH);
        } else {
            ck_assert_uint_eq(applied.calls, 0);
            ck_assert_uint_eq(known, 7);
        }
        ft_writer_reset(&applied.packed);
        free(copy);
    }
    ft_writer_free(&w);
    for (size_t i = 0; i < BATCH; i++)
        ft_record_free(records[i]);
    ft_writer_free(&applied.packed);
    ft_writer_free(&expected.packed);
}
END_TEST

START_TEST(records_of_newer_peers)
{
    /* Batch{Record{field 99: empty}, Record{loss{source "a"}, Record{}} */
    static const uint8_t bytes[] = {0x0a, 3, 0x9a, 0x06, 0,   0x0a, 5,
                                    0x22, 3, 0x12, 1,    'a', 0x0a, 0};
    struct applied applied = {.calls = 0};
    uint64_t known, unknown;

    ft_writer_init(&applied.packed, 1000);
    ck_assert_int_eq(ft_batch_unpack(bytes, sizeof(bytes), apply, &applied, &known, &unknown), 0);
    ck_assert_uint_eq(known, 1);
    ck_assert_uint_eq(unknown, 2);
    ck_assert_uint_eq(applied.calls, 1);
    ft_writer_free(&applied.packed);
}
END_TEST

/* Two bytes stand for a hop of a hundred: a peer cannot have that by the million. */
START_TEST(batch_that_expands)
{
    const size_t hops = 1000000, head = 15;
    uint8_t *bytes = malloc(head + 2 * hops);
    uint64_t known = 7, unknown = 7;
    struct applied applied = {.calls = 0};
    size_t n = 0;

    bytes[n++] = 0x0a;
    for (size_t v = 2 * hops + 6, i = 0; i < 4; i++, v >>= 7)
        bytes[n++] = (uint8_t)((v & 0x7f) | (i < 3 ? 0x80 : 0));
    bytes[n++] = 0x82; /* Record.path */
    bytes[n++] = 0x01;
    for (size_t v = 2 * hops, i = 0; i < 4; i++, v >>= 7)
        bytes[n++] = (uint8_t)((v & 0x7f) | (i < 3 ? 0x80 : 0));
    for (size_t i = 0; i < hops; i++) {
        bytes[n++] = 0x42;
        bytes[n++] = 0;
    }
    ck_assert_int_eq(ft_batch_unpack(bytes, n, apply, &applied, &known, &unknown), -EBADMSG);
    ck_assert_uint_eq(applied.calls, 0);
    ck_assert_uint_eq(known, 7);
    free(bytes);
}
END_TEST

START_TEST(flows_and_tuples)
{
    Fabrictrace__Flow flow;
    struct ft_tuple a, b;

    ck_assert_int_eq(ft_tuple_parse("10.0.1.1:49441-10.0.3.1", &a), 0);
    ft_flow_from_tuple(&flow, &a);
    ck_assert_uint_eq(flow.src.len, 4);
    memset(&b, 0xee, sizeof(b));
    ck_assert_int_eq(ft_flow_to_tuple(&flow, &b), 0);
    ck_assert(ft_tuple_equal(&a, &b));
    ck_assert_int_eq(ft_tuple_parse("[fd00::1]:49441-[fd00::2]", &a), 0);
    ft_flow_from_tuple(&flow, &a);
    ck_assert_uint_eq(flow.dst.len, 16);
    ck_assert_int_eq(ft_flow_to_tuple(&flow, &b), 0);
    ck_assert(ft_tuple_equal(&a, &b));

    flow.sport = 65536;
    ck_assert_int_eq(ft_flow_to_tuple(&flow, &b), -EINVAL);
    ft_flow_from_tuple(&flow, &a);
    flow.proto = 256;
    ck_assert_int_eq(ft_flow_to_tuple(&flow, &b), -EINVAL);
    ft_flow_from_tuple(&flow, &a);
    flow.has_dst = 0;
    ck_assert_int_eq(ft_flow_to_tuple(&flow, &b), -EINVAL);
    ft_flow_from_tuple(&flow, &a);
    flow.src.len = 5;
    ck_assert_int_eq(ft_flow_to_tuple(&flow, &b), -EINVAL);
    ck_assert(ft_tuple_equal(&a, &b));
}
END_TEST

FT_UNIT_MAIN("record", table_covers_the_contract, every_kind_there_and_back, refused_lines,
             lines_of_newer_programs, keys, keys_of_every_kind, long_keys_are_cut, batches,
             records_of_newer_peers, batch_that_expands, flows_and_tuples)

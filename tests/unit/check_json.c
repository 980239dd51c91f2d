// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/fabrictrace.pb-c.h"
#include "tests/unit/unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char *text_of(const ProtobufCMessage *message, const char *first)
{
    struct ft_writer w;
    char *text;

    ft_writer_init(&w, 1 << 20);
    ck_assert_int_eq(ft_json_write(&w, message, first), 0);
    text = strndup((char *)w.bytes, w.len);
    ft_writer_free(&w);
    return text;
}

static void writes(const ProtobufCMessage *message, const char *first, const char *expected)
{
    char *text = text_of(message, first);

    ck_assert_str_eq(text, expected);
    free(text);
}

static const ProtobufCMessageDescriptor *picked;

static const ProtobufCMessageDescriptor *pick(const char *name)
{
    return strcmp(name, "it") == 0 ? picked : NULL;
}

/* Reads an object as a message of a type, by a member that says so. */
static int read_as(const char *text, const ProtobufCMessageDescriptor *descriptor,
                   ProtobufCMessage **message, char *error, size_t error_bytes)
{
    bool object = text[0] == '{', empty = object && text[1] == '}';
    struct ft_writer w;
    int rc;

    ft_writer_init(&w, strlen(text) + 32);
    ft_write_fmt(&w, "%s%s%s", object ? "{\"type\":\"it\"" : "", object && !empty ? "," : "",
                 text + object);
    ck_assert(ft_writer_ok(&w));
    picked = descriptor;
    rc = ft_json_read((const char *)w.bytes, w.len, FT_JSON_BY_HAND, "type", pick, message, error,
                      error_bytes);
    ft_writer_free(&w);
    return rc;
}

static ProtobufCMessage *reads(const char *text, const ProtobufCMessageDescriptor *descriptor)
{
    ProtobufCMessage *m = NULL;
    char error[200] = "";

    ck_assert_msg(read_as(text, descriptor, &m, error, sizeof(error)) == 0, "%s: %s", text, error);
    return m;
}

/* The error for a text must be this one. */
static void refuses(const char *text, const ProtobufCMessageDescriptor *descriptor,
                    const char *expected)
{
    ProtobufCMessage *m = NULL;
    char error[200] = "";

    ck_assert_msg(read_as(text, descriptor, &m, error, sizeof(error)) == -EINVAL, "%s", text);
    ck_assert_str_eq(error, expected);
    ck_assert_ptr_null(m);
}

START_TEST(absent_fields)
{
    Fabrictrace__Path path = FABRICTRACE__PATH__INIT;

    writes(&path.base, NULL, "{}");
    writes(&path.base, "\"schema\":\"x\"", "{\"schema\":\"x\"}");
    path.has_bytes = 1; /* 0 is a value when it is known */
    writes(&path.base, "\"schema\":\"x\"", "{\"schema\":\"x\",\"bytes\":0}");
    path.fabric = (char *)"";
    writes(&path.base, NULL, "{\"fabric\":\"\",\"bytes\":0}");
}
END_TEST

START_TEST(numbers)
{
    Fabrictrace__Link link = FABRICTRACE__LINK__INIT;

    link.has_bytes = link.has_unexplained_bytes = 1;
    link.bytes = UINT64_MAX;
    link.unexplained_bytes = INT64_MIN;
    writes(&link.base, NULL,
           "{\"bytes\":18446744073709551615,\"unexplained_bytes\":-9223372036854775808}");
    link.bytes = 10;
    link.unexplained_bytes = -1;
    writes(&link.base, NULL, "{\"bytes\":10,\"unexplained_bytes\":-1}");
    /* On both sides of each power of ten, as printf has it. */
    for (uint64_t power = 1; power < UINT64_MAX / 10; power *= 10)
        for (int by = -1; by <= 1; by++) {
            char expected[80];

            link.bytes = power * 10 + (uint64_t)by;
            link.unexplained_bytes = -(int64_t)power;
            snprintf(expected, sizeof(expected), "{\"bytes\":%llu,\"unexplained_bytes\":-%llu}",
                     (unsigned long long)link.bytes, (unsigned long long)power);
            writes(&link.base, NULL, expected);
        }
}
END_TEST

START_TEST(doubles)
{
    static const struct {
        double v;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {62.5, "62.5"},
        {0.25, "0.25"},
        {1.0 / 3, "0.333333"},
        {2.0 / 3, "0.666667"},
        {100.0 / 3, "33.3333"},
        {33.78, "33.78"},
        {2.8284271, "2.82843"},
        {999999, "999999"},
        {999999.4, "999999"},
        {0.0001, "0.0001"},
        {0.000123456789, "0.000123457"},
        {0.1, "0.1"},
        {9.9999996, "10"},
        {0.99999999, "1"},
        {100000.5, "100001"},
        {0.05, "0.05"},
        {123456, "123456"},
        {4, "4"},
        {16, "16"},
        {0.031, "0.031"},
    };
    Fabrictrace__Imbalance m = FABRICTRACE__IMBALANCE__INIT;
    char expected[64];

    m.has_fim = 1;
    for (size_t i = 0; i < COUNT(rows); i++) {
        m.fim = rows[i].v;
        snprintf(expected, sizeof(expected), "{\"fim\":%s}", rows[i].text);
        writes(&m.base, NULL, expected);
    }
    for (double v = 3e-9; v < 1e9; v *= 1.37) {
        m.fim = v;
        snprintf(expected, sizeof(expected), "{\"fim\":%.6g}", v);
        writes(&m.base, NULL, expected);
        m.fim = -v;
        snprintf(expected, sizeof(expected), "{\"fim\":%.6g}", -v);
        writes(&m.base, NULL, expected);
    }
    m.fim = NAN;
    writes(&m.base, NULL, "{}");
    m.fim = INFINITY;
    writes(&m.base, NULL, "{}");
}
END_TEST

START_TEST(strings)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"plain", "plain"},
        {"a\"b\\c", "a\\\"b\\\\c"},
        {"\n\t\r\x01\x1f", "\\n\\t\\u000d\\u0001\\u001f"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"x\xff\x80y", "x\xef\xbf\xbd\xef\xbf\xbdy"},
        {"\x7f~ a\n", "\x7f~ a\\n"},
        {"\xc3", "\xef\xbf\xbd"}, /* cut */
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
    };
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;
    char expected[100];

    for (size_t i = 0; i < COUNT(rows); i++) {
        ProtobufCMessage *back;
        char *text;

        loss.source = (char *)rows[i].in;
        snprintf(expected, sizeof(expected), "{\"source\":\"%s\"}", rows[i].out);
        writes(&loss.base, NULL, expected);
        text = text_of(&loss.base, NULL);
        back = reads(text, &fabrictrace__loss__descriptor);
        if (!strstr(rows[i].out, "\xef\xbf\xbd"))
            ck_assert_str_eq(((Fabrictrace__Loss *)back)->source, rows[i].in);
        protobuf_c_message_free_unpacked(back, NULL);
        free(text);
    }
}
END_TEST

/* Short texts are looked at in pieces that overlap: one special byte, wherever it is, among those
 * next to it in ASCII. */
START_TEST(one_special_byte_at_each_place)
{
    static const struct {
        char in;
        const char *out;
    } specials[] = {{'"', "\\\""},       {'\\', "\\\\"},           {'\x1f', "\\u001f"},
                    {'\x01', "\\u0001"}, {'\x80', "\xef\xbf\xbd"}, {'\xff', "\xef\xbf\xbd"},
                    {'a', "a"}};
    static const char plain[] = " !#[]\x7f~";
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;
    char in[65], expected[100];

    loss.source = in;
    for (size_t len = 1; len < sizeof(in); len++)
        for (size_t at = 0; at < len; at++)
            for (size_t k = 0; k < COUNT(specials); k++) {
                for (size_t i = 0; i < len; i++)
                    in[i] = plain[(i + k) % (sizeof(plain) - 1)];
                in[len] = '\0';
                snprintf(expected, sizeof(expected), "{\"source\":\"%.*s%s%s\"}", (int)at, in,
                         specials[k].out, in + at + 1);
                in[at] = specials[k].in;
                writes(&loss.base, NULL, expected);
            }
}
END_TEST

START_TEST(addresses)
{
    uint8_t four[4] = {10, 0, 255, 1};
    uint8_t six[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    ProtobufCMessage *m;
    const Fabrictrace__Flow *back;

    flow.has_src = flow.has_dst = 1;
    flow.src = (ProtobufCBinaryData){4, four};
    flow.dst = (ProtobufCBinaryData){16, six};
    writes(&flow.base, NULL, "{\"src\":\"10.0.255.1\",\"dst\":\"2001:db8::1\"}");
    m = reads("{\"src\":\"10.0.255.1\",\"dst\":\"2001:db8::1\"}", &fabrictrace__flow__descriptor);
    back = (Fabrictrace__Flow *)m;
    ck_assert(back->has_src && back->has_dst);
    ck_assert_uint_eq(back->src.len, 4);
    ck_assert_mem_eq(back->src.data, four, 4);
    ck_assert_uint_eq(back->dst.len, 16);
    ck_assert_mem_eq(back->dst.data, six, 16);
    protobuf_c_message_free_unpacked(m, NULL);
    flow.src.len = 3; /* no address: not shown */
    writes(&flow.base, NULL, "{\"dst\":\"2001:db8::1\"}");
}
END_TEST

START_TEST(enums)
{
    Fabrictrace__Observation o = FABRICTRACE__OBSERVATION__INIT;
    Fabrictrace__Observation *back;
    int32_t value = 99;
    char text[FT_JSON_ENUM_BYTES];

    o.has_point = o.has_fate = 1;
    o.point = FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_INGRESS;
    o.fate = FABRICTRACE__FATE__FATE_MULTIPLE;
    writes(&o.base, NULL, "{\"point\":\"ingress\",\"fate\":\"multiple\"}");
    o.fate = (Fabrictrace__Fate)77; /* of a newer peer */
    writes(&o.base, NULL, "{\"point\":\"ingress\",\"fate\":77}");
    back = (Fabrictrace__Observation *)reads("{\"point\":\"egress\",\"fate\":77}",
                                             &fabrictrace__observation__descriptor);
    ck_assert_int_eq(back->point, FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_EGRESS);
    ck_assert_int_eq((int)back->fate, 77);
    protobuf_c_message_free_unpacked(&back->base, NULL);

    ft_json_enum_text(&fabrictrace__kind__descriptor, FABRICTRACE__KIND__KIND_SILENT_EXPORTER,
                      text);
    ck_assert_str_eq(text, "silent_exporter");
    ck_assert_int_eq(ft_json_enum_parse(&fabrictrace__kind__descriptor, "path_change", &value), 0);
    ck_assert_int_eq(value, FABRICTRACE__KIND__KIND_PATH_CHANGE);
    ck_assert_int_eq(ft_json_enum_parse(&fabrictrace__kind__descriptor, "path", &value), -EINVAL);
    ck_assert_int_eq(ft_json_enum_parse(&fabrictrace__kind__descriptor, "", &value), -EINVAL);
    ck_assert_int_eq(ft_json_enum_parse(&fabrictrace__kind__descriptor, "PATH_CHANGE", &value),
                     -EINVAL);
}
END_TEST

START_TEST(nested_and_repeated)
{
    static const char text[] =
        "{\"state\":\"multipath\",\"hops\":[{\"switch\":\"leaf1\",\"out\":\"Ethernet49\","
        "\"share\":0.5},{\"switch\":\"spine1\"}],\"shares\":[{\"hops\":[{\"in\":\"e\"}],"
        "\"share\":1}],\"qp\":{\"local\":17,\"remote\":4294967295}}";
    ProtobufCMessage *m = reads(text, &fabrictrace__path__descriptor);
    const Fabrictrace__Path *path = (Fabrictrace__Path *)m;

    ck_assert_uint_eq(path->n_hops, 2);
    ck_assert_str_eq(path->hops[1]->switch_, "spine1");
    ck_assert_uint_eq(path->qp->remote, UINT32_MAX);
    writes(m, NULL, text);
    protobuf_c_message_free_unpacked(m, NULL);
}
END_TEST

START_TEST(long_integers)
{
    static const char *const texts[] = {
        "{\"fabric\":\"1234567890123456789012 \\\" 99999999999999999999\",\"bytes\":"
        "18446744073709551615}",
        "{\"bytes\":\"18446744073709551615\"}",
        "{\"rate_bps\":9223372036854775808,\"bytes\":18446744073709551615}",
    };
    Fabrictrace__Path *path;
    ProtobufCMessage *m;

    for (size_t i = 0; i < COUNT(texts); i++) {
        path = (Fabrictrace__Path *)reads(texts[i], &fabrictrace__path__descriptor);
        ck_assert(path->has_bytes && path->bytes == UINT64_MAX);
        if (i == 0)
            ck_assert_str_eq(path->fabric, "1234567890123456789012 \" 99999999999999999999");
        protobuf_c_message_free_unpacked(&path->base, NULL);
    }
    m = reads("{\"bytes\":18446744073709551615,\"unexplained_bytes\":-9223372036854775808}",
              &fabrictrace__link__descriptor);
    ck_assert(((Fabrictrace__Link *)m)->unexplained_bytes == INT64_MIN);
    protobuf_c_message_free_unpacked(m, NULL);
    refuses("{\"bytes\":18446744073709551616}", &fabrictrace__path__descriptor,
            "member 'bytes': an integer from 0 to 18446744073709551615 is needed");
    refuses("{\"pid\":18446744073709551615}", &fabrictrace__path__descriptor,
            "member 'pid': an integer from 0 to 4294967295 is needed");
}
END_TEST

START_TEST(refused_texts)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"[]", "not a JSON object"},
        {"{\"bites\":1}", "member 'bites': unknown"},
        {"{\"flow\":{\"sprot\":1}}", "member 'flow.sprot': unknown"},
        {"{\"flow\":{\"sport\":-1}}",
         "member 'flow.sport': an integer from 0 to 4294967295 is needed"},
        {"{\"flow\":{\"sport\":4294967296}}",
         "member 'flow.sport': an integer from 0 to 4294967295 is needed"},
        {"{\"flow\":{\"sport\":\"1\"}}",
         "member 'flow.sport': an integer from 0 to 4294967295 is needed"},
        {"{\"flow\":{\"sport\":1.5}}",
         "member 'flow.sport': an integer from 0 to 4294967295 is needed"},
        {"{\"flow\":{\"src\":\"10.0.0\"}}", "member 'flow.src': an IP address is needed"},
        {"{\"flow\":7}", "member 'flow': an object is needed"},
        {"{\"hops\":{}}", "member 'hops': an array is needed"},
        {"{\"hops\":[{},{\"share\":0.5},{\"share\":\"x\"}]}",
         "member 'hops[2].share': a number is needed"},
        {"{\"hops\":[{\"switch\":\"a\"},null]}", "member 'hops[1]': an object is needed"},
        {"{\"state\":\"solved\"}", "member 'state': no such value"},
        {"{\"state\":true}", "member 'state': the name of a value is needed"},
        {"{\"fabric\":1}", "member 'fabric': a string is needed"},
        {"{\"bytes\":-1}", "member 'bytes': an integer from 0 to 18446744073709551615 is needed"},
        {"{\"bytes\":\" 1\"}",
         "member 'bytes': an integer from 0 to 18446744073709551615 is needed"},
    };
    static const char *const unparsable[] = {
        "",
        "{",
        "{}x",
        "{\"bytes\":}",
        "{\"bytes\":1,\"bytes\":2}",
        "{\"fabric\":\"\xff\"}",
        "{\"fabric\":\"\\u0000\"}",
        "nul",
    };
    ProtobufCMessage *m;
    char error[200];

    for (size_t i = 0; i < COUNT(rows); i++)
        refuses(rows[i].text, &fabrictrace__path__descriptor, rows[i].error);
    for (size_t i = 0; i < COUNT(unparsable); i++) {
        error[0] = '\0';
        ck_assert_int_eq(
            read_as(unparsable[i], &fabrictrace__path__descriptor, &m, error, sizeof(error)),
            -EINVAL);
        ck_assert_str_ne(error, "");
    }
    ck_assert_int_eq(read_as("{\"x\":1}", &fabrictrace__path__descriptor, &m, error, 8), -EINVAL);
    ck_assert_str_eq(error, "member ");
}
END_TEST

START_TEST(null_members)
{
    ProtobufCMessage *m = reads("{\"fim\":null,\"links\":4}", &fabrictrace__imbalance__descriptor);

    writes(m, NULL, "{\"links\":4}");
    protobuf_c_message_free_unpacked(m, NULL);
}
END_TEST

START_TEST(one_of_a_choice)
{
    static const char text[] = "{\"flow\":{\"host\":\"gpu01\"}}";
    ProtobufCMessage *m = reads(text, &fabrictrace__record__descriptor);

    ck_assert_int_eq(((Fabrictrace__Record *)m)->kind_case, FABRICTRACE__RECORD__KIND_FLOW);
    writes(m, NULL, text);
    protobuf_c_message_free_unpacked(m, NULL);
    refuses("{\"flow\":{},\"loss\":{}}", &fabrictrace__record__descriptor,
            "member 'loss': another member excludes it");
}
END_TEST

/* Whatever room there is, what is written is the beginning of what would be written with more; and
 * it succeeds from exactly its length on. */
START_TEST(full_writer)
{
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;
    Fabrictrace__Stage stage = FABRICTRACE__STAGE__INIT, *stages[] = {&stage, &stage};
    char *whole;
    size_t len;

    loss.source = (char *)"a rather long name for a source of records";
    loss.has_fold_ms = 1;
    loss.fold_ms = 2000;
    stage.name = (char *)"\"fold\"";
    stage.has_received = 1;
    stage.received = UINT64_MAX;
    loss.n_stages = 2;
    loss.stages = stages;
    whole = text_of(&loss.base, "\"schema\":\"x\"");
    len = strlen(whole);
    for (size_t max = 0; max <= len + 1; max++) {
        struct ft_writer w;
        int rc;

        ft_writer_init(&w, max);
        rc = ft_json_write(&w, &loss.base, "\"schema\":\"x\"");
        ck_assert_int_eq(rc, max < len ? -ENOSPC : 0);
        ck_assert_uint_le(w.len, max);
        ck_assert(w.len == 0 || memcmp(w.bytes, whole, w.len) == 0);
        ft_writer_free(&w);
    }
    free(whole);
}
END_TEST

FT_UNIT_MAIN("json", absent_fields, numbers, doubles, strings, one_special_byte_at_each_place,
             addresses, enums, nested_and_repeated, long_integers, refused_texts, null_members,
             one_of_a_choice, full_writer)

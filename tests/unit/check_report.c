// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/report.h"

#include <string.h>

#include "lib/base/writer.h"
#include "tests/unit/unit.h"

static char text[4096];

static const char *json(const Fabrictrace__Record *record)
{
    struct ft_writer w;

    ft_writer_init(&w, sizeof(text) - 1);
    ck_assert_int_eq(ft_record_to_json(record, &w), 0);
    memcpy(text, w.bytes, w.len);
    text[w.len] = '\0';
    ft_writer_free(&w);
    return text;
}

START_TEST(leaves_out_what_is_not_known)
{
    struct ft_flow_report r = {.time = {2000}, .first_seen = {1000}, .interval_ns = 999999999};
    struct ft_flow_record out;

    ck_assert_int_eq(ft_tuple_parse("10.0.1.1:49441-10.0.3.1", &r.tuple), 0);
    ft_report_flow(&r, "gpu01", "", &out);
    ck_assert_str_eq(json(&out.record),
                     "{\"schema\":\"fabrictrace.flow.v1\",\"time_ms\":2000,\"interval_ms\":999,"
                     "\"first_seen_ms\":1000,\"host\":\"gpu01\",\"flow\":{\"src\":\"10.0.1.1\","
                     "\"dst\":\"10.0.3.1\",\"sport\":49441,\"dport\":4791,\"proto\":17},"
                     "\"tuple_source\":\"observed\",\"data_packets\":0,\"ack_packets\":0,"
                     "\"other_packets\":0,\"bytes\":0,\"ce_packets\":0}");
}
END_TEST

START_TEST(places_the_queue_pair_by_direction)
{
    struct ft_flow_report r = {.direction = FT_FLOW_TX, .has_dst_qp = true, .dst_qp = 17};
    struct ft_flow_record out;

    ck_assert_int_eq(ft_tuple_parse("10.0.1.1:49441-10.0.3.1", &r.tuple), 0);
    ft_report_flow(&r, "h", "eth0", &out);
    ck_assert_ptr_nonnull(strstr(json(&out.record), "\"qp\":{\"remote\":17}"));
    ck_assert_ptr_nonnull(strstr(text, "\"interface\":\"eth0\""));
    ck_assert_ptr_nonnull(strstr(text, "\"direction\":\"tx\""));
    r.direction = FT_FLOW_RX;
    ft_report_flow(&r, "h", "eth0", &out);
    ck_assert_ptr_nonnull(strstr(json(&out.record), "\"qp\":{\"local\":17}"));
    ck_assert_ptr_nonnull(strstr(text, "\"direction\":\"rx\""));
}
END_TEST

START_TEST(names_the_members_of_an_aggregate)
{
    static const char *const members[] = {"eth0", "eth1"};
    struct ft_flow_report r = {.direction = FT_FLOW_TX, .members = members, .member_count = 2};
    struct ft_flow_record out;

    ck_assert_int_eq(ft_tuple_parse("10.0.1.1:49441-10.0.3.1", &r.tuple), 0);
    ft_report_flow(&r, "h", "bond0", &out);
    ck_assert_ptr_nonnull(strstr(json(&out.record), "\"interface\":\"bond0\""));
    ck_assert_ptr_nonnull(strstr(text, "\"members\":[\"eth0\",\"eth1\"]"));
    /* With none of them up there is nothing to name. */
    r.member_count = 0;
    ft_report_flow(&r, "h", "bond0", &out);
    ck_assert_ptr_null(strstr(json(&out.record), "members"));
}
END_TEST

FT_UNIT_MAIN("report", leaves_out_what_is_not_known, places_the_queue_pair_by_direction,
             names_the_members_of_an_aggregate)

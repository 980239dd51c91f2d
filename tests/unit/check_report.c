// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/report/flow.h"

#include <string.h>

#include "agent/report/queue_pairs.h"
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

START_TEST(lists_queue_pairs)
{
    static struct ft_rdma_device_port place = {
        .device = 0, .port = 1, .driver = 14, .netdev = "h1"};
    const struct ft_owner owner = {.pid = 220, .process = 219, .comm = "ib_write_bw", .job = "88"};
    const struct ft_rdma_end ends[2] = {{.lqpn = 17,
                                         .rqpn = 18,
                                         .pid = 220,
                                         .state = FT_QP_STATE_RTS,
                                         .sq_psn = 5,
                                         .rq_psn = 6,
                                         .source = FT_RDMA_COMPUTED,
                                         .sport = 49458,
                                         .first_seen = {1000},
                                         .begun = true},
                                        {.lqpn = 19, .rqpn = 20, .first_seen = {1}, .ended = true}};
    struct ft_rdma_ends_report report = {.time = {2000},
                                         .interval_ns = 15000000000,
                                         .device = "rxe0",
                                         .device_port = &place,
                                         .computed = true,
                                         .ends = ends,
                                         .owners = {&owner},
                                         .count = 2,
                                         .listed = 1};
    static struct ft_queue_pairs_record out;

    place.gid_count = 3;
    ck_assert_int_eq(ft_ip_parse("fe80::1", &place.gids[0].ip), 0);
    ck_assert_int_eq(ft_ip_parse("10.0.1.1", &place.gids[1].ip), 0);
    place.gids[2] = place.gids[1];
    ft_report_queue_pairs(&report, "gpu01", "agent1", &out);
    ck_assert_str_eq(
        json(&out.record),
        "{\"schema\":\"fabrictrace.queue_pairs.v1\",\"time_ms\":2000,\"interval_ms\":15000,"
        "\"source\":\"agent1\",\"host\":\"gpu01\",\"device\":\"rxe0\",\"port\":1,"
        "\"interface\":\"h1\",\"driver\":\"rxe\",\"computed\":true,"
        "\"addresses\":[\"fe80::1\",\"10.0.1.1\"],\"queue_pairs\":[{\"local\":17,\"remote\":18,"
        "\"state\":\"rts\",\"sport\":49458,\"tuple_source\":\"computed\",\"sq_psn\":5,"
        "\"rq_psn\":6,\"pid\":219,\"comm\":\"ib_write_bw\",\"job\":\"88\",\"since_ms\":1000,"
        "\"begun\":true},{\"local\":19,\"remote\":20,\"since_ms\":1,\"ended\":true}],"
        "\"listed\":1}");
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
             lists_queue_pairs, names_the_members_of_an_aggregate)

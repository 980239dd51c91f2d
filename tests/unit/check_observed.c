// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/observed.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

static uint8_t src[16] = {10, 0, 0, 1}, dst[16] = {10, 0, 1, 1}, agent[16] = {192, 0, 2, 1};
static Fabrictrace__Flow flow, outer;
static Fabrictrace__Observation o;

static void begin(void)
{
    fabrictrace__flow__init(&flow);
    flow.has_src = flow.has_dst = flow.has_sport = flow.has_dport = flow.has_proto = true;
    flow.src = (ProtobufCBinaryData){4, src};
    flow.dst = (ProtobufCBinaryData){4, dst};
    flow.sport = 50000;
    flow.dport = FT_ROCE_PORT;
    flow.proto = FT_PROTO_UDP;
    outer = flow;
    fabrictrace__observation__init(&o);
    o.flow = &flow;
    o.has_agent = o.has_time_ms = true;
    o.agent = (ProtobufCBinaryData){4, agent};
    o.time_ms = 1700000000000;
}

static int from(struct ft_observed *out)
{
    return ft_observed_from(&o, out);
}

/* Refused, and what was there stays. */
static void check_refused(void)
{
    struct ft_observed out, before;

    memset(&out, 0x5a, sizeof(out));
    before = out;
    ck_assert_int_eq(from(&out), -EINVAL);
    ck_assert_int_eq(memcmp(&out, &before, sizeof(out)), 0);
}

START_TEST(flow_switch_and_time_have_to_be_there)
{
    struct ft_observed out;

    begin();
    ck_assert_int_eq(from(&out), 0);
    ck_assert_uint_eq(out.tuple.sport, 50000);
    ck_assert(ft_ip_is4(&out.agent));
    o.flow = NULL;
    check_refused();
    begin();
    o.has_time_ms = false;
    check_refused();
    begin();
    o.has_agent = false;
    check_refused();
}
END_TEST

/* Lengths of addresses that no address has, ports and protocols that no packet has. */
START_TEST(what_cannot_be_is_refused)
{
    for (size_t len = 0; len <= 16; len++) {
        if (len == 4 || len == 16)
            continue;
        begin();
        o.agent.len = len;
        check_refused();
        begin();
        flow.src.len = len;
        check_refused();
        begin();
        flow.dst.len = len;
        check_refused();
    }
    begin();
    flow.sport = 65536;
    check_refused();
    begin();
    flow.dport = UINT32_MAX;
    check_refused();
    begin();
    flow.proto = 256;
    check_refused();
}
END_TEST

/* Times of the first and last sample are those of the observation where they are not said. */
START_TEST(times_and_frames_that_are_not_said)
{
    struct ft_observed out;

    begin();
    ck_assert_int_eq(from(&out), 0);
    ck_assert_uint_eq(out.first_ms, 1700000000000);
    ck_assert_uint_eq(out.last_ms, 1700000000000);
    o.has_first_ms = o.has_last_ms = true;
    o.first_ms = 5;
    o.last_ms = 7;
    ck_assert_int_eq(from(&out), 0);
    ck_assert_uint_eq(out.first_ms, 5);
    ck_assert_uint_eq(out.last_ms, 7);
    /* Lengths of frames are of data: without a sample of it they say nothing. */
    o.has_frame_min_bytes = o.has_frame_max_bytes = true;
    o.frame_min_bytes = 64;
    o.frame_max_bytes = 4200;
    ck_assert_int_eq(from(&out), 0);
    ck_assert_uint_eq(out.frame_min_bytes, 0);
    ck_assert_uint_eq(out.frame_max_bytes, 0);
    o.has_data_samples = true;
    o.data_samples = 1;
    ck_assert_int_eq(from(&out), 0);
    ck_assert_uint_eq(out.frame_min_bytes, 64);
    ck_assert_uint_eq(out.frame_max_bytes, 4200);
}
END_TEST

/* A tunnel whose tuple cannot be read does not cost the observation. */
START_TEST(a_broken_tunnel_is_left_out)
{
    struct ft_observed out;

    begin();
    o.outer = &outer;
    ck_assert_int_eq(from(&out), 0);
    ck_assert(out.has_outer);
    ck_assert(ft_tuple_equal(&out.outer, &out.tuple));
    outer.src.len = 5;
    ck_assert_int_eq(from(&out), 0);
    ck_assert(!out.has_outer);
    ck_assert_uint_eq(out.tuple.sport, 50000);
}
END_TEST

START_TEST(zero_is_not_absent)
{
    struct ft_observed out;

    begin();
    ck_assert_int_eq(from(&out), 0);
    ck_assert(!out.has_psn && !out.has_packets && !out.has_dst_qp && !out.has_ttl);
    ck_assert(!out.has_queue && !out.has_transit && !out.has_outer && !out.has_vni);
    o.has_psn = o.has_packets = o.has_dst_qp = o.has_ttl = true;
    o.has_queue_max_bytes = o.has_transit_max_ns = o.has_vni = true;
    ck_assert_int_eq(from(&out), 0);
    ck_assert(out.has_psn && out.has_packets && out.has_dst_qp && out.has_ttl);
    ck_assert(out.has_queue && out.has_transit && out.has_vni);
}
END_TEST

FT_UNIT_MAIN("observed", flow_switch_and_time_have_to_be_there, what_cannot_be_is_refused,
             times_and_frames_that_are_not_said, a_broken_tunnel_is_left_out, zero_is_not_absent)

// SPDX-License-Identifier: Apache-2.0
/*
 * Large answers of the HTTP API, slice by slice, while the fabric goes on: with 100,000 flows no
 * step writes or looks at more than its share.
 */
#include "config.h"

#include "daemon/api/paths.h"
#include "daemon/api/topology.h"
#include "daemon/api/windows.h"
#include "tests/unit/answer_rig.h"

#define START_MS (100 * (int64_t)WINDOW_MS)

/* A sample of flow n at its leaf. */
static void observe(uint32_t n, int64_t ms)
{
    uint32_t leaf = n % LEAVES;
    struct ft_tuple tuple = {.src = leafspine_host_ip(leaf, 0),
                             .dst = leafspine_host_ip((leaf + 1) % LEAVES, 0),
                             .sport = (uint16_t)(n / LEAVES),
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
    struct ft_ip agent = leafspine_switch_ip(leaf);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Observation o = FABRICTRACE__OBSERVATION__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    size_t len;

    ft_flow_from_tuple(&flow, &tuple);
    o.flow = &flow;
    o.has_agent = o.has_time_ms = o.has_in_ifindex = o.has_out_ifindex = true;
    o.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&agent, &len);
    o.agent.len = len;
    o.time_ms = (uint64_t)ms;
    o.in_ifindex = 1;
    o.out_ifindex = 100 + n / LEAVES % 4;
    o.has_point = o.has_samples = o.has_bytes = o.has_data_samples = true;
    o.point = FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_INGRESS;
    o.samples = o.data_samples = 1 + n % 7;
    o.bytes = 100000 + (uint64_t)n * 7919 % 1000003;
    record.kind_case = FABRICTRACE__RECORD__KIND_OBSERVATION;
    record.observation = &o;
    ft_pipeline_record(pipeline, &record, ms);
}

static void close_window(int64_t ms)
{
    int64_t due = ms / WINDOW_MS * WINDOW_MS + WINDOW_MS + 3000;

    ft_pipeline_flush(pipeline);
    while (ft_pipeline_advance(pipeline, due, 10000))
        ;
}

static int64_t now_ms;

/* New flows come and a window closes, so that others are forgotten. */
static void go_on(unsigned step)
{
    for (uint32_t i = 0; i < 50; i++)
        observe(FLOWS + step * 50 + i, now_ms);
    if (step % 20 == 19) {
        close_window(now_ms);
        now_ms += WINDOW_MS;
    }
}

static struct ft_writer all;

static void open_flows(void)
{
    open_all();
    now_ms = START_MS;
    for (uint32_t n = 0; n < FLOWS; n++)
        observe(n, now_ms + n % 5000);
    close_window(now_ms);
    now_ms += WINDOW_MS;
    ck_assert_uint_eq(ft_join_flows(view.stages->join), FLOWS);
    ft_writer_init(&all, 1 << 30);
}

START_TEST(every_flow_in_slices)
{
    const struct ft_http_request request = {{"limit"}, {"200000"}};
    static const char total[] = "\"total\":100000}";

    open_flows();
    answer(ft_api_paths, &request, NULL, &all);
    ck_assert_uint_eq(count_of((char *)all.bytes, all.len, "fabrictrace.path.v1"), FLOWS);
    ck_assert_int_eq(memcmp(all.bytes + all.len - strlen(total) - 1, total, strlen(total)), 0);
    ft_writer_free(&all);
    close_all();
}
END_TEST

/* The first of many need no more memory than they take, and are those. */
START_TEST(the_fastest_of_many)
{
    const struct ft_http_request request = {{"limit"}, {"10"}};
    uint64_t last = UINT64_MAX;
    const char *at;

    open_flows();
    answer(ft_api_paths, &request, NULL, &all);
    ft_write_u8(&all, 0);
    at = (const char *)all.bytes;
    for (int i = 0; i < 10; i++) {
        uint64_t bytes;

        at = strstr(at, "\"bytes\":");
        ck_assert_ptr_nonnull(at);
        bytes = strtoull(at += 8, NULL, 10);
        ck_assert_uint_le(bytes, last);
        ck_assert_uint_ge(bytes, 1099800);
        last = bytes;
    }
    ck_assert_ptr_null(strstr(at, "\"bytes\":"));
    ck_assert_ptr_nonnull(strstr(at, "\"next\":\"rate"));
    ft_writer_free(&all);
    close_all();
}
END_TEST

/* What comes and goes meanwhile breaks nothing: no flow comes twice. */
START_TEST(while_the_fabric_goes_on)
{
    const struct ft_http_request request = {{"limit", "sort"}, {"200000", "flow"}};
    size_t n;

    open_flows();
    answer(ft_api_paths, &request, go_on, &all);
    n = count_of((char *)all.bytes, all.len, "fabrictrace.path.v1");
    ck_assert_uint_gt(n, 10000);
    ck_assert_uint_le(n, 200000);
    ft_writer_reset(&all);
    answer(ft_api_links, &(const struct ft_http_request){{NULL}, {NULL}}, go_on, &all);
    ck_assert_uint_eq(count_of((char *)all.bytes, all.len, "fabrictrace.link.v1"),
                      2 * 4 * LEAVES + 2 * LEAVES);
    ft_writer_reset(&all);
    answer(ft_api_topology, &(const struct ft_http_request){{NULL}, {NULL}}, go_on, &all);
    ck_assert_int_eq(memcmp(all.bytes + all.len - 3, "]}\n", 3), 0);
    ft_writer_free(&all);
    close_all();
}
END_TEST

static unsigned change_at;

static void change(unsigned step)
{
    if (step == change_at)
        ck_assert_int_eq(ft_pipeline_set_topology(pipeline, leafspine(2, 2, 1)), 0);
}

static bool same(const struct ft_writer *a, const struct ft_writer *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* At whatever step another topology comes, an answer has all of one of them, and its end. */
START_TEST(another_topology_meanwhile)
{
    const struct ft_http_request request = {{NULL}, {NULL}};
    struct ft_writer before, after;
    unsigned of_before = 0, of_after = 0;

    open_fabric(40, 60);
    ft_writer_init(&all, 1 << 30);
    ft_writer_init(&before, 1 << 30);
    ft_writer_init(&after, 1 << 30);
    answer(ft_api_topology, &request, NULL, &before);
    ck_assert_uint_eq(count_of((char *)before.bytes, before.len, "\"tier\""), 100);
    ck_assert_uint_eq(count_of((char *)before.bytes, before.len, "\"source\":\"static\""),
                      2 * 40 * 60 + 40);
    change_at = 0;
    change(0);
    answer(ft_api_topology, &request, NULL, &after);
    ck_assert_uint_eq(count_of((char *)after.bytes, after.len, "\"tier\""), 4);
    for (; of_before < 2; change_at++) {
        ck_assert_int_eq(ft_pipeline_set_topology(pipeline, leafspine(40, 60, 1)), 0);
        ft_writer_reset(&all);
        answer(ft_api_topology, &request, change, &all);
        ck_assert_msg(same(&all, &before) || same(&all, &after), "step %u", change_at);
        of_before += same(&all, &before);
        of_after += same(&all, &after);
    }
    ck_assert_uint_ge(of_after, 2);
    ft_writer_free(&all);
    ft_writer_free(&before);
    ft_writer_free(&after);
    close_all();
}
END_TEST

FT_UNIT_MAIN("answers", every_flow_in_slices, the_fastest_of_many, while_the_fabric_goes_on,
             another_topology_meanwhile)

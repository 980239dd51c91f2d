// SPDX-License-Identifier: Apache-2.0
/*
 * Ranks, communicators, queue pairs and flows in slices and pages: however many there are, and
 * however large one communicator is, no step writes more than its share; and whoever reads page
 * after page finds all that stays once, whatever comes and goes meanwhile.
 */
#include "config.h"

#include "daemon/api/explain.h"
#include "daemon/api/matrix.h"
#include "daemon/api/paths.h"
#include "daemon/api/qps.h"
#include "daemon/api/ranks.h"
#include "daemon/pairing/pairing.h"
#include "tests/unit/answer_rig.h"
#include "tests/unit/pages_rig.h"

#define RANKS     60000
#define MINUTE_MS INT64_C(60000)

/* A rank is announced; a job may be NULL. */
static void announce_on(const char *comm, uint32_t rank, const char *job, bool closed,
                        const char *host)
{
    Fabrictrace__Communicator c = FABRICTRACE__COMMUNICATOR__INIT;

    c.comm_id = (char *)(uintptr_t)comm;
    c.has_rank = c.has_ranks = c.has_pid = c.has_closed = true;
    c.rank = rank;
    c.ranks = RANKS;
    c.pid = 1 + rank;
    c.closed = closed;
    c.host = (char *)(uintptr_t)host;
    c.job = (char *)(uintptr_t)job;
    ck_assert_int_eq(ft_ranks_communicator(view.stages->ranks, &c), 0);
}

static void announce(const char *comm, uint32_t rank, const char *job, bool closed)
{
    announce_on(comm, rank, job, closed, "gpu01");
}

static void sends(const char *comm, uint32_t rank, uint32_t peer)
{
    Fabrictrace__Collective o = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic p = FABRICTRACE__PEER_TRAFFIC__INIT, *list = &p;
    char op[] = "AllReduce";

    o.comm_id = (char *)(uintptr_t)comm;
    o.has_rank = p.has_peer = p.has_sent_messages = true;
    o.rank = rank;
    o.op = op;
    p.peer = peer;
    p.sent_bytes = 1500;
    p.sent_messages = 2;
    o.peers = &list;
    o.n_peers = 1;
    ck_assert_int_eq(ft_ranks_collective(view.stages->ranks, &o), 0);
}

/* 100 queue pairs of a host. */
static void list_queue_pairs(const char *host, uint32_t first, int64_t ms)
{
    Fabrictrace__QueuePairs list = FABRICTRACE__QUEUE_PAIRS__INIT;
    Fabrictrace__QueuePair pairs[100], *pointers[100];
    char device[] = "mlx5_0";

    for (uint32_t i = 0; i < 100; i++) {
        Fabrictrace__QueuePair *q = pointers[i] = &pairs[i];

        fabrictrace__queue_pair__init(q);
        q->has_local = q->has_remote = q->has_since_ms = true;
        q->local = first + i;
        q->remote = 1000000;
        q->since_ms = (uint64_t)ms;
    }
    list.has_time_ms = list.has_interval_ms = list.has_port = list.has_listed = true;
    list.listed = 100;
    list.time_ms = (uint64_t)ms;
    list.interval_ms = 15000;
    list.host = (char *)(uintptr_t)host;
    list.device = device;
    list.port = 1;
    list.queue_pairs = pointers;
    list.n_queue_pairs = 100;
    ck_assert_int_eq(ft_pairing_list(view.stages->pairing, &list, ms), 0);
}

static void begin(void)
{
    open_all();
    ft_writer_init(&all, 1 << 30);
}

static void end(void)
{
    ft_writer_free(&all);
    close_all();
}

START_TEST(every_rank_in_slices)
{
    begin();
    for (uint32_t rank = 0; rank < RANKS; rank++)
        announce("c0", rank, rank % 2 ? "88" : "99", false);
    answer(ft_api_ranks, &(const struct ft_http_request){{NULL}, {NULL}}, NULL, &all);
    ck_assert_uint_eq(has("\"rank\":"), RANKS);
    ck_assert_uint_eq(has("\"total\":60000}"), 1);
    ft_writer_reset(&all);
    answer(ft_api_explain, &(const struct ft_http_request){{"job"}, {"88"}}, NULL, &all);
    ck_assert_uint_eq(has("\"rank\":"), RANKS / 2);
    ck_assert_uint_eq(has("],\"paths\":[],\"total\":30000}"), 1);
    end();
}
END_TEST

/* Names are kept as far as there is room for them, and asked for as they are. */
START_TEST(ranks_of_long_names)
{
    char host[FT_RANKS_NAME + 20], job[FT_RANKS_NAME + 20];

    memset(host, 'h', sizeof(host) - 1);
    memset(job, 'j', sizeof(job) - 1);
    host[sizeof(host) - 1] = job[sizeof(job) - 1] = '\0';
    begin();
    announce_on("c0", 0, job, false, host);
    announce("c0", 1, "88", false);
    answer(ft_api_ranks, &(const struct ft_http_request){{"host"}, {host}}, NULL, &all);
    ck_assert_uint_eq(has("\"rank\":0"), 1);
    ck_assert_uint_eq(has("\"total\":1}"), 1);
    ft_writer_reset(&all);
    answer(ft_api_ranks, &(const struct ft_http_request){{"job"}, {job}}, NULL, &all);
    ck_assert_uint_eq(has("\"rank\":0"), 1);
    ft_writer_reset(&all);
    host[FT_RANKS_NAME - 2] = '\0';
    answer(ft_api_ranks, &(const struct ft_http_request){{"host"}, {host}}, NULL, &all);
    ck_assert_uint_eq(has("\"rank\":"), 0);
    end();
}
END_TEST

/* One record is larger than a step may write. */
START_TEST(a_large_communicator_in_slices)
{
    const struct ft_http_request one = {{"comm"}, {"c0"}}, job = {{"job"}, {"88"}};

    begin();
    for (uint32_t rank = 0; rank < RANKS; rank++)
        announce("c0", rank, rank == 7 ? "88" : "99", false);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        sends("c0", rank, (rank + 1) % RANKS);
    announce("c1", 0, "99", false);
    answer(ft_api_matrix, &(const struct ft_http_request){{NULL}, {NULL}}, NULL, &all);
    ck_assert_uint_eq(has("\"pid\":"), RANKS + 1);
    ck_assert_uint_eq(has("\"src\":"), RANKS);
    ck_assert_uint_eq(has("\"members\":["), 2);
    ck_assert_uint_eq(has("\"edges\":["), 1);
    ck_assert_uint_eq(has("}]}],\"total\":2}"), 1);
    ft_writer_reset(&all);
    answer(ft_api_matrix, &one, NULL, &all);
    ck_assert_uint_eq(has("\"src\":"), RANKS);
    ck_assert_uint_eq(has("}]}],\"total\":1}"), 1);
    ft_writer_reset(&all);
    answer(ft_api_matrix, &job, NULL, &all);
    ck_assert_uint_eq(has("\"src\":"), RANKS);
    ck_assert_uint_eq(has("}]}],\"total\":1}"), 1);
    end();
}
END_TEST

START_TEST(every_queue_pair_in_slices)
{
    const struct ft_http_request request = {{"limit"}, {"1000000"}};

    begin();
    for (uint32_t i = 0; i < FLOWS / 100; i++)
        list_queue_pairs("gpu01", i * 100, MINUTE_MS);
    answer(ft_api_qps, &request, NULL, &all);
    ck_assert_uint_eq(has("\"local\":"), FLOWS);
    ck_assert_uint_eq(has("\"total\":100000}"), 1);
    end();
}
END_TEST

/* Ranks come before and behind what has been read, and go. */
static void change_ranks(unsigned page)
{
    char comm[FT_RANKS_ID];

    ft_ranks_age(view.stages->ranks, page * MINUTE_MS, UINT32_MAX);
    for (uint32_t rank = 0; rank < 200; rank++)
        announce("m", rank, "88", false);
    for (uint32_t i = 0; i < 3; i++) {
        snprintf(comm, sizeof(comm), "%c%u", "aps"[i], page);
        announce(comm, 0, "new", false);
        snprintf(comm, sizeof(comm), "gone%u", 3 * page + i);
        announce(comm, 0, "old", true);
    }
}

START_TEST(pages_of_ranks_hold)
{
    char text[64];

    begin();
    for (uint32_t i = 0; i < 300; i++) {
        snprintf(text, sizeof(text), "gone%u", i);
        announce(text, 0, "old", false);
    }
    change_ranks(0);
    ck_assert_uint_gt(read_pages(ft_api_ranks, NULL, change_ranks), 60);
    for (uint32_t rank = 0; rank < 200; rank++) {
        snprintf(text, sizeof(text), "\"comm_id\":\"m\",\"rank\":%u,", rank);
        ck_assert_msg(has(text) == 1, "rank %u came %zu times", rank, has(text));
    }
    end();
}
END_TEST

START_TEST(pages_of_communicators_hold)
{
    begin();
    for (uint32_t i = 0; i < 100; i++) {
        char comm[FT_RANKS_ID];

        snprintf(comm, sizeof(comm), "k%02u", i);
        announce(comm, 0, "88", false);
        announce(comm, 1, "88", false);
        sends(comm, 0, 1);
    }
    change_ranks(0);
    ck_assert_uint_gt(read_pages(ft_api_matrix, NULL, change_ranks), 14);
    for (uint32_t i = 0; i < 100; i++) {
        char text[64];

        snprintf(text, sizeof(text), "\"comm_id\":\"k%02u\"", i);
        ck_assert_msg(has(text) == 1, "communicator %u came %zu times", i, has(text));
    }
    ck_assert_uint_eq(has("\"src\":"), 100);
    end();
}
END_TEST

/* Every page, another host begins to list, and once all but two of them are gone. */
static void change_queue_pairs(unsigned page)
{
    const int64_t ms = MINUTE_MS + (page >= 5 ? MINUTE_MS : 0);
    char host[16];

    snprintf(host, sizeof(host), "%c%02u", page % 2 ? 'a' : 'z', page % 100);
    if (page < 30)
        list_queue_pairs(host, 1, ms);
    if (page == 5) {
        list_queue_pairs("m", 1, ms);
        list_queue_pairs("n", 1, ms);
        ft_pairing_sweep(view.stages->pairing, ms + 1000, UINT32_MAX);
        ck_assert_uint_eq(ft_pairing_ends(view.stages->pairing), 300);
    }
}

START_TEST(pages_of_queue_pairs_hold)
{
    begin();
    list_queue_pairs("m", 1, MINUTE_MS);
    list_queue_pairs("n", 1, MINUTE_MS);
    ck_assert_uint_gt(read_pages(ft_api_qps, NULL, change_queue_pairs), 28);
    for (uint32_t i = 1; i <= 100; i++) {
        char text[64];

        snprintf(text, sizeof(text),
                 "\"host\":\"m\",\"device\":\"mlx5_0\",\"port\":1,\"local\":%u,", i);
        ck_assert_msg(has(text) == 1, "queue pair %u came %zu times", i, has(text));
    }
    end();
}
END_TEST

START_TEST(a_cursor_of_another_order_is_refused)
{
    static const char *const wrong[] = {"",     "ranks",  "ranks-", "ranks-00",
                                        "0-10", "qps-00", "flow0-"};
    struct ft_http_request request = {{"cursor"}, {NULL}};
    char cursor[FT_LIST_NEXT_BYTES] = "ranks-";
    struct ft_writer body;

    begin();
    ft_writer_init(&body, 1000);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        request.values[0] = wrong[i];
        ck_assert_int_eq(ft_api_ranks(&view, &request, &body), 400);
        ck_assert_int_eq(ft_api_matrix(&view, &request, &body), 400);
        ck_assert_int_eq(ft_api_paths(&view, &request, &body), 400);
    }
    /* A key without an end is no more than a key that none has. */
    for (int i = 0; i < 28; i++)
        strcat(cursor, "ff");
    request.values[0] = cursor;
    announce("c0", 1, "88", false);
    answer(ft_api_ranks, &request, NULL, &all);
    ck_assert_uint_eq(has("\"records\":[],\"total\":1}"), 1);
    ft_writer_free(&body);
    end();
}
END_TEST

static bool with_orders;

/* A sample of flow n, of so many bytes. */
static void sample(uint32_t n, uint64_t bytes, int64_t ms)
{
    struct ft_tuple tuple = {.src = leafspine_host_ip(n % LEAVES, 0),
                             .dst = leafspine_host_ip((n + 1) % LEAVES, 0),
                             .sport = (uint16_t)(1000 + n),
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
    struct ft_ip agent = leafspine_switch_ip(n % LEAVES);
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
    o.out_ifindex = 100;
    o.has_point = o.has_samples = o.has_bytes = o.has_data_samples = true;
    o.point = FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_INGRESS;
    o.samples = o.data_samples = 1;
    o.bytes = bytes;
    record.kind_case = FABRICTRACE__RECORD__KIND_OBSERVATION;
    record.observation = &o;
    ft_pipeline_record(pipeline, &record, ms);
}

/* A window in which the flows 0 to 99 have other rates than before, and further ones come. */
static void change_flows(unsigned page)
{
    int64_t ms = (100 + page) * (int64_t)WINDOW_MS;

    for (uint32_t n = 0; n < 100; n++)
        sample(n, 100000 + UINT64_C(7919) * (n + 1) * (page + 1) % 100003, ms);
    for (uint32_t n = 0; n < 3; n++)
        sample(1000 + 3 * page + n, 150000, ms);
    ft_pipeline_flush(pipeline);
    while (ft_pipeline_advance(pipeline, ms + WINDOW_MS + 3000, 10000))
        ;
    if (with_orders)
        return;
    ft_orders_free(view.orders);
    view.orders = NULL;
}

static size_t missed_or_doubled(void)
{
    size_t wrong = 0;

    for (uint32_t n = 0; n < 100; n++) {
        char text[64];

        snprintf(text, sizeof(text), "\"sport\":%u,", 1000 + n);
        wrong += has(text) != 1;
    }
    return wrong;
}

/* By rate, whatever becomes of the rates: as long as the order of the first page is kept. */
START_TEST(pages_of_flows_hold)
{
    static const char *const orders[] = {NULL, "rate", "flow"};

    for (size_t i = 0; i < 3; i++) {
        begin();
        view.orders = ft_orders_new(2, 77);
        with_orders = true;
        change_flows(0);
        ck_assert_uint_gt(read_pages(ft_api_paths, orders[i], change_flows), 14);
        ck_assert_uint_eq(missed_or_doubled(), 0);
        ft_orders_free(view.orders);
        end();
    }
    /* Without it they go on by the rate of the last flow, and end. */
    begin();
    view.orders = ft_orders_new(1, 77);
    with_orders = true;
    change_flows(0);
    with_orders = false;
    ck_assert_uint_gt(read_pages(ft_api_paths, NULL, change_flows), 1);
    ck_assert_uint_gt(missed_or_doubled(), 0);
    end();
}
END_TEST

/* Of several readers the one that did not ask for the longest loses its order. */
START_TEST(orders_are_few)
{
    struct ft_orders *o = ft_orders_new(2, 77);
    const struct ft_order order = {.count = 3, .item_bytes = 8, .total = 9};
    uint64_t ids[3];

    ck_assert_ptr_nonnull(o);
    for (int i = 0; i < 2; i++)
        ids[i] = ft_orders_take(o, &order, calloc(8, 8));
    ck_assert(ids[0] && ids[1] && ids[0] != ids[1]);
    ck_assert_uint_eq(ft_orders_find(o, ids[0])->total, 9);
    ids[2] = ft_orders_take(o, &order, calloc(8, 8));
    ck_assert_ptr_nonnull(ft_orders_find(o, ids[0]));
    ck_assert_ptr_null(ft_orders_find(o, ids[1]));
    ck_assert_ptr_nonnull(ft_orders_find(o, ids[2]));
    ck_assert_ptr_null(ft_orders_find(o, 0));
    ft_orders_free(o);
}
END_TEST

FT_UNIT_MAIN("sorted", every_rank_in_slices, a_large_communicator_in_slices,
             every_queue_pair_in_slices, ranks_of_long_names, pages_of_ranks_hold,
             pages_of_communicators_hold, pages_of_queue_pairs_hold, pages_of_flows_hold,
             orders_are_few, a_cursor_of_another_order_is_refused)

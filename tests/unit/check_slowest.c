// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/slowest.h"

#include <string.h>

#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "proto/record.h"
#include "tests/unit/join_rig.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define START_MS  1000000
#define PID       4121 /* of a rank, on its host */
#define WINDOW_MS 10000

static struct ft_slowest *slowest;
static struct ft_pair_links *links;
/* The last collective that the pipeline let out, as JSON. */
static struct ft_writer out;

static void open_slowest(size_t operations)
{
    const struct ft_slowest_config config = {.ranks_max = 64, .operations_max = operations};

    slowest = ft_slowest_new(&config);
    links = ft_pair_links_new(64, 0);
    ck_assert_ptr_nonnull(slowest);
    ck_assert_ptr_nonnull(links);
}

static void close_slowest(void)
{
    ft_slowest_free(slowest);
    ft_pair_links_free(links);
}

/* A collective of one rank with up to 4 transfers. */
struct reported {
    Fabrictrace__Collective c;
    Fabrictrace__PeerTraffic peers[4];
    Fabrictrace__PeerTraffic *list[4];
};

static struct reported *tell(struct reported *t, uint32_t rank, int64_t ms)
{
    memset(t, 0, sizeof(*t));
    fabrictrace__collective__init(&t->c);
    t->c.comm_id = (char *)(uintptr_t) "c0";
    t->c.op = (char *)(uintptr_t) "AllReduce";
    t->c.algo = (char *)(uintptr_t) "RING";
    t->c.proto = (char *)(uintptr_t) "SIMPLE";
    t->c.has_rank = t->c.has_ranks = t->c.has_bytes = t->c.has_time_ms = true;
    t->c.rank = rank;
    t->c.ranks = 4;
    t->c.bytes = 1 << 20;
    t->c.time_ms = (uint64_t)ms;
    t->c.peers = t->list;
    return t;
}

static Fabrictrace__PeerTraffic *sends(struct reported *t, uint32_t peer, uint64_t step_ns)
{
    Fabrictrace__PeerTraffic *p = &t->peers[t->c.n_peers];

    fabrictrace__peer_traffic__init(p);
    p->has_peer = p->has_sent_messages = p->has_sent_bytes = p->has_step_median_ns = true;
    p->peer = peer;
    p->sent_messages = 8;
    p->sent_bytes = 8 * 65536;
    p->step_median_ns = step_ns;
    t->list[t->c.n_peers++] = p;
    return p;
}

static const struct ft_slowest_last *take(const struct reported *t)
{
    const struct ft_slowest_last *last = ft_slowest_take(slowest, &t->c, links);

    ck_assert_ptr_nonnull(last);
    return last;
}

/* A ring of four: each rank sends to the next. */
static const struct ft_slowest_last *step(uint32_t rank, uint64_t step_ns, int64_t ms)
{
    struct reported t;

    tell(&t, rank, ms);
    sends(&t, (rank + 1) % 4, step_ns);
    return take(&t);
}

START_TEST(a_slow_pair_of_a_ring_is_named)
{
    const struct ft_slowest_last *last;

    open_slowest(16);
    ck_assert(!step(0, 50000, START_MS)->named);
    ck_assert(!step(1, 40000, START_MS)->named);
    last = step(2, 200000, START_MS);
    ck_assert(last->named);
    ck_assert_uint_eq(last->peer, 3);
    ck_assert_uint_eq(last->step_median_ns, 200000);
    ck_assert_uint_eq(last->others_median_ns, 45000);
    ck_assert(!last->has_link);
    ck_assert_ptr_eq(ft_slowest_of(slowest, "c0", 2), last);
    ck_assert_str_eq(last->op, "AllReduce");
    ck_assert(!step(3, 60000, START_MS)->named);
    /* It is well again, and what was said is taken back. */
    ck_assert(!step(2, 50000, START_MS + 100)->named);
    ck_assert(!ft_slowest_of(slowest, "c0", 2)->named);
    ck_assert_ptr_null(ft_slowest_of(slowest, "c0", 4));
    ck_assert_ptr_null(ft_slowest_of(slowest, "c1", 2));
    close_slowest();
}
END_TEST

START_TEST(noise_names_nobody)
{
    open_slowest(16);
    /* With one other nobody knows which of the two is usual. */
    step(0, 50000, START_MS);
    ck_assert(!step(1, 500000, START_MS)->named);
    /* Two are slow: none is the slowest. */
    step(2, 50000, START_MS);
    step(3, 50000, START_MS);
    ck_assert(!step(2, 510000, START_MS)->named);
    /* Slower, though no more than buckets may tell wrong. */
    step(1, 50000, START_MS);
    ck_assert(!step(2, 99000, START_MS)->named);
    ck_assert(step(2, 101000, START_MS)->named);
    close_slowest();
}
END_TEST

START_TEST(only_what_can_be_compared_is)
{
    struct reported t;

    open_slowest(16);
    step(0, 50000, START_MS);
    step(1, 50000, START_MS);
    /* Another size. */
    tell(&t, 2, START_MS)->c.bytes = 1 << 21;
    sends(&t, 3, 500000);
    ck_assert(!take(&t)->named);
    /* Long ago. */
    ck_assert(!step(2, 500000, START_MS + 10001)->named);
    step(0, 50000, START_MS + 10001);
    step(1, 50000, START_MS + 10001);
    /* Another communicator, algorithm and protocol. */
    tell(&t, 2, START_MS + 10001)->c.comm_id = (char *)(uintptr_t) "c1";
    sends(&t, 3, 500000);
    ck_assert(!take(&t)->named);
    tell(&t, 2, START_MS + 10001)->c.algo = NULL;
    sends(&t, 3, 500000);
    ck_assert(!take(&t)->named);
    tell(&t, 2, START_MS + 10001)->c.proto = (char *)(uintptr_t) "LL";
    sends(&t, 3, 500000);
    ck_assert(!take(&t)->named);
    ck_assert(step(2, 500000, START_MS + 10001)->named);
    close_slowest();
}
END_TEST

START_TEST(what_is_no_measure_of_the_network_is_left_out)
{
    struct reported t;
    Fabrictrace__PeerTraffic *p;

    open_slowest(16);
    step(0, 50000, START_MS);
    step(1, 50000, START_MS);
    /* Receiving waits for the sender. */
    tell(&t, 2, START_MS);
    p = sends(&t, 1, 500000);
    p->has_sent_messages = false;
    p->has_received_messages = true;
    ck_assert(!take(&t)->named);
    tell(&t, 2, START_MS);
    sends(&t, 3, 500000)->has_received_messages = true;
    ck_assert(!take(&t)->named);
    /* One channel both ways spoils the peer's other. */
    tell(&t, 2, START_MS);
    sends(&t, 3, 500000)->has_received_messages = true;
    sends(&t, 3, 500000);
    ck_assert(!take(&t)->named);
    /* Too few steps, or none. */
    tell(&t, 2, START_MS);
    sends(&t, 3, 500000)->sent_messages = 3;
    ck_assert(!take(&t)->named);
    tell(&t, 2, START_MS);
    sends(&t, 3, 500000)->has_step_median_ns = false;
    ck_assert(!take(&t)->named);
    tell(&t, 2, START_MS);
    sends(&t, 3, 500000)->sent_bytes = 0;
    ck_assert(!take(&t)->named);
    tell(&t, 2, START_MS)->c.incomplete = true;
    sends(&t, 3, 500000);
    ck_assert(!take(&t)->named);
    tell(&t, 2, START_MS)->c.foreign = true;
    sends(&t, 3, 500000);
    ck_assert(!take(&t)->named);
    tell(&t, 2, START_MS);
    sends(&t, 3, UINT64_MAX);
    ck_assert(take(&t)->named);
    ck_assert_uint_eq(take(&t)->step_median_ns, UINT64_MAX);
    /* The rest of an operation that was reported already has no name, and takes nothing back. */
    tell(&t, 2, START_MS)->c.op = NULL;
    sends(&t, 3, 50000);
    ck_assert_ptr_null(ft_slowest_take(slowest, &t.c, links));
    tell(&t, 2, START_MS)->c.op = (char *)(uintptr_t) "";
    ck_assert_ptr_null(ft_slowest_take(slowest, &t.c, links));
    ck_assert(ft_slowest_of(slowest, "c0", 2)->named);
    close_slowest();
}
END_TEST

START_TEST(times_are_by_the_byte)
{
    const struct ft_slowest_last *last;
    Fabrictrace__PeerTraffic *p;
    struct reported t;

    open_slowest(16);
    tell(&t, 0, START_MS);
    sends(&t, 1, 50000);
    sends(&t, 2, 60000);
    /* Four times as long for four times as much. */
    p = sends(&t, 3, 200000);
    p->sent_bytes *= 4;
    ck_assert(!take(&t)->named);
    p->step_median_ns = 800000;
    last = take(&t);
    ck_assert(last->named);
    ck_assert_uint_eq(last->peer, 3);
    ck_assert_uint_eq(last->step_median_ns, 800000);
    ck_assert_uint_eq(last->others_median_ns, 220000);
    /* Channels of one peer count together. */
    sends(&t, 3, 100000);
    last = take(&t);
    ck_assert(last->named);
    ck_assert_uint_eq(last->step_median_ns, 450000);
    close_slowest();
}
END_TEST

/* As tokens go to experts: every operation has a size of its own. */
START_TEST(sizes_may_vary)
{
    const struct ft_slowest_last *last;
    struct reported t;
    int named = 0;

    open_slowest(16);
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t rank = i % 4;
        uint64_t bytes = (1 << 20) + i * 20011;

        tell(&t, rank, START_MS + i)->c.bytes = bytes;
        /* 10 us for any size and 100 ns for each 1,000 bytes; 5 times that behind rank 2. */
        sends(&t, (rank + 1) % 4, (10000 + bytes / 80) * (rank == 2 ? 5 : 1))->sent_bytes = bytes;
        last = take(&t);
        named += last->named;
        ck_assert_msg(last->named == (rank == 2), "operation %u", i);
        ck_assert(!last->named || last->peer == 3);
    }
    ck_assert_int_eq(named, 10);
    close_slowest();
}
END_TEST

/* A time that is the same for any size makes the smallest slow by the byte, and no fault. */
START_TEST(small_steps_are_not_slow_for_that)
{
    struct reported t;

    open_slowest(16);
    for (uint32_t rank = 0; rank < 4; rank++) {
        tell(&t, rank, START_MS)->c.bytes = 9000 - rank * 200;
        sends(&t, (rank + 1) % 4, 20000)->sent_bytes = rank == 3 ? 1100 : 9000;
        ck_assert(!take(&t)->named);
    }
    close_slowest();
}
END_TEST

START_TEST(full_tables_start_over)
{
    struct reported t;

    open_slowest(2);
    for (uint64_t i = 0; i < 5; i++) {
        tell(&t, 0, START_MS)->c.bytes = UINT64_C(1) << i;
        sends(&t, 1, 50000);
        take(&t);
    }
    ck_assert_uint_eq(ft_slowest_forgotten(slowest), 2);
    step(0, 50000, START_MS);
    step(1, 50000, START_MS);
    ck_assert(step(2, 500000, START_MS)->named);
    for (uint32_t rank = 4; rank < 200; rank++) {
        tell(&t, rank, START_MS);
        for (uint32_t peer = 0; peer < 3; peer++)
            sends(&t, peer, 50000);
        ck_assert_ptr_nonnull(ft_slowest_take(slowest, &t.c, links));
        ck_assert_ptr_nonnull(ft_slowest_of(slowest, t.c.comm_id, rank));
    }
    /* 64 fit: of those before the last start nothing is said. */
    ck_assert_ptr_null(ft_slowest_of(slowest, t.c.comm_id, 4));
    close_slowest();
}
END_TEST

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    if (record->kind_case != FABRICTRACE__RECORD__KIND_COLLECTIVE)
        return;
    ft_writer_reset(&out);
    ck_assert_int_eq(ft_record_to_json(record, &out), 0);
    ft_write_u8(&out, 0);
}

static struct ft_pipeline *open_pipeline(void)
{
    struct ft_pipeline_config config = {
        .join = {.flows_max = 100,
                 .window_ms = WINDOW_MS,
                 .evidence_ms = 30000,
                 .idle_ms = 60000,
                 .trust_topology = true,
                 .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}},
        .window = {.loads = {.window_ms = WINDOW_MS, .elephant_share = 0.1, .elephants_max = 100},
                   .refresh_ms = 60000,
                   .victims_max = 32},
        .grace_ms = 3000,
        .events_max = 100,
        .sources_max = 100,
        .source_id = "test",
    };
    const struct ft_emitter emitter = {on_record, NULL};
    struct ft_pipeline *p;

    ft_writer_init(&out, 1 << 20);
    p = ft_pipeline_new(&config, leafspine(4, 2, 2), &emitter);
    ck_assert_ptr_nonnull(p);
    for (uint32_t rank = 0; rank < 4; rank++) {
        Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
        Fabrictrace__Communicator c = FABRICTRACE__COMMUNICATOR__INIT;
        char host[16];

        snprintf(host, sizeof(host), "h%u-0", rank);
        c.comm_id = (char *)(uintptr_t) "c0";
        c.has_rank = c.has_ranks = true;
        c.rank = rank;
        c.ranks = 4;
        c.host = host;
        c.has_pid = true;
        c.pid = PID;
        record.kind_case = FABRICTRACE__RECORD__KIND_COMMUNICATOR;
        record.communicator = &c;
        ft_pipeline_record(p, &record, START_MS);
    }
    return p;
}

static void close_pipeline(struct ft_pipeline *p)
{
    ft_pipeline_free(p);
    ft_writer_free(&out);
}

/* The ring runs once, rank 2 slowly; what came out of it. */
static const char *run_ring(struct ft_pipeline *p, int64_t ms)
{
    static const uint32_t order[] = {0, 1, 3, 2};

    for (int i = 0; i < 4; i++) {
        Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
        struct reported t;

        tell(&t, order[i], ms);
        sends(&t, (order[i] + 1) % 4, order[i] == 2 ? 500000 : 50000);
        t.c.slowest_switch = (char *)(uintptr_t) "stale";
        record.kind_case = FABRICTRACE__RECORD__KIND_COLLECTIVE;
        record.collective = &t.c;
        ft_pipeline_record(p, &record, ms);
    }
    return (const char *)out.bytes;
}

/* Its host knows which process sends a flow. */
static void own(struct ft_pipeline *p, const struct ft_tuple *tuple, uint32_t host)
{
    struct ft_host_report report = {.tuple = *tuple,
                                    .time_ms = START_MS + 1,
                                    .interval_ms = 1000,
                                    .sending = true,
                                    .host = host ? "h2-1" : "h2-0",
                                    .qp_local = FT_NONE,
                                    .qp_remote = FT_NONE,
                                    .pid = PID};

    ft_pipeline_flush(p);
    ck_assert_int_eq(ft_join_report(ft_pipeline_stages(p)->join, &report), FT_JOIN_OK);
}

/* Leaf's host sends to that of leaf 3 over a spine, seen at the first leaf. */
static void observe(struct ft_pipeline *p, uint16_t sport, uint32_t host, uint32_t spine,
                    uint64_t bytes, bool owned)
{
    const struct ft_tuple tuple = {.src = leafspine_host_ip(2, host),
                                   .dst = leafspine_host_ip(3, host),
                                   .sport = sport,
                                   .dport = FT_ROCE_PORT,
                                   .proto = FT_PROTO_UDP};
    const struct ft_ip agent = leafspine_switch_ip(2);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Observation o = FABRICTRACE__OBSERVATION__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;

    ft_flow_from_tuple(&flow, &tuple);
    o.flow = &flow;
    o.has_agent = true;
    o.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&agent, &o.agent.len);
    o.has_time_ms = o.has_in_ifindex = o.has_out_ifindex = o.has_samples = o.has_bytes = true;
    o.time_ms = START_MS;
    o.in_ifindex = 1 + host;
    o.out_ifindex = spine == FT_NONE ? 0 : 100 + spine;
    o.has_fate = true;
    o.fate = FABRICTRACE__FATE__FATE_FORWARDED;
    o.has_data_samples = true;
    o.samples = o.data_samples = 1000;
    o.bytes = bytes;
    record.kind_case = FABRICTRACE__RECORD__KIND_OBSERVATION;
    record.observation = &o;
    ft_pipeline_record(p, &record, START_MS);
    if (owned)
        own(p, &tuple, host);
}

/* A flow of other hosts, to another leaf: it shares the uplink alone. */
static void share_the_uplink(struct ft_pipeline *p)
{
    const struct ft_observation o = {.tuple = {.src = leafspine_host_ip(2, 1),
                                               .dst = leafspine_host_ip(1, 1),
                                               .sport = 50001,
                                               .dport = FT_ROCE_PORT,
                                               .proto = FT_PROTO_UDP},
                                     .agent = leafspine_switch_ip(2),
                                     .in_ifindex = 2,
                                     .out_ifindex = 100,
                                     .first_ms = START_MS,
                                     .last_ms = START_MS,
                                     .samples = 1000,
                                     .data_samples = 1000,
                                     .bytes = 500000000};

    ft_pipeline_flush(p);
    ck_assert_int_eq(join_observe(ft_pipeline_stages(p)->join, &o), FT_JOIN_OK);
}

static void close_window(struct ft_pipeline *p)
{
    while (ft_pipeline_advance(p, START_MS + WINDOW_MS + 3000, 1))
        ;
}

START_TEST(the_most_loaded_link_is_under_it)
{
    struct ft_pipeline *p = open_pipeline();
    const char *json = run_ring(p, START_MS);

    ck_assert_ptr_nonnull(strstr(json, "\"rank\":2,"));
    ck_assert_ptr_nonnull(strstr(json, "\"slowest_peer\":3,\"slowest_step_median_ns\":500000,"
                                       "\"others_step_median_ns\":50000}"));
    observe(p, 50000, 0, 0, 1000000000, true);
    /* Another host's flow shares the uplink and the link down to leaf3, less than it brings. */
    observe(p, 50001, 1, 0, 500000000, true);
    close_window(p);
    json = run_ring(p, START_MS + WINDOW_MS);
    /* Both links carry both flows alike: none is the more loaded. */
    ck_assert_ptr_null(strstr(json, "slowest_switch"));
    close_pipeline(p);

    p = open_pipeline();
    run_ring(p, START_MS);
    observe(p, 50000, 0, 0, 1000000000, true);
    share_the_uplink(p);
    close_window(p);
    json = run_ring(p, START_MS + WINDOW_MS);
    ck_assert_msg(strstr(json, "\"slowest_switch\":\"leaf2\",\"slowest_port\":\"up0\","
                               "\"slowest_port_flows\":2}"),
                  "%s", json);
    close_pipeline(p);
}
END_TEST

START_TEST(an_uncertain_path_has_no_link)
{
    enum { CERTAIN, UNSEEN, UNOWNED, CASES };

    for (int i = 0; i < CASES; i++) {
        struct ft_pipeline *p = open_pipeline();
        const struct ft_pair_links *pairs = ft_pipeline_stages(p)->pairs;
        struct ft_tuple tuple;
        const char *json;

        run_ring(p, START_MS);
        observe(p, 50000, 0, 0, 1000000000, true);
        share_the_uplink(p);
        /* A second flow of the same pair, whose spine somebody has seen or nobody has; or of a
         * process that nobody knows. */
        observe(p, 50002, 0, i == UNSEEN ? FT_NONE : 0, 1000000000, i != UNOWNED);
        observe(p, 50003, 0, 0, 1000000000, true);
        close_window(p);
        json = run_ring(p, START_MS + WINDOW_MS);
        ck_assert_ptr_nonnull(strstr(json, "\"slowest_peer\":3"));
        ck_assert_int_eq(strstr(json, "\"slowest_switch\"") == NULL, i != CERTAIN);
        /* A flow of theirs is known all the same, unless it may be another pair's. */
        ck_assert_int_eq(ft_pair_links_tuple(pairs, "c0", 2, 3, &tuple), i != UNOWNED);
        ck_assert(!ft_pair_links_tuple(pairs, "c0", 3, 0, &tuple));
        close_pipeline(p);
    }
}
END_TEST

/* The port to the receiver is not the last that is added, where a second flow goes another way; it
 * alone is one that both cross. */
START_TEST(the_port_to_the_receiver_is_known)
{
    struct ft_pipeline *p = open_pipeline();
    struct ft_pair_path path;

    run_ring(p, START_MS);
    observe(p, 50000, 0, 0, 1000000000, true);
    observe(p, 50002, 0, 1, 1000000000, true);
    close_window(p);
    ck_assert(ft_pair_links_path(ft_pipeline_stages(p)->pairs, "c0", 2, 3, &path));
    ck_assert(!path.unsure);
    ck_assert_uint_eq(path.count, 5);
    ck_assert_uint_eq(path.last, 1U << 2);
    ck_assert_uint_eq(path.partly, 0x1b);
    close_pipeline(p);
}
END_TEST

FT_UNIT_MAIN("slowest", sizes_may_vary, small_steps_are_not_slow_for_that,
             a_slow_pair_of_a_ring_is_named, noise_names_nobody, only_what_can_be_compared_is,
             what_is_no_measure_of_the_network_is_left_out, times_are_by_the_byte,
             full_tables_start_over, the_most_loaded_link_is_under_it,
             an_uncertain_path_has_no_link, the_port_to_the_receiver_is_known)

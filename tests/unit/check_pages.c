// SPDX-License-Identifier: Apache-2.0
/*
 * Pages of hosts, collectives, losses, events, windows and the doctor's findings: whoever reads
 * page after page finds all that stays once, whatever comes and goes before and behind what was
 * read.
 */
#include "config.h"

#include "daemon/api/finding_names.h"
#include "daemon/api/happenings.h"
#include "daemon/api/lists.h"
#include "daemon/api/orders.h"
#include "daemon/api/plans.h"
#include "daemon/api/spread.h"
#include "daemon/api/windows.h"
#include "daemon/health/agents.h"
#include "daemon/plans/follower.h"
#include "daemon/publish/events.h"
#include "daemon/spread/spread.h"
#include "tests/unit/pages_rig.h"

#define STAY     100
#define HOUR_MS  INT64_C(3600000)
#define START_MS (100 * HOUR_MS)

static void begin(void)
{
    open_all();
    view.orders = ft_orders_new(FT_ORDERS, 7);
    ck_assert_ptr_nonnull(view.orders);
    ft_history_watch(history, view.stages->events);
    ft_writer_init(&all, 64 << 20);
}

static void end(void)
{
    ft_orders_free(view.orders);
    ft_writer_free(&all);
    close_all();
}

static char *str(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* Each of so many, "BEFORE07AFTER", is there once. */
static void check_all_once(unsigned count, const char *before, const char *after)
{
    for (unsigned i = 0; i < count; i++) {
        char text[100];

        snprintf(text, sizeof(text), "%s%02u%s", before, i, after);
        ck_assert_msg(has(text) == 1, "%s came %zu times", text, has(text));
    }
}

/* An agent's status, which counts for three seconds. */
static void report(const char *host, int64_t ms)
{
    Fabrictrace__HostStatus status = FABRICTRACE__HOST_STATUS__INIT;

    status.source = status.host = str(host);
    status.has_interval_ms = true;
    status.interval_ms = 1000;
    ck_assert_int_eq(ft_agents_take(view.stages->agents, &status, ms), 0);
}

/* Those that went come back before others that go: earlier entries of the table in both ways. */
static void change_hosts(unsigned page)
{
    char host[32];

    for (unsigned i = 0; i < 3; i++) {
        snprintf(host, sizeof(host), "turn%02u", (3 * page + i) % STAY);
        report(host, page % 2 ? 0 : -HOUR_MS);
        snprintf(host, sizeof(host), "new%u-%u", page, i);
        report(host, page < 20 ? 0 : -HOUR_MS);
    }
    for (unsigned i = page < 4 ? 20 * page : STAY; i < STAY; i++) {
        snprintf(host, sizeof(host), "turn%02u", i);
        report(host, -HOUR_MS);
    }
}

START_TEST(pages_of_hosts_hold)
{
    char host[32];

    begin();
    for (unsigned i = 0; i < STAY; i++) {
        snprintf(host, sizeof(host), "turn%02u", i);
        report(host, 0);
        snprintf(host, sizeof(host), "stay%02u", i);
        report(host, 0);
    }
    ck_assert_uint_gt(read_pages(ft_api_hosts, NULL, change_hosts), 14);
    check_all_once(STAY, "\"host\":\"stay", "\"");
    end();
}
END_TEST

/* A host gave the port of a plan, which its time tells from others. */
static void give_port(const char *host, uint64_t plan_ms, uint16_t port)
{
    Fabrictrace__PlanPort p = FABRICTRACE__PLAN_PORT__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    struct ft_tuple tuple = {.src = leafspine_host_ip(0, 0),
                             .dst = leafspine_host_ip(1, 0),
                             .sport = port,
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};

    ft_flow_from_tuple(&flow, &tuple);
    p.host = p.source = p.job = str(host);
    p.has_uid = p.has_time_ms = p.has_plan_time_ms = p.has_outcome = true;
    p.time_ms = p.plan_time_ms = plan_ms;
    p.outcome = FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_LABEL;
    p.flow = &flow;
    ck_assert_int_eq(ft_follower_take(view.stages->follower, &p,
                                      ft_join_topology(view.stages->join), (int64_t)plan_ms),
                     0);
}

/* A host that speaks of one plan more than it may gives up its oldest one. */
static void change_plans(unsigned page)
{
    give_port("turn", FT_FOLLOWER_PLANS_HOST + page, 0);
}

START_TEST(pages_of_moves_hold)
{
    char stay[32];

    begin();
    for (unsigned i = 0; i < STAY; i++) {
        give_port("turn", 1 + i % FT_FOLLOWER_PLANS_HOST, (uint16_t)(50000 + i));
        give_port("stay", 1, (uint16_t)(60000 + i));
    }
    ck_assert_uint_gt(read_pages(ft_api_moves, NULL, change_plans), 14);
    for (unsigned i = 0; i < STAY; i++) {
        snprintf(stay, sizeof(stay), "\"sport\":%u,", 60000 + i);
        ck_assert_msg(has(stay) == 1, "%s came %zu times", stay, has(stay));
    }
    end();
}
END_TEST

static void put_collective(const char *comm, int64_t ms)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;

    c.comm_id = str(comm);
    c.op = str("AllReduce");
    c.has_time_ms = true;
    c.time_ms = (uint64_t)ms;
    record.kind_case = FABRICTRACE__RECORD__KIND_COLLECTIVE;
    record.collective = &c;
    on_record(NULL, &record);
}

static void put_window(int64_t ms)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Imbalance i = FABRICTRACE__IMBALANCE__INIT;

    i.has_window_start_ms = i.has_window_end_ms = i.has_scope = true;
    i.window_start_ms = (uint64_t)ms;
    i.window_end_ms = (uint64_t)ms + WINDOW_MS;
    i.scope = FABRICTRACE__SCOPE__SCOPE_FABRIC;
    i.name = str("lab");
    record.kind_case = FABRICTRACE__RECORD__KIND_IMBALANCE;
    record.imbalance = &i;
    on_record(NULL, &record);
}

/* Five are an hour old with each page, and two are new. */
static void change_collectives(unsigned page)
{
    char comm[32];

    if (page > 40)
        return;
    put_window(START_MS + HOUR_MS + (5 * (int64_t)page - 1) * WINDOW_MS);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(comm, sizeof(comm), "new%u-%u", page, i);
        put_collective(comm, START_MS + 3 * HOUR_MS);
    }
}

START_TEST(pages_of_collectives_hold)
{
    char comm[32];

    begin();
    for (unsigned i = 0; i < STAY; i++) {
        snprintf(comm, sizeof(comm), "gone%02u", i);
        put_collective(comm, START_MS + i * (int64_t)WINDOW_MS);
        snprintf(comm, sizeof(comm), "stay%02u", i);
        put_collective(comm, START_MS + 3 * HOUR_MS);
    }
    ck_assert_uint_gt(read_pages(ft_api_collectives, NULL, change_collectives), 14);
    check_all_once(STAY, "\"comm_id\":\"stay", "\"");
    ck_assert_uint_lt(has("\"comm_id\":\"gone"), STAY);
    end();
}
END_TEST

static Fabrictrace__Event *event_of(const char *subject)
{
    static Fabrictrace__Event event;

    fabrictrace__event__init(&event);
    event.has_kind = event.has_severity = event.has_time_ms = event.has_since_ms = true;
    event.kind = FABRICTRACE__KIND__KIND_LINK_DOWN;
    event.severity = FABRICTRACE__SEVERITY__SEVERITY_WARNING;
    event.time_ms = event.since_ms = (uint64_t)START_MS;
    event.subject = str(subject);
    return &event;
}

static void change_events(unsigned page)
{
    char subject[32];

    for (unsigned i = 4 * page - 4; i < 4 * page && i < STAY; i++) {
        snprintf(subject, sizeof(subject), "gone%02u", i);
        ft_events_clear(view.stages->events, event_of(subject), START_MS + page);
    }
    snprintf(subject, sizeof(subject), "new%u", page);
    ft_events_raise(view.stages->events, 1, event_of(subject));
}

static void raise_all(void)
{
    char subject[32];

    for (unsigned i = 0; i < STAY / 2; i++) {
        snprintf(subject, sizeof(subject), "gone%02u", i);
        ft_events_raise(view.stages->events, 1, event_of(subject));
        snprintf(subject, sizeof(subject), "stay%02u", i);
        ft_events_raise(view.stages->events, 1, event_of(subject));
    }
}

START_TEST(pages_of_active_events_hold)
{
    begin();
    raise_all();
    ck_assert_uint_gt(read_pages(ft_api_events, NULL, change_events), 7);
    check_all_once(STAY / 2, "\"subject\":\"stay", "\"");
    ck_assert_uint_lt(has("\"subject\":\"gone"), STAY / 2);
    end();
}
END_TEST

/* Windows close while they are read, and the oldest are forgotten. */
static void change_windows(unsigned page)
{
    for (int64_t i = 0; page <= 20 && i < 5; i++)
        put_window(START_MS + HOUR_MS + (5 * ((int64_t)page - 1) + i) * WINDOW_MS);
}

START_TEST(pages_of_windows_hold)
{
    begin();
    for (int64_t i = 0; i < HOUR_MS / WINDOW_MS; i++)
        put_window(START_MS + i * WINDOW_MS);
    ck_assert_uint_gt(read_pages(ft_api_windows, NULL, change_windows), 50);
    for (int64_t i = STAY; i < HOUR_MS / WINDOW_MS; i++) {
        char text[64];

        snprintf(text, sizeof(text), "\"window_start_ms\":%lld,\"window_end_ms\"",
                 (long long)(START_MS + i * WINDOW_MS));
        /* The window of another time stands at the head of each page. */
        ck_assert_msg(has(text) == 1, "%s came %zu times", text, has(text));
    }
    end();
}
END_TEST

static void lose(const char *source, uint64_t packets)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;
    Fabrictrace__Stage stage = FABRICTRACE__STAGE__INIT, *stages[] = {&stage};
    Fabrictrace__Drop drop = FABRICTRACE__DROP__INIT, *drops[] = {&drop};

    loss.program = str("fabrictrace-agent");
    loss.source = str(source);
    loss.has_time_ms = true;
    loss.time_ms = 1000000;
    loss.stages = stages;
    loss.n_stages = 1;
    stage.name = str("capture");
    stage.unit = str("packets");
    stage.has_received = stage.has_processed = drop.has_count = true;
    stage.received = 1000 + packets;
    stage.processed = 1000;
    drop.count = packets;
    stage.drops = drops;
    stage.n_drops = 1;
    drop.reason = str("kernel");
    record.kind_case = FABRICTRACE__RECORD__KIND_LOSS;
    record.loss = &loss;
    ft_pipeline_record(pipeline, &record, 1000000);
}

/* The numbers go on, some have lost nothing after all, and others come before and behind. */
static void change_losses(unsigned page)
{
    char source[32];

    for (unsigned i = 0; i < STAY; i++) {
        snprintf(source, sizeof(source), "stay%02u", i);
        lose(source, 1 + page * 7);
        snprintf(source, sizeof(source), "turn%02u", i);
        lose(source, (i + page) % 3);
    }
    snprintf(source, sizeof(source), "new%02u", page);
    lose(source, page);
}

START_TEST(pages_of_the_doctor_hold)
{
    begin();
    change_losses(0);
    ck_assert_uint_gt(read_pages(ft_api_doctor, NULL, change_losses), 20);
    check_all_once(STAY, "'stay", "' lost");
    ck_assert_uint_eq(has("'new"), 0); /* later than the order that is followed */
    end();
}
END_TEST

/* Where the order of the first page is not kept, all is there by position. */
START_TEST(pages_of_the_doctor_end)
{
    begin();
    change_losses(0);
    ft_orders_free(view.orders);
    view.orders = NULL;
    ck_assert_uint_gt(read_pages(ft_api_doctor, NULL, change_losses), 20);
    end();
}
END_TEST

static void change_sources(unsigned page)
{
    char source[32];

    snprintf(source, sizeof(source), "new%02u", page);
    if (page < 10)
        lose(source, page);
}

START_TEST(pages_of_losses_hold)
{
    begin();
    change_losses(0);
    ck_assert_uint_gt(read_pages(ft_api_loss, NULL, change_sources), 28);
    check_all_once(STAY, "\"source\":\"stay", "\"");
    check_all_once(STAY, "\"source\":\"turn", "\"");
    ck_assert_uint_eq(has("\"program\":\"fabrictraced\""), 1);
    end();
}
END_TEST

/* What differs in numbers alone is told apart by its order; names of what is numbered are words. */
START_TEST(findings_have_names)
{
    static const char *const texts[] = {"host 'gpu1' lost 7 of 9 (77.8%)",
                                        "host 'gpu2' lost 7 of 9 (77.8%)", "3 of 4 ports",
                                        "12 of 40 ports"};
    struct ft_findings first = {.items = NULL}, again = {.items = NULL};
    uint64_t *names, *later;

    for (unsigned i = 0; i < 4; i++)
        ft_findings_add(&first, FT_FINDING_NOTE, "leaf1", NULL, NULL, "%s", texts[i]);
    ft_findings_add(&again, FT_FINDING_NOTE, "leaf1", "7", NULL, "%s", texts[0]);
    ft_findings_add(&again, FT_FINDING_NOTE, "leaf1", NULL, NULL,
                    "host 'gpu2' lost 8 of 11 (72%%)");
    ft_findings_add(&again, FT_FINDING_NOTE, "leaf1", NULL, NULL, "999 of 1000 ports");
    names = ft_finding_names(&first);
    later = ft_finding_names(&again);
    ck_assert(names && later);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < i; k++)
            ck_assert_uint_ne(names[i], names[k]);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_ne(later[0], names[i]);
    ck_assert_uint_eq(later[1], names[1]);
    ck_assert_uint_eq(later[2], names[2]);
    free(names);
    free(later);
    ft_findings_free(&first);
    ft_findings_free(&again);
}
END_TEST

#define QPS 200

/* A queue pair from leaf0 that two uplinks have samples of. */
static void spread_over_two(unsigned qp, unsigned window, const struct ft_span *span)
{
    const struct ft_topology *t = ft_join_topology(view.stages->join);
    const struct ft_emitter emitter = {on_record, NULL};
    struct ft_sighting seen[2] = {{.last_ms = span->start_ms, .past = FT_PRESENT}};
    struct ft_flow flow = {.src_nic = 0, .dst_nic = 2, .bytes_window = window};

    ft_sighting_set_samples(&seen[0], window & 1, 5);
    seen[1] = seen[0];
    for (uint32_t i = 0; i < 2; i++)
        ft_sighting_set_hop(&seen[i], 0, FT_NONE, ft_topology_port_at(t, 0, 100 + i));
    flow.tuple.src = leafspine_host_ip(0, 0);
    flow.tuple.dst = leafspine_host_ip(1, 0);
    flow.tuple.sport = (uint16_t)(1000 + qp);
    flow.tuple.dport = 4791;
    flow.evidence.list = seen;
    flow.evidence.count = flow.evidence.size = 2;
    ft_spread_flow(view.stages->spread, view.stages->join, &flow, span, &emitter);
}

/* Every other queue pair is there in each window, of the others two in three; they come in another
 * order each time. */
static void close_spread(unsigned window)
{
    struct ft_spread *s = view.stages->spread;
    const struct ft_emitter emitter = {on_record, NULL};
    const struct ft_span span = {START_MS + window * WINDOW_MS,
                                 START_MS + (window + 1) * WINDOW_MS};

    ft_spread_begin(s);
    for (unsigned i = 0; i < QPS; i++) {
        unsigned qp = (7 * i + 31 * window) % QPS;

        if (qp % 2 == 0 || (qp + window) % 3)
            spread_over_two(qp, window, &span);
    }
    while (ft_spread_step(s, view.stages->join, &span, &emitter))
        ;
}

/* Windows close between pages: what spreads in each of them comes once. */
START_TEST(pages_of_spread_hold)
{
    begin();
    close_spread(0);
    ck_assert_uint_gt(read_pages(ft_api_spread, NULL, close_spread), 20);
    for (unsigned qp = 0; qp < QPS; qp++) {
        char text[32];

        snprintf(text, sizeof(text), "\"sport\":%u,", 1000 + qp);
        if (qp % 2 == 0)
            ck_assert_msg(has(text) == 1, "%s came %zu times", text, has(text));
        else
            ck_assert_uint_le(has(text), 1);
    }
    ck_assert_uint_eq(has("\"of\":\"connection\""), 1);
    end();
}
END_TEST

static void close_next_spread(unsigned step)
{
    close_spread(step + 1);
}

/* Likewise between the slices of one answer. */
START_TEST(an_answer_of_spread_holds)
{
    struct ft_http_request request = {{NULL}, {NULL}};

    begin();
    close_spread(0);
    answer(ft_api_spread, &request, close_next_spread, &all);
    for (unsigned qp = 0; qp < QPS; qp += 2) {
        char text[32];

        snprintf(text, sizeof(text), "\"sport\":%u,", 1000 + qp);
        ck_assert_msg(has(text) == 1, "%s came %zu times", text, has(text));
    }
    end();
}
END_TEST

FT_UNIT_MAIN("pages", pages_of_moves_hold, pages_of_hosts_hold, pages_of_collectives_hold,
             pages_of_active_events_hold, pages_of_windows_hold, pages_of_the_doctor_hold,
             pages_of_the_doctor_end, pages_of_losses_hold, findings_have_names,
             pages_of_spread_hold, an_answer_of_spread_holds)

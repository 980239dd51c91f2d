// SPDX-License-Identifier: Apache-2.0
/*
 * The doctor and the metrics page of a fabric of 512 leaves and 32 spines, with full tables: no
 * step looks at or writes more than its share. Counted by looks (the linker puts this program's
 * own functions before those of the tables), not by time.
 */
#include "config.h"

#include "daemon/api/lists.h"
#include "daemon/api/metrics.h"
#include "daemon/api/metrics_text.h"
#include "daemon/api/window_figures.h"
#include "daemon/health/agents.h"
#include "daemon/jobs/ranks.h"
#include "daemon/join/counters.h"
#include "daemon/pairing/pairing.h"
#include "daemon/publish/events.h"
#include "daemon/publish/publish.h"
#include "tests/unit/answer_rig.h"

#define MANY_LEAVES 512
#define MANY_SPINES 32
#define RANKS       60000
#define EVENTS      100

/* Of one step: ports, and entries of cheap and of costly tables. */
#define PORTS_MAX   (2000 + MANY_LEAVES)
#define ENTRIES_MAX 20000
#define RECORDS_OF  500

static uint64_t ports, entries, records, all_ports, all_entries, all_records;

bool __real_ft_counters_known(const struct ft_counters *c, uint32_t port, bool snmp);
bool __wrap_ft_counters_known(const struct ft_counters *c, uint32_t port, bool snmp);
void __real_ft_counters_health(const struct ft_counters *c, uint32_t port, int64_t now_ms,
                               struct ft_port_health *out);
void __wrap_ft_counters_health(const struct ft_counters *c, uint32_t port, int64_t now_ms,
                               struct ft_port_health *out);
bool __real_ft_pairing_next(const struct ft_pairing *p, uint32_t *i, struct ft_pairing_end *end);
bool __wrap_ft_pairing_next(const struct ft_pairing *p, uint32_t *i, struct ft_pairing_end *end);
bool __real_ft_pipeline_next_loss(const struct ft_pipeline *p, uint32_t *i,
                                  const struct ft_emitter *emitter);
bool __wrap_ft_pipeline_next_loss(const struct ft_pipeline *p, uint32_t *i,
                                  const struct ft_emitter *emitter);
const struct ft_rank_member *__real_ft_ranks_next_member(const struct ft_ranks *r, uint32_t *i);
const struct ft_rank_member *__wrap_ft_ranks_next_member(const struct ft_ranks *r, uint32_t *i);
bool __real_ft_events_next(const struct ft_events *e, uint32_t *i,
                           void (*each)(void *arg, const Fabrictrace__Event *event), void *arg);
bool __wrap_ft_events_next(const struct ft_events *e, uint32_t *i,
                           void (*each)(void *arg, const Fabrictrace__Event *event), void *arg);

bool __wrap_ft_counters_known(const struct ft_counters *c, uint32_t port, bool snmp)
{
    ports++;
    return __real_ft_counters_known(c, port, snmp);
}

void __wrap_ft_counters_health(const struct ft_counters *c, uint32_t port, int64_t now_ms,
                               struct ft_port_health *out)
{
    ports++;
    __real_ft_counters_health(c, port, now_ms, out);
}

bool __wrap_ft_pairing_next(const struct ft_pairing *p, uint32_t *i, struct ft_pairing_end *end)
{
    entries++;
    return __real_ft_pairing_next(p, i, end);
}

bool __wrap_ft_pipeline_next_loss(const struct ft_pipeline *p, uint32_t *i,
                                  const struct ft_emitter *emitter)
{
    records++;
    return __real_ft_pipeline_next_loss(p, i, emitter);
}

const struct ft_rank_member *__wrap_ft_ranks_next_member(const struct ft_ranks *r, uint32_t *i)
{
    entries++;
    return __real_ft_ranks_next_member(r, i);
}

bool __wrap_ft_events_next(const struct ft_events *e, uint32_t *i,
                           void (*each)(void *arg, const Fabrictrace__Event *event), void *arg)
{
    records++;
    return __real_ft_events_next(e, i, each, arg);
}

static void count_step(void)
{
    ck_assert_uint_le(ports, PORTS_MAX);
    ck_assert_uint_le(entries, ENTRIES_MAX);
    ck_assert_uint_le(records, RECORDS_OF);
    all_ports += ports;
    all_entries += entries;
    all_records += records;
    ports = entries = records = 0;
}

/* Each program of many has lost something. */
static void lose(uint32_t n)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;
    Fabrictrace__Stage stage = FABRICTRACE__STAGE__INIT, *stages[] = {&stage};
    Fabrictrace__Drop drop = FABRICTRACE__DROP__INIT, *drops[] = {&drop};
    char source[32], program[] = "fabrictrace-agent", name[] = "capture", unit[] = "packets",
                     reason[] = "kernel";

    snprintf(source, sizeof(source), "gpu%u", n);
    loss.program = program;
    loss.source = source;
    loss.has_time_ms = true;
    loss.time_ms = 1000000;
    loss.stages = stages;
    loss.n_stages = 1;
    stage.name = name;
    stage.unit = unit;
    stage.has_received = stage.has_processed = drop.has_count = true;
    stage.received = 2;
    stage.processed = drop.count = 1;
    stage.drops = drops;
    stage.n_drops = 1;
    drop.reason = reason;
    record.kind_case = FABRICTRACE__RECORD__KIND_LOSS;
    record.loss = &loss;
    ft_pipeline_record(pipeline, &record, 1000000);
}

/* 100 queue pairs of a host. */
static void list_queue_pairs(uint32_t n)
{
    Fabrictrace__QueuePairs list = FABRICTRACE__QUEUE_PAIRS__INIT;
    Fabrictrace__QueuePair pairs[100], *pointers[100];
    char host[32], device[] = "mlx5_0";

    snprintf(host, sizeof(host), "gpu%u", n);
    for (uint32_t i = 0; i < 100; i++) {
        Fabrictrace__QueuePair *q = pointers[i] = &pairs[i];

        fabrictrace__queue_pair__init(q);
        q->has_local = q->has_remote = q->has_since_ms = true;
        q->local = i;
        q->remote = 1000000;
        q->since_ms = 1000000;
    }
    list.has_time_ms = list.has_interval_ms = list.has_port = list.has_listed = true;
    list.listed = 100;
    list.time_ms = 1000000;
    list.interval_ms = 15000;
    list.host = host;
    list.device = device;
    list.port = 1;
    list.queue_pairs = pointers;
    list.n_queue_pairs = 100;
    ck_assert_int_eq(ft_pairing_list(view.stages->pairing, &list, 1000000), 0);
}

static void announce(uint32_t rank)
{
    Fabrictrace__Communicator c = FABRICTRACE__COMMUNICATOR__INIT;
    char comm[] = "c0", host[16], job[16];

    snprintf(host, sizeof(host), "gpu%u", rank / 8);
    snprintf(job, sizeof(job), "job%u", rank % 1000);
    c.comm_id = comm;
    c.has_rank = c.has_ranks = c.has_pid = true;
    c.rank = rank;
    c.ranks = RANKS;
    c.pid = 1 + rank;
    c.host = host;
    c.job = job;
    ck_assert_int_eq(ft_ranks_communicator(view.stages->ranks, &c), 0);
}

static void raise_event(uint32_t n)
{
    Fabrictrace__Event event = FABRICTRACE__EVENT__INIT;
    char subject[32];

    snprintf(subject, sizeof(subject), "leaf%u/Ethernet1", n);
    event.has_kind = event.has_severity = event.has_time_ms = event.has_since_ms = true;
    event.kind = FABRICTRACE__KIND__KIND_COLLISION;
    event.severity = FABRICTRACE__SEVERITY__SEVERITY_WARNING;
    event.subject = subject;
    ft_events_raise(view.stages->events, 1, &event);
}

static void feed_links(void)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Imbalance fabric = FABRICTRACE__IMBALANCE__INIT;
    char lab[] = "lab";

    for (uint32_t leaf = 0; leaf < MANY_LEAVES; leaf++)
        for (uint32_t port = 0; port < 2 * MANY_SPINES; port++) {
            Fabrictrace__Link link = FABRICTRACE__LINK__INIT;
            char name[16], of[16], up[] = "up";

            snprintf(name, sizeof(name), "leaf%u", leaf);
            snprintf(of, sizeof(of), "Ethernet%u", port);
            link.switch_ = name;
            link.port = of;
            link.direction = up;
            link.window_end_ms = 10000;
            link.bytes = 1000;
            record.kind_case = FABRICTRACE__RECORD__KIND_LINK;
            record.link = &link;
            ft_window_figures_take(view.figures, &record);
        }
    fabric.scope = FABRICTRACE__SCOPE__SCOPE_FABRIC;
    fabric.name = lab;
    record.kind_case = FABRICTRACE__RECORD__KIND_IMBALANCE;
    record.imbalance = &fabric;
    ft_window_figures_take(view.figures, &record);
}

static struct ft_writer all;

static void begin(void)
{
    open_fabric(MANY_LEAVES, MANY_SPINES);
    view.publisher = ft_publisher_new();
    view.figures = ft_window_figures_new(FT_METRICS_LINKS_ALL, 100000, 1000, 1);
    view.limits.shown_events_max = 200;
    view.limits.jobs_max = 50;
    ck_assert(view.publisher && view.figures);
    for (uint32_t i = 0; i < SOURCES; i++)
        lose(i);
    for (uint32_t i = 0; i < FLOWS / 100; i++)
        list_queue_pairs(i);
    for (uint32_t i = 0; i < RANKS; i++)
        announce(i);
    for (uint32_t i = 0; i < EVENTS; i++)
        raise_event(i);
    feed_links();
    ft_writer_init(&all, 1 << 30);
    ports = entries = records = all_ports = all_entries = all_records = 0;
    after_step = count_step;
}

static void end(void)
{
    ft_writer_free(&all);
    ft_window_figures_free(view.figures);
    ft_publisher_free(view.publisher);
    close_all();
}

static size_t has(const char *what)
{
    return count_of((const char *)all.bytes, all.len, what);
}

START_TEST(the_doctor_in_slices)
{
    begin();
    answer(ft_api_doctor, &(const struct ft_http_request){{NULL}, {NULL}}, NULL, &all);
    /* It looked at everything. */
    ck_assert_uint_ge(all_ports, 3 * 2 * MANY_LEAVES * MANY_SPINES);
    ck_assert_uint_ge(all_entries, FLOWS);
    ck_assert_uint_ge(all_records, SOURCES);
    ck_assert_uint_ge(has("lost 1 of 2 packets: kernel"), 1500);
    ck_assert_uint_eq(has("no counters by SNMP of any of 544 switches"), 1);
    end();
}
END_TEST

START_TEST(the_metrics_page_in_slices)
{
    begin();
    answer(ft_metrics_get, &(const struct ft_http_request){{NULL}, {NULL}}, NULL, &all);
    ck_assert_uint_ge(all_entries, FLOWS + RANKS);
    ck_assert_uint_ge(all_records, 2 * EVENTS);
    /* Each family once, with all that is in it. */
    for (const struct ft_prom_metric *m = ft_daemon_metrics.metrics; m->name; m++) {
        char type[200];

        snprintf(type, sizeof(type), "\n# TYPE %s ", m->name);
        ck_assert_msg(has(type) <= 1, "%s", m->name);
    }
    ck_assert_uint_eq(has("\nfabrictraced_link_info{"), 2 * MANY_LEAVES * MANY_SPINES);
    ck_assert_uint_eq(has("\nfabrictraced_link_flows{"), 2 * MANY_LEAVES * MANY_SPINES);
    ck_assert_uint_eq(has("\nfabrictraced_event_since_timestamp_seconds{"), EVENTS);
    ck_assert_uint_eq(has("\nfabrictraced_job_ranks{"), 50);
    ck_assert_uint_eq(has("\nfabrictraced_job_ranks{training_job=\"job0\"} 60\n"), 1);
    ck_assert_uint_eq(has("\nfabrictraced_jobs_not_shown 950\n"), 1);
    ck_assert_uint_eq(has("\nfabrictraced_queue_pairs{state=\"waiting\"} 100000\n"), 1);
    end();
}
END_TEST

FT_UNIT_MAIN("slices", the_doctor_in_slices, the_metrics_page_in_slices)

// SPDX-License-Identifier: Apache-2.0
/*
 * When pairs and their queue pairs go, and what is said of those without a pair.
 */
#include "config.h"

#include <errno.h>

#include "daemon/api/doctor.h"
#include "daemon/api/qps.h"
#include "daemon/pairing/pairing.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "tests/unit/balanced.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/pairing_rig.h"

START_TEST(a_pair_ends_with_either_end)
{
    struct rig rig;

    rig_init(&rig, 2, 100);
    hosts(&rig, 2);
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 2);
    rig_find(&rig.devices[1], 18)->disappears_ms = rig.now_ms + 500;
    rig_second(&rig);
    ck_assert_uint_eq(rig.ended, 2);
    ck_assert_uint_eq(rig.withdrawals, 0);
    state_is(&rig, 0, 17, FT_PAIR_PEER_GONE);
    /* Nor does its number, used anew by another, revive it. */
    ck_assert(rig_connect(&rig, 1, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    rig_free(&rig);
}
END_TEST

START_TEST(a_pair_outlives_its_communicator)
{
    struct rig rig;

    /* Of three ranks one ends: its communicator is closed before its queue pairs are gone. */
    rig_init(&rig, 3, 100);
    hosts(&rig, 3);
    for (uint32_t i = 0; i < 3; i++)
        rig_member(&rig, "c", i, 3, rig.devices[i].host, 100, false);
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    ck_assert(rig_connect(&rig, 0, 100, 2, 100, 0, 0));
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 4);
    rig_member(&rig, "c", 0, 3, "h0", 100, true);
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 4);
    ck_assert_str_eq(end_of(&rig, 0, 17).comm_id, "c");
    rig_find(&rig.devices[0], 17)->disappears_ms = rig.now_ms + 500;
    rig_second(&rig);
    ck_assert_uint_eq(rig.ended, 2);
    state_is(&rig, 1, 18, FT_PAIR_PEER_GONE);
    /* Nobody is a member any more, and its id is still told. */
    for (uint32_t i = 1; i < 3; i++)
        rig_member(&rig, "c", i, 3, rig.devices[i].host, 100, true);
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 2);
    ck_assert_str_eq(end_of(&rig, 2, 18).comm_id, "c");
    rig_find(&rig.devices[0], 19)->disappears_ms = rig.now_ms + 500;
    rig_second(&rig);
    ck_assert_uint_eq(rig.ended, 4);
    ck_assert_uint_eq(rig.withdrawals, 0);
    rig_free(&rig);
}
END_TEST

static void join_all(struct rig *rig, const char *comm, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        rig_member(rig, comm, i - first, end - first, rig->devices[i].host, 100, false);
}

START_TEST(a_pair_stands_in_a_communicator_more)
{
    struct rig rig;

    /* One pair, and two that have their numbers in common. */
    rig_init(&rig, 6, 100);
    hosts(&rig, 6);
    join_all(&rig, "c", 0, 2);
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    join_all(&rig, "d", 2, 4);
    ck_assert(rig_connect(&rig, 2, 100, 3, 100, 0, 0) && rig_connect(&rig, 3, 100, 2, 100, 0, 0));
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 6);
    ck_assert_uint_eq(rig.withdrawals, 2);
    join_all(&rig, "e", 0, 2);
    join_all(&rig, "f", 2, 6);
    ck_assert_uint_eq(right_pairs(&rig), 6);
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 6);
    ck_assert_uint_eq(rig.withdrawals, 2);
    ck_assert_str_eq(end_of(&rig, 3, 17).comm_id, "d");
    /* It rests on the new one too. */
    ck_assert(rig_connect(&rig, 4, 100, 5, 100, 0, 0));
    rig_second(&rig);
    ck_assert_uint_eq(right_pairs(&rig), 2);
    /* One with others of the same numbers leaves nothing certain, whoever comes to it first. */
    for (uint32_t i = 4; i-- > 0;)
        rig_member(&rig, "g", i, 4, rig.devices[i].host, 100, false);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    rig_free(&rig);
}
END_TEST

/* A process in more communicators than are distinguished, of which one is closed. */
START_TEST(communicators_that_are_closed_are_too_many_no_more)
{
    enum { COMMS = 17 };
    struct rig rig;
    char id[16];

    rig_init(&rig, 2, 100);
    hosts(&rig, 2);
    for (uint32_t c = 0; c < COMMS; c++)
        for (uint32_t i = 0; i < 2; i++) {
            snprintf(id, sizeof(id), "c%u", c);
            rig_member(&rig, id, i, 2, rig.devices[i].host, 100, false);
        }
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    for (uint32_t i = 0; i < 2; i++)
        rig_member(&rig, id, i, 2, rig.devices[i].host, 100, true);
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 2);
    rig_free(&rig);
}
END_TEST

START_TEST(ends_age_and_are_capped)
{
    struct ft_account account = {.stage_count = 0};
    struct ft_pairing_stats stats;
    struct rig rig;
    Fabrictrace__QueuePairs bad = FABRICTRACE__QUEUE_PAIRS__INIT;

    rig_init(&rig, 2, 1);
    hosts(&rig, 2);
    ck_assert_int_eq(ft_pairing_list(rig.pairing, &bad, rig.now_ms), -EINVAL);
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 99000));
    rig_seconds(&rig, 20);
    rig.devices[0].agent = false;
    rig_seconds(&rig, 60);
    ft_pairing_stats(rig.pairing, &stats);
    ck_assert_uint_eq(stats.aged, 1);
    ck_assert_uint_eq(ft_pairing_ends(rig.pairing), 0);
    ft_pairing_account(rig.pairing, &account);
    ck_assert(ft_account_balanced(&account.stages[0]));
    rig_free(&rig);
}
END_TEST

START_TEST(several_addresses_wait_for_a_sample)
{
    struct rig rig;

    rig_init(&rig, 2, 100);
    hosts(&rig, 2);
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_int_eq(ft_ip_parse(i ? "fe80::2" : "fe80::1", &rig.devices[i].address[1]), 0);
        rig.devices[i].address_count = 2;
    }
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 40);
    state_is(&rig, 0, 17, FT_PAIR_SEVERAL_ADDRESSES);
    rig_sample(&rig, 0, rig_find(&rig.devices[0], 17));
    rig_sample(&rig, 1, rig_find(&rig.devices[1], 18));
    ck_assert_uint_eq(right_pairs(&rig), 2);
    /* NCCL takes no link-local address by itself. */
    rig_member(&rig, "c", 0, 2, "h0", 101, false);
    rig_member(&rig, "c", 1, 2, "h1", 101, false);
    ck_assert(rig_connect(&rig, 0, 101, 1, 101, 0, 0));
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 4);
    rig_free(&rig);
}
END_TEST

START_TEST(queue_pairs_that_share_a_tuple_are_not_distinguished)
{
    struct rig rig;

    /* 17 x 34 and 34 x 17 make one port. */
    rig_init(&rig, 2, 100);
    hosts(&rig, 2);
    rig.devices[0].ends[0] =
        (struct rig_end){.used = true, .local = 17, .remote = 34, .peer_device = 1, .pid = 100};
    rig.devices[1].ends[0] =
        (struct rig_end){.used = true, .local = 34, .remote = 17, .peer_device = 0, .pid = 100};
    rig.devices[0].ends[1] =
        (struct rig_end){.used = true, .local = 34, .remote = 17, .peer_device = 1, .pid = 101};
    rig.devices[1].ends[1] =
        (struct rig_end){.used = true, .local = 17, .remote = 34, .peer_device = 0, .pid = 101};
    rig_seconds(&rig, 5);
    /* All ends of h0: 17-34 and 34-17, the same two of h1: each has a peer, and one on its own host
     * that fits as well. */
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    rig_sample(&rig, 0, rig_find(&rig.devices[0], 17));
    rig_sample(&rig, 0, rig_find(&rig.devices[0], 34));
    ck_assert_uint_eq(right_pairs(&rig), 2);
    /* Of two processes, neither is named. */
    ck_assert_uint_gt(rig.unowned, 0);
    rig_free(&rig);
}
END_TEST

/* Each job has a name of its own, and there is no end of jobs. */
START_TEST(names_of_jobs_that_are_over_make_room)
{
    enum { ENDS = 1000 };
    static Fabrictrace__QueuePair ends[ENDS];
    static Fabrictrace__QueuePair *list[ENDS];
    static char jobs[ENDS][32];
    Fabrictrace__QueuePairs report = FABRICTRACE__QUEUE_PAIRS__INIT;
    struct rig rig;

    rig_init(&rig, 1, 2 * ENDS);
    report.host = (char *)"h0";
    report.device = (char *)"mlx5_0";
    report.has_port = report.has_time_ms = report.has_interval_ms = report.has_listed = true;
    report.port = 1;
    report.interval_ms = RIG_REFRESH_MS;
    report.listed = ENDS;
    report.n_queue_pairs = ENDS / 2;
    report.queue_pairs = list;
    for (uint32_t second = 1; second <= 100; second++) {
        struct ft_pairing_end end;
        uint32_t index = 0;

        report.time_ms = second * 1000;
        for (uint32_t i = 0; i < ENDS; i++) {
            list[i] = &ends[i];
            fabrictrace__queue_pair__init(&ends[i]);
            ends[i].has_local = ends[i].has_remote = ends[i].has_pid = ends[i].has_since_ms = true;
            ends[i].local = i + 1;
            ends[i].remote = ENDS + i;
            ends[i].pid = second;
            ends[i].since_ms = second * 1000;
            ends[i].job = jobs[i];
            snprintf(jobs[i], sizeof(jobs[i]), "job %u of %u", i, second);
        }
        for (uint32_t i = 0; i < ENDS; i += report.n_queue_pairs) {
            report.queue_pairs = list + i;
            ck_assert_int_eq(ft_pairing_list(rig.pairing, &report, second * 1000), 0);
        }
        ft_pairing_sweep(rig.pairing, second * 1000 + 999, UINT32_MAX);
        for (uint32_t n = 0; n < ENDS; n++) {
            ck_assert(ft_pairing_next(rig.pairing, &index, &end));
            ck_assert_ptr_nonnull(end.job);
            ck_assert_str_eq(end.job, jobs[end.local - 1]);
        }
    }
    rig_free(&rig);
}
END_TEST

static void list_nothing(struct ft_pairing *pairing, const char *host, int64_t now_ms)
{
    Fabrictrace__QueuePairs list = FABRICTRACE__QUEUE_PAIRS__INIT;

    list.host = (char *)(uintptr_t)host;
    list.device = (char *)"mlx5_0";
    list.has_port = list.has_time_ms = list.has_interval_ms = list.has_listed = true;
    list.port = 1;
    list.time_ms = (uint64_t)now_ms;
    list.interval_ms = RIG_REFRESH_MS;
    ck_assert_int_eq(ft_pairing_list(pairing, &list, now_ms), 0);
}

/* Hosts get other names as they are set up anew, and there is no end of them; those of jobs alone,
 * too. */
START_TEST(hosts_that_are_gone_make_room)
{
    const struct ft_pairing_config config = {.ends_max = 16, .ports_max = 2, .members_max = 2};
    struct rig rig = {.now_ms = 1000000};
    const struct ft_pairing_hooks hooks = {rig_on_report, rig_on_withdraw, rig_on_cover, &rig};
    char name[32];

    rig.pairing = ft_pairing_new(&config, &hooks);
    for (uint32_t i = 0; i < 20; i++) {
        rig.now_ms += 3600000;
        snprintf(name, sizeof(name), "job%u", i);
        rig_member(&rig, "c0", 0, 2, name, 100 + i, false);
        snprintf(name, sizeof(name), "host%u", i);
        list_nothing(rig.pairing, name, rig.now_ms);
        ft_pairing_sweep(rig.pairing, rig.now_ms + 60000, UINT32_MAX);
        ft_pairing_sweep(rig.pairing, rig.now_ms + 1800000, UINT32_MAX);
    }
    rig_free(&rig);
}
END_TEST

START_TEST(the_unpaired_are_reported_host_by_host)
{
    struct ft_findings findings = {.items = NULL};
    char state[] = "several_peers";
    const struct ft_list_filter filter = {.state = state};
    struct ft_stages stages = {.join = NULL};
    const struct ft_view view = {.stages = &stages};
    struct ft_writer w;
    struct ft_list list = {.view = &view, .page = {.limit = UINT64_MAX}, .w = &w};
    struct ft_sorted walk;
    struct ft_pairing_unpaired *unpaired;
    struct rig rig;

    rig_init(&rig, 150, 1000);
    hosts(&rig, 150);
    for (uint32_t i = 0; i < 150; i += 2)
        ck_assert(rig_connect(&rig, i, 100, i + 1, 100, 0, 0));
    rig_seconds(&rig, 40);
    unpaired = ft_pairing_unpaired_new(rig.pairing, 1);
    while (ft_pairing_unpaired_step(unpaired, rig.pairing, &findings))
        ;
    ft_pairing_unpaired_free(unpaired);
    /* A hundred by name, one for the rest. */
    ck_assert_uint_eq(findings.count, 101);
    ck_assert(findings.items[0].of_host);
    ck_assert_str_eq(findings.items[0].switch_name, "h0");
    ck_assert_str_eq(findings.items[0].text,
                     "the destination of 1 queue pair is not known (several_peers): several queue "
                     "pairs may be the remote one");
    ck_assert(!findings.items[100].of_host);
    ck_assert_str_eq(findings.items[100].text,
                     "the destination of 50 queue pairs of 50 more hosts is not known "
                     "(several_peers): several queue pairs may be the remote one");
    ft_findings_free(&findings);
    ft_writer_init(&w, 100000);
    stages.pairing = rig.pairing;
    ft_sorted_init(&walk, &ft_api_qp_order, &filter, 2);
    while (ft_sorted_step(&walk, &list) > 0)
        ;
    ft_sorted_free(&walk);
    ck_assert_uint_eq(list.total, 150);
    ck_assert_int_eq(strncmp(list.next, "qps-6831", 8), 0); /* behind h1 */
    ft_write_u8(&w, 0);
    ck_assert_str_eq((const char *)w.bytes,
                     "{\"schema\":\"fabrictrace.queue_pair.v1\",\"host\":\"h0\",\"device\":\"mlx5_"
                     "0\",\"port\":1,\"local\":17,"
                     "\"remote\":18,\"driver\":\"mlx5\",\"state\":\"several_peers\",\"pid\":100,"
                     "\"comm\":\"train\",\"since_ms\":1001000},"
                     "{\"schema\":\"fabrictrace.queue_pair.v1\",\"host\":\"h1\",\"device\":\"mlx5_"
                     "0\",\"port\":1,\"local\":18,"
                     "\"remote\":17,\"driver\":\"mlx5\",\"state\":\"several_peers\",\"pid\":100,"
                     "\"comm\":\"train\",\"since_ms\":1001000}");
    ft_writer_free(&w);
    rig_free(&rig);
}
END_TEST

/* More queue pairs than the doctor looks at in one step. */
static void list_many(struct ft_pipeline *pipeline, int64_t now_ms)
{
    enum { ENDS = 25000 };
    static Fabrictrace__QueuePair ends[ENDS];
    static Fabrictrace__QueuePair *list[ENDS];
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__QueuePairs report = FABRICTRACE__QUEUE_PAIRS__INIT;

    report.host = (char *)"h0";
    report.device = (char *)"mlx5_0";
    report.has_port = report.has_time_ms = report.has_interval_ms = report.has_listed = true;
    report.port = 1;
    report.time_ms = (uint64_t)now_ms;
    report.interval_ms = RIG_REFRESH_MS;
    report.listed = ENDS;
    report.n_queue_pairs = 500;
    for (uint32_t i = 0; i < ENDS; i++) {
        list[i] = &ends[i];
        fabrictrace__queue_pair__init(&ends[i]);
        ends[i].has_local = ends[i].has_remote = ends[i].has_since_ms = true;
        ends[i].local = i + 1;
        ends[i].remote = ENDS + i;
        ends[i].since_ms = (uint64_t)now_ms;
    }
    record.kind_case = FABRICTRACE__RECORD__KIND_QUEUE_PAIRS;
    record.queue_pairs = &report;
    for (uint32_t i = 0; i < ENDS; i += report.n_queue_pairs) {
        report.queue_pairs = list + i;
        ft_pipeline_record(pipeline, &record, now_ms);
    }
    ck_assert_uint_eq(ft_pairing_ends(ft_pipeline_stages(pipeline)->pairing), ENDS);
}

static void drop_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    (void)record;
}

static const struct ft_pipeline_config many = {
    .join = {.flows_max = 100, .window_ms = 10000, .evidence_ms = 30000, .idle_ms = 60000},
    .window = {.loads = {.window_ms = 10000, .elephants_max = 100}, .refresh_ms = 60000},
    .ends_max = 30000,
    .events_max = 100,
    .sources_max = 100,
    .source_id = "test",
};

/* A search for pairs takes slices as a close does: batches wait for it, and a record that comes all
 * the same ends it. */
START_TEST(records_wait_for_a_search)
{
    const struct ft_emitter emitter = {drop_record, NULL};
    const int64_t now_ms = INT64_C(1700000000000);
    struct ft_pipeline *pipeline = ft_pipeline_new(&many, leafspine(2, 2, 1), &emitter);
    int slices = 0;

    ft_pipeline_begin(pipeline, now_ms);
    list_many(pipeline, now_ms);
    while (ft_pipeline_advance(pipeline, now_ms + 100, 1000)) {
        ck_assert(ft_pipeline_waits(pipeline));
        slices++;
    }
    ck_assert_int_ge(slices, 40);
    ck_assert(!ft_pipeline_waits(pipeline));
    ck_assert(ft_pipeline_advance(pipeline, now_ms + 2000, 1000));
    ck_assert(ft_pipeline_waits(pipeline));
    list_many(pipeline, now_ms + 2000);
    ck_assert(!ft_pipeline_waits(pipeline));
    ft_pipeline_free(pipeline);
}
END_TEST

/* Queue pairs that it has looked at go with the clock of before, while it looks. */
START_TEST(the_doctor_outlives_a_clock_that_is_set_back)
{
    const struct ft_emitter emitter = {drop_record, NULL};
    const int64_t now_ms = INT64_C(1700000000000);
    struct ft_pipeline *pipeline = ft_pipeline_new(&many, leafspine(2, 2, 1), &emitter);
    struct ft_doctor *doctor;
    uint32_t steps = 1;

    ft_pipeline_begin(pipeline, now_ms);
    list_many(pipeline, now_ms);
    doctor = ft_doctor_new(pipeline, 1);
    while (ft_doctor_step(doctor))
        steps++;
    ft_doctor_free(doctor);
    /* Three of the steps were for queue pairs, and four for what follows. */
    doctor = ft_doctor_new(pipeline, 1);
    for (uint32_t i = 0; i < steps - 6; i++)
        ck_assert(ft_doctor_step(doctor));
    while (ft_pipeline_advance(pipeline, now_ms - 3600000, UINT32_MAX))
        ;
    ck_assert_uint_eq(ft_pipeline_stats(pipeline)->restarts, 1);
    ck_assert_uint_eq(ft_pairing_ends(ft_pipeline_stages(pipeline)->pairing), 0);
    steps = 1;
    while (ft_doctor_step(doctor))
        steps++;
    /* There are no more to look at. */
    ck_assert_uint_eq(steps, 5);
    ft_doctor_free(doctor);
    ft_pipeline_free(pipeline);
}
END_TEST

FT_UNIT_MAIN("pairing, ends", a_pair_ends_with_either_end, a_pair_outlives_its_communicator,
             a_pair_stands_in_a_communicator_more,
             communicators_that_are_closed_are_too_many_no_more, ends_age_and_are_capped,
             several_addresses_wait_for_a_sample,
             queue_pairs_that_share_a_tuple_are_not_distinguished,
             names_of_jobs_that_are_over_make_room, hosts_that_are_gone_make_room,
             the_unpaired_are_reported_host_by_host, records_wait_for_a_search,
             the_doctor_outlives_a_clock_that_is_set_back)

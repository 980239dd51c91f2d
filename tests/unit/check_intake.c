// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/intake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/api/doctor.h"
#include "daemon/health/unrated.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/replay.h"
#include "daemon/pipeline/stages.h"
#include "proto/record.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

/* What a peer may claim, through the whole pipeline: numbers and times of every kind of record. */
#define NOW_MS INT64_C(1700000000000)

static struct ft_pipeline *pipeline;
static struct ft_writer out;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    ck_assert_int_eq(ft_record_to_json(record, &out), 0);
    ft_write_u8(&out, '\n');
}

static void open_pipeline(void)
{
    struct ft_pipeline_config config = {
        .join = {.flows_max = 1000,
                 .window_ms = 10000,
                 .evidence_ms = 30000,
                 .idle_ms = 60000,
                 .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}},
        .window = {.loads = {.window_ms = 10000,
                             .floor_share = 0.001,
                             .elephant_share = 0.1,
                             .elephants_max = 1000},
                   .refresh_ms = 60000,
                   .victims_max = 32},
        .discovery = {.switches_max = 100},
        .counters_max = 100,
        .grace_ms = 3000,
        .events_max = 100,
        .sources_max = 100,
        .source_id = "test",
    };
    struct ft_emitter emitter = {on_record, NULL};

    ft_writer_init(&out, 1 << 24);
    pipeline = ft_pipeline_new(&config, leafspine(2, 2, 1), &emitter);
    ck_assert_ptr_nonnull(pipeline);
}

static void close_pipeline(void)
{
    ft_pipeline_free(pipeline);
    ft_writer_free(&out);
}

/* What becomes of a record that is written as JSON, at NOW_MS. */
static const char *fate_of(const char *json)
{
    static char name[64];
    struct ft_pipeline_stats before = *ft_pipeline_stats(pipeline);
    const struct ft_pipeline_stats *after;
    Fabrictrace__Record *record;
    char error[200];

    ck_assert_msg(ft_record_from_json(json, strlen(json), &record, error, sizeof(error)) == 0, "%s",
                  error);
    ft_pipeline_record(pipeline, record, NOW_MS);
    ft_pipeline_flush(pipeline);
    ft_record_free(record);
    after = ft_pipeline_stats(pipeline);
    for (int f = 0; f < FT_RECORD_FATES; f++)
        if (after->fates[f] > before.fates[f]) {
            snprintf(name, sizeof(name), "%s", ft_record_fate_name((enum ft_record_fate)f));
            return name;
        }
    return "none";
}

#define HOST(more)                                                                                 \
    "{\"schema\":\"fabrictrace.host.v1\",\"source\":\"a\",\"host\":\"gpu01\",\"device\":\"m\","    \
    "\"port\":1," more "}"

START_TEST(times_that_cannot_be_are_refused)
{
    open_pipeline();
    ck_assert_str_eq(fate_of(HOST("\"time_ms\":1700000000000,\"interval_ms\":10000")), "forwarded");
    ck_assert_str_eq(fate_of(HOST("\"time_ms\":1700000059000,\"interval_ms\":10000")), "forwarded");
    ck_assert_str_eq(fate_of(HOST("\"time_ms\":1700000061000,\"interval_ms\":10000")),
                     "clock_ahead");
    ck_assert_str_eq(fate_of(HOST("\"time_ms\":\"18446744073709551615\",\"interval_ms\":10000")),
                     "invalid");
    ck_assert_str_eq(fate_of(HOST("\"time_ms\":\"9223372036854775808\",\"interval_ms\":10000")),
                     "invalid");
    ck_assert_str_eq(fate_of(HOST("\"time_ms\":1700000000000,\"interval_ms\":4294967295")),
                     "invalid");
    ck_assert_str_eq(
        fate_of("{\"schema\":\"fabrictrace.communicator.v1\",\"time_ms\":1800000000000,"
                "\"comm_id\":\"00000000000000aa\",\"host\":\"gpu01\",\"pid\":1,\"rank\":0,"
                "\"ranks\":2}"),
        "clock_ahead");
    ck_assert_str_eq(
        fate_of("{\"schema\":\"fabrictrace.communicator.v1\",\"time_ms\":1700000000000,"
                "\"since_ms\":\"9223372036854775808\",\"comm_id\":\"00000000000000aa\","
                "\"host\":\"gpu01\",\"pid\":1,\"rank\":0,\"ranks\":2}"),
        "invalid");
    ck_assert_str_eq(
        fate_of("{\"schema\":\"fabrictrace.collective.v1\",\"time_ms\":1800000000000,"
                "\"comm_id\":\"00000000000000aa\",\"host\":\"gpu01\",\"pid\":1,\"rank\":0,"
                "\"ranks\":2}"),
        "clock_ahead");
    ck_assert_uint_eq(ft_pipeline_stats(pipeline)->fates[FT_RECORD_FORWARDED], 2);
    close_pipeline();
}
END_TEST

#define PROGRESS(rest)                                                                             \
    "{\"schema\":\"fabrictrace.progress.v1\",\"comm_id\":\"00000000000000aa\",\"host\":"           \
    "\"gpu01\"," rest "}"

START_TEST(progress_goes_out_when_it_says_whose)
{
    char many[8192] = "\"time_ms\":1700000000000,\"rank\":0,\"transfers\":[{}", line[9000];

    open_pipeline();
    ck_assert_str_eq(fate_of(PROGRESS("\"time_ms\":1700000000000,\"rank\":0,\"begun\":4711,"
                                      "\"transfers\":[{\"peer\":1,\"state\":\"send_wait\"}]")),
                     "forwarded");
    ck_assert_ptr_nonnull(strstr((const char *)out.bytes, "send_wait"));
    ck_assert_str_eq(fate_of(PROGRESS("\"time_ms\":1700000000000")), "invalid");
    ck_assert_str_eq(fate_of(PROGRESS("\"rank\":0")), "invalid");
    ck_assert_str_eq(fate_of(PROGRESS("\"time_ms\":1800000000000,\"rank\":0")), "clock_ahead");
    ck_assert_str_eq(fate_of(PROGRESS("\"time_ms\":1700000000000,\"rank\":0,"
                                      "\"transfers\":[{\"since_ms\":\"18446744073709551615\"}]")),
                     "invalid");
    for (int i = 0; i < 128; i++)
        strcat(many, ",{}");
    snprintf(line, sizeof(line),
             "{\"schema\":\"fabrictrace.progress.v1\",\"comm_id\":\"00000000000000aa\","
             "\"host\":\"gpu01\",%s]}",
             many);
    ck_assert_str_eq(fate_of(line), "invalid");
    close_pipeline();
}
END_TEST

/* What no reader of JSON takes is never told on. */
START_TEST(numbers_of_64_bits_are_refused)
{
    open_pipeline();
    ck_assert_str_eq(fate_of("{\"schema\":\"fabrictrace.collective.v1\","
                             "\"time_ms\":1700000000000,\"comm_id\":\"00000000000000aa\","
                             "\"host\":\"gpu01\",\"pid\":1,\"rank\":0,\"ranks\":2,\"peers\":["
                             "{\"peer\":1,\"sent_bytes\":\"18446744073709551615\"}]}"),
                     "invalid");
    ck_assert_str_eq(fate_of("{\"schema\":\"fabrictrace.loss.v1\",\"time_ms\":1700000000000,"
                             "\"source\":\"a\",\"program\":\"p\",\"stages\":[{\"name\":\"s\","
                             "\"unit\":\"u\",\"received\":\"18446744073709551615\"}]}"),
                     "invalid");
    ck_assert_str_eq(fate_of("{\"schema\":\"fabrictrace.counters.v1\","
                             "\"time_ms\":\"18446744073709551615\",\"agent\":\"192.0.2.1\","
                             "\"ifindex\":1,\"source\":\"sflow\"}"),
                     "invalid");
    ck_assert_uint_eq(out.len, 0);
    close_pipeline();
}
END_TEST

/* 2^32 - 1 times 2^32 - 1 bytes, in one datagram. */
START_TEST(volumes_saturate_where_they_enter)
{
    open_pipeline();
    fate_of("{\"schema\":\"fabrictrace.observation.v1\",\"time_ms\":1700000000000,"
            "\"interval_ms\":1000,\"agent\":\"192.0.2.1\",\"in_ifindex\":1,\"out_ifindex\":100,"
            "\"samples\":1,\"packets\":4294967295,\"bytes\":\"18446744065119617025\","
            "\"data_samples\":1,\"fate\":\"forwarded\",\"point\":\"ingress\","
            "\"flow\":{\"src\":\"10.0.0.1\",\"dst\":\"10.0.1.1\",\"sport\":50000,\"dport\":4791,"
            "\"proto\":17}}");
    fate_of("{\"schema\":\"fabrictrace.flow.v1\",\"time_ms\":1700000000000,\"interval_ms\":1000,"
            "\"host\":\"h0-0\",\"direction\":\"tx\",\"bytes\":\"18446744073709551615\","
            "\"flow\":{\"src\":\"10.0.0.1\",\"dst\":\"10.0.1.1\",\"sport\":50000,\"dport\":4791,"
            "\"proto\":17}}");
    ck_assert_uint_eq(ft_pipeline_stats(pipeline)->implausible, 2);
    while (ft_pipeline_advance(pipeline, NOW_MS + 20000, 1))
        ;
    ft_write_u8(&out, 0);
    for (const char *at = (char *)out.bytes; (at = strchr(at, ':')); at++) {
        errno = 0;
        ck_assert_msg(strtoll(at + 1, NULL, 10) >= -(1ll << 53) && errno == 0, "%.40s", at);
    }
    ck_assert_ptr_nonnull(strstr((char *)out.bytes, "fabrictrace.path.v1"));
    close_pipeline();
}
END_TEST

START_TEST(no_port_is_faster_than_a_petabit)
{
    struct ft_topology_builder *b = ft_topology_builder_new("lab");
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *t;

    ft_topology_add_switch(b, "s", FT_TIER_LEAF, diag);
    ft_topology_add_port(b, 0, "a", 1, UINT64_MAX, diag);
    ft_topology_add_port(b, 0, "b", 2, FT_SPEED_MAX_BPS, diag);
    t = ft_topology_build(b, diag);
    ck_assert_ptr_nonnull(t);
    ck_assert_uint_eq(ft_topology_port(t, 0)->speed_bps, 0);
    ck_assert_uint_eq(ft_topology_port(t, 1)->speed_bps, FT_SPEED_MAX_BPS);
    ft_topology_free(t);
    ft_topology_builder_free(b);
    ft_diag_free(diag);
}
END_TEST

START_TEST(a_sampling_rate_of_0_is_reported)
{
    const struct ft_topology *t;
    struct ft_findings findings = {.items = NULL};

    open_pipeline();
    for (int i = 0; i < 2; i++)
        fate_of("{\"schema\":\"fabrictrace.observation.v1\",\"time_ms\":1700000000000,"
                "\"agent\":\"192.0.2.1\",\"in_ifindex\":1,\"out_ifindex\":100,\"samples\":3,"
                "\"packets\":0,\"bytes\":0,\"point\":\"ingress\","
                "\"flow\":{\"src\":\"10.0.0.1\",\"dst\":\"10.0.1.1\",\"sport\":50000,"
                "\"dport\":4791,\"proto\":17}}");
    t = ft_join_topology(ft_pipeline_stages(pipeline)->join);
    ft_unrated_find(ft_pipeline_stages(pipeline)->unrated, t, NOW_MS, &findings);
    ck_assert_uint_eq(findings.count, 1);
    ck_assert_str_eq(findings.items[0].switch_name, "leaf0");
    ck_assert_ptr_nonnull(strstr(findings.items[0].text, "6 of its samples"));
    ft_findings_free(&findings);
    ft_unrated_find(ft_pipeline_stages(pipeline)->unrated, t, NOW_MS + 400000, &findings);
    ck_assert_uint_eq(findings.count, 0);
    ft_findings_free(&findings);
    close_pipeline();
}
END_TEST

static const char *sampled_at(int64_t at_ms, int64_t now_ms)
{
    static char name[64];
    char json[400];
    Fabrictrace__Record *record;
    struct ft_pipeline_stats before = *ft_pipeline_stats(pipeline);

    snprintf(json, sizeof(json),
             "{\"schema\":\"fabrictrace.observation.v1\",\"time_ms\":%lld,\"agent\":\"192.0.2.1\","
             "\"in_ifindex\":1,\"out_ifindex\":100,\"samples\":1,\"packets\":1,\"bytes\":100,"
             "\"flow\":{\"src\":\"10.0.0.1\",\"dst\":\"10.0.1.1\",\"sport\":5,\"dport\":4791,"
             "\"proto\":17}}",
             (long long)at_ms);
    ck_assert_int_eq(ft_record_from_json(json, strlen(json), &record, name, sizeof(name)), 0);
    ft_pipeline_record(pipeline, record, now_ms);
    ft_pipeline_flush(pipeline);
    ft_record_free(record);
    for (int f = 0; f < FT_RECORD_FATES; f++)
        if (ft_pipeline_stats(pipeline)->fates[f] > before.fates[f])
            return ft_record_fate_name((enum ft_record_fate)f);
    return "none";
}

static void drive(int64_t from_ms, int64_t to_ms)
{
    for (int64_t ms = from_ms; ms <= to_ms; ms += 1000)
        while (ft_pipeline_advance(pipeline, ms, UINT32_MAX))
            ;
}

/* Whoever stops the daemon for a while makes others' records late; their clocks are right. */
START_TEST(what_a_pause_of_ours_makes_late_is_ours)
{
    open_pipeline();
    ck_assert_str_eq(sampled_at(NOW_MS, NOW_MS), "joined");
    drive(NOW_MS, NOW_MS + 30000);
    ck_assert_str_eq(sampled_at(NOW_MS, NOW_MS + 30000), "late");
    /* Stopped for 40 s. */
    drive(NOW_MS + 70000, NOW_MS + 71000);
    ck_assert_str_eq(sampled_at(NOW_MS + 40000, NOW_MS + 71000), "late_after_pause");
    drive(NOW_MS + 72000, NOW_MS + 100000);
    ck_assert_str_eq(sampled_at(NOW_MS + 40000, NOW_MS + 100000), "late");
    close_pipeline();
}
END_TEST

static uint64_t unnumbered; /* messages over Kafka */

/* Whether the doctor has a finding with this text, and for how many switches. */
static size_t reported(const char *text)
{
    struct ft_doctor *doctor = ft_doctor_new(pipeline, 1);
    const struct ft_findings *findings = ft_doctor_findings(doctor);
    size_t count = 0;

    ft_doctor_unnumbered(doctor, unnumbered);
    while (ft_doctor_step(doctor))
        ;
    for (size_t i = 0; i < findings->count; i++)
        count += strstr(findings->items[i].text, text) != NULL;
    ft_doctor_free(doctor);
    return count;
}

/* What is said of records that came late since this daemon stood still, and of others. */
START_TEST(a_pause_of_ours_is_no_clock_of_theirs)
{
    open_pipeline();
    ck_assert_str_eq(sampled_at(NOW_MS, NOW_MS), "joined");
    drive(NOW_MS, NOW_MS + 30000);
    drive(NOW_MS + 70000, NOW_MS + 71000);
    ck_assert_str_eq(sampled_at(NOW_MS + 40000, NOW_MS + 71000), "late_after_pause");
    ck_assert_uint_eq(reported("1 records were late because this daemon was stopped"), 1);
    ck_assert_uint_eq(reported("came after their window was closed"), 0);
    drive(NOW_MS + 72000, NOW_MS + 100000);
    ck_assert_str_eq(sampled_at(NOW_MS + 40000, NOW_MS + 100000), "late");
    ck_assert_uint_eq(reported("1 records came after their window was closed"), 1);
    close_pipeline();
}
END_TEST

START_TEST(a_fabric_without_snmp_is_one_line)
{
    open_pipeline();
    ck_assert_uint_eq(reported("counters by SNMP"), 1);
    /* One switch is polled: then the others are worth a line each. */
    ck_assert_str_eq(fate_of("{\"schema\":\"fabrictrace.counters.v1\",\"time_ms\":1700000000000,"
                             "\"agent\":\"192.0.2.1\",\"ifindex\":100,\"source\":\"snmp\","
                             "\"in_bytes\":1}"),
                     "joined");
    ck_assert_uint_eq(reported("counters by SNMP"), 4);
    close_pipeline();
}
END_TEST

START_TEST(senders_that_are_not_remembered_are_found)
{
    open_pipeline();
    ck_assert_uint_eq(reported("over Kafka"), 0);
    unnumbered = 12;
    ck_assert_uint_eq(reported("12 messages over Kafka came of more senders than there is"), 1);
    unnumbered = 0;
    close_pipeline();
}
END_TEST

static void note(void *arg, const char *text)
{
    snprintf(arg, 200, "%s", text);
}

START_TEST(lines_are_numbered_as_an_editor_does)
{
    char path[] = "/tmp/check_intake.XXXXXX", said[200] = "";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    struct ft_replay_stats stats;

    ck_assert_ptr_nonnull(file);
    fputs("\n  \n\n{\"schema\":\"no\"}\n\n", file);
    fclose(file);
    open_pipeline();
    ck_assert_int_eq(ft_replay(pipeline, path, note, said, &stats), 0);
    unlink(path);
    ck_assert_msg(strncmp(said + strlen(path), ":4: ", 4) == 0, "%s", said);
    ck_assert_uint_eq(stats.lines, 1);
    ck_assert_uint_eq(stats.broken, 1);
    close_pipeline();
}
END_TEST

static struct ft_pipeline_stats replayed(const char *text)
{
    char path[] = "/tmp/check_intake.XXXXXX", said[200] = "";
    FILE *file = fdopen(mkstemp(path), "w");
    struct ft_pipeline_stats stats;
    struct ft_replay_stats replay;

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    open_pipeline();
    ck_assert_int_eq(ft_replay(pipeline, path, note, said, &replay), 0);
    ck_assert_str_eq(said, "");
    unlink(path);
    stats = *ft_pipeline_stats(pipeline);
    return stats;
}

#define HEAD "{\"schema\":\"fabrictrace.observation.v1\",\"time_ms\":1700000000000,"
#define TAIL                                                                                       \
    ",\"dport\":4791,\"proto\":17},\"samples\":1,\"packets\":100,\"bytes\":417000,"                \
    "\"data_samples\":1,\"agent\":\"192.0.2.1\",\"in_ifindex\":1,\"out_ifindex\":100}\n"

/* Columns in a file say what as many single observations do, each with its own time. */
START_TEST(observations_in_columns_are_replayed_as_single_ones_are)
{
    struct ft_pipeline_stats one, other;
    struct ft_writer single;

    one = replayed(HEAD "\"first_ms\":1700000000100,\"last_ms\":1700000000100,\"flow\":{"
                        "\"src\":\"10.0.0.1\",\"dst\":\"10.1.0.1\",\"sport\":49153" TAIL HEAD
                        "\"first_ms\":1700000025000,\"last_ms\":1700000025000,\"flow\":{"
                        "\"src\":\"10.1.0.1\",\"dst\":\"10.0.0.1\",\"sport\":49154" TAIL);
    ck_assert_uint_eq(one.records, 2);
    ck_assert_uint_eq(one.fates[FT_RECORD_JOINED], 2);
    single = out;
    ft_pipeline_free(pipeline);
    other = replayed(
        "{\"schema\":\"fabrictrace.observations.v1\",\"time_ms\":1700000000000,"
        "\"addresses\":[\"192.0.2.1\",\"10.0.0.1\",\"10.1.0.1\"],\"sources\":[{\"agent\":0,"
        "\"sampling_rate\":100}],\"lengths\":[4170],\"source\":[0,0],\"src\":[1,2],"
        "\"dst\":[2,1],\"sport\":[1,2],\"in_ifindex\":[1,1],\"out_ifindex\":[100,100],"
        "\"first_after\":[100,24900],\"samples\":[1,1],\"length\":[1,1]}\n");
    ck_assert_mem_eq(&one, &other, sizeof(one));
    ck_assert_uint_gt(out.len, 0);
    ck_assert_uint_eq(out.len, single.len);
    ck_assert_mem_eq(out.bytes, single.bytes, single.len);
    ft_writer_free(&single);
    close_pipeline();
}
END_TEST

START_TEST(columns_that_do_not_fit_together_are_one_invalid_record)
{
    open_pipeline();
    ck_assert_str_eq(fate_of("{\"schema\":\"fabrictrace.observations.v1\",\"time_ms\":1,"
                             "\"addresses\":[\"192.0.2.1\"],\"sources\":[{\"agent\":0}],"
                             "\"source\":[0,0],\"src\":[0]}"),
                     "invalid");
    ck_assert_uint_eq(ft_pipeline_stats(pipeline)->records, 1);
    close_pipeline();
}
END_TEST

/* The record that a text is, for the functions of this module alone. */
static Fabrictrace__Record *record_of(const char *json)
{
    Fabrictrace__Record *record;
    char error[200];

    ck_assert_msg(ft_record_from_json(json, strlen(json), &record, error, sizeof(error)) == 0, "%s",
                  error);
    return record;
}

static bool observes(const char *json, struct ft_observation *taken)
{
    Fabrictrace__Record *record = record_of(json);
    struct ft_observed o;
    bool odd = false, fine = ft_observed_from(record->observation, &o) == 0 &&
                             ft_intake_observed(&o, taken, &odd);

    ft_record_free(record);
    return fine && !odd;
}

#define OBSERVED(more)                                                                             \
    "{\"schema\":\"fabrictrace.observation.v1\"" more                                              \
    ",\"samples\":3,\"bytes\":3000,\"in_ifindex\":1,\"out_ifindex\":49}"
#define AT    ",\"time_ms\":1700000000000"
#define AGENT ",\"agent\":\"192.0.2.11\""
#define FLOW                                                                                       \
    ",\"flow\":{\"src\":\"10.0.1.1\",\"dst\":\"10.0.2.1\",\"sport\":50001,\"dport\":4791,"         \
    "\"proto\":17}"

START_TEST(what_an_observation_needs_is_there_or_it_is_refused)
{
    struct ft_observation o;

    ck_assert(observes(OBSERVED(AT AGENT FLOW), &o));
    ck_assert_int_eq(o.first_ms, INT64_C(1700000000000));
    ck_assert_int_eq(o.last_ms, o.first_ms);
    ck_assert_uint_eq(o.samples, 3);
    ck_assert_uint_eq(o.bytes, 3000);
    ck_assert_uint_eq(o.out_ifindex, 49);
    ck_assert_uint_eq(o.tuple.sport, 50001);
    ck_assert(!observes(OBSERVED(AGENT FLOW), &o));
    ck_assert(!observes(OBSERVED(AT FLOW), &o));
    ck_assert(!observes(OBSERVED(AT AGENT), &o));
    /* The last sample before the first, and an interval of more than an hour. */
    ck_assert(!observes(
        OBSERVED(AT AGENT FLOW ",\"first_ms\":1700000000500,\"last_ms\":1700000000400"), &o));
    ck_assert(!observes(
        OBSERVED(AT AGENT FLOW ",\"first_ms\":1700000000000,\"last_ms\":1700003600001"), &o));
    /* What was discarded left by no port; a notification of it has no volume. */
    ck_assert(
        observes(OBSERVED(AT AGENT FLOW ",\"fate\":\"discarded\",\"point\":\"discard\""), &o));
    ck_assert_uint_eq(o.in_ifindex, 1);
    ck_assert_uint_eq(o.out_ifindex + o.samples + o.bytes, 0);
}
END_TEST

/* A flow's queue pairs are its source's and its destination's, whoever reports. */
START_TEST(the_receivers_queue_pair_is_the_flows_destination)
{
    struct ft_host_report sent, received;
    Fabrictrace__Record *tx = record_of("{\"schema\":\"fabrictrace.flow.v1\"" AT FLOW
                                        ",\"direction\":\"tx\",\"host\":\"gpu01\","
                                        "\"qp\":{\"local\":17,\"remote\":18}}");
    Fabrictrace__Record *rx = record_of("{\"schema\":\"fabrictrace.flow.v1\"" AT FLOW
                                        ",\"direction\":\"rx\",\"host\":\"gpu02\","
                                        "\"qp\":{\"local\":18}}");
    bool odd = false;

    ck_assert(ft_intake_report(tx->flow, &sent, &odd));
    ck_assert(ft_intake_report(rx->flow, &received, &odd));
    ck_assert(!odd && sent.sending && !received.sending);
    ck_assert_uint_eq(sent.qp_local, 17);
    ck_assert_uint_eq(sent.qp_remote, 18);
    ck_assert_uint_eq(received.qp_local, FT_NONE);
    ck_assert_uint_eq(received.qp_remote, 18);
    ck_assert_str_eq(received.host, "gpu02");
    ft_record_free(tx);
    ft_record_free(rx);
}
END_TEST

/* What an acknowledgement says needs one. */
START_TEST(answers_are_no_more_than_acknowledgements)
{
    struct ft_observed o = {.samples = 3, .ack_samples = 2};
    uint32_t *const answers[] = {&o.nak_samples, &o.rnr_samples, &o.no_credit_samples};
    struct ft_numbered got = {.acks = 0};

    ck_assert(!ft_intake_numbered(&o, &got));
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        *answers[i] = 2;
        ck_assert(ft_intake_numbered(&o, &got));
        ck_assert_uint_eq(got.naks, o.nak_samples);
        ck_assert_uint_eq(got.rnrs, o.rnr_samples);
        ck_assert_uint_eq(got.no_credits, o.no_credit_samples);
        *answers[i] = 3;
        ck_assert(!ft_intake_numbered(&o, &got));
        *answers[i] = 0;
    }
}
END_TEST

/* A share of marked samples is of samples. */
START_TEST(more_marked_samples_than_samples_are_refused)
{
    struct ft_observed o = {
        .first_ms = NOW_MS, .last_ms = NOW_MS, .samples = 3, .ce_samples = 3, .packets = 3};
    struct ft_observation got = {.samples = 0};
    bool odd = false;

    ck_assert(ft_intake_observed(&o, &got, &odd));
    ck_assert_uint_eq(got.ce_samples, 3);
    o.ce_samples = 4;
    ck_assert(!ft_intake_observed(&o, &got, &odd));
    o.point = FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_DISCARD;
    ck_assert(!ft_intake_observed(&o, &got, &odd));
}
END_TEST

FT_UNIT_MAIN("intake", what_an_observation_needs_is_there_or_it_is_refused,
             the_receivers_queue_pair_is_the_flows_destination,
             observations_in_columns_are_replayed_as_single_ones_are,
             columns_that_do_not_fit_together_are_one_invalid_record,
             what_a_pause_of_ours_makes_late_is_ours, a_pause_of_ours_is_no_clock_of_theirs,
             a_fabric_without_snmp_is_one_line, senders_that_are_not_remembered_are_found,
             times_that_cannot_be_are_refused, numbers_of_64_bits_are_refused,
             progress_goes_out_when_it_says_whose, volumes_saturate_where_they_enter,
             no_port_is_faster_than_a_petabit, a_sampling_rate_of_0_is_reported,
             answers_are_no_more_than_acknowledgements,
             more_marked_samples_than_samples_are_refused, lines_are_numbered_as_an_editor_does)

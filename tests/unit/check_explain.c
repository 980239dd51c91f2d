// SPDX-License-Identifier: Apache-2.0
/*
 * /api/v1/explain of a job: of all its ranks the pair that is slowest beside others, and the record
 * of the link under it.
 */
#include "config.h"

#include "daemon/api/explain.h"

#include <inttypes.h>
#include <stdarg.h>

#include "tests/unit/answer_rig.h"

#define START_MS (100 * (int64_t)WINDOW_MS)

static struct ft_writer all;

static void take(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void take(const char *format, ...)
{
    char line[2048], error[256] = "";
    Fabrictrace__Record *record;
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    ck_assert_msg(ft_record_from_json(line, strlen(line), &record, error, sizeof(error)) == 0,
                  "%s: %s", line, error);
    ft_pipeline_record(pipeline, record, START_MS);
    ft_record_free(record);
}

/* The jobs have processes of their own; the flows are those of the first. */
static unsigned pid_of(const char *comm)
{
    return strcmp(comm, "00000000000000c0") == 0 ? 100 : 200;
}

/* Rank r of a ring of four runs on the only host of leaf r that is used. */
static void rank(const char *comm, const char *job, unsigned r)
{
    take("{\"schema\":\"fabrictrace.communicator.v1\",\"time_ms\":%" PRId64
         ",\"host\":\"h%u-0\",\"pid\":%u,\"job\":\"%s\",\"comm_id\":\"%s\",\"rank\":%u,"
         "\"ranks\":4}",
         START_MS, r, pid_of(comm) + r, job, comm, r);
}

static void step_of(const char *comm, unsigned r, unsigned us, int64_t ms)
{
    take("{\"schema\":\"fabrictrace.collective.v1\",\"time_ms\":%" PRId64
         ",\"host\":\"h%u-0\",\"pid\":%u,\"comm_id\":\"%s\",\"rank\":%u,\"ranks\":4,"
         "\"op\":\"AllReduce\",\"bytes\":1000,\"peers\":[{\"peer\":%u,\"channel\":0,"
         "\"sent_bytes\":1000,\"sent_messages\":10,\"step_median_ns\":%u}]}",
         ms, r, pid_of(comm) + r, comm, r, (r + 1) % 4, us * 1000);
}

/* The flow of rank r to the next one's leaf, over spine r; or one of the leaf's other host to a
 * leaf further, which shares the link up with it alone. */
static void flow_of(unsigned r, unsigned host, int64_t ms)
{
    char flow[160], pid[32] = "";

    snprintf(flow, sizeof(flow),
             "{\"src\":\"10.0.%u.%u\",\"dst\":\"10.0.%u.%u\",\"sport\":%u,\"dport\":4791,"
             "\"proto\":17}",
             r, host + 1, (r + 1 + host) % 4, host + 1, 50001 + r);
    if (host == 0)
        snprintf(pid, sizeof(pid), ",\"pid\":%u", 100 + r);
    take("{\"schema\":\"fabrictrace.flow.v1\",\"time_ms\":%" PRId64
         ",\"interval_ms\":1000,\"host\":\"h%u-%u\"%s,\"flow\":%s,\"direction\":\"tx\","
         "\"data_packets\":10000,\"bytes\":10000000}",
         ms, r, host, pid, flow);
    take("{\"schema\":\"fabrictrace.observation.v1\",\"time_ms\":%" PRId64
         ",\"agent\":\"192.0.2.%u\",\"flow\":%s,\"in_ifindex\":%u,\"out_ifindex\":%u,"
         "\"samples\":10,\"data_samples\":10,\"bytes\":10000}",
         ms, 1 + r, flow, 1 + host, 100 + r);
}

static void close_window(int64_t ms)
{
    ft_pipeline_flush(pipeline);
    while (ft_pipeline_advance(pipeline, ms + WINDOW_MS + 3000, 10000))
        ;
}

/* Two jobs of a ring each; in one, ranks 1 and 2 wait for their peers, rank 2 longer. */
static void two_jobs(void)
{
    static const unsigned steps[4] = {50, 150, 300, 50};

    open_all();
    for (unsigned r = 0; r < 4; r++) {
        rank("00000000000000c0", "88", r);
        rank("00000000000000c1", "99", r);
    }
    for (unsigned r = 0; r < 4; r++) {
        step_of("00000000000000c0", r, 50, START_MS + 100);
        flow_of(r, 0, START_MS + 1000);
        flow_of(r, 1, START_MS + 1000);
    }
    close_window(START_MS);
    for (unsigned r = 0; r < 8; r++)
        step_of("00000000000000c0", r % 4, steps[r % 4], START_MS + WINDOW_MS + 4000 + r);
    for (unsigned r = 0; r < 8; r++)
        step_of("00000000000000c1", r % 4, 50, START_MS + WINDOW_MS + 4000 + r);
    ft_writer_init(&all, 1 << 20);
}

static const char *explained(const char *job)
{
    const struct ft_http_request request = {{"job"}, {job}};

    ft_writer_reset(&all);
    answer(ft_api_explain, &request, NULL, &all);
    ft_write_u8(&all, '\0');
    return (const char *)all.bytes;
}

/* What stands in a list of the answer. */
static void list_of(const char *text, const char *name, const char *next, char *to, size_t bytes)
{
    const char *at = strstr(text, name), *end = at ? strstr(at, next) : NULL;

    ck_assert_msg(end, "%s", text);
    ck_assert_uint_lt((size_t)(end - at), bytes);
    memcpy(to, at, (size_t)(end - at));
    to[end - at] = '\0';
}

START_TEST(the_slowest_pair_and_its_link)
{
    char part[4096];
    const char *text;

    two_jobs();
    text = explained("88");
    ck_assert_msg(strstr(text, "\"total\":4}"), "%s", text);
    list_of(text, "\"slowest\":", "\"slowest_links\":", part, sizeof(part));
    ck_assert_uint_eq(count_of(part, strlen(part), "fabrictrace.rank.v1"), 1);
    ck_assert_msg(strstr(part, "\"rank\":2,"), "%s", part);
    ck_assert_msg(strstr(part, "\"slowest_peer\":3"), "%s", part);
    ck_assert_msg(strstr(part, "\"slowest_step_median_ns\":300000"), "%s", part);
    ck_assert_msg(strstr(part, "\"slowest_switch\":\"leaf2\",\"slowest_port\":\"up2\""), "%s",
                  part);
    list_of(text, "\"slowest_links\":", "\"paths\":", part, sizeof(part));
    ck_assert_uint_eq(count_of(part, strlen(part), "fabrictrace.link.v1"), 1);
    ck_assert_msg(strstr(part, "\"switch\":\"leaf2\",\"port\":\"up2\""), "%s", part);
    ck_assert_msg(strstr(part, "\"flows\":2,"), "%s", part);
    ck_assert_msg(strstr(text, "\"sport\":50003"), "%s", text);
    ft_writer_free(&all);
    close_all();
}
END_TEST

START_TEST(a_job_without_a_slow_pair)
{
    const char *text;

    two_jobs();
    text = explained("99");
    ck_assert_msg(strstr(text, "\"slowest\":[],\"slowest_links\":[],\"paths\":["), "%s", text);
    ck_assert_msg(strstr(text, "\"total\":4}"), "%s", text);
    text = explained("none");
    ck_assert_msg(strstr(text, "\"slowest\":[],\"slowest_links\":[],\"paths\":[]"), "%s", text);
    ck_assert_msg(strstr(text, "\"total\":0}"), "%s", text);
    ft_writer_free(&all);
    close_all();
}
END_TEST

FT_UNIT_MAIN("explain", the_slowest_pair_and_its_link, a_job_without_a_slow_pair)

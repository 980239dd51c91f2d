// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_ANSWER_RIG_H
#define FT_TESTS_ANSWER_RIG_H
/*
 * Answers of the HTTP API, made slice by slice. The HTTP server is stood in for here, so a program
 * that includes this links none. No step may write or take more than its share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/api/view.h"
#include "daemon/history/history.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "lib/io/http/http.h"
#include "proto/record.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define WINDOW_MS   10000
#define LEAVES      4
#define FLOWS       100000
#define RECORDS_MAX 500       /* of one step */
#define BYTES_MAX   (2 << 20) /* likewise */
#define STEP_CPU_NS 250000000 /* on a slow machine, by the processor's time alone */
#define SOURCES     4000
#define PARAMETERS  8

struct ft_http_request {
    const char *names[PARAMETERS], *values[PARAMETERS];
};

static struct ft_http_slices slices;
static struct ft_pipeline *pipeline;
static struct ft_history *history;
static struct ft_sink *sink;
static struct ft_view view;

const char *ft_http_query(const struct ft_http_request *request, const char *name)
{
    for (size_t i = 0; i < PARAMETERS && request->names[i]; i++)
        if (strcmp(request->names[i], name) == 0)
            return request->values[i];
    return NULL;
}

const char *ft_http_unknown_query(const struct ft_http_request *request, const char *const *names)
{
    (void)request;
    (void)names;
    return NULL;
}

bool ft_http_tag(const struct ft_http_request *request, const char *format, ...)
{
    (void)request;
    (void)format;
    return false;
}

int ft_http_answer_slices(const struct ft_http_request *request, const struct ft_http_slices *s)
{
    (void)request;
    slices = *s;
    return 0;
}

void ft_http_stats(const struct ft_http *http, struct ft_http_stats *stats)
{
    (void)http;
    *stats = (struct ft_http_stats){.connected = 0};
}

static inline void on_record(void *arg, const Fabrictrace__Record *record)
{
    const struct ft_published out = {.record = record, .json = "{}", .json_len = 2};

    (void)arg;
    sink->write(sink->self, &out);
}

/* Of so many leaves and spines, and one host each. */
static inline void open_fabric(uint32_t leaves, uint32_t spines)
{
    const struct ft_history_config kept = {3600000, 256 << 20, 1000, 1};
    struct ft_emitter emitter = {on_record, NULL};
    struct ft_pipeline_config config = {
        .join = {.flows_max = 2 * FLOWS,
                 .window_ms = WINDOW_MS,
                 .evidence_ms = 30000,
                 .idle_ms = 60000,
                 .trust_topology = true,
                 .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}},
        .window = {.loads = {.window_ms = WINDOW_MS,
                             .floor_share = 0.001,
                             .elephant_share = 0.1,
                             .elephants_max = 10000},
                   .refresh_ms = 60000,
                   .victims_max = 32},
        .grace_ms = 3000,
        .events_max = 100,
        .ends_max = 2 * FLOWS,
        .counters_max = 2 * FLOWS,
        .sources_max = SOURCES,
        .source_id = "test",
    };

    sink = ft_history_new(&kept, &history);
    ck_assert_ptr_nonnull(sink);
    pipeline =
        ft_pipeline_new(&config, leafspine(leaves, spines, leaves > LEAVES ? 1 : 2), &emitter);
    ck_assert_ptr_nonnull(pipeline);
    view = (struct ft_view){.pipeline = pipeline,
                            .stages = ft_pipeline_stages(pipeline),
                            .history = history,
                            .window_ms = WINDOW_MS};
}

static inline void open_all(void)
{
    open_fabric(LEAVES, 4);
}

static inline void close_all(void)
{
    ft_pipeline_free(pipeline);
    sink->free(sink->self);
    free(sink);
}

static inline int64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline size_t count_of(const char *text, size_t len, const char *what)
{
    const char *at = text;
    size_t n = 0, size = strlen(what);

    while (len && (at = memmem(at, len - (size_t)(at - text), what, size))) {
        n++;
        at += size;
    }
    return n;
}

/* Looks at the work of a step; may be NULL. */
static void (*after_step)(void);

/* Makes the answer, step by step; between is called after each. */
static inline void
answer(int (*handler)(void *arg, const struct ft_http_request *request, struct ft_writer *body),
       const struct ft_http_request *request, void (*between)(unsigned step), struct ft_writer *all)
{
    struct ft_writer body, part;
    unsigned steps = 0;
    int more = 1;

    ft_writer_init(&body, 1 << 20);
    ck_assert_int_eq(handler(&view, request, &body), 200);
    ck_assert_uint_eq(body.len, 0);
    ft_writer_init(&part, 64 << 20);
    while (more > 0) {
        int64_t start = cpu_ns();

        ft_writer_reset(&part);
        more = slices.more(slices.arg, &part);
        ck_assert_int_ge(more, 0);
        ck_assert(ft_writer_ok(&part));
        ck_assert_int_lt(cpu_ns() - start, STEP_CPU_NS);
        ck_assert_uint_le(count_of((char *)part.bytes, part.len, "\"schema\":"), RECORDS_MAX);
        ck_assert_uint_le(part.len, BYTES_MAX);
        if (after_step)
            after_step();
        ft_write_bytes(all, part.bytes, part.len);
        if (between)
            between(steps);
        ck_assert_uint_lt(++steps, 100000);
    }
    slices.free(slices.arg);
    ft_writer_free(&part);
    ft_writer_free(&body);
    ck_assert(ft_writer_ok(all));
}

#endif

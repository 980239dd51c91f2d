// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/sink_exec.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"

#define NS_PER_MS 1000000
/* Of all records that wait. */
#define QUEUE_BYTES (4u << 20)
#define TEXT_BYTES  (FT_LAUNCH_SAID + 64)

struct call {
    struct call *next;
    size_t len;
    char json[]; /* a line with its newline */
};

struct exec_sink {
    struct ft_sink_exec_config config;
    char *program;
    struct ft_watch *ended, *next; /* ended NULL: the launcher is gone */
    struct call *first, **last;
    size_t waiting, bytes;
    bool runs;
    bool begun; /* ever */
    struct ft_mono begun_at;
    uint64_t received, done, failed, refused, ends[FT_LAUNCH_UNBORN + 1];
};

static void report(const struct exec_sink *s, const char *text)
{
    s->config.on_failure(s->config.arg, s->program, text);
}

static void drop_first(struct exec_sink *s)
{
    struct call *c = s->first;

    s->first = c->next;
    if (!s->first)
        s->last = &s->first;
    s->waiting--;
    s->bytes -= c->len;
    free(c);
}

static void lose_launcher(struct exec_sink *s)
{
    s->failed += s->runs;
    s->runs = false;
    while (s->first) {
        drop_first(s);
        s->failed++;
    }
    ft_watch_free(s->ended);
    s->ended = NULL;
    report(s,
           "its launcher has ended; diagnoses are published and nothing is called until a restart");
}

/* When the next call may begin, from now. */
static int64_t due_ns(const struct exec_sink *s)
{
    int64_t gone = s->begun ? ft_mono_since_ns(ft_mono_now(), s->begun_at) : INT64_MAX;

    return gone >= s->config.interval_ns ? 0 : s->config.interval_ns - gone;
}

static void advance(struct exec_sink *s)
{
    while (s->ended && !s->runs && s->first) {
        int64_t wait_ns = due_ns(s);
        char text[TEXT_BYTES];
        int rc;

        if (wait_ns > 0) {
            ft_watch_once_arm(s->next, wait_ns);
            return;
        }
        rc = ft_launcher_run(s->config.launcher, s->first->json, s->first->len);
        s->begun = s->runs = true;
        s->begun_at = ft_mono_now();
        drop_first(s);
        if (rc == 0)
            return;
        if (rc == -EPIPE) {
            lose_launcher(s);
            return;
        }
        s->runs = false;
        s->failed++;
        snprintf(text, sizeof(text), "not called: %s", strerror(-rc));
        report(s, text);
    }
}

static void on_next(void *arg)
{
    advance(arg);
}

static void report_end(const struct exec_sink *s, const struct ft_launched *end)
{
    const char *separator = *end->said ? ": " : "";
    char text[TEXT_BYTES];

    switch (end->end) {
    case FT_LAUNCH_DONE:
        return;
    case FT_LAUNCH_STATUS:
        snprintf(text, sizeof(text), "exit status %d%s%s", end->code, separator, end->said);
        break;
    case FT_LAUNCH_SIGNAL:
        snprintf(text, sizeof(text), "killed by signal %d%s%s", end->code, separator, end->said);
        break;
    case FT_LAUNCH_TIMEOUT:
        snprintf(text, sizeof(text), "killed: its time was over%s%s", separator, end->said);
        break;
    case FT_LAUNCH_UNBORN:
        snprintf(text, sizeof(text), "not started: %s", strerror(end->code));
        break;
    }
    report(s, text);
}

static void on_ended(void *arg)
{
    struct exec_sink *s = arg;
    struct ft_launched end;
    int rc = ft_launcher_take(s->config.launcher, &end);

    if (rc == -EAGAIN)
        return;
    if (rc || (unsigned)end.end > FT_LAUNCH_UNBORN) {
        lose_launcher(s);
        return;
    }
    s->runs = false;
    if (end.end == FT_LAUNCH_DONE)
        s->done++;
    else
        s->ends[end.end]++;
    report_end(s, &end);
    advance(s);
}

static void write_record(void *self, const struct ft_published *out)
{
    struct exec_sink *s = self;
    struct call *c;

    if (out->record->kind_case != FABRICTRACE__RECORD__KIND_DIAGNOSIS)
        return;
    s->received++;
    if (out->json_len == 0 || !s->ended) {
        s->failed++;
        return;
    }
    c = s->waiting < s->config.queue_max && s->bytes + out->json_len < QUEUE_BYTES
            ? malloc(sizeof(*c) + out->json_len + 1)
            : NULL;
    if (!c) {
        s->refused++;
        return;
    }
    memcpy(c->json, out->json, out->json_len);
    c->json[out->json_len] = '\n';
    c->len = out->json_len + 1;
    c->next = NULL;
    *s->last = c;
    s->last = &c->next;
    s->waiting++;
    s->bytes += c->len;
    advance(s);
}

/* At the end of the daemon what waits is still called, while there is time. */
static int flush(void *self, int64_t timeout_ns)
{
    struct exec_sink *s = self;
    struct ft_mono begun = ft_mono_now();

    if (timeout_ns <= 0)
        return 0;
    while (s->ended && (s->runs || s->first)) {
        int64_t left_ns = timeout_ns - ft_mono_since_ns(ft_mono_now(), begun);
        int64_t wait_ns = s->runs || due_ns(s) > left_ns ? left_ns : due_ns(s);
        struct pollfd ended = {ft_launcher_fd(s->config.launcher), POLLIN, 0};

        if (left_ns <= 0)
            return -ETIMEDOUT;
        if (poll(&ended, 1, (int)(wait_ns / NS_PER_MS) + 1) > 0)
            on_ended(s);
        else
            advance(s);
    }
    return 0;
}

static void stats(void *self, struct ft_sink_stats *out)
{
    const struct exec_sink *s = self;

    *out = (struct ft_sink_stats){.received = s->received,
                                  .processed = s->done,
                                  .pending = s->waiting + s->runs,
                                  .failed = s->failed,
                                  .refused = s->refused,
                                  .drop_count = 4,
                                  .drops = {{"exit_status", s->ends[FT_LAUNCH_STATUS]},
                                            {"signal", s->ends[FT_LAUNCH_SIGNAL]},
                                            {"timeout", s->ends[FT_LAUNCH_TIMEOUT]},
                                            {"not_started", s->ends[FT_LAUNCH_UNBORN]}}};
}

static void free_sink(void *self)
{
    struct exec_sink *s = self;

    while (s->first)
        drop_first(s);
    ft_watch_free(s->ended);
    ft_watch_free(s->next);
    ft_launcher_free(s->config.launcher);
    free(s->program);
    free(s);
}

struct ft_sink *ft_sink_exec_new(struct ft_loop *loop, const struct ft_sink_exec_config *config)
{
    struct exec_sink *s = calloc(1, sizeof(*s));
    struct ft_sink *sink = calloc(1, sizeof(*sink));

    if (!s || !sink) {
        free(s);
        free(sink);
        ft_launcher_free(config->launcher);
        return NULL;
    }
    s->config = *config;
    s->last = &s->first;
    s->program = strdup(config->program);
    s->ended =
        ft_watch_stage(ft_watch_fd(loop, ft_launcher_fd(config->launcher), on_ended, s), "exec");
    s->next = ft_watch_stage(ft_watch_once(loop, on_next, s), "exec");
    if (!s->ended || !s->next || !s->program) {
        free_sink(s);
        free(sink);
        return NULL;
    }
    *sink = (struct ft_sink){.name = "exec",
                             .write = write_record,
                             .flush = flush,
                             .stats = stats,
                             .free = free_sink,
                             .self = s};
    return sink;
}

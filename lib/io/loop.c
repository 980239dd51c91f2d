// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"

#define TROUBLE_NS (INT64_C(60) * 1000000000)

struct stage {
    const char *name;
    int64_t busy_ns;
};

struct ft_loop {
    struct event_base *base;
    struct event *sigterm, *sigint, *sighup;
    struct ft_watch *watchdog;
    void (*on_reload)(void *arg);
    bool (*on_stop)(void *arg);
    void *arg;
    bool stopping;
    int code;
    void (*trouble)(const char *text);
    struct ft_log_limit trouble_limit;
    int64_t longest_ns, busy_ns;
    uint64_t slow;
    struct stage stages[FT_LOOP_STAGES];
    size_t stage_count;
};

struct ft_watch {
    struct ft_loop *loop;
    struct event *event;
    void (*call)(void *arg);
    void *arg;
    size_t stage;
};

static struct timeval timeval_of(int64_t ns)
{
    if (ns < 0)
        ns = 0;
    return (struct timeval){.tv_sec = ns / 1000000000, .tv_usec = ns % 1000000000 / 1000};
}

struct ft_loop *ft_loop_new(void)
{
    struct ft_loop *loop = calloc(1, sizeof(*loop));

    if (!loop)
        return NULL;
    loop->base = event_base_new();
    if (!loop->base) {
        free(loop);
        return NULL;
    }
    loop->stages[0].name = "other";
    loop->stage_count = 1;
    /* A peer that closes its socket must cost an error, not the process. */
    signal(SIGPIPE, SIG_IGN);
    ft_journal_open();
    return loop;
}

void ft_loop_free(struct ft_loop *loop)
{
    struct event *signals[3];

    if (!loop)
        return;
    ft_watch_free(loop->watchdog);
    signals[0] = loop->sigterm;
    signals[1] = loop->sigint;
    signals[2] = loop->sighup;
    for (int i = 0; i < 3; i++)
        if (signals[i])
            event_free(signals[i]);
    /* Callbacks that were deferred still hold what was freed before, and so does what ends it. */
    for (int i = 0; i < 2; i++)
        event_base_loop(loop->base, EVLOOP_NONBLOCK);
    event_base_free(loop->base);
    free(loop);
}

struct event_base *ft_loop_base(struct ft_loop *loop)
{
    return loop->base;
}

static size_t stage_of(struct ft_loop *loop, const char *name)
{
    size_t i = 1;

    while (i < loop->stage_count && strcmp(loop->stages[i].name, name) != 0)
        i++;
    if (i == FT_LOOP_STAGES)
        return 0;
    if (i == loop->stage_count)
        loop->stages[loop->stage_count++].name = name;
    return i;
}

static void count_step(struct ft_loop *loop, size_t stage, struct ft_mono start)
{
    int64_t ns = ft_mono_since_ns(ft_mono_now(), start);

    loop->stages[stage].busy_ns += ns;
    loop->busy_ns += ns;
    if (ns > loop->longest_ns)
        loop->longest_ns = ns;
    loop->slow += ns > FT_LOOP_SLOW_NS;
}

void ft_loop_step(struct ft_loop *loop, const char *stage, struct ft_mono start)
{
    count_step(loop, stage ? stage_of(loop, stage) : 0, start);
}

const char *ft_loop_stage(const struct ft_loop *loop, size_t i, int64_t *busy_ns)
{
    if (i >= loop->stage_count)
        return NULL;
    *busy_ns = loop->stages[i].busy_ns;
    return loop->stages[i].name;
}

int64_t ft_loop_longest_ns(const struct ft_loop *loop)
{
    return loop->longest_ns;
}

int64_t ft_loop_busy_ns(const struct ft_loop *loop)
{
    return loop->busy_ns;
}

uint64_t ft_loop_slow(const struct ft_loop *loop)
{
    return loop->slow;
}

static void handle_stop(evutil_socket_t number, short what, void *arg)
{
    struct ft_loop *loop = arg;
    struct ft_mono start = ft_mono_now();
    bool now = loop->stopping;

    (void)number;
    (void)what;
    loop->stopping = true;
    if (!now) {
        ft_notify_stopping();
        now = !loop->on_stop || loop->on_stop(loop->arg);
    }
    if (now)
        ft_loop_exit(loop, 0);
    count_step(loop, 0, start);
}

static void handle_reload(evutil_socket_t number, short what, void *arg)
{
    struct ft_loop *loop = arg;
    struct ft_mono start = ft_mono_now();

    (void)number;
    (void)what;
    if (!loop->on_reload || loop->stopping)
        return;
    ft_notify_reloading();
    loop->on_reload(loop->arg);
    ft_notify_ready();
    count_step(loop, 0, start);
}

static struct event *watch_signal(struct ft_loop *loop, int number, event_callback_fn call)
{
    struct event *event = evsignal_new(loop->base, number, call, loop);

    if (event)
        event_add(event, NULL);
    return event;
}

void ft_loop_on_signals(struct ft_loop *loop, void (*on_reload)(void *arg),
                        bool (*on_stop)(void *arg), void *arg)
{
    loop->on_reload = on_reload;
    loop->on_stop = on_stop;
    loop->arg = arg;
    if (!loop->sigterm)
        loop->sigterm = watch_signal(loop, SIGTERM, handle_stop);
    if (!loop->sigint)
        loop->sigint = watch_signal(loop, SIGINT, handle_stop);
    if (!loop->sighup)
        loop->sighup = watch_signal(loop, SIGHUP, handle_reload);
}

static void feed_watchdog(void *arg)
{
    (void)arg;
    ft_notify_watchdog();
}

int ft_loop_run(struct ft_loop *loop)
{
    int64_t watchdog_ns = ft_notify_watchdog_ns();

    if (watchdog_ns > 0 && !loop->watchdog)
        loop->watchdog = ft_watch_timer(loop, watchdog_ns / 2, feed_watchdog, NULL);
    loop->code = 0;
    if (event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0)
        return -EIO;
    return loop->code;
}

void ft_loop_on_trouble(struct ft_loop *loop, void (*trouble)(const char *text))
{
    loop->trouble = trouble;
    loop->trouble_limit = (struct ft_log_limit){.interval_ns = TROUBLE_NS, .burst = 1};
}

void ft_loop_trouble(struct ft_loop *loop, const char *format, ...)
{
    char text[256], reported[320];
    uint64_t held;
    va_list args;

    if (!loop->trouble || !ft_log_limit_pass(&loop->trouble_limit, ft_mono_now(), &held))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(reported, sizeof(reported), "%s (%" PRIu64 " more held back)", text, held);
    loop->trouble(reported);
}

void ft_loop_exit(struct ft_loop *loop, int code)
{
    loop->code = code;
    event_base_loopbreak(loop->base);
}

static void run_watch(evutil_socket_t fd, short what, void *arg)
{
    struct ft_watch *watch = arg;
    struct ft_loop *loop = watch->loop;
    size_t stage = watch->stage;
    struct ft_mono start = ft_mono_now();

    (void)fd;
    (void)what;
    /* The callback may free the watch. */
    watch->call(watch->arg);
    count_step(loop, stage, start);
}

static struct ft_watch *watch_new(struct ft_loop *loop, int fd, short what, void (*call)(void *arg),
                                  void *arg)
{
    struct ft_watch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return NULL;
    watch->loop = loop;
    watch->call = call;
    watch->arg = arg;
    watch->event = event_new(loop->base, fd, what, run_watch, watch);
    if (!watch->event) {
        free(watch);
        return NULL;
    }
    return watch;
}

static struct ft_watch *start(struct ft_watch *watch, const struct timeval *interval)
{
    if (watch && event_add(watch->event, interval) < 0) {
        ft_watch_free(watch);
        return NULL;
    }
    return watch;
}

struct ft_watch *ft_watch_fd(struct ft_loop *loop, int fd, void (*on_ready)(void *arg), void *arg)
{
    return start(watch_new(loop, fd, EV_READ | EV_PERSIST, on_ready, arg), NULL);
}

void ft_watch_pause(struct ft_watch *watch)
{
    event_del(watch->event);
}

void ft_watch_resume(struct ft_watch *watch)
{
    event_add(watch->event, NULL);
}

struct ft_watch *ft_watch_timer(struct ft_loop *loop, int64_t interval_ns,
                                void (*on_tick)(void *arg), void *arg)
{
    struct timeval interval = timeval_of(interval_ns);

    return start(watch_new(loop, -1, EV_PERSIST, on_tick, arg), &interval);
}

struct ft_watch *ft_watch_once(struct ft_loop *loop, void (*on_tick)(void *arg), void *arg)
{
    return watch_new(loop, -1, 0, on_tick, arg);
}

void ft_watch_once_arm(struct ft_watch *watch, int64_t delay_ns)
{
    struct timeval delay = timeval_of(delay_ns);

    event_add(watch->event, &delay);
}

void ft_watch_once_disarm(struct ft_watch *watch)
{
    event_del(watch->event);
}

bool ft_watch_once_armed(const struct ft_watch *watch)
{
    return event_pending(watch->event, EV_TIMEOUT, NULL);
}

struct ft_watch *ft_watch_stage(struct ft_watch *watch, const char *stage)
{
    if (watch)
        watch->stage = stage_of(watch->loop, stage);
    return watch;
}

void ft_watch_free(struct ft_watch *watch)
{
    if (!watch)
        return;
    event_free(watch->event);
    free(watch);
}

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_LOOP_H
#define FT_IO_LOOP_H
/*
 * The one event loop of a daemon (libevent): descriptors, timers, signals, and systemd's notify
 * protocol (READY, STATUS, RELOADING, STOPPING, WATCHDOG at half its interval; nothing when not
 * under systemd). SIGTERM and SIGINT end the loop after on_stop; SIGHUP calls on_reload; SIGPIPE is
 * ignored. Where stderr is the journal, messages of the log become entries with fields from
 * ft_loop_new() on (lib/base/log.h). A step is one callback: while it runs nothing else does, so
 * the longest is a metric. Thread: the loop's own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"

struct ft_loop;
struct ft_watch;
struct event_base;

/* NULL without memory. Free every watch and adapter of the loop before the loop. */
struct ft_loop *ft_loop_new(void);
void ft_loop_free(struct ft_loop *loop);

/* For adapters of lib/io alone. */
struct event_base *ft_loop_base(struct ft_loop *loop);

/* For adapters whose callbacks are no watch's: a step of a stage that began at `start` has ended.
 * Stages are named by literals; NULL: that of watches that nobody named. */
void ft_loop_step(struct ft_loop *loop, const char *stage, struct ft_mono start);

/* The longest step so far, and how many took more than FT_LOOP_SLOW_NS. */
#define FT_LOOP_SLOW_NS INT64_C(100000000)
int64_t ft_loop_longest_ns(const struct ft_loop *loop);
uint64_t ft_loop_slow(const struct ft_loop *loop);

/* Time spent in steps since the start: nobody else could be served in it. */
int64_t ft_loop_busy_ns(const struct ft_loop *loop);

/* The time of them by stage: the i-th stage's name, NULL behind the last. The first is that of all
 * watches that nobody named, and of stages over FT_LOOP_STAGES. */
#define FT_LOOP_STAGES 16
const char *ft_loop_stage(const struct ft_loop *loop, size_t i, int64_t *busy_ns);

/* Either may be NULL. on_stop returns true when the loop may end now, false when it will call
 * ft_loop_exit() itself once its work is flushed; a second signal ends at once. The service manager
 * hears of both: RELOADING before on_reload and READY after it, STOPPING before on_stop. */
void ft_loop_on_signals(struct ft_loop *loop, void (*on_reload)(void *arg),
                        bool (*on_stop)(void *arg), void *arg);

/* Runs until ft_loop_exit(). Returns its code, -EIO when the kernel refuses to wait. */
int ft_loop_run(struct ft_loop *loop);
void ft_loop_exit(struct ft_loop *loop, int code);

/* Where something continues in spite of trouble (no descriptors, say): trouble is logged at most
 * once a minute, with how often it came meanwhile. */
void ft_loop_on_trouble(struct ft_loop *loop, void (*trouble)(const char *text));
void ft_loop_trouble(struct ft_loop *loop, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Calls on_ready when fd can be read. The descriptor stays the caller's, open until the watch is
 * freed. */
struct ft_watch *ft_watch_fd(struct ft_loop *loop, int fd, void (*on_ready)(void *arg), void *arg);
void ft_watch_pause(struct ft_watch *watch);
void ft_watch_resume(struct ft_watch *watch);

/* Calls on_tick every interval_ns. Every watch is NULL without memory. */
struct ft_watch *ft_watch_timer(struct ft_loop *loop, int64_t interval_ns,
                                void (*on_tick)(void *arg), void *arg);

/* A timer that fires once, delay_ns from each call of ft_watch_once_arm(). */
struct ft_watch *ft_watch_once(struct ft_loop *loop, void (*on_tick)(void *arg), void *arg);
void ft_watch_once_arm(struct ft_watch *watch, int64_t delay_ns);
void ft_watch_once_disarm(struct ft_watch *watch);
bool ft_watch_once_armed(const struct ft_watch *watch);

/* Steps of the watch count for this stage. Takes NULL. Returns the watch. */
struct ft_watch *ft_watch_stage(struct ft_watch *watch, const char *stage);

/* Takes NULL. A watch may be freed from its own callback. */
void ft_watch_free(struct ft_watch *watch);

/* Tell the service manager; nothing without one. A program calls ready once it serves. */
void ft_notify_ready(void);
void ft_notify_reloading(void);
void ft_notify_stopping(void);
void ft_notify_watchdog(void);
void ft_notify_status(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Where stderr is the journal: ft_log_about() sends entries to it. ft_loop_new() calls it. */
void ft_journal_open(void);

/* The service manager's watchdog interval for this process, 0 when there is none. */
int64_t ft_notify_watchdog_ns(void);

/* How many sockets it bound and hands over (sd_listen_fds(3)); they are the descriptors from
 * FT_NOTIFY_SOCKETS on. */
#define FT_NOTIFY_SOCKETS 3
unsigned ft_notify_sockets(void);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/loop.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/unit/unit.h"

#define MS INT64_C(1000000)

static struct ft_loop *loop;
static int ticks, reloads, stops;
static int pipe_fds[2];

static void tick(void *arg)
{
    (void)arg;
    if (++ticks == 5)
        ft_loop_exit(loop, 7);
}

static void count_once(void *arg)
{
    ++*(int *)arg;
}

START_TEST(timers_fire_as_asked)
{
    struct ft_watch *timer, *once;
    struct ft_mono start = ft_mono_now();
    int fired = 0;

    loop = ft_loop_new();
    timer = ft_watch_timer(loop, 10 * MS, tick, NULL);
    once = ft_watch_once(loop, count_once, &fired);
    ck_assert(!ft_watch_once_armed(once));
    ft_watch_once_arm(once, 1 * MS);
    ck_assert(ft_watch_once_armed(once));
    ck_assert_int_eq(ft_loop_run(loop), 7);
    ck_assert_int_eq(ticks, 5);
    ck_assert_int_eq(fired, 1);
    ck_assert(!ft_watch_once_armed(once));
    ck_assert_int_ge(ft_mono_since_ns(ft_mono_now(), start), 40 * MS);
    ft_watch_free(timer);
    ft_watch_free(once);
    ft_loop_free(loop);
}
END_TEST

static void take_long(void *arg)
{
    struct ft_mono start = ft_mono_now();

    while (ft_mono_since_ns(ft_mono_now(), start) < FT_LOOP_SLOW_NS + MS)
        ;
    ft_loop_exit(arg, 0);
}

START_TEST(long_steps_are_reported)
{
    struct ft_watch *once;
    int64_t busy_ns = -1;

    loop = ft_loop_new();
    once = ft_watch_stage(ft_watch_once(loop, take_long, loop), "long");
    ck_assert_int_eq(ft_loop_longest_ns(loop), 0);
    ft_watch_once_arm(once, 0);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ck_assert_int_ge(ft_loop_longest_ns(loop), FT_LOOP_SLOW_NS + MS);
    ck_assert_uint_eq(ft_loop_slow(loop), 1);
    ck_assert_str_eq(ft_loop_stage(loop, 0, &busy_ns), "other");
    ck_assert_int_eq(busy_ns, 0);
    ck_assert_str_eq(ft_loop_stage(loop, 1, &busy_ns), "long");
    ck_assert_int_eq(busy_ns, ft_loop_longest_ns(loop));
    ck_assert_ptr_null(ft_loop_stage(loop, 2, &busy_ns));
    ft_watch_free(once);
    ft_loop_free(loop);
}
END_TEST

/* However many stages there are: what is over the places is told as other. */
START_TEST(stages_are_capped)
{
    static char names[FT_LOOP_STAGES + 4][8];
    int64_t busy_ns, sum_ns = 0;
    size_t count = 0;

    loop = ft_loop_new();
    for (int i = 0; i < FT_LOOP_STAGES + 4; i++) {
        snprintf(names[i], sizeof(names[i]), "s%d", i);
        ft_loop_step(loop, names[i], ft_mono_now());
    }
    for (; ft_loop_stage(loop, count, &busy_ns); count++)
        sum_ns += busy_ns;
    ck_assert_uint_eq(count, FT_LOOP_STAGES);
    ck_assert_int_eq(sum_ns, ft_loop_busy_ns(loop));
    ft_loop_free(loop);
}
END_TEST

static void read_pipe(void *arg)
{
    struct ft_watch **watch = arg;
    char c;

    ck_assert_int_eq(read(pipe_fds[0], &c, 1), 1);
    if (c == 'z') {
        ft_watch_free(*watch);
        *watch = NULL;
        ft_loop_exit(loop, 0);
    }
}

START_TEST(descriptor_stays_the_callers)
{
    struct ft_watch *watch;

    ck_assert_int_eq(pipe(pipe_fds), 0);
    loop = ft_loop_new();
    watch = ft_watch_fd(loop, pipe_fds[0], read_pipe, &watch);
    ck_assert_int_eq(write(pipe_fds[1], "abz", 3), 3);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ck_assert_ptr_null(watch);
    ck_assert_int_ge(fcntl(pipe_fds[0], F_GETFD), 0);
    ft_loop_free(loop);
}
END_TEST

static void on_reload(void *arg)
{
    (void)arg;
    reloads++;
    raise(SIGTERM);
}

static bool on_stop(void *arg)
{
    (void)arg;
    stops++;
    raise(SIGINT);
    return false;
}

static void send_hup(void *arg)
{
    (void)arg;
    raise(SIGHUP);
}

START_TEST(second_signal_ends_at_once)
{
    struct ft_watch *once;

    loop = ft_loop_new();
    ft_loop_on_signals(loop, on_reload, on_stop, NULL);
    once = ft_watch_once(loop, send_hup, NULL);
    ft_watch_once_arm(once, 0);
    raise(SIGPIPE);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ck_assert_int_eq(reloads, 1);
    ck_assert_int_eq(stops, 1);
    ft_watch_free(once);
    ft_loop_free(loop);
}
END_TEST

/* What a signal has the program do is a step as others. */
START_TEST(a_long_reload_is_reported)
{
    loop = ft_loop_new();
    ft_loop_on_signals(loop, take_long, NULL, loop);
    raise(SIGHUP);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ck_assert_int_ge(ft_loop_longest_ns(loop), FT_LOOP_SLOW_NS + MS);
    ck_assert_uint_eq(ft_loop_slow(loop), 1);
    ft_loop_free(loop);
}
END_TEST

static char troubles[4][320];
static int trouble_count;

static void take_trouble(const char *text)
{
    snprintf(troubles[trouble_count++ & 3], sizeof(troubles[0]), "%s", text);
}

/* Once a minute, with how often it came meanwhile; nobody has to listen. */
START_TEST(trouble_is_told_and_not_too_often)
{
    loop = ft_loop_new();
    ft_loop_trouble(loop, "nobody hears %d", 0);
    ft_loop_on_trouble(loop, take_trouble);
    for (int i = 1; i <= 1000; i++)
        ft_loop_trouble(loop, "no descriptor for '%s', %d", "x", i);
    ck_assert_int_eq(trouble_count, 1);
    ck_assert_str_eq(troubles[0], "no descriptor for 'x', 1 (0 more held back)");
    ft_loop_free(loop);
}
END_TEST

/* A descriptor that is none, and a file, which is always ready (epoll_ctl(2)). */
START_TEST(what_cannot_be_watched_is_refused)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    loop = ft_loop_new();
    ck_assert_ptr_null(ft_watch_fd(loop, 900, tick, NULL));
    ck_assert_ptr_null(ft_watch_fd(loop, fd, tick, NULL));
    close(fd);
    ft_loop_free(loop);
}
END_TEST

#ifdef HAVE_SYSTEMD
static void expect(int fd, const char *begin)
{
    char text[256];

    /* How often the watchdog was fed by then is for the machine to say. */
    do {
        ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

        ck_assert_int_ge(n, 0);
        text[n] = '\0';
    } while (strcmp(text, "WATCHDOG=1") == 0 && strcmp(begin, text) != 0);
    ck_assert_msg(strncmp(text, begin, strlen(begin)) == 0, "'%s', not '%s'", text, begin);
}

START_TEST(notifies_the_service_manager)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = 5};
    struct ft_watch *once;
    char pid[32], path[PATH_MAX];

    snprintf(address.sun_path, sizeof(address.sun_path), "./notify.%d", (int)getpid());
    unlink(address.sun_path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ck_assert_ptr_nonnull(realpath(address.sun_path, path));
    setenv("NOTIFY_SOCKET", path, 1);
    setenv("WATCHDOG_USEC", "20000", 1);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    ck_assert_int_eq(ft_notify_watchdog_ns(), 20 * MS);

    ft_notify_ready();
    ft_notify_status("%d flows", 64);
    expect(fd, "READY=1");
    expect(fd, "STATUS=64 flows");
    loop = ft_loop_new();
    ft_loop_on_signals(loop, on_reload, NULL, NULL);
    once = ft_watch_once(loop, send_hup, NULL);
    ft_watch_once_arm(once, 50 * MS);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    expect(fd, "WATCHDOG=1");
    expect(fd, "RELOADING=1\nMONOTONIC_USEC=");
    expect(fd, "READY=1");
    expect(fd, "STOPPING=1");
    ft_watch_free(once);
    ft_loop_free(loop);
    unlink(address.sun_path);
    close(fd);
}
END_TEST

/* Those of this process alone, which it does not hand on; and no watchdog of another one. */
START_TEST(sockets_are_handed_over)
{
    char pid[32];

    ck_assert_uint_eq(ft_notify_sockets(), 0);
    for (int fd = FT_NOTIFY_SOCKETS; fd < FT_NOTIFY_SOCKETS + 2; fd++)
        ck_assert_int_eq(dup2(0, fd), fd);
    setenv("LISTEN_FDS", "2", 1);
    setenv("LISTEN_PID", "1", 1);
    ck_assert_uint_eq(ft_notify_sockets(), 0);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    ck_assert_uint_eq(ft_notify_sockets(), 2);
    ck_assert_int_ne(fcntl(FT_NOTIFY_SOCKETS + 1, F_GETFD) & FD_CLOEXEC, 0);
    setenv("WATCHDOG_USEC", "20000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    ck_assert_int_eq(ft_notify_watchdog_ns(), 0);
}
END_TEST
#define NOTIFY_TESTS , notifies_the_service_manager, sockets_are_handed_over
#else
#define NOTIFY_TESTS
#endif

FT_UNIT_MAIN("loop", timers_fire_as_asked, long_steps_are_reported, stages_are_capped,
             descriptor_stays_the_callers, second_signal_ends_at_once, a_long_reload_is_reported,
             trouble_is_told_and_not_too_often, what_cannot_be_watched_is_refused NOTIFY_TESTS)

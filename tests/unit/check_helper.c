// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define S INT64_C(1000000000)

static struct ft_loop *loop;
static struct ft_helper_result got;
static char out[FT_HELPER_OUT_BYTES + 1], err[FT_HELPER_ERR_BYTES + 1];

static void done(void *arg, const struct ft_helper_result *result)
{
    (void)arg;
    got = *result;
    snprintf(out, sizeof(out), "%s", result->out);
    snprintf(err, sizeof(err), "%s", result->err);
    ft_loop_exit(loop, 0);
}

/* Runs a script and waits for its end. */
static void run(char *script, int64_t timeout_ns)
{
    char shell[] = "/bin/sh", option[] = "-c", name[] = "x", arg[] = "$(touch here); rm -r *";
    char *const argv[] = {shell, option, script, name, arg, NULL};
    struct ft_helper *helper;

    loop = ft_loop_new();
    ck_assert_int_eq(ft_helper_start(loop, argv, timeout_ns, done, NULL, &helper), 0);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ft_helper_free(helper);
    ft_loop_free(loop);
}

START_TEST(what_it_writes_and_how_it_ends_is_heard)
{
    run((char[]){"echo Ethernet4; echo no route >&2; exit 3"}, 60 * S);
    ck_assert_int_eq(got.end, FT_HELPER_EXITED);
    ck_assert_int_eq(got.status, 3);
    ck_assert(!got.too_long);
    ck_assert_str_eq(out, "Ethernet4\n");
    ck_assert_str_eq(err, "no route\n");
    run((char[]){"kill -TERM $$"}, 60 * S);
    ck_assert_int_eq(got.end, FT_HELPER_SIGNALLED);
    ck_assert_int_eq(got.status, SIGTERM);
}
END_TEST

START_TEST(arguments_are_no_commands)
{
    run((char[]){"printf %s \"$1\""}, 60 * S);
    ck_assert_str_eq(out, "$(touch here); rm -r *");
}
END_TEST

/* Of the process itself nothing is left but its user. The shell opens the folder that it lists
 * as 3.
 */
START_TEST(neither_environment_nor_descriptors_are_handed_on)
{
    int secret = fcntl(0, F_DUPFD, 50);

    ck_assert_int_ge(secret, 50);
    setenv("FT_SECRET", "x", 1);
    signal(SIGPIPE, SIG_IGN);
    run((char[]){"env | grep -v ^PWD= | grep -v ^_= | grep -v ^OLDPWD= | cut -d= -f1 | sort; "
                 "cd /proc/$$/fd && echo *; grep SigIgn /proc/$$/status | tail -c 5; pwd"},
        60 * S);
    signal(SIGPIPE, SIG_DFL);
    close(secret);
    ck_assert_msg(strncmp(out, "HOME\nLC_ALL\nPATH\n0 1 2 3\n0000", 29) == 0, "%s", out);
}
END_TEST

START_TEST(too_much_is_said_to_be_too_much)
{
    run((char[]){"head -c 4096 /dev/zero | tr '\\0' x"}, 60 * S);
    ck_assert(!got.too_long);
    ck_assert_uint_eq(strlen(out), 4096);
    run((char[]){"head -c 4097 /dev/zero | tr '\\0' x"}, 60 * S);
    ck_assert(got.too_long);
}
END_TEST

/* Who writes without an end fills the pipe and waits; who leaves others behind loses them. */
START_TEST(its_time_is_limited_and_its_children_end_with_it)
{
    char path[] = "/tmp/check_helper.XXXXXX", script[128];
    FILE *file;
    int pid = 0, fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    run((char[]){"yes"}, S / 5);
    ck_assert_int_eq(got.end, FT_HELPER_TIMED_OUT);
    snprintf(script, sizeof(script), "sleep 1000 & echo $! > %s; exit 0", path);
    run(script, 60 * S);
    ck_assert_int_eq(got.end, FT_HELPER_EXITED);
    file = fopen(path, "r");
    ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    unlink(path);
    /* It is killed; whoever adopts it waits for it sooner or later. */
    for (int i = 0; i < 6000 && kill(pid, 0) == 0; i++) {
        char line[64] = "", status[64];

        snprintf(status, sizeof(status), "/proc/%d/stat", pid);
        file = fopen(status, "r");
        if (!file || !fgets(line, sizeof(line), file) || strstr(line, ") Z"))
            pid = 0;
        if (file)
            fclose(file);
        if (!pid)
            return;
        usleep(10000);
    }
    ck_assert_int_ne(kill(pid, 0), 0);
}
END_TEST

START_TEST(what_cannot_be_started_is_refused)
{
    char nothing[] = "/nonexistent/oracle", folder[] = "/etc/passwd";
    struct ft_helper *helper = NULL;

    loop = ft_loop_new();
    ck_assert_int_eq(ft_helper_start(loop, (char *const[]){nothing, NULL}, S, done, NULL, &helper),
                     -ENOENT);
    ck_assert_int_eq(ft_helper_start(loop, (char *const[]){folder, NULL}, S, done, NULL, &helper),
                     -EACCES);
    ck_assert_ptr_null(helper);
    ft_loop_free(loop);
}
END_TEST

#define DESCRIPTORS 1000

static int count_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < DESCRIPTORS; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* The number of the next descriptor, behind which all are free: what this process has inherited
 * has holes, which are filled. */
static int fill_holes(void)
{
    int highest = 0, next;

    for (int fd = 0; fd < DESCRIPTORS; fd++)
        highest = fcntl(fd, F_GETFD) >= 0 ? fd : highest;
    while ((next = dup(0)) < highest)
        ck_assert_int_ge(next, 0);
    close(next);
    return next;
}

/* Both its pipes, of which the child's ends are closed before its pidfd is opened. */
#define NEEDED 4

/* Nothing of it is left then: neither descriptors nor a process that nobody waits for. */
START_TEST(without_descriptors_it_is_refused)
{
    char sleeper[] = "/bin/sleep", seconds[] = "1000";
    struct ft_helper *helper = NULL;
    struct rlimit limit;
    int next, before;

    loop = ft_loop_new();
    next = fill_holes();
    before = count_descriptors();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (rlim_t left = 0; left <= NEEDED; left++) {
        limit.rlim_cur = (rlim_t)next + left;
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        ck_assert_int_eq(ft_helper_start(loop, (char *const[]){sleeper, seconds, NULL}, 60 * S,
                                         done, NULL, &helper),
                         left < NEEDED ? -EMFILE : 0);
        if (left == NEEDED)
            ft_helper_free(helper);
        limit.rlim_cur = limit.rlim_max;
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        ck_assert_int_eq(count_descriptors(), before);
        ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
        ck_assert_int_eq(errno, ECHILD);
    }
    ft_loop_free(loop);
}
END_TEST

/* One that is freed while it runs is not waited for. */
START_TEST(it_can_be_ended_at_any_time)
{
    char sleeper[] = "/bin/sleep", seconds[] = "1000";
    struct ft_helper *helper;

    loop = ft_loop_new();
    ck_assert_int_eq(
        ft_helper_start(loop, (char *const[]){sleeper, seconds, NULL}, 60 * S, done, NULL, &helper),
        0);
    ft_helper_free(helper);
    ft_loop_free(loop);
}
END_TEST

FT_UNIT_MAIN("helper", what_it_writes_and_how_it_ends_is_heard, arguments_are_no_commands,
             neither_environment_nor_descriptors_are_handed_on, too_much_is_said_to_be_too_much,
             its_time_is_limited_and_its_children_end_with_it, what_cannot_be_started_is_refused,
             without_descriptors_it_is_refused, it_can_be_ended_at_any_time)

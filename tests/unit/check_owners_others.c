// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/owners.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/privilege.h"
#include "tests/unit/unit.h"

/* Processes of others, as an agent with less than all privileges sees them. What takes a privilege
 * that this program lacks is skipped, and then so is the program (77). */

/* The first process is another's by then. */
static bool become_other(void)
{
    if (geteuid() == 0 && setresuid(65534, 65534, 65534))
        return false;
    return kill(1, 0) && errno == EPERM;
}

static bool become_tracer(void)
{
    char error[128];

    return geteuid() == 0 &&
           ft_privilege_drop("nobody", FT_SYS_PTRACE, error, sizeof(error)) == 0 &&
           ft_privilege_held() == FT_SYS_PTRACE;
}

/* As somebody who may not look: at the first process of this machine, then with a /proc that hides
 * it. */
START_TEST(what_may_not_be_read_is_reported)
{
    struct ft_owners_config config = {.root = "/proc", .owners_max = 16};
    struct ft_owners_stats stats;
    struct ft_owners *o;

    ck_assert(become_other());
    o = ft_owners_new(&config);
    ck_assert_ptr_nonnull(o);
    ft_owners_round(o, UINT64_MAX);
    ck_assert_ptr_nonnull(ft_owners_get(o, 1));
    ft_owners_stats(o, &stats);
    ck_assert_uint_eq(stats.known, 1);
    ck_assert_uint_eq(stats.denied, 1);
    ck_assert_uint_eq(stats.hidden, 0);
    ft_owners_free(o);
    config.root = "/nowhere";
    o = ft_owners_new(&config);
    ft_owners_round(o, UINT64_MAX);
    ck_assert_ptr_null(ft_owners_get(o, 1));
    ck_assert_ptr_null(ft_owners_get(o, INT_MAX));
    ft_owners_stats(o, &stats);
    ck_assert_uint_eq(stats.known, 0);
    ck_assert_uint_eq(stats.hidden, 1);
    ft_owners_free(o);
}
END_TEST

/* As another user with CAP_SYS_PTRACE alone, who may not open the file. */
START_TEST(who_may_trace_reads_the_environment)
{
    struct ft_owners_config config = {
        .root = "/proc", .job_variable = "FT_TEST_JOB", .owners_max = 16};
    const struct ft_owner *owner;
    struct ft_owners_stats stats;
    char wait_for_it;
    struct ft_owners *o;
    int fds[2], hold[2];
    pid_t child;

    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(pipe(hold), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        /* It waits without another execve(2), in which it would have no environment. */
        char *const command[] = {"sh", "-c", "echo; read line", NULL};
        char *const environment[] = {"PATH=/usr/bin:/bin", "FT_TEST_JOB=job-7", NULL};

        dup2(hold[0], 0);
        dup2(fds[1], 1);
        close(hold[1]);
        execve("/bin/sh", command, environment);
        _exit(1);
    }
    /* Its environment is the new one from here on. */
    ck_assert_int_eq(read(fds[0], &wait_for_it, 1), 1);
    ck_assert(become_tracer());
    o = ft_owners_new(&config);
    ck_assert_ptr_nonnull(o);
    ft_owners_round(o, UINT64_MAX);
    owner = ft_owners_get(o, (uint32_t)child);
    ck_assert_ptr_nonnull(owner);
    ck_assert_str_eq(owner->job, "job-7");
    ft_owners_stats(o, &stats);
    ck_assert_uint_eq(stats.denied, 0);
    ft_owners_free(o);
}
END_TEST

/* Whether this can be become, as a child finds out. */
static bool can(bool (*become)(void))
{
    int status = 1;
    pid_t child = fork();

    if (child == 0)
        _exit(!become());
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    const struct {
        const TTest *test;
        bool (*become)(void);
        const char *missing_capabilities;
    } tests[] = {
        {what_may_not_be_read_is_reported, become_other, "a first process that is another user's"},
        {who_may_trace_reads_the_environment, become_tracer, "root with CAP_SYS_PTRACE"},
    };
    const TTest *runnable[sizeof(tests) / sizeof(tests[0])];
    size_t count = 0;
    int failed = EXIT_SUCCESS;

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        if (can(tests[i].become))
            runnable[count++] = tests[i].test;
        else
            printf("skipped: %s: needs %s\n", tests[i].test->name, tests[i].missing_capabilities);
    }
    if (count > 0)
        failed = ft_unit_run("owners_others", runnable, count);
    return failed ? failed : count < sizeof(tests) / sizeof(tests[0]) ? 77 : EXIT_SUCCESS;
}

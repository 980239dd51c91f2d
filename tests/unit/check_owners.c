// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/owners.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/report/flow.h"
#include "tests/unit/unit.h"

/* Ticks since boot at which every round begins. */
#define ROUND_TICKS 50000

static char root[64];

static void write_file(const char *pid, const char *name, const char *text, size_t len)
{
    char path[PATH_MAX];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", root, pid);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%s/%s", root, pid, name);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, len, f), len);
    fclose(f);
}

static void write_stat(const char *pid, const char *comm, unsigned start)
{
    char text[256];

    snprintf(text, sizeof(text),
             "%s (%s) S 1 7 7 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 %u 9000 200\n", pid, comm,
             start);
    write_file(pid, "stat", text, strlen(text));
}

static void drop(const char *pid)
{
    static const char *const names[] = {"stat", "environ", "cgroup", "status"};
    char path[PATH_MAX];

    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s/%s/%s", root, pid, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/%s", root, pid);
    rmdir(path);
}

static struct ft_owners *new_owners(const char *job_variable)
{
    const struct ft_owners_config config = {
        .root = root, .job_variable = job_variable, .owners_max = 16};
    struct ft_owners *o;

    snprintf(root, sizeof(root), "/tmp/fabrictrace-owners-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    o = ft_owners_new(&config);
    ck_assert_ptr_nonnull(o);
    ft_owners_round(o, ROUND_TICKS);
    return o;
}

static void end(struct ft_owners *o)
{
    drop("4121");
    rmdir(root);
    ft_owners_free(o);
}

START_TEST(a_number_given_to_another_process_is_another_owner)
{
    static const char slurm[] = "HOME=/root\0SLURM_JOB_ID=88\0X=1";
    struct ft_owners *o = new_owners(NULL);
    const struct ft_owner *owner;

    write_stat("4121", "a (b) c", 1000);
    write_file("4121", "environ", slurm, sizeof(slurm));
    owner = ft_owners_get(o, 4121);
    ck_assert_ptr_nonnull(owner);
    ck_assert_str_eq(owner->comm, "a (b) c");
    ck_assert_str_eq(owner->job, "88");
    ft_owners_round(o, ROUND_TICKS);
    write_stat("4121", "a (b) c", 2000);
    write_file("4121", "environ", "", 0);
    owner = ft_owners_get(o, 4121);
    ck_assert_uint_eq(owner->start_ticks, 2000);
    ck_assert_str_eq(owner->job, "");
    ft_owners_round(o, ROUND_TICKS);
    drop("4121");
    ck_assert_ptr_null(ft_owners_get(o, 4121));
    end(o);
}
END_TEST

START_TEST(a_dying_process_keeps_its_job)
{
    static const char slurm[] = "SLURM_JOB_ID=88";
    struct ft_owners *o = new_owners(NULL);

    write_stat("4121", "train.py", 1000);
    write_file("4121", "environ", slurm, sizeof(slurm));
    ck_assert_str_eq(ft_owners_get(o, 4121)->job, "88");
    /* A zombie is listed without an environment, and reports come many rounds apart. */
    write_file("4121", "environ", "", 0);
    for (int i = 0; i < 100; i++)
        ft_owners_round(o, ROUND_TICKS);
    ck_assert_str_eq(ft_owners_get(o, 4121)->job, "88");
    end(o);
}
END_TEST

START_TEST(what_is_reported_of_an_owner_outlasts_him)
{
    static const char slurm[] = "SLURM_JOB_ID=88";
    struct ft_flow_report report = {.pid = 4121, .ended = true};
    struct ft_owners *o = new_owners(NULL);
    struct ft_flow_record record;

    write_stat("4121", "train.py", 1000);
    write_file("4121", "environ", slurm, sizeof(slurm));
    ck_assert_ptr_nonnull(ft_owners_get(o, 4121));
    ft_owners_round(o, ROUND_TICKS);
    drop("4121");
    report.comm = ft_owners_last(o, 4121)->comm;
    report.job = ft_owners_last(o, 4121)->job;
    ft_report_flow(&report, "gpu01", "", &record);
    /* Another flow of his is not over yet; then comes one of somebody else. */
    ck_assert_ptr_null(ft_owners_get(o, 4121));
    write_stat("4122", "other.py", 2000);
    ck_assert_ptr_nonnull(ft_owners_get(o, 4122));
    ck_assert_str_eq(record.report.comm, "train.py");
    ck_assert_str_eq(record.report.job, "88");
    drop("4122");
    end(o);
}
END_TEST

START_TEST(the_configured_variable_comes_first)
{
    static const char both[] = "SLURM_JOB_ID=88\0XJOB=no\0JOB=train-7";
    struct ft_owners *o = new_owners("JOB");

    write_stat("4121", "train.py", 1);
    write_file("4121", "environ", both, sizeof(both));
    ck_assert_str_eq(ft_owners_get(o, 4121)->job, "train-7");
    end(o);
}
END_TEST

START_TEST(a_broken_stat_is_no_owner)
{
    struct ft_owners *o = new_owners(NULL);

    write_file("4121", "stat", "4121 (x) S 1 2", 14);
    ck_assert_ptr_null(ft_owners_get(o, 4121));
    write_file("4121", "stat", ")(", 2);
    ck_assert_ptr_null(ft_owners_get(o, 4121));
    end(o);
}
END_TEST

START_TEST(control_groups_name_jobs)
{
    static const struct {
        const char *path, *job;
    } cases[] = {
        {"0::/system.slice/slurmstepd.scope/job_4711/step_0/user\n", "4711"},
        {"4:memory:/slurm/uid_1000/job_12/step_batch\n", "12"},
        {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-"
         "pod0d1f3c2a_1111_2222_3333_0123456789ab.slice/cri-containerd-1.scope\n",
         "0d1f3c2a-1111-2222-3333-0123456789ab"},
        {"0::/kubepods/besteffort/pod0d1f3c2a-1111-2222-3333-0123456789ab/abc\n",
         "0d1f3c2a-1111-2222-3333-0123456789ab"},
        {"0::/user.slice/job_5/session-1.scope\n", ""},
        {"0::/kubepods/podshort\n", ""},
        {"0::/slurm/job_\n", ""},
        {"", ""},
    };
    char job[FT_OWNER_TEXT_BYTES];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ft_owner_job_of_cgroup(cases[i].path, job);
        ck_assert_str_eq(job, cases[i].job);
    }
}
END_TEST

/* Its number was listed for somebody else: whoever has it now was not there then. */
START_TEST(who_came_after_the_list_is_no_owner)
{
    struct ft_owners *o = new_owners(NULL);
    const struct ft_owner *owner;

    write_stat("4121", "new", ROUND_TICKS);
    ck_assert_ptr_null(ft_owners_get(o, 4121));
    write_stat("4121", "old", ROUND_TICKS - 1);
    owner = ft_owners_get(o, 4121);
    ck_assert_ptr_nonnull(owner);
    ck_assert_str_eq(owner->comm, "old");
    ck_assert(ft_owners_alive(o, owner));
    write_stat("4121", "new", ROUND_TICKS + 9);
    ck_assert(!ft_owners_alive(o, owner));
    /* What it had is gone with it: that was still its own, while nobody has looked again. */
    ck_assert_ptr_null(ft_owners_last(o, 4121));
    ft_owners_round(o, ROUND_TICKS + 20);
    ck_assert_str_eq(ft_owners_last(o, 4121)->comm, "old");
    ck_assert_str_eq(ft_owners_get(o, 4121)->comm, "new");
    ck_assert_ptr_null(ft_owners_last(o, 4121));
    ft_owners_round(o, ROUND_TICKS);
    ck_assert_ptr_null(ft_owners_get(o, 4121));
    drop("4121");
    end(o);
}
END_TEST

static void write_status(const char *pid, const char *process)
{
    char text[256];

    snprintf(text, sizeof(text), "Name:\tworker\nUmask:\t0022\nState:\tS\nTgid:\t%s\nPid:\t%s\n",
             process, pid);
    write_file(pid, "status", text, strlen(text));
}

/* NCCL makes its queue pairs in threads of their own, and the kernel lists those. */
START_TEST(the_owner_of_a_thread_is_its_process)
{
    static const char environment[] = "A=1\0SLURM_JOB_ID=88";
    struct ft_owners *o = new_owners(NULL);
    const struct ft_owner *owner;
    char status[PATH_MAX];

    write_stat("4121", "train.py", 1000);
    write_file("4121", "environ", environment, sizeof(environment));
    write_stat("4130", "NCCL Service 0", 2000);
    write_status("4130", "4121");
    owner = ft_owners_get(o, 4130);
    ck_assert_ptr_nonnull(owner);
    ck_assert_uint_eq(owner->process, 4121);
    ck_assert_str_eq(owner->comm, "train.py");
    ck_assert_str_eq(owner->job, "88");
    ck_assert_uint_eq(owner->start_ticks, 1000);
    ck_assert_uint_eq(ft_owners_get(o, 4121)->process, 4121);
    /* The thread is another's by now. */
    ft_owners_round(o, ROUND_TICKS);
    write_stat("4130", "NCCL Service 0", ROUND_TICKS);
    ck_assert_ptr_null(ft_owners_get(o, 4130));
    /* Its process ended, and both numbers were given away. */
    write_stat("4130", "other", 2000);
    write_stat("4121", "other", ROUND_TICKS + 1);
    ck_assert_ptr_null(ft_owners_get(o, 4130));
    /* The number is that of another process's thread. */
    ft_owners_round(o, ROUND_TICKS);
    write_stat("5000", "bench", 700);
    write_status("4130", "5000");
    owner = ft_owners_get(o, 4130);
    ck_assert_uint_eq(owner->process, 5000);
    ck_assert_str_eq(owner->comm, "bench");
    ck_assert_str_eq(owner->job, "");
    /* Whose thread it is cannot be read: it is no process of its own. */
    ft_owners_round(o, ROUND_TICKS);
    snprintf(status, sizeof(status), "%s/4130/status", root);
    ck_assert_int_eq(unlink(status), 0);
    ck_assert_int_eq(mkdir(status, 0700), 0);
    ck_assert_ptr_null(ft_owners_get(o, 4130));
    ck_assert_int_eq(rmdir(status), 0);
    drop("4121");
    drop("4130");
    drop("5000");
    end(o);
}
END_TEST

FT_UNIT_MAIN("owners", a_number_given_to_another_process_is_another_owner,
             a_dying_process_keeps_its_job, what_is_reported_of_an_owner_outlasts_him,
             the_configured_variable_comes_first, a_broken_stat_is_no_owner,
             control_groups_name_jobs, who_came_after_the_list_is_no_owner,
             the_owner_of_a_thread_is_its_process)

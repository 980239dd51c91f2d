// SPDX-License-Identifier: Apache-2.0
/* Descriptors that processes send in place of their memory, or with it, keep nobody:
 * agent/jobs/jobs.h. */
#include "config.h"

#include "agent/jobs/jobs.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/io/loop.h"
#include "tests/unit/jobs_rig.h"
#include "tests/unit/lingering.h"
#include "tests/unit/unit.h"

#define NS INT64_C(1000000000)

static struct ft_loop *loop;
static struct ft_jobs *jobs;
static char folder[] = "/tmp/check_jobs_sent-XXXXXX", path[64];

void __wrap_ft_uplink_record(struct ft_uplink *uplink, const Fabrictrace__Record *record);

void __wrap_ft_uplink_record(struct ft_uplink *uplink, const Fabrictrace__Record *record)
{
    (void)uplink, (void)record;
}

static void on_end(void *arg)
{
    (void)arg;
    ft_loop_exit(loop, 0);
}

static void run_for(int64_t ns)
{
    struct ft_watch *watch = ft_watch_once(loop, on_end, NULL);

    ck_assert_ptr_nonnull(watch);
    ft_watch_once_arm(watch, ns);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ft_watch_free(watch);
}

static void begin(size_t jobs_max)
{
    struct ft_jobs_config config = {.host = "gpu00",
                                    .jobs_max = jobs_max,
                                    .refresh_ns = 30 * NS,
                                    .hold_ns = NS,
                                    .quiet_ns = 60 * NS,
                                    .reports_per_s = 1000};
    char error[200];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/nccl.sock", folder);
    config.socket = path;
    loop = ft_loop_new();
    jobs = ft_jobs_new(loop, NULL, &config, error, sizeof(error));
    ck_assert_ptr_nonnull(jobs);
}

static void end(void)
{
    ft_jobs_free(jobs);
    ft_loop_free(loop);
    rmdir(folder);
}

static void say_hello(int fd, uint32_t version, const int *fds, size_t count)
{
    const struct __attribute__((packed)) {
        uint64_t magic;
        uint32_t version;
    } message = {htobe64(FT_SEGMENT_MAGIC), htobe32(version)};

    send_descriptors(fd, &message, sizeof(message), fds, count);
}

/* What the loop takes to run for a tenth of a second. */
static int64_t stood_ns(void)
{
    struct ft_mono began = ft_mono_now();

    run_for(NS / 10);
    return ft_mono_since_ns(ft_mono_now(), began);
}

#define SHORT_NS (LINGER_S * NS / 2)

START_TEST(a_socket_that_lingers_is_no_memory_and_keeps_nobody)
{
    int peers[4], fds[4], fd;

    begin(8);
    for (uint32_t version = FT_SEGMENT_VERSION; version <= FT_SEGMENT_VERSION + 1; version++)
        for (size_t count = 1; count <= 4; count += 3) {
            fd = connect_local(path);
            for (size_t i = 0; i < count; i++)
                fds[i] = lingering(&peers[i]);
            say_hello(fd, version, fds, count);
            ck_assert_int_lt(stood_ns(), SHORT_NS);
            ck_assert_uint_eq(ft_jobs_count(jobs), 0);
            close(fd);
            for (size_t i = 0; i < count; i++)
                close(peers[i]);
        }
    end();
}
END_TEST

/* It is not read before the connection is rejected, or ended. */
START_TEST(what_nobody_took_keeps_nobody)
{
    struct ft_segment *segment;
    int job, peer, late, other, sent;

    begin(2);
    job = connect_job(path, &segment);
    run_for(NS / 100);
    ck_assert_uint_eq(ft_jobs_count(jobs), 1);
    /* After its hello. */
    sent = lingering(&peer);
    send_descriptors(job, "", 1, &sent, 1);
    ck_assert_int_lt(stood_ns(), SHORT_NS);
    ck_assert_uint_eq(ft_jobs_count(jobs), 0);
    /* Where there is no room. */
    other = connect_job(path, &segment);
    run_for(NS / 100);
    late = connect_job(path, &segment);
    run_for(NS / 100);
    ck_assert_uint_eq(ft_jobs_count(jobs), 2);
    close(peer);
    close(job);
    sent = lingering(&peer);
    job = connect_local(path);
    say_hello(job, FT_SEGMENT_VERSION, &sent, 1);
    ck_assert_int_lt(stood_ns(), SHORT_NS);
    ck_assert_uint_eq(ft_jobs_count(jobs), 2);
    close(job);
    close(other);
    close(late);
    close(peer);
    end();
}
END_TEST

/* At the end of the agent they wait in the queues of connections that nobody accepted. */
START_TEST(what_waits_at_the_end_keeps_nobody)
{
    struct ft_mono began;
    int fd, peer, sent;

    begin(8);
    sent = lingering(&peer);
    fd = connect_local(path);
    say_hello(fd, FT_SEGMENT_VERSION, &sent, 1);
    began = ft_mono_now();
    end();
    ck_assert_int_lt(ft_mono_since_ns(ft_mono_now(), began), SHORT_NS);
    close(fd);
    close(peer);
}
END_TEST

/* Memory that comes with something else is nobody's hello. */
START_TEST(a_hello_has_one_descriptor)
{
    int fd, fds[2], peer;

    begin(8);
    fds[0] = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(ftruncate(fds[0], sizeof(struct ft_segment)), 0);
    ck_assert_int_eq(fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    fds[1] = lingering(&peer);
    fd = connect_local(path);
    say_hello(fd, FT_SEGMENT_VERSION, fds, 2);
    ck_assert_int_lt(stood_ns(), SHORT_NS);
    ck_assert_uint_eq(ft_jobs_count(jobs), 0);
    close(fd);
    close(peer);
    end();
}
END_TEST

FT_UNIT_MAIN("jobs_sent", a_hello_has_one_descriptor,
             a_socket_that_lingers_is_no_memory_and_keeps_nobody, what_nobody_took_keeps_nobody,
             what_waits_at_the_end_keeps_nobody)

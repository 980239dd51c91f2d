// SPDX-License-Identifier: Apache-2.0
/* Jobs that fill their rings faster than anyone reads keep neither the agent's loop nor the records
 * of another user: agent/jobs/jobs.h. */
#include "config.h"

#include "agent/jobs/jobs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/io/local_users.h"
#include "lib/io/loop.h"
#include "tests/unit/jobs_rig.h"
#include "tests/unit/unit.h"

#define HOSTILE 48
#define NS      INT64_C(1000000000)
/* Of the processor's time between two other things that the loop does; a step is to take less than
 * 10 ms, and sanitizers make it longer. */
#define LONGEST_NS INT64_C(40000000)

static struct ft_loop *loop;
static struct ft_jobs *jobs;
static char folder[] = "/tmp/check_jobs_steps-XXXXXX", path[64];
static uid_t user;
static struct ft_segment *hostile[HOSTILE], *honest;
static int fds[HOSTILE + 1];
static int64_t longest_ns, last_ns;
static _Atomic bool stop;
static uint64_t put, dropped;

int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *len);
void __wrap_ft_uplink_record(struct ft_uplink *uplink, const Fabrictrace__Record *record);

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
    int rc = __real_getsockopt(fd, level, option, value, len);

    if (rc == 0 && level == SOL_SOCKET && option == SO_PEERCRED)
        ((struct ucred *)value)->uid = user;
    return rc;
}

void __wrap_ft_uplink_record(struct ft_uplink *uplink, const Fabrictrace__Record *record)
{
    (void)uplink, (void)record;
}

static int64_t processor_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * NS + ts.tv_nsec;
}

static void on_tick(void *arg)
{
    int64_t now = processor_ns();

    (void)arg;
    if (last_ns && now - last_ns > longest_ns)
        longest_ns = now - last_ns;
    last_ns = now;
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

static void connect_as(uid_t uid, int i, struct ft_segment **segment)
{
    size_t before = ft_jobs_count(jobs);

    user = uid;
    fds[i] = connect_job(path, segment);
    while (ft_jobs_count(jobs) == before)
        run_for(NS / 1000);
    run_for(NS / 1000);
}

static void refill(struct ft_segment *s)
{
    for (int i = 0; i < FT_SEGMENT_RINGS; i++)
        atomic_store(&s->ring[i].head, atomic_load(&s->ring[i].tail) + FT_SEGMENT_SLOTS);
}

/* 10,000 transfers a second of an honest job, as far as its ring has room. */
static void fill_honest(struct ft_mono began)
{
    uint64_t due = (uint64_t)ft_mono_since_ns(ft_mono_now(), began) / 100000;
    struct ft_segment_ring *ring = &honest->ring[0];

    while (put + dropped < due) {
        uint64_t head = atomic_load(&ring->head);

        if (head - atomic_load(&ring->tail) >= FT_SEGMENT_SLOTS) {
            dropped++;
            continue;
        }
        honest->record[0][head % FT_SEGMENT_SLOTS] = (struct ft_segment_record){
            .kind = FT_SEGMENT_PROXY, .op = put / 64 + 1, .number = put / 64 + 1, .events = 1};
        atomic_store(&ring->head, head + 1);
        put++;
    }
}

static void *fill(void *arg)
{
    const struct timespec wait = {.tv_nsec = 200000};
    struct ft_mono began = ft_mono_now();

    (void)arg;
    while (!stop) {
        for (int i = 0; i < HOSTILE; i++)
            refill(hostile[i]);
        fill_honest(began);
        nanosleep(&wait, NULL);
    }
    return NULL;
}

static void begin(void)
{
    struct ft_jobs_config config = {.host = "gpu00", .jobs_max = 64, .refresh_ns = 30 * NS};
    char error[200];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/nccl.sock", folder);
    config.socket = path;
    config.hold_ns = NS / 50;
    config.quiet_ns = 60 * NS;
    config.reports_per_s = 1000;
    loop = ft_loop_new();
    jobs = ft_jobs_new(loop, NULL, &config, error, sizeof(error));
    ck_assert_ptr_nonnull(jobs);
    for (int i = 0; i < HOSTILE; i++)
        connect_as(7, i, &hostile[i]);
    connect_as(8, HOSTILE, &honest);
}

START_TEST(full_rings_of_many_jobs_leave_the_loop_and_others_their_time)
{
    struct ft_watch *tick;
    pthread_t filler;

    begin();
    for (int i = 0; i < HOSTILE; i++) /* each record is of another operation */
        for (int r = 0; r < 8; r++)
            for (uint32_t k = 0; k < FT_SEGMENT_SLOTS; k++) {
                struct ft_segment_record *record = &hostile[i]->record[r][k];

                record->kind = FT_SEGMENT_PROXY;
                record->op = record->number = r * FT_SEGMENT_SLOTS + k + 1;
                record->u.proxy.peer = (int32_t)k;
            }
    ck_assert_int_eq(pthread_create(&filler, NULL, fill, NULL), 0);
    tick = ft_watch_timer(loop, NS / 1000, on_tick, NULL);
    ck_assert_ptr_nonnull(tick);
    run_for(NS);
    /* Hang-ups of all at once. */
    for (int i = 0; i < HOSTILE; i++)
        close(fds[i]);
    run_for(NS / 5);
    stop = true;
    ck_assert_int_eq(pthread_join(filler, NULL), 0);
    ck_assert_int_lt(longest_ns, LONGEST_NS);
    ck_assert_uint_gt(put, 5000);
    ck_assert_uint_eq(dropped, 0);
    while (atomic_load(&honest->ring[0].tail) < put)
        run_for(NS / 100);
    while (ft_jobs_count(jobs) > 1) /* those that filled their rings end */
        run_for(NS / 100);
    ck_assert_int_lt(longest_ns, LONGEST_NS);
    ft_watch_free(tick);
    close(fds[HOSTILE]);
    ft_jobs_free(jobs);
    ft_loop_free(loop);
    rmdir(folder);
}
END_TEST

/* A user ID that its user gave a container is its user's: another user finds room. */
START_TEST(many_ids_of_one_user_leave_others_room)
{
    struct ft_jobs_config config = {.host = "gpu00", .jobs_max = 16, .refresh_ns = NS};
    char subuid[] = "/tmp/check_jobs-subuid-XXXXXX", error[200];
    int list = mkstemp(subuid);

    ck_assert_int_eq(dprintf(list, "1000:100000:65536\n"), 18);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/nccl.sock", folder);
    config.socket = path;
    config.hold_ns = config.quiet_ns = 60 * NS;
    config.reports_per_s = 1000;
    config.users = ft_local_users_new(subuid, "/dev/null");
    loop = ft_loop_new();
    jobs = ft_jobs_new(loop, NULL, &config, error, sizeof(error));
    ck_assert_ptr_nonnull(jobs);
    for (int i = 0; i < 16; i++) {
        user = 100000 + 1000 * (uid_t)i;
        fds[i] = connect_job(path, &hostile[i]);
        run_for(NS / 100);
    }
    ck_assert_uint_eq(ft_jobs_count(jobs), 12);
    connect_as(1001, HOSTILE, &honest);
    ck_assert_uint_eq(ft_jobs_count(jobs), 13);
    for (int i = 0; i < 16; i++)
        close(fds[i]);
    close(fds[HOSTILE]);
    ft_jobs_free(jobs);
    ft_loop_free(loop);
    ft_local_users_free(config.users);
    rmdir(folder);
    close(list);
    unlink(subuid);
}
END_TEST

FT_UNIT_MAIN("jobs_steps", many_ids_of_one_user_leave_others_room,
             full_rings_of_many_jobs_leave_the_loop_and_others_their_time)

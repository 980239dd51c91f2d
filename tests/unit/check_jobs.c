// SPDX-License-Identifier: Apache-2.0
/* What becomes of a job's operations between its shared memory and the records: agent/jobs/jobs.h.
 */
#include "config.h"

#include "agent/jobs/jobs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/jobs/rings.h"
#include "lib/io/loop.h"
#include "tests/unit/jobs_rig.h"
#include "tests/unit/unit.h"

#define HOLD_NS INT64_C(20000000)
#define CALLER  0 /* ring of the thread that calls NCCL */
#define PROXY   1 /* and of NCCL's proxy */

static struct ft_loop *loop;
static struct ft_segment *segment;
static bool flies;
static unsigned named, peers; /* records with a function, peers of those */
static unsigned closed;       /* communicators of which that was said */
static char closed_id[32];

static void put(int ring, const struct ft_segment_record *record)
{
    uint64_t head = atomic_load(&segment->ring[ring].head);

    segment->record[ring][head % FT_SEGMENT_SLOTS] = *record;
    atomic_fetch_add(&segment->ring[ring].events, record->events);
    atomic_store(&segment->ring[ring].head, head + 1);
}

/* A Send is enqueued, and its transfer is in flight. */
static void begin(void)
{
    struct ft_segment_record op = {.kind = FT_SEGMENT_OP, .flags = FT_SEGMENT_P2P, .events = 1};
    struct ft_segment_flight *f = &segment->flight[PROXY][0];

    op.op = op.number = 1;
    op.comm_id = 7;
    op.ranks = 2;
    op.start_ns = op.end_ns = ft_mono_now().ns;
    snprintf(op.u.op.func, sizeof(op.u.op.func), "Send");
    op.u.op.peer = 1;
    *f = (struct ft_segment_flight){
        .sequence = 2, .kind = FT_SEGMENT_PROXY, .flags = FT_SEGMENT_SEND, .op = 1, .number = 1};
    f->start_ns = op.start_ns;
    f->peer = 1;
    atomic_store(&segment->ring[PROXY].open[0], 1);
    put(CALLER, &op);
    flies = true;
}

static void end(void)
{
    struct ft_segment_record done = {.kind = FT_SEGMENT_PROXY, .flags = FT_SEGMENT_SEND};

    done.events = 3;
    done.op = done.number = 1;
    done.comm_id = 7;
    done.ranks = 2;
    done.start_ns = segment->flight[PROXY][0].start_ns;
    done.end_ns = ft_mono_now().ns;
    done.u.proxy.peer = 1;
    done.u.proxy.bytes = 4096;
    put(PROXY, &done);
    atomic_store(&segment->ring[PROXY].open[0], 0);
    flies = false;
}

uint64_t __real_ft_rings_read(struct ft_rings *rings, uint32_t most,
                              void (*take)(void *arg, const struct ft_segment_record *record),
                              void *arg);
uint64_t __wrap_ft_rings_read(struct ft_rings *rings, uint32_t most,
                              void (*take)(void *arg, const struct ft_segment_record *record),
                              void *arg);

/* The transfer ends as soon as the rings were read, long after the operation was enqueued. */
uint64_t __wrap_ft_rings_read(struct ft_rings *rings, uint32_t most,
                              void (*take)(void *arg, const struct ft_segment_record *record),
                              void *arg)
{
    uint64_t n = __real_ft_rings_read(rings, most, take, arg);

    if (flies && n == 0 && ft_mono_now().ns - segment->flight[PROXY][0].start_ns > 2 * HOLD_NS)
        end();
    return n;
}

void __wrap_ft_uplink_record(struct ft_uplink *uplink, const Fabrictrace__Record *record);

void __wrap_ft_uplink_record(struct ft_uplink *uplink, const Fabrictrace__Record *record)
{
    (void)uplink;
    if (record->kind_case == FABRICTRACE__RECORD__KIND_COMMUNICATOR &&
        record->communicator->closed) {
        closed++;
        snprintf(closed_id, sizeof(closed_id), "%s", record->communicator->comm_id);
    }
    if (record->kind_case != FABRICTRACE__RECORD__KIND_COLLECTIVE)
        return;
    if (record->collective->op && *record->collective->op) {
        named++;
        peers += (unsigned)record->collective->n_peers;
    }
    ft_loop_exit(loop, 0);
}

static void follow(void (*before)(void))
{
    char folder[] = "/tmp/check_jobs-XXXXXX", path[64], error[200];
    struct ft_jobs_config config = {.host = "gpu00", .jobs_max = 4, .refresh_ns = HOLD_NS};
    struct ft_jobs *jobs;
    int fd;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/nccl.sock", folder);
    config.socket = path;
    config.hold_ns = HOLD_NS;
    config.quiet_ns = INT64_C(60000000000);
    config.reports_per_s = 1000;
    loop = ft_loop_new();
    jobs = ft_jobs_new(loop, NULL, &config, error, sizeof(error));
    ck_assert_ptr_nonnull(jobs);
    named = peers = closed = 0;
    fd = connect_job(path, &segment);
    before();
    ck_assert_int_eq(ft_loop_run(loop), 0);
    close(fd);
    ft_jobs_free(jobs);
    ft_loop_free(loop);
    rmdir(folder);
}

/* Whoever sees first that nothing has come, and then that nothing is in flight any more, has missed
 * what ended in between. */
START_TEST(a_transfer_that_ends_between_two_looks_is_its_operations)
{
    follow(begin);
    ck_assert_uint_eq(named, 1);
    ck_assert_uint_eq(peers, 1);
}
END_TEST

static void close_comm(int i, uint64_t id)
{
    struct ft_segment_comm *c = &segment->comm[i];

    c->comm_id = id;
    c->ranks = 2;
    c->opened_ns = 1;
    atomic_store(&c->sequence, 4);
}

/* Two communicators were closed, and an operation of the first is not read yet. */
static void leave_two(void)
{
    close_comm(0, 7);
    close_comm(1, 8);
    begin();
}

static void read_before(void)
{
    const struct ft_segment_record none = {.events = 1};

    put(CALLER, &none);
    atomic_store(&segment->ring[CALLER].tail, 1);
    atomic_store(&segment->ring[CALLER].events_read, 1);
    atomic_store(&segment->events_sent, 1);
    leave_two();
}

/* The agent before has said of what was closed in its time that it is; but what comes of it later
 * is of something that is known. */
START_TEST(what_is_closed_is_said_once)
{
    follow(read_before);
    ck_assert_uint_eq(named, 1);
    ck_assert_uint_eq(closed, 1);
    ck_assert_str_eq(closed_id, "0000000000000007");
    follow(leave_two);
    ck_assert_uint_eq(closed, 2);
}
END_TEST

FT_UNIT_MAIN("jobs", what_is_closed_is_said_once,
             a_transfer_that_ends_between_two_looks_is_its_operations)

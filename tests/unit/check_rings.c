// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

/* What a job might hand over, with its own mapping of it. */
struct memory {
    int fd;
    struct ft_segment *s;
};

static struct memory make(off_t bytes, int seals)
{
    struct memory m = {.fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};

    ck_assert_int_ge(m.fd, 0);
    ck_assert_int_eq(ftruncate(m.fd, bytes), 0);
    if (seals)
        ck_assert_int_eq(fcntl(m.fd, F_ADD_SEALS, seals), 0);
    m.s = mmap(NULL, sizeof(*m.s), PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
    ck_assert_ptr_ne(m.s, MAP_FAILED);
    if (bytes < (off_t)sizeof(*m.s))
        return m;
    m.s->version = FT_SEGMENT_VERSION;
    m.s->rings = FT_SEGMENT_RINGS;
    m.s->slots = FT_SEGMENT_SLOTS;
    m.s->comms = FT_SEGMENT_COMMS;
    m.s->record_bytes = sizeof(struct ft_segment_record);
    m.s->flight_bytes = sizeof(struct ft_segment_flight);
    m.s->magic = FT_SEGMENT_MAGIC;
    return m;
}

static struct memory good(void)
{
    return make(sizeof(struct ft_segment), F_SEAL_SHRINK | F_SEAL_GROW);
}

static void drop(struct memory *m)
{
    munmap(m->s, sizeof(*m->s));
    close(m->fd);
}

static uint64_t events;

static void take(void *arg, const struct ft_segment_record *r)
{
    (void)arg;
    events += r->events;
    if (r->kind == FT_SEGMENT_OP)
        ck_assert_uint_lt(strlen(r->u.op.func), FT_SEGMENT_TEXT);
}

START_TEST(only_such_memory_is_taken)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
    struct ft_rings *rings = NULL;
    struct memory m = make(sizeof(struct ft_segment), 0);
    int pipes[2];

    ck_assert_int_eq(ft_rings_open(m.fd, &rings), -EBADMSG); /* could shrink under us */
    drop(&m);
    m = make(sizeof(struct ft_segment), F_SEAL_GROW);
    ck_assert_int_eq(ft_rings_open(m.fd, &rings), -EBADMSG);
    drop(&m);
    m = make(4096, seals);
    ck_assert_int_eq(ft_rings_open(m.fd, &rings), -EBADMSG);
    drop(&m);
    m = good();
    m.s->version++;
    ck_assert_int_eq(ft_rings_open(m.fd, &rings), -EBADMSG);
    m.s->version--;
    m.s->slots *= 2;
    ck_assert_int_eq(ft_rings_open(m.fd, &rings), -EBADMSG);
    drop(&m);
    ck_assert_int_eq(pipe(pipes), 0);
    ck_assert_int_eq(ft_rings_open(pipes[0], &rings), -EBADMSG);
    close(pipes[0]);
    close(pipes[1]);
    ck_assert_ptr_null(rings);
}
END_TEST

START_TEST(reads_on_where_it_stopped)
{
    struct memory m = good();
    struct ft_rings *rings;
    struct ft_rings_stats stats;

    ck_assert_int_eq(ft_rings_open(m.fd, &rings), 0);
    for (int i = 0; i < 5; i++)
        m.s->record[3][i] = (struct ft_segment_record){.kind = FT_SEGMENT_OP, .events = 10};
    memset(m.s->record[3][0].u.op.func, 'x', FT_SEGMENT_TEXT);
    m.s->ring[3].head = 5;
    m.s->ring[3].events = 60;
    m.s->ring[3].drops[FT_DROP_RING_FULL] = 10;
    events = 0;
    ck_assert_uint_eq(ft_rings_read(rings, 3, take, NULL), 3);
    ck_assert_uint_eq(events, 30);
    ft_rings_sent(rings, 20);
    ft_rings_free(rings); /* killed: 10 were read and never published */

    ck_assert_int_eq(ft_rings_open(m.fd, &rings), 0);
    ck_assert_uint_eq(ft_rings_read(rings, 100, take, NULL), 2);
    ck_assert_uint_eq(events, 50);
    ck_assert_uint_eq(ft_rings_read(rings, 100, take, NULL), 0);
    ft_rings_stats(rings, &stats);
    ck_assert_uint_eq(stats.lost, 10);
    ck_assert_uint_eq(stats.read, 50);
    ck_assert_uint_eq(stats.events, 60);
    ck_assert_uint_eq(stats.drops[FT_DROP_RING_FULL], 10);
    ft_rings_sent(rings, 10);
    ft_rings_stray(rings, 10);
    ft_rings_stats(rings, &stats);
    ck_assert_uint_eq(stats.stray, 10);
    ft_rings_free(rings); /* killed as well: neither the 10 nor the stray ones were told */

    ck_assert_int_eq(ft_rings_open(m.fd, &rings), 0);
    ft_rings_stats(rings, &stats);
    ck_assert_uint_eq(stats.lost, 20);
    ck_assert_uint_eq(stats.stray, 0);
    ft_rings_reported(rings);
    ft_rings_free(rings);
    ck_assert_int_eq(ft_rings_open(m.fd, &rings), 0);
    ft_rings_stats(rings, &stats);
    ck_assert_uint_eq(stats.lost, 0);
    ck_assert_uint_eq(stats.drops_reported[FT_DROP_RING_FULL], 10);
    ft_rings_free(rings);
    drop(&m);
}
END_TEST

static struct ft_rings *dying;

/* Publishes what it is given, and is killed over the fifth. */
static void publish_four(void *arg, const struct ft_segment_record *r)
{
    unsigned *n = arg;

    if (++*n == 5)
        _exit(0);
    ft_rings_sent(dying, r->events);
}

/* Of each event either the first agent told, or the second counts it as lost or reads it. */
START_TEST(a_reader_killed_over_a_record_doubles_none)
{
    struct memory m = good();
    struct ft_rings_stats stats;
    struct ft_rings *rings;
    int status;
    pid_t child;

    for (uint64_t i = 0; i < 8; i++)
        m.s->record[0][i] = (struct ft_segment_record){.events = 10};
    atomic_store(&m.s->ring[0].head, 8);
    atomic_store(&m.s->ring[0].events, 80);
    child = fork();
    if (child == 0) {
        unsigned n = 0;

        if (ft_rings_open(m.fd, &dying))
            _exit(1);
        ft_rings_read(dying, FT_SEGMENT_SLOTS, publish_four, &n);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(ft_rings_open(m.fd, &rings), 0);
    events = 0;
    ck_assert_uint_eq(ft_rings_read(rings, FT_SEGMENT_SLOTS, take, NULL), 3);
    ft_rings_stats(rings, &stats);
    ck_assert_uint_eq(stats.lost, 10);
    ck_assert_uint_eq(40 + stats.lost + events, 80);
    ft_rings_free(rings);
    drop(&m);
}
END_TEST

START_TEST(survives_a_job_that_lies)
{
    struct memory m = good();
    struct ft_rings_comm comm;
    struct ft_rings_stats stats;
    struct ft_rings *rings;
    char job[FT_SEGMENT_NAME];

    memset(m.s->job, 'j', sizeof(m.s->job));
    ck_assert_int_eq(ft_rings_open(m.fd, &rings), 0);
    m.s->ring[0].head = UINT64_MAX / 2;
    m.s->ring[1].head = FT_SEGMENT_SLOTS + 1;
    m.s->ring[2].head = FT_SEGMENT_SLOTS;
    memset(m.s->record[2], 0xff, sizeof(m.s->record[2]));
    ck_assert_uint_eq(ft_rings_read(rings, UINT32_MAX, take, NULL), FT_SEGMENT_SLOTS);
    ck_assert_uint_eq(ft_rings_read(rings, UINT32_MAX, take, NULL), 0);
    /* Heads that run backwards. */
    m.s->ring[2].head = 1;
    ck_assert_uint_eq(ft_rings_read(rings, UINT32_MAX, take, NULL), 0);
    for (int i = 0; i < FT_SEGMENT_RINGS; i++)
        m.s->ring[i].drops[FT_DROP_STALE] = UINT64_MAX - 2;
    ft_rings_stats(rings, &stats);
    ck_assert_uint_eq(stats.drops[FT_DROP_STALE], (uint64_t)FT_SEGMENT_RINGS << 50);
    ck_assert_uint_eq(stats.broken, 3);
    ft_rings_job(rings, job);
    ck_assert_uint_eq(strlen(job), FT_SEGMENT_NAME - 1);

    ck_assert(!ft_rings_comm(rings, 0, &comm));
    m.s->comm[0].sequence = 1;
    ck_assert(!ft_rings_comm(rings, 0, &comm));
    memset(m.s->comm[0].name, 'n', sizeof(m.s->comm[0].name));
    m.s->comm[0].sequence = 2;
    ck_assert(ft_rings_comm(rings, 0, &comm));
    ck_assert_uint_eq(strlen(comm.name), FT_SEGMENT_NAME - 1);
    ft_rings_free(rings);
    drop(&m);
}
END_TEST

/* A slice ends anywhere, and every ring has its turn. */
START_TEST(slices_go_round_the_rings)
{
    struct memory m = good();
    struct ft_rings *rings = NULL;

    ck_assert_int_eq(ft_rings_open(m.fd, &rings), 0);
    atomic_store(&m.s->ring[0].head, 1000);
    atomic_store(&m.s->ring[5].head, 10);
    ck_assert_uint_eq(ft_rings_waiting(rings), 1010);
    ck_assert_uint_eq(ft_rings_read(rings, 100, take, NULL), 100);
    ck_assert_uint_eq(ft_rings_read(rings, 100, take, NULL), 100);
    ck_assert_uint_eq(atomic_load(&m.s->ring[5].tail), 10);
    ck_assert_uint_eq(ft_rings_waiting(rings), 810);
    ck_assert_uint_eq(ft_rings_read(rings, 810, take, NULL), 810);
    ck_assert_uint_eq(ft_rings_read(rings, 810, take, NULL), 0);
    atomic_store(&m.s->ring[9].head, UINT64_MAX); /* what cannot be does not wait */
    ck_assert_uint_eq(ft_rings_waiting(rings), 0);
    ft_rings_free(rings);
    drop(&m);
}
END_TEST

/* Whoever touches a page of a hole is charged for it: a job must not make that the agent. */
START_TEST(holes_cost_the_reader_nothing)
{
    struct memory m = good();
    struct ft_rings *rings = NULL;
    struct stat st;

    ck_assert_int_eq(ft_rings_open(m.fd, &rings), 0);
    for (int i = 0; i < FT_SEGMENT_RINGS; i++)
        atomic_store(&m.s->ring[i].head, FT_SEGMENT_SLOTS);
    ck_assert_uint_eq(ft_rings_read(rings, UINT32_MAX, take, NULL),
                      FT_SEGMENT_RINGS * FT_SEGMENT_SLOTS);
    ck_assert_int_eq(fstat(m.fd, &st), 0);
    ck_assert_int_lt(st.st_blocks * 512, 1 << 18);
    ft_rings_free(rings);
    drop(&m);
}
END_TEST

FT_UNIT_MAIN("rings", slices_go_round_the_rings, holes_cost_the_reader_nothing,
             only_such_memory_is_taken, reads_on_where_it_stopped,
             a_reader_killed_over_a_record_doubles_none, survives_a_job_that_lies)

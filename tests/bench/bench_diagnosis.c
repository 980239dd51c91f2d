// SPDX-License-Identifier: Apache-2.0
#include "config.h"

/*
 * What the diagnosis of one large job costs the daemon: every rank is in a ring of its rail and in
 * one of all ranks, and ends three operations a second. Prints processor time by the second of the
 * job and the longest single look, before and while one rank stands, and after how long it is
 * named. bench_diagnosis [RANKS [SECONDS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/diagnosis/diagnoser.h"

#define GPUS     8
#define START_MS INT64_C(1700000000000)
#define CULPRIT  77
#define WORK     2000 /* as the daemon gives a step */

static unsigned named;
static int64_t named_ms;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const int64_t *now_ms = arg;

    if (record->kind_case != FABRICTRACE__RECORD__KIND_DIAGNOSIS || record->diagnosis->cleared)
        return;
    named++;
    if (!named_ms && record->diagnosis->has_rank && record->diagnosis->rank == CULPRIT)
        named_ms = *now_ms;
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct bench {
    struct ft_diagnoser *d;
    struct ft_events *events;
    struct ft_emitter emitter;
    int64_t now_ms;
    unsigned ranks;
    uint64_t *number; /* of the rail's communicator, then of the world's */
    double longest;
};

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void who(unsigned rank, bool world, unsigned ranks, char host[16], char comm[17],
                uint32_t *at, uint32_t *size)
{
    snprintf(host, 16, "gpu%05u", rank / GPUS);
    snprintf(comm, 17, "%016x", world ? 0xfeU : 0x10U + rank % GPUS);
    *at = world ? rank : rank / GPUS;
    *size = world ? ranks : ranks / GPUS;
}

static void end(struct bench *b, unsigned rank, bool world, uint64_t start_us, uint64_t length_us)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic peer = FABRICTRACE__PEER_TRAFFIC__INIT, *list[] = {&peer};
    char host[16], comm[17];
    uint32_t at, size;

    who(rank, world, b->ranks, host, comm, &at, &size);
    c.job = text("large");
    c.comm_id = comm;
    c.host = host;
    c.op = text("AllReduce");
    c.has_rank = c.has_ranks = c.has_pid = c.has_sequence = c.has_number = c.has_bytes = true;
    c.has_start_ms = c.has_duration_us = c.has_started_ns = c.has_operations = true;
    c.rank = at;
    c.ranks = size;
    c.pid = 100 + rank % GPUS;
    c.sequence = c.number = ++b->number[2 * rank + world];
    c.bytes = 64 << 20;
    c.start_ms = (uint64_t)START_MS + start_us / 1000;
    c.started_ns = start_us * 1000 + 5;
    c.duration_us = length_us;
    c.operations = 1;
    peer.has_peer = peer.has_sent_bytes = peer.has_sent_messages = peer.has_step_median_ns = true;
    peer.peer = (at + 1) % size;
    peer.sent_bytes = 64 << 20;
    peer.sent_messages = 128;
    peer.step_median_ns = 26000 + (rank * 7919U + (unsigned)c.number * 131U) % 2600;
    c.peers = list;
    c.n_peers = 1;
    ft_diagnoser_collective(b->d, &c, b->now_ms);
}

/* What an agent says of a rank that stands, or is behind. */
static void stand(struct bench *b, unsigned rank, uint64_t start_us, bool enters)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;
    char host[16], comm[17];
    uint32_t at, size;

    who(rank, true, b->ranks, host, comm, &at, &size);
    p.job = text("large");
    p.comm_id = comm;
    p.host = host;
    p.op = enters ? text("AllReduce") : NULL;
    p.has_rank = p.has_ranks = p.has_pid = p.has_time_ms = p.has_standing = p.has_begun = true;
    p.has_finished = p.has_state = p.has_process = p.standing = true;
    p.rank = at;
    p.ranks = size;
    p.pid = 100 + rank % GPUS;
    p.time_ms = (uint64_t)b->now_ms;
    p.finished = b->number[2 * rank + 1];
    p.begun = p.finished + enters;
    p.state = enters ? FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT
                     : FABRICTRACE__OPERATION_STATE__OPERATION_STATE_FINISHED;
    p.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING;
    p.has_number = p.has_sequence = p.has_start_ms = p.has_bytes = enters;
    p.number = p.sequence = p.begun;
    p.bytes = 64 << 20;
    p.start_ms = (uint64_t)START_MS + start_us / 1000;
    ft_diagnoser_progress(b->d, &p, b->now_ms);
}

static double step(struct bench *b)
{
    const struct ft_diagnoser_surroundings around = {
        .fabric = "bench", .events = b->events, .emitter = &b->emitter};
    double begin = cpu_s(), sum = 0;
    bool more = true;

    while (more) {
        double took;

        more = ft_diagnoser_step(b->d, b->now_ms, WORK, &around);
        took = cpu_s() - begin;
        begin += took;
        sum += took;
        if (b->longest < took)
            b->longest = took;
    }
    return sum;
}

static void run(struct bench *b, unsigned from, unsigned to)
{
    double taken = 0, looked = 0;

    b->longest = 0;
    for (unsigned s = from; s < to; s++) {
        double begin = cpu_s();

        for (unsigned k = 0; k < 3; k++) {
            uint64_t start = s * UINT64_C(1000000) + k * 300000;

            b->now_ms = START_MS + (int64_t)(start / 1000) + 100;
            for (unsigned r = 0; r < b->ranks; r++) {
                uint64_t noise = (s * 7919U + r * 104729U + k) % 97;

                end(b, r, k == 2, start + noise, 50000 - noise);
            }
        }
        taken += cpu_s() - begin;
        b->now_ms = START_MS + 1000 * (int64_t)(s + 1);
        looked += step(b);
    }
    printf("  takes %.1f ms of processor time a second, looks %.1f ms, the longest %.1f ms\n",
           taken * 1e3 / (to - from), looked * 1e3 / (to - from), b->longest * 1e3);
}

static void hang(struct bench *b, unsigned from, unsigned seconds)
{
    uint64_t start = from * UINT64_C(1000000);
    double taken = 0, looked = 0;

    b->longest = 0;
    for (unsigned s = from; s < from + seconds; s++) {
        double begin = cpu_s();

        b->now_ms = START_MS + 1000 * (int64_t)(s + 1);
        if ((s - from) % 2 == 1)
            for (unsigned r = 0; r < b->ranks; r++)
                stand(b, r, start, r != CULPRIT);
        taken += cpu_s() - begin;
        looked += step(b);
    }
    printf("  while it stands: takes %.1f ms a second, looks %.1f ms, the longest %.1f ms\n",
           taken * 1e3 / seconds, looked * 1e3 / seconds, b->longest * 1e3);
    if (named_ms)
        printf("  rank %u is named after %.1f s; %u diagnoses in all\n", CULPRIT,
               (double)(named_ms - START_MS - (int64_t)(start / 1000)) / 1e3, named);
    else
        printf("  rank %u is not named in %u s; %u diagnoses in all\n", CULPRIT, seconds, named);
}

int main(int argc, char **argv)
{
    struct bench b = {.ranks = argc > 1 ? (unsigned)atoi(argv[1]) : 16384};
    unsigned seconds = argc > 2 ? (unsigned)atoi(argv[2]) : 20;
    const struct ft_diagnoser_config config = {
        .recent = {.ranks_max = 2 * b.ranks, .rows_max = 4000000},
        .standing_max = 1024,
        .hang_ms = 10000,
    };

    b.emitter = (struct ft_emitter){on_record, &b.now_ms};
    b.d = ft_diagnoser_new(&config);
    b.events = ft_events_new(64, &b.emitter);
    b.number = calloc(2 * (size_t)b.ranks + 2, sizeof(*b.number));
    if (!b.d || !b.events || !b.number)
        return 1;
    printf("%u ranks, %u s:\n", b.ranks, seconds);
    run(&b, 0, seconds);
    hang(&b, seconds, 20);
    ft_diagnoser_free(b.d);
    ft_events_free(b.events);
    free(b.number);
    return 0;
}

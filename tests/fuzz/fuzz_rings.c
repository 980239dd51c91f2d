// SPDX-License-Identifier: Apache-2.0
/*
 * The memory that a training process shares, with whatever it may have written: an input lies over
 * the segment's head and table of communicators, over the counters of rings, over a ring's records,
 * or over what is in flight.
 */
#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/jobs/progress.h"
#include "agent/jobs/progress_record.h"
#include "agent/jobs/rings.h"
#include "proto/record.h"
#include "tests/fuzz/fuzz.h"

#define RECORDS_MAX 4096

static int fd = -1;
static struct ft_segment *segment;
static uint64_t taken;

static void set_up(void)
{
    fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ft_fuzz_assert(fd >= 0 && ftruncate(fd, sizeof(*segment)) == 0 &&
                       fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0,
                   "a sealed memory can be had");
    segment = mmap(NULL, sizeof(*segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ft_fuzz_assert(segment != MAP_FAILED, "it can be mapped");
}

static void write_head(void)
{
    segment->magic = FT_SEGMENT_MAGIC;
    segment->version = FT_SEGMENT_VERSION;
    segment->rings = FT_SEGMENT_RINGS;
    segment->slots = FT_SEGMENT_SLOTS;
    segment->comms = FT_SEGMENT_COMMS;
    segment->record_bytes = sizeof(struct ft_segment_record);
    segment->flight_bytes = sizeof(struct ft_segment_flight);
}

static void emit(void *arg, const struct ft_progress_report *report)
{
    const struct ft_job_identity who = {.host = "h", .job = "j", .pid = 1};
    static struct ft_progress_record record;
    struct ft_writer w;

    (void)arg;
    ft_fuzz_assert(report->count <= FT_PROGRESS_TRANSFERS, "transfers have room");
    ft_progress_record_fill(&record, report, &who, 1);
    ft_writer_init(&w, 1 << 20);
    ft_fuzz_assert(ft_record_to_json(&record.record, &w) == 0, "a report is a record");
    ft_writer_free(&w);
}

/* The same memory at three moments: while it may move, while it stands, and when it ends. */
static void look(struct ft_progress *progress, struct ft_rings *rings)
{
    const enum ft_progress_process how[] = {FT_PROCESS_RUNNING, FT_PROCESS_STOPPED,
                                            FT_PROCESS_GONE};

    for (int i = 0; i < 3; i++)
        ft_progress_look(progress, rings, how[i],
                         (struct ft_mono){(10 + 10 * i) * INT64_C(1000000000)});
}

static void take(void *arg, const struct ft_segment_record *record)
{
    ft_progress_record(arg, record, (struct ft_mono){INT64_C(10000000000)});
    taken++;
    if (record->kind == FT_SEGMENT_OP)
        ft_fuzz_assert(strlen(record->u.op.func) < FT_SEGMENT_TEXT, "texts end");
}

static void read_all(void)
{
    struct ft_rings *rings;
    struct ft_rings_stats stats;
    struct ft_rings_comm comm;
    char job[FT_SEGMENT_NAME];
    const struct ft_progress_config config = {.quiet_ns = INT64_C(1000000000)};
    struct ft_progress *progress;

    if (ft_rings_open(fd, &rings))
        return;
    progress = ft_progress_new(&config, emit, NULL);
    ft_fuzz_assert(progress != NULL, "there is memory");
    taken = 0;
    ft_fuzz_assert(ft_rings_read(rings, RECORDS_MAX, take, progress) == taken,
                   "what is read is what is handed over");
    look(progress, rings);
    ft_progress_free(progress);
    for (uint32_t i = 0; i < FT_SEGMENT_COMMS; i++)
        if (ft_rings_comm(rings, i, &comm))
            ft_fuzz_assert(strlen(comm.name) < FT_SEGMENT_NAME &&
                               strlen(comm.gpu) < FT_SEGMENT_TEXT,
                           "names end");
    ft_rings_job(rings, job);
    ft_fuzz_assert(strlen(job) < FT_SEGMENT_NAME, "the job's name ends");
    ft_rings_stats(rings, &stats);
    ft_rings_sent(rings, stats.read);
    ft_rings_reported(rings);
    ft_rings_free(rings);
}

/* With communicators that they may be of. */
static void show_flights(uint32_t ring, size_t count)
{
    for (size_t i = 0; i < count && i < FT_SEGMENT_OPEN; i++)
        segment->ring[ring].open[i / 64] |= UINT64_C(1) << i % 64;
    for (uint32_t i = 0; i < 4; i++) {
        segment->comm[i].sequence = 2;
        segment->comm[i].open = 1;
        segment->comm[i].begun = 3;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    uint8_t *at, *end;
    uint32_t ring;
    bool flying;

    if (len == 0)
        return 0;
    ring = bytes[0] / 2;
    flying = bytes[0] >= 128 && bytes[0] < 128 + FT_SEGMENT_RINGS;
    if (fd < 0)
        set_up();
    memset(segment, 0, offsetof(struct ft_segment, ring));
    write_head();
    end = (uint8_t *)(segment + 1);
    at = (uint8_t *)segment;
    if (ring < FT_SEGMENT_RINGS)
        at = bytes[0] % 2 ? (uint8_t *)segment->record[ring] : (uint8_t *)&segment->ring[ring];
    if (flying) {
        at = (uint8_t *)segment->flight[bytes[0] - 128];
        show_flights(bytes[0] - 128u, len / sizeof(struct ft_segment_flight) + 1);
    }
    if (len - 1 > (size_t)(end - at))
        return 0;
    memcpy(at, bytes + 1, len - 1);
    if (ring < FT_SEGMENT_RINGS && bytes[0] % 2)
        segment->ring[ring].head = 1 + len / sizeof(struct ft_segment_record);
    read_all();
    memset(at, 0, len - 1);
    memset(segment->ring, 0, sizeof(segment->ring));
    return 0;
}

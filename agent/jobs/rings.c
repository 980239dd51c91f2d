// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Records and what is in flight are read, not mapped: a page of a hole that is touched in a mapping
 * is made then, and charged to whoever touches it. */
#define MAPPED_BYTES offsetof(struct ft_segment, flight)
#define CHUNK        64

struct ft_rings {
    struct ft_segment *shared; /* MAPPED_BYTES of it */
    int fd;
    struct ft_segment_record chunk[CHUNK];
    uint64_t tail[FT_SEGMENT_RINGS];
    uint64_t events_read[FT_SEGMENT_RINGS];
    uint64_t lost, stray, broken;
    bool reported;
    uint32_t next; /* the ring to read first */
};

/* Counters are the job's: sums of so many of them do not wrap. */
#define COUNT_MAX (UINT64_C(1) << 50)

static uint64_t load(const _Atomic uint64_t *counter)
{
    uint64_t count = atomic_load_explicit(counter, memory_order_relaxed);

    return count < COUNT_MAX ? count : COUNT_MAX;
}

/* Only a memfd can have these seals; with them it can neither shrink under the mapping nor lose
 * them. */
static int check_fd(int fd)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
        return -EBADMSG;
    if (fstat(fd, &st) || st.st_size != (off_t)sizeof(struct ft_segment))
        return -EBADMSG;
    return 0;
}

static bool layout_fits(const struct ft_segment *s)
{
    return s->magic == FT_SEGMENT_MAGIC && s->version == FT_SEGMENT_VERSION &&
           s->rings == FT_SEGMENT_RINGS && s->slots == FT_SEGMENT_SLOTS &&
           s->comms == FT_SEGMENT_COMMS && s->record_bytes == sizeof(struct ft_segment_record) &&
           s->flight_bytes == sizeof(struct ft_segment_flight);
}

/* Where the agent before this one stopped. */
static void resume(struct ft_rings *rings)
{
    uint64_t read = 0, sent = load(&rings->shared->events_sent);

    for (uint32_t i = 0; i < FT_SEGMENT_RINGS; i++) {
        struct ft_segment_ring *ring = &rings->shared->ring[i];

        rings->tail[i] = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        rings->events_read[i] = load(&ring->events_read);
        read += rings->events_read[i];
    }
    rings->lost = read > sent ? read - sent : 0;
}

int ft_rings_open(int fd, struct ft_rings **out)
{
    struct ft_rings *rings;
    struct ft_segment *shared;
    int rc = check_fd(fd);

    if (rc)
        return rc;
    rings = calloc(1, sizeof(*rings));
    if (!rings)
        return -ENOMEM;
    shared = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    rings->fd = shared == MAP_FAILED ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (rings->fd < 0) {
        rc = -errno;
        if (shared != MAP_FAILED)
            munmap(shared, MAPPED_BYTES);
        free(rings);
        return rc;
    }
    rings->shared = shared;
    if (!layout_fits(shared)) {
        ft_rings_free(rings);
        return -EBADMSG;
    }
    resume(rings);
    *out = rings;
    return 0;
}

void ft_rings_free(struct ft_rings *rings)
{
    if (!rings)
        return;
    munmap(rings->shared, MAPPED_BYTES);
    close(rings->fd);
    free(rings);
}

static void end_text(char text[FT_SEGMENT_TEXT])
{
    text[FT_SEGMENT_TEXT - 1] = '\0';
}

/* A record is the reader's before it is handed on: whoever is killed over it has lost it, which is
 * counted, and no other reports it again. */
static void take_record(struct ft_rings *rings, uint32_t i, struct ft_segment_record r,
                        void (*take)(void *arg, const struct ft_segment_record *record), void *arg)
{
    struct ft_segment_ring *ring = &rings->shared->ring[i];

    rings->tail[i]++;
    rings->events_read[i] += r.events;
    atomic_store_explicit(&ring->events_read, rings->events_read[i], memory_order_relaxed);
    atomic_store_explicit(&ring->tail, rings->tail[i], memory_order_release);
    if (r.kind == FT_SEGMENT_OP) {
        end_text(r.u.op.func);
        end_text(r.u.op.datatype);
        end_text(r.u.op.algo);
        end_text(r.u.op.proto);
    }
    take(arg, &r);
}

/* Reads the next records of a ring, `most` at most, as far as they lie one behind the other. */
static uint64_t read_chunk(struct ft_rings *rings, uint32_t i, uint64_t most)
{
    uint64_t slot = rings->tail[i] % FT_SEGMENT_SLOTS, count = FT_SEGMENT_SLOTS - slot;
    size_t at = offsetof(struct ft_segment, record) +
                (i * (size_t)FT_SEGMENT_SLOTS + slot) * sizeof(struct ft_segment_record);

    count = count < most ? count : most;
    count = count < CHUNK ? count : CHUNK;
    return pread(rings->fd, rings->chunk, count * sizeof(rings->chunk[0]), (off_t)at) ==
                   (ssize_t)(count * sizeof(rings->chunk[0]))
               ? count
               : 0;
}

/* Reads what was in a ring when it was looked at, `most` at most. */
static uint64_t read_ring(struct ft_rings *rings, uint32_t i, uint64_t most,
                          void (*take)(void *arg, const struct ft_segment_record *record),
                          void *arg)
{
    struct ft_segment_ring *ring = &rings->shared->ring[i];
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    uint64_t count = head - rings->tail[i], n = 0;

    if (count > FT_SEGMENT_SLOTS) {
        rings->broken++;
        rings->tail[i] = head;
        atomic_store_explicit(&ring->tail, head, memory_order_release);
        return 0;
    }
    if (count > most)
        count = most;
    while (n < count) {
        uint64_t got = read_chunk(rings, i, count - n);

        if (!got)
            break;
        for (uint64_t k = 0; k < got; k++)
            take_record(rings, i, rings->chunk[k], take, arg);
        n += got;
    }
    return n;
}

uint64_t ft_rings_read(struct ft_rings *rings, uint32_t most,
                       void (*take)(void *arg, const struct ft_segment_record *record), void *arg)
{
    uint64_t records = 0;

    for (uint32_t k = 0; k < FT_SEGMENT_RINGS && records < most; k++) {
        records += read_ring(rings, rings->next, most - records, take, arg);
        /* What is left of this one comes after the others. */
        rings->next = (rings->next + 1) % FT_SEGMENT_RINGS;
    }
    return records;
}

uint64_t ft_rings_waiting(const struct ft_rings *rings)
{
    uint64_t records = 0;

    for (uint32_t i = 0; i < FT_SEGMENT_RINGS; i++) {
        uint64_t count = atomic_load_explicit(&rings->shared->ring[i].head, memory_order_relaxed) -
                         rings->tail[i];

        if (count <= FT_SEGMENT_SLOTS)
            records += count;
    }
    return records;
}

void ft_rings_sent(struct ft_rings *rings, uint64_t events)
{
    atomic_fetch_add_explicit(&rings->shared->events_sent, events, memory_order_relaxed);
}

void ft_rings_stray(struct ft_rings *rings, uint64_t events)
{
    rings->stray += events;
}

void ft_rings_reported(struct ft_rings *rings)
{
    struct ft_rings_stats stats;

    if (rings->reported)
        return;
    ft_rings_stats(rings, &stats);
    for (int d = 0; d < FT_DROPS; d++)
        atomic_store_explicit(&rings->shared->drops_reported[d], stats.drops[d],
                              memory_order_relaxed);
    atomic_store_explicit(&rings->shared->outside_reported, stats.outside, memory_order_relaxed);
    ft_rings_sent(rings, rings->lost + rings->stray);
    rings->reported = true;
}

bool ft_rings_comm(const struct ft_rings *rings, uint32_t i, struct ft_rings_comm *out)
{
    const struct ft_segment_comm *c = &rings->shared->comm[i];
    uint32_t sequence = atomic_load_explicit(&c->sequence, memory_order_acquire);
    struct ft_rings_comm copy;

    if (sequence == 0 || sequence % 2)
        return false;
    copy.open = c->open != 0;
    copy.comm_id = c->comm_id;
    copy.rank = c->rank;
    copy.ranks = c->ranks;
    copy.nodes = c->nodes;
    copy.abi = c->abi;
    copy.opened_ns = c->opened_ns;
    copy.begun = load(&c->begun);
    memcpy(copy.name, c->name, sizeof(copy.name));
    memcpy(copy.gpu, c->gpu, sizeof(copy.gpu));
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&c->sequence, memory_order_relaxed) != sequence)
        return false;
    copy.name[sizeof(copy.name) - 1] = '\0';
    copy.gpu[sizeof(copy.gpu) - 1] = '\0';
    *out = copy;
    return true;
}

static bool read_at(const struct ft_rings *rings, void *to, size_t bytes, size_t at)
{
    return pread(rings->fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

/* False while it is written: the number before and after it differs. */
static bool read_flight(const struct ft_rings *rings, size_t at, struct ft_segment_flight *f)
{
    uint32_t before, after;

    if (!read_at(rings, &before, sizeof(before), at))
        return false;
    atomic_thread_fence(memory_order_acquire);
    if (!read_at(rings, f, sizeof(*f), at))
        return false;
    atomic_thread_fence(memory_order_acquire);
    return read_at(rings, &after, sizeof(after), at) && before == after && before % 2 == 0;
}

/* Steps of a transfer go one after the other, so what the furthest one waits for holds up all. */
static void fill_steps(const struct ft_segment_flight *f, struct ft_rings_flight *out)
{
    uint64_t moved = atomic_load_explicit(&f->moved, memory_order_relaxed);
    unsigned furthest = ft_segment_step_wait(moved);

    out->moved_ns = out->since_ns = ft_segment_step_since_ns(moved);
    for (int i = 0; i < FT_SEGMENT_STEPS; i++) {
        uint64_t step = atomic_load_explicit(&f->step[i], memory_order_relaxed);
        unsigned wait = ft_segment_step_wait(step);
        int64_t since = ft_segment_step_since_ns(step);

        if (step == 0)
            continue;
        if (since > out->moved_ns)
            out->moved_ns = since;
        if (out->open++ == 0 || wait > furthest || (wait == furthest && since < out->since_ns)) {
            furthest = wait;
            out->since_ns = since;
        }
    }
    out->wait = furthest < FT_WAITS ? (enum ft_segment_wait)furthest : FT_WAIT_UNKNOWN;
}

static bool fill_flight(const struct ft_segment_flight *f, struct ft_rings_flight *out)
{
    if ((f->kind != FT_SEGMENT_PROXY && f->kind != FT_SEGMENT_KERNEL) ||
        f->comm >= FT_SEGMENT_COMMS)
        return false;
    *out = (struct ft_rings_flight){
        .kernel = f->kind == FT_SEGMENT_KERNEL,
        .send = f->flags & FT_SEGMENT_SEND,
        .foreign = f->flags & FT_SEGMENT_FOREIGN,
        .number = f->number,
        .start_ns = f->start_ns,
        .comm = f->comm,
        .rank = f->rank,
        .peer = f->peer,
        .channel = f->channel,
        .expected = f->expected,
        .done = atomic_load_explicit(&f->done, memory_order_relaxed),
    };
    fill_steps(f, out);
    return true;
}

size_t ft_rings_flights(struct ft_rings *rings, struct ft_rings_flight *out, size_t most,
                        bool *more)
{
    size_t count = 0, looks = 0;

    *more = false;
    for (uint32_t i = 0; i < FT_SEGMENT_RINGS; i++)
        for (uint32_t w = 0; w < FT_SEGMENT_OPEN / 64; w++) {
            uint64_t bits =
                atomic_load_explicit(&rings->shared->ring[i].open[w], memory_order_relaxed);

            for (; bits; bits &= bits - 1) {
                size_t k = 64 * w + (size_t)__builtin_ctzll(bits);
                size_t at = offsetof(struct ft_segment, flight) +
                            (i * (size_t)FT_SEGMENT_OPEN + k) * sizeof(struct ft_segment_flight);
                struct ft_segment_flight f;

                if (count == most || looks++ == 2 * most) {
                    *more = true;
                    return count;
                }
                count += read_flight(rings, at, &f) && fill_flight(&f, &out[count]);
            }
        }
    return count;
}

void ft_rings_job(const struct ft_rings *rings, char job[FT_SEGMENT_NAME])
{
    memcpy(job, rings->shared->job, FT_SEGMENT_NAME);
    job[FT_SEGMENT_NAME - 1] = '\0';
}

void ft_rings_stats(const struct ft_rings *rings, struct ft_rings_stats *out)
{
    struct ft_rings_stats stats = {
        .outside = load(&rings->shared->outside_events),
        .lost = rings->lost,
        .stray = rings->stray,
        .broken = rings->broken,
        .comms_refused = load(&rings->shared->comms_refused),
        .outside_reported = load(&rings->shared->outside_reported),
    };

    stats.events = stats.outside;
    for (int d = 0; d < FT_DROPS; d++)
        stats.drops_reported[d] = load(&rings->shared->drops_reported[d]);
    for (uint32_t i = 0; i < FT_SEGMENT_RINGS; i++) {
        const struct ft_segment_ring *ring = &rings->shared->ring[i];

        stats.events += load(&ring->events);
        stats.read += rings->events_read[i];
        for (int d = 0; d < FT_DROPS; d++)
            stats.drops[d] += load(&ring->drops[d]);
    }
    *out = stats;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/nccl/core.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/nccl/link.h"

struct ft_core *_Atomic ft_core;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

void ft_core_lock(void)
{
    pthread_mutex_lock(&opening);
}

void ft_core_unlock(void)
{
    pthread_mutex_unlock(&opening);
}

/* The child of a fork has the mapping but not the thread, and must not write its parent's rings. */
static void after_fork(void)
{
    struct ft_core *core = ft_core;

    if (core) {
        ft_core = NULL;
        ft_link_forget(core->link);
        close(core->memory_fd);
    }
    ft_core_unlock();
}

static struct ft_segment *map_segment(int *fd)
{
    struct ft_segment *segment;
    int memory = memfd_create("fabrictrace-nccl", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (memory < 0)
        return NULL;
    /* Sealed, so that the agent is safe from a file that shrinks under it. */
    if (ftruncate(memory, sizeof(*segment)) ||
        fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        segment = MAP_FAILED;
    else
        segment = mmap(NULL, sizeof(*segment), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (segment == MAP_FAILED) {
        close(memory);
        return NULL;
    }
    *fd = memory;
    return segment;
}

static void describe(struct ft_segment *segment)
{
    const char *job = secure_getenv("FABRICTRACE_JOB");

    if (!job)
        job = secure_getenv("SLURM_JOB_ID");
    segment->version = FT_SEGMENT_VERSION;
    segment->rings = FT_SEGMENT_RINGS;
    segment->slots = FT_SEGMENT_SLOTS;
    segment->comms = FT_SEGMENT_COMMS;
    segment->record_bytes = sizeof(struct ft_segment_record);
    segment->flight_bytes = sizeof(struct ft_segment_flight);
    snprintf(segment->job, sizeof(segment->job), "%s", job ? job : "");
    segment->magic = FT_SEGMENT_MAGIC;
}

int ft_core_get(struct ft_core **out)
{
    static bool prepared;
    struct ft_core *core = ft_core;

    if (core) {
        *out = core;
        return 0;
    }
    core = mmap(NULL, sizeof(*core), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (core == MAP_FAILED)
        return -ENOMEM;
    core->segment = map_segment(&core->memory_fd);
    if (!core->segment) {
        munmap(core, sizeof(*core));
        return errno ? -errno : -ENOMEM;
    }
    describe(core->segment);
    core->pid = getpid();
    for (uint32_t i = 0; i < FT_SEGMENT_RINGS; i++) {
        core->threads[i].index = i;
        core->threads[i].ring = &core->segment->ring[i];
        core->threads[i].records = core->segment->record[i];
        core->threads[i].flights = core->segment->flight[i];
        core->threads[i].entries = core->entries[i];
    }
    if (!prepared)
        prepared = pthread_atfork(ft_core_lock, ft_core_unlock, after_fork) == 0;
    ft_core = core;
    *out = core;
    return 0;
}

/* Pages are made now rather than one by one under later events. Best effort: kernels before 5.14
 * do not know the advice. */
static void populate(void *start, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)start + page - 1) & ~(page - 1);
    uintptr_t to = ((uintptr_t)start + bytes) & ~(page - 1);
    int before = errno;

    if (to > from)
        madvise((void *)from, to - from, MADV_POPULATE_WRITE);
    errno = before;
#else
    (void)start;
    (void)bytes;
#endif
}

struct ft_core_thread *ft_core_reserve(struct ft_core *core, uintptr_t self)
{
    uint32_t first = (uint32_t)((self >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 58);

    for (uint32_t i = 0; i < FT_SEGMENT_RINGS; i++) {
        struct ft_core_thread *t = &core->threads[(first + i) % FT_SEGMENT_RINGS];
        uintptr_t owner = atomic_load_explicit(&t->owner, memory_order_relaxed);

        if (owner == self)
            return t;
        if (owner == 0 && atomic_compare_exchange_strong(&t->owner, &owner, self)) {
            populate(t->records, sizeof(core->segment->record[0]));
            populate(t->flights, sizeof(core->segment->flight[0]));
            populate(t->entries, sizeof(core->entries[0]));
            return t;
        }
    }
    return NULL;
}
_Static_assert(FT_SEGMENT_RINGS == 64, "six bits of the hash");

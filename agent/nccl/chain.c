// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/nccl/chain.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#define MARK UINT64_C(0xf8)

/* number: which event the slot is of, 0 while it is written. */
struct slot {
    _Atomic uint64_t number;
    void *_Atomic ours;
    void *_Atomic theirs;
};

static struct slot *slots;
static void *table;
static _Atomic uint64_t last;

static void *load(const char *file, const char *symbol, const void *ours, char *error,
                  size_t error_bytes)
{
    void *memory = mmap(NULL, FT_CHAIN_PAIRS * sizeof(*slots), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *library, *found;

    if (memory == MAP_FAILED) {
        snprintf(error, error_bytes, "%s: no memory", file);
        return NULL;
    }
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    found = library ? dlsym(library, symbol) : NULL;
    if (!found)
        snprintf(error, error_bytes, "%s", dlerror());
    if (found == ours) {
        found = NULL;
        snprintf(error, error_bytes, "%s is this plugin itself", file);
    }
    if (found)
        slots = memory;
    else
        munmap(memory, FT_CHAIN_PAIRS * sizeof(*slots));
    return found;
}

void *ft_chain_load(const char *file, const char *symbol, const void *ours, char *error,
                    size_t error_bytes)
{
    static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
    static bool tried;
    void *found;

    error[0] = '\0';
    pthread_mutex_lock(&loading);
    if (!tried)
        table = load(file, symbol, ours, error, error_bytes);
    tried = true;
    found = table;
    pthread_mutex_unlock(&loading);
    return found;
}

void *ft_chain_join(void *ours, void *theirs)
{
    uint64_t number;
    struct slot *s;

    if (!ours && !theirs)
        return NULL;
    number = (atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1) & 0xffffffffffffff;
    s = &slots[number % FT_CHAIN_PAIRS];
    atomic_exchange_explicit(&s->number, 0, memory_order_acq_rel);
    atomic_store_explicit(&s->ours, ours, memory_order_relaxed);
    atomic_store_explicit(&s->theirs, theirs, memory_order_relaxed);
    atomic_store_explicit(&s->number, number, memory_order_release);
    return (void *)(uintptr_t)(MARK << 56 | number);
}

struct ft_chain_pair ft_chain_split(void *handle)
{
    uint64_t number = (uint64_t)(uintptr_t)handle;
    struct ft_chain_pair pair = {handle, handle};
    struct slot *s;

    if (number >> 56 != MARK)
        return pair;
    number &= 0xffffffffffffff;
    s = &slots[number % FT_CHAIN_PAIRS];
    if (atomic_load_explicit(&s->number, memory_order_acquire) == number) {
        pair.ours = atomic_load_explicit(&s->ours, memory_order_acquire);
        pair.theirs = atomic_load_explicit(&s->theirs, memory_order_acquire);
        if (atomic_load_explicit(&s->number, memory_order_relaxed) == number)
            return pair;
    }
    return (struct ft_chain_pair){NULL, NULL};
}

// SPDX-License-Identifier: Apache-2.0
/* Partial loads of other daemons, each message after two bytes of its length: what is taken adds up
 * to sums that can be, and each partition is missing, or there, with its counts or without. */
#include "config.h"

#include "daemon/window/partial.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/leafspine.h"

#define PARTITIONS 4
#define WINDOW_MS  10000
#define WINDOWS    64

/* The first windows that are spoken of. */
struct windows {
    int64_t start_ms[WINDOWS];
    size_t count;
};

static void note(struct windows *w, int64_t start_ms)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->start_ms[i] == start_ms)
            return;
    if (w->count < WINDOWS)
        w->start_ms[w->count++] = start_ms;
}

static void take_all(struct ft_partials *partials, const uint8_t *bytes, size_t len,
                     struct windows *windows)
{
    while (len > 2) {
        size_t n = (size_t)bytes[0] << 8 | bytes[1];
        Fabrictrace__Partial *m;

        n = n < len - 2 ? n : len - 2;
        m = fabrictrace__partial__unpack(NULL, n, bytes + 2);
        if (m && ft_partials_take(partials, m) == 0)
            note(windows, (int64_t)m->window_start_ms);
        if (m)
            fabrictrace__partial__free_unpacked(m, NULL);
        bytes += 2 + n;
        len -= 2 + n;
    }
}

static bool has(const struct ft_partition_list *list, uint32_t partition)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->item[i] == partition)
            return true;
    return false;
}

static void sum_up(struct ft_partials *partials, struct ft_loads *loads, struct ft_join *join,
                   int64_t start_ms)
{
    static struct ft_partition_list missing, unaccounted;
    bool complete = ft_partials_complete(partials, start_ms);
    uint32_t work;

    ft_loads_reset(loads, ft_join_topology(join));
    ft_partials_begin(partials, start_ms, &missing);
    while (ft_partials_step(partials, (uint32_t)(start_ms / WINDOW_MS), loads, join, &work))
        ;
    ft_partials_end(partials, &unaccounted);
    ft_fuzz_assert(complete == (missing.count == 0), "a complete window misses nothing");
    ft_fuzz_assert(missing.count + unaccounted.count <= PARTITIONS, "as many as there are");
    for (uint32_t i = 0; i < PARTITIONS; i++)
        ft_fuzz_assert(!has(&missing, i) || !has(&unaccounted, i), "what is missing is not there");
    ft_fuzz_assert(loads->observations.taken <= loads->observations.came &&
                       loads->observations.came <= (UINT64_C(1) << 50) * PARTITIONS,
                   "no more was taken in than came");
    ft_fuzz_assert(missing.count + unaccounted.count < PARTITIONS || loads->observations.came == 0,
                   "what nobody counted is not there");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const struct ft_join_config config = {.flows_max = 16,
                                                 .window_ms = WINDOW_MS,
                                                 .evidence_ms = 3 * WINDOW_MS,
                                                 .idle_ms = 6 * WINDOW_MS,
                                                 .trust_topology = true};
    static struct ft_topology *topology;
    struct ft_partials *partials = ft_partials_new(PARTITIONS, 1 << 20);
    struct windows windows = {.count = 0};
    struct ft_loads loads = {.link = NULL};
    struct ft_join *join;

    if (!topology)
        topology = leafspine(2, 2, 1);
    join = ft_join_new(&config, topology, &(struct ft_join_hooks){.arg = NULL});
    if (partials && join && ft_loads_init(&loads, topology) == 0) {
        take_all(partials, bytes, len, &windows);
        for (size_t i = 0; i < windows.count; i++)
            sum_up(partials, &loads, join, windows.start_ms[i]);
        ft_partials_close(partials, INT64_MAX / 2);
    }
    ft_loads_free(&loads);
    ft_join_free(join);
    ft_partials_free(partials);
    return 0;
}

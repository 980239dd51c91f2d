// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/outages.h"

#include <stdlib.h>
#include <string.h>

#define SECOND_MS 1000
/* Parts of a window that are distinguished: seconds, or more in long windows. */
#define PARTS_MAX 30
/* Of the usual part, of all switches: below that it is a pause. */
#define PAUSE 0.5

struct ft_outages {
    const struct ft_topology *t;
    uint32_t window_ms, part_ms, parts;
    uint32_t window[2]; /* that the counts are of, by its parity */
    /* Samples of each switch in a part, all switches of a part side by side: what comes at a time
     * is of one part. */
    uint32_t *counts[2];
    uint32_t *usual;    /* of each switch: samples in a part of the last window that had any */
    uint32_t usual_all; /* likewise of all switches together */
    bool *had;
};

struct ft_outages *ft_outages_new(const struct ft_topology *t, uint32_t window_ms)
{
    size_t count = (size_t)ft_topology_switches(t) + 1;
    struct ft_outages *o = calloc(1, sizeof(*o));

    if (!o)
        return NULL;
    o->t = t;
    o->window_ms = window_ms;
    o->parts = window_ms / SECOND_MS < PARTS_MAX ? window_ms / SECOND_MS : PARTS_MAX;
    o->parts = o->parts ? o->parts : 1;
    /* The last part has what is left by rounding, too. */
    o->part_ms = window_ms / o->parts;
    for (int slot = 0; slot < 2; slot++)
        o->counts[slot] = calloc(o->parts * count, sizeof(*o->counts[slot]));
    o->usual = calloc(count, sizeof(*o->usual));
    o->had = calloc(count, sizeof(*o->had));
    if (!o->counts[0] || !o->counts[1] || !o->usual || !o->had) {
        ft_outages_free(o);
        return NULL;
    }
    return o;
}

void ft_outages_free(struct ft_outages *o)
{
    if (!o)
        return;
    free(o->counts[0]);
    free(o->counts[1]);
    free(o->usual);
    free(o->had);
    free(o);
}

static uint32_t *count_at(const struct ft_outages *o, unsigned slot, uint32_t part, uint32_t id)
{
    return &o->counts[slot][(size_t)part * ft_topology_switches(o->t) + id];
}

struct ft_outages *ft_outages_followed(const struct ft_outages *o, const struct ft_topology *t)
{
    struct ft_outages *now = ft_outages_new(t, o->window_ms);

    if (!now)
        return NULL;
    memcpy(now->window, o->window, sizeof(now->window));
    now->usual_all = o->usual_all;
    for (uint32_t i = 0; i < ft_topology_switches(o->t); i++) {
        uint32_t id = ft_topology_find_switch(t, ft_topology_switch(o->t, i)->name);

        if (id == FT_NONE)
            continue;
        for (unsigned slot = 0; slot < 2; slot++)
            for (uint32_t part = 0; part < o->parts; part++)
                *count_at(now, slot, part, id) = *count_at(o, slot, part, i);
        now->usual[id] = o->usual[i];
        now->had[id] = o->had[i];
    }
    return now;
}

static void clear(struct ft_outages *o, uint32_t window)
{
    memset(o->counts[window & 1], 0,
           (size_t)o->parts * ft_topology_switches(o->t) * sizeof(*o->counts[0]));
    o->window[window & 1] = window;
}

void ft_outages_restart(struct ft_outages *o)
{
    clear(o, 0);
    clear(o, 1);
    o->usual_all = 0;
    memset(o->usual, 0, ft_topology_switches(o->t) * sizeof(*o->usual));
    memset(o->had, 0, ft_topology_switches(o->t) * sizeof(*o->had));
}

/* The part of a window, or the last one for what is after it. */
static uint32_t part_at(const struct ft_outages *o, int64_t after_ms)
{
    uint32_t part;

    if (after_ms <= 0)
        return 0;
    part = after_ms < o->window_ms ? (uint32_t)after_ms / o->part_ms : o->parts;
    return part < o->parts ? part : o->parts - 1;
}

void ft_outages_add(struct ft_outages *o, uint32_t switch_id, uint32_t window, int64_t first_ms,
                    int64_t last_ms, uint32_t samples)
{
    int64_t start_ms = (int64_t)window * o->window_ms;
    uint32_t first = part_at(o, first_ms - start_ms);
    uint32_t last = last_ms == first_ms ? first : part_at(o, last_ms - start_ms);

    if (o->window[window & 1] != window)
        clear(o, window);
    for (; first < last; first++) {
        uint32_t share = samples / (last - first + 1);

        *count_at(o, window & 1, first, switch_id) += share;
        samples -= share;
    }
    *count_at(o, window & 1, last, switch_id) += samples;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* The median of the parts that are not empty; 0: all are. */
static uint32_t median(const uint32_t *parts, uint32_t count)
{
    uint32_t sorted[PARTS_MAX], filled = 0;

    for (uint32_t i = 0; i < count; i++)
        if (parts[i])
            sorted[filled++] = parts[i];
    if (filled == 0)
        return 0;
    qsort(sorted, filled, sizeof(*sorted), by_size);
    return sorted[filled / 2];
}

/* Parts in which all of the fabric paused, by what was usual in this window, or in the last one
 * where that was more: what came shortly before it fell silent shows no outage. */
static void find_pauses(struct ft_outages *o, unsigned slot, bool *pauses)
{
    uint32_t all[PARTS_MAX] = {0}, usual, before = o->usual_all;

    for (uint32_t part = 0; part < o->parts; part++)
        for (uint32_t id = 0; id < ft_topology_switches(o->t); id++)
            all[part] += *count_at(o, slot, part, id);
    usual = median(all, o->parts);
    if (usual)
        o->usual_all = usual;
    usual = usual > before ? usual : before;
    for (uint32_t part = 0; part < o->parts; part++)
        pauses[part] = all[part] <= PAUSE * usual;
}

static bool has_outage(const struct ft_outages *o, unsigned slot, uint32_t id, const bool *pauses)
{
    uint32_t parts[PARTS_MAX], usual;

    for (uint32_t part = 0; part < o->parts; part++)
        parts[part] = *count_at(o, slot, part, id);
    usual = median(parts, o->parts);
    if (usual)
        o->usual[id] = usual;
    if (o->usual[id] < FT_OUTAGE_USUAL)
        return false;
    for (uint32_t part = 0; part < o->parts; part++)
        if (!pauses[part] && parts[part] == 0)
            return true;
    return false;
}

void ft_outages_close(struct ft_outages *o, uint32_t window)
{
    bool pauses[PARTS_MAX];

    if (o->window[window & 1] != window)
        clear(o, window);
    find_pauses(o, window & 1, pauses);
    for (uint32_t id = 0; id < ft_topology_switches(o->t); id++)
        o->had[id] = has_outage(o, window & 1, id, pauses) && o->parts > 1;
}

const bool *ft_outages_had(const struct ft_outages *o)
{
    return o->had;
}

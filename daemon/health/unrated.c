// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/unrated.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/table.h"
#include "lib/base/tuple.h"

#define FRESH_MS 300000

struct unrated {
    struct ft_ip agent;
    int64_t last_ms;
    uint64_t samples;
};

struct ft_unrated {
    struct ft_table *table;
};

struct ft_unrated *ft_unrated_new(size_t cap)
{
    struct ft_unrated *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->table = ft_table_new(sizeof(struct unrated), sizeof(struct ft_ip), cap, 0);
    if (!u->table) {
        free(u);
        return NULL;
    }
    return u;
}

void ft_unrated_free(struct ft_unrated *u)
{
    if (!u)
        return;
    ft_table_free(u->table);
    free(u);
}

void ft_unrated_take(struct ft_unrated *u, const Fabrictrace__Observation *o, int64_t now_ms)
{
    struct unrated *at, *old;
    struct ft_ip agent;
    uint32_t index = 0;
    bool fresh;

    if (!o->samples || !o->has_packets || o->packets ||
        o->point == FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_DISCARD ||
        ft_ip_from_bytes(o->agent.data, o->agent.len, &agent))
        return;
    at = ft_table_find(u->table, &agent);
    if (!at) {
        /* Few switches do this: those of before make room. */
        while ((old = ft_table_next(u->table, &index)))
            if (now_ms - old->last_ms > FRESH_MS)
                ft_table_remove(u->table, old);
        at = ft_table_insert(u->table, &agent, &fresh);
    }
    if (!at)
        return;
    at->last_ms = now_ms;
    at->samples += o->samples;
}

void ft_unrated_find(const struct ft_unrated *u, const struct ft_topology *t, int64_t now_ms,
                     struct ft_findings *findings)
{
    const struct unrated *at;
    uint32_t index = 0;

    while ((at = ft_table_next(u->table, &index))) {
        uint32_t id = ft_topology_switch_at(t, &at->agent);
        char agent[FT_IP_TEXT_BYTES];

        if (now_ms - at->last_ms > FRESH_MS)
            continue;
        ft_ip_format(&at->agent, agent);
        ft_findings_add(
            findings, FT_FINDING_NOTE, id == FT_NONE ? agent : ft_topology_switch(t, id)->name,
            NULL, "set a sampling rate on its exporter",
            "%" PRIu64 " of its samples have a sampling rate of 0: they show paths, but no rates",
            at->samples);
    }
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/unrated.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/table.h"
#include "lib/base/tuple.h"

#define FRESH_MS   300000
#define STANDS_MS  30000
#define NAME_BYTES 128
#define PAUSE_MS   60000 /* after which it begins anew */
#define LOOKS      32    /* at a full table, for each that is new */

struct unrated {
    struct ft_ip agent;
    int64_t since_ms, last_ms;
    uint64_t samples;
};

struct ft_unrated {
    struct ft_table *table;
    int64_t now_ms;
    uint32_t hand; /* where a full table is looked at next */
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

static bool is_old(void *arg, void *entry)
{
    const struct ft_unrated *u = arg;
    struct unrated *at = entry;

    /* This host's clock was set back. */
    if (at->last_ms > u->now_ms)
        at->last_ms = u->now_ms;
    return u->now_ms - at->last_ms > FRESH_MS;
}

void ft_unrated_take(struct ft_unrated *u, const struct ft_observed *o, int64_t now_ms)
{
    struct unrated *at;
    bool fresh;

    if (!o->samples || !o->has_packets || o->packets ||
        o->point == FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_DISCARD)
        return;
    u->now_ms = now_ms;
    at = ft_table_insert(u->table, &o->agent, &fresh);
    if (!at && ft_table_make_room(u->table, &u->hand, LOOKS, is_old, u))
        at = ft_table_insert(u->table, &o->agent, &fresh);
    if (!at)
        return;
    if (fresh || now_ms < at->last_ms || now_ms - at->last_ms > PAUSE_MS)
        at->since_ms = now_ms;
    at->last_ms = now_ms;
    at->samples += o->samples;
}

/* The switch of that agent address, else the address. */
static void name_of(const struct unrated *at, const struct ft_topology *t, char name[NAME_BYTES])
{
    uint32_t id = ft_topology_switch_at(t, &at->agent);

    if (id == FT_NONE)
        ft_ip_format(&at->agent, name);
    else
        snprintf(name, NAME_BYTES, "%s", ft_topology_switch(t, id)->name);
}

void ft_unrated_raise(const struct ft_unrated *u, const struct ft_topology *t,
                      struct ft_events *events, uint32_t window, int64_t now_ms)
{
    const struct unrated *at;
    uint32_t index = 0;

    while ((at = ft_table_next(u->table, &index))) {
        Fabrictrace__Event event;
        Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
        char name[NAME_BYTES], message[NAME_BYTES + 128];

        if (at->last_ms - at->since_ms < STANDS_MS || llabs(now_ms - at->last_ms) > PAUSE_MS)
            continue;
        name_of(at, t, name);
        snprintf(message, sizeof(message),
                 "%s: its samples state a sampling rate of 0: they show paths, and no rates", name);
        evidence.switch_ = name;
        evidence.has_count = true;
        evidence.count = at->samples;
        ft_emit_event(&event, FABRICTRACE__KIND__KIND_SAMPLING_RATE,
                      FABRICTRACE__SEVERITY__SEVERITY_WARNING, ft_topology_fabric(t), at->since_ms,
                      now_ms);
        event.subject = name;
        event.message = message;
        event.evidence = &evidence;
        ft_events_raise(events, window, &event);
    }
}

void ft_unrated_find(const struct ft_unrated *u, const struct ft_topology *t, int64_t now_ms,
                     struct ft_findings *findings)
{
    const struct unrated *at;
    uint32_t index = 0;

    while ((at = ft_table_next(u->table, &index))) {
        char name[NAME_BYTES];

        if (llabs(now_ms - at->last_ms) > FRESH_MS)
            continue;
        name_of(at, t, name);
        ft_findings_add(
            findings, FT_FINDING_NOTE, name, NULL, "set a sampling rate on its exporter",
            "%" PRIu64 " of its samples have a sampling rate of 0: they show paths, but no rates",
            at->samples);
    }
}

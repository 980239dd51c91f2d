// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "daemon/pairing/state.h"

#define SWEEP_MS 1000
/* A sweep takes a few percent of the time at most. */
#define SWEEP_ENDS_A_MS 50
/* Announcements that may be missed. */
#define MISSED 2.5

static void begin_names(struct ft_pairing *p)
{
    p->sweep.names = ft_names_crowded(p->names);
    if (p->sweep.names)
        ft_names_begin(p->names);
}

static void age_end(struct ft_pairing *p, void *entry)
{
    struct ft_pairing_qp *e = entry;

    if ((double)(p->now_ms - e->heard_ms) <= MISSED * (double)e->interval_ms) {
        ft_names_use(p->names, e->comm);
        ft_names_use(p->names, e->job);
        return;
    }
    p->stats.aged++;
    ft_pairing_remove_end(p, e, true);
}

static void end_names(struct ft_pairing *p)
{
    if (p->sweep.names)
        ft_names_sweep(p->names);
}

static void age_port(struct ft_pairing *p, void *entry)
{
    struct ft_pairing_port *port = entry;
    struct ft_pairing_host *host = ft_table_at(p->hosts, port->host);

    if ((double)(p->now_ms - port->heard_ms) <= MISSED * (double)port->interval_ms)
        return;
    host->complete_ms = 0;
    if (port->held)
        return;
    ft_pairing_drop_addresses(p, port);
    host->users--;
    ft_table_remove(p->ports, port);
}

static void age_member(struct ft_pairing *p, void *entry)
{
    if (ft_pairing_member_age(p, entry))
        ft_pairing_unlink_uncertain(p);
}

/* Hosts come and go for ever. */
static void age_host(struct ft_pairing *p, void *entry)
{
    const struct ft_pairing_host *host = entry;

    if (host->users == 0 && p->now_ms - host->heard_ms >= FT_PAIRING_HOST_MS)
        ft_table_remove(p->hosts, entry);
}

static void judge(struct ft_pairing *p, void *entry)
{
    ft_pairing_judge(p, entry);
}

/* In this order, each through all of a table: its entries by their index. */
static const struct {
    size_t table; /* in struct ft_pairing */
    void (*begin)(struct ft_pairing *p);
    void (*visit)(struct ft_pairing *p, void *entry); /* may remove it, and none other */
    void (*end)(struct ft_pairing *p);
} phases[] = {
    {offsetof(struct ft_pairing, ends), begin_names, age_end, end_names},
    {offsetof(struct ft_pairing, ports), NULL, age_port, NULL},
    {offsetof(struct ft_pairing, members), NULL, age_member, NULL},
    {offsetof(struct ft_pairing, hosts), NULL, age_host, NULL},
    {offsetof(struct ft_pairing, hosts), ft_pairing_groups_begin, ft_pairing_groups_host, NULL},
    {offsetof(struct ft_pairing, comms), NULL, ft_pairing_groups_comm, NULL},
    {offsetof(struct ft_pairing, members), NULL, ft_pairing_groups_member, NULL},
    {offsetof(struct ft_pairing, ends), NULL, judge, NULL},
};
#define PHASES (sizeof(phases) / sizeof(phases[0]))

static const struct ft_table *table_of(const struct ft_pairing *p, size_t phase)
{
    const struct ft_table *table;

    memcpy(&table, (const char *)p + phases[phase].table, sizeof(table));
    return table;
}

/* Entries that are free count, too: a table that was full once is gone through all the same. */
static uint32_t step_phase(struct ft_pairing *p, uint32_t items)
{
    const struct ft_table *table = table_of(p, p->sweep.phase);
    uint32_t from = p->sweep.index, left = ft_table_limit(table) - from;
    uint32_t to = from + (items < left ? items : left);

    if (from == 0 && phases[p->sweep.phase].begin)
        phases[p->sweep.phase].begin(p);
    for (; p->sweep.index < to; p->sweep.index++) {
        void *entry = ft_table_at(table, p->sweep.index);

        if (entry)
            phases[p->sweep.phase].visit(p, entry);
    }
    if (to < ft_table_limit(table))
        return 0;
    if (phases[p->sweep.phase].end)
        phases[p->sweep.phase].end(p);
    p->sweep.phase++;
    p->sweep.index = 0;
    return items - (to - from);
}

static bool step(struct ft_pairing *p, uint32_t items)
{
    while (items > 0 && p->sweep.phase < PHASES)
        if (p->sweep.phase == PHASES - 1 && p->covered < 0)
            items = ft_pairing_groups_cover(p, items);
        else
            items = step_phase(p, items);
    p->sweep.on = p->sweep.phase < PHASES;
    return p->sweep.on;
}

bool ft_pairing_sweep(struct ft_pairing *p, int64_t now_ms, uint32_t items)
{
    int64_t apart_ms = SWEEP_MS + (int64_t)ft_table_count(p->ends) / SWEEP_ENDS_A_MS;

    if (p->sweep.on)
        return step(p, items);
    if (ft_table_count(p->ports) == 0 || now_ms - p->swept_ms < apart_ms)
        return false;
    p->swept_ms = p->now_ms = now_ms;
    p->sweep = (struct ft_pairing_sweep_state){.on = true};
    return step(p, items);
}

bool ft_pairing_sweeping(const struct ft_pairing *p)
{
    return p->sweep.on;
}

void ft_pairing_finish(struct ft_pairing *p)
{
    if (p->sweep.on)
        step(p, UINT32_MAX);
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/processors.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/table.h"

#define BUSY_PERCENT 90
#define FRESH_MS     300000
#define LOOKS        32 /* at a full table, for each that is new */

struct key {
    struct ft_ip agent;
    uint32_t sub_agent;
    uint32_t source_type;
    uint32_t source_index;
};

struct processor {
    struct key key;
    int64_t time_ms;
    int64_t heard_ms; /* by this host's clock */
    bool minute;      /* percent is the mean of a minute, else of 5 seconds */
    double percent;
};

struct ft_processors {
    struct ft_table *table;
    int64_t now_ms;
    uint32_t hand; /* where a full table is looked at next */
};

struct ft_processors *ft_processors_new(size_t cap)
{
    struct ft_processors *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->table = ft_table_new(sizeof(struct processor), sizeof(struct key), cap, 0);
    if (!p->table) {
        free(p);
        return NULL;
    }
    return p;
}

void ft_processors_free(struct ft_processors *p)
{
    if (!p)
        return;
    ft_table_free(p->table);
    free(p);
}

static bool is_old(void *arg, void *entry)
{
    const struct ft_processors *p = arg;
    struct processor *at = entry;

    /* This host's clock was set back. */
    if (at->heard_ms > p->now_ms)
        at->heard_ms = p->now_ms;
    return p->now_ms - at->heard_ms > FRESH_MS;
}

int ft_processors_take(struct ft_processors *p, const Fabrictrace__Processor *load, int64_t now_ms)
{
    struct key key = {.sub_agent = load->sub_agent,
                      .source_type = load->source_type,
                      .source_index = load->source_index};
    struct processor *to;
    bool fresh;

    if (!load->has_agent || ft_ip_from_bytes(load->agent.data, load->agent.len, &key.agent) ||
        !load->has_time_ms || load->time_ms == 0 || load->time_ms > INT64_MAX / 2)
        return -EINVAL;
    p->now_ms = now_ms;
    to = ft_table_insert(p->table, &key, &fresh);
    if (!to && ft_table_make_room(p->table, &p->hand, LOOKS, is_old, p))
        to = ft_table_insert(p->table, &key, &fresh);
    if (!to)
        return -ENOSPC;
    to->heard_ms = now_ms;
    /* Much older is not late: the poller's clock was set back. */
    if ((int64_t)load->time_ms < to->time_ms && to->time_ms - (int64_t)load->time_ms <= FRESH_MS)
        return 0;
    to->time_ms = (int64_t)load->time_ms;
    to->minute = load->has_cpu_1m_percent;
    to->percent = load->has_cpu_1m_percent   ? load->cpu_1m_percent
                  : load->has_cpu_5s_percent ? load->cpu_5s_percent
                                             : 0;
    return 0;
}

void ft_processors_find(const struct ft_processors *p, const struct ft_topology *t, int64_t now_ms,
                        struct ft_findings *findings)
{
    const struct processor *at;
    uint32_t index = 0;

    while ((at = ft_table_next(p->table, &index))) {
        uint32_t id = ft_topology_switch_at(t, &at->key.agent);
        char agent[FT_IP_TEXT_BYTES];

        /* By our clock, which may have been set back: the poller's may be wrong. */
        if (at->percent < BUSY_PERCENT || llabs(now_ms - at->heard_ms) > FRESH_MS)
            continue;
        ft_ip_format(&at->key.agent, agent);
        ft_findings_add(findings, FT_FINDING_NOTE,
                        id == FT_NONE ? agent : ft_topology_switch(t, id)->name, NULL,
                        "sample fewer packets, and poll it less often",
                        "its processor is busy for %.0f %% of %s: it may drop samples", at->percent,
                        at->minute ? "a minute" : "5 seconds");
    }
}

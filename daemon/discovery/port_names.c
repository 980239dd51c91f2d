// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/port_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"

#define KEEP_MS 600000
#define AGE_MS  10000
/* What replaces a name: so many reports in a row over so long, and twice as many after each time
 * within an hour. */
#define OTHER_REPORTS 3U
#define OTHER_MS      30000
#define STEADY_MS     3600000
#define DOUBLED_MAX   8

struct port_key {
    struct ft_ip agent;
    uint32_t ifindex;
};

struct named {
    struct port_key key;
    int64_t heard_ms;
    int64_t since_ms; /* that it has the name */
    char name[FT_PORT_NAME_BYTES];
    char other[FT_PORT_NAME_BYTES]; /* said since then, so often in a row */
    int64_t other_ms;
    uint32_t others;
    uint32_t replaced; /* names, each within an hour of the one before */
    bool unsteady;
    int64_t unsteady_ms; /* the last time that the name came back */
};

struct ft_port_names {
    struct ft_table *table;
    int64_t aged_ms;
};

struct ft_port_names *ft_port_names_new(size_t cap)
{
    struct ft_port_names *n = calloc(1, sizeof(*n));

    if (!n)
        return NULL;
    n->table = ft_table_new(sizeof(struct named), sizeof(struct port_key), cap, 0);
    if (!n->table) {
        free(n);
        return NULL;
    }
    return n;
}

void ft_port_names_free(struct ft_port_names *n)
{
    if (!n)
        return;
    ft_table_free(n->table);
    free(n);
}

/* Makes room, and not again and again where there is none to be made. */
static void forget(struct ft_port_names *n, int64_t now_ms)
{
    struct named *named;
    uint32_t index = 0;

    if (now_ms >= n->aged_ms && now_ms - n->aged_ms < AGE_MS)
        return;
    n->aged_ms = now_ms;
    while ((named = ft_table_next(n->table, &index)))
        if (now_ms - named->heard_ms > KEEP_MS)
            ft_table_remove(n->table, named);
}

static void set_name(struct named *named, const char *name, int64_t now_ms)
{
    snprintf(named->name, sizeof(named->name), "%s", name);
    named->since_ms = now_ms;
    named->others = 0;
}

/* The name that it has is said: another one in between was not a new one. */
static bool take_same(struct named *named, int64_t now_ms)
{
    bool before = named->unsteady;

    if (named->others) {
        named->unsteady = true;
        named->unsteady_ms = now_ms;
    } else if (now_ms - named->unsteady_ms > KEEP_MS) {
        named->unsteady = false;
    }
    named->others = 0;
    return named->unsteady != before;
}

static bool take_other(struct named *named, const char *name, int64_t now_ms)
{
    if (named->others == 0 || strcmp(named->other, name) != 0 || now_ms < named->other_ms) {
        snprintf(named->other, sizeof(named->other), "%s", name);
        named->other_ms = now_ms;
        named->others = 0;
        if (now_ms - named->since_ms > STEADY_MS)
            named->replaced = 0;
    }
    named->others++;
    if (named->others < OTHER_REPORTS << named->replaced || now_ms - named->other_ms < OTHER_MS)
        return false;
    set_name(named, name, now_ms);
    named->replaced += named->replaced < DOUBLED_MAX;
    named->unsteady = false;
    return true;
}

int ft_port_names_take(struct ft_port_names *n, const Fabrictrace__PortCounters *poll,
                       int64_t now_ms, bool *changed)
{
    struct port_key key = {.ifindex = poll->ifindex};
    size_t length = poll->port ? strnlen(poll->port, FT_PORT_NAME_BYTES) : 0;
    struct named *named;
    bool fresh;

    *changed = false;
    if (poll->source != FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW || length == 0 ||
        length == FT_PORT_NAME_BYTES || !poll->ifindex || !poll->has_agent ||
        ft_ip_from_bytes(poll->agent.data, poll->agent.len, &key.agent))
        return 0;
    named = ft_table_insert(n->table, &key, &fresh);
    if (!named) {
        forget(n, now_ms);
        named = ft_table_insert(n->table, &key, &fresh);
    }
    if (!named)
        return -ENOSPC;
    named->heard_ms = now_ms;
    if (fresh)
        set_name(named, poll->port, now_ms);
    *changed =
        fresh || (strcmp(named->name, poll->port) == 0 ? take_same(named, now_ms)
                                                       : take_other(named, poll->port, now_ms));
    return 0;
}

const char *ft_port_names_find(const struct ft_port_names *n, const struct ft_ip *agent,
                               uint32_t ifindex)
{
    const struct port_key key = {*agent, ifindex};
    const struct named *named = ft_table_find(n->table, &key);

    return named ? named->name : NULL;
}

bool ft_port_names_unsteady(const struct ft_port_names *n, const struct ft_ip *agent,
                            uint32_t ifindex)
{
    const struct port_key key = {*agent, ifindex};
    const struct named *named = ft_table_find(n->table, &key);

    return named && named->unsteady;
}

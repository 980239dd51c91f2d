// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/down_ports.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/table.h"

#define KEEP_MS 600000
#define AGE_MS  10000

struct port_key {
    struct ft_ip agent;
    uint32_t ifindex; /* 0: of the agent itself */
};

struct said {
    struct port_key key;
    int64_t time_ms;  /* by the poller's clock */
    int64_t heard_ms; /* by ours */
    bool up, down;    /* its last state; down: it is believed. Of an agent: it fills up in */
    bool enabled;     /* that too; of an agent: not always as up */
    bool shut;
    bool counts; /* it has both of these */
    uint64_t in_bytes, out_bytes;
};

struct ft_down_ports {
    struct ft_table *table;
    uint32_t down;
    int64_t aged_ms;
};

struct ft_down_ports *ft_down_ports_new(size_t cap)
{
    struct ft_down_ports *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->table = ft_table_new(sizeof(struct said), sizeof(struct port_key), cap, 0);
    if (!w->table) {
        free(w);
        return NULL;
    }
    return w;
}

void ft_down_ports_free(struct ft_down_ports *w)
{
    if (!w)
        return;
    ft_table_free(w->table);
    free(w);
}

static void set_down(struct ft_down_ports *w, struct said *s, bool down)
{
    w->down += (uint32_t)down - (uint32_t)s->down;
    s->down = down;
}

/* Learns from what a port says which states its agent fills in; *agent as it is known, all false
 * where nothing is. */
static int vouch(struct ft_down_ports *w, const struct ft_ip *ip,
                 const Fabrictrace__PortCounters *poll, int64_t now_ms, struct said *agent)
{
    struct port_key key = {.agent = *ip};
    bool both = poll->has_admin_up && poll->admin_up && !poll->oper_up;
    struct said *s = ft_table_find(w->table, &key);
    bool fresh;

    if (!s && (poll->oper_up || both))
        s = ft_table_insert(w->table, &key, &fresh);
    if (!s && (poll->oper_up || both))
        return -ENOSPC;
    *agent = (struct said){.up = false};
    if (!s)
        return 0;
    s->up |= poll->oper_up;
    s->enabled |= both;
    if (poll->oper_up || both)
        s->heard_ms = now_ms;
    *agent = *s;
    return 0;
}

/* Whether the port is down, when it is said to be. */
static bool is_down(const struct said *before, bool fresh, const Fabrictrace__PortCounters *poll)
{
    bool counts = before->counts && poll->has_in_bytes && poll->has_out_bytes;
    bool same = before->in_bytes == poll->in_bytes && before->out_bytes == poll->out_bytes;

    if (fresh)
        return false;
    if (before->up)
        return true;
    return before->down ? !counts || same : counts && same;
}

int ft_down_ports_take(struct ft_down_ports *w, const Fabrictrace__PortCounters *poll,
                       int64_t now_ms, bool *changed)
{
    struct port_key key = {.ifindex = poll->ifindex};
    int64_t time_ms = (int64_t)poll->time_ms;
    bool fresh, was, was_shut;
    struct said agent, *s;
    int rc;

    *changed = false;
    if (poll->source != FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW || !poll->has_oper_up ||
        !poll->ifindex || !poll->has_agent || !poll->has_time_ms || time_ms <= 0 ||
        ft_ip_from_bytes(poll->agent.data, poll->agent.len, &key.agent))
        return 0;
    rc = vouch(w, &key.agent, poll, now_ms, &agent);
    s = rc ? NULL : ft_table_insert(w->table, &key, &fresh);
    if (!s)
        return -ENOSPC;
    /* An older one that was in progress; unless the poller's clock was set back. */
    if (!fresh && time_ms <= s->time_ms && s->time_ms - time_ms <= KEEP_MS)
        return 0;
    was = s->down;
    was_shut = s->shut;
    set_down(w, s, !poll->oper_up && agent.up && is_down(s, fresh, poll));
    s->enabled = poll->has_admin_up && poll->admin_up && agent.enabled;
    s->shut = s->down && poll->has_admin_up && !poll->admin_up && agent.enabled;
    *changed = was != s->down || was_shut != s->shut;
    s->up = poll->oper_up;
    s->time_ms = time_ms;
    s->heard_ms = now_ms;
    s->counts = poll->has_in_bytes && poll->has_out_bytes;
    s->in_bytes = poll->in_bytes;
    s->out_bytes = poll->out_bytes;
    return 0;
}

bool ft_down_ports_has_both(const struct ft_down_ports *w, const struct ft_ip *agent)
{
    struct port_key key = {.agent = *agent};
    const struct said *s = ft_table_find(w->table, &key);

    return s && s->up && s->enabled;
}

bool ft_down_ports_age(struct ft_down_ports *w, int64_t now_ms)
{
    uint32_t index = 0, before = w->down;
    struct said *s;

    if (now_ms >= w->aged_ms && now_ms - w->aged_ms < AGE_MS)
        return false;
    w->aged_ms = now_ms;
    while ((s = ft_table_next(w->table, &index)))
        if (now_ms - s->heard_ms > KEEP_MS) {
            set_down(w, s, false);
            ft_table_remove(w->table, s);
        }
    return w->down != before;
}

void ft_down_ports_set_back(struct ft_down_ports *w, int64_t now_ms)
{
    uint32_t index = 0;
    struct said *s;

    while ((s = ft_table_next(w->table, &index))) {
        if (s->heard_ms > now_ms)
            s->heard_ms = now_ms;
        /* A poller on this host has the same clock: its next reports are no old ones. */
        if (s->time_ms > now_ms)
            s->time_ms = now_ms;
    }
}

bool ft_down_ports_next(const struct ft_down_ports *w, uint32_t *index, struct ft_down_port *out)
{
    const struct said *s;

    while (w->down && (s = ft_table_next(w->table, index)))
        if (s->down) {
            *out = (struct ft_down_port){s->key.agent, s->key.ifindex, s->time_ms, s->shut,
                                         s->enabled};
            return true;
        }
    return false;
}

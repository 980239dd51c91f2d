// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"

#define WINDOWS      8
#define FIELDS       13
#define FCS_ERRORS   10  /* the first of the health's fields */
#define COVERED_PART 0.8 /* of a window, for a figure */
/* Polls further apart say too little of the windows between. */
#define APART_MS 600000
/* An agent's clock and its counters' cache are not exact: a port may seem to carry more for once.
 */
#define OVER_SPEED 1.5
#define SLACK_MS   15000
/* An uptime is read somewhat before the counters. */
#define CLOCK_CS 300
/* Looks at a full table for each port that is new: as many as a look-up in the cache takes time. */
#define LOOKS 32

/* Times that a port went down are kept, so many. */
#define DOWNS_MAX 16

struct poll_key {
    struct ft_ip agent;
    uint32_t ifindex;
    uint32_t source;
};

struct slice {
    uint32_t window;
    uint32_t missing; /* a bit for each field that a poll over it did not have */
    double covered_ms;
    double sum[FIELDS];
};

struct polled {
    struct poll_key key;
    int64_t time_ms;
    int64_t heard_ms; /* by this host's clock */
    uint64_t speed_bps;
    uint64_t value[FIELDS];
    bool has[FIELDS];
    bool has_lag;
    uint32_t lag_ifindex, lag_state;
    uint32_t lanes, lanes_low, lanes_high; /* of the optical module, while the port is up */
    bool has_up, up;
    bool has_uptime, has_discontinuity;
    bool shut;     /* its administrator did not enable it, by the newest report that says so */
    uint8_t downs; /* how many of these are known; the newest is at downs - 1 */
    uint32_t down_s[DOWNS_MAX];           /* when it was first reported down after it was up */
    uint16_t downs_shut;                  /* a bit for each of these: it was shut */
    uint32_t up_s;                        /* when it was last reported up */
    uint32_t uptime_cs, discontinuity_cs; /* modulo 2^32 */
    struct slice slices[WINDOWS];         /* by window number modulo WINDOWS */
};

struct ft_counters {
    struct ft_table *table;
    const struct ft_topology *t;
    int64_t window_ms;
    uint32_t *snmp, *sflow; /* index into the table, by port; FT_NONE */
    uint32_t hand;          /* where a full table is looked at next */
    int64_t heard_ms;       /* when the last poll came */
};

static int map_ports(struct ft_counters *c)
{
    size_t ports = ft_topology_ports(c->t);

    free(c->snmp);
    free(c->sflow);
    c->snmp = malloc((ports + 1) * sizeof(*c->snmp));
    c->sflow = malloc((ports + 1) * sizeof(*c->sflow));
    if (!c->snmp || !c->sflow) {
        free(c->snmp);
        free(c->sflow);
        c->snmp = c->sflow = NULL;
        return -ENOMEM;
    }
    memset(c->snmp, 0xff, (ports + 1) * sizeof(*c->snmp));
    memset(c->sflow, 0xff, (ports + 1) * sizeof(*c->sflow));
    return 0;
}

/* Where the index of an entry stands by its port; NULL where there is none. */
static uint32_t *mapped(struct ft_counters *c, const struct polled *p)
{
    uint32_t switch_id = ft_topology_switch_at(c->t, &p->key.agent);
    uint32_t port =
        switch_id == FT_NONE ? FT_NONE : ft_topology_port_at(c->t, switch_id, p->key.ifindex);
    bool snmp = p->key.source == FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SNMP;

    if (port == FT_NONE || !c->snmp)
        return NULL;
    return &(snmp ? c->snmp : c->sflow)[port];
}

/* Who polls a switch by another of its addresses has other entries: a port has the one that was
 * heard of later, and keeps it as long as that is polled, too. */
static void map_one(struct ft_counters *c, const struct polled *p, int64_t silent_ms)
{
    uint32_t *slot = mapped(c, p);
    const struct polled *has = slot && *slot != FT_NONE ? ft_table_at(c->table, *slot) : NULL;

    if (slot && (!has || p->heard_ms - has->heard_ms >= silent_ms))
        *slot = ft_table_index(c->table, p);
}

struct ft_counters *ft_counters_new(size_t cap, int64_t window_ms, const struct ft_topology *t)
{
    struct ft_counters *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->t = t;
    c->window_ms = window_ms;
    c->table = ft_table_new(sizeof(struct polled), sizeof(struct poll_key), cap, 0);
    if (!c->table || map_ports(c)) {
        ft_counters_free(c);
        return NULL;
    }
    return c;
}

void ft_counters_free(struct ft_counters *c)
{
    if (!c)
        return;
    ft_table_free(c->table);
    free(c->snmp);
    free(c->sflow);
    free(c);
}

int ft_counters_follow(struct ft_counters *c, const struct ft_topology *t)
{
    const struct polled *p;
    uint32_t index = 0;

    c->t = t;
    if (map_ports(c))
        return -ENOMEM;
    while ((p = ft_table_next(c->table, &index)))
        map_one(c, p, 0);
    return 0;
}

static struct slice *slice_of(struct polled *p, uint32_t window)
{
    struct slice *s = &p->slices[window % WINDOWS];

    if (s->window > window)
        return NULL;
    if (s->window < window)
        *s = (struct slice){.window = window};
    return s;
}

/* Lays the difference of two polls on the windows between them. */
static void lay(const struct ft_counters *c, struct polled *p, int64_t from_ms, int64_t to_ms,
                const uint64_t diff[FIELDS], uint32_t missing)
{
    int64_t first = from_ms / c->window_ms, last = (to_ms - 1) / c->window_ms;

    if (last - first >= WINDOWS)
        first = last - WINDOWS + 1;
    for (int64_t w = first; w <= last; w++) {
        struct slice *s = slice_of(p, (uint32_t)w);
        int64_t start = w * c->window_ms, end = start + c->window_ms;
        double ms = (double)((end < to_ms ? end : to_ms) - (start > from_ms ? start : from_ms));

        if (!s)
            continue;
        s->covered_ms += ms;
        s->missing |= missing;
        for (int f = 0; f < FIELDS; f++)
            s->sum[f] += (double)diff[f] * ms / (double)(to_ms - from_ms);
    }
}

/* The growth of each counter, and a bit for each that has none; false when one went back for
 * another reason than the end of its 64 bits, or grew by more than the port carries. */
static bool differ(const struct polled *before, const struct polled *now, uint64_t diff[FIELDS],
                   uint32_t *missing)
{
    double seconds = (double)(now->time_ms - before->time_ms + SLACK_MS) / 1000;
    double most = now->speed_bps ? (double)now->speed_bps / 8 * seconds * OVER_SPEED : 0;

    for (int f = 0; f < FIELDS; f++) {
        diff[f] = 0;
        if (!now->has[f] || !before->has[f]) {
            *missing |= UINT32_C(1) << f;
            continue;
        }
        diff[f] = now->value[f] - before->value[f];
        if (now->value[f] < before->value[f] && (most == 0 || (double)diff[f] > most))
            return false;
        if (most > 0 && f < 2 && (double)diff[f] > most)
            return false;
    }
    return true;
}

/* Whether the switch started between two polls, by its sysUpTime. That begins again every 497 days:
 * as long as it ran at the clock's pace it did not restart. */
static bool has_restarted(const struct polled *before, const struct polled *now)
{
    int64_t elapsed_cs = (now->time_ms - before->time_ms) / 10;
    int64_t tolerance_cs = CLOCK_CS + elapsed_cs / 100;
    int64_t advance_cs = (uint32_t)(now->uptime_cs - before->uptime_cs);

    if (!before->has_uptime || !now->has_uptime || llabs(advance_cs - elapsed_cs) <= tolerance_cs)
        return false;
    return now->uptime_cs < before->uptime_cs || now->uptime_cs < elapsed_cs + tolerance_cs;
}

/* Whether what a port counted at a poll has nothing to do with what it had counted before, also
 * where it is more. */
static bool is_interrupted(const struct polled *before, const struct polled *now)
{
    return has_restarted(before, now) || (before->has_discontinuity && now->has_discontinuity &&
                                          before->discontinuity_cs != now->discontinuity_cs);
}

static void note_state(struct polled *p, const Fabrictrace__PortCounters *poll)
{
    bool shut = !poll->oper_up && poll->has_admin_up && !poll->admin_up;

    if (!poll->has_oper_up)
        return;
    if (p->has_up && p->up && !poll->oper_up) {
        if (p->downs == DOWNS_MAX) {
            memmove(p->down_s, p->down_s + 1, --p->downs * sizeof(*p->down_s));
            p->downs_shut >>= 1;
        }
        p->downs_shut &= (uint16_t) ~(1u << p->downs);
        p->downs_shut |= (uint16_t)(shut << p->downs);
        p->down_s[p->downs++] = (uint32_t)(poll->time_ms / 1000);
    }
    p->has_up = true;
    p->up = poll->oper_up;
    p->shut = shut;
    if (p->up)
        p->up_s = (uint32_t)(poll->time_ms / 1000);
}

static void read_poll(struct polled *p, const Fabrictrace__PortCounters *poll)
{
    static const Fabrictrace__EthernetCounters none = FABRICTRACE__ETHERNET_COUNTERS__INIT;
    const Fabrictrace__EthernetCounters *e = poll->ethernet ? poll->ethernet : &none;
    const uint64_t values[FIELDS] = {
        poll->in_bytes,   poll->out_bytes,  poll->in_discards, poll->out_discards, poll->in_errors,
        poll->out_errors, poll->in_pause,   poll->out_pause,   poll->in_pfc,       poll->out_pfc,
        e->fcs_errors,    e->symbol_errors, e->too_long};
    const bool has[FIELDS] = {poll->has_in_bytes,     poll->has_out_bytes, poll->has_in_discards,
                              poll->has_out_discards, poll->has_in_errors, poll->has_out_errors,
                              poll->has_in_pause,     poll->has_out_pause, poll->has_in_pfc,
                              poll->has_out_pfc,      e->has_fcs_errors,   e->has_symbol_errors,
                              e->has_too_long};

    p->time_ms = (int64_t)poll->time_ms;
    if (poll->has_speed_bps && poll->speed_bps <= FT_SPEED_MAX_BPS)
        p->speed_bps = poll->speed_bps;
    memcpy(p->value, values, sizeof(values));
    memcpy(p->has, has, sizeof(has));
    p->has_uptime = poll->has_uptime_ms;
    p->uptime_cs = (uint32_t)(poll->uptime_ms / 10);
    p->has_discontinuity = poll->has_discontinuity_ms;
    p->discontinuity_cs = (uint32_t)(poll->discontinuity_ms / 10);
    note_state(p, poll);
    p->has_lag = poll->lag && poll->lag->has_state;
    p->lag_ifindex = p->has_lag ? poll->lag->ifindex : 0;
    p->lag_state = p->has_lag ? poll->lag->state : 0;
    p->lanes = poll->optics && poll->oper_up ? poll->optics->lanes : 0;
    p->lanes_low = p->lanes ? poll->optics->lanes_low : 0;
    p->lanes_high = p->lanes ? poll->optics->lanes_high : 0;
}

struct aging {
    struct ft_counters *c;
    int64_t now_ms;
};

/* Nothing so old is used for a figure. */
static bool is_gone(void *arg, void *entry)
{
    const struct aging *a = arg;
    struct polled *p = entry;
    uint32_t *slot;

    /* This host's clock was set back. */
    if (p->heard_ms > a->now_ms)
        p->heard_ms = a->now_ms;
    if (a->now_ms - p->heard_ms < APART_MS)
        return false;
    slot = mapped(a->c, p);
    /* A switch with two addresses has two entries for a port. */
    if (slot && *slot == ft_table_index(a->c->table, p))
        *slot = FT_NONE;
    return true;
}

static struct polled *entry_for(struct ft_counters *c, const struct poll_key *key, int64_t now_ms,
                                bool *fresh)
{
    struct aging aging = {c, now_ms};
    struct polled *p = ft_table_insert(c->table, key, fresh);

    if (!p && ft_table_make_room(c->table, &c->hand, LOOKS, is_gone, &aging))
        p = ft_table_insert(c->table, key, fresh);
    return p;
}

int ft_counters_take(struct ft_counters *c, const Fabrictrace__PortCounters *poll, int64_t now_ms)
{
    struct poll_key key = {.ifindex = poll->ifindex, .source = poll->source};
    struct polled *p, before;
    uint64_t diff[FIELDS];
    uint32_t missing = 0;
    bool fresh;

    if (!poll->has_agent || ft_ip_from_bytes(poll->agent.data, poll->agent.len, &key.agent) ||
        !poll->ifindex || !poll->has_time_ms || poll->time_ms == 0 || poll->time_ms > INT64_MAX / 2)
        return -EINVAL;
    p = entry_for(c, &key, now_ms, &fresh);
    if (!p)
        return -ENOSPC;
    p->heard_ms = c->heard_ms = now_ms;
    map_one(c, p, fresh ? INT64_MIN : APART_MS);
    if (!fresh && (int64_t)poll->time_ms <= p->time_ms) {
        if (p->time_ms - (int64_t)poll->time_ms <= APART_MS)
            return 0;
        /* The poller's clock was set back: windows that it reported are yet to come. */
        *p = (struct polled){.key = p->key, .heard_ms = now_ms};
    }
    before = *p;
    read_poll(p, poll);
    if (fresh || before.time_ms == 0 || p->time_ms - before.time_ms > APART_MS)
        return 0;
    if (!is_interrupted(&before, p) && differ(&before, p, diff, &missing))
        lay(c, p, before.time_ms, p->time_ms, diff, missing);
    return 0;
}

static const struct polled *entry_of(const struct ft_counters *c, const uint32_t *map,
                                     uint32_t port)
{
    return map && map[port] != FT_NONE ? ft_table_at(c->table, map[port]) : NULL;
}

bool ft_counters_window(const struct ft_counters *c, uint32_t port, uint32_t window,
                        struct ft_counted *out)
{
    const struct polled *p = entry_of(c, c->snmp, port), *sampled = entry_of(c, c->sflow, port);
    const struct slice *s;
    double scale;

    if (sampled && (!p || c->heard_ms - p->heard_ms >= APART_MS))
        p = sampled;
    s = p ? &p->slices[window % WINDOWS] : NULL;
    if (!s || s->window != window || s->covered_ms < COVERED_PART * (double)c->window_ms)
        return false;
    scale = (double)c->window_ms / s->covered_ms;
    *out = (struct ft_counted){
        .snmp = p->key.source == FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SNMP,
        .has_in_bytes = !(s->missing & 1u << 0),
        .has_out_bytes = !(s->missing & 1u << 1),
        .has_in_discards = !(s->missing & 1u << 2),
        .has_out_discards = !(s->missing & 1u << 3),
        .has_in_errors = !(s->missing & 1u << 4),
        .has_out_errors = !(s->missing & 1u << 5),
        .has_in_pause = !(s->missing & 1u << 6),
        .has_out_pause = !(s->missing & 1u << 7),
        .has_in_pfc = !(s->missing & 1u << 8),
        .has_out_pfc = !(s->missing & 1u << 9),
        .in_bytes = s->sum[0] * scale,
        .out_bytes = s->sum[1] * scale,
        .in_discards = s->sum[2] * scale,
        .out_discards = s->sum[3] * scale,
        .in_errors = s->sum[4] * scale,
        .out_errors = s->sum[5] * scale,
        .in_pause = s->sum[6] * scale,
        .out_pause = s->sum[7] * scale,
        .in_pfc = s->sum[8] * scale,
        .out_pfc = s->sum[9] * scale,
    };
    return true;
}

bool ft_counters_known(const struct ft_counters *c, uint32_t port, bool snmp)
{
    return entry_of(c, c->snmp, port) || (!snmp && entry_of(c, c->sflow, port));
}

static void sum_errors(const struct ft_counters *c, const struct polled *p,
                       struct ft_port_health *out)
{
    uint32_t newest = (uint32_t)(p->time_ms / c->window_ms);

    out->has_errors = true;
    for (int w = 0; w < WINDOWS; w++) {
        const struct slice *s = &p->slices[w];

        if (s->window + WINDOWS <= newest)
            continue;
        out->fcs_errors += s->sum[FCS_ERRORS];
        out->symbol_errors += s->sum[FCS_ERRORS + 1];
        out->too_long += s->sum[FCS_ERRORS + 2];
        out->seconds += s->covered_ms / 1000;
    }
}

void ft_counters_health(const struct ft_counters *c, uint32_t port, int64_t now_ms,
                        struct ft_port_health *out)
{
    const struct polled *by[2] = {entry_of(c, c->snmp, port), entry_of(c, c->sflow, port)};

    *out = (struct ft_port_health){.has_errors = false};
    for (int k = 0; k < 2; k++) {
        const struct polled *p = by[k];

        /* By our clock, which may have been set back: the poller's may be wrong. */
        if (!p || llabs(now_ms - p->heard_ms) > APART_MS)
            continue;
        if (p->has_lag) {
            out->has_lag = true;
            out->lag_ifindex = p->lag_ifindex;
            out->lag_state = p->lag_state;
        }
        if (p->lanes) {
            out->lanes = p->lanes;
            out->lanes_low = p->lanes_low;
            out->lanes_high = p->lanes_high;
        }
        if (!out->has_errors && p->has[FCS_ERRORS])
            sum_errors(c, p, out);
    }
}

/* How often a port went down between two moments, in all and since it was shut: by whichever of its
 * sources says more. */
static bool sum_downs(const struct ft_counters *c, uint32_t port, int64_t from_ms, int64_t to_ms,
                      uint32_t *downs, uint32_t *shuts)
{
    const struct polled *by[2] = {entry_of(c, c->snmp, port), entry_of(c, c->sflow, port)};
    bool known = false;

    *downs = *shuts = 0;
    for (int k = 0; k < 2; k++) {
        uint32_t n = 0, shut = 0;

        for (uint8_t i = 0; by[k] && i < by[k]->downs; i++)
            if (by[k]->down_s[i] >= from_ms / 1000 && by[k]->down_s[i] < to_ms / 1000) {
                n++;
                shut += by[k]->downs_shut >> i & 1;
            }
        known |= by[k] && by[k]->has_up;
        *downs = n > *downs ? n : *downs;
        *shuts = shut > *shuts ? shut : *shuts;
    }
    return known;
}

bool ft_counters_downs(const struct ft_counters *c, uint32_t port, uint32_t peer, int64_t from_ms,
                       int64_t to_ms, uint32_t *downs)
{
    uint32_t total, shuts, there, peer_shuts = 0;
    bool known = sum_downs(c, port, from_ms, to_ms, &total, &shuts);

    if (peer != FT_NONE)
        sum_downs(c, peer, from_ms, to_ms, &there, &peer_shuts);
    shuts += peer_shuts;
    *downs = total > shuts ? total - shuts : 0;
    return known;
}

bool ft_counters_state(const struct ft_counters *c, uint32_t port, int64_t now_ms,
                       struct ft_port_report *out)
{
    const struct polled *by[2] = {entry_of(c, c->snmp, port), entry_of(c, c->sflow, port)};
    const struct polled *newest = NULL;

    for (int k = 0; k < 2; k++)
        if (by[k] && by[k]->has_up && now_ms - by[k]->heard_ms < APART_MS &&
            (!newest || by[k]->time_ms > newest->time_ms))
            newest = by[k];
    if (!newest)
        return false;
    *out = (struct ft_port_report){.up = newest->up, .shut = newest->shut};
    if (!newest->up && newest->downs > 0) {
        /* As long before the newest report came as they are before its own time. */
        int64_t late_ms = newest->heard_ms - newest->time_ms;

        out->went_down = true;
        out->up_ms = (int64_t)newest->up_s * 1000 + late_ms;
        out->down_ms = (int64_t)newest->down_s[newest->downs - 1] * 1000 + late_ms;
    }
    return true;
}

uint64_t ft_counters_speed_bps(const struct ft_counters *c, uint32_t port)
{
    const struct polled *p = entry_of(c, c->snmp, port);

    if (!p)
        p = entry_of(c, c->sflow, port);
    return p ? p->speed_bps : 0;
}

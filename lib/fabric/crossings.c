// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/crossings.h"

#include <stdlib.h>

#include "lib/fabric/crossings_impl.h"

#define ROTATE_MS 20000 /* another share of the flows is looked at */
#define SHIFT_MAX 20
#define GAP_MS    10000 /* a flow that a switch did not see for longer may have been elsewhere */
#define CLOCKS_MS 1000  /* what two exporters' times may differ by */
#define IDLE_MS   30000
#define HALF_MS   60000
#define SILENT_MS 10000
#define KEEP_MS   3600000
#define SHOWS_MS  4000 /* within which flows show that a port leads to a switch */
#define HOSTS_MAX 1000000
/* Of ports_max: what one switch may have, a larger part where that is less than a large one has,
 * and what all may have that are in no inventory. */
#define EXPORTER_PART  16
#define EXPORTER_LEAST 1024
#define UNLISTED_PART  4

struct ft_crossings *ft_crossings_new(const struct ft_crossings_config *config)
{
    struct ft_crossings *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->config = *config;
    x->unlisted_max = config->ports_max / UNLISTED_PART;
    x->exporter_max = config->ports_max / EXPORTER_PART;
    if (x->exporter_max < EXPORTER_LEAST)
        x->exporter_max = x->unlisted_max < EXPORTER_LEAST ? x->unlisted_max : EXPORTER_LEAST;
    x->flows =
        ft_table_new(sizeof(struct ft_crossing_flow), sizeof(uint64_t), config->flows_max, 0);
    x->ports = ft_table_new(sizeof(struct ft_crossing_entry), sizeof(struct ft_crossing_port),
                            config->ports_max, 0);
    x->nodes =
        ft_table_new(sizeof(struct ft_crossing_node), sizeof(struct ft_ip), config->ports_max, 0);
    if (!x->flows || !x->ports || !x->nodes) {
        ft_crossings_free(x);
        return NULL;
    }
    return x;
}

void ft_crossings_free(struct ft_crossings *x)
{
    if (!x)
        return;
    ft_table_free(x->flows);
    ft_table_free(x->ports);
    ft_table_free(x->nodes);
    free(x->changes.list);
    free(x);
}

void ft_crossings_restart(struct ft_crossings *x)
{
    ft_table_clear(x->flows);
    ft_table_clear(x->ports);
    ft_table_clear(x->nodes);
    x->second = x->turned_ms = x->stepped_ms = 0;
    x->taken = x->shift = x->at = x->flow_at = 0;
    x->unlisted = 0;
    x->news = true;
    x->changes.count = 0;
    x->changes.all = true;
}

static void narrow(struct ft_crossings *x)
{
    x->shift = x->shift + 2 < SHIFT_MAX ? x->shift + 2 : SHIFT_MAX;
}

/* Another second: the share follows the rate of the one before. */
static void rotate(struct ft_crossings *x, int64_t now_ms)
{
    x->second = now_ms / 1000;
    if (x->shift && x->taken < x->config.rate_max / 4 &&
        ft_table_count(x->flows) < x->config.flows_max / 4)
        x->shift--;
    x->taken = 0;
    if (x->shift && now_ms - x->turned_ms >= ROTATE_MS) {
        x->turned_ms = now_ms;
        x->phase++;
    }
}

bool ft_crossings_follows(struct ft_crossings *x, uint64_t flow, int64_t now_ms)
{
    uint32_t mask = (1u << x->shift) - 1;

    x->stats.observed++;
    if (now_ms / 1000 > x->second)
        rotate(x, now_ms);
    if (((uint32_t)(flow >> 40) + x->phase) & mask) {
        x->stats.left_out++;
        return false;
    }
    if (++x->taken > x->config.rate_max) {
        x->taken = 0;
        narrow(x);
    }
    return true;
}

void ft_crossings_set_inventory(struct ft_crossings *x, bool inventory)
{
    x->inventory = inventory;
}

static struct ft_crossing_node *node_of(struct ft_crossings *x, const struct ft_crossing *c)
{
    bool fresh;
    struct ft_crossing_node *n = ft_table_insert(x->nodes, &c->agent, &fresh);

    if (!n)
        return NULL;
    if (c->last_ms > n->last_ms)
        n->last_ms = c->last_ms;
    /* It came into the inventory, or left it. */
    if (n->listed != c->listed) {
        x->unlisted -= c->listed ? n->ports : 0;
        x->unlisted += c->listed ? 0 : n->ports;
        n->listed = c->listed;
    }
    return n;
}

/* What counts that there is no room for another port of a switch; NULL: there is. */
static uint64_t *full_for(struct ft_crossings *x, const struct ft_crossing_node *node)
{
    if (node->ports >= x->exporter_max)
        return &x->stats.exporter_full;
    if (x->inventory && !node->listed && x->unlisted >= x->unlisted_max)
        return &x->stats.unlisted_full;
    return NULL;
}

/* Index of a port, FT_CROSSING_NOBODY without one. Without room, what counts that. */
static uint64_t *slot_of(struct ft_crossings *x, struct ft_crossing_node *node, uint32_t ifindex,
                         int64_t ms, uint32_t *out)
{
    struct ft_crossing_port key = {.agent = node->agent, .ifindex = ifindex};
    struct ft_crossing_entry *p;
    bool fresh = false;

    *out = FT_CROSSING_NOBODY;
    if (ifindex == 0)
        return NULL;
    p = ft_table_find(x->ports, &key);
    if (!p) {
        uint64_t *full = full_for(x, node);

        if (full)
            return full;
        p = ft_table_insert(x->ports, &key, &fresh);
    }
    if (!p)
        return &x->stats.ports_full;
    if (fresh) {
        p->node = ft_table_index(x->nodes, node);
        p->serial = ++x->serial;
        p->peer = p->agreed = FT_CROSSING_NOBODY;
        p->first_ms = p->aged_ms = ms;
        node->ports++;
        x->unlisted += !node->listed;
        x->news = true;
    }
    if (ms > p->last_ms)
        p->last_ms = ms;
    *out = ft_table_index(x->ports, p);
    return NULL;
}

static struct ft_crossing_flow *flow_of(struct ft_crossings *x, uint64_t hash, int64_t ms)
{
    bool fresh;
    struct ft_crossing_flow *f = ft_table_insert(x->flows, &hash, &fresh);

    if (!f)
        narrow(x);
    if (f && ms > f->last_ms)
        f->last_ms = ms;
    return f;
}

static bool fits(uint32_t known, uint32_t seen)
{
    return known == seen || known == FT_CROSSING_NOBODY || seen == FT_CROSSING_NOBODY;
}

static struct ft_crossing_hop *hop_of(struct ft_crossing_flow *f, uint32_t node, int64_t ms)
{
    struct ft_crossing_hop *oldest = NULL;

    for (uint32_t i = 0; i < f->hop_count; i++) {
        struct ft_crossing_hop *h = &f->hops[i];

        if (h->node == node)
            return h;
        if (!oldest || h->last_ms < oldest->last_ms)
            oldest = h;
    }
    if (f->hop_count < FT_CROSSING_HOPS)
        oldest = &f->hops[f->hop_count++];
    else if (ms - oldest->last_ms < GAP_MS)
        return NULL;
    *oldest = (struct ft_crossing_hop){.node = node, .last_ms = INT64_MIN / 2};
    return oldest;
}

/* Goes on with a flow's stay at a switch's ports, or begins another one. */
static void stay(struct ft_crossing_flow *f, struct ft_crossing_hop *h, uint32_t in, uint32_t out,
                 const struct ft_crossing *c)
{
    if (!fits(h->in, in) || !fits(h->out, out) || c->first_ms - h->last_ms > GAP_MS) {
        *h = (struct ft_crossing_hop){.node = h->node,
                                      .in = in,
                                      .out = out,
                                      .since_ms = c->first_ms,
                                      .last_ms = c->last_ms,
                                      .ttl = c->ttl};
        return;
    }
    if (in != FT_CROSSING_NOBODY)
        h->in = in;
    if (out != FT_CROSSING_NOBODY)
        h->out = out;
    if (c->last_ms > h->last_ms)
        h->last_ms = c->last_ms;
    if (h->ttl && c->ttl && abs(h->ttl - c->ttl) > 1)
        f->odd = true;
    if (c->ttl > h->ttl)
        h->ttl = c->ttl;
}

/* Whether a flow was at both for certain: one of the two stays began before the other and went on
 * after it, or they overlap for longer than clocks differ. */
static bool together(const struct ft_crossing_hop *a, const struct ft_crossing_hop *b)
{
    int64_t begin_ms = a->since_ms > b->since_ms ? a->since_ms : b->since_ms;
    int64_t end_ms = a->last_ms < b->last_ms ? a->last_ms : b->last_ms;

    return end_ms - begin_ms >= 2 * CLOCKS_MS ||
           (b->since_ms >= a->since_ms + CLOCKS_MS && b->last_ms <= a->last_ms - CLOCKS_MS) ||
           (a->since_ms >= b->since_ms + CLOCKS_MS && a->last_ms <= b->last_ms - CLOCKS_MS);
}

/* The voice for another port. Where all are taken, the weakest loses a vote, and its slot with the
 * last one: what most flows say is never crowded out. */
static struct ft_crossing_voice *voice_of(struct ft_crossing_voice *list, uint32_t port,
                                          uint32_t serial, int64_t ms)
{
    struct ft_crossing_voice *weakest = &list[0];

    for (uint32_t i = 0; i < FT_CROSSING_VOICES; i++) {
        uint32_t votes = ft_crossing_votes(&list[i]);

        if (votes && list[i].port == port && list[i].serial == serial)
            return &list[i];
        if (votes < ft_crossing_votes(weakest))
            weakest = &list[i];
    }
    for (uint32_t s = 0; s < FT_CROSSING_STEPS; s++)
        if (weakest->votes[s]) {
            weakest->votes[s]--;
            break;
        }
    if (ft_crossing_votes(weakest))
        return NULL;
    *weakest = (struct ft_crossing_voice){.port = port, .serial = serial, .first_ms = ms};
    return weakest;
}

/* A voice that is silent while another one of its port is heard is one of the past. */
static void hush(struct ft_crossing_voice *list, const struct ft_crossing_voice *heard)
{
    for (uint32_t i = 0; i < FT_CROSSING_VOICES; i++) {
        struct ft_crossing_voice *v = &list[i];

        if (v == heard || v->last_ms > heard->last_ms - SILENT_MS)
            continue;
        for (uint32_t s = 0; s < FT_CROSSING_STEPS; s++)
            v->votes[s] -= v->votes[s] / 8 + (v->votes[s] != 0);
    }
}

static void speak(struct ft_crossing_voice *list, uint32_t port, uint32_t serial,
                  enum ft_crossing_step step, const struct ft_crossing *c)
{
    struct ft_crossing_voice *v = voice_of(list, port, serial, c->last_ms);

    if (!v)
        return;
    v->votes[step]++;
    v->samples += c->samples < UINT32_MAX / 2 - v->samples ? c->samples : 0;
    v->flows |= UINT64_C(1) << (c->flow >> 16 & 63);
    if (c->last_ms > v->last_ms)
        v->last_ms = c->last_ms;
    hush(list, v);
}

/* A flow leaves one switch by a port, and enters another one by a port. */
static void vote(struct ft_crossings *x, const struct ft_crossing_hop *from,
                 const struct ft_crossing_hop *to, enum ft_crossing_step step,
                 const struct ft_crossing *c)
{
    struct ft_crossing_entry *out, *in;

    if (from->out == FT_CROSSING_NOBODY || to->in == FT_CROSSING_NOBODY)
        return;
    out = ft_table_at(x->ports, from->out);
    in = ft_table_at(x->ports, to->in);
    if (!out || !in)
        return;
    speak(out->out, to->in, in->serial, step, c);
    speak(in->in, from->out, out->serial, step, c);
}

/* A flow leaves one switch by a port, and enters another one by a port, but far from there: they
 * are no neighbours in the other direction either. */
static void refute(struct ft_crossings *x, const struct ft_crossing_hop *from,
                   const struct ft_crossing_hop *to)
{
    struct ft_crossing_entry *out, *in;
    struct ft_crossing_voice *v;

    if (from->out == FT_CROSSING_NOBODY || to->in == FT_CROSSING_NOBODY)
        return;
    out = ft_table_at(x->ports, from->out);
    in = ft_table_at(x->ports, to->in);
    v = out && in ? ft_crossing_find(in->out, from->out, out->serial) : NULL;
    if (v)
        v->far++;
    v = out && in ? ft_crossing_find(out->in, to->in, in->serial) : NULL;
    if (v)
        v->far++;
}

static void compare(struct ft_crossings *x, const struct ft_crossing_hop *a,
                    const struct ft_crossing_hop *b, const struct ft_crossing *c)
{
    int step = a->ttl - b->ttl;

    if (a->ttl == 0 || b->ttl == 0) {
        vote(x, a, b, FT_CROSSING_NO_TTL, c);
        vote(x, b, a, FT_CROSSING_NO_TTL, c);
        return;
    }
    if (step == FT_CROSSING_FAR)
        refute(x, a, b);
    if (step == -FT_CROSSING_FAR)
        refute(x, b, a);
    if (step >= 0 && step <= FT_CROSSING_NEXT_BUT_ONE)
        vote(x, a, b, (enum ft_crossing_step)step, c);
    if (step <= 0 && step >= -FT_CROSSING_NEXT_BUT_ONE)
        vote(x, b, a, (enum ft_crossing_step) - step, c);
}

/* TTLs that hosts send with. */
static bool is_fresh(unsigned ttl)
{
    return ttl == 32 || ttl == 64 || ttl == 128 || ttl == 255;
}

/* Counts what shows at which point a switch samples: the TTL of the first switch on the way. Where
 * a tunnel begins or ends it shows nothing: what makes it may sample before or after it did so.
 * Such a switch shows packets without the tunnel too. */
static void count_fresh(struct ft_crossing_node *n, uint8_t ttl, bool tunnel)
{
    if (!tunnel && !n->plain) {
        n->plain = true;
        n->fresh = n->fresh_less_one = 0;
    }
    if (tunnel && n->plain)
        return;
    n->fresh += n->fresh < HOSTS_MAX && is_fresh(ttl);
    n->fresh_less_one += n->fresh_less_one < HOSTS_MAX && is_fresh(ttl + 1u);
}

/* Whether packets came in from a host, and not from a switch that sends no samples: their TTL is as
 * hosts send it. */
static bool is_from_host(struct ft_crossings *x, const struct ft_crossing_flow *f,
                         const struct ft_crossing_hop *h, const struct ft_crossing *c)
{
    struct ft_crossing_node *n = ft_table_at(x->nodes, h->node);
    struct ft_crossing_entry *in;
    bool from_host;

    if (f->odd || c->ttl == 0 || h->in == FT_CROSSING_NOBODY || !n)
        return false;
    for (uint32_t i = 0; i < f->hop_count; i++)
        if (&f->hops[i] != h && f->hops[i].ttl >= h->ttl &&
            f->hops[i].last_ms > c->first_ms - GAP_MS)
            return false;
    count_fresh(n, h->ttl, c->tunnel);
    from_host = !c->tunnel && ((n->ttl == FT_CROSSING_TTL_RECEIVED && is_fresh(h->ttl)) ||
                               (n->ttl == FT_CROSSING_TTL_SENT && is_fresh(h->ttl + 1u)));
    in = ft_table_at(x->ports, h->in);
    /* A switch that does not count the TTL down hands packets on as the host sent them: a port is
     * taken for a host's only after it had the time to show that it leads to a switch. */
    from_host =
        from_host && in && c->last_ms - in->first_ms >= SHOWS_MS && !ft_crossing_leads_on(x, in);
    if (from_host && in->hosts < HOSTS_MAX && ++in->hosts == FT_CROSSING_HOSTS_LEAST)
        ft_crossings_note(x, in);
    return from_host;
}

bool ft_crossings_observe(struct ft_crossings *x, const struct ft_crossing *c)
{
    struct ft_crossing_node *node;
    struct ft_crossing_flow *f;
    struct ft_crossing_hop *h;
    uint64_t *full;
    uint32_t in, out;

    /* Without a port it says nothing, and nothing of it would ever be forgotten. */
    if (!c->in && !c->out) {
        x->stats.taken++;
        return false;
    }
    node = node_of(x, c);
    full = node ? slot_of(x, node, c->in, c->last_ms, &in) : &x->stats.ports_full;
    if (!full)
        full = slot_of(x, node, c->out, c->last_ms, &out);
    if (full) {
        ++*full;
        if (node && !node->ports)
            ft_table_remove(x->nodes, node);
        return false;
    }
    f = flow_of(x, c->flow, c->last_ms);
    h = f ? hop_of(f, ft_table_index(x->nodes, node), c->last_ms) : NULL;
    if (!h) {
        x->stats.flows_full++;
        return false;
    }
    x->stats.taken++;
    stay(f, h, in, out, c);
    for (uint32_t i = 0; i < f->hop_count && !f->odd; i++)
        if (&f->hops[i] != h && f->hops[i].last_ms > c->first_ms - GAP_MS &&
            together(&f->hops[i], h))
            compare(x, &f->hops[i], h, c);
    return is_from_host(x, f, h, c);
}

static void age_voices(struct ft_crossing_voice *list, unsigned halvings)
{
    for (uint32_t i = 0; i < FT_CROSSING_VOICES; i++) {
        struct ft_crossing_voice *v = &list[i];

        for (uint32_t s = 0; s < FT_CROSSING_STEPS; s++)
            v->votes[s] = halvings > 31 ? 0 : v->votes[s] >> halvings;
        v->far = halvings > 31 ? 0 : v->far >> halvings;
        v->samples = halvings > 31 ? 0 : v->samples >> halvings;
        v->flows_before = halvings > 1 ? 0 : v->flows;
        v->flows = 0;
    }
}

static void age(struct ft_crossings *x, struct ft_crossing_entry *p, int64_t now_ms)
{
    int64_t halvings = (now_ms - p->aged_ms) / HALF_MS;
    struct ft_crossing_entry *peer;

    if (now_ms - p->last_ms > KEEP_MS) {
        struct ft_crossing_node *n = ft_table_at(x->nodes, p->node);

        peer = ft_crossing_entry_at(x, p->peer, p->peer_serial);
        if (peer) {
            peer->peer = FT_CROSSING_NOBODY;
            ft_crossings_note(x, peer);
        }
        ft_crossings_note(x, p);
        x->unlisted -= n && !n->listed;
        if (n && --n->ports == 0)
            ft_table_remove(x->nodes, n);
        ft_table_remove(x->ports, p);
        return;
    }
    if (halvings > 0) {
        age_voices(p->out, halvings > 32 ? 32 : (unsigned)halvings);
        age_voices(p->in, halvings > 32 ? 32 : (unsigned)halvings);
        p->aged_ms = now_ms;
    }
    ft_crossings_weigh(x, p);
}

static void sweep_flows(struct ft_crossings *x, uint32_t count, int64_t now_ms)
{
    uint32_t limit = ft_table_limit(x->flows);

    for (uint32_t i = 0; i < count && limit; i++) {
        struct ft_crossing_flow *f;

        x->flow_at = x->flow_at + 1 < limit ? x->flow_at + 1 : 0;
        f = ft_table_at(x->flows, x->flow_at);
        if (f && now_ms - f->last_ms > IDLE_MS)
            ft_table_remove(x->flows, f);
    }
}

/* A part of a table that the time since the last step stands for. */
static uint32_t part_of(uint32_t limit, int64_t ms)
{
    return ms >= 1000 ? limit : (uint32_t)((limit * (uint64_t)ms + 999) / 1000);
}

void ft_crossings_step(struct ft_crossings *x, int64_t now_ms)
{
    int64_t ms = now_ms - x->stepped_ms;
    uint32_t limit = ft_table_limit(x->ports), count;

    if (ms <= 0)
        ms = ms < 0 ? 1 : 0;
    count = part_of(limit, ms);
    x->stepped_ms = now_ms;
    for (uint32_t i = 0; i < count; i++) {
        struct ft_crossing_entry *p = ft_table_at(x->ports, x->at);

        if (p)
            age(x, p, now_ms);
        if (++x->at >= limit) {
            x->at = 0;
            ft_crossings_find_points(x);
        }
    }
    sweep_flows(x, part_of(ft_table_limit(x->flows), ms), now_ms);
}

bool ft_crossings_take_news(struct ft_crossings *x)
{
    bool news = x->news;

    x->news = false;
    return news;
}

const struct ft_crossings_stats *ft_crossings_stats(const struct ft_crossings *x)
{
    return &x->stats;
}

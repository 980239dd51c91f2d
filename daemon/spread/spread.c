// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/spread/spread.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/join/flow_names.h"
#include "daemon/spread/kept.h"
#include "lib/base/table.h"
#include "lib/fabric/choice.h"
#include "lib/fabric/effective.h"
#include "lib/fabric/metrics.h"
#include "lib/fabric/spread.h"

/* A link of which so few samples are chance is named as dead. */
#define DEAD_P 0.001
/* Groups that one flow passes on its way up: a sprayed one those behind each link. */
#define GROUPS_MAX (1 + FT_SPREAD_LINKS_MAX)
/* Tiers in which switches choose among links up. */
#define TIERS_MAX 3
/* Hashed and compared as bytes: no padding. */
struct key {
    uint64_t a, b; /* hosts, or the interned name of a job */
    uint32_t kind; /* Fabrictrace__SpreadOf */
    uint32_t group;
};

/* What is known at one group. */
struct group_stats {
    uint32_t group;
    uint32_t flows, sprayed;
    uint32_t first, end; /* of one flow: the links with samples are among these */
    uint32_t dst_nic;    /* of the flow, or of the last one */
    uint32_t left;       /* from the switch to the destinations */
    bool mixed;          /* these are at several distances */
    uint64_t possible;   /* links that lead on, by bit: of one flow where it is published */
    struct ft_spread_link links[FT_SPREAD_LINKS_MAX];
};

struct entry {
    struct key key;
    struct group_stats *group_stats;
};

struct ft_spread {
    struct ft_table *entries;
    struct ft_chance *chance;
    struct ft_spread_kept kept, next; /* of the last window, and of the one that closes */
    uint32_t cursor;
    uint64_t refused;
};

_Static_assert(FT_SPREAD_LINKS_MAX <= 64, "a bit for each link");
_Static_assert(sizeof(struct entry) + sizeof(struct group_stats) + 40 + 16 <= FT_SPREAD_ENTRY_BYTES,
               "what the budget of the program gives an entry");

struct ft_spread *ft_spread_new(uint64_t seed)
{
    struct ft_spread *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    ft_spread_kept_init(&s->kept);
    ft_spread_kept_init(&s->next);
    s->entries =
        ft_table_new(sizeof(struct entry), sizeof(struct key), FT_SPREAD_ENTRIES_MAX, seed);
    s->chance = ft_chance_new();
    if (!s->entries || !s->chance) {
        ft_spread_free(s);
        return NULL;
    }
    return s;
}

static void forget(struct ft_spread *s)
{
    struct entry *e;
    uint32_t index = 0;

    while (s->entries && (e = ft_table_next(s->entries, &index)))
        free(e->group_stats);
    if (s->entries)
        ft_table_clear(s->entries);
}

void ft_spread_free(struct ft_spread *s)
{
    if (!s)
        return;
    forget(s);
    ft_table_free(s->entries);
    ft_chance_free(s->chance);
    ft_spread_kept_free(&s->kept);
    ft_spread_kept_free(&s->next);
    free(s);
}

void ft_spread_begin(struct ft_spread *s)
{
    forget(s);
    ft_spread_kept_clear(&s->next);
    s->cursor = 0;
}

/* The link that a sighting is of, as an egress port that leads up: at its own switch, or seen from
 * the other end. */
static uint32_t link_of(const struct ft_topology *t, const struct ft_sighting *s, bool own)
{
    uint32_t port = s->out;

    if (!own)
        port = s->in != FT_NONE && ft_is_port(s->in) ? ft_topology_port(t, s->in)->peer : FT_NONE;
    if (port == FT_NONE || !ft_is_port(port) || ft_topology_port(t, port)->group == FT_NONE ||
        ft_topology_port(t, port)->direction != FT_DIRECTION_UP)
        return FT_NONE;
    return port;
}

static uint32_t position(const struct ft_group *g, uint32_t port)
{
    for (uint32_t i = 0; i < g->link_count; i++)
        if (g->links[i] == port)
            return i;
    return FT_NONE;
}

static void see(struct ft_spread_link *l, const struct ft_sighting *s, unsigned slot)
{
    int64_t first_ms = ft_sighting_first_ms(s);

    if (l->samples == 0 || first_ms < l->first_ms)
        l->first_ms = first_ms;
    if (l->samples == 0 || s->last_ms > l->last_ms)
        l->last_ms = s->last_ms;
    l->samples += s->samples[slot];
}

static const struct ft_sighting *sightings(const struct ft_flow *flow)
{
    return flow->evidence.size ? flow->evidence.list : flow->evidence.own;
}

/* A flow's samples at a group. Returns on how many links they are; *at: one of these. */
static uint32_t look_at(struct group_stats *p, const struct ft_topology *t,
                        const struct ft_flow *flow, unsigned slot, bool own, uint32_t *at)
{
    const struct ft_sighting *list = sightings(flow);
    const struct ft_group *g = ft_topology_group(t, p->group);
    uint32_t seen = 0;

    memset(p->links, 0, g->link_count * sizeof(*p->links));
    for (uint16_t i = 0; i < flow->evidence.count; i++) {
        uint32_t port = list[i].samples[slot] ? link_of(t, &list[i], own) : FT_NONE, link;

        if (port == FT_NONE || ft_topology_port(t, port)->group != p->group)
            continue;
        link = position(g, port);
        if (link == FT_NONE)
            continue;
        seen += p->links[link].samples == 0;
        see(&p->links[link], &list[i], slot);
        *at = link;
    }
    return seen;
}

/* The groups that samples of a flow name. */
static size_t groups_of(const struct ft_topology *t, const struct ft_flow *flow, unsigned slot,
                        uint32_t groups[GROUPS_MAX])
{
    const struct ft_sighting *list = sightings(flow);
    size_t n = 0;

    for (uint16_t i = 0; i < flow->evidence.count; i++)
        for (int own = 0; own < 2; own++) {
            uint32_t port = list[i].samples[slot] ? link_of(t, &list[i], own) : FT_NONE, group;
            size_t k = 0;

            if (port == FT_NONE)
                continue;
            group = ft_topology_port(t, port)->group;
            while (k < n && groups[k] != group)
                k++;
            if (k == n && n < GROUPS_MAX &&
                ft_topology_group(t, group)->link_count <= FT_SPREAD_LINKS_MAX)
                groups[n++] = group;
        }
    return n;
}

/* Each sample of what is sprayed chose its link; what is not did so once. */
static void count_trials(struct group_stats *p)
{
    uint32_t most = p->first;

    for (uint32_t i = p->first; i < p->end; i++) {
        if (p->links[i].samples > p->links[most].samples)
            most = i;
        p->links[i].trials = p->sprayed ? p->links[i].samples : 0;
    }
    if (!p->sprayed)
        p->links[most].trials = 1;
}

static void add_group_stats(struct group_stats *sum, const struct group_stats *p,
                            const struct ft_topology *t)
{
    sum->flows++;
    sum->sprayed += p->sprayed;
    if (sum->dst_nic != p->dst_nic) {
        const struct ft_group *g = ft_topology_group(t, p->group);
        uint32_t left = ft_choice_distance(t, g->switch_id, p->dst_nic);

        sum->possible |= ft_topology_nearest_links(t, g, p->dst_nic);
        sum->mixed |= sum->flows > 1 && left != sum->left;
        sum->left = left;
    }
    sum->dst_nic = p->dst_nic;
    for (uint32_t i = p->first; i < p->end; i++) {
        struct ft_spread_link *to = &sum->links[i];
        const struct ft_spread_link *from = &p->links[i];

        if (from->samples == 0)
            continue;
        if (to->samples == 0 || from->last_ms > to->last_ms)
            to->last_ms = from->last_ms;
        to->samples += from->samples;
        to->trials += from->trials;
    }
}

static void add_to(struct ft_spread *s, const struct key *key, const struct group_stats *p,
                   const struct ft_topology *t)
{
    bool fresh;
    struct entry *e = ft_table_insert(s->entries, key, &fresh);

    if (e && fresh) {
        e->group_stats = calloc(1, sizeof(*e->group_stats));
        if (!e->group_stats) {
            ft_table_remove(s->entries, e);
            e = NULL;
        } else {
            e->group_stats->group = p->group;
            e->group_stats->dst_nic = FT_NONE;
        }
    }
    if (e)
        add_group_stats(e->group_stats, p, t);
    else
        s->refused++;
}

/* The parts of a record that is being made. */
struct parts {
    Fabrictrace__Spread out;
    Fabrictrace__SpreadLink links[FT_SPREAD_LINKS_MAX];
    Fabrictrace__SpreadLink *list[FT_SPREAD_LINKS_MAX];
    char *dead[FT_SPREAD_LINKS_MAX];
};

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void fill_link(Fabrictrace__SpreadLink *out, const struct ft_spread_link *l,
                      const char *port, uint64_t samples)
{
    fabrictrace__spread_link__init(out);
    out->port = text(port);
    out->has_samples = out->has_trials = true;
    out->samples = l->samples;
    out->trials = l->trials;
    if (samples) {
        out->has_share = out->has_share_lo = out->has_share_hi = true;
        out->share = (double)l->samples / (double)samples;
        ft_wilson(l->samples, samples, &out->share_lo, &out->share_hi);
    }
    out->has_last_ms = l->samples > 0;
    out->last_ms = (uint64_t)l->last_ms;
}

static void fill_figures(struct parts *parts, const struct ft_spread_figures *f, uint32_t possible,
                         const char *least)
{
    Fabrictrace__Spread *out = &parts->out;

    out->has_possible = out->has_seen = out->has_samples = out->has_trials = true;
    out->possible = possible;
    out->seen = f->seen;
    out->samples = f->samples;
    out->trials = f->trials;
    out->has_effective_paths = f->samples > 0;
    out->effective_paths = f->effective;
    if (possible < 2)
        return;
    out->has_even_p = out->has_least_p = true;
    out->even_p = f->even_p;
    out->least_p = f->least_p;
    out->least = text(least);
}

/* Of the links that lead on. */
static void fill_group_stats(struct ft_spread *s, struct parts *parts, const struct ft_topology *t,
                             const struct group_stats *p)
{
    const struct ft_group *g = ft_topology_group(t, p->group);
    struct ft_spread_link links[FT_SPREAD_LINKS_MAX];
    const char *names[FT_SPREAD_LINKS_MAX];
    struct ft_spread_figures f;
    Fabrictrace__Spread *out = &parts->out;
    uint32_t m = 0;

    for (uint32_t i = 0; i < g->link_count; i++)
        if (p->possible & UINT64_C(1) << i || p->links[i].samples) {
            names[m] = ft_topology_port(t, g->links[i])->name;
            links[m++] = p->links[i];
        }
    ft_spread_figures(links, m, s->chance, &f);
    out->switch_ = text(ft_topology_switch(t, g->switch_id)->name);
    out->group = text(g->name);
    out->has_flows = out->has_sprayed_flows = true;
    out->flows = p->flows;
    out->sprayed_flows = p->sprayed;
    fill_figures(parts, &f, m, names[f.least]);
    out->dead = parts->dead;
    for (uint32_t i = 0; i < m; i++) {
        fill_link(&parts->links[i], &links[i], names[i], f.samples);
        parts->list[i] = &parts->links[i];
        if (links[i].samples == 0 && f.least_p < DEAD_P)
            parts->dead[out->n_dead++] = text(names[i]);
    }
    out->links = parts->list;
    out->n_links = m;
}

/* Publishes a record, and keeps it where there is room. */
static void hand_on(struct ft_spread *s, struct parts *parts, const struct ft_topology *t,
                    const struct ft_span *span, const struct ft_emitter *emitter)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    parts->out.has_window_start_ms = parts->out.has_window_end_ms = true;
    parts->out.window_start_ms = (uint64_t)span->start_ms;
    parts->out.window_end_ms = (uint64_t)span->end_ms;
    parts->out.fabric = text(ft_topology_fabric(t));
    record.kind_case = FABRICTRACE__RECORD__KIND_SPREAD;
    record.spread = &parts->out;
    emitter->record(emitter->arg, &record);
    s->refused += !ft_spread_kept_add(&s->next, &record);
}

static void publish_flow(struct ft_spread *s, const struct ft_join *join,
                         const struct ft_flow *flow, const struct group_stats *p,
                         enum ft_alternation alternation, double alternation_p,
                         const struct ft_span *span, const struct ft_emitter *emitter)
{
    static const Fabrictrace__Alternation names[] = {
        [FT_ALTERNATION_UNKNOWN] = FABRICTRACE__ALTERNATION__ALTERNATION_UNKNOWN,
        [FT_ALTERNATION_SPRAYED] = FABRICTRACE__ALTERNATION__ALTERNATION_SPRAYED,
        [FT_ALTERNATION_MOVED] = FABRICTRACE__ALTERNATION__ALTERNATION_MOVED,
    };
    const struct ft_topology *t = ft_join_topology(join);
    struct parts parts = {.out = FABRICTRACE__SPREAD__INIT};
    Fabrictrace__Flow tuple;

    fill_group_stats(s, &parts, t, p);
    ft_emit_tuple(&tuple, &flow->tuple);
    parts.out.has_of = true;
    parts.out.of = FABRICTRACE__SPREAD_OF__SPREAD_OF_QP;
    parts.out.flow = &tuple;
    parts.out.src_host = text(ft_flow_src_host(join, flow));
    parts.out.dst_host = text(ft_flow_dst_host(join, flow));
    parts.out.job = flow->host ? text(flow->host->job) : NULL;
    parts.out.has_alternation = true;
    parts.out.alternation = names[alternation];
    parts.out.has_alternation_p = alternation == FT_ALTERNATION_MOVED;
    parts.out.alternation_p = alternation_p;
    hand_on(s, &parts, t, span, emitter);
}

void ft_spread_flow(struct ft_spread *s, const struct ft_join *join, const struct ft_flow *flow,
                    const struct ft_span *span, const struct ft_emitter *emitter)
{
    const struct ft_topology *t = ft_join_topology(join);
    unsigned slot = flow->bytes_window & 1;
    uint32_t groups[GROUPS_MAX];
    size_t n;

    if (ft_role_answers(flow->role) || flow->src_nic == FT_NONE || flow->dst_nic == FT_NONE)
        return;
    n = groups_of(t, flow, slot, groups);
    for (size_t i = 0; i < n; i++) {
        const struct ft_group *g = ft_topology_group(t, groups[i]);
        struct key key = {.a = ft_topology_nic(t, flow->src_nic)->host_id,
                          .b = ft_topology_nic(t, flow->dst_nic)->host_id,
                          .kind = FABRICTRACE__SPREAD_OF__SPREAD_OF_CONNECTION,
                          .group = groups[i]};
        enum ft_alternation alternation = FT_ALTERNATION_UNKNOWN;
        uint32_t seen, at = 0;
        double moved_p = 0;
        struct group_stats p;

        p.group = groups[i];
        p.flows = 1;
        seen = look_at(&p, t, flow, slot, true, &at);
        if (seen == 0)
            seen = look_at(&p, t, flow, slot, false, &at);
        if (seen == 0)
            continue;
        p.first = seen > 1 ? 0 : at;
        p.end = seen > 1 ? g->link_count : at + 1;
        p.dst_nic = flow->dst_nic;
        if (seen > 1)
            alternation = ft_spread_alternation(p.links, g->link_count, &moved_p);
        p.sprayed = alternation == FT_ALTERNATION_SPRAYED || flow->state == FT_PATH_MULTIPATH;
        count_trials(&p);
        /* What came since is of the next window. */
        for (uint32_t k = p.first; k < p.end; k++)
            if (p.links[k].last_ms >= span->end_ms)
                p.links[k].last_ms = span->end_ms - 1;
        if (seen > 1) {
            p.possible = ft_topology_nearest_links(t, g, flow->dst_nic);
            publish_flow(s, join, flow, &p, alternation, moved_p, span, emitter);
        }
        add_to(s, &key, &p, t);
        if (!flow->host || !flow->host->job)
            continue;
        key.kind = FABRICTRACE__SPREAD_OF__SPREAD_OF_JOB;
        key.a = (uintptr_t)flow->host->job;
        key.b = 0;
        add_to(s, &key, &p, t);
    }
}

static bool entropy_at(const struct ft_spread *s, const struct key *key,
                       const struct group_stats *p, const struct ft_topology *t, unsigned tiers,
                       struct ft_entropy *out);

/* What the switch behind a link chooses among, on the way up. False: that is not known. */
static bool entropy_behind(const struct ft_spread *s, const struct key *key, uint32_t link,
                           uint32_t dst_nic, const struct ft_topology *t, unsigned tiers,
                           struct ft_entropy *out)
{
    uint32_t at = ft_topology_port(t, ft_topology_port(t, link)->peer)->switch_id;
    uint32_t left = ft_choice_distance(t, at, dst_nic);
    const struct ft_port *port;
    struct key next = *key;
    struct ft_choice choice;
    const struct entry *e;

    *out = FT_ENTROPY_NONE;
    if (left == 0)
        return true;
    if (left == FT_NONE || !ft_choice_find(&choice, t, at, dst_nic, left - 1) || choice.count == 0)
        return false;
    port = ft_topology_port(t, choice.links[0]);
    if (choice.count == 1 || port->direction != FT_DIRECTION_UP)
        return true;
    next.group = port->group;
    for (uint32_t i = 1; i < choice.count; i++)
        if (ft_topology_port(t, choice.links[i])->group != next.group)
            return false;
    e = next.group == FT_NONE || tiers == 1 ? NULL : ft_table_find(s->entries, &next);
    return e && entropy_at(s, key, e->group_stats, t, tiers - 1, out);
}

/* Of the choices from a group on. */
static bool entropy_at(const struct ft_spread *s, const struct key *key,
                       const struct group_stats *p, const struct ft_topology *t, unsigned tiers,
                       struct ft_entropy *out)
{
    const struct ft_group *g = ft_topology_group(t, p->group);
    struct ft_entropy_link links[FT_SPREAD_LINKS_MAX];
    uint32_t m = 0;

    if (p->mixed)
        return false;
    for (uint32_t i = 0; i < g->link_count; i++) {
        if (!(p->possible & UINT64_C(1) << i || p->links[i].samples))
            continue;
        links[m].samples = p->links[i].samples;
        links[m].behind_id =
            ft_topology_port(t, g->links[i])->peer == FT_NONE
                ? FT_NONE
                : ft_topology_port(t, ft_topology_port(t, g->links[i])->peer)->switch_id;
        if (links[m].behind_id == FT_NONE)
            return false;
        if (!entropy_behind(s, key, g->links[i], p->dst_nic, t, tiers, &links[m].behind)) {
            if (links[m].samples)
                return false;
            /* Nothing took it: what is behind it does not count. */
            links[m].behind = FT_ENTROPY_NONE;
        }
        m++;
    }
    return m && ft_entropy_of(links, m, out);
}

/* Of all tiers, where the group is that of the switch where the traffic enters. */
static void fill_whole(const struct ft_spread *s, Fabrictrace__Spread *out, const struct entry *e,
                       const struct ft_topology *t)
{
    const struct ft_group *g = ft_topology_group(t, e->group_stats->group);
    struct ft_effective effective;
    struct ft_entropy entropy;

    if (ft_topology_switch(t, g->switch_id)->tier != FT_TIER_LEAF ||
        !entropy_at(s, &e->key, e->group_stats, t, TIERS_MAX, &entropy))
        return;
    ft_effective(&entropy, &effective);
    out->has_end_to_end_paths = out->has_end_to_end_lo = out->has_end_to_end_hi = true;
    out->end_to_end_paths = effective.paths;
    out->end_to_end_lo = effective.lo;
    out->end_to_end_hi = effective.hi;
}

static void publish_entry(struct ft_spread *s, const struct entry *e, const struct ft_topology *t,
                          const struct ft_span *span, const struct ft_emitter *emitter)
{
    struct parts parts = {.out = FABRICTRACE__SPREAD__INIT};

    fill_group_stats(s, &parts, t, e->group_stats);
    fill_whole(s, &parts.out, e, t);
    parts.out.has_of = true;
    parts.out.of = (Fabrictrace__SpreadOf)e->key.kind;
    if (e->key.kind == FABRICTRACE__SPREAD_OF__SPREAD_OF_JOB) {
        parts.out.job = (char *)(uintptr_t)e->key.a;
    } else {
        parts.out.src_host = text(ft_topology_host(t, (uint32_t)e->key.a)->name);
        parts.out.dst_host = text(ft_topology_host(t, (uint32_t)e->key.b)->name);
    }
    hand_on(s, &parts, t, span, emitter);
}

bool ft_spread_step(struct ft_spread *s, const struct ft_join *join, const struct ft_span *span,
                    const struct ft_emitter *emitter)
{
    struct ft_spread_kept full;
    struct entry *e;

    /* One queue pair alone that stays on its path spreads over nothing. */
    while ((e = ft_table_next(s->entries, &s->cursor)))
        if (e->group_stats->flows > 1 || e->group_stats->sprayed) {
            publish_entry(s, e, ft_join_topology(join), span, emitter);
            return true;
        }
    forget(s);
    s->cursor = 0;
    ft_spread_kept_order(&s->next);
    full = s->next;
    s->next = s->kept;
    s->kept = full;
    return false;
}

bool ft_spread_next(const struct ft_spread *s, uint64_t *position, const struct ft_emitter *emitter)
{
    return ft_spread_kept_next(&s->kept, position, emitter);
}

uint64_t ft_spread_refused(const struct ft_spread *s)
{
    return s->refused;
}

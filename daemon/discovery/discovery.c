// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/discovery.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/discovery/discovery_impl.h"

#define PORTS_MAX           (1u << 20)
#define REPORTED_PORT_BYTES 1024 /* with its neighbour */
#define WORDS_A_SWITCH      80   /* ports, and some for their agents */
#define DISPUTED_MS         5000
/* After this time flows have shown where a switch is linked that was found out. */
#define FOUND_OUT_MS 20000

static struct ft_table *new_learnt(const struct ft_discovery *d)
{
    return ft_table_new(sizeof(struct ft_port_key), sizeof(struct ft_port_key), d->ports_max, 0);
}

static struct ft_table *new_marks(const struct ft_discovery *d)
{
    return ft_table_new(sizeof(struct ft_mark), sizeof(struct ft_port_key), d->ports_max, 0);
}

struct ft_discovery *ft_discovery_new(const struct ft_discovery_config *config)
{
    size_t ports = config->ports_max ? config->ports_max : PORTS_MAX;
    size_t words = config->ports_max ? config->ports_max : WORDS_A_SWITCH * config->switches_max;
    struct ft_discovery *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->reports = ft_reports_new(config->switches_max, ports * REPORTED_PORT_BYTES);
    d->down_ports = ft_down_ports_new(words);
    d->names = ft_port_names_new(words);
    d->links = ft_table_new(sizeof(struct ft_known_link), sizeof(struct ft_port_key), ports, 0);
    d->ports_max = ports;
    d->learnt = new_learnt(d);
    d->marks = new_marks(d);
    if (config->addresses_max)
        d->attach = ft_attach_new(config->addresses_max);
    if (!d->reports || !d->down_ports || !d->names || !d->links || !d->learnt || !d->marks ||
        (config->addresses_max && !d->attach)) {
        ft_discovery_free(d);
        return NULL;
    }
    return d;
}

void ft_discovery_free(struct ft_discovery *d)
{
    if (!d)
        return;
    assert(!d->build);
    ft_reports_free(d->reports);
    ft_down_ports_free(d->down_ports);
    ft_port_names_free(d->names);
    ft_attach_free(d->attach);
    ft_table_free(d->links);
    ft_table_free(d->learnt);
    ft_table_free(d->marks);
    ft_findings_free(&d->findings);
    free(d);
}

int ft_discovery_report(struct ft_discovery *d, const Fabrictrace__SwitchReport *report,
                        int64_t now_ms)
{
    bool changed = false;
    int rc = ft_reports_take(d->reports, report, now_ms, &changed);

    d->dirty |= changed;
    d->some |= rc == 0;
    return rc;
}

int ft_discovery_counters(struct ft_discovery *d, const Fabrictrace__PortCounters *poll,
                          int64_t now_ms)
{
    bool changed, named;
    int rc = ft_down_ports_take(d->down_ports, poll, now_ms, &changed);
    int names_rc = ft_port_names_take(d->names, poll, now_ms, &named);

    /* A fabric of a file alone is looked at anew from here on. */
    if (changed)
        d->dirty = d->some = true;
    /* A name alone is of use where something else is found. */
    d->dirty |= named && ft_discovery_some(d);
    return rc ? rc : names_rc;
}

void ft_discovery_entered(struct ft_discovery *d, const struct ft_ip *address,
                          const struct ft_ip *agent, uint32_t ifindex, int64_t ms, bool twice)
{
    if (d->attach)
        ft_attach_entered(d->attach, address, agent, ifindex, ms, twice);
}

void ft_discovery_named(struct ft_discovery *d, const struct ft_ip *address, const char *host,
                        int64_t now_ms)
{
    if (d->attach)
        ft_attach_named(d->attach, address, host, now_ms);
}

void ft_discovery_unknown_exporter(struct ft_discovery *d, int64_t now_ms)
{
    d->unproven_ms = now_ms + FOUND_OUT_MS;
}

void ft_discovery_see(struct ft_discovery *d, struct ft_crossings *crossings,
                      const struct ft_topology *present, const struct ft_topology *file)
{
    d->crossings = crossings;
    d->present = present;
    ft_attach_see(d->attach, ft_reports_count(d->reports) ? NULL : file);
}

void ft_discovery_touch(struct ft_discovery *d)
{
    d->dirty = d->some = true;
}

bool ft_discovery_set_back_step(struct ft_discovery *d, int64_t now_ms, uint32_t *index,
                                uint32_t items)
{
    return d->attach && ft_attach_set_back(d->attach, now_ms, index, items);
}

void ft_discovery_set_back(struct ft_discovery *d, int64_t now_ms)
{
    struct ft_known_link *link;
    uint32_t index = 0;

    d->unproven_ms = 0;
    ft_reports_set_back(d->reports, now_ms);
    ft_down_ports_set_back(d->down_ports, now_ms);
    while ((link = ft_table_next(d->links, &index))) {
        link->heard_ms = link->heard_ms < now_ms ? link->heard_ms : now_ms;
        link->down_ms = link->down_ms < now_ms ? link->down_ms : now_ms;
        link->shut_ms = link->shut_ms < now_ms ? link->shut_ms : now_ms;
    }
}

/* A switch that falls silent says nothing: its report has to be found stale. */
static bool some_went_stale(const struct ft_discovery *d)
{
    const struct ft_report *r;
    uint32_t index = 0;

    while ((r = ft_reports_next(d->reports, &index)))
        if (!r->stale_seen && ft_report_stale(d->reports, r))
            return true;
    return false;
}

bool ft_discovery_due(struct ft_discovery *d, int64_t now_ms, int64_t apart_ms)
{
    if (now_ms - d->built_ms < apart_ms && now_ms >= d->built_ms)
        return false;
    if (d->attach && ft_attach_take_news(d->attach))
        d->dirty = d->some = true;
    if (!d->dirty && ft_discovery_some(d))
        d->dirty = some_went_stale(d) || (d->disputed && now_ms - d->built_ms >= DISPUTED_MS);
    d->dirty |= ft_down_ports_age(d->down_ports, now_ms);
    d->dirty |= d->hosts_wait_ms && (now_ms >= d->unproven_ms || now_ms >= d->hosts_wait_ms);
    return d->dirty;
}

/* Remembers which hosts only samples have shown. */
static void note_learnt(struct ft_build *b)
{
    const struct ft_survey *s = &b->survey;
    bool fresh;

    for (uint32_t i = 0; i < s->nic_count; i++)
        for (uint32_t e = 0; e < s->nics[i].end_count; e++) {
            struct ft_port_key key = ft_port_key_of(s, s->nics[i].ends[e]);

            if (s->nics[i].source == FT_SOURCE_LEARNT && !s->ends[s->nics[i].ends[e]].device)
                ft_table_insert(b->learnt, &key, &fresh);
        }
}

/* Remembers what is known from samples alone, and which links LLDP knows from both ends. */
static void note_marks(struct ft_build *b)
{
    const struct ft_survey *s = &b->survey;
    struct ft_mark *mark;
    bool fresh;

    for (uint32_t i = 0; i < s->end_count; i++) {
        struct ft_port_key key = ft_port_key_of(s, i);
        bool heard = ft_survey_is_heard(s, i);

        if (!heard && s->ends[i].link_source != FT_SOURCE_SAMPLES)
            continue;
        mark = ft_table_insert(b->marks, &key, &fresh);
        if (!mark)
            return;
        mark->heard = heard;
        mark->sampled = s->ends[i].link_source == FT_SOURCE_SAMPLES;
    }
    for (uint32_t n = 0; n < s->node_count; n++) {
        struct ft_port_key key = ft_port_key(s->nodes[n].name, "");

        mark = s->nodes[n].sampled ? ft_table_insert(b->marks, &key, &fresh) : NULL;
        if (mark)
            mark->sampled = true;
    }
}

/* Marks ports that carried a link, where no host is learnt while that is remembered, and those
 * where a host was learnt. */
static void recall_links(struct ft_discovery *d, struct ft_survey *s)
{
    struct ft_known_link *link, *back;
    uint32_t index = 0;

    d->builds++;
    for (uint32_t i = 0; i < s->end_count; i++) {
        struct ft_port_key key = ft_port_key_of(s, i);

        link = ft_table_find(d->links, &key);
        s->ends[i].was_linked = link != NULL;
        s->ends[i].had_host = ft_table_find(d->learnt, &key) != NULL;
        if (!link)
            continue;
        link->end = i;
        link->build = d->builds;
    }
    while ((link = ft_table_next(d->links, &index))) {
        ft_survey_pace(s);
        back = link->build == d->builds ? ft_table_find(d->links, &link->peer) : NULL;
        if (back && back->build == d->builds &&
            memcmp(&back->peer, &link->port, sizeof(link->port)) == 0)
            s->ends[link->end].recalled = back->end;
    }
}

static int gather(struct ft_discovery *d, struct ft_survey *s)
{
    int rc = ft_survey_gather(s);

    if (rc)
        return rc;
    recall_links(d, s);
    rc = ft_survey_strangers(s);
    if (rc == 0)
        recall_links(d, s);
    return rc;
}

static bool leads_on(void *arg, const struct ft_ip *agent, uint32_t ifindex)
{
    struct ft_survey *s = arg;
    uint32_t node = ft_ids_find_address(s->ids, agent);
    uint32_t end = node < s->node_count ? ft_survey_end(s, node, ifindex) : FT_NONE;

    return end != FT_NONE && s->ends[end].link != FT_NONE;
}

/* What came in by a port before its link was known says nothing of where hosts hang. */
static void forget_transit(struct ft_discovery *d, struct ft_survey *s)
{
    bool news = false;

    for (uint32_t i = 0; i < s->end_count; i++)
        news |= s->ends[i].link != FT_NONE && !s->ends[i].was_linked;
    if (news && d->attach)
        ft_attach_forget(d->attach, leads_on, s);
}

/* A complete build, which pauses wherever the work of a step is spent. */
static void run_build(void *arg)
{
    struct ft_discovery *d = arg;
    struct ft_build *b = d->build;
    struct ft_survey *s = &b->survey;

    if (gather(d, s))
        return;
    ft_survey_links(s);
    if (ft_survey_samples(s))
        return;
    note_marks(b);
    forget_transit(d, s);
    ft_links_judge(d);
    if (ft_survey_hosts(s))
        return;
    note_learnt(b);
    ft_survey_host_ports(s);
    ft_links_judge_hosts(d);
    ft_survey_tiers(s);
    b->topology = ft_survey_build(s);
}

static void free_build(struct ft_build *b)
{
    ft_task_free(b->task);
    ft_survey_release(&b->survey);
    ft_findings_free(&b->findings);
    ft_table_free(b->learnt);
    ft_table_free(b->marks);
    free(b);
}

int ft_discovery_begin(struct ft_discovery *d, const struct ft_topology *base, int64_t now_ms)
{
    struct ft_build *b = calloc(1, sizeof(*b));

    assert(!d->build);
    d->dirty = false;
    d->built_ms = now_ms;
    if (!b)
        return -ENOMEM;
    b->learnt = new_learnt(d);
    b->marks = new_marks(d);
    if (b->learnt && b->marks)
        b->task = ft_task_new(run_build, d);
    if (!b->task) {
        free_build(b);
        return -ENOMEM;
    }
    b->survey = (struct ft_survey){.base = base,
                                   .reports = d->reports,
                                   .down_ports = d->down_ports,
                                   .names = d->names,
                                   .attach = d->attach,
                                   .findings = &b->findings,
                                   .crossings = d->crossings,
                                   .present = d->present,
                                   .unknown_exporters = now_ms < d->unproven_ms,
                                   .now_ms = now_ms,
                                   .task = b->task};
    d->build = b;
    return 0;
}

bool ft_discovery_building(const struct ft_discovery *d)
{
    return d->build != NULL;
}

static void swap_tables(struct ft_table **a, struct ft_table **b)
{
    struct ft_table *kept = *a;

    *a = *b;
    *b = kept;
}

bool ft_discovery_step(struct ft_discovery *d, uint64_t work, struct ft_topology **built)
{
    struct ft_build *b = d->build;
    struct ft_findings before = d->findings;

    if (ft_task_step(b->task, work))
        return true;
    d->findings = b->findings;
    b->findings = before;
    swap_tables(&d->marks, &b->marks);
    swap_tables(&d->learnt, &b->learnt);
    d->disputed = b->survey.disputed;
    d->hosts_wait_ms = b->survey.hosts_wait_ms;
    d->looks = b->survey.looks;
    ft_reports_saw_stale(d->reports);
    *built = b->topology;
    d->build = NULL;
    free_build(b);
    return false;
}

struct ft_topology *ft_discovery_build(struct ft_discovery *d, const struct ft_topology *base,
                                       int64_t now_ms)
{
    struct ft_topology *built = NULL;

    if (ft_discovery_begin(d, base, now_ms))
        return NULL;
    while (ft_discovery_step(d, UINT64_MAX, &built))
        ;
    return built;
}

bool ft_discovery_linked(const struct ft_discovery *d, const char *switch_name, const char *port)
{
    struct ft_port_key key = ft_port_key(switch_name, port);

    return ft_table_find(d->links, &key) != NULL;
}

uint64_t ft_discovery_looks(const struct ft_discovery *d)
{
    return d->looks;
}

const struct ft_findings *ft_discovery_findings(const struct ft_discovery *d)
{
    return &d->findings;
}

bool ft_discovery_learnt(const struct ft_discovery *d, const char *switch_name, const char *port)
{
    struct ft_port_key key = ft_port_key(switch_name, port);

    return ft_table_find(d->learnt, &key) != NULL;
}

static const struct ft_mark *mark_of(const struct ft_discovery *d, const char *switch_name,
                                     const char *port)
{
    struct ft_port_key key = ft_port_key(switch_name, port);

    return ft_table_find(d->marks, &key);
}

bool ft_discovery_heard(const struct ft_discovery *d, const char *switch_name, const char *port)
{
    const struct ft_mark *mark = mark_of(d, switch_name, port);

    return mark && mark->heard;
}

bool ft_discovery_sampled(const struct ft_discovery *d, const char *switch_name, const char *port)
{
    const struct ft_mark *mark = mark_of(d, switch_name, port);

    return mark && mark->sampled;
}

enum ft_link_state ft_discovery_state(const struct ft_discovery *d, const char *switch_name,
                                      const char *port, struct ft_link_down *out)
{
    struct ft_port_key key = ft_port_key(switch_name, port);
    const struct ft_mark *mark = ft_table_find(d->marks, &key);
    const struct ft_known_link *link;

    *out = (struct ft_link_down){.peer = NULL};
    if (!mark || mark->state == FT_LINK_UP)
        return FT_LINK_UP;
    link = ft_table_find(d->links, &key);
    if (link) {
        out->peer = link->peer.switch_name;
        out->peer_port = link->peer.port;
    }
    out->since_ms = mark->since_ms;
    return mark->state;
}

bool ft_discovery_has_both(const struct ft_discovery *d, const struct ft_ip *agent)
{
    return ft_down_ports_has_both(d->down_ports, agent);
}

bool ft_discovery_some(const struct ft_discovery *d)
{
    return d->some || ft_attach_withheld(d->attach);
}

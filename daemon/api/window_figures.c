// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/window_figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/metrics.h"
#include "lib/base/table.h"
#include "lib/base/writer.h"

#define NAME_BYTES   260 /* a switch and a port, or a scope/name */
#define LABELS_BYTES 2048
#define ROWS_A_STEP  5000

/* In the order of their metrics. */
enum {
    LINK_GAUGES = FT_METRIC_LINK_BYTES - FT_METRIC_LINK_FLOWS,
    LINK_FIGURES = FT_METRIC_LINK_PFC_OUT + 1 - FT_METRIC_LINK_FLOWS,
    SCOPE_FIGURES = FT_METRIC_IMBALANCE_VERDICT - FT_METRIC_IMBALANCE_LINKS,
    FABRIC_FIGURES = FT_METRIC_RAIL_CROSSINGS_SHARE + 1 - FT_METRIC_SPINE_CROSSINGS,
};

#define LINK_(metric)   (FT_METRIC_LINK_##metric - FT_METRIC_LINK_FLOWS)
#define SCOPE_(metric)  (FT_METRIC_IMBALANCE_##metric - FT_METRIC_IMBALANCE_LINKS)
#define FABRIC_(metric) (FT_METRIC_##metric - FT_METRIC_SPINE_CROSSINGS)

/* What both kinds of rows begin with. [slot] of the two windows: that shown, that gathered. */
struct row {
    char name[NAME_BYTES];
    uint32_t seen[2]; /* window, counted from 1 */
    char *labels;
};

struct link {
    struct row row;
    char *info; /* labels of link_info */
    double sums[LINK_FIGURES - LINK_GAUGES];
    double values[2][LINK_FIGURES]; /* NAN: not known */
};

struct scope {
    struct row row;
    double values[2][SCOPE_FIGURES];
    Fabrictrace__Verdict verdict[2];
};

struct ft_window_figures {
    enum ft_metrics_links which;
    struct ft_table *links, *scopes;
    double fabric[2][FABRIC_FIGURES];
    struct ft_writer text; /* labels, while they are made */
    uint32_t window;       /* that is gathered */
    uint64_t refused;
};

struct ft_window_figures *ft_window_figures_new(enum ft_metrics_links which, size_t links_max,
                                                size_t scopes_max, uint64_t seed)
{
    struct ft_window_figures *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->which = which;
    f->window = 1;
    ft_writer_init(&f->text, LABELS_BYTES);
    f->links = ft_table_new(sizeof(struct link), NAME_BYTES, links_max, seed);
    f->scopes = ft_table_new(sizeof(struct scope), NAME_BYTES, scopes_max, seed);
    if (f->links && f->scopes)
        return f;
    ft_window_figures_free(f);
    return NULL;
}

static void forget_link(struct ft_table *links, struct link *l)
{
    free(l->row.labels);
    free(l->info);
    ft_table_remove(links, l);
}

static void forget_scope(struct ft_table *scopes, struct scope *s)
{
    free(s->row.labels);
    ft_table_remove(scopes, s);
}

void ft_window_figures_free(struct ft_window_figures *f)
{
    uint32_t index = 0;
    void *row;

    if (!f)
        return;
    while (f->links && (row = ft_table_next(f->links, &index)))
        forget_link(f->links, row);
    index = 0;
    while (f->scopes && (row = ft_table_next(f->scopes, &index)))
        forget_scope(f->scopes, row);
    ft_table_free(f->links);
    ft_table_free(f->scopes);
    ft_writer_free(&f->text);
    free(f);
}

static double known(protobuf_c_boolean has, double value)
{
    return has ? value : NAN;
}

static const char *text_of(const char *text)
{
    return text ? text : "";
}

static void add_label(struct ft_writer *w, const char *name, const char *value)
{
    if (w->len)
        ft_write_u8(w, ',');
    ft_prom_write_label(w, name, text_of(value));
}

/* The labels that were written, the caller's; NULL without memory or where they are too long. */
static char *take_labels(struct ft_writer *w)
{
    char *text;

    ft_write_u8(w, 0);
    text = ft_writer_ok(w) ? strdup((const char *)w->bytes) : NULL;
    ft_writer_reset(w);
    return text;
}

static char *name_info(struct ft_writer *w, const Fabrictrace__Link *l)
{
    add_label(w, "switch", l->switch_);
    add_label(w, "port", l->port);
    add_label(w, "peer", l->peer);
    add_label(w, "peer_port", l->peer_port);
    add_label(w, "tier", l->tier);
    add_label(w, "direction", l->direction);
    add_label(w, "group", l->group);
    return take_labels(w);
}

/* A row's values are NAN where its sums do not yet count. */
static void fill_link(struct link *row, unsigned slot, const Fabrictrace__Link *l)
{
    double seconds = (double)(l->window_end_ms - l->window_start_ms) / 1000;
    double *v = row->values[slot];
    const double counted[LINK_FIGURES - LINK_GAUGES] = {
        [LINK_(BYTES) - LINK_GAUGES] = (double)l->bytes,
        [LINK_(COUNTER_BYTES) - LINK_GAUGES] =
            known(l->has_counter_bytes, (double)l->counter_bytes),
        [LINK_(DISCARDS) - LINK_GAUGES] = known(l->has_discards, (double)l->discards),
        [LINK_(ERRORS) - LINK_GAUGES] = known(l->has_errors, (double)l->errors),
        [LINK_(PAUSE_IN) - LINK_GAUGES] = known(l->has_pause_in, (double)l->pause_in),
        [LINK_(PAUSE_OUT) - LINK_GAUGES] = known(l->has_pause_out, (double)l->pause_out),
        [LINK_(PFC_IN) - LINK_GAUGES] = known(l->has_pfc_in, (double)l->pfc_in),
        [LINK_(PFC_OUT) - LINK_GAUGES] = known(l->has_pfc_out, (double)l->pfc_out),
    };

    v[LINK_(FLOWS)] = (double)l->flows;
    v[LINK_(LOAD)] = seconds > 0 ? (double)l->bytes / seconds : NAN;
    v[LINK_(SPEED)] = known(l->has_speed_bps, (double)l->speed_bps / 8);
    v[LINK_(UTILIZATION)] = known(l->has_utilization, l->utilization);
    v[LINK_(SHARE)] = known(l->has_share, l->share);
    v[LINK_(CE)] = known(l->has_ce_marked_share, l->ce_marked_share);
    v[LINK_(UNEXPLAINED)] = known(l->has_unexplained_bytes, (double)l->unexplained_bytes);
    v[LINK_(QUEUE_MAX)] = known(l->has_queue_max_bytes, (double)l->queue_max_bytes);
    v[LINK_(TRANSIT_MAX)] = known(l->has_transit_max_ns, (double)l->transit_max_ns / 1e9);
    v[LINK_(FLAPS)] = known(l->has_flaps, (double)l->flaps);
    for (int i = 0; i < LINK_FIGURES - LINK_GAUGES; i++) {
        /* Counted once, a figure stays: without news its sum stands still. */
        if (!isnan(counted[i]))
            row->sums[i] = (isnan(row->sums[i]) ? 0 : row->sums[i]) + counted[i];
        v[LINK_GAUGES + i] = row->sums[i];
    }
}

static enum ft_direction direction_of(const Fabrictrace__Link *l)
{
    bool host = l->direction && strcmp(l->direction, ft_direction_name(FT_DIRECTION_HOST)) == 0;

    return host ? FT_DIRECTION_HOST : FT_DIRECTION_UP;
}

static void name_row(struct row *row, struct ft_writer *w, const char *a, const char *a_text,
                     const char *b, const char *b_text)
{
    add_label(w, a, a_text);
    add_label(w, b, b_text);
    row->labels = take_labels(w);
}

static void take_link(struct ft_window_figures *f, const Fabrictrace__Link *l)
{
    char name[NAME_BYTES] = "";
    struct link *row;
    bool fresh;

    if (!ft_metrics_has_link(f->which, direction_of(l)))
        return;
    snprintf(name, sizeof(name), "%s/%s", text_of(l->switch_), text_of(l->port));
    row = ft_table_insert(f->links, name, &fresh);
    if (row && fresh) {
        for (int i = 0; i < LINK_FIGURES - LINK_GAUGES; i++)
            row->sums[i] = NAN;
        name_row(&row->row, &f->text, "switch", l->switch_, "port", l->port);
    }
    if (row && !row->row.labels) {
        forget_link(f->links, row);
        row = NULL;
    }
    if (!row) {
        f->refused++;
        return;
    }
    free(row->info);
    row->info = name_info(&f->text, l);
    fill_link(row, f->window & 1, l);
    row->row.seen[f->window & 1] = f->window;
}

static void fill_scope(struct scope *row, unsigned slot, const Fabrictrace__Imbalance *i)
{
    double seconds = (double)(i->window_end_ms - i->window_start_ms) / 1000;
    double *v = row->values[slot];

    v[SCOPE_(LINKS)] = known(i->has_links, i->links);
    v[SCOPE_(GROUPS)] = known(i->has_groups, i->groups);
    v[SCOPE_(IDLE_GROUPS)] = known(i->has_idle_groups, i->idle_groups);
    v[SCOPE_(FLOWS)] = known(i->has_flows, (double)i->flows);
    v[SCOPE_(FLOWS_UNPLACED)] = known(i->has_flows_unplaced, (double)i->flows_unplaced);
    v[SCOPE_(BYTES)] = known(i->has_bytes && seconds > 0, (double)i->bytes / seconds);
    v[SCOPE_(FIM)] = known(i->has_fim, i->fim / 100);
    v[SCOPE_(FIM_BYTES)] = known(i->has_fim_bytes, i->fim_bytes / 100);
    v[SCOPE_(FIM_EXPECTED)] = known(i->has_fim_expected, i->fim_expected / 100);
    v[SCOPE_(P_VALUE)] = known(i->has_p_value, i->p_value);
    v[SCOPE_(MAX_OVER_MEAN)] = known(i->has_max_over_mean, i->max_over_mean);
    v[SCOPE_(COV)] = known(i->has_cov, i->cov);
    v[SCOPE_(JAIN)] = known(i->has_jain, i->jain);
    v[SCOPE_(EFFECTIVE_LINKS)] = known(i->has_effective_links, i->effective_links);
    v[SCOPE_(BOTTLENECK)] = known(i->has_bottleneck_ratio, i->bottleneck_ratio);
    row->verdict[slot] = i->verdict;
}

/* Rows that the last two windows did not bring are of links that are gone. */
static void sweep(struct ft_window_figures *f)
{
    uint32_t index = 0;
    struct link *l;
    struct scope *s;

    while ((l = ft_table_next(f->links, &index)))
        if (l->row.seen[0] < f->window && l->row.seen[1] < f->window)
            forget_link(f->links, l);
    index = 0;
    while ((s = ft_table_next(f->scopes, &index)))
        if (s->row.seen[0] < f->window && s->row.seen[1] < f->window)
            forget_scope(f->scopes, s);
}

static void end_window(struct ft_window_figures *f, const Fabrictrace__Imbalance *i)
{
    double *v = f->fabric[f->window & 1];

    v[FABRIC_(SPINE_CROSSINGS)] =
        known(i->has_spine_crossings_avoidable, (double)i->spine_crossings_avoidable);
    v[FABRIC_(SPINE_CROSSINGS_SHARE)] =
        known(i->has_spine_crossings_avoidable_share, i->spine_crossings_avoidable_share);
    v[FABRIC_(RAIL_CROSSINGS)] = known(i->has_rail_crossings, (double)i->rail_crossings);
    v[FABRIC_(RAIL_CROSSINGS_SHARE)] = known(i->has_rail_crossings_share, i->rail_crossings_share);
    sweep(f);
    f->window++;
}

static void take_imbalance(struct ft_window_figures *f, const Fabrictrace__Imbalance *i)
{
    static const char *const scopes[] = {
        [FABRICTRACE__SCOPE__SCOPE_UNKNOWN] = "unknown",
        [FABRICTRACE__SCOPE__SCOPE_GROUP] = "group",
        [FABRICTRACE__SCOPE__SCOPE_LAYER] = "layer",
        [FABRICTRACE__SCOPE__SCOPE_FABRIC] = "fabric",
    };
    char name[NAME_BYTES] = "";
    struct scope *row;
    bool fresh;

    snprintf(name, sizeof(name), "%s/%s", scopes[i->scope], text_of(i->name));
    row = ft_table_insert(f->scopes, name, &fresh);
    if (row && fresh)
        name_row(&row->row, &f->text, "scope", scopes[i->scope], "name", i->name);
    if (row && !row->row.labels) {
        forget_scope(f->scopes, row);
    } else if (row) {
        fill_scope(row, f->window & 1, i);
        row->row.seen[f->window & 1] = f->window;
    }
    if (i->scope == FABRICTRACE__SCOPE__SCOPE_FABRIC)
        end_window(f, i);
}

void ft_window_figures_take(struct ft_window_figures *f, const Fabrictrace__Record *record)
{
    if (record->kind_case == FABRICTRACE__RECORD__KIND_LINK)
        take_link(f, record->link);
    else if (record->kind_case == FABRICTRACE__RECORD__KIND_IMBALANCE)
        take_imbalance(f, record->imbalance);
}

/* Whether the row is of the window that is shown, the one before that which is gathered. */
static bool is_shown(const struct ft_window_figures *f, const struct row *row)
{
    return f->window > 1 && row->seen[(f->window - 1) & 1] == f->window - 1;
}

/* As many rows as a step may look at of one family; true when that was the last of them. */
static bool write_links(const struct ft_window_figures *f, struct ft_window_figures_position *at,
                        struct ft_prom *p)
{
    unsigned slot = (f->window - 1) & 1;
    const struct link *l;

    for (int i = 0; i < ROWS_A_STEP; i++) {
        l = ft_table_next(f->links, &at->index);
        if (!l)
            return true;
        if (!is_shown(f, &l->row))
            continue;
        if (at->metric != FT_METRIC_LINK_INFO)
            ft_prom_double_of(p, l->row.labels, l->values[slot][at->metric - FT_METRIC_LINK_FLOWS]);
        else if (l->info)
            ft_prom_double_of(p, l->info, 1);
    }
    return false;
}

static void write_verdicts(const struct scope *s, unsigned slot, struct ft_prom *p)
{
    static const struct {
        const char *name;
        Fabrictrace__Verdict verdict;
    } verdicts[] = {{"idle", FABRICTRACE__VERDICT__VERDICT_IDLE},
                    {"even", FABRICTRACE__VERDICT__VERDICT_EVEN},
                    {"uneven", FABRICTRACE__VERDICT__VERDICT_UNEVEN},
                    {"fault", FABRICTRACE__VERDICT__VERDICT_FAULT}};
    char labels[LABELS_BYTES + 32];

    for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
        snprintf(labels, sizeof(labels), "%s,verdict=\"%s\"", s->row.labels, verdicts[i].name);
        ft_prom_double_of(p, labels, s->verdict[slot] == verdicts[i].verdict);
    }
}

static bool write_scopes(const struct ft_window_figures *f, struct ft_window_figures_position *at,
                         struct ft_prom *p)
{
    unsigned slot = (f->window - 1) & 1;
    const struct scope *s;

    for (int i = 0; i < ROWS_A_STEP; i++) {
        s = ft_table_next(f->scopes, &at->index);
        if (!s)
            return true;
        if (!is_shown(f, &s->row))
            continue;
        if (at->metric == FT_METRIC_IMBALANCE_VERDICT)
            write_verdicts(s, slot, p);
        else
            ft_prom_double_of(p, s->row.labels,
                              s->values[slot][at->metric - FT_METRIC_IMBALANCE_LINKS]);
    }
    return false;
}

static void write_fabric(const struct ft_window_figures *f, struct ft_prom *p)
{
    unsigned slot = (f->window - 1) & 1;

    for (size_t i = 0; f->window > 1 && i < FABRIC_FIGURES; i++)
        ft_prom_one_double(p, FT_METRIC_SPINE_CROSSINGS + i, f->fabric[slot][i]);
}

bool ft_window_figures_write(const struct ft_window_figures *f,
                             struct ft_window_figures_position *at, struct ft_prom *p)
{
    bool of_links;

    if (!at->metric)
        at->metric = FT_METRIC_LINK_INFO;
    of_links = at->metric < FT_METRIC_IMBALANCE_LINKS;
    if (at->index == 0)
        ft_prom_family(p, (size_t)at->metric);
    if (!(of_links ? write_links : write_scopes)(f, at, p))
        return true;
    at->index = 0;
    if (at->metric++ != FT_METRIC_IMBALANCE_VERDICT)
        return true;
    write_fabric(f, p);
    return false;
}

size_t ft_window_figures_links(const struct ft_window_figures *f)
{
    return ft_table_count(f->links);
}

uint64_t ft_window_figures_refused(const struct ft_window_figures *f)
{
    return f->refused;
}

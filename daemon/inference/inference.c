// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/inference/inference.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/publish/findings.h"

/* Polls of counters come so many windows late; ft_counters_window() knows eight. */
#define WINDOWS_LATE 4
/* The question is put anew after so many windows more. */
#define WINDOWS_MORE 8
/* An answer has to stand in so many of the newest windows alone. */
#define WINDOWS_NEWEST 32

enum row_state {
    ROW_NONE,
    ROW_PENDING, /* waits for counters */
    ROW_USED,
};

struct row {
    uint32_t window;
    uint8_t state; /* enum row_state */
};

struct column {
    struct ft_tuple tuple;
    uint32_t newest;  /* window in which it sent; 0: free */
    uint32_t dst_nic; /* good for this topology, as all of this is */
    uint32_t link;    /* answered: of the group */
    uint8_t state;    /* enum ft_tomography_state */
    bool checked;     /* held against samples */
    bool verified;    /* its answer: the newest windows rule out that it is of before */
};

struct leaf {
    uint32_t group;
    uint32_t links;
    uint32_t columns;  /* in use or free, from the start */
    uint32_t fresh;    /* windows since the question was put */
    uint32_t answered; /* newest window that its answers were made from */
    uint8_t lost;      /* enum ft_inference_window: how this window ends; used: it is not lost */
    struct ft_tomography found;
    struct row rows[FT_INFERENCE_WINDOWS];
    struct column column[FT_INFERENCE_FLOWS];
    float sent[FT_INFERENCE_WINDOWS][FT_INFERENCE_FLOWS];
    double parts[FT_INFERENCE_FLOWS * FT_INFERENCE_LINKS]; /* columns x links */
    double noise[FT_INFERENCE_LINKS];
    uint32_t asked; /* columns of which there are parts */
    float *counted; /* windows x links; until counters come what is known of other flows */
};

struct ft_inference {
    const struct ft_topology *t;
    uint32_t *by_group; /* leaf; FT_NONE */
    struct leaf *leaf[FT_INFERENCE_LEAVES];
    uint32_t leaves, cursor;
    uint32_t window;
    int64_t start_ms;
    bool partial;
    double *sent, *counted; /* of one question */
    struct ft_inference_stats stats;
};

static void forget_rows(struct ft_inference *inf, struct leaf *leaf)
{
    for (uint32_t w = 0; w < FT_INFERENCE_WINDOWS; w++) {
        if (leaf->rows[w].state == ROW_PENDING)
            inf->stats.windows[FT_INFERENCE_FORGOTTEN]++;
        leaf->rows[w].state = ROW_NONE;
    }
    leaf->columns = leaf->fresh = leaf->asked = 0;
    leaf->found = (struct ft_tomography){.windows = 0};
}

static void forget_leaves(struct ft_inference *inf)
{
    for (uint32_t i = 0; i < inf->leaves; i++) {
        forget_rows(inf, inf->leaf[i]);
        free(inf->leaf[i]->counted);
        free(inf->leaf[i]);
    }
    inf->leaves = 0;
}

int ft_inference_follow(struct ft_inference *inf, const struct ft_topology *t)
{
    size_t groups = ft_topology_groups(t);

    forget_leaves(inf);
    free(inf->by_group);
    inf->by_group = malloc((groups + 1) * sizeof(*inf->by_group));
    inf->t = t;
    if (!inf->by_group)
        return -ENOMEM;
    memset(inf->by_group, 0xff, (groups + 1) * sizeof(*inf->by_group));
    return 0;
}

struct ft_inference *ft_inference_new(const struct ft_topology *t)
{
    struct ft_inference *inf = calloc(1, sizeof(*inf));

    _Static_assert(sizeof(struct leaf) +
                           sizeof(float) * FT_INFERENCE_WINDOWS * FT_INFERENCE_LINKS <=
                       FT_INFERENCE_LEAF_BYTES,
                   "FT_INFERENCE_LEAF_BYTES");
    if (!inf)
        return NULL;
    inf->sent = calloc((size_t)FT_INFERENCE_WINDOWS * FT_INFERENCE_FLOWS, sizeof(double));
    inf->counted = calloc((size_t)FT_INFERENCE_WINDOWS * FT_INFERENCE_LINKS, sizeof(double));
    if (inf->sent && inf->counted && !ft_inference_follow(inf, t))
        return inf;
    ft_inference_free(inf);
    return NULL;
}

void ft_inference_free(struct ft_inference *inf)
{
    if (!inf)
        return;
    forget_leaves(inf);
    free(inf->by_group);
    free(inf->sent);
    free(inf->counted);
    free(inf);
}

static struct row *row_of(struct leaf *leaf, uint32_t window)
{
    return &leaf->rows[window % FT_INFERENCE_WINDOWS];
}

/* Makes the row of this window, in place of the oldest one. */
static void begin_row(struct ft_inference *inf, struct leaf *leaf, uint32_t window)
{
    size_t at = window % FT_INFERENCE_WINDOWS;

    if (leaf->rows[at].state == ROW_PENDING)
        inf->stats.windows[FT_INFERENCE_UNCOUNTED]++;
    leaf->lost = FT_INFERENCE_USED;
    leaf->rows[at] = (struct row){window, ROW_PENDING};
    memset(leaf->sent[at], 0, sizeof(leaf->sent[at]));
    memset(&leaf->counted[at * leaf->links], 0, leaf->links * sizeof(*leaf->counted));
}

void ft_inference_begin(struct ft_inference *inf, uint32_t window, int64_t start_ms, bool partial)
{
    inf->window = window;
    inf->start_ms = start_ms;
    inf->partial = partial;
    inf->cursor = 0;
    for (uint32_t i = 0; i < inf->leaves; i++)
        begin_row(inf, inf->leaf[i], window);
}

/* The leaf's uplinks from which a flow takes one; FT_NONE where there is no such choice, or where
 * it is not known at which leaf. */
static uint32_t group_of(const struct ft_topology *t, const struct ft_flow *flow)
{
    const struct ft_nic *nic;
    uint32_t group;

    if (ft_role_answers((enum ft_role)flow->role) || flow->src_nic == FT_NONE ||
        flow->dst_nic == FT_NONE || flow->reason == FT_REASON_SEVERAL_NETWORKS ||
        ft_paths_length(t, flow->src_nic, flow->dst_nic) < 2)
        return FT_NONE;
    nic = ft_topology_nic(t, flow->src_nic);
    if (nic->attach_count != 1)
        return FT_NONE;
    group =
        ft_topology_find_group(t, ft_topology_port(t, nic->attach[0])->switch_id, FT_DIRECTION_UP);
    if (group == FT_NONE || ft_topology_group(t, group)->link_count < 2 ||
        ft_topology_group(t, group)->link_count > FT_INFERENCE_LINKS)
        return FT_NONE;
    return group;
}

static struct leaf *leaf_of(const struct ft_inference *inf, uint32_t group)
{
    return inf->by_group && inf->by_group[group] != FT_NONE ? inf->leaf[inf->by_group[group]]
                                                            : NULL;
}

/* Of a leaf that is new, this window is the first. */
static struct leaf *add_leaf(struct ft_inference *inf, uint32_t group)
{
    struct leaf *leaf;

    if (!inf->by_group || inf->leaves == FT_INFERENCE_LEAVES)
        return NULL;
    leaf = calloc(1, sizeof(*leaf));
    if (!leaf)
        return NULL;
    leaf->group = group;
    leaf->links = ft_topology_group(inf->t, group)->link_count;
    leaf->counted = calloc((size_t)FT_INFERENCE_WINDOWS * leaf->links, sizeof(*leaf->counted));
    if (!leaf->counted) {
        free(leaf);
        return NULL;
    }
    inf->by_group[group] = inf->leaves;
    inf->leaf[inf->leaves++] = leaf;
    return leaf;
}

/* A port's number in its group; FT_NONE: it is of another, or an aggregate. */
static uint32_t link_of(const struct ft_topology *t, uint32_t group, uint32_t out)
{
    const struct ft_group *g = ft_topology_group(t, group);

    for (uint32_t i = 0; i < g->link_count; i++)
        if (g->links[i] == out)
            return i;
    return FT_NONE;
}

/* The uplink that samples show a flow on in this window; FT_NONE. */
static uint32_t sampled_link(const struct ft_inference *inf, const struct ft_join *join,
                             const struct ft_flow *flow, uint32_t group)
{
    struct ft_judgement judged;

    if (flow->state == FT_PATH_RESOLVED)
        return ft_join_is_placed(join, flow, inf->start_ms)
                   ? link_of(inf->t, group, flow->path.hops[0].out)
                   : FT_NONE;
    if (flow->state != FT_PATH_PARTIAL || flow->reason == FT_REASON_CHANGING)
        return FT_NONE;
    ft_join_judge(join, flow, &judged);
    return judged.state == FT_PATH_PARTIAL && judged.path.hop_count
               ? link_of(inf->t, group, judged.path.hops[0].out)
               : FT_NONE;
}

static struct column *find_column(struct leaf *leaf, const struct ft_tuple *tuple)
{
    for (uint32_t i = 0; i < leaf->columns; i++)
        if (leaf->column[i].newest && ft_tuple_equal(&leaf->column[i].tuple, tuple))
            return &leaf->column[i];
    return NULL;
}

static struct column *column_for(struct leaf *leaf, const struct ft_flow *flow)
{
    struct column *c = find_column(leaf, &flow->tuple);

    for (uint32_t i = 0; !c && i < leaf->columns; i++)
        if (!leaf->column[i].newest)
            c = &leaf->column[i];
    if (!c && leaf->columns < FT_INFERENCE_FLOWS)
        c = &leaf->column[leaf->columns++];
    if (c && !(c->newest && ft_tuple_equal(&c->tuple, &flow->tuple)))
        *c = (struct column){.tuple = flow->tuple, .state = FT_TOMOGRAPHY_FEW, .link = FT_NONE};
    return c;
}

/* Holds an answer against samples that came after it. True: it was wrong. */
static bool is_refuted(struct ft_inference *inf, struct leaf *leaf, const struct ft_flow *flow,
                       uint32_t link)
{
    struct column *c = find_column(leaf, &flow->tuple);

    if (!c || c->checked || c->state != FT_TOMOGRAPHY_ANSWERED)
        return false;
    c->checked = true;
    inf->stats.confirmed += c->verified && c->link == link;
    inf->stats.contradicted += c->verified && c->link != link;
    return c->link != link;
}

void ft_inference_flow(struct ft_inference *inf, const struct ft_join *join,
                       const struct ft_flow *flow)
{
    uint32_t group = group_of(inf->t, flow), link;
    size_t at = inf->window % FT_INFERENCE_WINDOWS;
    struct leaf *leaf;
    struct column *c;

    if (group == FT_NONE)
        return;
    link = sampled_link(inf, join, flow, group);
    leaf = leaf_of(inf, group);
    if (link == FT_NONE && flow->bytes_by != FT_RATE_HOST)
        return; /* a rate by a few samples is not exact enough */
    if (!leaf) {
        leaf = add_leaf(inf, group);
        if (leaf)
            begin_row(inf, leaf, inf->window);
    }
    if (!leaf) {
        inf->stats.refused++;
        return;
    }
    if (link != FT_NONE) {
        if (is_refuted(inf, leaf, flow, link)) {
            forget_rows(inf, leaf);
            leaf->lost = FT_INFERENCE_FORGOTTEN;
        }
        leaf->counted[at * leaf->links + link] += (float)flow->bytes;
        return;
    }
    c = column_for(leaf, flow);
    if (!c) {
        leaf->lost = FT_INFERENCE_CROWDED;
        return;
    }
    c->newest = inf->window;
    c->dst_nic = flow->dst_nic;
    leaf->sent[at][c - leaf->column] = (float)flow->bytes;
}

/* What a link counted: its port on the way out, or the other end on its way in. */
static bool read_link(const struct ft_topology *t, const struct ft_counters *counters,
                      uint32_t port, uint32_t window, double *bytes)
{
    uint32_t peer = ft_topology_port(t, port)->peer;
    struct ft_counted c;

    if (ft_counters_window(counters, port, window, &c) && c.has_out_bytes) {
        *bytes = c.out_bytes;
        return true;
    }
    if (peer == FT_NONE || !ft_counters_window(counters, peer, window, &c) || !c.has_in_bytes)
        return false;
    *bytes = c.in_bytes;
    return true;
}

static void take_counters(struct ft_inference *inf, struct leaf *leaf, uint32_t window,
                          const struct ft_counters *counters)
{
    const struct ft_group *g = ft_topology_group(inf->t, leaf->group);
    float *counted = &leaf->counted[window % FT_INFERENCE_WINDOWS * leaf->links];
    struct row *row = row_of(leaf, window);
    double bytes[FT_INFERENCE_LINKS];

    if (row->window != window || row->state != ROW_PENDING)
        return;
    row->state = ROW_NONE;
    for (uint32_t l = 0; l < leaf->links; l++)
        if (!counters || !read_link(inf->t, counters, g->links[l], window, &bytes[l])) {
            inf->stats.windows[FT_INFERENCE_UNCOUNTED]++;
            return;
        }
    for (uint32_t l = 0; l < leaf->links; l++)
        counted[l] = (float)(bytes[l] - (double)counted[l]);
    row->state = ROW_USED;
    leaf->fresh++;
    inf->stats.windows[FT_INFERENCE_USED]++;
}

/* Rows that have all, from a window on. */
static size_t gather(struct ft_inference *inf, const struct leaf *leaf, uint32_t first)
{
    uint32_t kept =
        inf->window >= FT_INFERENCE_WINDOWS ? inf->window - FT_INFERENCE_WINDOWS + 1 : 0;
    size_t n = 0;

    for (uint32_t w = first > kept ? first : kept; w <= inf->window; w++) {
        size_t at = w % FT_INFERENCE_WINDOWS;

        if (leaf->rows[at].window != w || leaf->rows[at].state != ROW_USED)
            continue;
        for (uint32_t i = 0; i < leaf->columns; i++)
            inf->sent[n * leaf->columns + i] = (double)leaf->sent[at][i];
        for (uint32_t l = 0; l < leaf->links; l++)
            inf->counted[n * leaf->links + l] = (double)leaf->counted[at * leaf->links + l];
        n++;
    }
    return n;
}

static void answers_of(const struct leaf *leaf, struct ft_tomography_flow *said)
{
    for (uint32_t i = 0; i < leaf->columns; i++) {
        const struct column *c = &leaf->column[i];

        said[i] = (struct ft_tomography_flow){
            i < leaf->asked ? (enum ft_tomography_state)c->state : FT_TOMOGRAPHY_FEW, c->link};
    }
}

static bool has_row(const struct leaf *leaf, uint32_t window)
{
    const struct row *row = &leaf->rows[window % FT_INFERENCE_WINDOWS];

    return row->window == window && row->state == ROW_USED;
}

/* Holds the answers against the windows that they were not made from, of which this is the newest.
 */
static void verify(struct ft_inference *inf, struct leaf *leaf, uint32_t window)
{
    struct ft_tomography_flow said[FT_INFERENCE_FLOWS];
    struct ft_tomography_windows in = {0, leaf->columns, leaf->links, inf->sent, inf->counted};

    if (leaf->found.answered == 0 || !has_row(leaf, window))
        return;
    in.count = gather(inf, leaf, leaf->answered + 1);
    answers_of(leaf, said);
    if (ft_tomography_holds(&in, said, leaf->parts, leaf->noise))
        return;
    leaf->found.answered = 0;
    /* Routes changed: from older windows the answers of before would be found once more. */
    for (uint32_t w = 0; w < FT_INFERENCE_WINDOWS; w++)
        if (leaf->rows[w].state == ROW_USED && leaf->rows[w].window < window)
            leaf->rows[w].state = ROW_NONE;
    for (uint32_t i = 0; i < leaf->columns; i++)
        if (leaf->column[i].state == FT_TOMOGRAPHY_ANSWERED)
            leaf->column[i].state = FT_TOMOGRAPHY_UNEXPLAINED;
}

/* Answers are given while the newest window that there can be counters of bears them out. */
static void verify_newest(struct ft_inference *inf, struct leaf *leaf, uint32_t window)
{
    struct ft_tomography_flow said[FT_INFERENCE_FLOWS];
    struct ft_tomography_windows in = {0, leaf->columns, leaf->links, inf->sent, inf->counted};
    bool newest = leaf->found.answered && has_row(leaf, window);

    if (newest) {
        in.count = gather(inf, leaf, window >= WINDOWS_NEWEST ? window - WINDOWS_NEWEST + 1 : 0);
        answers_of(leaf, said);
        ft_tomography_verify(&in, leaf->parts, leaf->noise, said);
    }
    for (uint32_t i = 0; i < leaf->columns; i++)
        leaf->column[i].verified = newest && said[i].state == FT_TOMOGRAPHY_ANSWERED;
}

/* A flow that sent in none of the windows that are kept makes room. */
static void free_columns(struct leaf *leaf, uint32_t window)
{
    for (uint32_t i = 0; i < leaf->columns; i++) {
        struct column *c = &leaf->column[i];

        if (!c->newest || c->newest + FT_INFERENCE_WINDOWS > window)
            continue;
        c->newest = 0;
        for (uint32_t w = 0; w < FT_INFERENCE_WINDOWS; w++)
            leaf->sent[w][i] = 0;
    }
}

static void ask(struct ft_inference *inf, struct leaf *leaf)
{
    struct ft_tomography_flow said[FT_INFERENCE_FLOWS];
    const struct ft_tomography_windows in = {gather(inf, leaf, 0), leaf->columns, leaf->links,
                                             inf->sent, inf->counted};
    const struct ft_group *g = ft_topology_group(inf->t, leaf->group);

    leaf->fresh = 0;
    if (leaf->columns == 0 ||
        ft_tomography_infer(&in, said, leaf->parts, leaf->noise, &leaf->found))
        return; /* next time */
    leaf->asked = leaf->columns;
    leaf->answered = inf->window >= WINDOWS_LATE ? inf->window - WINDOWS_LATE : 0;
    for (uint32_t i = 0; i < leaf->columns; i++) {
        struct column *c = &leaf->column[i];

        if (!c->newest)
            continue;
        /* By a link from which it cannot reach its destination nothing is explained. */
        if (said[i].state == FT_TOMOGRAPHY_ANSWERED &&
            !(ft_topology_nearest_links(inf->t, g, c->dst_nic) >> said[i].link & 1))
            said[i] = (struct ft_tomography_flow){FT_TOMOGRAPHY_UNEXPLAINED, FT_NONE};
        c->checked = c->checked && c->link == said[i].link;
        c->state = (uint8_t)said[i].state;
        c->link = said[i].link;
    }
}

bool ft_inference_step(struct ft_inference *inf, const struct ft_join *join,
                       const struct ft_counters *counters)
{
    struct leaf *leaf;
    struct row *row;

    if (inf->cursor >= inf->leaves || ft_join_judging_all(join))
        return false;
    leaf = inf->leaf[inf->cursor++];
    row = row_of(leaf, inf->window);
    if (inf->partial && leaf->lost == FT_INFERENCE_USED)
        leaf->lost = FT_INFERENCE_PARTIAL;
    if (row->state == ROW_PENDING && leaf->lost != FT_INFERENCE_USED) {
        row->state = ROW_NONE;
        inf->stats.windows[leaf->lost]++;
    }
    if (inf->window >= WINDOWS_LATE) {
        take_counters(inf, leaf, inf->window - WINDOWS_LATE, counters);
        verify(inf, leaf, inf->window - WINDOWS_LATE);
    }
    free_columns(leaf, inf->window);
    if (leaf->fresh >= WINDOWS_MORE)
        ask(inf, leaf);
    if (inf->window >= WINDOWS_LATE)
        verify_newest(inf, leaf, inf->window - WINDOWS_LATE);
    return true;
}

bool ft_inference_is_ready(const struct ft_inference *inf)
{
    for (uint32_t i = 0; i < inf->leaves; i++)
        if (inf->leaf[i]->found.answered)
            return true;
    return false;
}

bool ft_inference_predict(const struct ft_inference *inf, const struct ft_topology *t,
                          const struct ft_flow *flow, uint32_t in, struct ft_hint *hint)
{
    uint32_t group = t == inf->t ? group_of(t, flow) : FT_NONE;
    struct leaf *leaf = group == FT_NONE ? NULL : leaf_of(inf, group);
    const struct column *c = leaf ? find_column(leaf, &flow->tuple) : NULL;
    const struct ft_group *g;

    if (!c || c->state != FT_TOMOGRAPHY_ANSWERED || !c->verified)
        return false;
    g = ft_topology_group(t, group);
    if (ft_topology_port(t, in)->switch_id != g->switch_id)
        return false;
    *hint = (struct ft_hint){g->switch_id, g->links[c->link], FT_BY_INFERENCE, 0};
    return true;
}

static enum ft_tomography_state state_of(const struct column *c)
{
    return c->state == FT_TOMOGRAPHY_ANSWERED && !c->verified ? FT_TOMOGRAPHY_UNVERIFIED
                                                              : (enum ft_tomography_state)c->state;
}

void ft_inference_stats(const struct ft_inference *inf, struct ft_inference_stats *out)
{
    *out = inf->stats;
    out->leaves = inf->leaves;
    for (uint32_t i = 0; i < inf->leaves; i++) {
        const struct leaf *leaf = inf->leaf[i];

        for (uint32_t w = 0; w < FT_INFERENCE_WINDOWS; w++)
            out->pending += leaf->rows[w].state == ROW_PENDING;
        for (uint32_t k = 0; k < leaf->columns; k++)
            if (leaf->column[k].newest)
                out->flows[state_of(&leaf->column[k])]++;
    }
}

const char *ft_inference_window_name(enum ft_inference_window outcome)
{
    static const char *const names[FT_INFERENCE_OUTCOMES] = {
        [FT_INFERENCE_USED] = "used",           [FT_INFERENCE_UNCOUNTED] = "uncounted",
        [FT_INFERENCE_CROWDED] = "crowded",     [FT_INFERENCE_PARTIAL] = "partial",
        [FT_INFERENCE_FORGOTTEN] = "forgotten",
    };

    return names[outcome];
}

void ft_inference_find(const struct ft_inference *inf, struct ft_findings *findings)
{
    for (uint32_t i = 0; i < inf->leaves; i++) {
        const struct leaf *leaf = inf->leaf[i];
        uint32_t states[FT_TOMOGRAPHY_STATES] = {0};
        const char *name = ft_topology_group(inf->t, leaf->group)->name;

        for (uint32_t k = 0; k < leaf->columns; k++)
            if (leaf->column[k].newest)
                states[state_of(&leaf->column[k])]++;
        if (leaf->found.windows < FT_TOMOGRAPHY_WINDOWS_LEAST)
            continue;
        if (states[FT_TOMOGRAPHY_ALIKE])
            ft_findings_add(findings, FT_FINDING_NOTE, name, NULL,
                            "samples, an oracle (fabrictrace-oracle(7)) or probes can",
                            "counters of links cannot distinguish %u flows without samples: their "
                            "rates vary alike, or not at all (condition %.3g over %zu windows)",
                            states[FT_TOMOGRAPHY_ALIKE], leaf->found.condition,
                            leaf->found.windows);
        states[FT_TOMOGRAPHY_UNEXPLAINED] += states[FT_TOMOGRAPHY_VAGUE];
        if (states[FT_TOMOGRAPHY_UNEXPLAINED])
            ft_findings_add(
                findings, FT_FINDING_NOTE, name, NULL,
                "look for traffic that no host reports, and for counters that are read "
                "much later than they are said to be",
                "paths of %u flows are not inferred: figures of their hosts do not explain "
                "well enough what links counted (%.2g of it is left over)",
                states[FT_TOMOGRAPHY_UNEXPLAINED], leaf->found.unfitted);
        if (states[FT_TOMOGRAPHY_UNVERIFIED])
            ft_findings_add(findings, FT_FINDING_NOTE, name, NULL,
                            "counters that are read more exactly, at the same times, show it",
                            "inferred paths of %u flows are not given: the newest counters do not "
                            "rule out that these moved since",
                            states[FT_TOMOGRAPHY_UNVERIFIED]);
    }
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/tomography.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fabric/singular.h"

/* So many more windows than flows. */
#define SPARE_LEAST 6
/* Below the largest singular value by this, what flows sent does not distinguish them: hosts' and
 * switches' counters are not read at one moment to that precision. */
#define CONDITION_MAX 1e4
/* How much of a flow may lie in what is not distinguished (a square: a part is wrong by its root).
 */
#define HIDDEN_MAX 1e-3
/* Between the largest part and each other one. */
#define MARGIN 0.6
/* A difference of parts that is -1 in truth is so many standard errors from the margin. With few
 * windows the error itself is not well known: more by SPREAD_MORE / (degrees of freedom). */
#define ERRORS_APART 4.0
#define ERRORS_MORE  24.0
/* How far the largest part may be from 1, and each other from 0. */
#define APART_MOST 0.4
/* Parts are 0 or 1, within so much for bytes that one side counts and the other does not; what they
 * differ by more, in standard errors, squared and on average, is at most PLAIN_MOST. More is seen
 * where hosts' figures are not of the same moments or bytes as those of links, which draws all
 * parts to their mean. */
#define PLAIN_WITHIN 0.05
#define PLAIN_MOST   2.0
/* What is left over in the windows held out, at most, as a part of a flow that is answered. */
#define LEFT_OVER 0.45
/* What is left over grows where routes change, also where flows that send nearly alike exchange
 * their links: by more than chance makes it grow in one of some 300,000 looks (standard
 * deviations). */
#define GROWN_MOST 4.5
/* Of what all flows sent: below that it is the rounding of figures. */
#define ROUNDING 1e-5
/* A flow changes its link in one of so many windows, at most; of its answers so many may be of
 * before. */
#define CHANGES_MOST 0.01
#define CHANGED_MOST 0.001

struct work {
    const struct ft_tomography_windows *in;
    size_t *row;    /* windows with traffic */
    size_t *column; /* flows that sent in those that are learnt from */
    size_t rows, learnt, columns;
    double *weight;                  /* by window: 1 / what all flows sent */
    double *scale;                   /* by column: its length */
    double *a, *s, *v, *parts;       /* parts: columns x links */
    double *spread, *hidden, *noise; /* by column, by column, by link */
};

static void free_work(struct work *w)
{
    free(w->row);
    free(w->column);
    free(w->weight);
    free(w->scale);
    free(w->a);
    free(w->s);
    free(w->v);
    free(w->parts);
    free(w->spread);
    free(w->hidden);
    free(w->noise);
}

static double sent(const struct work *w, size_t row, size_t flow)
{
    return w->in->sent[w->row[row] * w->in->flows + flow] * w->weight[w->row[row]];
}

static double counted(const struct work *w, size_t row, size_t link)
{
    return w->in->counted[w->row[row] * w->in->links + link] * w->weight[w->row[row]];
}

/* Windows with traffic, each divided by what was sent in it: a link's counter is wrong in
 * proportion to what it counts. */
static bool find_rows(struct work *w)
{
    const struct ft_tomography_windows *in = w->in;

    w->row = calloc(in->count + 1, sizeof(*w->row));
    w->weight = calloc(in->count + 1, sizeof(*w->weight));
    if (!w->row || !w->weight)
        return false;
    for (size_t t = 0; t < in->count; t++) {
        double sum = 0;

        for (size_t i = 0; i < in->flows; i++)
            sum += in->sent[t * in->flows + i];
        if (!(sum > 0) || isinf(sum))
            continue;
        w->weight[t] = 1 / sum;
        w->row[w->rows++] = t;
    }
    w->learnt = w->rows - w->rows / 4;
    return true;
}

static bool find_columns(struct work *w, struct ft_tomography_flow *flows)
{
    w->column = calloc(w->in->flows + 1, sizeof(*w->column));
    w->scale = calloc(w->in->flows + 1, sizeof(*w->scale));
    if (!w->column || !w->scale)
        return false;
    for (size_t i = 0; i < w->in->flows; i++) {
        double square = 0;
        size_t windows = 0;

        for (size_t t = 0; t < w->learnt; t++) {
            square += sent(w, t, i) * sent(w, t, i);
            windows += sent(w, t, i) > 0;
        }
        flows[i] = (struct ft_tomography_flow){
            windows * 4 < FT_TOMOGRAPHY_WINDOWS_LEAST * 3 ? FT_TOMOGRAPHY_FEW : FT_TOMOGRAPHY_VAGUE,
            UINT32_MAX};
        if (!(square > 0))
            continue;
        w->scale[w->columns] = sqrt(square);
        w->column[w->columns++] = i;
    }
    return true;
}

static bool allocate(struct work *w)
{
    size_t n = w->columns, links = w->in->links;

    w->a = calloc(w->learnt * n, sizeof(double));
    w->s = calloc(n, sizeof(double));
    w->v = calloc(n * n, sizeof(double));
    w->parts = calloc(n * links + 1, sizeof(double));
    w->spread = calloc(n, sizeof(double));
    w->hidden = calloc(n, sizeof(double));
    w->noise = calloc(links + 1, sizeof(double));
    return w->a && w->s && w->v && w->parts && w->spread && w->hidden && w->noise;
}

static int decompose(struct work *w)
{
    for (size_t k = 0; k < w->columns; k++)
        for (size_t t = 0; t < w->learnt; t++)
            w->a[k * w->learnt + t] = sent(w, t, w->column[k]) / w->scale[k];
    return ft_singular(w->a, w->learnt, w->columns, w->s, w->v);
}

static bool is_distinct(const struct work *w, size_t j)
{
    return w->s[j] * CONDITION_MAX >= w->s[0];
}

/* What is left over of a link's counter in a window when the parts are what they were found to be.
 */
static double residual(const struct work *w, size_t row, size_t link)
{
    double rest = counted(w, row, link);

    for (size_t k = 0; k < w->columns; k++)
        rest -= w->parts[k * w->in->links + link] * sent(w, row, w->column[k]);
    return rest;
}

static void solve(struct work *w)
{
    size_t n = w->columns, rank = 0;

    for (size_t j = 0; j < n; j++) {
        bool distinct = is_distinct(w, j);

        rank += distinct;
        for (size_t k = 0; k < n; k++) {
            double v = w->v[j * n + k];

            if (distinct)
                w->spread[k] += v * v / (w->s[j] * w->s[j]);
            else
                w->hidden[k] += v * v;
        }
        for (size_t l = 0; distinct && l < w->in->links; l++) {
            double dot = 0;

            for (size_t t = 0; t < w->learnt; t++)
                dot += w->a[j * w->learnt + t] * counted(w, t, l);
            for (size_t k = 0; k < n; k++)
                w->parts[k * w->in->links + l] += w->v[j * n + k] * dot / (w->s[j] * w->s[j]);
        }
    }
    for (size_t k = 0; k < n; k++) {
        w->spread[k] /= w->scale[k] * w->scale[k];
        for (size_t l = 0; l < w->in->links; l++)
            w->parts[k * w->in->links + l] /= w->scale[k];
    }
    for (size_t l = 0; l < w->in->links; l++) {
        double square = 0;

        for (size_t t = 0; t < w->learnt; t++)
            square += residual(w, t, l) * residual(w, t, l);
        w->noise[l] = square / (double)(w->learnt - rank);
    }
}

/* The link of a flow by its parts; UINT32_MAX: none is certain enough. */
static uint32_t link_of(const struct work *w, size_t k)
{
    const double *part = &w->parts[k * w->in->links];
    double apart = ERRORS_APART + ERRORS_MORE / (double)(w->learnt - w->columns);
    uint32_t best = 0;

    for (uint32_t l = 1; l < w->in->links; l++)
        if (part[l] > part[best])
            best = l;
    if (fabs(part[best] - 1) > APART_MOST)
        return UINT32_MAX;
    for (uint32_t l = 0; l < w->in->links; l++) {
        double error = sqrt(w->spread[k] * (w->noise[best] + w->noise[l]));

        if (l != best && (part[best] - part[l] < MARGIN || fabs(part[l]) > APART_MOST ||
                          1 + MARGIN < apart * error))
            return UINT32_MAX;
    }
    return best;
}

static bool is_plain(const struct work *w)
{
    double squares = 0;
    size_t count = 0;

    for (size_t k = 0; k < w->columns; k++)
        for (size_t l = 0; w->hidden[k] <= HIDDEN_MAX && l < w->in->links; l++) {
            double part = w->parts[k * w->in->links + l];
            double square = w->spread[k] * w->noise[l];
            double off = fmin(fabs(part), fabs(part - 1)) - PLAIN_WITHIN;

            if (off > 0 && off * off < 1e6 * square)
                squares += off * off / square;
            else if (off > 0)
                return false;
            count++;
        }
    return squares <= PLAIN_MOST * (double)count;
}

static void answer(struct work *w, struct ft_tomography_flow *flows)
{
    bool plain = is_plain(w);

    for (size_t k = 0; k < w->columns; k++) {
        struct ft_tomography_flow *flow = &flows[w->column[k]];

        if (flow->state == FT_TOMOGRAPHY_FEW)
            continue;
        if (w->hidden[k] > HIDDEN_MAX) {
            flow->state = FT_TOMOGRAPHY_ALIKE;
            continue;
        }
        flow->link = plain ? link_of(w, k) : UINT32_MAX;
        if (flow->link == UINT32_MAX)
            continue;
        flow->state = FT_TOMOGRAPHY_ANSWERED;
        for (uint32_t l = 0; l < w->in->links; l++)
            w->parts[k * w->in->links + l] = l == flow->link;
    }
}

/* The most that the mean square of so many errors is above their variance, by chance: the
 * chi-square quantile of Wilson and Hilferty (1931). */
static double grown_most(double count)
{
    double root = 1 - 2 / (9 * count) + GROWN_MOST * sqrt(2 / (9 * count));

    return root * root * root;
}

static double mean_square(const struct work *w, size_t first, size_t end, size_t link)
{
    double square = 0;

    for (size_t t = first; t < end; t++)
        square += residual(w, t, link) * residual(w, t, link);
    return square / (double)(end - first);
}

/* Lays all of each answered flow on its link: in windows that nothing was learnt from, the rest
 * must be too little for one of them to be elsewhere. */
static void hold_out(struct work *w, struct ft_tomography_flow *flows, double *noise,
                     struct ft_tomography *out)
{
    double held = (double)(w->rows - w->learnt);
    bool grown = false;

    for (size_t l = 0; l < w->in->links; l++) {
        double learnt = fmax(mean_square(w, 0, w->learnt, l), ROUNDING * ROUNDING);
        double after = mean_square(w, w->learnt, w->rows, l);

        noise[l] = sqrt(learnt);
        out->unfitted = fmax(out->unfitted, sqrt(after));
        grown |= after > learnt * grown_most(held);
    }
    for (size_t k = 0; k < w->columns; k++) {
        struct ft_tomography_flow *flow = &flows[w->column[k]];
        double sum = 0;

        if (flow->state != FT_TOMOGRAPHY_ANSWERED)
            continue;
        for (size_t t = w->learnt; t < w->rows; t++)
            sum += sent(w, t, w->column[k]);
        if (!grown && out->unfitted <= LEFT_OVER * sum / held)
            out->answered++;
        else
            *flow = (struct ft_tomography_flow){FT_TOMOGRAPHY_UNEXPLAINED, UINT32_MAX};
    }
}

int ft_tomography_infer(const struct ft_tomography_windows *in, struct ft_tomography_flow *flows,
                        double *parts, double *noise, struct ft_tomography *out)
{
    struct work w = {.in = in};
    struct ft_tomography found = {.condition = INFINITY};
    struct ft_tomography_flow *list = calloc(in->flows + 1, sizeof(*list));
    int rc = -ENOMEM;

    if (!list || !find_rows(&w) || !find_columns(&w, list))
        goto out;
    found.windows = w.rows;
    rc = 0;
    if (w.columns == 0 || in->links < 2 || w.rows < FT_TOMOGRAPHY_WINDOWS_LEAST ||
        w.learnt < w.columns + SPARE_LEAST) {
        for (size_t i = 0; i < in->flows; i++)
            list[i].state = FT_TOMOGRAPHY_FEW;
        goto out;
    }
    rc = allocate(&w) ? decompose(&w) : -ENOMEM;
    if (rc)
        goto out;
    if (w.s[w.columns - 1] > 0)
        found.condition = w.s[0] / w.s[w.columns - 1];
    solve(&w);
    answer(&w, list);
    hold_out(&w, list, w.noise, &found);
out:
    if (!rc) {
        memcpy(flows, list, in->flows * sizeof(*list));
        memset(parts, 0, in->flows * in->links * sizeof(*parts));
        for (size_t l = 0; l < in->links; l++)
            noise[l] = w.noise ? w.noise[l] : 0;
        for (size_t k = 0; w.parts && k < w.columns; k++)
            memcpy(&parts[w.column[k] * in->links], &w.parts[k * in->links],
                   in->links * sizeof(*parts));
        *out = found;
    }
    free(list);
    free_work(&w);
    return rc;
}

/* What the answers leave over of a link in a window, and whether that is little enough for a flow
 * that is answered not to be elsewhere. *anywhere: what flows in state FEW sent. */
static bool left_over(const struct ft_tomography_windows *in, size_t t, size_t link,
                      const struct ft_tomography_flow *flows, const double *parts, double *rest,
                      double *anywhere)
{
    const double *sent_then = &in->sent[t * in->flows];
    double least = INFINITY;

    *anywhere = 0;
    *rest = in->counted[t * in->links + link];
    for (size_t i = 0; i < in->flows; i++) {
        if (flows[i].state == FT_TOMOGRAPHY_FEW) {
            *anywhere += sent_then[i];
            continue;
        }
        *rest -= parts[i * in->links + link] * sent_then[i];
        if (flows[i].state == FT_TOMOGRAPHY_ANSWERED && sent_then[i] > 0)
            least = fmin(least, sent_then[i]);
    }
    return *rest >= -LEFT_OVER * least && *rest <= LEFT_OVER * least + *anywhere;
}

bool ft_tomography_holds(const struct ft_tomography_windows *in,
                         const struct ft_tomography_flow *flows, const double *parts,
                         const double *noise)
{
    for (size_t l = 0; l < in->links; l++) {
        double square = 0, count = 0;

        for (size_t t = 0; t < in->count; t++) {
            double rest, anywhere, sum = 0;

            if (!left_over(in, t, l, flows, parts, &rest, &anywhere))
                return false;
            for (size_t i = 0; i < in->flows; i++)
                sum += in->sent[t * in->flows + i];
            if (anywhere > 0 || !(sum > 0))
                continue;
            square += rest / sum * (rest / sum);
            count++;
        }
        if (count > 0 && square > count * noise[l] * noise[l] * grown_most(count))
            return false;
    }
    return true;
}

/* A window as ft_tomography_verify() reads it: as parts of what was sent in all. */
struct verifying {
    const struct ft_tomography_windows *in;
    const double *parts, *noise;
    const struct ft_tomography_flow *flows;
    uint32_t *link; /* by flow, that of its largest part; UINT32_MAX: it may be anywhere */
    double *rest;   /* windows x links, as a part of what was sent; NAN: the window says nothing */
    double *weight; /* by window: 1 / what was sent */
};

static void prepare(struct verifying *s)
{
    const struct ft_tomography_windows *in = s->in;

    for (size_t i = 0; i < in->flows; i++) {
        const double *part = &s->parts[i * in->links];

        s->link[i] = UINT32_MAX;
        for (uint32_t l = 0; s->flows[i].state != FT_TOMOGRAPHY_FEW && l < in->links; l++)
            if (s->link[i] == UINT32_MAX || part[l] > part[s->link[i]])
                s->link[i] = l;
    }
    for (size_t t = 0; t < in->count; t++) {
        double anywhere = 0, sum = 0;

        for (size_t i = 0; i < in->flows; i++) {
            sum += in->sent[t * in->flows + i];
            anywhere += s->link[i] == UINT32_MAX ? in->sent[t * in->flows + i] : 0;
        }
        s->weight[t] = sum > 0 ? 1 / sum : 0;
        for (size_t l = 0; l < in->links; l++) {
            double rest = in->counted[t * in->links + l];

            for (size_t i = 0; i < in->flows; i++)
                if (s->link[i] != UINT32_MAX)
                    rest -= s->parts[i * in->links + l] * in->sent[t * in->flows + i];
            s->rest[t * in->links + l] = anywhere > 0 ? NAN : rest * s->weight[t];
        }
    }
}

/* What the figures of a window are less likely by, as twice a logarithm, if so much of what was
 * sent is on another link than the answers say. */
static double less_likely(const struct verifying *s, size_t t, uint32_t from, uint32_t to,
                          double part)
{
    const double *rest = &s->rest[t * s->in->links];
    double was = s->noise[from], is = s->noise[to];

    if (isnan(rest[from]))
        return 0;
    return part * (part + 2 * rest[from]) / (was * was) + part * (part - 2 * rest[to]) / (is * is);
}

/* The odds, summed over the windows since when, that flow i is on a link that is not its own,
 * and flow j, unless j is i, on that of flow i. */
static double odds_of(const struct verifying *s, size_t i, size_t j, uint32_t to)
{
    const struct ft_tomography_windows *in = s->in;
    double less = 0, odds = 0;

    for (size_t n = 1; n <= in->count; n++) {
        const double *sent_then = &in->sent[(in->count - n) * in->flows];
        double part = sent_then[i] - (j == i ? 0 : sent_then[j]);

        less += less_likely(s, in->count - n, s->link[i], to, part * s->weight[in->count - n]);
        if (n > 1)
            odds += exp(-less / 2);
    }
    return odds;
}

static bool is_verified(const struct verifying *s, size_t i)
{
    double odds = 0, changes = 0;

    for (size_t j = 0; j < s->in->flows; j++)
        if (s->link[j] != UINT32_MAX && s->link[j] != s->link[i]) {
            odds += odds_of(s, i, j, s->link[j]);
            changes++;
        }
    for (uint32_t l = 0; l < s->in->links; l++)
        if (l != s->link[i]) {
            odds += odds_of(s, i, i, l);
            changes++;
        }
    return odds / changes * CHANGES_MOST <= CHANGED_MOST;
}

void ft_tomography_verify(const struct ft_tomography_windows *newest, const double *parts,
                          const double *noise, struct ft_tomography_flow *flows)
{
    struct verifying s = {newest, parts, noise, flows, NULL, NULL, NULL};
    bool *verified = calloc(newest->flows + 1, sizeof(*verified));

    s.link = calloc(newest->flows + 1, sizeof(*s.link));
    s.rest = calloc(newest->count * newest->links + 1, sizeof(*s.rest));
    s.weight = calloc(newest->count + 1, sizeof(*s.weight));
    if (newest->count > 1 && verified && s.link && s.rest && s.weight) {
        prepare(&s);
        for (size_t i = 0; i < newest->flows; i++)
            verified[i] = flows[i].state == FT_TOMOGRAPHY_ANSWERED && is_verified(&s, i);
    }
    for (size_t i = 0; i < newest->flows; i++)
        if (flows[i].state == FT_TOMOGRAPHY_ANSWERED && !(verified && verified[i]))
            flows[i].state = FT_TOMOGRAPHY_UNVERIFIED;
    free(verified);
    free(s.link);
    free(s.rest);
    free(s.weight);
}

const char *ft_tomography_state_name(enum ft_tomography_state state)
{
    static const char *const names[FT_TOMOGRAPHY_STATES] = {
        [FT_TOMOGRAPHY_ANSWERED] = "answered",
        [FT_TOMOGRAPHY_FEW] = "few_windows",
        [FT_TOMOGRAPHY_ALIKE] = "alike",
        [FT_TOMOGRAPHY_VAGUE] = "vague",
        [FT_TOMOGRAPHY_UNEXPLAINED] = "unexplained",
        [FT_TOMOGRAPHY_UNVERIFIED] = "unverified",
    };

    return names[state];
}

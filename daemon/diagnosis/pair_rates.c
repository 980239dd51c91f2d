// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/pair_rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/pair_rates_parts.h"
#include "daemon/join/flow_names.h"
#include "lib/base/table.h"
#include "lib/base/task.h"
#include "lib/fabric/topology.h"

#define BLOCK_MS    30000
#define BLOCK_MAX   120000
#define PERIODS_MIN 6
#define PAST_BLOCKS 10 /* of other work: what is usual is learnt anew */
#define SPAN_MS     10000
#define GAP_MS      (FT_PAIR_RATE_BINS * FT_PAIR_RATE_BIN_MS / 2) /* longer, and samples are lost */
#define SILENT_MS   900000 /* a pair without samples for so long makes room */
#define ENDS_MAX    (2 * (FT_PAIR_RATES_OF_JOB + FT_PAIR_RATES_FOUND))
#define UNNAMED     0x80000000u /* of hosts that no topology names: numbers of ends */

struct ft_pair_rates {
    struct ft_table *pairs;
    const struct ft_join *join; /* of which ports are numbers */
    uint32_t serial;
    uint64_t refused;
    struct ft_pair_rates_judging *judging; /* NULL: nothing is judged */
};

struct ft_pair_rates *ft_pair_rates_new(uint64_t seed)
{
    struct ft_pair_rates *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->pairs = ft_table_new(sizeof(struct ft_pair_rates_pair), sizeof(struct ft_pair_rates_key),
                            FT_PAIR_RATES_PAIRS_MAX, seed);
    if (p->pairs)
        return p;
    free(p);
    return NULL;
}

static void stop_judging(struct ft_pair_rates *p)
{
    struct ft_pair_rates_judging *j = p->judging;

    if (!j)
        return;
    while (j->task && ft_task_step(j->task, UINT64_MAX))
        ;
    ft_task_free(j->task);
    ft_blames_free(&j->blames);
    free(j->pairs);
    free(j->rates);
    free(j);
    p->judging = NULL;
}

void ft_pair_rates_free(struct ft_pair_rates *p)
{
    if (!p)
        return;
    stop_judging(p);
    ft_table_free(p->pairs);
    free(p);
}

static struct ft_pair_rates_key key_of(const struct ft_pair_rates_job *job,
                                       const struct ft_tuple *tuple)
{
    struct ft_pair_rates_key key;

    memset(&key, 0, sizeof(key));
    key.job = job->serial;
    key.src = tuple->src;
    key.dst = tuple->dst;
    return key;
}

static bool is_same(const struct ft_ip *a, const struct ft_ip *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* A number that no pair of the job has, nor what is found of it. There always is one. */
static uint32_t free_number(struct ft_pair_rates_job *job, bool taken[ENDS_MAX])
{
    uint32_t i = 0;

    for (size_t k = 0; k < FT_PAIR_RATES_FOUND; k++)
        if (job->found[k].hits)
            taken[job->found[k].from] = taken[job->found[k].to] = true;
    while (i < ENDS_MAX - 1 && taken[i])
        i++;
    taken[i] = true;
    job->ends = i < job->ends ? job->ends : i + 1;
    return i;
}

/* Numbers its ends as other pairs of the job do. */
static void number(struct ft_pair_rates_job *job, struct ft_pair_rates_pair *pair)
{
    uint32_t from = UINT32_MAX, to = UINT32_MAX;
    bool taken[ENDS_MAX] = {false};

    for (const struct ft_pair_rates_pair *q = job->first; q; q = q->next) {
        taken[q->rate.from] = taken[q->rate.to] = true;
        from = is_same(&q->key.src, &pair->key.src)   ? q->rate.from
               : is_same(&q->key.dst, &pair->key.src) ? q->rate.to
                                                      : from;
        to = is_same(&q->key.src, &pair->key.dst)   ? q->rate.from
             : is_same(&q->key.dst, &pair->key.dst) ? q->rate.to
                                                    : to;
    }
    pair->rate.from = from != UINT32_MAX ? from : free_number(job, taken);
    pair->rate.to = to != UINT32_MAX                          ? to
                    : is_same(&pair->key.src, &pair->key.dst) ? pair->rate.from
                                                              : free_number(job, taken);
    pair->rate.from_host = UNNAMED | pair->rate.from;
    pair->rate.to_host = UNNAMED | pair->rate.to;
    ft_ip_format(&pair->key.src, pair->from_host);
    ft_ip_format(&pair->key.dst, pair->to_host);
}

void ft_pair_rates_take(struct ft_pair_rates *p, struct ft_pair_rates_job *job,
                        const struct ft_observation *o)
{
    struct ft_pair_rates_pair *pair;
    struct ft_pair_rates_key key;
    bool fresh;

    /* Acknowledgements are as fast as what they acknowledge. */
    if (o->ack_samples > o->data_samples)
        return;
    if (job->serial == 0)
        job->serial = ++p->serial;
    key = key_of(job, &o->tuple);
    pair = job->count < FT_PAIR_RATES_OF_JOB ? ft_table_insert(p->pairs, &key, &fresh)
                                             : ft_table_find(p->pairs, &key);
    if (!pair) {
        p->refused++;
        job->refused = true;
        return;
    }
    if (job->count < FT_PAIR_RATES_OF_JOB && fresh) {
        pair->tuple = o->tuple;
        pair->qp = UINT32_MAX;
        number(job, pair);
        pair->next = job->first;
        job->first = pair;
        job->count++;
    }
    if (o->last_ms > pair->last_ms)
        pair->last_ms = o->last_ms;
    ft_pair_rate_take(&pair->rate, o->first_ms, o->last_ms, o->samples, (double)o->bytes);
}

static void name_end(const struct ft_topology *t, uint32_t nic, uint32_t *host,
                     char name[FT_PAIR_RATES_NAME])
{
    if (nic == FT_NONE)
        return;
    *host = ft_topology_nic(t, nic)->host_id;
    snprintf(name, FT_PAIR_RATES_NAME, "%s", ft_topology_host(t, *host)->name);
}

static void add_port(struct ft_pair_rates_pair *pair, uint32_t port, bool last)
{
    uint32_t i = 0;

    while (i < pair->port_count && pair->ports[i] != port)
        i++;
    if (port == FT_NONE || i == FT_PAIR_RATES_PORTS) {
        pair->unsure = true;
        return;
    }
    if (i == pair->port_count) {
        pair->last[pair->port_count] = false;
        pair->crossed[pair->port_count++] = 0;
    }
    pair->ports[i] = port;
    pair->last[i] |= last;
    pair->crossed[i]++;
}

/* Which ports not all of its flows cross, a bit each. */
static uint32_t partly_of(const struct ft_pair_rates_pair *pair)
{
    uint32_t partly = 0;

    for (uint32_t i = 0; i < pair->port_count; i++)
        partly |= (uint32_t)(pair->crossed[i] < pair->flows) << i;
    return partly;
}

void ft_pair_rates_flow(struct ft_pair_rates *p, struct ft_pair_rates_job *job,
                        const struct ft_join *join, const struct ft_flow *flow)
{
    const struct ft_pair_rates_key key = key_of(job, &flow->tuple);
    struct ft_pair_rates_pair *pair = ft_table_find(p->pairs, &key);

    if (!pair || ft_role_answers((enum ft_role)flow->role))
        return;
    p->join = join;
    if (pair->block != job->block || pair->flows == 0) {
        const struct ft_topology *t = ft_join_topology(join);

        pair->block = job->block;
        pair->flows = pair->port_count = 0;
        pair->unsure = false;
        pair->tuple = flow->tuple;
        pair->qp = ft_flow_src_qp(flow);
        name_end(t, flow->src_nic, &pair->rate.from_host, pair->from_host);
        name_end(t, flow->dst_nic, &pair->rate.to_host, pair->to_host);
    }
    pair->flows++;
    pair->unsure |= flow->state != FT_PATH_RESOLVED || pair->flows > UINT16_MAX;
    for (uint32_t h = 0; !pair->unsure && h < flow->path.hop_count; h++)
        add_port(pair, flow->path.hops[h].out, h + 1 == flow->path.hop_count);
}

/* [ms] Of the newest spans. */
static int64_t time_of(const struct ft_pair_rates_job *job, uint32_t spans)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < spans; i++)
        sum += job->lengths_ms[(job->newest - i) % FT_PAIR_RATE_SPANS];
    return sum;
}

static void restart(struct ft_pair_rates_job *job, int64_t ms)
{
    job->folded_ms = ms;
    job->spans = job->begun = job->length = 0;
    job->open = false;
    job->block++;
    job->refused = false;
}

static void run(void *arg)
{
    struct ft_pair_rates_judging *j = arg;

    if (ft_pair_rate_judge(j->rates, j->count, j->ends, j->bins, j->least, j->block, &j->outcome,
                           &j->blames, j->task))
        j->outcome = FT_PAIR_RATE_NOT_JUDGED;
}

/* Without memory there is none. */
static void begin_judging(struct ft_pair_rates *p, const struct ft_pair_rates_view *view,
                          uint32_t spans, bool block)
{
    struct ft_pair_rates_job *job = view->job;
    struct ft_pair_rates_judging *j = p->judging = calloc(1, sizeof(*j));

    if (!j)
        return;
    j->pairs = calloc(job->count + 1, sizeof(*j->pairs));
    j->rates = calloc(job->count + 1, sizeof(*j->rates));
    if (j->pairs && j->rates)
        j->task = ft_task_new(run, j);
    if (!j->task) {
        stop_judging(p);
        return;
    }
    for (struct ft_pair_rates_pair *q = job->first; q; q = q->next) {
        bool known = job->block - q->block <= 1 && q->flows && !q->unsure;

        ft_pair_rate_choose(&q->rate, spans);
        q->rate.links = q->ports;
        q->rate.link_count = known ? q->port_count : 0;
        q->rate.partly = known ? partly_of(q) : 0;
        q->rate.last = 0;
        for (uint32_t k = 0; k < q->rate.link_count; k++)
            q->rate.last |= (uint32_t)q->last[k] << k;
        j->pairs[j->count] = q;
        j->rates[j->count++] = &q->rate;
    }
    j->ends = job->ends;
    j->spans = spans;
    j->block = block;
    j->span_ms = time_of(job, spans);
    j->bins = (double)j->span_ms / FT_PAIR_RATE_BIN_MS;
    j->least = fmax(2 * FT_PAIR_RATE_BIN_MS, view->blur_ms) / view->period_ms;
}

static void end_judging(struct ft_pair_rates *p, const struct ft_pair_rates_view *view)
{
    struct ft_pair_rates_judging *j = p->judging;
    struct ft_pair_rates_job *job = view->job;
    uint32_t compared = 0;

    for (uint32_t i = 0; i < j->count; i++)
        compared += j->rates[i]->state != FT_PAIR_RATE_UNKNOWN;
    if (job->refused)
        j->blames.count = 0;
    if (j->outcome == FT_PAIR_RATE_JUDGED && !j->vain)
        ft_pair_rates_conclude(p->join, view, j, compared);
    else if (!j->vain)
        ft_pair_rates_pass_over(view, j);
    if (j->block) {
        job->odd = j->outcome == FT_PAIR_RATE_OTHER_WORK ? job->odd + 1 : 0;
        for (uint32_t i = 0; i < j->count && job->odd >= PAST_BLOCKS; i++)
            j->rates[i]->known = 0;
        job->length = j->spans;
        job->begun = 0;
        job->block++;
        job->refused = false;
    }
    stop_judging(p);
}

/* Whether all pairs that send have been sampled often enough. */
static bool suffices(const struct ft_pair_rates_job *job)
{
    for (struct ft_pair_rates_pair *q = job->first; q; q = q->next) {
        ft_pair_rate_choose(&q->rate, job->begun);
        if (q->rate.samples && !ft_pair_rate_suffices(&q->rate))
            return false;
    }
    return true;
}

/* Pairs that have not been sampled for long make room. */
static void age(struct ft_pair_rates *p, struct ft_pair_rates_job *job, int64_t end_ms)
{
    struct ft_pair_rates_pair **at = &job->first, *q;

    while ((q = *at)) {
        if (end_ms - q->last_ms < SILENT_MS) {
            at = &q->next;
            continue;
        }
        *at = q->next;
        ft_table_remove(p->pairs, q);
        job->count--;
    }
}

/* Adds what has come to the newest span; whether that is complete. Spans are so long that as many
 * as are kept are long enough to be judged. */
static bool fold(struct ft_pair_rates *p, const struct ft_pair_rates_view *view)
{
    struct ft_pair_rates_job *job = view->job;
    int64_t gap_ms = view->end_ms - job->folded_ms, *length_ms;
    bool begins = !job->open, gap = gap_ms <= 0 || gap_ms > GAP_MS || job->folded_ms == 0;

    age(p, job, view->end_ms);
    for (struct ft_pair_rates_pair *q = job->first; q; q = q->next)
        ft_pair_rate_fold(&q->rate, view->end_ms, begins);
    job->newest += begins;
    length_ms = &job->lengths_ms[job->newest % FT_PAIR_RATE_SPANS];
    *length_ms = (begins ? 0 : *length_ms) + gap_ms;
    job->folded_ms = view->end_ms;
    job->open = true;
    if (gap || view->silent || view->period_ms <= 0) {
        restart(job, view->end_ms);
        return false;
    }
    job->open = *length_ms < SPAN_MS ||
                (double)*length_ms * FT_PAIR_RATE_SPANS < PERIODS_MIN * view->period_ms;
    job->spans += !job->open;
    job->begun += !job->open;
    return !job->open;
}

/* How many spans are to be judged, and whether they are a block. Of fewer than half of one, too few
 * of its flows may have been seen to know its links. */
static uint32_t spans_due(struct ft_pair_rates *p, const struct ft_pair_rates_view *view,
                          bool *block)
{
    struct ft_pair_rates_job *job = view->job;
    int64_t all_ms;

    for (size_t i = 0; i < FT_PAIR_RATES_FOUND && view->silent; i++)
        if (job->found[i].hits)
            ft_pair_rates_end(&job->found[i], view);
    if (!fold(p, view))
        return 0;
    all_ms = time_of(job, job->begun);
    *block = job->begun == FT_PAIR_RATE_SPANS ||
             (all_ms >= BLOCK_MS && (double)all_ms >= PERIODS_MIN * view->period_ms &&
              (all_ms >= BLOCK_MAX || suffices(job)));
    if (*block)
        return job->begun;
    return job->spans >= job->length && 2 * job->begun >= job->length ? job->length : 0;
}

bool ft_pair_rates_look(struct ft_pair_rates *p, const struct ft_pair_rates_view *view,
                        uint64_t work)
{
    if (!p->judging) {
        bool block = false;
        uint32_t spans = spans_due(p, view, &block);

        if (spans == 0)
            return false;
        begin_judging(p, view, spans, block);
    }
    if (!p->judging) {
        restart(view->job, view->end_ms);
        return false;
    }
    if (ft_task_step(p->judging->task, work))
        return true;
    end_judging(p, view);
    return false;
}

void ft_pair_rates_forget_ports(struct ft_pair_rates *p)
{
    struct ft_pair_rates_pair *pair;
    uint32_t index = 0;

    /* What is judged reads them. */
    if (p->judging) {
        p->judging->vain = true;
        while (ft_task_step(p->judging->task, UINT64_MAX))
            ;
    }
    while ((pair = ft_table_next(p->pairs, &index))) {
        pair->port_count = pair->flows = 0;
        pair->rate.from_host = UNNAMED | pair->rate.from;
        pair->rate.to_host = UNNAMED | pair->rate.to;
    }
}

void ft_pair_rates_drop(struct ft_pair_rates *p, struct ft_pair_rates_job *job)
{
    struct ft_pair_rates_pair *next;

    for (struct ft_pair_rates_pair *q = job->first; q; q = next) {
        next = q->next;
        ft_table_remove(p->pairs, q);
    }
    *job = (struct ft_pair_rates_job){0};
}

uint64_t ft_pair_rates_refused(const struct ft_pair_rates *p)
{
    return p->refused;
}

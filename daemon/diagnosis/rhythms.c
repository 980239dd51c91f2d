// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/rhythms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/job_sent.h"
#include "daemon/jobs/ranks.h"
#include "daemon/join/flow_names.h"
#include "lib/base/table.h"
#include "lib/diagnosis/rhythm.h"

#define BINS FT_RHYTHM_BINS
/* Of a bin with traffic on average; with fewer, pauses between samples look like pauses. */
#define SAMPLES_MIN 4
/* Of judging its pairs, in a step (lib/base/task.h). */
#define WORK 1000
/* Of a job, of what stands: itself, and its pairs. */
#define SLOTS (1 + FT_PAIR_RATES_FOUND)
/* The newest periods by themselves, in no less than so many bins. */
#define PERIODS_NEW 12
#define BINS_NEW    80

struct key {
    char job[FT_RANKS_NAME];
};

struct entry {
    struct key key;
    int64_t first_bin, newest_bin, last_ms;
    /* Of this stretch of BINS bins, and the one before it. */
    int64_t stretch;
    uint64_t samples[2];
    int64_t blur_ms[2];
    float rates[BINS]; /* a ring by the number of the bin */
    /* As of the last closed window. */
    struct ft_span span; /* end_ms 0: of none yet */
    int64_t from_ms, pause_ms;
    uint64_t counted;
    int64_t resolution_ms;
    struct ft_rhythm found;
    struct ft_job_sent sent, sending; /* in that window, and so far in the one that closes */
    int64_t alive_ms, plugin_ms;
    bool gone; /* what is sampled next is of another run */
    struct ft_stall stall;
    struct ft_pair_rates_job pairs;
};

struct ft_rhythms {
    struct ft_table *jobs;
    struct ft_pair_rates *pairs;
    uint32_t cursor;
    struct entry *judged; /* whose pairs are; NULL: none */
    int64_t sampled_ms;
    double line[BINS];
};

struct ft_rhythms *ft_rhythms_new(uint64_t seed)
{
    struct ft_rhythms *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->jobs = ft_table_new(sizeof(struct entry), sizeof(struct key), FT_RHYTHMS_JOBS_MAX, seed);
    r->pairs = ft_pair_rates_new(seed);
    if (r->jobs && r->pairs)
        return r;
    ft_rhythms_free(r);
    return NULL;
}

void ft_rhythms_free(struct ft_rhythms *r)
{
    if (!r)
        return;
    ft_table_free(r->jobs);
    ft_pair_rates_free(r->pairs);
    free(r);
}

/* Bins that begin are empty. */
static void advance(struct entry *e, int64_t bin)
{
    int64_t stretch = bin / BINS;

    if (bin <= e->newest_bin)
        return;
    if (bin - e->newest_bin >= BINS)
        memset(e->rates, 0, sizeof(e->rates));
    else
        for (int64_t b = e->newest_bin + 1; b <= bin; b++)
            e->rates[b % BINS] = 0;
    e->newest_bin = bin;
    if (stretch == e->stretch)
        return;
    e->samples[1] = stretch == e->stretch + 1 ? e->samples[0] : 0;
    e->blur_ms[1] = stretch == e->stretch + 1 ? e->blur_ms[0] : 0;
    e->samples[0] = 0;
    e->blur_ms[0] = 0;
    e->stretch = stretch;
}

static void begin_at(struct entry *e, int64_t bin)
{
    e->first_bin = e->newest_bin = bin;
    e->stretch = bin / BINS;
}

/* Another run under the name of one that is gone, which may have other habits. */
static void begin_anew(struct ft_rhythms *r, struct entry *e, int64_t bin)
{
    ft_pair_rates_drop(r->pairs, &e->pairs);
    *e = (struct entry){.key = e->key, .alive_ms = e->alive_ms, .plugin_ms = e->plugin_ms};
    begin_at(e, bin);
}

void ft_rhythms_take(struct ft_rhythms *r, const char *job, const struct ft_observation *o)
{
    int64_t from = o->first_ms / FT_RHYTHMS_BIN_MS, to = o->last_ms / FT_RHYTHMS_BIN_MS;
    struct key key = {""};
    struct entry *e;
    bool fresh;

    if (from < 0 || to < from || to - from >= BINS)
        return;
    snprintf(key.job, sizeof(key.job), "%s", job);
    e = ft_table_insert(r->jobs, &key, &fresh);
    if (!e)
        return;
    if (fresh)
        begin_at(e, from);
    else if (e->gone && o->first_ms > e->last_ms && e != r->judged)
        begin_anew(r, e, from);
    advance(e, to);
    if (from < e->first_bin && from > e->newest_bin - BINS)
        e->first_bin = from;
    for (int64_t b = from; b <= to; b++)
        if (b > e->newest_bin - BINS)
            e->rates[b % BINS] += (float)((double)o->bytes / (double)(to - from + 1));
    e->samples[0] += o->samples;
    if (o->last_ms - o->first_ms > e->blur_ms[0])
        e->blur_ms[0] = o->last_ms - o->first_ms;
    if (o->last_ms > e->last_ms)
        e->last_ms = o->last_ms;
    ft_pair_rates_take(r->pairs, &e->pairs, o);
}

static struct entry *find(struct ft_rhythms *r, const char *job)
{
    struct key key = {""};

    snprintf(key.job, sizeof(key.job), "%s", job);
    return ft_table_find(r->jobs, &key);
}

void ft_rhythms_alive(struct ft_rhythms *r, const char *job, int64_t ms)
{
    struct entry *e = find(r, job);

    if (e && ms > e->alive_ms)
        e->alive_ms = ms;
}

void ft_rhythms_plugin(struct ft_rhythms *r, const char *job, int64_t ms)
{
    struct entry *e = find(r, job);

    if (e && ms > e->plugin_ms)
        e->plugin_ms = ms;
}

void ft_rhythms_sampled(struct ft_rhythms *r, int64_t ms)
{
    if (ms > r->sampled_ms)
        r->sampled_ms = ms;
}

void ft_rhythms_begin(struct ft_rhythms *r)
{
    struct entry *e;
    uint32_t index = 0;

    r->cursor = 0;
    while ((e = ft_table_next(r->jobs, &index)))
        e->sending = (struct ft_job_sent){.messages = 0};
}

void ft_rhythms_flow(struct ft_rhythms *r, const struct ft_join *join, const struct ft_flow *flow,
                     const struct ft_span *span)
{
    const char *job = ft_flow_job(flow);
    struct entry *e = job ? find(r, job) : NULL;

    if (!e)
        return;
    if (flow->reason != FT_REASON_SEVERAL_NETWORKS)
        ft_job_sent_add(&e->sending, flow, span);
    ft_pair_rates_flow(r->pairs, &e->pairs, join, flow);
}

void ft_rhythms_forget_ports(struct ft_rhythms *r)
{
    ft_pair_rates_forget_ports(r->pairs);
}

static int64_t longest_pause_ms(const double *rates, size_t n)
{
    size_t longest = 0, run = 0;

    for (size_t i = 0; i < n; i++) {
        run = rates[i] > 0 ? 0 : run + 1;
        if (run > longest)
            longest = run;
    }
    return (int64_t)longest * FT_RHYTHMS_BIN_MS;
}

/* Bins of the line. */
static size_t evaluate(struct ft_rhythms *r, struct entry *e, const struct ft_span *span)
{
    int64_t end = span->end_ms / FT_RHYTHMS_BIN_MS, from;
    double busy;
    size_t n;

    advance(e, end - 1);
    from = end - BINS;
    if (from < e->first_bin)
        from = e->first_bin;
    n = from < end ? (size_t)(end - from) : 0;
    for (size_t i = 0; i < n; i++)
        r->line[i] = (double)e->rates[(from + (int64_t)i) % BINS];
    e->span = *span;
    e->sent = e->sending;
    e->from_ms = from * FT_RHYTHMS_BIN_MS;
    e->counted = e->samples[0] + e->samples[1];
    e->resolution_ms = e->blur_ms[0] > e->blur_ms[1] ? e->blur_ms[0] : e->blur_ms[1];
    if (e->resolution_ms < FT_RHYTHMS_BIN_MS)
        e->resolution_ms = FT_RHYTHMS_BIN_MS;
    ft_rhythm_find(r->line, n, (double)e->resolution_ms / FT_RHYTHMS_BIN_MS, &e->found);
    e->pause_ms = longest_pause_ms(r->line, n);
    busy = e->found.exchange * (double)n;
    if ((double)e->counted < SAMPLES_MIN * busy)
        e->found = (struct ft_rhythm){.exchange = -1};
    return n;
}

static void emit(const struct entry *e, const char *fabric, const struct ft_emitter *emitter)
{
    Fabrictrace__Rhythm rhythm = FABRICTRACE__RHYTHM__INIT;
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    rhythm.has_window_start_ms = rhythm.has_window_end_ms = true;
    rhythm.window_start_ms = (uint64_t)e->span.start_ms;
    rhythm.window_end_ms = (uint64_t)e->span.end_ms;
    rhythm.fabric = (char *)(uintptr_t)fabric;
    rhythm.job = (char *)(uintptr_t)e->key.job;
    rhythm.has_from_ms = rhythm.has_samples = rhythm.has_resolution_ms = true;
    rhythm.from_ms = (uint64_t)e->from_ms;
    rhythm.samples = e->counted;
    rhythm.resolution_ms = (uint64_t)e->resolution_ms;
    rhythm.has_period_ms = rhythm.has_regularity = e->found.period > 0;
    rhythm.period_ms = (uint64_t)(e->found.period * FT_RHYTHMS_BIN_MS + 0.5);
    rhythm.regularity = e->found.regularity;
    rhythm.has_exchange = e->found.exchange >= 0;
    rhythm.exchange = e->found.exchange;
    rhythm.has_longest_pause_ms = rhythm.has_last_ms = true;
    rhythm.longest_pause_ms = (uint64_t)e->pause_ms;
    rhythm.last_ms = (uint64_t)e->last_ms;
    ft_job_sent_fill(&e->sent, &rhythm);
    record.kind_case = FABRICTRACE__RECORD__KIND_RHYTHM;
    record.rhythm = &rhythm;
    emitter->record(emitter->arg, &record);
}

static void emit_stall(const struct ft_stall_report *report, const struct ft_emitter *emitter)
{
    Fabrictrace__Diagnosis diagnosis = report->diagnosis;
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    record.kind_case = FABRICTRACE__RECORD__KIND_DIAGNOSIS;
    record.diagnosis = &diagnosis;
    emitter->record(emitter->arg, &record);
}

/* The period and the rate of the newest bins, which the line ends with: of as few as show one. */
static void view_newest(const struct ft_rhythms *r, const struct entry *e, size_t n,
                        struct ft_stall_view *view)
{
    size_t count = (size_t)(PERIODS_NEW * e->stall.period_ms / FT_RHYTHMS_BIN_MS);
    struct ft_rhythm found = {.period = 0};

    count = count < BINS_NEW ? BINS_NEW : count;
    for (int i = 0; i < 3 && n >= count && e->found.exchange >= 0; i++, count *= 2) {
        double sum = 0;

        ft_rhythm_find(r->line + n - count, count, (double)e->resolution_ms / FT_RHYTHMS_BIN_MS,
                       &found);
        if (found.period <= 0)
            continue;
        for (size_t k = n - count; k < n; k++)
            sum += r->line[k];
        view->period_ms = found.period * FT_RHYTHMS_BIN_MS;
        view->rate = sum / (double)count;
        return;
    }
}

/* The longest stretch without traffic that is over. */
static int64_t ended_pause_ms(const double *rates, size_t n)
{
    while (n > 0 && rates[n - 1] <= 0)
        n--;
    return longest_pause_ms(rates, n);
}

static void look(struct ft_rhythms *r, struct entry *e, size_t n, const char *fabric,
                 const struct ft_emitter *emitter, struct ft_events *events, uint32_t window)
{
    struct ft_stall_view view = {.end_ms = e->span.end_ms,
                                 .last_ms = e->last_ms,
                                 .alive_ms = e->alive_ms,
                                 .sampled_ms = r->sampled_ms,
                                 .plugin_ms = e->plugin_ms,
                                 .pause_ms = ended_pause_ms(r->line, n)};
    struct ft_stall_report report;
    struct ft_stall ended;
    bool changed;

    view_newest(r, e, n, &view);
    changed = ft_stall_look(&e->stall, &view, &ended);
    if (changed && ended.syndrome) {
        ft_stall_fill(&report, &ended, e->key.job, fabric, view.end_ms, true);
        emit_stall(&report, emitter);
    }
    if (!e->stall.syndrome)
        return;
    ft_stall_fill(&report, &e->stall, e->key.job, fabric, view.end_ms, false);
    if (changed)
        emit_stall(&report, emitter);
    if (events)
        ft_events_raise(events, window, &report.event);
}

/* What is reported of a job's pairs while they are looked at. */
struct reporting {
    const struct entry *entry;
    const char *fabric;
    const struct ft_emitter *emitter;
};

static void emit_pair(const struct ft_pair_rates_report *report, const struct ft_emitter *emitter)
{
    Fabrictrace__Diagnosis diagnosis = report->diagnosis;
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    record.kind_case = FABRICTRACE__RECORD__KIND_DIAGNOSIS;
    record.diagnosis = &diagnosis;
    emitter->record(emitter->arg, &record);
}

static void on_changed(void *arg, const struct ft_pair_rates_found *found)
{
    const struct reporting *t = arg;
    struct ft_pair_rates_report report;

    ft_pair_rates_fill(&report, found, t->entry->key.job, t->fabric, t->entry->span.end_ms);
    emit_pair(&report, t->emitter);
}

/* The job is forgotten, and what stands of it or its pairs ends. */
static void forget(struct ft_rhythms *r, struct entry *e, const char *fabric,
                   const struct ft_emitter *emitter)
{
    struct reporting reporting = {e, fabric, emitter};
    struct ft_stall_report report;

    if (e->stall.syndrome) {
        ft_stall_fill(&report, &e->stall, e->key.job, fabric, e->span.end_ms, true);
        emit_stall(&report, emitter);
    }
    for (size_t i = 0; i < FT_PAIR_RATES_FOUND; i++) {
        e->pairs.found[i].over = true;
        if (e->pairs.found[i].stands)
            on_changed(&reporting, &e->pairs.found[i]);
    }
    ft_pair_rates_drop(r->pairs, &e->pairs);
    ft_table_remove(r->jobs, e);
}

/* Where the plugin reports, it says more. What has no usual period yet does not say what pairs are
 * like at other times. True: there is more. */
static bool look_at_pairs(struct ft_rhythms *r, struct entry *e, const char *fabric,
                          const struct ft_emitter *emitter, struct ft_events *events,
                          uint32_t window)
{
    struct reporting reporting = {e, fabric, emitter};
    const struct ft_pair_rates_view view = {
        .job = &e->pairs,
        .start_ms = e->span.start_ms,
        .end_ms = e->span.end_ms,
        .period_ms = ft_stall_period_ms(&e->stall),
        .blur_ms = (double)e->resolution_ms,
        .silent = ft_stall_is_over(e->alive_ms, e->last_ms, e->plugin_ms, e->span.end_ms),
        .changed = on_changed,
        .arg = &reporting};

    if (ft_pair_rates_look(r->pairs, &view, WORK))
        return true;
    for (size_t i = 0; i < FT_PAIR_RATES_FOUND && events; i++) {
        struct ft_pair_rates_report report;

        if (!e->pairs.found[i].stands)
            continue;
        ft_pair_rates_fill(&report, &e->pairs.found[i], e->key.job, fabric, e->span.end_ms);
        ft_events_raise(events, window, &report.event);
    }
    return false;
}

/* Nothing of it is kept any more, though what stands still is there for as long as it stands; or it
 * is of a time that this host's clock has gone back from. */
static bool is_over(const struct entry *e, const struct ft_span *span)
{
    int64_t quiet_ms = span->end_ms - e->last_ms, kept_ms = (int64_t)BINS * FT_RHYTHMS_BIN_MS;

    return quiet_ms <= -kept_ms ||
           (quiet_ms >= kept_ms && e->stall.syndrome != FABRICTRACE__SYNDROME__SYNDROME_STANDSTILL);
}

bool ft_rhythms_step(struct ft_rhythms *r, const char *fabric, const struct ft_span *span,
                     const struct ft_emitter *emitter, struct ft_events *events, uint32_t window)
{
    struct entry *e = r->judged ? r->judged : ft_table_next(r->jobs, &r->cursor);

    if (!e)
        return false;
    if (!r->judged) {
        size_t n = evaluate(r, e, span);

        look(r, e, n, fabric, emitter, events, window);
    }
    r->judged = look_at_pairs(r, e, fabric, emitter, events, window) ? e : NULL;
    if (r->judged)
        return true;
    if (ft_stall_is_gone(e->alive_ms, e->last_ms, span->end_ms)) {
        e->gone = true;
        /* Nothing of it stands since the look. Another run may take long to begin. */
        e->stall = (struct ft_stall){.known = 0};
    }
    if (is_over(e, span)) {
        forget(r, e, fabric, emitter);
        return true;
    }
    emit(e, fabric, emitter);
    return true;
}

bool ft_rhythms_next_stall(const struct ft_rhythms *r, const char *fabric, uint32_t *index,
                           const struct ft_emitter *emitter)
{
    uint32_t job = *index / SLOTS, slot = *index % SLOTS, at = job;
    const struct entry *e = ft_table_next(r->jobs, &job);

    if (!e)
        return false;
    slot = job - 1 == at ? slot : 0;
    *index = slot + 1 < SLOTS ? (job - 1) * SLOTS + slot + 1 : job * SLOTS;
    if (slot == 0 && e->stall.syndrome) {
        struct ft_stall_report report;

        ft_stall_fill(&report, &e->stall, e->key.job, fabric, e->span.end_ms, false);
        emit_stall(&report, emitter);
    } else if (slot > 0 && e->pairs.found[slot - 1].stands) {
        struct ft_pair_rates_report report;

        ft_pair_rates_fill(&report, &e->pairs.found[slot - 1], e->key.job, fabric, e->span.end_ms);
        emit_pair(&report, emitter);
    }
    return true;
}

size_t ft_rhythms_stalls(const struct ft_rhythms *r, Fabrictrace__Syndrome syndrome)
{
    const struct entry *e;
    uint32_t index = 0;
    size_t count = 0;

    while ((e = ft_table_next(r->jobs, &index)))
        count += e->stall.syndrome == syndrome;
    index = 0;
    while (syndrome == FABRICTRACE__SYNDROME__SYNDROME_COMM_SLOW &&
           (e = ft_table_next(r->jobs, &index)))
        for (size_t i = 0; i < FT_PAIR_RATES_FOUND; i++)
            count += e->pairs.found[i].stands;
    return count;
}

bool ft_rhythms_next(const struct ft_rhythms *r, const char *fabric, uint32_t *index,
                     const struct ft_emitter *emitter)
{
    const struct entry *e = ft_table_next(r->jobs, index);

    if (e && e->span.end_ms)
        emit(e, fabric, emitter);
    return e != NULL;
}

uint64_t ft_rhythms_refused(const struct ft_rhythms *r)
{
    return ft_table_refused(r->jobs) + ft_pair_rates_refused(r->pairs);
}

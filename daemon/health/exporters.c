// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/exporters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"

#define WINDOWS        32
#define JUDGED_MIN     6 /* windows */
#define SILENT_MIN     3
#define SILENT_SAMPLES 10   /* that should have come: chance gives none at all in e^-10 */
#define SIGMAS         3.3  /* of the estimate's noise: one false alarm in a thousand */
#define MARGIN         0.10 /* headers and trailers are counted by some and not by others */
/* Agents answer with counters that they read a while ago, and a poll is not where a window ends. */
#define LAG_MS     10000
#define STRAYS     0.05 /* of the samples: by ports whose links are not known, so not counted */
#define NAME_BYTES 128
#define LOOKS      32 /* at a full table, for each that is new */

enum verdict {
    VERDICT_FINE,
    VERDICT_SILENT,
    VERDICT_OFF,
};

struct seen {
    uint32_t window; /* 0: none */
    bool counted;
    bool muted; /* its exporter was silent: says nothing of the sampling rate */
    bool stray; /* nor do samples that came in by ports that are not counted */
    double counter_bytes, sample_bytes;
    uint64_t samples;
};

struct exporter {
    char name[NAME_BYTES];
    struct seen seen[WINDOWS]; /* by window number modulo WINDOWS */
    enum verdict verdict;
    double ratio; /* samples over counters */
    uint32_t silent_windows;
    bool ever;
};

struct ft_exporters {
    struct ft_table *table;
    uint32_t window, hand; /* the last one; where a full table is looked at next */
    double bytes, samples; /* of all switches, fading: what a sample stands for */
};

struct ft_exporters *ft_exporters_new(size_t cap)
{
    struct ft_exporters *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->table = ft_table_new(sizeof(struct exporter), NAME_BYTES, cap, 0);
    if (!x->table) {
        free(x);
        return NULL;
    }
    return x;
}

void ft_exporters_free(struct ft_exporters *x)
{
    if (!x)
        return;
    ft_table_free(x->table);
    free(x);
}

/* A switch that no window of those that are judged has seen: its name is no longer one. */
static bool is_gone(void *arg, void *entry)
{
    const struct ft_exporters *x = arg;
    const struct exporter *e = entry;

    for (uint32_t i = 0; i < WINDOWS; i++)
        if (e->seen[i].window + WINDOWS >= x->window)
            return false;
    return true;
}

static struct exporter *exporter_of(struct ft_exporters *x, const char *name)
{
    char key[NAME_BYTES] = {0};
    struct exporter *e;
    bool fresh;

    snprintf(key, sizeof(key), "%s", name);
    e = ft_table_insert(x->table, key, &fresh);
    if (!e && ft_table_make_room(x->table, &x->hand, LOOKS, is_gone, x))
        e = ft_table_insert(x->table, key, &fresh);
    return e;
}

static struct exporter *known(const struct ft_exporters *x, const char *name)
{
    char key[NAME_BYTES] = {0};

    snprintf(key, sizeof(key), "%s", name);
    return ft_table_find(x->table, key);
}

/* What came in by the switch's links and hosts, when all of them are counted. */
static bool count(const struct ft_counters *counters, const struct ft_topology *t,
                  const struct ft_switch *s, uint32_t window, double *bytes)
{
    struct ft_counted port;
    bool some = false;

    *bytes = 0;
    for (uint32_t i = 0; i < s->port_count; i++) {
        const struct ft_port *p = ft_topology_port(t, s->ports[i]);

        if (p->peer == FT_NONE && p->nic == FT_NONE)
            continue;
        if (!ft_counters_window(counters, s->ports[i], window, &port) || !port.snmp ||
            !port.has_in_bytes)
            return false;
        *bytes += port.in_bytes;
        some = true;
    }
    return some;
}

/* Counters come later than samples: windows that were closed before may be counted now. */
static void take(struct exporter *e, const struct ft_join *join, const struct ft_counters *counters,
                 uint32_t switch_id, uint32_t window)
{
    const struct ft_topology *t = ft_join_topology(join);
    const struct ft_switch *s = ft_topology_switch(t, switch_id);
    struct seen *now = &e->seen[window % WINDOWS];

    *now = (struct seen){.window = window};
    ft_join_sampled(join, switch_id, window, &now->samples, &now->sample_bytes);
    now->stray = (double)ft_join_strays(join, switch_id, window) > STRAYS * (double)now->samples;
    e->ever |= now->samples > 0;
    for (uint32_t back = 0; back < WINDOWS && back < window; back++) {
        struct seen *w = &e->seen[(window - back) % WINDOWS];

        if (w->window == window - back && !w->counted)
            w->counted = count(counters, t, s, w->window, &w->counter_bytes);
    }
}

/* Windows at the end without a sample, and what went through in those that are counted. */
static void judge_silence(struct exporter *e, uint32_t window, double bytes_a_sample)
{
    double bytes = 0;
    uint32_t windows = 0, counted = 0;

    for (uint32_t back = 0; back < WINDOWS && back < window; back++) {
        const struct seen *w = &e->seen[(window - back) % WINDOWS];

        /* Not seen, or in part. */
        if (w->window != window - back)
            continue;
        if (w->samples > 0)
            break;
        windows++;
        counted += w->counted;
        bytes += w->counted ? w->counter_bytes : 0;
    }
    e->silent_windows = windows;
    if (counted < SILENT_MIN || bytes_a_sample <= 0 || bytes / bytes_a_sample < SILENT_SAMPLES)
        return;
    e->verdict = VERDICT_SILENT;
    for (uint32_t back = 0; windows && back < WINDOWS; back++) {
        struct seen *w = &e->seen[(window - back) % WINDOWS];

        if (w->window != window - back)
            continue;
        w->muted = true;
        windows--;
    }
}

/* Judged by its rate. */
static const struct seen *counted_in(const struct exporter *e, uint32_t window)
{
    const struct seen *w = &e->seen[window % WINDOWS];

    return w->window == window && w->counted && !w->muted && !w->stray ? w : NULL;
}

/*
 * Counters that are late miss the end of the sum, and have instead what came before its begin:
 * where traffic starts or stops that is much of all. Samples may be ahead by what they show in the
 * last LAG_MS, behind by what the counters show in the first.
 */
static double shifted(const struct exporter *e, uint32_t window, const struct ft_span *span,
                      bool ahead)
{
    int64_t length_ms = span->end_ms - span->start_ms, left_ms = LAG_MS;
    double bytes = 0;

    for (uint32_t i = 0; i < WINDOWS && left_ms > 0; i++) {
        const struct seen *w = counted_in(e, ahead ? window - i : window - (WINDOWS - 1) + i);

        if (!w)
            continue;
        bytes += ahead ? w->sample_bytes : w->counter_bytes;
        left_ms -= length_ms;
    }
    return bytes;
}

static void judge_rate(struct exporter *e, uint32_t window, const struct ft_span *span)
{
    double samples = 0, estimate = 0, counted = 0, larger;
    uint32_t windows = 0;

    for (uint32_t back = 0; back < WINDOWS && back < window; back++) {
        const struct seen *w = counted_in(e, window - back);

        if (!w)
            continue;
        windows++;
        samples += (double)w->samples;
        estimate += w->sample_bytes;
        counted += w->counter_bytes;
    }
    larger = estimate > counted ? estimate : counted;
    if (windows < JUDGED_MIN || samples < SILENT_SAMPLES ||
        fabs(estimate - counted) <= (SIGMAS / sqrt(samples) + MARGIN) * larger +
                                        shifted(e, window, span, estimate > counted))
        return;
    e->verdict = VERDICT_OFF;
    e->ratio = counted > 0 ? estimate / counted : INFINITY;
}

static void describe(const struct exporter *e, char *text, size_t size)
{
    if (e->verdict == VERDICT_SILENT)
        snprintf(text, size, "no sample for %u windows, though its ports carried traffic",
                 e->silent_windows);
    else if (isinf(e->ratio))
        snprintf(text, size, "samples arrive, but its counters do not change");
    else
        snprintf(text, size, "its samples stand for %.2f times the volume of its counters",
                 e->ratio);
}

static void raise_verdict(const struct exporter *e, struct ft_events *events, const char *fabric,
                          uint32_t window, const struct ft_span *span)
{
    Fabrictrace__Event event;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    char text[200], message[512];

    describe(e, text, sizeof(text));
    snprintf(
        message, sizeof(message), "%s: %s: %s", e->name, text,
        e->verdict == VERDICT_SILENT
            ? "its sFlow exporter is off, or its datagrams do not arrive"
            : "look for a wrong sampling rate, ports that are not sampled, or frozen counters");
    evidence.switch_ = (char *)(uintptr_t)e->name;
    evidence.has_count = e->verdict == VERDICT_SILENT;
    evidence.count = e->silent_windows;
    ft_emit_event(&event,
                  e->verdict == VERDICT_SILENT ? FABRICTRACE__KIND__KIND_SILENT_EXPORTER
                                               : FABRICTRACE__KIND__KIND_SAMPLING_RATE,
                  FABRICTRACE__SEVERITY__SEVERITY_WARNING, fabric, span->start_ms, span->end_ms);
    event.subject = (char *)(uintptr_t)e->name;
    event.message = message;
    event.evidence = &evidence;
    ft_events_raise(events, window, &event);
}

void ft_exporters_close(struct ft_exporters *x, const struct ft_join *join,
                        const struct ft_counters *counters, struct ft_events *events,
                        uint32_t window, const struct ft_span *span)
{
    const struct ft_topology *t = ft_join_topology(join);

    x->window = window;
    /* The fabric's mean of the last hundred windows or so, for switches that never sent one. */
    x->bytes *= 0.99;
    x->samples *= 0.99;
    for (uint32_t i = 0; i < ft_topology_switches(t); i++) {
        struct exporter *e = exporter_of(x, ft_topology_switch(t, i)->name);

        if (!e)
            continue;
        take(e, join, counters, i, window);
        x->bytes += e->seen[window % WINDOWS].sample_bytes;
        x->samples += (double)e->seen[window % WINDOWS].samples;
    }
    for (uint32_t i = 0; i < ft_topology_switches(t); i++) {
        struct exporter *e = known(x, ft_topology_switch(t, i)->name);

        if (!e)
            continue;
        e->verdict = VERDICT_FINE;
        judge_silence(e, window, x->samples > 0 ? x->bytes / x->samples : 0);
        if (e->verdict == VERDICT_FINE && e->silent_windows == 0)
            judge_rate(e, window, span);
        if (e->verdict != VERDICT_FINE)
            raise_verdict(e, events, ft_topology_fabric(t), window, span);
    }
}

void ft_exporters_hold(const struct ft_exporters *x, const struct ft_topology *t,
                       struct ft_events *events, uint32_t window, const struct ft_span *span)
{
    for (uint32_t i = 0; i < ft_topology_switches(t); i++) {
        const struct exporter *e = known(x, ft_topology_switch(t, i)->name);

        if (e && e->verdict != VERDICT_FINE)
            raise_verdict(e, events, ft_topology_fabric(t), window, span);
    }
}

void ft_exporters_find(const struct ft_exporters *x, const struct ft_topology *t,
                       struct ft_findings *findings)
{
    char text[200];

    for (uint32_t i = 0; i < ft_topology_switches(t); i++) {
        const struct exporter *e = known(x, ft_topology_switch(t, i)->name);

        if (!e)
            continue;
        describe(e, text, sizeof(text));
        if (e->verdict == VERDICT_SILENT)
            ft_findings_add(findings, FT_FINDING_NOTE, e->name, NULL,
                            "enable its sFlow exporter, and check that UDP 6343 is not blocked",
                            "%s", text);
        else if (e->verdict == VERDICT_OFF)
            ft_findings_add(findings, FT_FINDING_NOTE, e->name, NULL,
                            "compare its sampling rate with what it exports; sample every port",
                            "%s", text);
        else if (e->silent_windows >= SILENT_MIN)
            ft_findings_add(findings, FT_FINDING_NOTE, e->name, NULL,
                            "if there is traffic, enable its sFlow exporter",
                            e->ever ? "no sample for %u windows"
                                    : "no sample so far, for %u windows",
                            e->silent_windows);
    }
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/stall.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/publish/emit.h"

#define KNOWN_STAND 6 /* windows with a period, until a pause means something */
#define KNOWN_SLOW  12
#define KNOWN_MAX   30
#define QUIET_MS    120000
#define PERIODS     10
#define PAUSES      3
#define GONE_MS     90000 /* agents report queue pairs every 15 s, flows more often */
#define PLUGIN_MS   600000
#define SLOWER      1.3
#define LESS        1.2
#define FIT         1.33 /* how far the period's ratio and that of the rate may be apart */
#define LIKE        1.15 /* of what is usual: so much apart it is learnt */
#define OTHERS      30   /* windows in a row with another period, until that is usual */
#define FORMERS     360  /* windows for which the one before it does not count as slow */
#define HITS        3
#define MISSES      3

#define STANDSTILL FABRICTRACE__SYNDROME__SYNDROME_STANDSTILL
#define SLOWDOWN   FABRICTRACE__SYNDROME__SYNDROME_SLOWDOWN
#define NOTHING    FABRICTRACE__SYNDROME__SYNDROME_UNKNOWN

static bool stands_still(const struct ft_stall *s, const struct ft_stall_view *v)
{
    int64_t quiet_ms = v->end_ms - v->last_ms;

    return s->known >= KNOWN_STAND && quiet_ms >= QUIET_MS &&
           (double)quiet_ms >= PERIODS * s->period_ms && quiet_ms >= PAUSES * s->pause_ms &&
           v->alive_ms > v->last_ms + quiet_ms / 2 && v->sampled_ms > v->last_ms + quiet_ms / 2;
}

static bool is_like(double period_ms, double usual_ms)
{
    return period_ms <= LIKE * usual_ms && usual_ms <= LIKE * period_ms;
}

static bool is_slow(const struct ft_stall *s, const struct ft_stall_view *v)
{
    double longer = v->period_ms / s->period_ms, less = v->rate > 0 ? s->rate / v->rate : INFINITY;

    return s->known >= KNOWN_SLOW && v->period_ms > 0 && longer >= SLOWER && less >= LESS &&
           longer < FIT * less && less < FIT * longer && !is_like(v->period_ms, s->former_ms);
}

/* Another period is usual when so many windows agree on it. */
static void learn_other(struct ft_stall *s, const struct ft_stall_view *v)
{
    if (s->other && !is_like(v->period_ms, s->other_ms))
        s->other = 0;
    if (s->other++ == 0)
        s->other_ms = s->other_rate = 0;
    s->other_ms += (v->period_ms - s->other_ms) / s->other;
    s->other_rate += (v->rate - s->other_rate) / s->other;
    if (s->other < OTHERS)
        return;
    s->former_ms = s->period_ms;
    s->since_former = 0;
    s->period_ms = s->other_ms;
    s->rate = s->other_rate;
    s->known = s->other;
    s->other = 0;
}

/* What is far from the usual is not learnt at once. */
static void learn(struct ft_stall *s, const struct ft_stall_view *v)
{
    if (v->period_ms <= 0 || v->rate <= 0)
        return;
    if (s->former_ms > 0 && ++s->since_former > FORMERS)
        s->former_ms = 0;
    if (s->known >= KNOWN_STAND && !is_like(v->period_ms, s->period_ms)) {
        learn_other(s, v);
        return;
    }
    s->other = 0;
    s->known += s->known < KNOWN_MAX;
    s->period_ms += (v->period_ms - s->period_ms) / s->known;
    s->rate += (v->rate - s->rate) / s->known;
}

static bool begins(struct ft_stall *s, Fabrictrace__Syndrome syndrome, int64_t since_ms)
{
    s->syndrome = syndrome;
    s->since_ms = since_ms;
    s->calm = 0;
    s->in_a_row = s->slow;
    return true;
}

static bool look_sending(struct ft_stall *s, const struct ft_stall_view *v)
{
    if (v->pause_ms > s->pause_ms)
        s->pause_ms = v->pause_ms;
    if (!is_slow(s, v)) {
        s->slow = 0;
        learn(s, v);
        if (s->syndrome == SLOWDOWN && ++s->calm >= MISSES)
            return begins(s, NOTHING, 0);
        return false;
    }
    s->calm = s->other = 0;
    s->ratio = v->period_ms / s->period_ms;
    if (s->slow++ == 0)
        s->slow_ms = v->end_ms;
    if (s->slow > s->in_a_row)
        s->in_a_row = s->slow;
    return s->syndrome == NOTHING && s->slow >= HITS && begins(s, SLOWDOWN, s->slow_ms);
}

double ft_stall_period_ms(const struct ft_stall *s)
{
    return s->known >= KNOWN_STAND ? s->period_ms : 0;
}

bool ft_stall_is_gone(int64_t alive_ms, int64_t last_ms, int64_t end_ms)
{
    return end_ms - alive_ms > GONE_MS && end_ms - last_ms > GONE_MS;
}

bool ft_stall_is_over(int64_t alive_ms, int64_t last_ms, int64_t plugin_ms, int64_t end_ms)
{
    return (plugin_ms > 0 && end_ms - plugin_ms < PLUGIN_MS) ||
           ft_stall_is_gone(alive_ms, last_ms, end_ms);
}

bool ft_stall_look(struct ft_stall *s, const struct ft_stall_view *v, struct ft_stall *ended)
{
    bool over = ft_stall_is_over(v->alive_ms, v->last_ms, v->plugin_ms, v->end_ms);

    *ended = *s;
    s->heard_ms = v->alive_ms;
    if (s->syndrome == STANDSTILL && v->last_ms > s->since_ms)
        over = true;
    if (over)
        return s->syndrome != NOTHING && begins(s, NOTHING, 0);
    if (s->syndrome == STANDSTILL)
        return false;
    if (stands_still(s, v))
        return begins(s, STANDSTILL, v->last_ms);
    /* While it pauses nothing is learnt, and nothing is known of its period. */
    if ((double)(v->end_ms - v->last_ms) > 2 * s->period_ms && s->known)
        return false;
    return look_sending(s, v);
}

static void say(char text[FT_STALL_TEXT], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(char text[FT_STALL_TEXT], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(text, FT_STALL_TEXT, format, args);
    va_end(args);
}

static void say_reasons(struct ft_stall_report *r, const struct ft_stall *s, int64_t now_ms)
{
    if (s->syndrome == STANDSTILL) {
        say(r->reasons[0],
            "no sample of its flows for %.0f s; it sent every %.1f s and paused for %.0f s at most",
            (double)(now_ms - s->since_ms) / 1000, s->period_ms / 1000, (double)s->pause_ms / 1000);
        say(r->reasons[1], "agents still report its queue pairs, the last %.0f s ago",
            (double)(now_ms - s->heard_ms) / 1000);
        say(r->reasons[2], "other traffic is sampled meanwhile");
        return;
    }
    say(r->reasons[0], "its period is %.2f times what is usual for it, %.1f s", s->ratio,
        s->period_ms / 1000);
    say(r->reasons[1], "it sends less a second in the same measure");
    say(r->reasons[2], "in %u windows in a row", s->in_a_row);
}

void ft_stall_fill(struct ft_stall_report *r, const struct ft_stall *s, const char *job,
                   const char *fabric, int64_t now_ms, bool cleared)
{
    bool stands = s->syndrome == STANDSTILL;
    Fabrictrace__Diagnosis *m = &r->diagnosis;

    memset(r, 0, sizeof(*r));
    fabrictrace__diagnosis__init(m);
    say_reasons(r, s, now_ms);
    say(r->message, "job %.64s %s: %.160s", job, stands ? "stands still" : "has become slow",
        r->reasons[0]);
    m->has_time_ms = m->has_since_ms = m->has_syndrome = m->has_severity = true;
    m->has_confidence = m->has_source = true;
    m->time_ms = (uint64_t)now_ms;
    m->since_ms = (uint64_t)s->since_ms;
    m->fabric = (char *)(uintptr_t)fabric;
    m->job = (char *)(uintptr_t)job;
    m->syndrome = s->syndrome;
    m->severity = FABRICTRACE__SEVERITY__SEVERITY_WARNING;
    m->source = FABRICTRACE__DIAGNOSIS_SOURCE__DIAGNOSIS_SOURCE_FLOWS;
    m->message = r->message;
    m->has_slowdown = !stands;
    m->slowdown = s->ratio;
    m->confidence = stands ? 0.8 : 0.7;
    for (size_t i = 0; i < 3; i++)
        r->list[i] = r->reasons[i];
    m->evidence_for = r->list;
    m->n_evidence_for = 3;
    r->doubts[0] =
        (char *)(uintptr_t) "flows show no rank: the plugin libnccl-profiler-fabrictrace "
                            "would say which one, in which operation, and who waits";
    m->evidence_against = r->doubts;
    m->n_evidence_against = 1;
    m->advice = (char *)(uintptr_t)(stands ? "see whether it is still to communicate: its log, its "
                                             "processes, the links of its hosts"
                                           : "see events of its hosts and links since then");
    m->has_cleared = m->cleared = cleared;
    ft_emit_event(&r->event,
                  stands ? FABRICTRACE__KIND__KIND_STANDSTILL : FABRICTRACE__KIND__KIND_SLOWDOWN,
                  m->severity, fabric, s->since_ms, now_ms);
    r->event.subject = (char *)(uintptr_t)job;
    r->event.message = r->message;
}

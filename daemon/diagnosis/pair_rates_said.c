// SPDX-License-Identifier: Apache-2.0
/* What is said of pairs that have become slow. */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/diagnosis/pair_rates.h"
#include "daemon/publish/emit.h"
#include "lib/diagnosis/report.h"

static void say(char text[FT_PAIR_RATES_TEXT], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(char text[FT_PAIR_RATES_TEXT], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(text, FT_PAIR_RATES_TEXT, format, args);
    va_end(args);
}

static char *next_reason(struct ft_pair_rates_report *r)
{
    size_t at = r->diagnosis.n_evidence_for++;

    r->list[at] = r->reasons[at];
    return r->reasons[at];
}

/* Who of it is the one that is named, and who is the other. */
static bool receives(const struct ft_pair_rates_found *f)
{
    return f->side == FT_SIDE_RECEIVER;
}

static void say_reasons(struct ft_pair_rates_report *r, const struct ft_pair_rates_found *f)
{
    const char *name = receives(f) ? f->to_host : f->from_host;

    if (f->line && f->side == FT_SIDE_PAIR)
        say(next_reason(r),
            "%" PRIu32 " of the %" PRIu32 " pairs of hosts over one link, of several senders and "
            "receivers, send %.2f times as slowly and as long as before",
            f->slow, f->all, f->ratio);
    else if (f->line)
        say(next_reason(r),
            "%" PRIu32 " of the %" PRIu32
            " pairs %s %s that samples suffice for send %.2f times as "
            "slowly and as long as before",
            f->slow, f->all, receives(f) ? "towards" : "from", name, f->ratio);
    else
        say(next_reason(r), "%s sends to %s %.2f times as slowly and as long as before",
            f->from_host, f->to_host, f->ratio);
    say(next_reason(r), "of %" PRIu32 " pairs that samples suffice for, most are as they were",
        f->pairs);
    if (f->port[0])
        say(next_reason(r), "%s %s is the one link under it that no pair crosses as fast as before",
            f->switch_name, f->port);
    else if (f->links_clean)
        say(next_reason(r), "every link between them carries pairs that are not slow");
    if (f->line)
        return;
    if (f->sender_clean && f->receiver_clean)
        say(next_reason(r), "both hosts are as fast as before with others");
    else if (f->sender_clean || f->receiver_clean)
        say(next_reason(r), "%s is as fast as before with others",
            f->sender_clean ? f->from_host : f->to_host);
}

static const char *advice_of(const struct ft_pair_rates_found *f)
{
    if (f->port[0])
        return "look at this link: its errors, its optics, its speed";
    switch (f->side) {
    case FT_SIDE_SENDER:
        return "look at this host's port as a sender, and its first link";
    case FT_SIDE_RECEIVER:
        return "look at this host's port as a receiver, and its last link";
    case FT_SIDE_PAIR:
        return "look at the links between these hosts, and for other traffic on them";
    default:
        return "look at the ports of these hosts and the links between";
    }
}

static void fill_event(struct ft_pair_rates_report *r, const struct ft_pair_rates_found *f)
{
    const Fabrictrace__Diagnosis *m = &r->diagnosis;
    Fabrictrace__Event *e = &r->event;

    if (m->peer_host)
        say(r->subject, "%.64s/%s to %s", m->job, f->from_host, f->to_host);
    else if (f->line && f->side == FT_SIDE_PAIR)
        say(r->subject, "%.64s/%s %s", m->job, f->switch_name, f->port);
    else
        say(r->subject, "%.64s/%s", m->job, m->host);
    r->evidence.host = m->host;
    r->evidence.switch_ = m->switch_;
    r->evidence.port = m->port;
    r->evidence.flow = m->flow;
    ft_emit_event(e, FABRICTRACE__KIND__KIND_COMM_SLOW, m->severity, m->fabric,
                  (int64_t)m->since_ms, (int64_t)m->time_ms);
    e->subject = r->subject;
    e->message = r->message;
    e->evidence = &r->evidence;
}

void ft_pair_rates_fill(struct ft_pair_rates_report *r, const struct ft_pair_rates_found *f,
                        const char *job, const char *fabric, int64_t now_ms)
{
    Fabrictrace__Diagnosis *m = &r->diagnosis;
    const char *host = receives(f) ? f->to_host : f->from_host;
    const char *peer = receives(f) ? f->from_host : f->to_host;

    memset(r, 0, sizeof(*r));
    fabrictrace__diagnosis__init(m);
    fabrictrace__evidence__init(&r->evidence);
    ft_emit_tuple(&r->flow, &f->tuple);
    say_reasons(r, f);
    say(r->message, "job %.64s communicates slowly: %.220s", job, r->reasons[0]);
    m->has_time_ms = m->has_since_ms = m->has_syndrome = m->has_severity = true;
    m->has_confidence = m->has_source = m->has_side = m->has_slowdown = true;
    m->time_ms = (uint64_t)now_ms;
    m->since_ms = (uint64_t)f->since_ms;
    m->fabric = (char *)(uintptr_t)fabric;
    m->job = (char *)(uintptr_t)job;
    m->syndrome = FABRICTRACE__SYNDROME__SYNDROME_COMM_SLOW;
    m->severity = FABRICTRACE__SEVERITY__SEVERITY_WARNING;
    m->source = FABRICTRACE__DIAGNOSIS_SOURCE__DIAGNOSIS_SOURCE_FLOWS;
    m->message = r->message;
    m->side = ft_report_side(f->side);
    m->slowdown = f->ratio;
    m->confidence = f->side == FT_SIDE_ANY ? 0.6 : 0.75;
    /* Over a link are pairs of many hosts. */
    if (!f->line || f->side != FT_SIDE_PAIR)
        m->host = (char *)(uintptr_t)host;
    if (!f->line)
        m->peer_host = (char *)(uintptr_t)peer;
    m->flow = &r->flow;
    m->has_qp = f->qp != UINT32_MAX;
    m->qp = f->qp;
    if (f->port[0]) {
        m->switch_ = (char *)(uintptr_t)f->switch_name;
        m->port = (char *)(uintptr_t)f->port;
    }
    m->evidence_for = r->list;
    r->doubts[0] =
        (char *)(uintptr_t) "computed from samples of flows alone: the plugin "
                            "libnccl-profiler-fabrictrace would say which ranks, in which "
                            "operation, and what its transfers wait for";
    m->n_evidence_against = 1;
    if (f->side == FT_SIDE_ANY)
        r->doubts[m->n_evidence_against++] =
            (char *)(uintptr_t) "sender, receiver and the links between them are all possible";
    m->evidence_against = r->doubts;
    m->advice = (char *)(uintptr_t)advice_of(f);
    m->has_cleared = m->cleared = f->over;
    fill_event(r, f);
}

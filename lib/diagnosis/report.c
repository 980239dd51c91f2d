// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/report.h"

#include <stdio.h>
#include <string.h>

static Fabrictrace__Syndrome syndrome_of(enum ft_syndrome syndrome)
{
    static const Fabrictrace__Syndrome syndromes[] = {
        [FT_SYNDROME_NONE] = FABRICTRACE__SYNDROME__SYNDROME_UNKNOWN,
        [FT_SYNDROME_NONCOMM_HANG] = FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG,
        [FT_SYNDROME_COMM_HANG] = FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG,
        [FT_SYNDROME_MISMATCH] = FABRICTRACE__SYNDROME__SYNDROME_MISMATCH,
        [FT_SYNDROME_NONCOMM_SLOW] = FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW,
        [FT_SYNDROME_COMM_SLOW] = FABRICTRACE__SYNDROME__SYNDROME_COMM_SLOW,
        [FT_SYNDROME_MIXED] = FABRICTRACE__SYNDROME__SYNDROME_MIXED,
    };

    return syndromes[syndrome];
}

Fabrictrace__Side ft_report_side(enum ft_side side)
{
    static const Fabrictrace__Side sides[] = {
        [FT_SIDE_NONE] = FABRICTRACE__SIDE__SIDE_UNKNOWN,
        [FT_SIDE_SENDER] = FABRICTRACE__SIDE__SIDE_SENDER,
        [FT_SIDE_RECEIVER] = FABRICTRACE__SIDE__SIDE_RECEIVER,
        [FT_SIDE_PAIR] = FABRICTRACE__SIDE__SIDE_PAIR,
        [FT_SIDE_ANY] = FABRICTRACE__SIDE__SIDE_ANY,
    };

    return sides[side];
}

void ft_report_add_reason(struct ft_diagnosis_report *r, const char *reason)
{
    Fabrictrace__Diagnosis *m = &r->message;

    if (m->n_evidence_for == FT_REPORT_TEXTS)
        m->n_evidence_for--;
    memmove(r->reasons + 1, r->reasons, m->n_evidence_for * sizeof(*r->reasons));
    r->reasons[0] = (char *)(uintptr_t)reason;
    m->n_evidence_for++;
}

void ft_report_retell(struct ft_diagnosis_report *r)
{
    static const char *const what[] = {
        [FABRICTRACE__SYNDROME__SYNDROME_UNKNOWN] = "",
        [FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG] = "hangs outside of communication",
        [FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG] = "hangs in communication",
        [FABRICTRACE__SYNDROME__SYNDROME_MISMATCH] = "calls another operation than its peers",
        [FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW] = "is slow outside of communication",
        [FABRICTRACE__SYNDROME__SYNDROME_COMM_SLOW] = "is slow in communication",
        [FABRICTRACE__SYNDROME__SYNDROME_MIXED] = "is slow in its own work and in communication",
        [FABRICTRACE__SYNDROME__SYNDROME_STANDSTILL] = "stands still",
        [FABRICTRACE__SYNDROME__SYNDROME_SLOWDOWN] = "has become slow",
    };
    const Fabrictrace__Diagnosis *m = &r->message;
    int n = 0;

    if (m->has_rank)
        n = snprintf(r->text, sizeof(r->text), "rank %u on %s", m->rank, m->host ? m->host : "?");
    else
        n = snprintf(r->text, sizeof(r->text), "communicator %s",
                     m->communicator ? m->communicator : "?");
    if (m->has_peer && n < (int)sizeof(r->text))
        n += snprintf(r->text + n, sizeof(r->text) - (size_t)n, " with rank %u", m->peer);
    if (n < (int)sizeof(r->text))
        n += snprintf(r->text + n, sizeof(r->text) - (size_t)n, " %s", what[m->syndrome]);
    if (m->has_ranks && n < (int)sizeof(r->text))
        n += snprintf(r->text + n, sizeof(r->text) - (size_t)n, " (%u of %u ranks known)",
                      m->ranks_known, m->ranks);
    if (m->n_evidence_for && n < (int)sizeof(r->text))
        snprintf(r->text + n, sizeof(r->text) - (size_t)n, ": %s", m->evidence_for[0]);
    r->message.message = r->text;
}

static void write_ranks(struct ft_diagnosis_report *r, const struct ft_actor *processes,
                        const struct ft_diagnosis *d)
{
    Fabrictrace__Diagnosis *m = &r->message;

    m->has_waiting = d->waiting_count > 0;
    m->waiting = (uint32_t)d->waiting_count;
    m->ranks_waiting = r->waiting;
    for (size_t i = 0; i < d->waiting_count && i < FT_REPORT_WAITING; i++)
        r->waiting[m->n_ranks_waiting++] = processes[d->waiting[i]].rank;
    m->wait_chain = r->chain;
    for (size_t i = 0; i < d->chain_count; i++)
        r->chain[m->n_wait_chain++] = processes[d->chain[i]].rank;
}

/* What a record says of the culprit and its operation. */
static void write_where(struct ft_diagnosis_report *r, const struct ft_operations *ops,
                        const struct ft_actor *processes, const struct ft_diagnosis *d)
{
    Fabrictrace__Diagnosis *m = &r->message;

    if (d->comm != FT_OPERATIONS_NONE)
        m->communicator = (char *)ft_operations_comm(ops, d->comm);
    if (d->function != FT_OPERATIONS_NONE)
        m->operation = (char *)ft_operations_function(ops, d->function);
    m->has_sequence = d->sequence != UINT64_MAX;
    m->sequence = d->sequence;
    if (d->process != FT_OPERATIONS_NONE) {
        m->has_rank = 1;
        m->rank = processes[d->process].rank;
        m->host = (char *)ft_operations_host(ops, processes[d->process].host);
    }
    if (d->peer != FT_OPERATIONS_NONE) {
        m->has_peer = 1;
        m->peer = processes[d->peer].rank;
        m->peer_host = (char *)ft_operations_host(ops, processes[d->peer].host);
    }
    m->has_side = d->side != FT_SIDE_NONE;
    m->side = ft_report_side(d->side);
}

void ft_report_fill(struct ft_diagnosis_report *r, const struct ft_operations *ops,
                    struct ft_diagnosis *d, uint64_t now_ns)
{
    Fabrictrace__Diagnosis *m = &r->message;
    const struct ft_actor *processes;
    size_t count;

    memset(r, 0, sizeof(*r));
    fabrictrace__diagnosis__init(m);
    processes = ft_operations_processes(ops, &count);
    m->has_time_ms = m->has_since_ms = m->has_syndrome = m->has_severity = m->has_confidence = 1;
    m->time_ms = now_ns / 1000000;
    m->since_ms = d->since_ns / 1000000;
    m->syndrome = syndrome_of(d->syndrome);
    m->severity = d->slowdown == 0 ? FABRICTRACE__SEVERITY__SEVERITY_CRITICAL
                                   : FABRICTRACE__SEVERITY__SEVERITY_WARNING;
    m->confidence = d->confidence;
    m->has_ranks = m->has_ranks_known = d->ranks > 0;
    m->ranks = d->ranks;
    m->ranks_known = d->ranks_known;
    m->has_others = d->others > 0;
    m->others = d->others;
    m->has_slowdown = d->slowdown > 0;
    m->slowdown = d->slowdown;
    m->advice = (char *)ft_syndrome_advice(d);
    write_where(r, ops, processes, d);
    write_ranks(r, processes, d);
    for (size_t i = 0; i < d->reasons.count; i++)
        r->reasons[i] = d->reasons.text[i];
    for (size_t i = 0; i < d->doubts.count; i++)
        r->doubts[i] = d->doubts.text[i];
    m->evidence_for = r->reasons;
    m->n_evidence_for = d->reasons.count;
    m->evidence_against = r->doubts;
    m->n_evidence_against = d->doubts.count;
    ft_report_retell(r);
}

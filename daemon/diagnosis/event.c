// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/event.h"

#include <stdbool.h>
#include <stdio.h>

#include "daemon/publish/emit.h"

void ft_diagnosis_event(const Fabrictrace__Diagnosis *m, Fabrictrace__Event *event,
                        Fabrictrace__Evidence *evidence, char subject[FT_DIAGNOSIS_SUBJECT_BYTES])
{
    static const Fabrictrace__Kind kinds[] = {
        [FABRICTRACE__SYNDROME__SYNDROME_UNKNOWN] = FABRICTRACE__KIND__KIND_UNKNOWN,
        [FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG] = FABRICTRACE__KIND__KIND_NONCOMM_HANG,
        [FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG] = FABRICTRACE__KIND__KIND_COMM_HANG,
        [FABRICTRACE__SYNDROME__SYNDROME_MISMATCH] = FABRICTRACE__KIND__KIND_MISMATCH,
        [FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW] = FABRICTRACE__KIND__KIND_NONCOMM_SLOW,
        [FABRICTRACE__SYNDROME__SYNDROME_COMM_SLOW] = FABRICTRACE__KIND__KIND_COMM_SLOW,
        [FABRICTRACE__SYNDROME__SYNDROME_MIXED] = FABRICTRACE__KIND__KIND_MIXED_SLOW,
        [FABRICTRACE__SYNDROME__SYNDROME_STANDSTILL] = FABRICTRACE__KIND__KIND_STANDSTILL,
        [FABRICTRACE__SYNDROME__SYNDROME_SLOWDOWN] = FABRICTRACE__KIND__KIND_SLOWDOWN,
    };

    bool pair = m->has_peer && m->has_side &&
                (m->side == FABRICTRACE__SIDE__SIDE_PAIR || m->side == FABRICTRACE__SIDE__SIDE_ANY);

    if (m->has_rank && pair)
        snprintf(subject, FT_DIAGNOSIS_SUBJECT_BYTES, "%s/rank %u to %u",
                 m->job ? m->job : m->communicator, m->rank, m->peer);
    else if (m->has_rank)
        snprintf(subject, FT_DIAGNOSIS_SUBJECT_BYTES, "%s/rank %u",
                 m->job ? m->job : m->communicator, m->rank);
    else
        snprintf(subject, FT_DIAGNOSIS_SUBJECT_BYTES, "%s/%s", m->job ? m->job : "",
                 m->communicator);
    fabrictrace__evidence__init(evidence);
    evidence->host = m->host;
    evidence->switch_ = m->switch_;
    evidence->port = m->port;
    evidence->flow = m->flow;
    evidence->has_count = m->has_waiting;
    evidence->count = m->waiting;
    ft_emit_event(event, kinds[m->syndrome], m->severity, m->fabric, (int64_t)m->since_ms,
                  (int64_t)m->time_ms);
    event->subject = subject;
    event->message = m->message;
    event->evidence = evidence;
}

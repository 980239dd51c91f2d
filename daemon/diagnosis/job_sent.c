// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/job_sent.h"

void ft_job_sent_add(struct ft_job_sent *o, const struct ft_flow *flow, const struct ft_span *span)
{
    const struct ft_flow_numbers *n = ft_flow_numbers(flow);
    const struct ft_flow_host *host = ft_flow_host(flow);
    uint64_t messages;

    if (!n || (host && host->other_job_ms >= span->start_ms))
        return;
    if (ft_flow_messages(flow, &messages)) {
        o->has_messages = true;
        o->messages += messages;
        o->bytes += flow->bytes;
    }
    o->numbered_samples += n->samples;
    o->back_samples += n->samples ? n->back : 0;
    o->nak_samples += n->naks;
    o->rnr_samples += n->rnrs;
    o->no_credit_samples += n->no_credits;
}

void ft_job_sent_fill(const struct ft_job_sent *o, Fabrictrace__Rhythm *out)
{
    out->has_messages = out->has_message_bytes = o->has_messages;
    out->messages = o->messages;
    out->message_bytes = o->bytes;
    out->has_numbered_samples = out->has_psn_back_samples = o->numbered_samples > 0;
    out->numbered_samples = o->numbered_samples;
    out->psn_back_samples = o->back_samples;
    out->has_nak_samples = o->nak_samples > 0;
    out->nak_samples = o->nak_samples;
    out->has_rnr_samples = o->rnr_samples > 0;
    out->rnr_samples = o->rnr_samples;
    out->has_no_credit_samples = o->no_credit_samples > 0;
    out->no_credit_samples = o->no_credit_samples;
}

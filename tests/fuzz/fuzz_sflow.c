// SPDX-License-Identifier: Apache-2.0
/* sFlow datagrams. */
#include "config.h"

#include "proto/sflow.h"

#include "tests/fuzz/fuzz.h"

struct calls {
    uint64_t heads, flows, tuples, discards, counters, processors, stated;
};

static bool on_head(void *arg, const struct ft_sflow_head *head)
{
    struct calls *calls = arg;

    calls->heads++;
    calls->stated = head->samples;
    return true;
}

static void on_flow(void *arg, const struct ft_sflow_flow *flow)
{
    struct calls *calls = arg;

    calls->flows++;
    calls->tuples += flow->has_packet;
    calls->discards += flow->discarded;
    ft_fuzz_assert(!flow->discarded || flow->sampling_rate == 1, "a notification is one packet");
    ft_fuzz_assert(flow->in.kind != FT_SFLOW_IF_DISCARD && flow->in.kind != FT_SFLOW_IF_MULTIPLE,
                   "an input is one port");
}

static void on_counters(void *arg, const struct ft_sflow_counters *counters)
{
    struct calls *calls = arg;

    (void)counters;
    calls->counters++;
}

static void on_processor(void *arg, const struct ft_sflow_processor *processor)
{
    struct calls *calls = arg;

    (void)processor;
    calls->processors++;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct calls calls = {0};
    struct ft_sflow_stats s = {0};
    struct ft_sflow_visitor visitor = {on_head, on_flow, on_counters, on_processor, &calls};

    if (ft_sflow_decode(bytes, len, &visitor, &s) != FT_SFLOW_OK) {
        ft_fuzz_assert(calls.heads + calls.flows + calls.counters + calls.processors == 0,
                       "refused before any call");
        return 0;
    }
    ft_fuzz_assert(calls.heads == 1, "one head");
    ft_fuzz_assert(s.flow_samples == calls.flows, "flow samples are calls of flow");
    ft_fuzz_assert(s.discards == calls.discards, "notifications are counted");
    ft_fuzz_assert(s.flow_samples + s.counter_samples + s.unknown_samples + s.broken_samples ==
                       calls.stated,
                   "every sample is accounted for");
    ft_fuzz_assert(calls.flows - calls.tuples ==
                       s.headers_unknown + s.headers_short + s.headers_bad,
                   "every sample without a tuple has a reason");
    ft_fuzz_assert(calls.counters + calls.processors >= s.counter_samples - s.counters_other,
                   "counters are calls");
    return 0;
}

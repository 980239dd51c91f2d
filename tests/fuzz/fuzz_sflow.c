// SPDX-License-Identifier: Apache-2.0
/* sFlow datagrams. They are mutated as what they are: a head, samples behind their lengths, records
 * behind theirs. */
#include "config.h"

#include "proto/sflow.h"

#include "tests/fuzz/nested.h"

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

#define PARTS_MAX 64

/* Parts with a word each for their kind and their length, up to an end. */
struct parts {
    size_t at[PARTS_MAX], len[PARTS_MAX]; /* with both words */
    size_t count;
};

static struct parts parts_of(const struct ft_fuzz_input *in, size_t at, size_t end)
{
    struct parts p = {.count = 0};

    while (p.count < PARTS_MAX && at + 8 <= end) {
        uint32_t len = ft_fuzz_word(in, at + 4);

        if (len > end - at - 8)
            break;
        p.at[p.count] = at;
        p.len[p.count++] = 8 + len;
        at += 8 + len;
    }
    return p;
}

/* Of a sample, what comes before its records, with the word that counts them. */
static size_t fixed_of(uint32_t kind)
{
    static const size_t bytes[] = {0, 32, 12, 44, 16, 32};

    return kind < sizeof(bytes) / sizeof(bytes[0]) ? bytes[kind] : 0;
}

/* A kind that the decoder may know: sFlow's are below 16, or about 1,000. */
static uint32_t some_kind(struct ft_fuzz_input *in)
{
    return (uint32_t)(ft_fuzz_below(in, 2) ? ft_fuzz_below(in, 16) : 1000 + ft_fuzz_below(in, 64));
}

static void change(struct ft_fuzz_input *in, size_t at, size_t len, size_t count_at)
{
    switch (ft_fuzz_below(in, 8)) {
    case 0:
        ft_fuzz_copy_or_cut(in, at, len, count_at);
        break;
    case 1:
        ft_fuzz_set_word(in, at, some_kind(in));
        break;
    default:
        in->around[in->depth++] = at + 4;
        ft_fuzz_mutate_part(in, at + 8, len - 8, 4);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t len, size_t max_len, unsigned seed)
{
    struct ft_fuzz_input in = {bytes, len, max_len, .random = seed};
    size_t head = len >= 8 && ft_fuzz_word(&in, 4) == 2 ? 40 : 28, fixed, at;
    struct parts samples, records;

    if (len < head || ft_fuzz_below(&in, 8) == 0)
        return LLVMFuzzerMutate(bytes, len, max_len);
    ft_fuzz_set_word(&in, 0, 5);
    samples = parts_of(&in, head, len);
    if (samples.count == 0 || ft_fuzz_below(&in, 16) == 0) {
        ft_fuzz_mutate_part(&in, 4, head - 8, head - 8);
        return in.len;
    }
    at = ft_fuzz_below(&in, samples.count);
    len = samples.len[at];
    at = samples.at[at];
    fixed = fixed_of(ft_fuzz_word(&in, at));
    if (fixed && len >= 8 + fixed && ft_fuzz_below(&in, 4)) {
        records = parts_of(&in, at + 8 + fixed, at + len);
        if (records.count) {
            size_t i = ft_fuzz_below(&in, records.count);

            in.around[in.depth++] = at + 4;
            change(&in, records.at[i], records.len[i], at + 8 + fixed - 4);
            return in.len;
        }
    }
    change(&in, at, len, head - 4);
    return in.len;
}

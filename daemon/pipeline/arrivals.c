// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/arrivals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/clock.h"

#define NS_PER_S INT64_C(1000000000)
#define WARN_NS  (60 * NS_PER_S)

/* The clock is looked at after each step, and a slice ends after this time. */
#define SLICE_NS (NS_PER_S / 100)

/* A slice of a batch on its way in. */
struct slice {
    struct ft_arrivals *arrivals;
    const struct ft_arrival *from;
    int64_t now_ms;
    uint64_t number; /* of the record in it */
};

void ft_arrivals_open(struct ft_arrivals *arrivals)
{
    *arrivals = (struct ft_arrivals){.identity_limit = {.interval_ns = WARN_NS, .burst = 10},
                                     .broken_limit = {.interval_ns = WARN_NS, .burst = 20}};
}

void ft_arrivals_close(struct ft_arrivals *arrivals)
{
    ft_batch_free(arrivals->batch);
    arrivals->batch = NULL;
}

static void refuse(const struct slice *s, const char *reason)
{
    uint64_t held;

    ft_pipeline_refuse(s->from->pipeline);
    if (s->arrivals->tap)
        s->arrivals->tap->refused(s->arrivals->tap->arg, s->number);
    if (ft_log_limit_pass(&s->arrivals->identity_limit, ft_mono_now(), &held))
        ft_log_about(
            FT_LOG_WARNING,
            &(struct ft_log_subject){FT_LOG_ID_REFUSED, FT_LOG_PEER_FIELD, s->from->source},
            "%s '%s': a record is refused, its certificate does not allow it: %s (%" PRIu64
            " more held back)",
            s->from->program, s->from->source, reason, held);
}

static void apply_record(void *arg, const Fabrictrace__Record *record)
{
    struct slice *s = arg;
    const struct ft_arrival *from = s->from;
    char reason[FT_IDENTITY_TEXT_BYTES];

    s->number++;
    if (!from->sender || ft_identity_allows(from->identities, from->sender, record,
                                            ft_pipeline_file(from->pipeline), s->now_ms, reason))
        ft_pipeline_record(from->pipeline, record, s->now_ms);
    else
        refuse(s, reason);
}

static void apply_observed(void *arg, const struct ft_observed *o)
{
    struct slice *s = arg;
    char reason[FT_IDENTITY_TEXT_BYTES];

    s->number++;
    if (!s->from->sender || ft_identity_allows_observed(s->from->sender, o, reason))
        ft_pipeline_observed(s->from->pipeline, o, s->now_ms);
    else
        refuse(s, reason);
}

/* Steps of the batch in hand. All are of one moment, and what was gathered is joined at its end:
 * nobody finds records half taken in, and a replay can do the same. */
static int apply_slice(struct ft_arrivals *a, const struct ft_arrival *from, const uint8_t *payload)
{
    struct slice slice = {.arrivals = a, .from = from, .now_ms = ft_wall_now().ms};
    const struct ft_batch_sink sink = {apply_record, apply_observed, &slice};
    struct ft_mono start = ft_mono_now();
    uint64_t steps = 0;
    int rc;

    do {
        rc = ft_batch_step(a->batch, payload, FT_ARRIVALS_STEP, &sink);
        steps++;
    } while (rc > 0 && ft_mono_since_ns(ft_mono_now(), start) <= SLICE_NS);
    if (rc == 0)
        ft_pipeline_unknown(from->pipeline, ft_batch_unknown(a->batch));
    ft_pipeline_flush(from->pipeline);
    if (a->tap)
        a->tap->slice(a->tap->arg, slice.now_ms, steps, rc <= 0);
    return rc;
}

int ft_arrivals_apply(struct ft_arrivals *a, const struct ft_arrival *from, const uint8_t *payload,
                      size_t len)
{
    uint64_t held;
    int rc = -ENOMEM;

    if (ft_pipeline_waits(from->pipeline))
        return 1;
    if (!a->batch && (a->batch = ft_batch_new(len)) && a->tap)
        a->tap->batch(a->tap->arg, payload, len);
    if (a->batch)
        rc = apply_slice(a, from, payload);
    if (rc > 0)
        return rc;
    ft_arrivals_close(a);
    if (rc < 0 && ft_log_limit_pass(&a->broken_limit, ft_mono_now(), &held))
        ft_log_about(FT_LOG_WARNING,
                     &(struct ft_log_subject){FT_LOG_ID_REFUSED, FT_LOG_PEER_FIELD, from->source},
                     "%s '%s': a batch of %zu bytes is refused: %s", from->program, from->source,
                     len, strerror(-rc));
    return rc;
}

int ft_arrivals_apply_all(struct ft_arrivals *a, const struct ft_arrival *from,
                          struct ft_receiver *receiver, const uint8_t *payload, size_t len)
{
    int rc;

    ft_pipeline_hurry(from->pipeline, true);
    if (receiver)
        ft_receiver_finish(receiver);
    do
        rc = ft_arrivals_apply(a, from, payload, len);
    while (rc > 0);
    ft_pipeline_hurry(from->pipeline, false);
    return rc;
}

void ft_arrivals_account(const struct ft_receiver *receiver, struct ft_account *account)
{
    struct ft_account_stage *stage;
    struct ft_receiver_stats transport;

    ft_receiver_stats(receiver, &transport);
    stage = ft_account_stage(account, "transport", "payloads");
    stage->received = transport.payloads;
    stage->processed = transport.applied;
    ft_account_drop(stage, "duplicate", transport.duplicates);
    ft_account_drop(stage, "refused", transport.refused);
    ft_account_drop(stage, "lost_with_sender", transport.lost);
    stage = ft_account_stage(account, "peers", "records");
    stage->received = transport.records_numbered;
    stage->processed = transport.records_applied;
    stage->pending = transport.records_pending;
    ft_account_drop(stage, "refused", transport.records_refused);
    ft_account_drop(stage, "dropped_by_sender", transport.records_skipped);
    ft_account_drop(stage, "lost_with_sender", transport.records_lost);
}

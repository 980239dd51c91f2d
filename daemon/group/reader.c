// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/group/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/group/numbers.h"
#include "daemon/group/role.h"
#include "daemon/pipeline/arrivals.h"
#include "daemon/publish/kafka_settings.h"
#include "daemon/settings.h"
#include "lib/base/log.h"
#include "lib/io/kafka_consumer.h"
#include "lib/io/transport.h"
#include "proto/record.h"

#define WARN_NS     (INT64_C(60) * 1000000000)
#define GROUP_BYTES (FT_SOURCE_ID_BYTES_MAX + 32)
#define TOPIC_BYTES 256
#define ERROR_BYTES 512
#define BATCH_BYTES ((size_t)16 << 20)
/* What is older says nothing of now: all that is still so was announced again since. */
#define STALE_MS (INT64_C(5) * 60 * 1000)

struct ft_group_reader {
    struct ft_pipeline *pipeline;
    struct ft_receiver *receiver;
    struct ft_kafka_consumer *consumer;
    struct ft_kafka_consumer *shared; /* flows, of a named group; NULL: consumer has them */
    int64_t *there_to;                /* by partition: what was there when it became ours */
    struct ft_group_numbers *numbers;
    struct ft_arrivals arrivals;
    uint32_t partitions;
    struct ft_group_role *role;
    const struct ft_run *run;
    char topics[FT_INGEST_TOPICS][TOPIC_BYTES], partials[TOPIC_BYTES];
    struct ft_writer batch;
    struct ft_log_limit error_limit, sender_limit;
    /* Of messages. */
    uint64_t applied, duplicates, malformed, refused, stale;
};

static bool find_topic(const struct ft_group_reader *r, const char *name,
                       enum ft_ingest_topic *topic)
{
    for (int i = 0; i < FT_INGEST_TOPICS; i++)
        if (strcmp(r->topics[i], name) == 0) {
            *topic = (enum ft_ingest_topic)i;
            return true;
        }
    return false;
}

/* All of it at once: a message is small against what a slice may take. */
static int apply(struct ft_group_reader *r, const Fabrictrace__Envelope *e)
{
    const struct ft_arrival from = {
        .pipeline = r->pipeline, .source = e->source, .program = e->program};
    int rc;

    if (r->receiver)
        ft_receiver_finish(r->receiver);
    do
        rc = ft_arrivals_apply(&r->arrivals, &from, e->batch.data, e->batch.len);
    while (rc > 0);
    return rc;
}

static void warn_of_division(struct ft_group_reader *r, const Fabrictrace__Envelope *e)
{
    uint64_t held;

    if (e->partitions != r->partitions && ft_log_limit_pass(&r->sender_limit, ft_mono_now(), &held))
        ft_log(FT_LOG_WARNING,
               "%s '%s': it divides flows among %u partitions, kafka.partitions says %u: samples "
               "of a flow may come to different daemons (%" PRIu64 " more held back)",
               e->program, e->source, (unsigned)e->partitions, (unsigned)r->partitions, held);
}

/* Whether what others had before is read; -1 in there_to: all of a partition is. */
static bool is_behind(const struct ft_group_reader *r)
{
    for (size_t i = 0; i < r->role->origin.partition_count; i++)
        if (r->there_to[r->role->origin.partitions[i]] >= 0)
            return true;
    return false;
}

/* A message that was there when its partition became ours is only read back. */
static void note_read(struct ft_group_reader *r, enum ft_ingest_topic topic,
                      const struct ft_kafka_message *m)
{
    bool of_group = topic == FT_INGEST_FLOWS && r->shared && m->partition >= 0 &&
                    (uint32_t)m->partition < r->partitions;
    int64_t *there_to = of_group ? &r->there_to[m->partition] : NULL;

    ft_pipeline_recall(r->pipeline, of_group && m->offset < *there_to);
    if (!of_group || *there_to < 0 || m->offset + 1 < *there_to)
        return;
    *there_to = -1;
    ft_group_role_behind(r->role, is_behind(r));
}

static void take_envelope(struct ft_group_reader *r, const Fabrictrace__Envelope *e,
                          enum ft_ingest_topic topic, const struct ft_kafka_message *m)
{
    int64_t now_ms = ft_wall_now().ms;

    warn_of_division(r, e);
    note_read(r, topic, m);
    if (!ft_group_numbers_begin(r->numbers, e, topic, (uint32_t)m->partition, now_ms)) {
        r->duplicates++;
    } else if (m->time_ms >= 0 && m->time_ms < now_ms - STALE_MS) {
        r->stale++;
        ft_group_numbers_end(r->numbers, e, FT_GROUP_STALE);
    } else if (apply(r, e) < 0) {
        r->refused++;
        ft_group_numbers_end(r->numbers, e, FT_GROUP_REFUSED);
    } else {
        r->applied++;
        ft_group_numbers_end(r->numbers, e, FT_GROUP_APPLIED);
    }
}

/* What a member says: a record of its own, which the pipeline takes as a batch of one. */
static bool take_partial(struct ft_group_reader *r, const struct ft_kafka_message *m)
{
    Fabrictrace__Partial *part = fabrictrace__partial__unpack(NULL, m->len, m->value);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT, *one = &record;
    const struct ft_arrival from = {
        .pipeline = r->pipeline, .source = part ? part->source : NULL, .program = "fabrictraced"};
    bool good = part && part->source;
    int rc = -EBADMSG;

    record.kind_case = FABRICTRACE__RECORD__KIND_PARTIAL;
    record.partial = part;
    ft_writer_reset(&r->batch);
    if (good && r->receiver)
        ft_receiver_finish(r->receiver);
    if (good && ft_batch_pack(&one, 1, &r->batch) == 0)
        do
            rc = ft_arrivals_apply(&r->arrivals, &from, r->batch.bytes, r->batch.len);
        while (rc > 0);
    if (part)
        fabrictrace__partial__free_unpacked(part, NULL);
    if (rc == 0)
        r->applied++;
    return rc == 0;
}

static void on_message(void *arg, const char *name, const struct ft_kafka_message *m)
{
    struct ft_group_reader *r = arg;
    enum ft_ingest_topic topic;
    Fabrictrace__Envelope *e = NULL;
    uint64_t held;

    if (strcmp(name, r->partials) == 0 && take_partial(r, m))
        return;
    if (find_topic(r, name, &topic))
        e = ft_envelope_read(m->value, m->len);
    if (e) {
        take_envelope(r, e, topic, m);
        ft_envelope_free(e);
        return;
    }
    r->malformed++;
    if (ft_log_limit_pass(&r->sender_limit, ft_mono_now(), &held))
        ft_log(FT_LOG_WARNING,
               "topic '%s', partition %d, offset %" PRId64 ": the message cannot be read (%" PRIu64
               " more held back)",
               name, (int)m->partition, m->offset, held);
}

static void on_error(void *arg, const char *key, const char *text)
{
    char location[FT_RUN_LOCATION_BYTES];
    struct ft_group_reader *r = arg;
    uint64_t held;

    if (ft_log_limit_pass(&r->error_limit, ft_mono_now(), &held))
        ft_log(FT_LOG_WARNING, "kafka.ingest: %s%s (%" PRIu64 " more held back)",
               ft_run_location(r->run, key, location), text, held);
}

/* Batches in progress are of the partitions that were ours. */
static void finish_pending(struct ft_group_reader *r, bool more)
{
    if (r->receiver)
        ft_receiver_finish(r->receiver);
    ft_pipeline_regroup(r->pipeline, more, ft_wall_now().ms);
}

static void on_owned(void *arg, const struct ft_kafka_owned *list, size_t count)
{
    struct ft_group_reader *r = arg;

    finish_pending(r, true);
    for (size_t i = 0; i < count; i++) {
        const struct ft_kafka_owned *o = &list[i];

        if (o->partition < 0 || (uint32_t)o->partition >= r->partitions)
            continue;
        r->there_to[o->partition] = o->from < o->until ? o->until : -1;
        ft_group_numbers_resume(r->numbers, (uint32_t)o->partition);
        ft_group_role_gain(r->role, (uint32_t)o->partition, ft_wall_now().ms);
    }
    ft_group_role_behind(r->role, is_behind(r));
    ft_log(FT_LOG_INFO, "group: %zu partitions assigned, this member has %zu", count,
           r->role->origin.partition_count);
}

static void on_lost(void *arg, const int32_t *partitions, size_t count)
{
    struct ft_group_reader *r = arg;

    finish_pending(r, false);
    for (size_t i = 0; i < count; i++)
        if (partitions[i] >= 0)
            ft_group_role_lose(r->role, (uint32_t)partitions[i]);
    ft_group_role_behind(r->role, is_behind(r));
    ft_log(FT_LOG_INFO, "group: %zu partitions revoked, this member has %zu", count,
           r->role->origin.partition_count);
}

/* Returns how many; parts has room for three times the partitions, and one. */
static size_t list_parts(const struct ft_group_reader *r, struct ft_kafka_part *parts)
{
    const struct ft_partial_origin *origin = &r->role->origin;
    size_t n = 0;

    for (uint32_t i = 0; i < r->partitions && !r->role->partials && !origin->source; i++)
        parts[n++] = (struct ft_kafka_part){r->topics[FT_INGEST_FLOWS], (int32_t)i, false};
    for (size_t i = 0; i < origin->partition_count; i++)
        parts[n++] = (struct ft_kafka_part){r->topics[FT_INGEST_FLOWS],
                                            (int32_t)origin->partitions[i], false};
    for (uint32_t i = 0; i < r->partitions; i++) {
        parts[n++] = (struct ft_kafka_part){r->topics[FT_INGEST_STATE], (int32_t)i, true};
        parts[n++] = (struct ft_kafka_part){r->topics[FT_INGEST_REPORTS], (int32_t)i, false};
    }
    if (r->role->partials)
        parts[n++] = (struct ft_kafka_part){r->partials, 0, false};
    return n;
}

/* The flows' partitions, as the group gives them: read back as far as paths and open windows need.
 */
static void open_shared(struct ft_group_reader *r, struct ft_loop *loop,
                        const struct ft_settings *s, struct ft_kafka_consumer_config own,
                        char *error, size_t error_bytes)
{
    int64_t windows_ns = 2 * s->window_ns + s->grace_ns;

    own.group = s->group_name;
    own.parts = NULL;
    own.part_count = 0;
    own.subscribe = r->topics[FT_INGEST_FLOWS];
    own.back_ns = s->evidence_ns > windows_ns ? s->evidence_ns : windows_ns;
    own.on_owned = on_owned;
    own.on_lost = on_lost;
    r->there_to = calloc(r->partitions, sizeof(*r->there_to));
    if (r->there_to)
        r->shared = ft_kafka_consumer_new(loop, &own, error, error_bytes);
    else
        snprintf(error, error_bytes, "no memory");
}

static int open_consumer(struct ft_group_reader *r, struct ft_loop *loop,
                         const struct ft_group_reader_config *config, char *error,
                         size_t error_bytes)
{
    struct ft_kafka_settings kafka;
    struct ft_kafka_part *parts =
        calloc(FT_INGEST_TOPICS * (size_t)r->partitions + 1, sizeof(*parts));
    struct ft_kafka_consumer_config own = {
        .parts = parts, .on_message = on_message, .on_error = on_error, .arg = r};
    bool shares = config->settings->group_name;
    char group[GROUP_BYTES];
    int rc = parts ? 0 : -ENOMEM;

    if (rc == 0)
        rc = ft_kafka_settings_open(config->settings, &kafka, error, error_bytes);
    else
        snprintf(error, error_bytes, "no memory");
    if (rc == 0) {
        snprintf(group, sizeof(group), "fabrictraced-%s", config->source_id);
        own.brokers = kafka.config.brokers;
        own.client_id = kafka.config.client_id;
        own.properties = kafka.config.properties;
        own.group = group;
        own.part_count = list_parts(r, parts);
        r->consumer = ft_kafka_consumer_new(loop, &own, error, error_bytes);
        if (r->consumer && shares)
            open_shared(r, loop, config->settings, own, error, error_bytes);
        ft_kafka_settings_close(&kafka);
    }
    free(parts);
    return r->consumer && (!shares || r->shared) ? 0 : -EINVAL;
}

struct ft_group_reader *ft_group_reader_new(struct ft_loop *loop,
                                            const struct ft_group_reader_config *config)
{
    const struct ft_settings *s = config->settings;
    struct ft_group_reader *r = calloc(1, sizeof(*r));
    char error[ERROR_BYTES] = "no memory";
    uint64_t seed;

    if (!r || getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
        ft_log(FT_LOG_ERROR, "kafka.ingest: %s", error);
        free(r);
        return NULL;
    }
    r->pipeline = config->pipeline;
    r->receiver = config->receiver;
    r->role = config->role;
    r->run = config->run;
    r->partitions = (uint32_t)s->kafka_partitions;
    ft_writer_init(&r->batch, BATCH_BYTES);
    snprintf(r->partials, sizeof(r->partials), "%s%s",
             s->kafka_topic_prefix ? s->kafka_topic_prefix : "",
             ft_record_schema(FABRICTRACE__RECORD__KIND_PARTIAL));
    r->error_limit = r->sender_limit = (struct ft_log_limit){.interval_ns = WARN_NS, .burst = 10};
    ft_arrivals_open(&r->arrivals);
    r->arrivals.tap = config->tap;
    for (int i = 0; i < FT_INGEST_TOPICS; i++)
        snprintf(r->topics[i], TOPIC_BYTES, "%s%s",
                 s->kafka_topic_prefix ? s->kafka_topic_prefix : "",
                 ft_ingest_topic_name((enum ft_ingest_topic)i));
    r->numbers = ft_group_numbers_new(s->sources_max * FT_INGEST_TOPICS, seed);
    if (!r->numbers || open_consumer(r, loop, config, error, sizeof(error)) < 0) {
        ft_log(FT_LOG_ERROR, "kafka.ingest: %s", error);
        ft_group_reader_free(r);
        return NULL;
    }
    return r;
}

void ft_group_reader_free(struct ft_group_reader *r)
{
    if (!r)
        return;
    ft_kafka_consumer_free(r->shared);
    ft_kafka_consumer_free(r->consumer);
    free(r->there_to);
    ft_arrivals_close(&r->arrivals);
    ft_writer_free(&r->batch);
    ft_group_numbers_free(r->numbers);
    free(r);
}

void ft_group_reader_account(const struct ft_group_reader *r, struct ft_account *account)
{
    const struct ft_group_numbers_stats *n;
    struct ft_account_stage *stage;

    if (!r)
        return;
    n = ft_group_numbers_stats(r->numbers);
    stage = ft_account_stage(account, "messages", "messages");
    stage->received = r->applied + r->duplicates + r->malformed + r->refused + r->stale;
    stage->processed = r->applied;
    ft_account_drop(stage, "duplicate", r->duplicates);
    ft_account_drop(stage, "malformed", r->malformed);
    ft_account_drop(stage, "refused", r->refused);
    ft_account_drop(stage, "stale", r->stale);
    stage = ft_account_stage(account, "topics", "records");
    stage->received = n->numbered;
    stage->processed = n->applied;
    ft_account_drop(stage, "refused", n->refused);
    ft_account_drop(stage, "stale", n->stale);
    ft_account_drop(stage, "dropped_by_sender", n->skipped);
}

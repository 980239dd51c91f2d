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
#include "daemon/group/progress.h"
#include "daemon/group/role.h"
#include "daemon/pipeline/arrivals.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/kafka_settings.h"
#include "daemon/settings.h"
#include "lib/base/log.h"
#include "lib/io/kafka/consumer.h"
#include "lib/io/transport/transport.h"
#include "proto/record.h"

#define WARN_NS     (INT64_C(60) * 1000000000)
#define GROUP_BYTES (FT_SOURCE_ID_BYTES_MAX + 32)
#define TOPIC_BYTES 256
#define ERROR_BYTES 512
#define BATCH_BYTES ((size_t)16 << 20)
#define COMMIT_NS   (INT64_C(5) * 1000000000) /* of what is closed, before others have the rest */
#define NS_PER_MS   1000000
/* What is older says nothing of now: all that is still so was announced again since. */
#define STALE_MS (INT64_C(5) * 60 * 1000)

struct ft_group_reader {
    struct ft_pipeline *pipeline;
    struct ft_receiver *receiver;
    struct ft_kafka_consumer *consumer;
    struct ft_kafka_consumer *shared; /* flows, of a named group; NULL: consumer has them */
    int64_t *there_to;                /* by partition: what was there when it became ours */
    struct ft_group_numbers *numbers;
    struct ft_kafka *kafka;             /* NULL: without transactions, as the next */
    struct ft_group_progress *progress; /* of what is shared */
    struct ft_kafka_position *read;     /* room for positions: first of the shared, then reports */
    int64_t *reports_at;                /* the next message of each partition; -1: none was read */
    bool *state_ended;
    uint32_t state_left; /* partitions of which not all is read that was there */
    uint64_t seals, closes;
    int64_t resumed_ms, now_ms, window_ms, grace_ms;
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

/* Windows that are made up for have all of it before they are closed. */
static void note_behind(struct ft_group_reader *r)
{
    ft_group_role_behind(r->role, is_behind(r) &&
                                      !(r->progress && ft_group_progress_is_behind(r->progress)));
}

/* A message that was there when its partition became ours is only read back. */
static void note_read(struct ft_group_reader *r, enum ft_ingest_topic topic,
                      const struct ft_kafka_message *m)
{
    bool of_group = topic == FT_INGEST_FLOWS && r->shared && m->partition >= 0 &&
                    (uint32_t)m->partition < r->partitions;
    int64_t *there_to = of_group ? &r->there_to[m->partition] : NULL;

    /* What is made up for nobody has published. The window before took its samples until then. */
    if (r->progress && ft_group_progress_is_behind(r->progress))
        ft_pipeline_recall(r->pipeline, of_group && m->time_ms < r->resumed_ms + r->grace_ms);
    else
        ft_pipeline_recall(r->pipeline, of_group && m->offset < *there_to);
    if (!of_group || *there_to < 0 || m->offset + 1 < *there_to)
        return;
    *there_to = -1;
    note_behind(r);
}

static void take_envelope(struct ft_group_reader *r, const Fabrictrace__Envelope *e,
                          enum ft_ingest_topic topic, const struct ft_kafka_message *m)
{
    const struct ft_arrival from = {
        .pipeline = r->pipeline, .source = e->source, .program = e->program};
    int64_t now_ms = ft_wall_now().ms;
    bool stale = m->time_ms >= 0 && m->time_ms < now_ms - STALE_MS;

    warn_of_division(r, e);
    note_read(r, topic, m);
    if (!ft_group_numbers_begin(r->numbers, e, topic, (uint32_t)m->partition, stale, now_ms)) {
        r->duplicates++;
    } else if (stale) {
        r->stale++;
        ft_group_numbers_end(r->numbers, e, FT_GROUP_STALE);
    } else if (ft_arrivals_apply_all(&r->arrivals, &from, r->receiver, e->batch.data,
                                     e->batch.len) < 0) {
        r->refused++;
        ft_group_numbers_end(r->numbers, e, FT_GROUP_REFUSED);
    } else {
        r->applied++;
        ft_group_numbers_end(r->numbers, e, FT_GROUP_APPLIED);
    }
}

static uint64_t parts_taken(const struct ft_group_reader *r)
{
    return r->role->partials ? ft_partials_stats(r->role->partials)->taken : 0;
}

/* What a member says: a record of its own, which the pipeline takes as a batch of one. One that is
 * not kept, as of a window that is far ahead, is not to be read again. */
static bool take_partial(struct ft_group_reader *r, const struct ft_kafka_message *m)
{
    Fabrictrace__Partial *part = fabrictrace__partial__unpack(NULL, m->len, m->value);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT, *one = &record;
    const struct ft_arrival from = {
        .pipeline = r->pipeline, .source = part ? part->source : NULL, .program = "fabrictraced"};
    bool good = part && part->source;
    uint64_t taken = parts_taken(r);
    int rc = -EBADMSG;

    record.kind_case = FABRICTRACE__RECORD__KIND_PARTIAL;
    record.partial = part;
    ft_writer_reset(&r->batch);
    if (good && ft_batch_pack(&one, 1, &r->batch) == 0)
        rc = ft_arrivals_apply_all(&r->arrivals, &from, r->receiver, r->batch.bytes, r->batch.len);
    if (rc == 0 && r->progress && parts_taken(r) > taken)
        ft_group_progress_part(r->progress, m->offset, (int64_t)part->window_start_ms);
    if (part)
        fabrictrace__partial__free_unpacked(part, NULL);
    if (rc == 0)
        r->applied++;
    return rc == 0;
}

static const char *shared_topic(const struct ft_group_reader *r)
{
    return r->role->partials ? r->partials : r->topics[FT_INGEST_FLOWS];
}

/* Where windows are made up for, samples wait for the state of the fabric, and for the close of
 * windows before theirs. */
static bool waits(struct ft_group_reader *r, const struct ft_kafka_message *m)
{
    int64_t now_ms = ft_wall_now().ms;
    const struct ft_join *join = ft_pipeline_stages(r->pipeline)->join;

    return (r->state_left > 0 && ft_group_progress_is_behind(r->progress)) ||
           ft_group_progress_holds(r->progress, (uint32_t)m->partition,
                                   m->time_ms < now_ms ? m->time_ms : now_ms,
                                   (int64_t)ft_join_window(join) * r->window_ms);
}

/* false: the message is to come again. */
static bool note_message(struct ft_group_reader *r, const char *name,
                         const struct ft_kafka_message *m)
{
    if (!r->progress || m->partition < 0)
        return true;
    if (strcmp(name, shared_topic(r)) == 0) {
        if (waits(r, m)) {
            ft_kafka_consumer_hold(r->shared);
            return false;
        }
        ft_group_progress_read(r->progress, (uint32_t)m->partition, m->offset);
    } else if (strcmp(name, r->topics[FT_INGEST_REPORTS]) == 0 &&
               (uint32_t)m->partition < r->partitions) {
        r->reports_at[m->partition] = m->offset + 1;
    }
    return true;
}

static void on_message(void *arg, const char *name, const struct ft_kafka_message *m)
{
    struct ft_group_reader *r = arg;
    enum ft_ingest_topic topic;
    Fabrictrace__Envelope *e = NULL;
    uint64_t held;

    if (!note_message(r, name, m))
        return;
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

/* Messages wait, as batches over TCP do, while the pipeline goes through all that it has. */
static bool is_busy(void *arg)
{
    const struct ft_group_reader *r = arg;

    return ft_pipeline_in_progress(r->pipeline);
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

static void on_end(void *arg, const char *name, int32_t partition)
{
    struct ft_group_reader *r = arg;

    if (partition < 0 || (uint32_t)partition >= r->partitions)
        return;
    if (strcmp(name, shared_topic(r)) == 0)
        ft_group_progress_end(r->progress, (uint32_t)partition);
    if (strcmp(name, r->topics[FT_INGEST_STATE]) != 0 || r->state_ended[partition])
        return;
    r->state_ended[partition] = true;
    if (--r->state_left == 0 && r->shared)
        ft_kafka_consumer_release(r->shared);
}

/* What the windows that are closed led to, from where the open ones are read again, and all reports
 * that were read: they are published as they are. */
static void commit(struct ft_group_reader *r)
{
    const struct ft_window *window = ft_pipeline_stages(r->pipeline)->window;
    struct ft_kafka_position *reports = &r->read[r->partitions];
    size_t n = ft_group_progress_list(r->progress, ft_window_last(window).end_ms, shared_topic(r),
                                      r->read);
    struct ft_kafka_offsets offsets[2] = {{r->shared, r->read, n}, {r->consumer, reports, 0}};

    for (uint32_t i = 0; i < r->partitions; i++)
        if (r->reports_at[i] >= 0)
            reports[offsets[1].count++] = (struct ft_kafka_position){
                r->topics[FT_INGEST_REPORTS], (int32_t)i, r->reports_at[i], -1};
    if (ft_kafka_commit(r->kafka, offsets, 2) < 0)
        ft_log(FT_LOG_ERROR, "kafka.transactions: no memory");
}

int64_t ft_group_reader_now(struct ft_group_reader *r, int64_t now_ms)
{
    bool behind;

    if (!r || !r->progress)
        return now_ms;
    behind = ft_group_progress_is_behind(r->progress);
    if (r->now_ms && behind && r->state_left > 0)
        return r->now_ms;
    r->now_ms = ft_group_progress_now(r->progress, now_ms);
    if (behind && !ft_group_progress_is_behind(r->progress)) {
        note_behind(r);
        ft_kafka_consumer_release(r->shared);
        ft_log(FT_LOG_INFO, "kafka.transactions: the windows of before the start are made up for");
    }
    return r->now_ms;
}

void ft_group_reader_look(struct ft_group_reader *r)
{
    const struct ft_window *window;
    uint64_t closes, seals;

    if (!r || !r->progress)
        return;
    window = ft_pipeline_stages(r->pipeline)->window;
    closes = ft_window_stats(window)->closed;
    seals = closes + ft_window_busy(window);
    for (; r->seals < seals; r->seals++)
        ft_group_progress_seal(r->progress);
    if (r->closes == closes)
        return;
    r->closes = closes;
    commit(r);
    if (ft_group_progress_is_behind(r->progress))
        ft_kafka_consumer_release(r->shared);
}

void ft_group_reader_undo(struct ft_group_reader *r, int64_t timeout_ns)
{
    if (!r || !r->progress)
        return;
    if (ft_kafka_flush(r->kafka, timeout_ns) < 0)
        ft_log(FT_LOG_WARNING, "kafka.transactions: stopping; a window was not committed, the next "
                               "start publishes it");
    ft_kafka_undo(r->kafka, true);
    ft_kafka_flush(r->kafka, timeout_ns);
}

/* Continues with the windows that are not published. */
static void begin_windows(struct ft_group_reader *r)
{
    int64_t first_ms = ft_group_progress_begin(r->progress, ft_wall_now().ms);

    if (first_ms < 0)
        return;
    r->resumed_ms = first_ms;
    ft_pipeline_begin(r->pipeline, first_ms);
    if (r->role->partials)
        ft_partials_close(r->role->partials, first_ms - r->window_ms);
    ft_log(FT_LOG_INFO,
           "kafka.transactions: windows are published up to %" PRId64
           ", the next ones are made up for",
           first_ms);
}

/* Batches in progress are of the partitions that were ours. */
static void finish_pending(struct ft_group_reader *r, bool more)
{
    if (r->receiver)
        ft_receiver_finish(r->receiver);
    ft_pipeline_regroup(r->pipeline, more, ft_wall_now().ms);
    ft_group_reader_look(r);
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
        if (r->progress)
            ft_group_progress_gain(r->progress, (uint32_t)o->partition, o->from, o->note);
        ft_group_role_gain(r->role, (uint32_t)o->partition,
                           r->progress && o->note >= 0 ? o->note + r->role->origin.grace_ms
                                                       : ft_wall_now().ms);
    }
    if (r->progress)
        begin_windows(r);
    note_behind(r);
    ft_log(FT_LOG_INFO, "group: %zu partitions assigned, this member has %zu", count,
           r->role->origin.partition_count);
}

static void on_lost(void *arg, const int32_t *partitions, size_t count)
{
    struct ft_group_reader *r = arg;

    finish_pending(r, false);
    /* Who has them next begins behind what is committed. */
    if (r->kafka && ft_kafka_consumer_is_evicted(r->shared))
        ft_kafka_undo(r->kafka, true);
    else if (r->kafka)
        ft_kafka_flush(r->kafka, COMMIT_NS);
    for (size_t i = 0; i < count; i++)
        if (partitions[i] >= 0)
            ft_group_role_lose(r->role, (uint32_t)partitions[i]);
    for (size_t i = 0; i < count && r->progress; i++)
        if (partitions[i] >= 0)
            ft_group_progress_lose(r->progress, (uint32_t)partitions[i]);
    note_behind(r);
    ft_log(FT_LOG_INFO, "group: %zu partitions revoked, this member has %zu", count,
           r->role->origin.partition_count);
}

/* Returns how many; parts has room for three times the partitions, and one. */
static size_t list_parts(const struct ft_group_reader *r, struct ft_kafka_part *parts)
{
    const struct ft_partial_origin *origin = &r->role->origin;
    size_t n = 0;

    for (uint32_t i = 0; i < r->partitions && !r->role->partials && !origin->source && !r->kafka;
         i++)
        parts[n++] = (struct ft_kafka_part){r->topics[FT_INGEST_FLOWS], (int32_t)i, false};
    for (size_t i = 0; i < origin->partition_count; i++)
        parts[n++] = (struct ft_kafka_part){r->topics[FT_INGEST_FLOWS],
                                            (int32_t)origin->partitions[i], false};
    for (uint32_t i = 0; i < r->partitions; i++) {
        parts[n++] = (struct ft_kafka_part){r->topics[FT_INGEST_STATE], (int32_t)i, true};
        parts[n++] = (struct ft_kafka_part){r->topics[FT_INGEST_REPORTS], (int32_t)i, false};
    }
    if (r->role->partials && !r->kafka)
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

    char group[GROUP_BYTES + 16];

    /* Of a daemon alone it has one member. */
    snprintf(group, sizeof(group), "%s-windows", own.group);
    own.group = s->group_name ? s->group_name : group;
    own.parts = NULL;
    own.part_count = 0;
    own.subscribe = shared_topic(r);
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
        .parts = parts, .on_message = on_message, .busy = is_busy, .on_error = on_error, .arg = r};
    bool shares = config->settings->group_name || r->kafka;
    char group[GROUP_BYTES];
    int rc = parts ? 0 : -ENOMEM;

    if (rc == 0)
        rc =
            ft_kafka_settings_open(config->settings, config->source_id, &kafka, error, error_bytes);
    else
        snprintf(error, error_bytes, "no memory");
    if (rc == 0) {
        snprintf(group, sizeof(group), "fabrictraced-%s", config->source_id);
        own.brokers = kafka.config.brokers;
        own.client_id = kafka.config.client_id;
        own.properties = kafka.config.properties;
        own.group = group;
        own.in_transactions = r->kafka;
        own.on_end = r->kafka ? on_end : NULL;
        own.part_count = list_parts(r, parts);
        r->consumer = ft_kafka_consumer_new(loop, &own, error, error_bytes);
        if (r->consumer && shares)
            open_shared(r, loop, config->settings, own, error, error_bytes);
        ft_kafka_settings_close(&kafka);
    }
    free(parts);
    return r->consumer && (!shares || r->shared) ? 0 : -EINVAL;
}

static int open_progress(struct ft_group_reader *r, const struct ft_settings *s)
{
    const struct ft_window *window = ft_pipeline_stages(r->pipeline)->window;
    const struct ft_group_progress_config config = {.partitions = r->partitions,
                                                    .window_ms = r->window_ms,
                                                    .grace_ms = s->grace_ns / NS_PER_MS,
                                                    .back_ms = STALE_MS,
                                                    .of_parts = r->role->partials};

    if (!r->kafka)
        return 0;
    r->progress = ft_group_progress_new(&config);
    r->read = calloc(2 * (size_t)r->partitions, sizeof(*r->read));
    r->reports_at = calloc(r->partitions, sizeof(*r->reports_at));
    r->state_ended = calloc(r->partitions, sizeof(*r->state_ended));
    for (uint32_t i = 0; r->reports_at && i < r->partitions; i++)
        r->reports_at[i] = -1;
    r->state_left = r->partitions;
    r->closes = ft_window_stats(window)->closed;
    r->seals = r->closes + ft_window_busy(window);
    return r->progress && r->read && r->reports_at && r->state_ended ? 0 : -ENOMEM;
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
    r->kafka = config->kafka;
    r->window_ms = s->window_ns / NS_PER_MS;
    r->grace_ms = s->grace_ns / NS_PER_MS;
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
    r->numbers = ft_group_numbers_new(s->sources_max, r->partitions, seed);
    if (!r->numbers || open_progress(r, s) < 0 ||
        open_consumer(r, loop, config, error, sizeof(error)) < 0) {
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
    ft_group_progress_free(r->progress);
    free(r->read);
    free(r->reports_at);
    free(r->state_ended);
    free(r->there_to);
    ft_arrivals_close(&r->arrivals);
    ft_writer_free(&r->batch);
    ft_group_numbers_free(r->numbers);
    free(r);
}

void ft_group_reader_account(const struct ft_group_reader *r, struct ft_account *account)
{
    const struct ft_group_numbers_stats *n = r ? ft_group_numbers_stats(r->numbers) : NULL;
    struct ft_account_stage *stage;

    if (!r)
        return;
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

uint64_t ft_group_reader_unnumbered(const struct ft_group_reader *r)
{
    return ft_group_numbers_stats(r->numbers)->unknown;
}

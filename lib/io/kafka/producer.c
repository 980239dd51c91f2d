// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/producer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/io/kafka/entry.h"
#include "lib/io/kafka/producer_impl.h"

#define TICK_NS        (100 * NS_PER_MS)
#define WAIT_MS        50   /* for reports, at once */
#define DRAIN_MESSAGES 5000 /* with librdkafka, of those from the spool */
#define DRAIN_BYTES    (UINT64_C(8) << 20)
#define DRAIN_AT_ONCE  1000
#define ENTRY_BYTES    (4u << 20) /* of one message, at most */
#define FAILS_MAX      10         /* of a message in transactions: then it is lost */

static uint64_t unread(const struct ft_kafka *k)
{
    struct ft_spool_stats s;

    if (!k->spool)
        return 0;
    ft_spool_stats(k->spool, &s);
    return s.unread;
}

/* Where nothing waits for a broker, nobody knows that it is away. */
static bool is_away(const struct ft_kafka *k)
{
    return k->away && k->first;
}

/* Everything that waits is in the spool as well, so that a kill does not lose it. The first that
 * finds no room there ends it: what follows would overtake it. */
static void spool_pending(struct ft_kafka *k)
{
    if (!k->last || k->last->number)
        return;
    for (struct ft_kafka_kept *m = k->first; m; m = m->after) {
        if (m->number)
            continue;
        if (unread(k) > 0 || ft_spool_append(k->spool, m->bytes, m->len, &m->number) < 0) {
            m->number = 0;
            return;
        }
        ft_spool_skip(k->spool);
    }
}

/* Entries of the spool that are delivered make room. */
static void release(struct ft_kafka *k)
{
    const struct ft_kafka_kept *m = k->first;

    if (!k->spool)
        return;
    while (m && !m->number)
        m = m->after;
    ft_spool_release(k->spool, m ? m->number : ft_spool_unread_from(k->spool));
}

static void drain(struct ft_kafka *k)
{
    const uint8_t *bytes;
    uint64_t number;
    size_t len;

    if (ft_kafka_resend(k) < 0 || !k->spool || is_away(k))
        return;
    for (int i = 0; i < DRAIN_AT_ONCE; i++) {
        struct ft_kafka_kept *m;

        if (k->stats.pending >= DRAIN_MESSAGES || k->bytes >= DRAIN_BYTES ||
            ft_spool_next(k->spool, &bytes, &len, &number) < 0)
            return;
        m = ft_kafka_add(k, bytes, len, number, ft_kafka_entry_weight(bytes, len));
        if (!m) {
            ft_kafka_report(k, NULL, "no memory: a message of the spool waits for the next start");
            return;
        }
        if (ft_kafka_pass_on(k, m) == -EAGAIN)
            return;
    }
}

static void take_report(void *arg, void *message, enum ft_kafka_fate fate)
{
    struct ft_kafka *k = arg;
    struct ft_kafka_kept *m = message;

    /* What librdkafka has is of a transaction, which commits or ends with all of it. */
    if (k->transaction && fate == FT_KAFKA_DELIVERED) {
        k->progress = ft_mono_now();
        return;
    }
    if (k->transaction && ft_kafka_transaction_open(k->transaction))
        k->spoilt = true;
    if (k->transaction && fate == FT_KAFKA_FAILED && ++m->fails < FAILS_MAX)
        fate = FT_KAFKA_AGAIN;
    if (fate == FT_KAFKA_AGAIN) {
        k->unsent += m->sent;
        k->stats.again += m->sent && k->proven && !k->ending;
        m->sent = false;
        return;
    }
    k->progress = ft_mono_now();
    k->away = false;
    k->proven = true;
    switch (fate) {
    case FT_KAFKA_DELIVERED:
        k->stats.delivered++;
        k->stats.weight_delivered += m->weight;
        break;
    case FT_KAFKA_NO_TOPIC:
        k->stats.no_topic++;
        break;
    case FT_KAFKA_FORBIDDEN:
        k->stats.forbidden++;
        break;
    case FT_KAFKA_TOO_LARGE:
        k->stats.too_large++;
        break;
    default:
        k->stats.failed++;
        break;
    }
    ft_kafka_drop(k, m);
}

static void take_error(void *arg, const char *key, const char *text)
{
    ft_kafka_report(arg, key, text);
}

static void take_stats(void *arg, const char *json, size_t len)
{
    struct ft_kafka *k = arg;

    ft_kafka_stats_read(json, len, &k->client_stats);
}

static void take_turn(void *arg)
{
    struct ft_kafka *k = arg;

    if (k->transaction) {
        ft_kafka_advance(k);
        return;
    }
    drain(k);
    release(k);
}

/* After a fatal error an idempotent producer takes nothing any more; another one does. */
static void renew(struct ft_kafka *k)
{
    int64_t age_ns = ft_mono_since_ns(ft_mono_now(), k->renewed);

    if ((!ft_kafka_client_failed(k->client) && !k->broken) || age_ns < RENEW_NS || k->rival)
        return;
    k->renewed = ft_mono_now();
    if (k->transaction && ft_kafka_client_fenced(k->client) && ft_kafka_has_rival(k))
        return;
    if (k->transaction)
        ft_kafka_transaction_stop(k->transaction);
    ft_kafka_client_renew(k->client);
    /* Those that it did not report. */
    for (struct ft_kafka_kept *m = k->first; m; m = m->after)
        if (m->sent)
            take_report(k, m, FT_KAFKA_AGAIN);
    k->requested = k->requested || k->committing;
    k->proven = k->client_stats.connected = k->broken = k->committing = k->spoilt = false;
    if (k->transaction && ft_kafka_client_handle(k->client))
        ft_kafka_transaction_resume(k->transaction, ft_kafka_client_handle(k->client));
}

static void tick(void *arg)
{
    struct ft_kafka *k = arg;

    renew(k);
    if (k->spool && k->first && ft_mono_since_ns(ft_mono_now(), k->progress) >= k->spool_after_ns) {
        k->away = true;
        spool_pending(k);
    }
    take_turn(k);
}

static int open_spool(struct ft_kafka *k, const struct ft_kafka_config *config, char *error,
                      size_t error_bytes)
{
    const struct ft_spool_config spool = {.folder = config->spool,
                                          .bytes_max = config->spool_bytes_max,
                                          .entry_bytes_max = config->message_bytes_max,
                                          .keep_oldest = config->spool_keeps_oldest,
                                          .weigh = ft_kafka_entry_weight};
    struct ft_spool_stats s;

    if (!config->spool)
        return 0;
    k->spool = ft_spool_open(&spool, error, error_bytes);
    if (!k->spool)
        return -EIO;
    k->spool_folder = strdup(config->spool);
    if (!k->spool_folder) {
        snprintf(error, error_bytes, "kafka: no memory");
        return -ENOMEM;
    }
    ft_spool_stats(k->spool, &s);
    k->stats.found = s.found;
    return 0;
}

struct ft_kafka *ft_kafka_new(struct ft_loop *loop, const struct ft_kafka_config *config,
                              char *error, size_t error_bytes)
{
    struct ft_kafka *k = calloc(1, sizeof(*k));
    const struct ft_kafka_hooks hooks = {take_report, take_error, take_stats, take_turn, k};

    if (!k) {
        snprintf(error, error_bytes, "kafka: no memory");
        return NULL;
    }
    ft_writer_init(&k->entry, ENTRY_BYTES);
    k->on_error = config->on_error;
    k->arg = config->arg;
    k->prefix = config->prefix;
    k->prefix_arg = config->prefix_arg;
    k->spool_after_ns = config->spool_after_ns;
    k->renewed = ft_mono_now();
    if (open_spool(k, config, error, error_bytes) == 0)
        k->client = ft_kafka_client_new(loop, config, &hooks, error, error_bytes);
    if (!k->client) {
        ft_kafka_free(k);
        return NULL;
    }
    if (config->transactional_id)
        k->transaction = ft_kafka_transaction_new(ft_kafka_client_handle(k->client),
                                                  ft_kafka_client_wake(k->client));
    k->messages_max = config->queue_messages_max ? config->queue_messages_max : UINT64_MAX;
    k->bytes_max = config->queue_bytes_max ? config->queue_bytes_max : UINT64_MAX;
    if (config->transactional_id && !k->transaction) {
        snprintf(error, error_bytes, "kafka: no memory");
        ft_kafka_free(k);
        return NULL;
    }
    k->tick = ft_watch_stage(ft_watch_timer(loop, TICK_NS, tick, k), "publish");
    if (!k->tick) {
        snprintf(error, error_bytes, "kafka: no memory");
        ft_kafka_free(k);
        return NULL;
    }
    return k;
}

/* What stays, and where, is said once. */
static void report_rest(struct ft_kafka *k)
{
    struct ft_spool_stats s;
    uint64_t lost = 0;
    char line[512];

    for (const struct ft_kafka_kept *m = k->first; m; m = m->after)
        lost += m->number == 0;
    ft_spool_stats(k->spool, &s);
    if (s.kept > 0 || lost > 0)
        snprintf(line, sizeof(line),
                 "%" PRIu64 " messages stay in the spool '%s' for the next start, %" PRIu64
                 " did not fit and are lost",
                 s.kept, k->spool_folder, lost);
    if (s.kept > 0 || lost > 0)
        ft_kafka_report(k, "kafka.spool", line);
}

void ft_kafka_free(struct ft_kafka *k)
{
    if (!k)
        return;
    k->ending = true;
    ft_watch_free(k->tick);
    if (k->spool && k->client) {
        spool_pending(k);
        release(k);
        report_rest(k);
    }
    ft_kafka_transaction_free(k->transaction);
    ft_kafka_client_free(k->client);
    while (k->first)
        ft_kafka_drop(k, k->first);
    ft_spool_close(k->spool);
    free(k->spool_folder);
    ft_writer_free(&k->entry);
    free(k);
}

static int to_spool(struct ft_kafka *k)
{
    uint64_t number;
    struct ft_spool_stats before, after;
    int rc;

    ft_spool_stats(k->spool, &before);
    rc = ft_spool_append(k->spool, k->entry.bytes, k->entry.len, &number);
    ft_spool_stats(k->spool, &after);
    if (rc < 0) {
        k->stats.spool_newest += after.refused_newest - before.refused_newest;
        k->stats.spool_disk += after.refused_disk - before.refused_disk;
    }
    return rc;
}

int ft_kafka_send(struct ft_kafka *k, const struct ft_kafka_outgoing *message)
{
    struct ft_kafka_kept *m;
    int rc;

    k->stats.taken++;
    ft_writer_reset(&k->entry);
    rc = ft_kafka_entry_write(&k->entry, message);
    if (rc < 0) {
        k->stats.refused += rc == -EINVAL;
        k->stats.too_large += rc != -EINVAL;
        return rc == -EINVAL ? rc : -EMSGSIZE;
    }
    if (k->transaction)
        return ft_kafka_hold(k, message->weight);
    if (k->spool && (is_away(k) || k->unsent > 0 || unread(k) > 0)) {
        spool_pending(k);
        return to_spool(k);
    }
    m = k->unsent > 0 ? NULL : ft_kafka_add(k, k->entry.bytes, k->entry.len, 0, message->weight);
    if (!m) {
        k->stats.refused++;
        return -EAGAIN;
    }
    rc = ft_kafka_pass_on(k, m);
    if (rc != -EAGAIN)
        return rc;
    ft_kafka_drop(k, m);
    if (k->spool) {
        spool_pending(k);
        return to_spool(k);
    }
    k->stats.refused++;
    return rc;
}

static bool waits_for_commit(const struct ft_kafka *k)
{
    return k->requested || k->committing || k->undo;
}

int ft_kafka_flush(struct ft_kafka *k, int64_t timeout_ns)
{
    struct ft_mono start = ft_mono_now();
    int64_t left;

    do {
        int64_t ms;

        left = timeout_ns - ft_mono_since_ns(ft_mono_now(), start);
        ms = left / NS_PER_MS;
        ft_kafka_client_flush(k->client, ms > WAIT_MS ? WAIT_MS : ms > 0 ? (int)ms : 0);
        renew(k);
        take_turn(k);
    } while (left > 0 && (k->transaction ? waits_for_commit(k) : k->first || unread(k) > 0));
    if (k->transaction)
        return waits_for_commit(k) ? -ETIMEDOUT : 0;
    if (k->spool && timeout_ns > 0) {
        spool_pending(k);
        return k->first && !k->last->number ? -ETIMEDOUT : 0;
    }
    return k->first ? -ETIMEDOUT : 0;
}

void ft_kafka_stats(const struct ft_kafka *k, struct ft_kafka_stats *stats)
{
    struct ft_spool_stats s;

    *stats = k->stats;
    if (!k->spool)
        return;
    ft_spool_stats(k->spool, &s);
    stats->spooled = s.unread;
    stats->weight_spooled = s.weight_unread;
    stats->weight_found = s.weight_found;
    stats->spool_kept = s.kept;
    stats->spool_bytes = s.bytes;
    stats->spool_oldest = s.dropped_oldest;
    stats->spool_damaged += s.damaged;
}

const struct ft_kafka_client_stats *ft_kafka_client_stats(const struct ft_kafka *k)
{
    return &k->client_stats;
}

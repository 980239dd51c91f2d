// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "lib/io/kafka/errors.h"
#include "lib/io/kafka/producer_impl.h"

/* A client that is fenced twice within this time has a rival. */
#define FENCED_NS (300000 * NS_PER_MS)

/* Each message that librdkafka has is visible now. */
static void note_commit(struct ft_kafka *k)
{
    struct ft_kafka_kept *after;

    k->stats.commits++;
    k->committing = k->spoilt = false;
    for (struct ft_kafka_kept *m = k->first; m; m = after) {
        after = m->after;
        if (!m->sent)
            continue;
        k->stats.delivered++;
        k->stats.weight_delivered += m->weight;
        ft_kafka_drop(k, m);
    }
    k->proven = true;
}

/* all: also what a commit was asked for. */
static void take_back(struct ft_kafka *k, bool all, uint64_t *count)
{
    struct ft_kafka_kept *after;

    for (struct ft_kafka_kept *m = k->first; m; m = after) {
        after = m->after;
        if (!all && m->serial <= k->commit_to)
            continue;
        (*count)++;
        ft_kafka_drop(k, m);
    }
}

/* What was sent is to be sent again. */
static void note_abort(struct ft_kafka *k)
{
    k->stats.aborts++;
    k->tried = ft_mono_now();
    k->was_tried = true;
    k->requested = k->requested || k->committing;
    k->committing = k->spoilt = false;
    for (struct ft_kafka_kept *m = k->first; m; m = m->after) {
        k->unsent += m->sent;
        k->stats.again += m->sent && !k->undo;
        m->sent = false;
    }
}

static void end_undo(struct ft_kafka *k)
{
    take_back(k, k->undo_all, &k->stats.undone);
    k->requested = k->requested && !k->undo_all;
    k->undo = k->undo_all = false;
}

static bool is_any_sent(const struct ft_kafka *k)
{
    for (const struct ft_kafka_kept *m = k->first; m; m = m->after)
        if (m->sent)
            return true;
    return false;
}

static bool is_sent_until(const struct ft_kafka *k, uint64_t serial)
{
    for (const struct ft_kafka_kept *m = k->first; m && m->serial <= serial; m = m->after)
        if (!m->sent)
            return false;
    return true;
}

void ft_kafka_advance(struct ft_kafka *k)
{
    char text[512];
    int err;

    ft_kafka_client_poll(k->client);
    switch (ft_kafka_transaction_look(k->transaction, &err, text, sizeof(text))) {
    case FT_KAFKA_COMMITTED:
        note_commit(k);
        break;
    case FT_KAFKA_ABORTED:
        note_abort(k);
        break;
    case FT_KAFKA_BROKEN:
        k->broken = true;
        break;
    default:
        break;
    }
    if (err) {
        char line[640];
        const char *key = ft_kafka_advise(err, text, line, sizeof(line));

        ft_kafka_report(k, key, line);
    }
    if (!ft_kafka_transaction_open(k->transaction))
        return;
    if (k->spoilt) {
        ft_kafka_transaction_abort(k->transaction);
        return;
    }
    if (k->undo) {
        if ((k->undo_all || !k->requested) && is_any_sent(k)) {
            ft_kafka_transaction_abort(k->transaction);
            return;
        }
        end_undo(k);
    }
    ft_kafka_resend(k);
    if (k->requested && is_sent_until(k, k->commit_to) &&
        (!k->was_tried || ft_mono_since_ns(ft_mono_now(), k->tried) >= RENEW_NS)) {
        k->requested = false;
        k->committing = true;
        ft_kafka_transaction_commit(k->transaction);
    }
}

bool ft_kafka_has_rival(struct ft_kafka *k)
{
    k->rival = k->was_fenced && ft_mono_since_ns(ft_mono_now(), k->fenced) < FENCED_NS;
    k->was_fenced = true;
    k->fenced = ft_mono_now();
    if (k->rival) {
        ft_kafka_transaction_stop(k->transaction);
        take_back(k, true, &k->stats.fenced);
        ft_kafka_report(
            k, "kafka.transactions",
            "another daemon has the same source_id: nothing is published any more until this "
            "one is started again");
    }
    return k->rival;
}

/* Of a transaction that cannot be sent yet it waits. */
int ft_kafka_hold(struct ft_kafka *k, uint32_t weight)
{
    struct ft_kafka_kept *m = NULL;
    int rc;

    if (k->rival) {
        k->stats.fenced++;
        return -EAGAIN;
    }
    if (k->stats.pending < k->messages_max && k->bytes + k->entry.len <= k->bytes_max)
        m = ft_kafka_add(k, k->entry.bytes, k->entry.len, 0, weight);
    if (!m) {
        k->stats.refused++;
        return -EAGAIN;
    }
    if (k->unsent > 1 || !ft_kafka_may_send(k, m))
        return 0;
    rc = ft_kafka_pass_on(k, m);
    return rc == -EAGAIN ? 0 : rc;
}

int ft_kafka_commit(struct ft_kafka *k, const struct ft_kafka_offsets *offsets, size_t count)
{
    int rc =
        k->transaction ? ft_kafka_transaction_offsets(k->transaction, offsets, count) : -EINVAL;

    if (rc < 0)
        return rc;
    k->requested = true;
    k->commit_to = k->serial;
    ft_kafka_advance(k);
    return 0;
}

void ft_kafka_undo(struct ft_kafka *k, bool all)
{
    if (!k->transaction)
        return;
    if (all)
        ft_kafka_transaction_offsets(k->transaction, NULL, 0);
    k->undo = true;
    k->undo_all = all;
    ft_kafka_advance(k);
}

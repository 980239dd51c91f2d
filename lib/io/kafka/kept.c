// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/kafka/entry.h"
#include "lib/io/kafka/producer_impl.h"

void ft_kafka_report(struct ft_kafka *k, const char *key, const char *text)
{
    k->stats.errors++;
    if (k->on_error)
        k->on_error(k->arg, key, text);
}

struct ft_kafka_kept *ft_kafka_add(struct ft_kafka *k, const void *bytes, size_t len,
                                   uint64_t number, uint32_t weight)
{
    struct ft_kafka_kept *m = malloc(sizeof(*m) + len);

    if (!m)
        return NULL;
    *m = (struct ft_kafka_kept){.before = k->last, .number = number, .weight = weight, .len = len};
    m->serial = ++k->serial;
    memcpy(m->bytes, bytes, len);
    if (!k->first)
        k->progress = ft_mono_now();
    *(k->last ? &k->last->after : &k->first) = m;
    k->last = m;
    k->bytes += len;
    k->unsent++;
    k->stats.pending++;
    k->stats.weight_pending += weight;
    return m;
}

void ft_kafka_drop(struct ft_kafka *k, struct ft_kafka_kept *m)
{
    *(m->before ? &m->before->after : &k->first) = m->after;
    *(m->after ? &m->after->before : &k->last) = m->before;
    k->bytes -= m->len;
    k->unsent -= !m->sent;
    k->stats.pending--;
    k->stats.weight_pending -= m->weight;
    free(m);
}

/* Hands it to librdkafka. What it refuses for good is counted, and gone. */
int ft_kafka_pass_on(struct ft_kafka *k, struct ft_kafka_kept *m)
{
    struct ft_kafka_header headers[FT_KAFKA_HEADERS_MAX];
    struct ft_kafka_prefix prefix = {.len = 0};
    struct ft_kafka_outgoing out;
    int rc = ft_kafka_entry_read(m->bytes, m->len, &out, headers);

    if (rc == -EBADMSG)
        k->stats.spool_damaged++;
    else if (k->prefix)
        rc = k->prefix(k->prefix_arg, &out, &prefix);
    if (rc == 0)
        rc = ft_kafka_client_send(k->client, &out, &prefix, m);
    if (rc == 0) {
        m->sent = true;
        k->unsent--;
        return 0;
    }
    if (rc == -ESTALE)
        k->spoilt = true;
    if (rc == -EAGAIN || rc == -ESTALE)
        return -EAGAIN;
    k->stats.too_large += rc == -EMSGSIZE;
    k->stats.refused += rc == -EINVAL;
    k->stats.no_topic += rc == -ENOENT;
    k->stats.other_format += rc == -EPROTO;
    ft_kafka_drop(k, m);
    return rc;
}

bool ft_kafka_may_send(const struct ft_kafka *k, const struct ft_kafka_kept *m)
{
    return !k->transaction || (ft_kafka_transaction_open(k->transaction) && !k->undo &&
                               (!k->requested || m->serial <= k->commit_to));
}

/* What a client before this one did not deliver goes first, in its order. */
int ft_kafka_resend(struct ft_kafka *k)
{
    struct ft_kafka_kept *m = k->first, *after;

    for (; m && k->unsent > 0; m = after) {
        after = m->after;
        if (!m->sent && (!ft_kafka_may_send(k, m) || ft_kafka_pass_on(k, m) == -EAGAIN))
            return -EAGAIN;
    }
    return 0;
}

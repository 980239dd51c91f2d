// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/publish.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/record.h"

#define SINKS_MAX        16
#define RECORD_BYTES_MAX (1u << 20)

struct ft_publisher {
    struct ft_sink *sinks[SINKS_MAX];
    size_t count;
    struct ft_writer json;
    void (*tap)(void *arg, const struct ft_published *out);
    void *tap_arg;
};

static void sink_free(struct ft_sink *sink)
{
    if (!sink)
        return;
    sink->free(sink->self);
    free(sink);
}

struct ft_publisher *ft_publisher_new(void)
{
    struct ft_publisher *p = calloc(1, sizeof(*p));

    if (p)
        ft_writer_init(&p->json, RECORD_BYTES_MAX);
    return p;
}

void ft_publisher_free(struct ft_publisher *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->count; i++)
        sink_free(p->sinks[i]);
    ft_writer_free(&p->json);
    free(p);
}

int ft_publisher_take(struct ft_publisher *p, struct ft_sink *sink)
{
    if (p->count == SINKS_MAX) {
        sink_free(sink);
        return -ENOMEM;
    }
    p->sinks[p->count++] = sink;
    return 0;
}

void ft_publisher_tap(struct ft_publisher *p,
                      void (*tap)(void *arg, const struct ft_published *out), void *arg)
{
    p->tap = tap;
    p->tap_arg = arg;
}

void ft_publisher_record(void *self, const Fabrictrace__Record *record)
{
    struct ft_publisher *p = self;
    struct ft_published out = {.record = record, .schema = ft_record_schema(record->kind_case)};

    if (p->count == 0)
        return;
    ft_writer_reset(&p->json);
    /* A record that does not fit reaches each sink empty, and is counted there as failed. */
    if (ft_record_to_json(record, &p->json))
        ft_writer_reset(&p->json);
    out.json = (const char *)p->json.bytes;
    out.json_len = p->json.len;
    for (size_t i = 0; i < p->count; i++)
        p->sinks[i]->write(p->sinks[i]->self, &out);
    if (p->tap)
        p->tap(p->tap_arg, &out);
}

int ft_publisher_flush(struct ft_publisher *p, int64_t timeout_ns, const char **which)
{
    int worst = 0;

    for (size_t i = 0; i < p->count; i++) {
        int rc = p->sinks[i]->flush(p->sinks[i]->self, timeout_ns);

        if (!rc || worst)
            continue;
        worst = rc;
        *which = ft_publisher_spec(p, i);
    }
    return worst;
}

void ft_publisher_reopen(struct ft_publisher *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->sinks[i]->reopen)
            p->sinks[i]->reopen(p->sinks[i]->self);
}

size_t ft_publisher_sinks(const struct ft_publisher *p)
{
    return p->count;
}

const char *ft_publisher_sink(const struct ft_publisher *p, size_t i, struct ft_sink_stats *stats)
{
    p->sinks[i]->stats(p->sinks[i]->self, stats);
    return p->sinks[i]->name;
}

const char *ft_publisher_spec(const struct ft_publisher *p, size_t i)
{
    return p->sinks[i]->spec ? p->sinks[i]->spec : p->sinks[i]->name;
}

struct ft_kafka *ft_publisher_kafka(const struct ft_publisher *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->sinks[i]->kafka)
            return p->sinks[i]->kafka;
    return NULL;
}

const struct ft_registered *ft_publisher_registered(const struct ft_publisher *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->sinks[i]->registered)
            return p->sinks[i]->registered;
    return NULL;
}

void ft_publisher_account(const struct ft_publisher *p, struct ft_account *account)
{
    struct ft_sink_stats sink;

    for (size_t i = 0; i < ft_publisher_sinks(p); i++) {
        struct ft_account_stage *stage =
            ft_account_stage(account, ft_publisher_sink(p, i, &sink), "records");

        stage->received = sink.received;
        stage->processed = sink.processed;
        stage->pending = sink.pending;
        ft_account_drop(stage, "failed", sink.failed);
        ft_account_drop(stage, "refused", sink.refused);
        for (size_t k = 0; k < sink.drop_count; k++)
            ft_account_drop(stage, sink.drops[k].reason, sink.drops[k].count);
    }
}

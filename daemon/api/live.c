// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/live.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/io/http/http.h"

#define MESSAGE_BYTES_MAX ((size_t)1 << 20)

struct ft_live {
    struct ft_http_channel *channel;
    struct ft_writer text;
    struct ft_sink_stats stats;
};

static void send_window(struct ft_live *s, const struct ft_published *out)
{
    const Fabrictrace__Imbalance *i = out->record->imbalance;

    ft_writer_reset(&s->text);
    ft_write_fmt(&s->text,
                 "{\"window_start_ms\":%" PRIu64 ",\"window_end_ms\":%" PRIu64 ",\"imbalance\":",
                 i->window_start_ms, i->window_end_ms);
    ft_write_bytes(&s->text, out->json, out->json_len);
    ft_write_u8(&s->text, '}');
    if (ft_writer_ok(&s->text))
        ft_http_channel_send(s->channel, "window", s->text.bytes, s->text.len, true);
}

static void write_record(void *self, const struct ft_published *out)
{
    struct ft_live *s = self;
    const Fabrictrace__Record *r = out->record;
    bool window = r->kind_case == FABRICTRACE__RECORD__KIND_IMBALANCE &&
                  r->imbalance->scope == FABRICTRACE__SCOPE__SCOPE_FABRIC;

    if (!s->channel || (!window && r->kind_case != FABRICTRACE__RECORD__KIND_EVENT))
        return;
    s->stats.received++;
    if (!out->json_len) {
        s->stats.failed++;
        return;
    }
    s->stats.processed++;
    if (window)
        send_window(s, out);
    else
        ft_http_channel_send(s->channel, "event", out->json, out->json_len, false);
}

static int flush(void *self, int64_t timeout_ns)
{
    (void)self;
    (void)timeout_ns;
    return 0;
}

static void stats(void *self, struct ft_sink_stats *out)
{
    *out = ((struct ft_live *)self)->stats;
}

static void free_live(void *self)
{
    struct ft_live *s = self;

    ft_writer_free(&s->text);
    free(s);
}

struct ft_sink *ft_live_new(struct ft_live **live)
{
    struct ft_live *s = calloc(1, sizeof(*s));
    struct ft_sink *sink = calloc(1, sizeof(*sink));

    if (!s || !sink) {
        free(s);
        free(sink);
        return NULL;
    }
    ft_writer_init(&s->text, MESSAGE_BYTES_MAX);
    *sink = (struct ft_sink){.name = "stream",
                             .write = write_record,
                             .flush = flush,
                             .stats = stats,
                             .free = free_live,
                             .self = s};
    *live = s;
    return sink;
}

void ft_live_to(struct ft_live *s, struct ft_http_channel *channel)
{
    s->channel = channel;
}

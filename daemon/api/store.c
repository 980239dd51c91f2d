// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/store.h"

#include <stdlib.h>
#include <string.h>

#include "proto/record.h"

/* Records lie one behind the other, each as: kind (1), then key, group and JSON, each ended by NUL.
 */
struct ft_store {
    struct ft_writer halves[2];
    unsigned filling;
    struct ft_sink_stats stats;
};

static void keep(struct ft_store *s, enum ft_store_kind kind, const char *group,
                 const struct ft_published *out)
{
    struct ft_writer *w = &s->halves[s->filling];
    size_t before = w->len;
    char key[FT_RECORD_KEY_BYTES];

    ft_record_key(out->record, key);
    ft_write_u8(w, (uint8_t)kind);
    ft_write_bytes(w, key, strlen(key) + 1);
    ft_write_bytes(w, group, strlen(group) + 1);
    ft_write_bytes(w, out->json, out->json_len);
    ft_write_u8(w, 0);
    if (ft_writer_ok(w)) {
        s->stats.processed++;
        return;
    }
    /* Too large: what is whole stays. */
    w->failed = false;
    w->len = before;
    s->stats.failed++;
}

static void write_record(void *self, const struct ft_published *out)
{
    struct ft_store *s = self;
    const Fabrictrace__Record *r = out->record;

    if (r->kind_case == FABRICTRACE__RECORD__KIND_LINK) {
        s->stats.received++;
        keep(s, FT_STORE_LINK, r->link->group ? r->link->group : "", out);
    } else if (r->kind_case == FABRICTRACE__RECORD__KIND_IMBALANCE) {
        s->stats.received++;
        keep(s, FT_STORE_IMBALANCE, "", out);
        if (r->imbalance->scope == FABRICTRACE__SCOPE__SCOPE_FABRIC) {
            s->filling = !s->filling;
            ft_writer_reset(&s->halves[s->filling]);
        }
    }
}

static int flush(void *self, int64_t timeout_ns)
{
    (void)self;
    (void)timeout_ns;
    return 0;
}

static void stats(void *self, struct ft_sink_stats *out)
{
    *out = ((struct ft_store *)self)->stats;
}

static void free_store(void *self)
{
    struct ft_store *s = self;

    ft_writer_free(&s->halves[0]);
    ft_writer_free(&s->halves[1]);
    free(s);
}

struct ft_sink *ft_store_new(size_t bytes_max, struct ft_store **store)
{
    struct ft_store *s = calloc(1, sizeof(*s));
    struct ft_sink *sink = calloc(1, sizeof(*sink));

    if (!s || !sink) {
        free(s);
        free(sink);
        return NULL;
    }
    ft_writer_init(&s->halves[0], bytes_max);
    ft_writer_init(&s->halves[1], bytes_max);
    *sink = (struct ft_sink){.name = "http",
                             .write = write_record,
                             .flush = flush,
                             .stats = stats,
                             .free = free_store,
                             .self = s};
    *store = s;
    return sink;
}

void ft_store_each(const struct ft_store *s, enum ft_store_kind kind,
                   void (*each)(void *arg, const char *key, const char *group, const char *json,
                                size_t len),
                   void *arg)
{
    const struct ft_writer *w = &s->halves[!s->filling];
    const char *at = (const char *)w->bytes;
    const char *end = at + w->len;

    while (at && at < end) {
        enum ft_store_kind this_kind = (enum ft_store_kind) * at;
        const char *key = at + 1;
        const char *group = key + strlen(key) + 1;
        const char *json = group + strlen(group) + 1;
        size_t len = strlen(json);

        if (this_kind == kind)
            each(arg, key, group, json, len);
        at = json + len + 1;
    }
}

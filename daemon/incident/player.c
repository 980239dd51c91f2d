// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/incident/player.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/incident/entry.h"
#include "daemon/pipeline/arrivals.h"
#include "lib/base/grow.h"
#include "lib/base/sum.h"
#include "lib/files/topology_file.h"
#include "proto/batch.h"

/* Names of stages and reasons: some dozens. */
#define NAMES_MAX 1024

struct ft_player {
    struct ft_pipeline *pipeline;
    const char *fabric;
    struct ft_batch *batch;
    uint8_t *payload;
    struct ft_account next, last; /* stages: those to come of this advance; the last ones */
    struct ft_reader ahead;       /* at the stages to come */
    char **names;
    size_t name_count, name_size;
    /* Of the slice. */
    struct ft_entry slice;
    uint64_t number, refused;
    uint64_t published, digest;
    bool begun;
    struct ft_player_stats stats;
};

struct ft_player *ft_player_new(struct ft_pipeline *pipeline, const char *fabric)
{
    struct ft_player *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->pipeline = pipeline;
    p->fabric = fabric;
    return p;
}

static void drop_batch(struct ft_player *p)
{
    ft_batch_free(p->batch);
    free(p->payload);
    p->batch = NULL;
    p->payload = NULL;
}

void ft_player_free(struct ft_player *p)
{
    if (!p)
        return;
    drop_batch(p);
    for (size_t i = 0; i < p->name_count; i++)
        free(p->names[i]);
    free(p->names);
    free(p);
}

/* Accounts borrow their names for good. */
static const char *keep_name(void *arg, const char *text, size_t len)
{
    struct ft_player *p = arg;
    char **grown;

    for (size_t i = 0; i < p->name_count; i++)
        if (strlen(p->names[i]) == len && memcmp(p->names[i], text, len) == 0)
            return p->names[i];
    if (p->name_count == NAMES_MAX || memchr(text, 0, len))
        return NULL;
    grown = ft_grow(p->names, p->name_count, &p->name_size, sizeof(*grown));
    if (!grown)
        return NULL;
    p->names = grown;
    p->names[p->name_count] = strndup(text, len);
    return p->names[p->name_count] ? p->names[p->name_count++] : NULL;
}

/* The account asks as often as it did then. */
static void next_stages(struct ft_player *p)
{
    struct ft_entry entry;
    struct ft_reader r = p->ahead;
    int64_t now_ms = 0;

    if (!ft_entry_read(&r, &now_ms, &entry) || entry.kind != FT_ENTRY_STAGES)
        return;
    if (!ft_entry_read_stages(&entry, &p->next, keep_name, p))
        return;
    p->last = p->next;
    p->ahead = r;
}

void ft_player_account(void *arg, struct ft_account *account)
{
    struct ft_player *p = arg;

    if (p->ahead.pos)
        next_stages(p);
    for (size_t i = 0; i < p->last.stage_count && account->stage_count < FT_ACCOUNT_STAGES; i++)
        account->stages[account->stage_count++] = p->last.stages[i];
}

void ft_player_published(void *arg, const struct ft_published *out)
{
    struct ft_player *p = arg;

    p->published++;
    p->stats.published++;
    p->digest = ft_sum64(p->digest, out->json, out->json_len);
}

struct ft_topology *ft_player_topology(const char *text, size_t len, const char *fabric,
                                       struct ft_diag *diag)
{
    struct ft_topology *t;
    struct ft_yaml *root;

    if (len == 0)
        return ft_topology_file_none(fabric, diag);
    root = ft_yaml_parse(text, len, "topology", diag);
    t = root ? ft_topology_file_read(root, diag) : NULL;
    ft_yaml_free(root);
    return t;
}

static int play_topology(struct ft_player *p, const struct ft_entry *entry)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *t =
        diag ? ft_player_topology((const char *)entry->bytes, entry->len, p->fabric, diag) : NULL;
    int rc = !diag ? -ENOMEM : !t ? -EBADMSG : ft_pipeline_set_topology(p->pipeline, t);

    if (t && rc)
        ft_topology_free(t);
    ft_diag_free(diag);
    return rc;
}

static int play_batch(struct ft_player *p, const struct ft_entry *entry)
{
    drop_batch(p);
    p->payload = malloc(entry->len ? entry->len : 1);
    p->batch = p->payload ? ft_batch_new(entry->len) : NULL;
    if (!p->batch)
        return -ENOMEM;
    if (entry->len)
        memcpy(p->payload, entry->bytes, entry->len);
    p->stats.batches++;
    return 0;
}

/* True when the next record of the slice was refused then. */
static bool is_refused(struct ft_player *p)
{
    if (++p->number != p->refused)
        return false;
    ft_pipeline_refuse(p->pipeline);
    if (!ft_entry_refused(&p->slice, &p->refused))
        p->refused = 0;
    return true;
}

static void apply_record(void *arg, const Fabrictrace__Record *record)
{
    struct ft_player *p = arg;

    if (!is_refused(p))
        ft_pipeline_record(p->pipeline, record, p->slice.now_ms);
}

static void apply_observed(void *arg, const struct ft_observed *o)
{
    struct ft_player *p = arg;

    if (!is_refused(p))
        ft_pipeline_observed(p->pipeline, o, p->slice.now_ms);
}

static int play_slice(struct ft_player *p, const struct ft_entry *entry)
{
    const struct ft_batch_sink sink = {apply_record, apply_observed, p};
    int rc = 1;

    if (!p->batch)
        return -EBADMSG;
    p->slice = *entry;
    p->number = p->refused = 0;
    if (!ft_entry_refused(&p->slice, &p->refused))
        p->refused = 0;
    for (uint64_t i = 0; i < entry->steps && rc > 0; i++)
        rc = ft_batch_step(p->batch, p->payload, FT_ARRIVALS_STEP, &sink);
    if (rc == 0)
        ft_pipeline_unknown(p->pipeline, ft_batch_unknown(p->batch));
    if (rc <= 0)
        drop_batch(p);
    ft_pipeline_flush(p->pipeline);
    return rc == -ENOMEM ? rc : 0;
}

static void compare(struct ft_player *p, const struct ft_entry *entry)
{
    p->stats.compared++;
    p->stats.differ += p->published != entry->records || p->digest != entry->digest;
    p->published = p->digest = 0;
}

static int play(struct ft_player *p, struct ft_reader *r, const struct ft_entry *entry)
{
    switch (entry->kind) {
    case FT_ENTRY_BATCH:
        return play_batch(p, entry);
    case FT_ENTRY_SLICE:
        return play_slice(p, entry);
    case FT_ENTRY_ADVANCE:
        p->ahead = *r;
        ft_pipeline_advance(p->pipeline, entry->now_ms, (uint32_t)entry->items);
        p->ahead.pos = NULL;
        return 0;
    case FT_ENTRY_STAGES:
        /* Of the advance before; the last one also for whoever asks now. */
        return ft_entry_read_stages((struct ft_entry *)(uintptr_t)entry, &p->last, keep_name, p)
                   ? 0
                   : -EBADMSG;
    case FT_ENTRY_TOPOLOGY:
        return play_topology(p, entry);
    case FT_ENTRY_PUBLISHED:
        compare(p, entry);
        return 0;
    case FT_ENTRY_GAP:
        ft_pipeline_gap(p->pipeline);
        return 0;
    }
    return -EBADMSG;
}

int ft_player_section(struct ft_player *p, const uint8_t *bytes, size_t len, size_t *offset)
{
    struct ft_entry entry;
    struct ft_reader r;
    int64_t now_ms;
    int rc = 0;

    ft_reader_init(&r, bytes, len);
    *offset = 0;
    now_ms = (int64_t)ft_read_be64(&r);
    if (!ft_reader_ok(&r) || now_ms < 0 || now_ms > FT_ENTRY_TIME_MAX)
        return -EBADMSG;
    if (!p->begun) {
        p->begun = true;
        p->stats.from_ms = now_ms;
        ft_pipeline_begin(p->pipeline, now_ms);
    }
    while (rc == 0 && ft_reader_left(&r)) {
        *offset = len - ft_reader_left(&r);
        rc = ft_entry_read(&r, &now_ms, &entry) ? play(p, &r, &entry) : -EBADMSG;
    }
    p->stats.to_ms = now_ms;
    return rc;
}

void ft_player_stats(const struct ft_player *p, struct ft_player_stats *stats)
{
    *stats = p->stats;
}

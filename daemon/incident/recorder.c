// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/incident/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/incident/entry.h"
#include "lib/base/grow.h"
#include "lib/base/sum.h"
#include "lib/io/disk/incident.h"

/* A segment is sealed at this size, or age: some milliseconds to pack, and little that is kept too
 * long. */
#define SEGMENT_BYTES ((size_t)1 << 20)
#define SEGMENT_MS    10000
#define SEGMENT_PART  8 /* of what is kept, at most */
/* A quarter: what a copy that is in progress may need longer. */
#define COPY_PART    4
#define TOPOLOGY_MAX ((size_t)4 << 20)
#define PART_BYTES   16384

struct text {
    unsigned users;
    size_t len;
    char bytes[];
};

struct segment {
    struct text *topology; /* at its beginning */
    int64_t first_ms, last_ms;
    uint8_t *section;
    size_t len;
};

struct ft_recorder {
    struct ft_recorder_config config;
    struct segment *list;
    size_t count, size;
    uint64_t first; /* number of the first in the list */
    size_t bytes;   /* of sections */
    /* The segment in hand. */
    struct ft_writer w;
    struct text *topology, *topology_now; /* at its beginning; since */
    int64_t begun_ms, now_ms;
    bool inside; /* a batch, of which no segment can begin */
    bool failed; /* it is incomplete: it is not to be kept */
    uint64_t *refused;
    size_t refused_count, refused_size;
    uint64_t published, digest;
    unsigned holders;
    struct ft_recorder_stats stats;
};

static struct text *text_new(const char *bytes, size_t len)
{
    struct text *t = malloc(sizeof(*t) + len);

    if (!t)
        return NULL;
    t->users = 1;
    t->len = len;
    if (len)
        memcpy(t->bytes, bytes, len);
    return t;
}

static struct text *text_use(struct text *t)
{
    if (t)
        t->users++;
    return t;
}

static void text_drop(struct text *t)
{
    if (t && --t->users == 0)
        free(t);
}

struct ft_recorder *ft_recorder_new(const struct ft_recorder_config *config)
{
    struct ft_recorder *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->config = *config;
    ft_writer_init(&r->w, FT_INCIDENT_SECTION_BYTES_MAX);
    return r;
}

static void drop_oldest(struct ft_recorder *r)
{
    struct segment *s = &r->list[0];

    r->bytes -= s->len;
    text_drop(s->topology);
    free(s->section);
    r->count--;
    r->first++;
    memmove(r->list, r->list + 1, r->count * sizeof(*r->list));
}

void ft_recorder_free(struct ft_recorder *r)
{
    if (!r)
        return;
    while (r->count)
        drop_oldest(r);
    text_drop(r->topology);
    text_drop(r->topology_now);
    ft_writer_free(&r->w);
    free(r->refused);
    free(r->list);
    free(r);
}

static void begin_segment(struct ft_recorder *r, int64_t now_ms)
{
    ft_writer_reset(&r->w);
    text_drop(r->topology);
    r->topology = text_use(r->topology_now);
    r->begun_ms = r->now_ms = now_ms;
    r->failed = !r->topology;
    ft_write_be64(&r->w, (uint64_t)now_ms);
}

static size_t bytes_max(const struct ft_recorder *r)
{
    return r->config.bytes_max + (r->holders ? r->config.bytes_max / COPY_PART : 0);
}

/* While somebody copies only bytes count: a copy begins with what is about to be too old. */
static void make_room(struct ft_recorder *r, int64_t now_ms)
{
    while (!r->holders && r->count && r->list[0].last_ms < now_ms - r->config.keep_ms)
        drop_oldest(r);
    while (r->count && r->bytes + r->w.size > bytes_max(r)) {
        drop_oldest(r);
        r->stats.dropped++;
    }
}

/* Without memory a replay could not go over what is missing: all before goes too. */
static void lose(struct ft_recorder *r)
{
    while (r->count)
        drop_oldest(r);
    r->first++;
    r->stats.lost++;
}

static int keep_segment(struct ft_recorder *r)
{
    struct segment *grown = ft_grow(r->list, r->count, &r->size, sizeof(*r->list));
    struct ft_writer section;
    uint8_t *exact;

    if (!grown)
        return -ENOMEM;
    r->list = grown;
    ft_writer_init(&section, 2 * FT_INCIDENT_SECTION_BYTES_MAX);
    if (ft_incident_section(&section, FT_INCIDENT_RECORDS, r->w.bytes, r->w.len)) {
        ft_writer_free(&section);
        return -ENOMEM;
    }
    exact = realloc(section.bytes, section.len);
    r->list[r->count++] = (struct segment){.topology = text_use(r->topology),
                                           .first_ms = r->begun_ms,
                                           .last_ms = r->now_ms,
                                           .section = exact ? exact : section.bytes,
                                           .len = section.len};
    r->bytes += section.len;
    return 0;
}

static void put_published(struct ft_recorder *r, struct ft_writer *w)
{
    if (r->published)
        ft_entry_published(w, r->published, r->digest);
}

static int64_t segment_ms(const struct ft_recorder *r)
{
    int64_t part = r->config.keep_ms / SEGMENT_PART;

    return part < SEGMENT_MS ? part : SEGMENT_MS;
}

/* Begins another segment where this one is large or old enough. */
static void rotate(struct ft_recorder *r, int64_t now_ms)
{
    if (r->inside || (!r->failed && ft_writer_ok(&r->w) && r->w.len < SEGMENT_BYTES &&
                      now_ms - r->begun_ms < segment_ms(r) && now_ms >= r->begun_ms))
        return;
    put_published(r, &r->w);
    r->published = r->digest = 0;
    if (r->failed || !ft_writer_ok(&r->w) || keep_segment(r))
        lose(r);
    make_room(r, now_ms);
    begin_segment(r, now_ms);
}

/* NULL: it cannot be read, or is too large for a section of entries. */
static struct text *read_topology(const char *file)
{
    FILE *in = file ? fopen(file, "re") : NULL;
    char part[PART_BYTES];
    struct text *text = NULL;
    struct ft_writer bytes;
    size_t n;

    if (file && !in)
        return NULL;
    ft_writer_init(&bytes, TOPOLOGY_MAX);
    while (in && (n = fread(part, 1, sizeof(part), in)) > 0)
        ft_write_bytes(&bytes, part, n);
    if (ft_writer_ok(&bytes))
        text = text_new((const char *)bytes.bytes, bytes.len);
    ft_writer_free(&bytes);
    if (in)
        fclose(in);
    return text;
}

void ft_recorder_begin(struct ft_recorder *r, const char *topology, int64_t now_ms)
{
    r->topology_now = read_topology(topology);
    begin_segment(r, now_ms);
}

void ft_recorder_topology(struct ft_recorder *r, const char *file)
{
    text_drop(r->topology_now);
    r->topology_now = read_topology(file);
    if (r->topology_now)
        ft_entry_topology(&r->w, r->topology_now->bytes, r->topology_now->len);
    else
        r->failed = true;
}

void ft_recorder_batch(void *recorder, const void *payload, size_t len)
{
    struct ft_recorder *r = recorder;
    rotate(r, r->now_ms);
    r->inside = true;
    r->refused_count = 0;
    ft_entry_batch(&r->w, payload, len);
}

void ft_recorder_refused(void *recorder, uint64_t number)
{
    struct ft_recorder *r = recorder;
    uint64_t *grown = ft_grow(r->refused, r->refused_count, &r->refused_size, sizeof(*grown));

    if (!grown) {
        r->failed = true;
        return;
    }
    r->refused = grown;
    r->refused[r->refused_count++] = number;
}

void ft_recorder_slice(void *recorder, int64_t now_ms, uint64_t steps, bool ended)
{
    struct ft_recorder *r = recorder;
    ft_entry_slice(&r->w, &r->now_ms, now_ms, steps, r->refused, r->refused_count);
    r->refused_count = 0;
    r->inside = !ended;
}

void ft_recorder_advance(struct ft_recorder *r, int64_t now_ms, uint32_t items)
{
    rotate(r, now_ms);
    put_published(r, &r->w);
    r->published = r->digest = 0;
    ft_entry_advance(&r->w, &r->now_ms, now_ms, items);
}

void ft_recorder_gap(struct ft_recorder *r)
{
    ft_entry_gap(&r->w);
}

void ft_recorder_stages(struct ft_recorder *r, const struct ft_account_stage *stages, size_t count)
{
    ft_entry_stages(&r->w, stages, count);
}

void ft_recorder_published(void *self, const struct ft_published *out)
{
    struct ft_recorder *r = self;

    r->published++;
    r->digest = ft_sum64(r->digest, out->json, out->json_len);
}

void ft_recorder_stats(const struct ft_recorder *r, struct ft_recorder_stats *stats)
{
    *stats = r->stats;
    stats->segments = r->count;
    stats->bytes = r->bytes + r->w.size;
    stats->from_ms = r->count ? r->list[0].first_ms : r->begun_ms;
}

/* What is in hand, as the last section. */
static int put_rest(struct ft_recorder *r, const struct ft_account *now, struct ft_writer *w)
{
    struct ft_writer rest;
    int rc;

    ft_writer_init(&rest, FT_INCIDENT_SECTION_BYTES_MAX);
    ft_write_bytes(&rest, r->w.bytes, r->w.len);
    put_published(r, &rest);
    ft_entry_stages(&rest, now->stages, now->stage_count);
    rc = ft_writer_ok(&rest) ? ft_incident_section(w, FT_INCIDENT_RECORDS, rest.bytes, rest.len)
                             : -ENOMEM;
    ft_writer_free(&rest);
    return rc;
}

bool ft_recorder_hold(struct ft_recorder *r, int64_t from_ms, const struct ft_account *now,
                      struct ft_recording *out, struct ft_writer *w)
{
    const struct text *topology = r->topology;
    size_t i = 0;

    if (r->failed || !ft_writer_ok(&r->w) || put_rest(r, now, w))
        return false;
    while (i < r->count && r->list[i].last_ms < from_ms)
        i++;
    if (i < r->count)
        topology = r->list[i].topology;
    *out = (struct ft_recording){
        .next = r->first + i,
        .end = r->first + r->count,
        .from_start = r->first + i == 0,
        .from_ms = i < r->count ? r->list[i].first_ms : r->begun_ms,
        .to_ms = r->now_ms,
        .topology = topology->bytes,
        .topology_len = topology->len,
    };
    r->holders++;
    return true;
}

void ft_recorder_release(struct ft_recorder *r)
{
    r->holders--;
}

int ft_recorder_copy(const struct ft_recorder *r, struct ft_recording *recording,
                     const uint8_t **bytes, size_t *len)
{
    const struct segment *s;

    if (recording->next >= recording->end)
        return 0;
    if (recording->next < r->first)
        return -ESTALE;
    s = &r->list[recording->next++ - r->first];
    *bytes = s->section;
    *len = s->len;
    return 1;
}

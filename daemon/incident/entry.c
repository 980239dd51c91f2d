// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/incident/entry.h"

#include <string.h>

#define VARINT_BITS 7
#define VARINT_MORE 0x80
#define VARINT_LAST 63 /* the shift of the last bit */
#define TEXT_MAX    255

static void write_number(struct ft_writer *w, uint64_t v)
{
    while (v >= VARINT_MORE) {
        ft_write_u8(w, (uint8_t)(v | VARINT_MORE));
        v >>= VARINT_BITS;
    }
    ft_write_u8(w, (uint8_t)v);
}

static uint64_t read_number(struct ft_reader *r)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift <= VARINT_LAST; shift += VARINT_BITS) {
        uint8_t byte = ft_read_u8(r);

        v |= (uint64_t)(byte & ~VARINT_MORE) << shift;
        if (!(byte & VARINT_MORE))
            return v;
    }
    r->failed = true;
    return 0;
}

static void write_time(struct ft_writer *w, int64_t *now_ms, int64_t at_ms)
{
    int64_t apart = at_ms - *now_ms;

    write_number(w, apart < 0 ? (uint64_t)-apart * 2 - 1 : (uint64_t)apart * 2);
    *now_ms = at_ms;
}

static int64_t read_time(struct ft_reader *r, int64_t *now_ms)
{
    uint64_t v = read_number(r);
    int64_t apart = (int64_t)(v / 2);

    if (v / 2 > FT_ENTRY_TIME_MAX)
        r->failed = true;
    else
        *now_ms += v & 1 ? -apart - 1 : apart;
    if (*now_ms < 0 || *now_ms > FT_ENTRY_TIME_MAX) {
        *now_ms = 0;
        r->failed = true;
    }
    return *now_ms;
}

static void write_text(struct ft_writer *w, const char *text)
{
    size_t len = text ? strnlen(text, TEXT_MAX) : 0;

    ft_write_u8(w, (uint8_t)len);
    ft_write_bytes(w, text, len);
}

static void write_block(struct ft_writer *w, enum ft_entry_kind kind, const void *bytes, size_t len)
{
    ft_write_u8(w, (uint8_t)kind);
    write_number(w, len);
    ft_write_bytes(w, bytes, len);
}

void ft_entry_batch(struct ft_writer *w, const void *bytes, size_t len)
{
    write_block(w, FT_ENTRY_BATCH, bytes, len);
}

void ft_entry_topology(struct ft_writer *w, const char *text, size_t len)
{
    write_block(w, FT_ENTRY_TOPOLOGY, text, len);
}

void ft_entry_slice(struct ft_writer *w, int64_t *now_ms, int64_t at_ms, uint64_t steps,
                    const uint64_t *refused, size_t count)
{
    uint64_t before = 0;

    ft_write_u8(w, FT_ENTRY_SLICE);
    write_time(w, now_ms, at_ms);
    write_number(w, steps);
    for (size_t i = 0; i < count; i++) {
        write_number(w, refused[i] - before);
        before = refused[i];
    }
    write_number(w, 0);
}

void ft_entry_advance(struct ft_writer *w, int64_t *now_ms, int64_t at_ms, uint64_t items)
{
    ft_write_u8(w, FT_ENTRY_ADVANCE);
    write_time(w, now_ms, at_ms);
    write_number(w, items);
}

void ft_entry_stages(struct ft_writer *w, const struct ft_account_stage *stages, size_t count)
{
    ft_write_u8(w, FT_ENTRY_STAGES);
    write_number(w, count);
    for (size_t i = 0; i < count; i++) {
        const struct ft_account_stage *s = &stages[i];

        write_text(w, s->name);
        write_text(w, s->unit);
        write_number(w, s->received);
        write_number(w, s->processed);
        write_number(w, s->pending);
        write_number(w, s->drop_count);
        for (size_t d = 0; d < s->drop_count; d++) {
            write_text(w, s->drops[d].reason);
            write_number(w, s->drops[d].count);
        }
    }
}

void ft_entry_published(struct ft_writer *w, uint64_t records, uint64_t digest)
{
    ft_write_u8(w, FT_ENTRY_PUBLISHED);
    write_number(w, records);
    ft_write_be64(w, digest);
}

void ft_entry_gap(struct ft_writer *w)
{
    ft_write_u8(w, FT_ENTRY_GAP);
}

static void skip_text(struct ft_reader *r)
{
    ft_read_skip(r, ft_read_u8(r));
}

static void skip_stages(struct ft_reader *r)
{
    uint64_t count = read_number(r);

    if (count > FT_ACCOUNT_STAGES)
        r->failed = true;
    for (uint64_t i = 0; i < count && ft_reader_ok(r); i++) {
        uint64_t drops;

        skip_text(r);
        skip_text(r);
        for (int n = 0; n < 3; n++)
            read_number(r);
        drops = read_number(r);
        if (drops > FT_ACCOUNT_DROPS)
            r->failed = true;
        for (uint64_t d = 0; d < drops && ft_reader_ok(r); d++) {
            skip_text(r);
            read_number(r);
        }
    }
}

static void skip_refused(struct ft_reader *r)
{
    while (ft_reader_ok(r) && read_number(r))
        ;
}

/* What skip() passes, as a reader of its own. */
static void read_list(struct ft_reader *r, void (*skip)(struct ft_reader *r),
                      struct ft_reader *list)
{
    const uint8_t *start = r->pos;

    skip(r);
    ft_reader_init(list, start, ft_reader_ok(r) ? (size_t)(r->pos - start) : 0);
}

bool ft_entry_read(struct ft_reader *r, int64_t *now_ms, struct ft_entry *out)
{
    *out = (struct ft_entry){.kind = (enum ft_entry_kind)ft_read_u8(r)};
    switch (out->kind) {
    case FT_ENTRY_BATCH:
    case FT_ENTRY_TOPOLOGY:
        out->len = read_number(r);
        out->bytes = ft_read_bytes(r, out->len);
        break;
    case FT_ENTRY_SLICE:
        out->now_ms = read_time(r, now_ms);
        out->steps = read_number(r);
        read_list(r, skip_refused, &out->list);
        break;
    case FT_ENTRY_ADVANCE:
        out->now_ms = read_time(r, now_ms);
        out->items = read_number(r);
        break;
    case FT_ENTRY_STAGES:
        read_list(r, skip_stages, &out->list);
        break;
    case FT_ENTRY_PUBLISHED:
        out->records = read_number(r);
        out->digest = ft_read_be64(r);
        break;
    case FT_ENTRY_GAP:
        break;
    default:
        return false;
    }
    return ft_reader_ok(r);
}

bool ft_entry_refused(struct ft_entry *entry, uint64_t *number)
{
    uint64_t apart = read_number(&entry->list);

    if (!apart || !ft_reader_ok(&entry->list))
        return false;
    *number += apart;
    return true;
}

static const char *read_text(struct ft_reader *r,
                             const char *(*keep)(void *arg, const char *text, size_t len),
                             void *arg)
{
    size_t len = ft_read_u8(r);
    const uint8_t *bytes = ft_read_bytes(r, len);

    return bytes ? keep(arg, (const char *)bytes, len) : NULL;
}

static bool read_stage(struct ft_reader *r, struct ft_account *out,
                       const char *(*keep)(void *arg, const char *text, size_t len), void *arg)
{
    const char *name = read_text(r, keep, arg), *unit = read_text(r, keep, arg);
    struct ft_account_stage *stage = name && unit ? ft_account_stage(out, name, unit) : NULL;
    uint64_t drops;

    if (!stage)
        return false;
    stage->received = read_number(r);
    stage->processed = read_number(r);
    stage->pending = read_number(r);
    drops = read_number(r);
    for (uint64_t d = 0; d < drops && ft_reader_ok(r); d++) {
        const char *reason = read_text(r, keep, arg);

        if (!reason)
            return false;
        ft_account_drop(stage, reason, read_number(r));
    }
    return ft_reader_ok(r);
}

bool ft_entry_read_stages(struct ft_entry *entry, struct ft_account *out,
                          const char *(*keep)(void *arg, const char *text, size_t len), void *arg)
{
    uint64_t count = read_number(&entry->list);

    out->stage_count = 0;
    for (uint64_t i = 0; i < count; i++)
        if (!read_stage(&entry->list, out, keep, arg))
            return false;
    return ft_reader_ok(&entry->list);
}

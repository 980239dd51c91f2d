// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/http/rendering.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/http/http_impl.h"

#define ONE_SHARE 16 /* of the bytes of all answers may one keep, */
#define ALL_SHARE 4  /* and all of them */

struct ft_http_part {
    STAILQ_ENTRY(ft_http_part) next;
    unsigned holders; /* the list, and buffers that go out */
    unsigned readers; /* whose last one it is */
    bool counted;     /* its bytes, as kept */
    size_t len;
    uint8_t bytes[];
};

struct ft_http_rendering {
    LIST_ENTRY(ft_http_rendering) next;
    struct ft_http *http;
    char *path, *query; /* "": none */
    uint64_t epoch;
    char tag[FT_HTTP_TAG_BYTES];
    struct ft_http_slices slices; /* more NULL: all is made, or nothing more can be */
    bool packed, failed;
    bool open; /* others may join: no part is gone */
    struct ft_gzip *gzip;
    STAILQ_HEAD(, ft_http_part) parts;
    size_t kept;             /* bytes of them */
    unsigned readers, fresh; /* those that nothing was sent to */
};

static void unhold(struct ft_http_part *part)
{
    if (--part->holders == 0)
        free(part);
}

static void on_sent(const void *bytes, size_t len, void *part)
{
    (void)bytes;
    (void)len;
    unhold(part);
}

static void uncount(struct ft_http_rendering *r, struct ft_http_part *part)
{
    if (!part->counted)
        return;
    part->counted = false;
    r->kept -= part->len;
    r->http->kept -= part->len;
    r->http->room.held -= part->len;
}

static void drop_first(struct ft_http_rendering *r)
{
    struct ft_http_part *part = STAILQ_FIRST(&r->parts);

    STAILQ_REMOVE_HEAD(&r->parts, next);
    uncount(r, part);
    unhold(part);
}

/* Parts that all have sent go; the last stays as a mark of where they are. */
static void drop_sent(struct ft_http_rendering *r)
{
    struct ft_http_part *part;

    if (r->open || r->fresh)
        return;
    while ((part = STAILQ_FIRST(&r->parts)) && part->readers == 0 && STAILQ_NEXT(part, next))
        drop_first(r);
    if (part && part->readers == r->readers)
        uncount(r, part);
}

static void end_slices(struct ft_http_rendering *r)
{
    if (!r->slices.more)
        return;
    r->http->room.held -= r->slices.bytes;
    r->slices.free(r->slices.arg);
    r->slices.more = NULL;
}

static void rendering_free(struct ft_http_rendering *r)
{
    LIST_REMOVE(r, next);
    end_slices(r);
    while (!STAILQ_EMPTY(&r->parts))
        drop_first(r);
    ft_gzip_free(r->gzip);
    free(r->path);
    free(r->query);
    free(r);
}

static uint64_t epoch_of(const struct ft_http *http)
{
    return http->epoch ? http->epoch(http->epoch_arg) : 0;
}

/* Frees those that nobody reads and nobody will. */
static void drop_old(struct ft_http *http, bool all)
{
    uint64_t epoch = all ? 0 : epoch_of(http);
    struct ft_http_rendering *r, *after;

    for (r = LIST_FIRST(&http->renderings); r; r = after) {
        after = LIST_NEXT(r, next);
        if (r->readers == 0 && (all || r->epoch != epoch))
            rendering_free(r);
    }
}

void ft_http_renderings_drop(struct ft_http *http)
{
    drop_old(http, true);
}

struct ft_http_rendering *ft_http_rendering_new(struct ft_http *http,
                                                const struct ft_http_asked *asked, const char *tag,
                                                bool packed, const struct ft_http_slices *slices)
{
    struct ft_http_rendering *r = calloc(1, sizeof(*r));

    if (!r) {
        slices->free(slices->arg);
        return NULL;
    }
    r->http = http;
    r->slices = *slices;
    r->packed = packed;
    STAILQ_INIT(&r->parts);
    LIST_INSERT_HEAD(&http->renderings, r, next);
    http->room.held += slices->bytes;
    snprintf(r->tag, sizeof(r->tag), "%s", tag ? tag : "");
    r->epoch = epoch_of(http);
    r->gzip = packed ? ft_gzip_new() : NULL;
    r->path = asked ? strdup(asked->path) : NULL;
    r->query = asked ? strdup(asked->query ? asked->query : "") : NULL;
    r->open = http->epoch && r->path && r->query;
    if ((packed && !r->gzip) || (asked && !(r->path && r->query))) {
        rendering_free(r);
        return NULL;
    }
    return r;
}

struct ft_http_rendering *ft_http_rendering_find(struct ft_http *http,
                                                 const struct ft_http_asked *asked)
{
    const char *query = asked->query ? asked->query : "";
    struct ft_http_rendering *r;
    uint64_t epoch;

    if (!http->epoch)
        return NULL;
    drop_old(http, false);
    epoch = epoch_of(http);
    LIST_FOREACH(r, &http->renderings, next)
    if (r->open && (r->slices.more || r->tag[0]) && r->epoch == epoch &&
        r->packed == asked->packed && strcmp(r->path, asked->path) == 0 &&
        strcmp(r->query, query) == 0)
        return r;
    return NULL;
}

const char *ft_http_rendering_tag(const struct ft_http_rendering *r)
{
    return r->tag;
}

bool ft_http_rendering_packed(const struct ft_http_rendering *r)
{
    return r->packed;
}

void ft_http_rendering_join(struct ft_http_rendering *r, struct ft_http_reader *reader)
{
    *reader = (struct ft_http_reader){r, NULL};
    r->readers++;
    r->fresh++;
}

static void mark(struct ft_http_reader *reader, struct ft_http_part *part)
{
    struct ft_http_part *before = (struct ft_http_part *)(uintptr_t)reader->sent;

    if (before)
        before->readers--;
    else
        reader->rendering->fresh--;
    reader->sent = part;
    if (part)
        part->readers++;
}

void ft_http_rendering_leave(struct ft_http_reader *reader)
{
    struct ft_http_rendering *r = reader->rendering;

    mark(reader, NULL);
    reader->rendering = NULL;
    r->readers--;
    if (r->readers == 0 && !(r->open && !r->slices.more && r->tag[0]))
        rendering_free(r);
    else
        drop_sent(r);
}

/* Takes what was made into the list. */
static bool keep(struct ft_http_rendering *r, struct evbuffer *made)
{
    size_t len = evbuffer_get_length(made);
    struct ft_http_part *part = malloc(sizeof(*part) + len);
    const size_t most = r->http->room.bytes_max;

    if (!part)
        return false;
    *part = (struct ft_http_part){.holders = 1, .counted = true, .len = len};
    evbuffer_remove(made, part->bytes, len);
    STAILQ_INSERT_TAIL(&r->parts, part, next);
    r->kept += len;
    r->http->kept += len;
    r->http->room.held += len;
    if (r->kept > most / ONE_SHARE || r->http->kept > most / ALL_SHARE)
        r->open = false;
    return true;
}

/* One more step of it: 1: there is a new part, 0: none yet, -errno. */
static int make(struct ft_http_rendering *r, size_t left)
{
    struct evbuffer *made = evbuffer_new();
    struct ft_writer part;
    int more, rc = made ? 0 : -ENOMEM;

    ft_writer_init(&part, left < FT_HTTP_BODY_BYTES_MAX ? left : FT_HTTP_BODY_BYTES_MAX);
    more = rc ? rc : r->slices.more(r->slices.arg, &part);
    if (more >= 0 && !ft_writer_ok(&part))
        more = -ENOSPC;
    if (more < 0)
        rc = more;
    else if (r->gzip)
        rc = ft_gzip_add(r->gzip, part.bytes, part.len, !more, made);
    else
        rc = evbuffer_add(made, part.bytes, part.len) < 0 ? -ENOMEM : 0;
    if (rc == 0 && evbuffer_get_length(made))
        rc = keep(r, made) ? 1 : -ENOMEM;
    ft_writer_free(&part);
    if (made)
        evbuffer_free(made);
    if (more <= 0 || rc < 0)
        end_slices(r);
    if (rc < 0) {
        r->failed = true;
        r->open = false;
    }
    return rc;
}

static struct ft_http_part *next_of(const struct ft_http_reader *reader)
{
    return reader->sent ? STAILQ_NEXT(reader->sent, next) : STAILQ_FIRST(&reader->rendering->parts);
}

enum ft_http_next ft_http_rendering_next(struct ft_http_reader *reader, struct evbuffer *out)
{
    struct ft_http_rendering *r = reader->rendering;
    struct ft_http_room *room = &r->http->room;
    struct ft_http_part *part = next_of(reader);

    if (!part) {
        size_t left = ft_http_room_left(room);

        if (r->failed)
            return FT_HTTP_NEXT_FAILED;
        if (!r->slices.more)
            return FT_HTTP_NEXT_END;
        if (left < ft_http_room_part(room)) {
            ft_http_renderings_drop(r->http);
            left = ft_http_room_left(room);
        }
        if (left < ft_http_room_part(room) ||
            (!r->open && r->kept > room->bytes_max / ONE_SHARE && r->readers > 1))
            return FT_HTTP_NEXT_ROOM;
        if (make(r, left) < 0)
            return FT_HTTP_NEXT_FAILED;
        part = next_of(reader);
        if (!part)
            return FT_HTTP_NEXT_NONE;
    }
    if (evbuffer_add_reference(out, part->bytes, part->len, on_sent, part) < 0)
        return FT_HTTP_NEXT_FAILED;
    part->holders++;
    mark(reader, part);
    drop_sent(r);
    return FT_HTTP_NEXT_PART;
}

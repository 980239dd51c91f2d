// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/http/http_impl.h"

#define HEARTBEAT_NS      (15 * INT64_C(1000000000))
#define WAITING_BYTES_MAX ((size_t)256 << 10)
/* Of what is added at a time: buffers of this size are filled to their end. */
#define PIECE_BYTES       ((size_t)1 << 10)
#define CHUNK_BYTES       16 /* around a message */
#define KEPT_MAX          4
#define EVENT_BYTES       24
#define MESSAGE_BYTES_MAX (WAITING_BYTES_MAX - CHUNK_BYTES)
#define WRITE_S           60

struct stream {
    LIST_ENTRY(stream) next;
    struct ft_http_channel *channel;
    struct evhttp_request *req;
    bool cut; /* its end is in progress */
    bool chunked;
};

struct kept {
    char event[EVENT_BYTES];
    struct ft_writer text; /* as it went out */
};

struct ft_http_channel {
    LIST_ENTRY(ft_http_channel) next;
    struct ft_http *http;
    LIST_HEAD(, stream) streams;
    uint32_t streams_max;
    struct ft_watch *heartbeat;
    struct kept kept[KEPT_MAX];
    struct ft_http_channel_stats stats;
};

static void stream_free(struct stream *s)
{
    LIST_REMOVE(s, next);
    s->channel->stats.streams--;
    free(s);
}

static void on_close(struct evhttp_connection *connection, void *arg)
{
    struct stream *s = arg;
    struct evhttp_request *req = s->req;

    (void)connection;
    stream_free(s);
    if (!evhttp_request_get_connection(req))
        evhttp_send_reply_end(req);
}

static struct bufferevent *stream_of(const struct stream *s)
{
    return evhttp_connection_get_bufferevent(evhttp_request_get_connection(s->req));
}

static void cut(struct stream *s)
{
    s->cut = true;
    s->channel->stats.slow++;
    ft_http_room_cut(&s->channel->http->room, stream_of(s), FT_HTTP_CUT_BEHIND);
}

/* A chunk by itself would take a buffer of 1 KiB at least, and up to twice its length: what waits
 * takes hardly more memory than it has bytes. */
static bool add_chunk(struct evbuffer *output, const struct ft_writer *text, bool chunked)
{
    char head[CHUNK_BYTES];
    int rc = 0;

    if (chunked)
        rc = evbuffer_add(output, head, (size_t)snprintf(head, sizeof(head), "%zx\r\n", text->len));
    for (size_t at = 0; at < text->len && rc == 0; at += PIECE_BYTES) {
        size_t left = text->len - at;

        rc = evbuffer_add(output, text->bytes + at, left < PIECE_BYTES ? left : PIECE_BYTES);
    }
    if (chunked && rc == 0)
        rc = evbuffer_add(output, "\r\n", 2);
    return rc == 0;
}

static void put(struct stream *s, const struct ft_writer *text)
{
    struct evbuffer *output = bufferevent_get_output(stream_of(s));

    if (s->cut || text->len == 0)
        return;
    if (evbuffer_get_length(output) + text->len + CHUNK_BYTES > WAITING_BYTES_MAX ||
        !add_chunk(output, text, s->chunked))
        cut(s);
}

static void put_all(struct ft_http_channel *c, const struct ft_writer *text)
{
    struct stream *s, *after;

    for (s = LIST_FIRST(&c->streams); s; s = after) {
        after = LIST_NEXT(s, next);
        put(s, text);
    }
}

static void beat(void *arg)
{
    struct ft_writer text;

    ft_writer_init(&text, 16);
    ft_write_str(&text, ":\n\n");
    put_all(arg, &text);
    ft_writer_free(&text);
}

static void open_stream(struct ft_http_channel *c, struct stream *s)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(s->req);
    struct bufferevent *stream = evhttp_connection_get_bufferevent(connection);
    const struct timeval write_time = {WRITE_S, 0};
    struct ft_writer text;

    s->channel = c;
    LIST_INSERT_HEAD(&c->streams, s, next);
    c->stats.streams++;
    c->stats.opened++;
    ft_http_head(s->req, "text/event-stream", NULL);
    /* Proxies that gather an answer would keep what is new from its reader. */
    evhttp_add_header(evhttp_request_get_output_headers(s->req), "X-Accel-Buffering", "no");
    evhttp_connection_set_closecb(connection, on_close, s);
    ft_http_room_endless(&c->http->room, stream);
    evhttp_send_reply_start(s->req, 200, ft_http_status_text(200));
    s->chunked =
        evhttp_find_header(evhttp_request_get_output_headers(s->req), "Transfer-Encoding") != NULL;
    /* It is for us to speak. */
    bufferevent_set_timeouts(stream, NULL, &write_time);
    ft_writer_init(&text, 16);
    ft_write_str(&text, ":\n\n");
    put(s, &text);
    ft_writer_free(&text);
    for (size_t i = 0; i < KEPT_MAX; i++)
        if (c->kept[i].text.len)
            put(s, &c->kept[i].text);
}

static int serve(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_http_channel *c = arg;
    static const char *const none[] = {NULL};
    struct stream *s;

    if (ft_http_unknown_query(request, none)) {
        ft_write_fmt(body, "there is no parameter '%s' here", ft_http_unknown_query(request, none));
        return 400;
    }
    if (evhttp_request_get_command(request->req) == EVHTTP_REQ_HEAD)
        return 200;
    s = c->stats.streams < c->streams_max ? calloc(1, sizeof(*s)) : NULL;
    if (!s) {
        c->stats.refused++;
        ft_write_fmt(body, "%u streams are open, which is the most there may be", c->stats.streams);
        return 503;
    }
    s->req = request->req;
    open_stream(c, s);
    request->reply->taken = true;
    return 200;
}

struct ft_http_channel *ft_http_channel_new(struct ft_http *http, const char *path,
                                            uint32_t streams_max)
{
    struct ft_http_channel *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->http = http;
    c->streams_max = streams_max;
    for (size_t i = 0; i < KEPT_MAX; i++)
        ft_writer_init(&c->kept[i].text, MESSAGE_BYTES_MAX);
    c->heartbeat = ft_watch_timer(http->room.loop, HEARTBEAT_NS, beat, c);
    if (!c->heartbeat || ft_http_route(http, path, "text/event-stream", serve, c)) {
        ft_watch_free(c->heartbeat);
        free(c);
        return NULL;
    }
    LIST_INSERT_HEAD(&http->channels, c, next);
    return c;
}

static void keep(struct ft_http_channel *c, const char *event, const struct ft_writer *text)
{
    for (size_t i = 0; i < KEPT_MAX; i++) {
        struct kept *k = &c->kept[i];

        if (k->event[0] && strncmp(k->event, event, EVENT_BYTES - 1) != 0)
            continue;
        strncpy(k->event, event, EVENT_BYTES - 1);
        ft_writer_reset(&k->text);
        ft_write_bytes(&k->text, text->bytes, text->len);
        return;
    }
}

void ft_http_channel_send(struct ft_http_channel *c, const char *event, const void *data,
                          size_t len, bool keep_it)
{
    struct ft_writer text;

    ft_writer_init(&text, MESSAGE_BYTES_MAX);
    ft_write_fmt(&text, "event: %s\ndata: ", event);
    ft_write_bytes(&text, data, len);
    ft_write_str(&text, "\n\n");
    c->stats.messages++;
    if (ft_writer_ok(&text) && keep_it)
        keep(c, event, &text);
    if (ft_writer_ok(&text))
        put_all(c, &text);
    ft_writer_free(&text);
}

void ft_http_channel_stats(const struct ft_http_channel *c, struct ft_http_channel_stats *stats)
{
    *stats = c->stats;
}

void ft_http_channels_free(struct ft_http *http)
{
    struct ft_http_channel *c;
    struct stream *s;

    while ((c = LIST_FIRST(&http->channels))) {
        LIST_REMOVE(c, next);
        while ((s = LIST_FIRST(&c->streams))) {
            evhttp_connection_set_closecb(evhttp_request_get_connection(s->req), NULL, NULL);
            stream_free(s);
        }
        for (size_t i = 0; i < KEPT_MAX; i++)
            ft_writer_free(&c->kept[i].text);
        ft_watch_free(c->heartbeat);
        free(c);
    }
}

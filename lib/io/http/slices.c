// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/io/http/http_impl.h"
#include "lib/io/http/rendering.h"

#define PACKED_MIN_BYTES   1024         /* smaller ones fit into a packet or two as they are */
#define UNSLICED_MAX_BYTES (256u << 10) /* larger ones are packed in slices, and get no tag */
#define PART_BYTES         ((size_t)128 << 10)

/* An answer on its way: a part is made when the one before has been taken. */
struct ft_http_slicing {
    LIST_ENTRY(ft_http_slicing) next;
    TAILQ_ENTRY(ft_http_slicing) turn;
    struct ft_http *http;
    struct evhttp_request *req;
    struct ft_http_reader reader; /* of what is sent */
    struct ft_watch *step;        /* when it may continue */
    bool ready;                   /* waits for its next part */
};

#define AGAIN_NS INT64_C(1000000)
#define ROOM_NS  INT64_C(50000000)
/* While others wait, as long as a step took is theirs before the next, so many times. */
#define OTHERS 1

int ft_http_answer_slices(const struct ft_http_request *request,
                          const struct ft_http_slices *slices)
{
    if (!ft_http_room_holds(&request->http->room, slices->bytes))
        ft_http_renderings_drop(request->http);
    if (!ft_http_room_holds(&request->http->room, slices->bytes)) {
        request->http->room.stats.answers_refused++;
        slices->free(slices->arg);
        return -ENOMEM;
    }
    request->reply->slices = *slices;
    return 0;
}

static void slicing_free(struct ft_http_slicing *s)
{
    LIST_REMOVE(s, next);
    if (s->ready)
        TAILQ_REMOVE(&s->http->turns, s, turn);
    ft_watch_free(s->step);
    ft_http_rendering_leave(&s->reader);
    free(s);
}

/* evhttp has let the connection go: of a request that it took off it, nobody else frees the rest.
 */
static void on_close(struct evhttp_connection *connection, void *arg)
{
    struct ft_http_slicing *s = arg;
    struct evhttp_request *req = s->req;
    struct ft_loop *loop = s->http->room.loop;
    struct ft_mono start = ft_mono_now();

    (void)connection;
    slicing_free(s);
    if (!evhttp_request_get_connection(req))
        evhttp_send_reply_end(req);
    ft_loop_step(loop, "http", start);
}

static void end(struct ft_http_slicing *s)
{
    struct evhttp_request *req = s->req;

    evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
    slicing_free(s);
    evhttp_send_reply_end(req);
}

static struct bufferevent *stream_of(const struct ft_http_slicing *s)
{
    return evhttp_connection_get_bufferevent(evhttp_request_get_connection(s->req));
}

/* Of TLS libevent's word that all is written comes late, when there may be more to write: the end
 * of an answer would then go for written, and the connection with it. So nothing is added, and
 * least of all the end, before what went before is gone. */
static bool is_taken(const struct ft_http_slicing *s)
{
    return evbuffer_get_length(bufferevent_get_output(stream_of(s))) == 0;
}

static void await_turn(struct ft_http_slicing *s)
{
    struct ft_http *http = s->http;
    int64_t rested_ns = ft_mono_since_ns(ft_mono_now(), http->stepped);

    if (s->ready)
        return;
    s->ready = true;
    TAILQ_INSERT_TAIL(&http->turns, s, turn);
    if (!ft_watch_once_armed(http->turn))
        ft_watch_once_arm(http->turn, rested_ns < http->rest_ns ? http->rest_ns - rested_ns : 0);
}

static void on_step(void *arg)
{
    await_turn(arg);
}

static void on_taken(struct evhttp_connection *connection, void *arg)
{
    struct ft_http_slicing *s = arg;

    (void)connection;
    if (is_taken(s))
        await_turn(s);
}

static void step(struct ft_http_slicing *s)
{
    struct evbuffer *out;

    if (!is_taken(s)) {
        ft_watch_once_arm(s->step, AGAIN_NS);
        return;
    }
    out = evbuffer_new();
    switch (out ? ft_http_rendering_next(&s->reader, out) : FT_HTTP_NEXT_FAILED) {
    case FT_HTTP_NEXT_PART:
        ft_http_room_more(&s->http->room, stream_of(s), evbuffer_get_length(out));
        evhttp_send_reply_chunk_with_cb(s->req, out, on_taken, s);
        break;
    case FT_HTTP_NEXT_NONE:
        await_turn(s);
        break;
    case FT_HTTP_NEXT_ROOM:
        /* Others who do not take theirs are cut off in time. */
        ft_watch_once_arm(s->step, ROOM_NS);
        break;
    case FT_HTTP_NEXT_END:
        end(s);
        break;
    case FT_HTTP_NEXT_FAILED:
        ft_http_room_cut(&s->http->room, stream_of(s), FT_HTTP_CUT_FAILED);
        break;
    }
    if (out)
        evbuffer_free(out);
}

/* One step of one answer at a time, whoever asks for how many: what comes in is never
 * behind all of them. */
static void on_turn(void *arg)
{
    struct ft_http *http = arg;
    struct ft_http_slicing *s = TAILQ_FIRST(&http->turns);
    struct ft_mono start = ft_mono_now();
    int64_t took_ns;

    if (!s)
        return;
    /* The loop's timers are coarse, and count from where its step began. */
    if (ft_mono_since_ns(start, http->stepped) < http->rest_ns) {
        ft_watch_once_arm(http->turn, http->rest_ns - ft_mono_since_ns(start, http->stepped));
        return;
    }
    TAILQ_REMOVE(&http->turns, s, turn);
    s->ready = false;
    step(s);
    http->stepped = ft_mono_now();
    took_ns = ft_mono_since_ns(http->stepped, start);
    http->rest_ns = http->waits && http->waits(http->waits_arg) ? OTHERS * took_ns : 0;
    if (!TAILQ_EMPTY(&http->turns))
        ft_watch_once_arm(http->turn, http->rest_ns);
}

bool ft_http_slices_open(struct ft_http *http)
{
    TAILQ_INIT(&http->turns);
    http->turn = ft_watch_stage(ft_watch_once(http->room.loop, on_turn, http), "http");
    return http->turn != NULL;
}

void ft_http_yield(struct ft_http *http, bool (*waits)(void *arg), void *arg)
{
    http->waits = waits;
    http->waits_arg = arg;
}

void ft_http_share(struct ft_http *http, uint64_t (*epoch)(void *arg), void *arg)
{
    http->epoch = epoch;
    http->epoch_arg = arg;
}

/* Sends a rendering to one more. */
static void send_rendering(struct ft_http *http, struct evhttp_request *req,
                           const char *content_type, struct ft_http_rendering *rendering)
{
    static const char no_memory[] = "no memory";
    struct evhttp_connection *connection = evhttp_request_get_connection(req);
    struct ft_http_slicing *s = calloc(1, sizeof(*s));
    struct ft_http_reader nobody;

    if (s)
        s->step = ft_watch_once(http->room.loop, on_step, s);
    if (!s || !s->step) {
        free(s);
        ft_http_rendering_join(rendering, &nobody);
        ft_http_rendering_leave(&nobody);
        ft_http_problem(http, req, 503, no_memory, sizeof(no_memory) - 1);
        return;
    }
    s->http = http;
    s->req = req;
    ft_http_rendering_join(rendering, &s->reader);
    LIST_INSERT_HEAD(&http->slicings, s, next);
    ft_http_head(req, content_type, ft_http_rendering_tag(rendering));
    if (ft_http_rendering_packed(rendering))
        evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Encoding", "gzip");
    evhttp_connection_set_closecb(connection, on_close, s);
    ft_http_room_answer(&http->room, req, 0);
    evhttp_send_reply_start(req, 200, ft_http_status_text(200));
    await_turn(s);
}

bool ft_http_join(struct ft_http *http, struct evhttp_request *req, const char *content_type,
                  const struct ft_http_asked *asked)
{
    struct ft_http_rendering *rendering = evhttp_request_get_command(req) == EVHTTP_REQ_GET
                                              ? ft_http_rendering_find(http, asked)
                                              : NULL;

    if (!rendering)
        return false;
    http->room.stats.answers_shared++;
    if (ft_http_has_tag(req, ft_http_rendering_tag(rendering)))
        ft_http_answer_empty(http, req, 304, ft_http_rendering_tag(rendering));
    else
        send_rendering(http, req, content_type, rendering);
    return true;
}

void ft_http_slice(struct ft_http *http, struct evhttp_request *req, const char *content_type,
                   const char *tag, const struct ft_http_asked *asked,
                   const struct ft_http_slices *slices)
{
    static const char no_memory[] = "no memory";
    struct ft_http_rendering *rendering;

    if (evhttp_request_get_command(req) == EVHTTP_REQ_HEAD) {
        slices->free(slices->arg);
        ft_http_head(req, content_type, tag);
        ft_http_room_answer(&http->room, req, 0);
        evhttp_send_reply(req, 200, ft_http_status_text(200), NULL);
        return;
    }
    rendering = ft_http_rendering_new(http, asked, tag, ft_http_takes_gzip(req), slices);
    if (rendering)
        send_rendering(http, req, content_type, rendering);
    else
        ft_http_problem(http, req, 503, no_memory, sizeof(no_memory) - 1);
}

/* A kept body that is packed in slices. */
struct kept_body {
    struct ft_writer body;
    size_t sent;
};

static int next_of_body(void *arg, struct ft_writer *part)
{
    struct kept_body *kept = arg;
    size_t left = kept->body.len - kept->sent;
    size_t n = left < PART_BYTES ? left : PART_BYTES;

    ft_write_bytes(part, kept->body.bytes + kept->sent, n);
    kept->sent += n;
    return kept->sent < kept->body.len;
}

static void free_body(void *arg)
{
    struct kept_body *kept = arg;

    ft_writer_free(&kept->body);
    free(kept);
}

static void slice_body(struct ft_http *http, struct evhttp_request *req, const char *content_type,
                       const char *tag, struct ft_writer *body)
{
    static const char pending[] = "too many responses are pending: try again later";
    struct kept_body *kept =
        ft_http_room_holds(&http->room, body->len) ? calloc(1, sizeof(*kept)) : NULL;
    struct ft_http_slices slices = {next_of_body, free_body, kept, body->len};

    if (!kept) {
        ft_writer_free(body);
        http->room.stats.answers_refused++;
        ft_http_problem(http, req, 503, pending, sizeof(pending) - 1);
        return;
    }
    kept->body = *body;
    ft_writer_init(body, body->max);
    ft_http_slice(http, req, content_type, tag, NULL, &slices);
}

/* FNV-1a of 64 bits: it distinguishes answers of one server, and promises no more. */
static uint64_t digest(const struct ft_writer *body)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < body->len; i++)
        hash = (hash ^ body->bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

void ft_http_answer(struct ft_http *http, struct evhttp_request *req, const char *content_type,
                    const char *tag, struct ft_writer *body)
{
    bool gzip = body->len >= PACKED_MIN_BYTES && ft_http_takes_gzip(req);
    char own[FT_HTTP_TAG_BYTES] = "";

    if (tag && *tag)
        snprintf(own, sizeof(own), "%s", tag);
    else if (body->len <= UNSLICED_MAX_BYTES)
        snprintf(own, sizeof(own), "%016" PRIx64, digest(body));
    if (ft_http_has_tag(req, own)) {
        ft_writer_free(body);
        ft_http_answer_empty(http, req, 304, own);
        return;
    }
    if (gzip && body->len > UNSLICED_MAX_BYTES) {
        slice_body(http, req, content_type, own, body);
        return;
    }
    ft_http_head(req, content_type, own);
    ft_http_send(http, req, 200, body, gzip);
}

/* With the server, whose connections evhttp frees. */
void ft_http_slices_free(struct ft_http *http)
{
    struct ft_http_slicing *s;

    while ((s = LIST_FIRST(&http->slicings))) {
        evhttp_connection_set_closecb(evhttp_request_get_connection(s->req), NULL, NULL);
        slicing_free(s);
    }
    ft_http_renderings_drop(http);
    ft_watch_free(http->turn);
    http->turn = NULL;
}

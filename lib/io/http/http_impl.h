// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_HTTP_HTTP_IMPL_H
#define FT_IO_HTTP_HTTP_IMPL_H
/*
 * Shared by the parts of the HTTP server alone: who is connected and what they hold
 * (clients.c), routes and questions (routes.c), answers (answer.c), long ones and
 * those made while they are sent (slices.c), files (files.c), events (channel.c),
 * the server (http.c).
 *
 * evhttp reports no connections, so each stream is made here and a reference to it kept:
 * one that evhttp has let go of has no callbacks any more. Its descriptor is closed with the last
 * reference, never before: another connection by its number would be read by the old stream.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/base/clock.h"
#include "lib/io/http/http.h"
#include "lib/io/loop.h"

struct bufferevent;
struct evbuffer;
struct evconnlistener;
struct event_base;
struct evhttp;
struct evhttp_request;
struct ft_tls;

/* What a client is given time for. */
enum ft_http_phase {
    FT_HTTP_ASKS,    /* its request, from since on */
    FT_HTTP_TAKES,   /* its answer: only time that the answer waits for the client counts */
    FT_HTTP_LISTENS, /* an answer that stays open for good */
    FT_HTTP_ENDED,   /* it was cut off, which evhttp has yet to see */
};

struct ft_http_client {
    TAILQ_ENTRY(ft_http_client) next;
    struct bufferevent *stream;
    enum ft_http_phase phase;
    struct ft_mono since; /* its last answer, or that it came */
    int64_t allowed_ns;   /* for its request, or for taking its answer */
    int64_t taking_ns;    /* that its answer has waited for it, */
    int64_t still_ns;     /* and of that, since it took anything */
    size_t waited;        /* bytes of it at the last look */
};

TAILQ_HEAD(ft_http_clients, ft_http_client);

struct ft_http_room {
    LIST_ENTRY(ft_http_room) next;
    struct ft_loop *loop;
    struct evconnlistener *listener;
    struct ft_watch *look, *rest;
    struct ft_mono looked;
    struct ft_http_clients clients; /* the one heard least recently is the first */
    uint32_t connections_max;
    size_t bytes_max;
    struct ft_tls *tls; /* NULL: plain */
    size_t held;        /* bytes of answers that are being made */
    int patience_s;     /* without a byte, of a request or of an answer that is taken */
    struct ft_http_stats stats;
};

/* Watches a listener, which stays the caller's. -ENOMEM. */
int ft_http_room_open(struct ft_http_room *room, struct ft_loop *loop);
void ft_http_room_listen(struct ft_http_room *room, struct evconnlistener *listener);
void ft_http_room_close(struct ft_http_room *room);

/* For evhttp_set_bevcb(); arg is the room. Makes room first where all are taken. */
struct bufferevent *ft_http_room_stream(struct event_base *base, void *arg);

/* Bytes that an answer may have now: less where others wait to be taken. */
size_t ft_http_room_left(struct ft_http_room *room);

/* What the next part of an answer needs. */
size_t ft_http_room_part(const struct ft_http_room *room);

/* Whether an answer may hold so many bytes while it is made: all that are made leave room for a
 * part, so that each comes to its end. */
bool ft_http_room_holds(const struct ft_http_room *room, size_t bytes);

/* An answer of so many bytes goes out. Its time is the client's own: what it waits for us or for
 * room does not count. */
void ft_http_room_answer(struct ft_http_room *room, struct evhttp_request *req, size_t bytes);

/* So many bytes more of the same answer; it is given time for them. */
void ft_http_room_more(struct ft_http_room *room, struct bufferevent *stream, size_t bytes);

/* The answer stays open for good. */
void ft_http_room_endless(struct ft_http_room *room, struct bufferevent *stream);

/* Cuts a client off. */
void ft_http_room_cut(struct ft_http_room *room, struct bufferevent *stream,
                      enum ft_http_cut reason);

#define FT_HTTP_ROUTES_MAX 64
#define FT_HTTP_TAG_BYTES  64

struct ft_http_route {
    char *path;
    char *content_type;
    int (*handler)(void *arg, const struct ft_http_request *request, struct ft_writer *body);
    void *arg;
};

struct ft_http_asked;
struct ft_http_rendering;
struct ft_http_slicing;

struct ft_http {
    struct ft_http_room room;
    struct evhttp *server;
    uint16_t port;
    struct ft_http_route routes[FT_HTTP_ROUTES_MAX];
    size_t route_count;
    char **names; /* that it has */
    size_t name_count;
    char **origins; /* whose pages may read */
    size_t origin_count;
    char *token; /* NULL: none is needed */
    const struct ft_http_file *files;
    size_t file_count;
    LIST_HEAD(, ft_http_slicing) slicings; /* answers that are being sent */
    LIST_HEAD(, ft_http_rendering) renderings;
    size_t kept;                  /* bytes of them, for who joins */
    uint64_t (*epoch)(void *arg); /* NULL: nobody joins */
    void *epoch_arg;
    TAILQ_HEAD(, ft_http_slicing) turns; /* those that could continue */
    struct ft_watch *turn;
    struct ft_mono stepped; /* when one went on last */
    int64_t rest_ns;        /* from then, before the next */
    bool (*waits)(void *arg);
    void *waits_arg;
    LIST_HEAD(, ft_http_channel) channels;
};

/* What a handler says of its answer beside the body. */
struct ft_http_reply {
    char tag[FT_HTTP_TAG_BYTES];
    struct ft_http_slices slices; /* more NULL: none */
    bool taken;                   /* the request is somebody else's from now on */
};

/* So many seconds may pass without a byte, of a request or of an answer that is taken. */
void ft_http_patience(struct ft_http *http, int seconds);

struct ft_http_request {
    struct ft_http *http;
    struct evhttp_request *req;
    struct evkeyvalq *query;
    struct ft_http_reply *reply;
};

/* The route of a path, NULL. */
const struct ft_http_route *ft_http_find_route(const struct ft_http *http, const char *path);

const char *ft_http_status_text(int status);

/* Whether the client takes gzip; and whether this program can make it, too. */
bool ft_http_names_gzip(struct evhttp_request *req);
bool ft_http_takes_gzip(struct evhttp_request *req);

/* Whether the client says that it has the answer of this tag. */
bool ft_http_has_tag(struct evhttp_request *req, const char *tag);

/* The headers of each answer. content_type may be NULL (304); tag "" or NULL: none. */
void ft_http_head(struct evhttp_request *req, const char *content_type, const char *tag);

/* Sends a body, whose headers are set; takes the writer's bytes. A HEAD is given the length
 * alone.
 */
void ft_http_send(struct ft_http *http, struct evhttp_request *req, int status,
                  struct ft_writer *body, bool pack);

/* Sends a body that is packed already; takes the writer's bytes. */
void ft_http_answer_packed(struct ft_http *http, struct evhttp_request *req,
                           const char *content_type, const char *tag, struct ft_writer *body);

/* Sends a status without a body: 304. */
void ft_http_answer_empty(struct ft_http *http, struct evhttp_request *req, int status,
                          const char *tag);

/* Sends a problem (RFC 9457); detail is a sentence. */
void ft_http_problem(struct ft_http *http, struct evhttp_request *req, int status,
                     const char *detail, size_t len);

/* Sends an answer that is made while it is sent; the slices are its own from now on. Others who ask
 * for the same may join; asked NULL: nobody does. */
void ft_http_slice(struct ft_http *http, struct evhttp_request *req, const char *content_type,
                   const char *tag, const struct ft_http_asked *asked,
                   const struct ft_http_slices *slices);

/* Sends an answer that is made for others already, from its beginning; false: there is none. */
bool ft_http_join(struct ft_http *http, struct evhttp_request *req, const char *content_type,
                  const struct ft_http_asked *asked);
/* False without memory. */
bool ft_http_slices_open(struct ft_http *http);
void ft_http_slices_free(struct ft_http *http);

/* Sends a complete answer, a long one in slices; takes the writer's bytes. tag NULL or "": from the
 * bytes. */
void ft_http_answer(struct ft_http *http, struct evhttp_request *req, const char *content_type,
                    const char *tag, struct ft_writer *body);

/* Sends the file of a path; false: there is none. */
bool ft_http_serve_file(struct ft_http *http, struct evhttp_request *req, const char *path);

void ft_http_channels_free(struct ft_http *http);

/* Bytes into and out of gzip; a build without zlib makes and takes none. pack: level 1. -ENOMEM;
 * unpack: -EBADMSG when they are not exactly plain_bytes. */
struct ft_gzip;
struct ft_gzip *ft_gzip_new(void);
void ft_gzip_free(struct ft_gzip *gzip);
int ft_gzip_add(struct ft_gzip *gzip, const uint8_t *bytes, size_t len, bool last,
                struct evbuffer *out);
int ft_gzip_unpack(const uint8_t *bytes, size_t len, size_t plain_bytes, struct ft_writer *w);

#endif

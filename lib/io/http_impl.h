// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_HTTP_IMPL_H
#define FT_IO_HTTP_IMPL_H
/*
 * Shared by the parts of the HTTP server alone: routes and answers (http.c), and who is connected
 * and what they hold (http_clients.c).
 *
 * evhttp tells nobody of its connections, so each stream is made here and a reference to it kept:
 * one that evhttp has let go of has no callbacks any more. Its descriptor is closed with the last
 * reference, never before: another connection by its number would be read by the old stream.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/base/clock.h"
#include "lib/io/http.h"
#include "lib/io/loop.h"

struct bufferevent;
struct evconnlistener;
struct event_base;

struct ft_http_client {
    TAILQ_ENTRY(ft_http_client) next;
    struct bufferevent *stream;
    struct ft_mono since; /* its last answer, or that it came */
    int64_t allowed_ns;   /* from then, for its next request or for taking its answer */
};

TAILQ_HEAD(ft_http_clients, ft_http_client);

/* An answer that is made in slices. */
struct ft_http_job {
    TAILQ_ENTRY(ft_http_job) next;
    struct evhttp_request *req;
    const char *content_type;
    struct ft_writer body;
    int (*step)(void *state, struct ft_writer *body);
    void (*drop)(void *state);
    void *state;
};

TAILQ_HEAD(ft_http_jobs, ft_http_job);

struct ft_http_room {
    LIST_ENTRY(ft_http_room) next;
    struct ft_loop *loop;
    struct evconnlistener *listener;
    struct ft_watch *look, *rest;
    struct ft_http_clients clients; /* the one heard least recently is the first */
    uint32_t connections_max;
    size_t bytes_max;
    size_t making; /* bytes of the answer that is being made */
    struct ft_http_stats stats;
};

/* Watches a listener, which stays the caller's. -ENOMEM. */
int ft_http_room_open(struct ft_http_room *room, struct ft_loop *loop);
void ft_http_room_listen(struct ft_http_room *room, struct evconnlistener *listener);
void ft_http_room_close(struct ft_http_room *room);

/* For evhttp_set_bevcb(); arg is the room. Makes a place free first where all are taken. */
struct bufferevent *ft_http_room_stream(struct event_base *base, void *arg);

/* Bytes that an answer may have now: less where others wait to be taken. */
size_t ft_http_room_left(struct ft_http_room *room);

/* An answer of so many bytes goes out on a stream. */
void ft_http_room_answer(struct ft_http_room *room, struct bufferevent *stream, size_t bytes);

#endif

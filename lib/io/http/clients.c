// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/io/http/http_impl.h"
#include "lib/io/transport/tls.h"

#define NS_PER_S       INT64_C(1000000000)
#define LOOK_NS        NS_PER_S
#define REST_NS        NS_PER_S
#define REQUEST_NS     (60 * NS_PER_S)
#define ANSWER_NS      (60 * NS_PER_S)
#define ANSWER_BYTES_S (1 << 20) /* and a second more for so many bytes */

/* Of a listener's callbacks evhttp owns the argument. */
static LIST_HEAD(, ft_http_room) rooms = LIST_HEAD_INITIALIZER(rooms);

static size_t waiting(const struct ft_http_client *client)
{
    return evbuffer_get_length(bufferevent_get_output(client->stream));
}

static void forget(struct ft_http_room *room, struct ft_http_client *client)
{
    TAILQ_REMOVE(&room->clients, client, next);
    bufferevent_decref(client->stream);
    room->stats.connected--;
    free(client);
}

/* Whom evhttp has let go of is gone. */
static void sweep(struct ft_http_room *room)
{
    struct ft_http_client *client, *next;

    for (client = TAILQ_FIRST(&room->clients); client; client = next) {
        bufferevent_event_cb on_event;

        next = TAILQ_NEXT(client, next);
        bufferevent_getcb(client->stream, NULL, NULL, &on_event, NULL);
        if (!on_event)
            forget(room, client);
    }
}

const char *ft_http_cut_text(enum ft_http_cut reason)
{
    static const char *const texts[] = {
        [FT_HTTP_CUT_FULL] = "full",     [FT_HTTP_CUT_SILENT] = "silent",
        [FT_HTTP_CUT_STILL] = "still",   [FT_HTTP_CUT_SLOW] = "slow",
        [FT_HTTP_CUT_BEHIND] = "behind", [FT_HTTP_CUT_FAILED] = "failed",
    };

    return texts[reason];
}

/* evhttp sees an end of the stream, and closes it. */
static void cut_off(struct ft_http_room *room, struct ft_http_client *client,
                    enum ft_http_cut reason)
{
    room->stats.cut_off[reason]++;
    shutdown(bufferevent_getfd(client->stream), SHUT_RDWR);
    client->phase = FT_HTTP_ENDED;
    TAILQ_REMOVE(&room->clients, client, next);
    TAILQ_INSERT_TAIL(&room->clients, client, next);
}

/* Where the kernel takes more, bytes wait for this loop and not for the client. */
static bool waits_for_client(const struct ft_http_client *client)
{
    struct pollfd fd = {.fd = bufferevent_getfd(client->stream), .events = POLLOUT};

    return waiting(client) && poll(&fd, 1, 0) == 0;
}

static void look_at_answer(struct ft_http_room *room, struct ft_http_client *client, int64_t ns)
{
    bool same = client->waited == waiting(client);

    client->waited = waiting(client);
    if (!waits_for_client(client)) {
        client->still_ns = 0;
        return;
    }
    client->taking_ns += ns;
    client->still_ns = same ? client->still_ns + ns : 0;
    if (client->still_ns > room->patience_s * NS_PER_S)
        cut_off(room, client, FT_HTTP_CUT_STILL);
    else if (client->taking_ns > client->allowed_ns)
        cut_off(room, client, FT_HTTP_CUT_SLOW);
}

static void look(void *arg)
{
    struct ft_http_room *room = arg;
    struct ft_mono now = ft_mono_now();
    /* A pause of ours is nobody's. */
    int64_t since_ns = ft_mono_since_ns(now, room->looked);
    int64_t ns = since_ns < 2 * LOOK_NS ? since_ns : 2 * LOOK_NS;
    struct ft_http_client *client, *after;

    sweep(room);
    room->looked = now;
    for (client = TAILQ_FIRST(&room->clients); client; client = after) {
        after = TAILQ_NEXT(client, next);
        if (client->phase == FT_HTTP_TAKES)
            look_at_answer(room, client, ns);
        else if (client->phase == FT_HTTP_ASKS &&
                 ft_mono_since_ns(now, client->since) > client->allowed_ns)
            cut_off(room, client, FT_HTTP_CUT_SILENT);
    }
    if (!TAILQ_EMPTY(&room->clients))
        ft_watch_once_arm(room->look, LOOK_NS);
}

/* An answer that is on its way is the last to go. */
static struct ft_http_client *least_of(const struct ft_http_room *room)
{
    struct ft_http_client *client;

    TAILQ_FOREACH(client, &room->clients, next)
    if (client->phase == FT_HTTP_ASKS)
        return client;
    return TAILQ_FIRST(&room->clients);
}

static struct bufferevent *make_stream(struct ft_http_room *room, struct event_base *base)
{
    struct ft_http_client *client = calloc(1, sizeof(*client));
    struct bufferevent *stream = !client ? NULL
                                 : room->tls
                                     ? ft_tls_accept(room->tls, base)
                                     : bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);

    room->stats.connections++;
    if (!stream) {
        free(client);
        return NULL;
    }
    sweep(room);
    if (room->stats.connected >= room->connections_max)
        cut_off(room, least_of(room), FT_HTTP_CUT_FULL);
    bufferevent_incref(stream);
    client->stream = stream;
    client->since = ft_mono_now();
    client->allowed_ns = REQUEST_NS;
    TAILQ_INSERT_TAIL(&room->clients, client, next);
    room->stats.connected++;
    if (!ft_watch_once_armed(room->look)) {
        room->looked = client->since;
        ft_watch_once_arm(room->look, LOOK_NS);
    }
    return stream;
}

struct bufferevent *ft_http_room_stream(struct event_base *base, void *arg)
{
    struct ft_http_room *room = arg;
    struct ft_mono start = ft_mono_now();
    struct bufferevent *stream = make_stream(room, base);

    ft_loop_step(room->loop, "http", start);
    return stream;
}

size_t ft_http_room_left(struct ft_http_room *room)
{
    struct ft_http_client *client;
    size_t bytes = 0;

    TAILQ_FOREACH(client, &room->clients, next)
    bytes += waiting(client);
    bytes += room->held;
    return bytes < room->bytes_max ? room->bytes_max - bytes : 0;
}

static struct ft_http_client *client_of(struct ft_http_room *room, struct bufferevent *stream)
{
    struct ft_http_client *client;

    TAILQ_FOREACH(client, &room->clients, next)
    if (client->stream == stream)
        break;
    return client;
}

size_t ft_http_room_part(const struct ft_http_room *room)
{
    size_t share = room->bytes_max / 8;

    return share < FT_HTTP_PART_BYTES_MAX ? share : FT_HTTP_PART_BYTES_MAX;
}

bool ft_http_room_holds(const struct ft_http_room *room, size_t bytes)
{
    size_t most = room->bytes_max - ft_http_room_part(room);

    return bytes <= most && room->held <= most - bytes;
}

/* The answer is out: evhttp waits for the next request. */
static void on_answered(struct evhttp_request *req, void *arg)
{
    struct ft_http_room *room = arg;
    const struct timeval patience = {room->patience_s, 0};
    struct bufferevent *stream =
        evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
    struct ft_http_client *client = client_of(room, stream);

    bufferevent_set_timeouts(stream, &patience, &patience);
    if (!client || client->phase == FT_HTTP_ENDED)
        return;
    client->phase = FT_HTTP_ASKS;
    client->since = ft_mono_now();
    client->allowed_ns = REQUEST_NS;
}

void ft_http_room_answer(struct ft_http_room *room, struct evhttp_request *req, size_t bytes)
{
    struct bufferevent *stream =
        evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
    struct ft_http_client *client = client_of(room, stream);

    if (!client || client->phase == FT_HTTP_ENDED)
        return;
    /* evhttp's own limits know nothing of whose time it is: an answer that waits for us
     * would go for a client that says nothing. */
    bufferevent_set_timeouts(stream, NULL, NULL);
    evhttp_request_set_on_complete_cb(req, on_answered, room);
    client->phase = FT_HTTP_TAKES;
    client->since = ft_mono_now();
    client->allowed_ns = ANSWER_NS + (int64_t)(bytes / ANSWER_BYTES_S) * NS_PER_S;
    client->taking_ns = client->still_ns = 0;
    client->waited = 0;
    TAILQ_REMOVE(&room->clients, client, next);
    TAILQ_INSERT_TAIL(&room->clients, client, next);
}

void ft_http_room_more(struct ft_http_room *room, struct bufferevent *stream, size_t bytes)
{
    struct ft_http_client *client = client_of(room, stream);

    if (!client)
        return;
    client->allowed_ns += (int64_t)((double)bytes / ANSWER_BYTES_S * NS_PER_S);
    client->still_ns = 0;
}

void ft_http_room_endless(struct ft_http_room *room, struct bufferevent *stream)
{
    struct ft_http_client *client = client_of(room, stream);

    if (client && client->phase != FT_HTTP_ENDED)
        client->phase = FT_HTTP_LISTENS;
}

void ft_http_room_cut(struct ft_http_room *room, struct bufferevent *stream,
                      enum ft_http_cut reason)
{
    struct ft_http_client *client = client_of(room, stream);

    if (client && client->phase != FT_HTTP_ENDED)
        cut_off(room, client, reason);
}

/* Without descriptors the waiting connection keeps the listener readable: it rests. */
static void handle_accept_error(struct evconnlistener *listener, void *arg)
{
    struct ft_http_room *room;

    (void)arg;
    LIST_FOREACH(room, &rooms, next)
    if (room->listener == listener)
        break;
    if (!room)
        return;
    room->stats.accept_failures++;
    ft_loop_trouble(room->loop, "HTTP: no connection can be accepted: %s", strerror(errno));
    evconnlistener_disable(listener);
    ft_watch_once_arm(room->rest, REST_NS);
}

static void accept_again(void *arg)
{
    struct ft_http_room *room = arg;

    evconnlistener_enable(room->listener);
}

int ft_http_room_open(struct ft_http_room *room, struct ft_loop *loop)
{
    room->loop = loop;
    TAILQ_INIT(&room->clients);
    room->look = ft_watch_once(loop, look, room);
    room->rest = ft_watch_once(loop, accept_again, room);
    return room->look && room->rest ? 0 : -ENOMEM;
}

void ft_http_room_listen(struct ft_http_room *room, struct evconnlistener *listener)
{
    room->listener = listener;
    LIST_INSERT_HEAD(&rooms, room, next);
    evconnlistener_set_error_cb(listener, handle_accept_error);
}

void ft_http_room_close(struct ft_http_room *room)
{
    struct ft_http_client *client;

    while ((client = TAILQ_FIRST(&room->clients)))
        forget(room, client);
    if (room->listener)
        LIST_REMOVE(room, next);
    ft_watch_free(room->look);
    ft_watch_free(room->rest);
}

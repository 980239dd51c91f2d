// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/table.h"
#include "lib/io/endpoint.h"
#include "lib/io/stream.h"

/* How long accepting rests when there are no descriptors left. */
#define ACCEPT_REST_NS INT64_C(1000000000)

struct connection;

/* Padded with zeroes. Programs of one host go by its name, each of them. */
struct source_key {
    char program[FT_PROGRAM_BYTES_MAX];
    char id[FT_SOURCE_ID_BYTES_MAX];
};

/* What is remembered of a sender beyond its connection. */
struct source {
    struct source_key key;
    uint64_t boot_id;
    uint64_t applied; /* the number of the last payload */
    struct connection *connection;
    TAILQ_ENTRY(source) left; /* while it has no connection */
};

TAILQ_HEAD(sources, source);

struct connection {
    TAILQ_ENTRY(connection) next;
    struct ft_receiver *receiver;
    struct bufferevent *bev;
    struct ft_watch *deadline;
    struct source *source; /* NULL before its HELLO */
    size_t frame_max;
    uint64_t acked;
    bool closing; /* a REFUSE is on its way out */
    char address[FT_ENDPOINT_BYTES];
    char id[FT_SOURCE_ID_BYTES_MAX + 1];
    char program[FT_PROGRAM_BYTES_MAX + 1];
};

TAILQ_HEAD(connections, connection);

struct ft_receiver {
    struct ft_loop *loop;
    struct ft_receiver_config config;
    struct ft_tls *tls;
    struct evconnlistener *listener;
    struct ft_watch *rest;
    uint16_t port;
    struct connections connections;
    struct ft_table *sources;
    struct sources left; /* without a connection, the one that left first is the first */
    struct ft_receiver_stats stats;
};

static void tell(struct connection *c, bool up, const char *reason)
{
    struct ft_receiver *receiver = c->receiver;

    if (receiver->config.peer)
        receiver->config.peer(receiver->config.arg, c->id, c->address, up, reason);
}

static void leave_source(struct connection *c)
{
    if (!c->source)
        return;
    c->source->connection = NULL;
    TAILQ_INSERT_TAIL(&c->receiver->left, c->source, left);
    c->source = NULL;
}

static void forget_connection(struct connection *c)
{
    struct ft_receiver *receiver = c->receiver;

    leave_source(c);
    TAILQ_REMOVE(&receiver->connections, c, next);
    receiver->stats.connected--;
}

static void close_connection(struct connection *c, const char *reason)
{
    /* One that was refused has been told of already. */
    bool silent = c->closing;

    forget_connection(c);
    ft_watch_free(c->deadline);
    bufferevent_free(c->bev);
    if (!silent)
        tell(c, false, reason);
    free(c);
}

/* Tells the peer why, then closes once that is written. */
static void refuse(struct connection *c, const char *reason)
{
    struct ft_frame frame = {.type = FT_FRAME_REFUSE};

    snprintf(frame.reason, sizeof(frame.reason), "%s", reason);
    ft_stream_write(c->bev, &frame);
    bufferevent_disable(c->bev, EV_READ);
    tell(c, false, reason);
    c->closing = true;
    leave_source(c);
    ft_watch_once_arm(c->deadline, c->receiver->config.timeout_ns);
}

static void forget_oldest_source(struct ft_receiver *receiver)
{
    struct source *oldest = TAILQ_FIRST(&receiver->left);

    if (!oldest)
        return;
    TAILQ_REMOVE(&receiver->left, oldest, left);
    ft_table_remove(receiver->sources, oldest);
}

static struct source *find_source(struct ft_receiver *receiver, const struct ft_frame *hello,
                                  bool *fresh)
{
    struct source_key key = {{0}, {0}};
    struct source *source;

    *fresh = false;
    memcpy(key.program, hello->program, strlen(hello->program));
    memcpy(key.id, hello->source_id, strlen(hello->source_id));
    source = ft_table_find(receiver->sources, &key);
    if (!source) {
        if (ft_table_count(receiver->sources) >= receiver->config.sources_max)
            forget_oldest_source(receiver);
        source = ft_table_insert(receiver->sources, &key, fresh);
    }
    if (source && source->boot_id != hello->boot_id) {
        source->boot_id = hello->boot_id;
        source->applied = 0;
    }
    return source;
}

static int take_hello(struct connection *c, const struct ft_frame *frame)
{
    struct ft_frame welcome = {.type = FT_FRAME_WELCOME, .version = FT_TRANSPORT_VERSION};
    struct connection *older;
    char reason[64];
    bool fresh;

    if (frame->version != FT_TRANSPORT_VERSION) {
        c->receiver->stats.malformed++;
        snprintf(reason, sizeof(reason), "version %u is not spoken here, %u is", frame->version,
                 FT_TRANSPORT_VERSION);
        refuse(c, reason);
        return -EPROTO;
    }
    memcpy(c->id, frame->source_id, sizeof(c->id));
    memcpy(c->program, frame->program, sizeof(c->program));
    c->source = find_source(c->receiver, frame, &fresh);
    if (!c->source) {
        c->receiver->stats.connections_refused++;
        refuse(c, "too many sources");
        return -ENOSPC;
    }
    /* The sender has given its old connection up, or is a second one by the same name: either way
     * only one may go on, or the numbers of two would mix. */
    older = c->source->connection;
    if (older) {
        older->source = NULL;
        close_connection(older, "replaced by a newer connection");
    } else if (!fresh) {
        TAILQ_REMOVE(&c->receiver->left, c->source, left);
    }
    c->source->connection = c;
    c->acked = welcome.sequence = c->source->applied;
    ft_stream_write(c->bev, &welcome);
    c->frame_max = FT_FRAME_BYTES_MAX;
    bufferevent_setwatermark(c->bev, EV_READ, 0, FT_FRAME_BYTES_MAX);
    tell(c, true, "");
    return 0;
}

static int take_data(struct connection *c, const struct ft_frame *frame)
{
    struct ft_receiver *receiver = c->receiver;
    struct source *source = c->source;

    receiver->stats.payloads++;
    if (frame->sequence <= source->applied) {
        receiver->stats.duplicates++;
        return 0;
    }
    source->applied = frame->sequence;
    if (receiver->config.apply(receiver->config.arg, c->id, c->program, frame->payload,
                               frame->payload_len) < 0) {
        receiver->stats.refused++;
        refuse(c, "the payload cannot be applied");
        return -EBADMSG;
    }
    receiver->stats.applied++;
    return 0;
}

static int handle_frame(void *arg, const struct ft_frame *frame)
{
    struct connection *c = arg;

    if (frame->type == FT_FRAME_HELLO && !c->source)
        return take_hello(c, frame);
    if (frame->type == FT_FRAME_DATA && c->source)
        return take_data(c, frame);
    c->receiver->stats.malformed++;
    refuse(c, "a frame out of turn");
    return -EPROTO;
}

/* One acknowledgement at a time in the output: a peer that does not read gets no more. */
static void acknowledge(struct connection *c)
{
    struct ft_frame ack = {.type = FT_FRAME_ACK};

    if (!c->source || c->acked == c->source->applied ||
        evbuffer_get_length(bufferevent_get_output(c->bev)))
        return;
    c->acked = ack.sequence = c->source->applied;
    ft_stream_write(c->bev, &ack);
}

static void take_input(struct connection *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t before = evbuffer_get_length(in);
    char reason[FT_STREAM_TEXT_BYTES];
    bool had_source = c->source;
    int ret;

    if (c->closing)
        return;
    ret = ft_stream_frames(in, &c->frame_max, handle_frame, c, reason);
    if (c->closing)
        return;
    if (ret) {
        c->receiver->stats.malformed++;
        refuse(c, reason);
        return;
    }
    acknowledge(c);
    /* A frame that has begun must end; a HELLO must come at all. */
    if (evbuffer_get_length(in) == 0 && c->source)
        ft_watch_once_disarm(c->deadline);
    else if (c->source &&
             (!had_source || evbuffer_get_length(in) < before || !ft_watch_once_armed(c->deadline)))
        ft_watch_once_arm(c->deadline, c->receiver->config.timeout_ns);
}

static void handle_input(struct bufferevent *bev, void *arg)
{
    struct connection *c = arg;
    struct ft_loop *loop = c->receiver->loop;
    struct ft_mono start = ft_mono_now();

    (void)bev;
    take_input(c);
    ft_loop_step(loop, start);
}

static void handle_output(struct bufferevent *bev, void *arg)
{
    struct connection *c = arg;

    if (!c->closing)
        acknowledge(c);
    if (!c->closing || evbuffer_get_length(bufferevent_get_output(bev)))
        return;
    forget_connection(c);
    ft_watch_free(c->deadline);
    ft_stream_close_politely(c->bev);
    free(c);
}

static void handle_event(struct bufferevent *bev, short what, void *arg)
{
    struct connection *c = arg;
    char reason[FT_STREAM_TEXT_BYTES];

    if (what & BEV_EVENT_CONNECTED)
        return;
    ft_stream_reason(bev, what, reason);
    close_connection(c, reason);
}

static void handle_deadline(void *arg)
{
    struct connection *c = arg;

    if (!c->closing)
        c->receiver->stats.malformed++;
    close_connection(c, c->source ? "it stalled within a frame" : "it did not say who it is");
}

static void turn_away(struct ft_receiver *receiver, int fd)
{
    struct ft_frame frame = {.type = FT_FRAME_REFUSE, .reason = "too many connections"};
    struct ft_writer w;

    receiver->stats.connections_refused++;
    ft_writer_init(&w, FT_FRAME_REASON_BYTES_MAX);
    ft_frame_write(&w, &frame);
    /* Under TLS this would be no answer. */
    if (!receiver->tls && ft_writer_ok(&w))
        send(fd, w.bytes, w.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    ft_writer_free(&w);
    close(fd);
}

static void handle_accept(struct evconnlistener *listener, evutil_socket_t fd,
                          struct sockaddr *address, int len, void *arg)
{
    struct ft_receiver *receiver = arg;
    struct connection *c;

    (void)listener;
    (void)len;
    receiver->stats.connections++;
    if (receiver->stats.connected >= receiver->config.connections_max) {
        turn_away(receiver, fd);
        return;
    }
    c = calloc(1, sizeof(*c));
    if (!c || !(c->deadline = ft_watch_once(receiver->loop, handle_deadline, c))) {
        free(c);
        turn_away(receiver, fd);
        return;
    }
    c->receiver = receiver;
    c->frame_max = FT_FRAME_HELLO_BYTES_MAX;
    ft_endpoint_format(address, c->address);
    c->bev = ft_stream_new(receiver->loop, receiver->tls, fd, NULL, receiver->config.timeout_ns);
    if (!c->bev) {
        receiver->stats.connections_refused++;
        ft_watch_free(c->deadline);
        free(c);
        return;
    }
    TAILQ_INSERT_TAIL(&receiver->connections, c, next);
    receiver->stats.connected++;
    bufferevent_setcb(c->bev, handle_input, handle_output, handle_event, c);
    bufferevent_setwatermark(c->bev, EV_READ, 0, 2 * FT_FRAME_HELLO_BYTES_MAX);
    ft_watch_once_arm(c->deadline, receiver->config.timeout_ns);
    bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

static void handle_accept_error(struct evconnlistener *listener, void *arg)
{
    struct ft_receiver *receiver = arg;

    /* No descriptors: the waiting connection keeps the listener readable, so rest a while. */
    evconnlistener_disable(listener);
    ft_watch_once_arm(receiver->rest, ACCEPT_REST_NS);
}

static void accept_again(void *arg)
{
    struct ft_receiver *receiver = arg;

    evconnlistener_enable(receiver->listener);
}

static int start_listening(struct ft_receiver *receiver, char *error, size_t error_bytes)
{
    int fd = ft_endpoint_listen(receiver->config.listen, &receiver->port, error, error_bytes);

    if (fd < 0)
        return fd;
    receiver->listener = evconnlistener_new(ft_loop_base(receiver->loop), handle_accept, receiver,
                                            LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, -1, fd);
    if (!receiver->listener) {
        close(fd);
        snprintf(error, error_bytes, "no memory");
        return -ENOMEM;
    }
    evconnlistener_set_error_cb(receiver->listener, handle_accept_error);
    return 0;
}

static int prepare(struct ft_receiver *receiver, char *error, size_t error_bytes)
{
    uint64_t seed = 0;

    /* Peers choose their names: they must not know where these are put. */
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        seed = (uint64_t)ft_mono_now().ns;
    receiver->sources = ft_table_new(sizeof(struct source), sizeof(struct source_key),
                                     receiver->config.sources_max, seed);
    receiver->rest = ft_watch_once(receiver->loop, accept_again, receiver);
    if (!receiver->sources || !receiver->rest) {
        snprintf(error, error_bytes, "no memory");
        return -ENOMEM;
    }
    if (ft_tls_wanted(&receiver->config.tls)) {
        receiver->tls = ft_tls_new(&receiver->config.tls, error, error_bytes);
        if (!receiver->tls)
            return -EINVAL;
    }
    return start_listening(receiver, error, error_bytes);
}

struct ft_receiver *ft_receiver_new(struct ft_loop *loop, const struct ft_receiver_config *config,
                                    char *error, size_t error_bytes)
{
    struct ft_receiver *receiver = calloc(1, sizeof(*receiver));

    if (!receiver) {
        snprintf(error, error_bytes, "no memory");
        return NULL;
    }
    receiver->loop = loop;
    receiver->config = *config;
    if (receiver->config.timeout_ns <= 0)
        receiver->config.timeout_ns = FT_STREAM_TIMEOUT_NS;
    TAILQ_INIT(&receiver->connections);
    TAILQ_INIT(&receiver->left);
    if (prepare(receiver, error, error_bytes) < 0) {
        ft_receiver_free(receiver);
        return NULL;
    }
    /* The texts were the caller's to lend only until now. */
    receiver->config.listen = NULL;
    receiver->config.tls = (struct ft_tls_files){0};
    return receiver;
}

void ft_receiver_free(struct ft_receiver *receiver)
{
    struct connection *c;

    if (!receiver)
        return;
    if (receiver->listener)
        evconnlistener_free(receiver->listener);
    while ((c = TAILQ_FIRST(&receiver->connections))) {
        /* What was applied and is not told would be sent again to the next receiver. */
        acknowledge(c);
        forget_connection(c);
        ft_watch_free(c->deadline);
        ft_stream_close_politely(c->bev);
        free(c);
    }
    ft_watch_free(receiver->rest);
    ft_table_free(receiver->sources);
    ft_tls_free(receiver->tls);
    free(receiver);
}

void ft_receiver_stats(const struct ft_receiver *receiver, struct ft_receiver_stats *stats)
{
    *stats = receiver->stats;
}

uint16_t ft_receiver_port(const struct ft_receiver *receiver)
{
    return receiver->port;
}

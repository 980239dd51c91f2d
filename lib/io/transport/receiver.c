// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport/transport.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/table.h"
#include "lib/io/transport/receiver_impl.h"
#include "lib/io/transport/stream.h"

/* How long accepting rests when there are no descriptors left. */
#define ACCEPT_REST_NS  INT64_C(1000000000)
#define INPUT_BYTES_MAX (64u << 20)

/* So long frames are taken before the loop looks at its descriptors again. */
#define SLICE_NS INT64_C(10000000)
/* Where the loop was busy for more than this part of a deadline, there is more time. */
#define BUSY_PART 16

static void report_peer(struct ft_connection *c, bool up, const char *reason)
{
    struct ft_receiver *receiver = c->receiver;

    if (receiver->config.peer)
        receiver->config.peer(receiver->config.arg, c->id, c->address, up, reason);
}

static void forget_connection(struct ft_connection *c)
{
    struct ft_receiver *receiver = c->receiver;

    ft_receiver_leave_source(c);
    if (c->waiting)
        TAILQ_REMOVE(&receiver->returns, c, turn);
    if (receiver->applying == c)
        receiver->applying = NULL;
    ft_receiver_forget_input(c);
    if (!c->named)
        TAILQ_REMOVE(&receiver->strangers, c, unnamed);
    TAILQ_REMOVE(&receiver->connections, c, next);
    receiver->stats.connected--;
}

static void free_connection(struct ft_connection *c)
{
    if (c->known && c->receiver->config.release)
        c->receiver->config.release(c->receiver->config.arg, c->known);
    ft_watch_free(c->deadline);
    free(c);
}

static void close_connection(struct ft_connection *c, const char *reason)
{
    /* One that was refused has been reported already. */
    bool silent = c->closing;

    forget_connection(c);
    bufferevent_free(c->bev);
    if (!silent)
        report_peer(c, false, reason);
    free_connection(c);
}

static void crowd_out(struct ft_connection *c)
{
    close_connection(c, "frame memory is exhausted and this frame was the oldest incomplete one");
}

static void set_deadline(struct ft_connection *c, int64_t ns)
{
    c->busy_ns = ft_loop_busy_ns(c->receiver->loop);
    ft_watch_once_arm(c->deadline, ns);
}

/* Tells the peer why, then closes once that is written. */
static void refuse(struct ft_connection *c, const char *reason)
{
    struct ft_frame frame = {.type = FT_FRAME_REFUSE};

    snprintf(frame.reason, sizeof(frame.reason), "%s", reason);
    ft_stream_write(c->bev, &frame);
    bufferevent_disable(c->bev, EV_READ);
    report_peer(c, false, reason);
    c->closing = true;
    ft_receiver_leave_source(c);
    set_deadline(c, c->receiver->config.timeout_ns);
}

/* Ends a connection that stands, whatever of it waits. */
static void evict(struct ft_connection *c, const char *reason)
{
    struct ft_receiver *receiver = c->receiver;

    receiver->stats.connections_refused += !c->closing;
    if (!c->source || c->gone) {
        close_connection(c, reason);
        return;
    }
    if (c->waiting)
        TAILQ_REMOVE(&receiver->returns, c, turn);
    c->waiting = false;
    evbuffer_drain(bufferevent_get_input(c->bev), c->held);
    refuse(c, reason);
}

/* False when it was refused. */
static bool admit(struct ft_connection *c)
{
    const struct ft_receiver_config *config = &c->receiver->config;
    char reason[FT_STREAM_TEXT_BYTES] = "no memory";
    struct ft_peer_names names;

    if (!config->admit)
        return true;
    if (ft_tls_peer_names(c->bev, &names) == 0)
        c->known = config->admit(config->arg, c->id, c->program, &names, reason, sizeof(reason));
    ft_peer_names_clear(&names);
    if (!c->known) {
        c->receiver->stats.connections_refused++;
        refuse(c, reason);
    }
    return c->known;
}

static int take_hello(struct ft_connection *c, const struct ft_frame *frame)
{
    struct ft_frame welcome = {.type = FT_FRAME_WELCOME, .version = frame->version};
    struct ft_connection *older;
    char reason[64];
    bool fresh;

    if (frame->version < FT_TRANSPORT_OLDEST || frame->version > FT_TRANSPORT_VERSION) {
        c->receiver->stats.malformed++;
        snprintf(reason, sizeof(reason), "protocol version %u is not supported, %u is",
                 frame->version, FT_TRANSPORT_VERSION);
        refuse(c, reason);
        return -EPROTO;
    }
    memcpy(c->id, frame->source_id, sizeof(c->id));
    memcpy(c->program, frame->program, sizeof(c->program));
    if (!admit(c))
        return -EACCES;
    c->source = ft_receiver_find_source(c->receiver, frame, &fresh);
    if (!c->source) {
        c->receiver->stats.connections_refused++;
        refuse(c, "too many sources");
        return -ENOSPC;
    }
    /* The sender has given its old connection up, or is a second one by the same name: either way
     * only one may continue, or the numbers of two would mix. */
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
    c->named = true;
    TAILQ_REMOVE(&c->receiver->strangers, c, unnamed);
    c->frame_max = FT_FRAME_BYTES_MAX;
    bufferevent_setwatermark(c->bev, EV_READ, 0, FT_FRAME_BYTES_MAX);
    report_peer(c, true, "");
    return 0;
}

/* Numbers that are missing later on the sender itself has dropped, and says so. */
static void note_gap(struct ft_connection *c, uint64_t sequence)
{
    const struct ft_receiver_config *config = &c->receiver->config;

    if (!c->heard && config->gap && sequence > c->source->applied + 1)
        config->gap(config->arg, c->id, c->program);
    c->heard = true;
}

static int take_data(struct ft_connection *c, const struct ft_frame *frame)
{
    struct ft_receiver *receiver = c->receiver;
    struct ft_receiver_source *source = c->source;
    int rc;

    if (frame->type == FT_FRAME_RECORDS)
        ft_receiver_note_numbers(receiver, source, &frame->numbers);
    if (frame->sequence <= source->applied) {
        receiver->stats.payloads++;
        receiver->stats.duplicates++;
        return 0;
    }
    note_gap(c, frame->sequence);
    rc = receiver->config.apply(receiver->config.arg, c->known, c->id, c->program, frame->payload,
                                frame->payload_len);
    receiver->applying = rc > 0 ? c : NULL;
    if (rc > 0)
        return FT_STREAM_AGAIN;
    source->applied = frame->sequence;
    receiver->stats.payloads++;
    ft_receiver_count_numbers(receiver, source, &frame->numbers,
                              rc < 0 ? &receiver->stats.records_refused
                                     : &receiver->stats.records_applied);
    if (rc < 0) {
        receiver->stats.refused++;
        refuse(c, "the payload cannot be applied");
        return -EBADMSG;
    }
    receiver->stats.applied++;
    return ft_mono_since_ns(ft_mono_now(), receiver->turn_began) > SLICE_NS ? FT_STREAM_REST : 0;
}

static int handle_frame(void *arg, const struct ft_frame *frame)
{
    struct ft_connection *c = arg;

    if (frame->type == FT_FRAME_HELLO && !c->source)
        return take_hello(c, frame);
    if ((frame->type == FT_FRAME_DATA || frame->type == FT_FRAME_RECORDS) && c->source)
        return take_data(c, frame);
    c->receiver->stats.malformed++;
    refuse(c, "an unexpected frame");
    return -EPROTO;
}

/* One acknowledgement at a time in the output: a peer that does not read gets no more. */
static void acknowledge(struct ft_connection *c)
{
    struct ft_frame ack = {.type = FT_FRAME_ACK};

    if (!c->source || c->acked == c->source->applied ||
        evbuffer_get_length(bufferevent_get_output(c->bev)))
        return;
    c->acked = ack.sequence = c->source->applied;
    ft_stream_write(c->bev, &ack);
}

static void await_turn(struct ft_connection *c)
{
    struct ft_receiver *receiver = c->receiver;

    /* The time that it waits for us is not its own. */
    ft_watch_once_disarm(c->deadline);
    bufferevent_disable(c->bev, EV_READ);
    if (!c->waiting && receiver->applying != c) {
        c->waiting = true;
        TAILQ_INSERT_TAIL(&receiver->returns, c, turn);
    }
    /* Armed anew, one that is due would not come. */
    if (!ft_watch_once_armed(receiver->next_turn))
        ft_watch_once_arm(receiver->next_turn, 0);
}

/* A frame that has begun must end; a HELLO must come at all. */
static void go_on(struct ft_connection *c, bool got_on)
{
    ft_receiver_read(c);
    if (c->held == 0 && c->source)
        ft_watch_once_disarm(c->deadline);
    else if (!ft_watch_once_armed(c->deadline) || (c->source && got_on))
        set_deadline(c, c->receiver->config.timeout_ns);
}

static void take_input(struct ft_connection *c)
{
    size_t before = c->held;
    char reason[FT_STREAM_TEXT_BYTES];
    bool had_source = c->source;
    int ret;

    c->receiver->turn_began = ft_mono_now();
    ret = ft_stream_frames(bufferevent_get_input(c->bev), &c->frame_max, handle_frame, c, reason);
    if (!c->closing && ret < 0) {
        c->receiver->stats.malformed++;
        refuse(c, reason);
    }
    if (c->closing) {
        evbuffer_drain(bufferevent_get_input(c->bev), c->held);
        if (c->gone)
            close_connection(c, "");
        return;
    }
    acknowledge(c);
    if (ret > 0)
        await_turn(c);
    else if (c->gone)
        close_connection(c, "it closed the connection");
    else
        go_on(c, !had_source || c->held < before);
}

static void handle_input(struct bufferevent *bev, void *arg)
{
    struct ft_connection *c = arg;
    struct ft_receiver *receiver = c->receiver;
    struct ft_mono start = ft_mono_now();

    (void)bev;
    if (c->closing || c->gone)
        return;
    if (receiver->applying || c->waiting)
        await_turn(c);
    else
        take_input(c);
    ft_loop_step(receiver->loop, "records", start);
}

bool ft_receiver_waits(const struct ft_receiver *receiver)
{
    return receiver->applying || !TAILQ_EMPTY(&receiver->returns);
}

/* One step of the loop is one round. */
static void take_turn(void *arg)
{
    struct ft_receiver *receiver = arg;
    struct ft_connection *c = receiver->applying;

    if (!c && (c = TAILQ_FIRST(&receiver->returns))) {
        TAILQ_REMOVE(&receiver->returns, c, turn);
        c->waiting = false;
    }
    if (c)
        take_input(c);
    if (receiver->applying || !TAILQ_EMPTY(&receiver->returns))
        ft_watch_once_arm(receiver->next_turn, 0);
}

static void handle_output(struct bufferevent *bev, void *arg)
{
    struct ft_connection *c = arg;
    struct ft_loop *loop = c->receiver->loop;
    struct ft_mono start = ft_mono_now();

    if (!c->closing) {
        acknowledge(c);
    } else if (evbuffer_get_length(bufferevent_get_output(bev)) == 0) {
        forget_connection(c);
        ft_stream_close_politely(c->bev);
        free_connection(c);
    }
    ft_loop_step(loop, "records", start);
}

static void end_input(struct ft_connection *c, struct bufferevent *bev, short what)
{
    char reason[FT_STREAM_TEXT_BYTES];

    /* Before its HELLO it is the handshake that failed, on whichever side. */
    if (ft_stream_reason(bev, what, reason) && !c->source && !c->closing)
        c->receiver->stats.connections_refused++;
    /* What had arrived completely is still applied, and what is begun is ended. */
    if (c->waiting || c->receiver->applying == c) {
        c->gone = true;
        bufferevent_disable(bev, EV_READ | EV_WRITE);
        return;
    }
    close_connection(c, reason);
}

static void handle_event(struct bufferevent *bev, short what, void *arg)
{
    struct ft_connection *c = arg;
    struct ft_loop *loop = c->receiver->loop;
    struct ft_mono start = ft_mono_now();

    if (!(what & BEV_EVENT_CONNECTED))
        end_input(c, bev, what);
    ft_loop_step(loop, "records", start);
}

static void handle_deadline(void *arg)
{
    struct ft_connection *c = arg;
    int64_t busy_ns = ft_loop_busy_ns(c->receiver->loop) - c->busy_ns;

    /* It may have waited for us. */
    if (busy_ns > c->receiver->config.timeout_ns / BUSY_PART) {
        set_deadline(c, busy_ns);
        return;
    }
    if (!c->closing)
        c->receiver->stats.malformed++;
    close_connection(c, c->source ? "it stalled within a frame" : "it did not identify itself");
}

static void accept_one(struct ft_receiver *receiver, int fd, const struct sockaddr *address)
{
    struct ft_connection *c;

    receiver->stats.connections++;
    /* Who says nothing keeps nobody out. */
    if (receiver->stats.connected >= receiver->config.connections_max &&
        (c = TAILQ_FIRST(&receiver->strangers)))
        evict(c, "too many connections, and it was the oldest that had not identified itself");
    if (receiver->stats.connected >= receiver->config.connections_max) {
        ft_receiver_reject(receiver, fd);
        return;
    }
    c = calloc(1, sizeof(*c));
    if (!c || !(c->deadline = ft_watch_once(receiver->loop, handle_deadline, c))) {
        free(c);
        ft_receiver_reject(receiver, fd);
        return;
    }
    c->receiver = receiver;
    c->frame_max = FT_FRAME_HELLO_BYTES_MAX;
    ft_endpoint_format(address, c->address);
    c->bev = ft_stream_new(receiver->loop, receiver->tls, fd, NULL, receiver->config.timeout_ns);
    if (!c->bev || ft_receiver_count_input(c)) {
        receiver->stats.connections_refused++;
        ft_watch_free(c->deadline);
        if (c->bev)
            bufferevent_free(c->bev);
        free(c);
        return;
    }
    TAILQ_INSERT_TAIL(&receiver->connections, c, next);
    TAILQ_INSERT_TAIL(&receiver->strangers, c, unnamed);
    receiver->stats.connected++;
    bufferevent_setcb(c->bev, handle_input, handle_output, handle_event, c);
    bufferevent_setwatermark(c->bev, EV_READ, 0, 2 * FT_FRAME_HELLO_BYTES_MAX);
    set_deadline(c, receiver->config.timeout_ns);
    bufferevent_enable(c->bev, EV_WRITE);
    ft_receiver_read(c);
}

static void handle_accept(struct evconnlistener *listener, evutil_socket_t fd,
                          struct sockaddr *address, int len, void *arg)
{
    struct ft_receiver *receiver = arg;
    struct ft_mono start = ft_mono_now();

    (void)listener;
    (void)len;
    accept_one(receiver, fd, address);
    ft_loop_step(receiver->loop, "records", start);
}

static void handle_accept_error(struct evconnlistener *listener, void *arg)
{
    struct ft_receiver *receiver = arg;

    /* No descriptors: the waiting connection keeps the listener readable, so rest a while. */
    ft_loop_trouble(receiver->loop, "no peer can be accepted: %s", strerror(errno));
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
    receiver->sources =
        ft_table_new(sizeof(struct ft_receiver_source), sizeof(struct ft_receiver_source_key),
                     receiver->config.sources_max, seed);
    receiver->rest = ft_watch_once(receiver->loop, accept_again, receiver);
    receiver->next_turn =
        ft_watch_stage(ft_watch_once(receiver->loop, take_turn, receiver), "records");
    if (!receiver->sources || !receiver->rest || !receiver->next_turn ||
        ft_receiver_open_room(receiver, crowd_out)) {
        snprintf(error, error_bytes, "no memory");
        return -ENOMEM;
    }
    if (ft_tls_configured(&receiver->config.tls)) {
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
    TAILQ_INIT(&receiver->strangers);
    TAILQ_INIT(&receiver->left);
    TAILQ_INIT(&receiver->returns);
    if (receiver->config.input_bytes_max == 0)
        receiver->config.input_bytes_max = INPUT_BYTES_MAX;
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
    struct ft_connection *c;

    if (!receiver)
        return;
    if (receiver->listener)
        evconnlistener_free(receiver->listener);
    ft_receiver_finish(receiver);
    while ((c = TAILQ_FIRST(&receiver->connections))) {
        /* What was applied and is not acknowledged would be sent again to the next receiver. */
        acknowledge(c);
        forget_connection(c);
        ft_stream_close_politely(c->bev);
        free_connection(c);
    }
    ft_watch_free(receiver->rest);
    ft_watch_free(receiver->next_turn);
    ft_receiver_close_room(receiver);
    ft_table_free(receiver->sources);
    ft_tls_free(receiver->tls);
    free(receiver);
}

void ft_receiver_finish(struct ft_receiver *receiver)
{
    while (receiver->applying)
        take_turn(receiver);
}

void ft_receiver_stats(const struct ft_receiver *receiver, struct ft_receiver_stats *stats)
{
    *stats = receiver->stats;
}

int ft_receiver_load_tls(const struct ft_receiver *receiver, const struct ft_tls_files *files,
                         struct ft_tls **loaded, char *error, size_t error_bytes)
{
    return ft_tls_load(receiver->tls, files, loaded, error, error_bytes);
}

void ft_receiver_take_tls(struct ft_receiver *receiver, struct ft_tls *loaded)
{
    struct ft_connection *c, *next;
    char reason[FT_STREAM_TEXT_BYTES];

    ft_tls_free(receiver->tls);
    receiver->tls = loaded;
    if (!ft_tls_has_list(loaded))
        return;
    ft_receiver_finish(receiver);
    for (c = TAILQ_FIRST(&receiver->connections); c; c = next) {
        next = TAILQ_NEXT(c, next);
        if (!c->closing && !ft_tls_still_accepts(receiver->tls, c->bev, reason, sizeof(reason)))
            evict(c, reason);
    }
}

uint16_t ft_receiver_port(const struct ft_receiver *receiver)
{
    return receiver->port;
}

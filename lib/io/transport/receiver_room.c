// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of frames that are not complete yet. Where all inputs together hold more than they
 * may, nobody is read from for one step of the loop: complete frames are applied. If that was not
 * enough, who has waited for the end of its frame longest is cut off, until a quarter of the room
 * is free: a sender that continues is not among them, and one that is cut off reconnects
 * and has lost nothing.
 */
#include "config.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/writer.h"
#include "lib/io/transport/frame.h"
#include "lib/io/transport/receiver_impl.h"

#define LOOK_AGAIN_NS INT64_C(1000000)

static void crowd(struct ft_receiver *receiver)
{
    struct ft_connection *c;

    receiver->crowded = true;
    TAILQ_FOREACH(c, &receiver->connections, next)
    bufferevent_disable(c->bev, EV_READ);
    ft_watch_once_arm(receiver->relief, 0);
}

static void count(struct evbuffer *in, const struct evbuffer_cb_info *info, void *arg)
{
    struct ft_connection *c = arg;
    struct ft_receiver *receiver = c->receiver;

    if (c->held && (info->n_deleted || evbuffer_get_length(in) == 0))
        TAILQ_REMOVE(&receiver->holders, c, holding);
    else if (c->held || evbuffer_get_length(in) == 0)
        goto moved;
    if (evbuffer_get_length(in))
        TAILQ_INSERT_TAIL(&receiver->holders, c, holding);
moved:
    receiver->held += evbuffer_get_length(in) - c->held;
    c->held = evbuffer_get_length(in);
    if (receiver->held > receiver->config.input_bytes_max && !receiver->crowded)
        crowd(receiver);
}

int ft_receiver_count_input(struct ft_connection *c)
{
    c->counted = evbuffer_add_cb(bufferevent_get_input(c->bev), count, c);
    return c->counted ? 0 : -ENOMEM;
}

void ft_receiver_forget_input(struct ft_connection *c)
{
    struct ft_receiver *receiver = c->receiver;

    if (c->counted)
        evbuffer_remove_cb_entry(bufferevent_get_input(c->bev), c->counted);
    if (c->held)
        TAILQ_REMOVE(&receiver->holders, c, holding);
    receiver->held -= c->held;
    c->held = 0;
    c->counted = NULL;
}

void ft_receiver_read(struct ft_connection *c)
{
    if (!c->receiver->crowded)
        bufferevent_enable(c->bev, EV_READ);
}

static void relieve(void *arg)
{
    struct ft_receiver *receiver = arg;
    struct ft_connection *c;

    /* Complete frames are applied before anybody is cut off. */
    if (receiver->applying || !TAILQ_EMPTY(&receiver->returns)) {
        ft_watch_once_arm(receiver->relief, LOOK_AGAIN_NS);
        return;
    }
    while (receiver->held > receiver->config.input_bytes_max / 4 * 3 &&
           (c = TAILQ_FIRST(&receiver->holders))) {
        receiver->stats.crowded_out++;
        receiver->crowd_out(c);
    }
    receiver->crowded = false;
    TAILQ_FOREACH(c, &receiver->connections, next)
    if (!c->closing && !c->gone)
        bufferevent_enable(c->bev, EV_READ);
}

int ft_receiver_open_room(struct ft_receiver *receiver, void (*crowd_out)(struct ft_connection *c))
{
    receiver->crowd_out = crowd_out;
    TAILQ_INIT(&receiver->holders);
    receiver->relief = ft_watch_once(receiver->loop, relieve, receiver);
    return receiver->relief ? 0 : -ENOMEM;
}

void ft_receiver_close_room(struct ft_receiver *receiver)
{
    ft_watch_free(receiver->relief);
}

void ft_receiver_reject(struct ft_receiver *receiver, int fd)
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

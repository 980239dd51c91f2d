// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport/stream.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/io/endpoint.h"

/* What one read or write takes at most, so that one peer does not hold the loop. */
#define CHUNK_BYTES (256 << 10)

struct bufferevent *ft_stream_new(struct ft_loop *loop, struct ft_tls *tls, int fd,
                                  const char *host, int64_t timeout_ns)
{
    struct event_base *base = ft_loop_base(loop);
    struct bufferevent *bev;

    ft_endpoint_tune(fd, timeout_ns);
    if (tls)
        bev = ft_tls_wrap(tls, base, fd, host);
    else
        bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (!bev) {
        close(fd);
        return NULL;
    }
    bufferevent_set_max_single_read(bev, CHUNK_BYTES);
    bufferevent_set_max_single_write(bev, CHUNK_BYTES);
    return bev;
}

int ft_stream_frames(struct evbuffer *in, const size_t *frame_max,
                     int (*on_frame)(void *arg, const struct ft_frame *frame), void *arg,
                     char reason[FT_STREAM_TEXT_BYTES])
{
    size_t needed = FT_FRAME_LENGTH_BYTES;

    while (evbuffer_get_length(in) >= needed) {
        const uint8_t *bytes = evbuffer_pullup(in, (ev_ssize_t)needed);
        struct ft_frame frame;
        size_t total;
        int ret;

        if (!bytes) {
            snprintf(reason, FT_STREAM_TEXT_BYTES, "no memory");
            return -ENOMEM;
        }
        switch (ft_frame_decode(bytes, needed, *frame_max, &frame, &total)) {
        case FT_FRAME_SHORT:
            needed = total;
            continue;
        case FT_FRAME_BAD:
            snprintf(reason, FT_STREAM_TEXT_BYTES,
                     "it sent data that is not a frame of this protocol");
            return -EBADMSG;
        case FT_FRAME_UNKNOWN:
            snprintf(reason, FT_STREAM_TEXT_BYTES, "it sent a frame of an unknown type");
            return -EBADMSG;
        case FT_FRAME_OK:
            break;
        }
        ret = on_frame(arg, &frame);
        if (ret && ret != FT_STREAM_REST)
            return ret;
        evbuffer_drain(in, total);
        if (ret)
            return ret;
        needed = FT_FRAME_LENGTH_BYTES;
    }
    return 0;
}

int ft_stream_rest(struct bufferevent *bev, const size_t *frame_max,
                   int (*on_frame)(void *arg, const struct ft_frame *frame), void *arg,
                   char reason[FT_STREAM_TEXT_BYTES])
{
    struct evbuffer *in = evbuffer_new();
    uint8_t chunk[4096];
    ssize_t n;
    int ret;

    if (!in)
        return -ENOMEM;
    evbuffer_remove_buffer(bufferevent_get_input(bev), in,
                           evbuffer_get_length(bufferevent_get_input(bev)));
    while (!ft_tls_is(bev) && evbuffer_get_length(in) < FT_FRAME_BYTES_MAX &&
           (n = recv(bufferevent_getfd(bev), chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
        evbuffer_add(in, chunk, (size_t)n);
    ret = ft_stream_frames(in, frame_max, on_frame, arg, reason);
    evbuffer_free(in);
    return ret;
}

void ft_stream_write(struct bufferevent *bev, const struct ft_frame *frame)
{
    struct ft_writer w;

    ft_writer_init(&w, FT_FRAME_HELLO_BYTES_MAX + FT_FRAME_REASON_BYTES_MAX);
    ft_frame_write(&w, frame);
    if (ft_writer_ok(&w))
        bufferevent_write(bev, w.bytes, w.len);
    ft_writer_free(&w);
}

void ft_stream_close_politely(struct bufferevent *bev)
{
    struct evbuffer_iovec out;
    uint8_t bytes[4096];
    size_t most = FT_FRAME_BYTES_MAX;
    ssize_t n;
    int fd = bufferevent_getfd(bev);

    /* The bufferevent holds its output frozen: it can be looked at, not taken. */
    if (evbuffer_peek(bufferevent_get_output(bev), -1, NULL, &out, 1) > 0 && out.iov_len > 0) {
        if (ft_tls_is(bev))
            ft_tls_write_now(bev, out.iov_base, out.iov_len);
        else
            send(fd, out.iov_base, out.iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    /* Closing with bytes unread would reset the connection, and the peer lose what was written. */
    shutdown(fd, SHUT_WR);
    while (most >= sizeof(bytes) && (n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        most -= (size_t)n;
    bufferevent_free(bev);
}

bool ft_stream_reason(struct bufferevent *bev, short what, char reason[FT_STREAM_TEXT_BYTES])
{
    int err = errno;

    if (what & BEV_EVENT_ERROR && ft_tls_reason(bev, reason, FT_STREAM_TEXT_BYTES))
        return true;
    if (what & BEV_EVENT_ERROR && err)
        snprintf(reason, FT_STREAM_TEXT_BYTES, "%s", strerror(err));
    else if (what & BEV_EVENT_TIMEOUT)
        snprintf(reason, FT_STREAM_TEXT_BYTES, "%s", strerror(ETIMEDOUT));
    else
        snprintf(reason, FT_STREAM_TEXT_BYTES, "it closed the connection");
    return false;
}

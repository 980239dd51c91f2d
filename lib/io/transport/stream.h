// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_TRANSPORT_STREAM_H
#define FT_IO_TRANSPORT_STREAM_H
/*
 * What sender and receiver share: a bufferevent, plain or TLS, that carries frames.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/io/loop.h"
#include "lib/io/transport/frame.h"
#include "lib/io/transport/tls.h"

#define FT_STREAM_TIMEOUT_NS (INT64_C(15) * 1000000000)
#define FT_STREAM_TEXT_BYTES 256

struct bufferevent;
struct evbuffer;

/* Takes a connected descriptor; tls may be NULL, host is for the end that connects. Callbacks are
 * deferred to the loop; the caller sets and enables them. NULL without memory, fd closed. */
struct bufferevent *ft_stream_new(struct ft_loop *loop, struct ft_tls *tls, int fd,
                                  const char *host, int64_t timeout_ns);

/* From on_frame: this frame is not done, call with it again; it is, and the others wait. */
#define FT_STREAM_AGAIN 1
#define FT_STREAM_REST  2

/* Takes every complete frame off the buffer and calls on_frame until it returns non-zero, which is
 * returned: then nothing of the stream is touched any more but a frame that is done. -EBADMSG with
 * a reason when what comes next is not a frame of at most *frame_max bytes; on_frame may change
 * that.
 */
int ft_stream_frames(struct evbuffer *in, const size_t *frame_max,
                     int (*on_frame)(void *arg, const struct ft_frame *frame), void *arg,
                     char reason[FT_STREAM_TEXT_BYTES]);

/* Frames that had arrived before the stream broke, and which libevent will not read any more. As
 * ft_stream_frames(). Plain TCP only: a broken TLS stream yields nothing. */
int ft_stream_rest(struct bufferevent *bev, const size_t *frame_max,
                   int (*on_frame)(void *arg, const struct ft_frame *frame), void *arg,
                   char reason[FT_STREAM_TEXT_BYTES]);

/* Appends a frame other than DATA to the output. */
void ft_stream_write(struct bufferevent *bev, const struct ft_frame *frame);

/* Ends the stream so that the peer reads the little that is still in the output. Frees bev. */
void ft_stream_close_politely(struct bufferevent *bev);

/* Words for an event that ended the stream (what: BEV_EVENT_ flags). errno is that of the event.
 * True: it was TLS that failed. */
bool ft_stream_reason(struct bufferevent *bev, short what, char reason[FT_STREAM_TEXT_BYTES]);

#endif

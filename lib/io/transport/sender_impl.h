// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_TRANSPORT_SENDER_IMPL_H
#define FT_IO_TRANSPORT_SENDER_IMPL_H
/*
 * A sender (transport.h) within its files: its connection in sender.c, its queue in sender_queue.c.
 * Private to both.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/base/clock.h"
#include "lib/io/transport/candidates.h"
#include "lib/io/transport/transport.h"

struct bufferevent;

struct ft_payload {
    TAILQ_ENTRY(ft_payload) next;
    uint64_t sequence;
    uint64_t last; /* number of its last record */
    uint32_t records;
    struct ft_mono queued_at;
    size_t frame_len;
    uint8_t frame[];
};

TAILQ_HEAD(ft_payloads, ft_payload);

struct ft_sender {
    struct ft_loop *loop;
    struct ft_sender_config config;       /* its texts are those below */
    struct ft_sender_transport transport; /* send is NULL: TCP */
    char *source_id, *program;
    struct ft_candidates candidates;
    size_t welcomed_by; /* the candidate whose WELCOME was the last */
    struct ft_watch *back;
    struct ft_connect *probe; /* of a candidate that is preferred to that of the connection */
    size_t probed;
    int64_t back_ns;
    bool returning; /* to the one that was probed, once nothing is in flight */
    struct ft_tls *tls;
    struct ft_connect *connect;
    struct bufferevent *bev;
    size_t frame_max;
    bool welcomed;
    bool progressed; /* something was acknowledged on this connection */
    struct ft_mono welcomed_at;
    struct ft_watch *retry, *deadline, *flushed;
    int64_t backoff_ns;
    uint64_t random;
    /* In the order of their numbers; those before unsent are in flight. */
    struct ft_payloads queue;
    struct ft_payload *unsent;
    uint64_t sequence_last; /* given */
    uint64_t sequence_sent; /* on any connection so far */
    uint64_t flight_last;   /* on this connection */
    size_t flight_bytes;
    struct ft_sender_stats stats;
    void (*on_flushed)(void *arg);
    void *flushed_arg;
};

static inline size_t ft_payload_cost(const struct ft_payload *payload)
{
    return sizeof(*payload) + payload->frame_len;
}

/* Copies a payload to the queue's end, dropping the oldest that are not in flight. -EMSGSIZE,
 * -ENOBUFS, -ENOMEM. */
int ft_sender_queue(struct ft_sender *sender, const void *bytes, size_t len, uint32_t records);

/* Takes off the queue what is applied: this number and all below. Returns the bytes it held. */
size_t ft_sender_remove_applied(struct ft_sender *sender, uint64_t sequence);

/* Records in the queue that an earlier receiver may have applied and not acknowledged. */
uint64_t ft_sender_begun(const struct ft_sender *sender);

#endif

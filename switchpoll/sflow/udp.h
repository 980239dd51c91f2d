// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_UDP_H
#define FT_SWITCHPOLL_SFLOW_UDP_H
/*
 * The socket on which sFlow arrives: a large receive buffer, many datagrams a system call, and the
 * kernel's count of what the buffer had no room for. The time of a datagram is when it was taken:
 * a time, a count and the sender with each would cost a fifth of all that is done for it. Who
 * exports is said inside the datagram; whoever sent it may be a relay.
 *
 * A wake-up takes a bounded number of datagrams, so that timers and other sockets are served. Where
 * more than some thousand come in a second it takes those of 2 ms, unless the buffer is too small.
 * Output: datagrams to a callback, which borrows the bytes. Owner: the caller. Thread: the loop's;
 * without a loop the caller's, who waits for the descriptor and takes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/io/loop.h"

struct ft_udp;

struct ft_udp_config {
    const char *listen;    /* "host:port", "[v6]:port"; ":port" is all IPv4 and IPv6 addresses */
    uint64_t buffer_bytes; /* requested */
    bool shared;           /* others bind the same endpoint (SO_REUSEPORT) */
    int given;             /* a UDP socket to take over instead, which is ours from then; 0: none */
    void (*on_datagram)(void *arg, const uint8_t *bytes, size_t len, struct ft_wall when);
    void *arg;
};

struct ft_udp_stats {
    uint64_t datagrams;    /* handed to on_datagram */
    uint64_t kernel_drops; /* the receive buffer was full, or a checksum wrong */
    uint64_t buffer_bytes; /* effective */
};

/* Binds or takes over, and watches where there is a loop (may be NULL). NULL with a complaint that
 * names the endpoint. */
struct ft_udp *ft_udp_new(struct ft_loop *loop, const struct ft_udp_config *config, char *error,
                          size_t error_bytes);
void ft_udp_free(struct ft_udp *udp);

/* Takes a bounded number of datagrams, for a caller without a loop. Returns for how many
 * milliseconds the descriptor is best left alone; 0: until it can be read. */
int ft_udp_take(struct ft_udp *udp);
int ft_udp_fd(const struct ft_udp *udp);

/* Takes what waits in the socket now, without the loop: before it is closed. */
void ft_udp_drain(struct ft_udp *udp);

/* Wants another buffer size. That of a given socket is whoever's made it where we may not. */
uint64_t ft_udp_set_buffer(struct ft_udp *udp, uint64_t bytes);

/* The port that was bound, for a config with port 0. */
uint16_t ft_udp_port(const struct ft_udp *udp);

void ft_udp_stats(struct ft_udp *udp, struct ft_udp_stats *stats);

#endif

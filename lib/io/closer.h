// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_CLOSER_H
#define FT_IO_CLOSER_H
/*
 * Closes what other processes had a hand in, where that can take as long as they like: a descriptor
 * that came over a Unix socket may be of a TCP connection that lingers, or of a file whose file
 * system does not answer, and one that nobody took is closed with the socket in whose queue it is.
 *
 * Sockets of SOCK_SEQPACKET alone. One thread is started at once, for sockets, others for what may
 * hang. Owner: the caller. Thread: one; none of the calls waits for what is closed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ft_closer;

struct ft_closer_stats {
    uint64_t unwanted; /* connections with descriptors that nobody took */
    uint64_t closing;  /* descriptors that are not closed yet */
};

/* NULL without memory or descriptors. */
struct ft_closer *ft_closer_new(void);

/* Waits for sockets; what hangs is left to its thread. Takes NULL. */
void ft_closer_free(struct ft_closer *closer);

/* Whether one more connection may be accepted. */
bool ft_closer_may_accept(struct ft_closer *closer);

/* Whether ft_closer_take() has room for one more of this user. */
bool ft_closer_may_take(struct ft_closer *closer, uint64_t user);

/* Closes a descriptor that a process of this user sent. There must be room. */
void ft_closer_take(struct ft_closer *closer, int fd, uint64_t user);

/* Closes a connection, or a socket that listens. */
void ft_closer_hang_up(struct ft_closer *closer, int fd);

/* As recv() with MSG_DONTWAIT, but -errno. -EBADMSG: the next message has descriptors, and stays in
 * the queue. */
ssize_t ft_closer_receive(int fd, uint8_t *bytes, size_t len);

struct ft_closer_stats ft_closer_stats(struct ft_closer *closer);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_LISTEN_LOCAL_H
#define FT_IO_LISTEN_LOCAL_H
/*
 * A Unix socket for the processes of a host, of every user: packets in order (SOCK_SEQPACKET).
 * Thread: any.
 */

/* The listening descriptor, non-blocking; the socket that a program that was killed has left at the
 * path is replaced. -EADDRINUSE where one lives, or another file is; -ENAMETOOLONG; -errno. */
int ft_listen_local(const char *path);

#endif

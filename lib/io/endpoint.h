// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_ENDPOINT_H
#define FT_IO_ENDPOINT_H
/*
 * TCP endpoints as they stand in configs ("host:port", "[fd00::1]:port", ":port"), and the sockets
 * made of them: bound ones, and outgoing ones that are connected in the loop. Every descriptor is
 * close-on-exec and non-blocking.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/loop.h"

#define FT_HOST_BYTES     256
#define FT_ENDPOINT_BYTES (FT_HOST_BYTES + 8)

struct sockaddr;

/* An empty host is given as "". -EINVAL when the text is not an endpoint. */
int ft_endpoint_split(const char *text, char host[FT_HOST_BYTES], uint16_t *port);

/* Whether only this machine reaches the endpoint: localhost, 127.0.0.0/8, ::1. Another name is not
 * looked up. */
bool ft_endpoint_is_local(const char *text);

/* "10.0.0.1:9477" or "[fd00::1]:9477" of a socket address. */
void ft_endpoint_format(const struct sockaddr *address, char text[FT_ENDPOINT_BYTES]);

/* A listening socket; an empty host means every address of both families. *bound is its port, for
 * an endpoint with port 0. Returns the descriptor, or -errno with a complaint that names the
 * endpoint. Blocks while a host name is looked up. */
int ft_endpoint_listen(const char *text, uint16_t *bound, char *error, size_t error_bytes);

/* A kept-alive, undelayed TCP stream that fails when its peer is silent about our data for
 * timeout_ns. */
void ft_endpoint_tune(int fd, int64_t timeout_ns);

struct ft_connect;

/* Looks the host up and connects to its addresses one after the other, each for at most timeout_ns.
 * Calls done once, from the loop: with a descriptor that is then the callee's, or with -errno and a
 * reason. done may free it. NULL without memory. */
struct ft_connect *ft_connect_new(struct ft_loop *loop, const char *host, uint16_t port,
                                  int64_t timeout_ns,
                                  void (*done)(void *arg, int fd, const char *reason), void *arg);

/* Without done having been called, it never will be. */
void ft_connect_free(struct ft_connect *connect);

#endif

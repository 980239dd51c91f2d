// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_ASTRA_NET_H
#define FT_SIM_ASTRA_NET_H
/*
 * The event queue and the network under the simulated ranks. A part of astra.c; nobody else
 * includes this.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/sim/astra.h"

struct ft_astra_net;

/* What happens to whom. The callee knows the meaning of who and what. */
struct ft_astra_calls {
    void *arg;
    void (*wake)(void *arg, uint32_t rank);                 /* by ft_astra_wake() */
    void (*sent)(void *arg, uint32_t rank, void *what);     /* a message has arrived: its sender */
    void (*received)(void *arg, uint32_t rank, void *what); /* and its receiver */
};

struct ft_astra_net *ft_astra_net_new(const struct ft_astra_network *network,
                                      const struct ft_astra_calls *calls);
void ft_astra_net_free(struct ft_astra_net *net);

uint64_t ft_astra_now(const struct ft_astra_net *net);

/* Calls wake() at a time. */
void ft_astra_wake(struct ft_astra_net *net, uint64_t time, uint32_t rank);

/* The n-th send of (tag, src, dst, bytes) belongs to the n-th receive. what: of the call; NULL: no
 * call for a sender. */
void ft_astra_send(struct ft_astra_net *net, uint64_t tag, uint32_t src, uint32_t dst,
                   uint64_t bytes, void *what);
void ft_astra_receive(struct ft_astra_net *net, uint64_t tag, uint32_t src, uint32_t dst,
                      uint64_t bytes, void *what);

/* The next moment; false when nothing is left, memory is out, or something ends beyond 2^62 ns. */
bool ft_astra_proceed(struct ft_astra_net *net);
bool ft_astra_net_failed(const struct ft_astra_net *net);
bool ft_astra_net_endless(const struct ft_astra_net *net);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_ASTRA_SYSTEM_H
#define FT_SIM_ASTRA_SYSTEM_H
/*
 * The system layer of one simulated rank: its timer, and collectives cut into streams that run in
 * order. A part of astra.c; nobody else includes this.
 */
#include "lib/sim/astra_net.h"

struct ft_astra_sys;

/* done(): a node has come to its end. */
struct ft_astra_owner {
    void *arg;
    void (*done)(void *arg, uint32_t rank, uint32_t node);
};

/* in and owner are borrowed. NULL without memory. */
struct ft_astra_sys *ft_astra_sys_new(const struct ft_astra_input *in, struct ft_astra_net *net,
                                      uint32_t rank, const struct ft_astra_owner *owner);
void ft_astra_sys_free(struct ft_astra_sys *sys);

/* A node that ends after some time. */
void ft_astra_sys_sleep(struct ft_astra_sys *sys, uint32_t node, uint64_t ns);

/* A collective; NULL, or what cannot be. */
const char *ft_astra_sys_collective(struct ft_astra_sys *sys, uint32_t node);

/* The timer that ft_astra_wake() was called for. */
void ft_astra_sys_wake(struct ft_astra_sys *sys);

/* A message of a collective has arrived: what was given to ft_astra_receive(). */
void ft_astra_sys_received(struct ft_astra_sys *sys, void *what);

/* Whether memory ran out. */
bool ft_astra_sys_failed(const struct ft_astra_sys *sys);

#endif

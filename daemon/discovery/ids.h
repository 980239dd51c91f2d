// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_IDS_H
#define FT_DAEMON_DISCOVERY_IDS_H
/*
 * What devices call themselves and each other, to numbers: chassis ids, system names, addresses,
 * port ids. An id that stands for two things stands for none: it is never guessed which. Thread:
 * one.
 */
#include <stdint.h>

#include "lib/base/tuple.h"
#include "proto/fabrictrace.pb-c.h"

#define FT_IDS_NONE    UINT32_MAX
#define FT_IDS_SEVERAL (UINT32_MAX - 1)

/* Scopes beside the numbers of switches, in which the ids of their ports live. */
#define FT_IDS_CHASSIS   (UINT32_MAX - 1)
#define FT_IDS_NAMES     (UINT32_MAX - 2)
#define FT_IDS_ADDRESSES (UINT32_MAX - 3)
#define FT_IDS_DEVICES   (UINT32_MAX - 4) /* that are no switches of ours */

struct ft_ids;

/* NULL without memory. */
struct ft_ids *ft_ids_new(void);
void ft_ids_free(struct ft_ids *ids);

/* An id of this kind in a namespace means value. NULL and "" mean nothing; MAC addresses are the
 * same in either case. What finds no memory, or is longer than 127 bytes, is left out. */
void ft_ids_add(struct ft_ids *ids, uint32_t namespace, Fabrictrace__IdKind kind, const char *text,
                uint32_t value);
/* Likewise for the id that a port gives itself in LLDP: it stands above what other names of ports
 * look like. */
void ft_ids_add_own(struct ft_ids *ids, uint32_t namespace, Fabrictrace__IdKind kind,
                    const char *text, uint32_t value);
void ft_ids_add_address(struct ft_ids *ids, const struct ft_ip *address, uint32_t value);

/* What it means, FT_IDS_NONE or FT_IDS_SEVERAL. */
uint32_t ft_ids_find(const struct ft_ids *ids, uint32_t namespace, Fabrictrace__IdKind kind,
                     const char *text);
uint32_t ft_ids_find_own(const struct ft_ids *ids, uint32_t namespace, Fabrictrace__IdKind kind,
                         const char *text);
uint32_t ft_ids_find_address(const struct ft_ids *ids, const struct ft_ip *address);

#endif

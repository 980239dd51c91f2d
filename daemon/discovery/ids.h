// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_IDS_H
#define FT_DAEMON_DISCOVERY_IDS_H
/*
 * Maps the ids by which devices name themselves and each other (chassis ids, system names,
 * addresses, port ids) to numbers. An id that two devices or ports have identifies neither. Thread:
 * one.
 */
#include <stdint.h>

#include "lib/base/tuple.h"
#include "proto/fabrictrace.pb-c.h"

#define FT_IDS_NONE    UINT32_MAX
#define FT_IDS_SEVERAL (UINT32_MAX - 1)

/* Namespaces. The ids of a switch's ports are in the namespace of the switch's number. */
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
/* Likewise for the id that a port gives itself in LLDP: it has precedence over its other names. */
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

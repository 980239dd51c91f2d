// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_HASHED_H
#define FT_SIM_HASHED_H
/*
 * The path that a flow takes where each switch chooses by a function of its header: learnt
 * functions, and CRC and XOR as switches have them. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "lib/fabric/choice.h"
#include "lib/fabric/paths.h"

/* Which of the links a switch takes for a flow that comes in by that port; FT_NONE: not known. */
typedef uint32_t (*ft_hashed_fn)(void *arg, const struct ft_choice *choice, uint32_t in,
                                 const struct ft_tuple *tuple);

/* From the port that the source hangs on. dead: by port; NULL: none. routed: switches do not choose
 * links either behind which all ways are dead, and the last one chooses among the ports of the NIC,
 * if there are several; else fn knows, and of those ports it is the first. -EHOSTUNREACH; -ENODATA
 * where a choice is not known. */
int ft_hashed_path(const struct ft_topology *t, const bool *dead, const struct ft_tuple *tuple,
                   uint32_t from, uint32_t dst_nic, bool routed, ft_hashed_fn fn, void *arg,
                   struct ft_path *path);

enum ft_named_hash {
    FT_HASHED_CRC16, /* CCITT: polynomial 0x1021, from 0xffff */
    FT_HASHED_CRC32, /* of Ethernet */
    FT_HASHED_XOR,   /* of 16-bit words, its halves folded */
};

/* The hash of addresses, ports and protocol in the order of the header; its remainder by the number
 * of links is the choice of a switch. */
uint32_t ft_named_hash(enum ft_named_hash hash, const struct ft_tuple *tuple);

#endif

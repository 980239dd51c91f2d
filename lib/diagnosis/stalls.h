// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_STALLS_H
#define FT_DIAGNOSIS_STALLS_H
/*
 * The link that makes operations stall now and then: one that loses packets.
 *
 * It delays who crosses it by chance: the more of a pair's packets, the more often. A pair of which
 * all packets arrived for a while acquits it of nothing. So each explanation is weighed by how
 * likely it makes what was seen, with two chances for an operation to stall: one where what is
 * suspected has to do with the pair, and one where it has not. Suspected are links, for whom they
 * carry data and, with a chance of its own, for whom they carry the answers; ranks and hosts, as
 * senders and as receivers; and pairs. A link is named where it is far likelier than chance, and
 * than all else that is suspected. Pure. Owner: the caller. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

struct ft_task;

/* What a pair did lately. */
struct ft_stalls_pair {
    uint32_t from, to;           /* ranks, by any numbers */
    uint32_t from_host, to_host; /* likewise */
    const uint32_t *links;       /* that all of its data cross, by any numbers; borrowed */
    const uint32_t *answers;     /* that what answers them crosses, as far as it is known */
    uint32_t link_count, answer_count;
    uint32_t operations, stalled;
};

struct ft_stalls_found {
    uint32_t link;
    uint32_t pairs, pairs_stalled;             /* whose data cross it */
    uint32_t operations, stalled;              /* of these */
    uint32_t other_operations, others_stalled; /* of pairs that it has nothing to do with */
    double odds; /* a logarithm: how much likelier it is than whatever comes next */
};

/* 1: found one; 0: none is; -ENOMEM. Pairs without links count for nothing. */
int ft_stalls_find(const struct ft_stalls_pair *pairs, size_t count, struct ft_stalls_found *found,
                   struct ft_task *task);

#endif

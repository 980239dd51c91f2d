// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PROBE_COURSE_H
#define FT_AGENT_PROBE_COURSE_H
/*
 * The probes of one flow, and which answer is of which.
 *
 * A round is one probe for each switch that has not answered: TTL 1 to switches - 1, so that one
 * hop is left to the last switch, and two to the NIC behind it. There are up to three rounds, more
 * than a second apart, which is what routers limit their answers to. An answer counts when it
 * quotes the tuple, the identification, the checksum and, where it goes so far, the nonce of a
 * probe that was sent and not answered: they are random. Pure: times and random numbers come in.
 * Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/probe/packet.h"
#include "lib/base/clock.h"
#include "proto/ttl_answer.h"

/* Switches of a path at most. */
#define FT_COURSE_SWITCHES 16
#define FT_COURSE_ROUNDS   3
/* From one round to the next, of this flow or another. */
#define FT_COURSE_ROUND_NS INT64_C(1200000000)

struct ft_course_sent {
    struct ft_mono at;
    uint16_t id, udp_checksum;
    uint64_t nonce;
};

struct ft_course_hop {
    uint32_t sent;
    struct ft_course_sent probes[FT_COURSE_ROUNDS];
    bool answered;
    struct ft_ip address;
    int64_t rtt_ns;
};

struct ft_course {
    struct ft_tuple tuple;
    uint32_t dst_qp;
    uint8_t dscp;
    uint32_t switches;
    uint32_t rounds;                               /* that were begun */
    struct ft_mono begun;                          /* the last of them */
    struct ft_course_hop hops[FT_COURSE_SWITCHES]; /* by TTL - 1 */
};

/* The numbers of another flow's probes cannot be asked for: why not, NULL: they can. */
const char *ft_course_complaint(const struct ft_tuple *tuple, uint32_t dst_qp, uint32_t dscp,
                                uint32_t switches);

/* Begins the next round when it is time. */
bool ft_course_is_due(const struct ft_course *c, struct ft_mono now);
void ft_course_begin_round(struct ft_course *c, struct ft_mono now);

/* Whether a switch is to be probed in this round; its probe, with numbers from `random`. */
bool ft_course_wants(const struct ft_course *c, uint32_t ttl);
size_t ft_course_shoot(struct ft_course *c, uint32_t ttl, struct ft_mono now, uint64_t random[2],
                       uint8_t bytes[FT_PROBE_BYTES]);

/* False: it does not answer one of these. */
bool ft_course_take(struct ft_course *c, const struct ft_ip *from,
                    const struct ft_ttl_answer *answer, struct ft_mono now);

/* All have answered, or are no longer waited for. */
bool ft_course_is_over(const struct ft_course *c, struct ft_mono now);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PLANS_ASK_H
#define FT_AGENT_PLANS_ASK_H
/*
 * What the wrap of libibverbs in a job sends (agent/shim/protocol.h), decoded. All of it is the
 * job's to choose and believed of nothing but its own queue pairs. Pure. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/shim/protocol.h"
#include "lib/base/tuple.h"

struct ft_plan_ask {
    enum ft_shim_kind kind; /* ASK or DONE */
    uint32_t qp, peer;
    struct ft_ip src, dst;
    char job[FT_SHIM_JOB];        /* a name that a file can have; "" is none */
    uint16_t sport;               /* of DONE */
    enum ft_shim_outcome outcome; /* of DONE */
};

/* -EBADMSG where it is none. */
int ft_plan_ask_decode(const uint8_t *bytes, size_t len, struct ft_plan_ask *ask);

#endif

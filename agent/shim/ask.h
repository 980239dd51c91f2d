// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_SHIM_ASK_H
#define FT_AGENT_SHIM_ASK_H
/*
 * Asks the agent for a source port, in a training process: in bounded time, without memory of its
 * own, without a thread, and without a word when nobody answers. Thread: any.
 */
#include <stdint.h>

#include "agent/shim/protocol.h"

struct ft_shim_question {
    uint32_t qp, peer;
    uint8_t src[16], dst[16]; /* GIDs */
};

/* The port, 0 when there is none or nobody answers within 20 ms
 * (FABRICTRACE_PLAN_WAIT_MS); then *fd is -1. Otherwise *fd is
 * for ft_shim_done(). After two that nobody answered none is asked for ten seconds. */
uint16_t ft_shim_ask(const struct ft_shim_question *question, int *fd);

/* Reports what became of the port, and closes fd. */
void ft_shim_done(int fd, const struct ft_shim_question *question, uint16_t sport,
                  enum ft_shim_outcome outcome);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_STATES_STATES_H
#define FT_AGENT_STATES_STATES_H
/*
 * Second sources about jobs of this host: NCCL's RAS subsystem is asked over TCP, and dumps of
 * PyTorch's Flight Recorder are read from a folder; each as fabrictrace.rank_states.v1. One answer
 * or dump at a time, its text in small steps of the loop.
 *
 * RAS answers for all hosts of a job: who has the lowest rank of a communicator that answered
 * reports it. Where that is always another host, this one asks ten times as rarely. Owner: the
 * caller, who keeps loop, uplink and interfaces alive. Thread: the loop's.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/capture/interfaces.h"
#include "agent/report/uplink.h"
#include "lib/io/loop.h"

#define FT_STATES_ADDRESSES 16

/* Bytes at a time, at most: an answer or a dump, what it is read into, and its record. */
#define FT_STATES_BYTES_MAX (UINT64_C(40) << 20)

struct ft_states;

/* Addresses and the folder's name are copied; the rest is borrowed for good. */
struct ft_states_config {
    char *const *addresses; /* host:port of RAS; ADDRESSES at most */
    size_t address_count;
    const char *folder; /* of dumps; NULL: none */
    int64_t interval_ns;
    const char *host;
    const struct ft_interfaces *interfaces;
};

struct ft_states_stats {
    uint64_t answered;      /* answers of RAS that were read */
    uint64_t unreachable;   /* addresses that nobody listened at, or that went silent */
    uint64_t refused;       /* they do not speak JSON: NCCL before 2.28.7 */
    uint64_t invalid;       /* answers that are no status, or too long */
    uint64_t elsewhere;     /* communicators that another host reports */
    uint64_t dumps;         /* that were read */
    uint64_t dumps_invalid; /* that are none, or too long, or may not be read */
    uint64_t left_out;      /* ranks, groups and counts that made no sense or found no room */
};

/* NULL without memory. */
struct ft_states *ft_states_new(struct ft_loop *loop, struct ft_uplink *uplink,
                                const struct ft_states_config *config);
void ft_states_free(struct ft_states *states);

struct ft_states_stats ft_states_stats(const struct ft_states *states);

#endif

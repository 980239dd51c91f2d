// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PLANS_PLANS_H
#define FT_AGENT_PLANS_PLANS_H
/*
 * Answers jobs that ask which source port a new queue pair is to have (agent/shim/), from the plans
 * that their owners laid down in a folder, and reports what became of it. The daemon may withdraw a
 * plan (proto/withdrawal.h): its ports are given no more, and nothing else follows from that.
 *
 * A process gets ports of plans of its own user alone, whom the kernel names (SO_PEERCRED). Every
 * plan that is read or withdrawn and every port that is given is logged: who, when, what. Capped:
 * connections, those of one user, plans in memory, reports a second. Owner: the caller, who keeps
 * loop and uplink alive. Thread: the loop's.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/report/uplink.h"
#include "lib/io/closer.h"

struct ft_local_users;
struct ft_loop;
struct ft_plans;

/* The host's name is borrowed for good. */
struct ft_plans_config {
    const char *socket;
    const char *folder;
    const char *host;
    const char *source;           /* id of the agent; NULL: its daemon cannot withdraw a plan */
    struct ft_local_users *users; /* borrowed; NULL: each user ID is a user */
};

/* Ports asked for = given + refused; done of those given, by outcome. */
struct ft_plans_stats {
    uint64_t asked, given, refused;
    uint64_t labels, sports, rejected; /* the device did not take them */
    uint64_t turned_away;              /* connections: too many, silent, or not of our protocol */
    uint64_t unreported;               /* too many in a second */
    uint64_t withdrawn;                /* plans, by the daemon */
    uint64_t notices_refused;          /* of the daemon, that are none */
    size_t plans;                      /* in memory */
};

/* Listens, readable for every user. NULL with a complaint. */
struct ft_plans *ft_plans_new(struct ft_loop *loop, struct ft_uplink *uplink,
                              const struct ft_plans_config *config, char *error,
                              size_t error_bytes);
void ft_plans_free(struct ft_plans *plans);

/* Takes what the daemon says. */
void ft_plans_notice(struct ft_plans *plans, const uint8_t *payload, size_t len);
const struct ft_plans_stats *ft_plans_stats(const struct ft_plans *plans);

/* Of descriptors that processes sent. */
struct ft_closer_stats ft_plans_closing(const struct ft_plans *plans);

#endif

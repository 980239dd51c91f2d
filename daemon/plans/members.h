// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PLANS_MEMBERS_H
#define FT_DAEMON_PLANS_MEMBERS_H
/*
 * Which hosts a job has, by what hosts say of each other: two that both report flows of the job to
 * each other are in it. So a host that only says of itself that it is in a job cannot speak for its
 * plans. Of a job of which no two hosts say so, nothing is known: its processes may be of other
 * names at the other ends, and each host is believed for its own part alone (follower.h).
 *
 * Hosts are digests of names. What one host alone says lasts a minute, what two agree on ten after
 * either last spoke. Capped: members, and what hosts say alone, of which each has
 * FT_MEMBERS_ALONE. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "lib/fabric/topology.h"

#define FT_MEMBERS_ALONE  64
#define FT_MEMBERS_CLAIMS 2048
#define FT_MEMBERS_MAX    4096

struct ft_members;

/* NULL without memory. */
struct ft_members *ft_members_new(uint64_t seed);
void ft_members_free(struct ft_members *m);

/* A host said that it has a flow of the job to another one. */
void ft_members_said(struct ft_members *m, uint64_t job, uint64_t host, uint64_t peer,
                     int64_t now_ms);

/* The same by a flow that its source reported. */
void ft_members_flow(struct ft_members *m, const struct ft_topology *t, const char *job,
                     const struct ft_tuple *flow, int64_t now_ms);

/* The digest of the host that has an address, or that name where no address is known; 0: it is not
 * in the topology. */
uint64_t ft_members_host(const struct ft_topology *t, const struct ft_ip *address,
                         const char *name);

/* Whether any two hosts agree on being in a job. */
bool ft_members_known(const struct ft_members *m, uint64_t job, int64_t now_ms);

/* Whether a host is in a job: another one of it says so, too. */
bool ft_members_has(const struct ft_members *m, uint64_t job, uint64_t host, int64_t now_ms);

#endif

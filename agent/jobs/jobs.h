// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_JOBS_H
#define FT_AGENT_JOBS_JOBS_H
/*
 * The training processes of this host that run the NCCL plugin: takes their memory over the Unix
 * socket, reads their rings, and reports communicators, collectives and how far they are.
 *
 * A process is who the kernel says it is (SO_PEERCRED), whatever it reports. When it ends, what is
 * left in its rings is read first, and what it died in is reported. Owner: the caller, who keeps
 * loop and uplink alive. Thread: the loop's.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/report/uplink.h"
#include "lib/base/account.h"
#include "lib/io/closer.h"

struct ft_jobs;
struct ft_local_users;
struct ft_loop;

/* The host's name is borrowed for good. */
struct ft_jobs_config {
    const char *socket;
    const char *host;
    size_t jobs_max;
    size_t peers_max;   /* in the operations in progress of one job; 0: 16,384 */
    int64_t refresh_ns; /* between announcements of a communicator, 30 s at most */
    int64_t hold_ns;
    int64_t quiet_ns;       /* without a movement, a rank is reported as standing */
    uint32_t reports_per_s; /* of one process */
    uint64_t seed;
    struct ft_local_users *users; /* borrowed; NULL: each user ID is a user */
};

/* Listens, readable for every user. NULL with a complaint. */
struct ft_jobs *ft_jobs_new(struct ft_loop *loop, struct ft_uplink *uplink,
                            const struct ft_jobs_config *config, char *error, size_t error_bytes);
void ft_jobs_free(struct ft_jobs *jobs);
void ft_jobs_refresh(struct ft_jobs *jobs, int64_t refresh_ns);

/* Reads and reports everything there is and lets go of every job, before the program ends. */
void ft_jobs_flush(struct ft_jobs *jobs);

/* Adds the stage "nccl": calls of NCCL, of all processes since the agent started. */
void ft_jobs_account(const struct ft_jobs *jobs, struct ft_account *account);

size_t ft_jobs_count(const struct ft_jobs *jobs);

/* Records in the rings of all jobs that are not read yet. */
uint64_t ft_jobs_waiting(const struct ft_jobs *jobs);

/* Connections turned away: too many at once, too many of one user, silent for five seconds, or
 * without the memory of a plugin of this version. */
uint64_t ft_jobs_refused(const struct ft_jobs *jobs);

/* Of what processes sent in place of the memory of a plugin. */
struct ft_closer_stats ft_jobs_closing(const struct ft_jobs *jobs);

/* Counters of jobs that said more than a process of that age can have done: not believed. */
uint64_t ft_jobs_implausible(const struct ft_jobs *jobs);

#endif

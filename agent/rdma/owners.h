// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_OWNERS_H
#define FT_AGENT_RDMA_OWNERS_H
/*
 * Whose a queue pair is: from a process id to its command and its job.
 *
 * The kernel's lists name the thread that made a queue pair; its owner is the process. A process
 * may end at any time and its number be given to another; so each is looked at once a round, one
 * that started at another time is another process, and one that started after the lists were read
 * is none. What cannot be read (another user's environment, without CAP_SYS_PTRACE) is not known.
 * Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FT_OWNER_TEXT_BYTES 64

struct ft_owner {
    uint32_t pid; /* as listed */
    uint32_t round;
    uint32_t process;     /* that it is a thread of, mostly itself */
    uint64_t start_ticks; /* of the process, since boot: distinguishes two of one number */
    char comm[FT_OWNER_TEXT_BYTES];
    char job[FT_OWNER_TEXT_BYTES]; /* "": none known */
    bool denied;                   /* its environment may not be read, which could name a job */
};

struct ft_owners_config {
    const char *root;         /* "/proc" but in tests; borrowed */
    const char *job_variable; /* looked at first; NULL: none; borrowed */
    uint32_t owners_max;
};

struct ft_owners;

/* NULL without memory. */
struct ft_owners *ft_owners_new(const struct ft_owners_config *config);
void ft_owners_free(struct ft_owners *owners);

/* Takes over another variable; borrowed. */
void ft_owners_job_variable(struct ft_owners *owners, const char *name);

/* Starts a round, at a time since boot in ticks (proc(5): the unit of start times) when the lists
 * that name owners were not read yet: what was returned before is gone. Forgets processes that
 * nobody has asked for in 256 rounds. */
void ft_owners_round(struct ft_owners *owners, uint64_t boot_ticks);

/* NULL when there is no such process now, or none that was there when the round began. The job is
 * the variable's value, else SLURM_JOB_ID, else what the process's control group says: a Slurm
 * job's number or the uid of a Kubernetes pod. */
const struct ft_owner *ft_owners_get(struct ft_owners *owners, uint32_t pid);

/* The owner of what is no more listed: as last seen, before this round. NULL when the number was
 * looked up in this round, and may be another's. */
const struct ft_owner *ft_owners_last(const struct ft_owners *owners, uint32_t pid);

/* Whether the owner's process is still there: then its number was nobody else's meanwhile. */
bool ft_owners_alive(const struct ft_owners *owners, const struct ft_owner *owner);

/* Processes that were asked for, as far as they are known; how many of them have an environment
 * that may not be read and no job; and how often, in this round, one was there that /proc does not
 * show (proc(5), hidepid). */
struct ft_owners_stats {
    size_t known, denied, hidden;
};

void ft_owners_stats(const struct ft_owners *owners, struct ft_owners_stats *stats);

/* The job named by a control group's path, "" when there is none; pure. */
void ft_owner_job_of_cgroup(const char *path, char job[FT_OWNER_TEXT_BYTES]);

#endif

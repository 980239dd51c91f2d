// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_OWNERS_H
#define FT_AGENT_OWNERS_H
/*
 * Whose a queue pair is: from a process id to its command and its job.
 *
 * A process may end at any time and its number be given to another; so each is looked at once a
 * round, and one that started at another time is another process. What cannot be read (another
 * user's environment, without CAP_SYS_PTRACE) is not known.
 * Owner: the caller. Thread: one.
 */
#include <stdint.h>

#define FT_OWNER_TEXT_BYTES 64

struct ft_owner {
    uint32_t pid;
    uint32_t round;
    uint64_t start_ticks; /* since boot: tells two processes of one number apart */
    char comm[FT_OWNER_TEXT_BYTES];
    char job[FT_OWNER_TEXT_BYTES]; /* "": none known */
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

/* Starts a round: what was returned before is gone. Forgets processes that nobody has asked for
 * in 256 rounds. */
void ft_owners_round(struct ft_owners *owners);

/* NULL when there is no such process now. The job is the variable's value, else SLURM_JOB_ID, else
 * what the process's control group says: a Slurm job's number or the uid of a Kubernetes pod. */
const struct ft_owner *ft_owners_get(struct ft_owners *owners, uint32_t pid);

/* The job named by a control group's path, "" when there is none; pure. */
void ft_owner_job_of_cgroup(const char *path, char job[FT_OWNER_TEXT_BYTES]);

#endif

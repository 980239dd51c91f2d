// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PLANS_KEPT_H
#define FT_AGENT_PLANS_KEPT_H
/*
 * Plans in memory, each as its file was last seen: a share of them for each user, and of the time
 * that reading files takes. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/plans/plan_file.h"
#include "lib/base/clock.h"
#include "proto/plan_name.h"

#define FT_KEPT_MAX  16
#define FT_KEPT_USER 8 /* of one user */
/* What is read of files for one user in a while: a MiB takes tens of ms, and a user may write
 * a file again before each ask. A small file counts as READ_LEAST. */
#define FT_KEPT_READ_MAX   (UINT64_C(4) << 20)
#define FT_KEPT_READ_LEAST (UINT64_C(1) << 14)
#define FT_KEPT_READ_NS    INT64_C(10000000000)

struct ft_kept {
    bool used, good; /* not good: the file is none, until it is another one */
    uid_t uid;
    uint64_t user; /* whose the user ID is */
    char job[FT_PLAN_JOB_BYTES];
    struct ft_plan_identity identity;
    struct ft_plan_file file;
    struct ft_mono asked;
};

struct ft_kept_plans {
    struct ft_kept list[FT_KEPT_MAX];
    struct {
        uint64_t user;
        uint64_t bytes; /* read since; 0: nobody's */
        struct ft_mono since;
    } reads[FT_KEPT_MAX];
};

struct ft_kept *ft_kept_find(struct ft_kept_plans *plans, uid_t uid, const char *job);

/* A slot for another plan of a user: one that is free; else the one that was not asked for the
 * longest, of those of whoever has the most: at the end of its share, of the user's own. */
struct ft_kept *ft_kept_slot(struct ft_kept_plans *plans, uint64_t user);

/* Empties a slot. */
void ft_kept_forget(struct ft_kept *kept);

/* Whether a file of so many bytes may be read for this user now, which counts as read. */
bool ft_kept_may_read(struct ft_kept_plans *plans, uint64_t user, uint64_t bytes,
                      struct ft_mono now);

#endif

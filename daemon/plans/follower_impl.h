// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PLANS_FOLLOWER_IMPL_H
#define FT_DAEMON_PLANS_FOLLOWER_IMPL_H
/*
 * What follower.c and follower_publish.c share.
 */
#include "daemon/plans/follower.h"
#include "daemon/plans/members.h"
#include "lib/base/table.h"
#include "proto/plan_name.h"
#include "proto/record.h"

#define FT_FOLLOWED_HOST_BYTES 128

/* The agent of a host. */
struct ft_followed_host {
    char name[FT_FOLLOWED_HOST_BYTES];
    char source[FT_FOLLOWED_HOST_BYTES]; /* "": it takes no withdrawals */
    bool ended;                          /* it gives no more ports of the plan */
    uint64_t digest;                     /* ft_members_host() */
};

struct ft_followed_plan {
    bool used;
    char job[FT_PLAN_JOB_BYTES];
    uint64_t job_digest;
    uint32_t uid;
    uint64_t time_ms;
    Fabrictrace__PlanStage stage;
    Fabrictrace__PlanEnd end;
    int64_t since_ms, heard_ms;
    uint32_t ports, confirmed, missed, refused;
    struct ft_followed_host *hosts;
    uint32_t host_count, ended;
    bool changed; /* since it was published */
};

enum ft_port_state {
    FT_PORT_AWAITED,
    FT_PORT_CONFIRMED,
    FT_PORT_MISSED,
    FT_PORT_UNCONFIRMED,
    FT_PORT_REFUSED,
};

struct ft_followed_key {
    uint64_t plan; /* its slot */
    struct ft_tuple tuple;
};

struct ft_followed_port {
    struct ft_followed_key key;
    enum ft_port_state state;
    uint32_t host;  /* of the plan's */
    bool counted;   /* its host may speak for the job */
    uint32_t looks; /* with samples that left several paths */
    int64_t given_ms, sampled_ms;
    int64_t path_since_ms; /* of the path that was judged last */
    uint8_t *report;       /* packed */
    size_t report_bytes;
};

struct ft_follower {
    struct ft_followed_plan plans[FT_FOLLOWER_PLANS_MAX];
    struct ft_table *ports;
    struct ft_members *members;
    size_t kept;
    uint32_t hosts; /* of all plans */
    void (*ask)(void *arg, const char *source, const struct ft_withdrawal *withdrawal);
    void *ask_arg;
    struct ft_follower_stats stats;
};

/* Whether anything of it is known that counts. */
bool ft_follower_is_shown(const struct ft_followed_plan *plan);

/* Publishes a plan as it is. */
void ft_follower_publish(const struct ft_followed_plan *plan, const char *fabric,
                         const struct ft_emitter *emitter);

/* Raises the event of a plan that is withdrawn for a port that speaks against it. */
void ft_follower_publish_end(const struct ft_followed_plan *plan,
                             const struct ft_followed_port *port,
                             const Fabrictrace__PlanPort *report,
                             const struct ft_follower_surroundings *around, int64_t now_ms);

#endif

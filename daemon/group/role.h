// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_GROUP_ROLE_H
#define FT_DAEMON_GROUP_ROLE_H
/*
 * What a daemon does in a group: alone, all; a member, the flows of its partitions, of which it
 * says paths and partial loads; the aggregator, the sum of these and all that is not of one flow.
 * Owner: the daemon. Thread: the loop's.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/pipeline/pipeline.h"
#include "daemon/publish/emit.h"

struct ft_settings;

/* Zero before it is opened. */
struct ft_group_role {
    struct ft_partial_origin origin; /* of a member */
    uint32_t *partitions;            /* of it; of the aggregator none */
    int64_t *since_ms;               /* by these; NULL: they are the same all the time */
    struct ft_partials *partials;    /* NULL: no aggregator */
    const char *source_id;
    struct ft_emitter emitter; /* all that the pipeline finds */
};

/* Of a member of a named group: the group gave it a partition, or took it away. What is pending
 * in the pipeline is to be flushed before. since_ms: by which those before us have spoken of
 * windows that ended by then, with their grace. */
void ft_group_role_gain(struct ft_group_role *role, uint32_t partition, int64_t since_ms);
/* Whether it reads what others had before. */
void ft_group_role_behind(struct ft_group_role *role, bool behind);
void ft_group_role_lose(struct ft_group_role *role, uint32_t partition);

/* Whether an item of group.partitions is one: "3", "0-5", below all. */
bool ft_group_is_range(const char *text, uint64_t all, uint32_t *first, uint32_t *last);

/* Sets what the pipeline needs for the role, and leads its records through the role to `emitter`.
 * The texts stay the caller's, in place. -ENOMEM. */
int ft_group_role_open(struct ft_group_role *role, const struct ft_settings *settings,
                       const char *source_id, struct ft_pipeline_config *config,
                       struct ft_emitter *emitter);
/* Of the aggregator, adds the stage "partials". */
void ft_group_role_account(const struct ft_group_role *role, struct ft_account *account);
void ft_group_role_close(struct ft_group_role *role);

#endif

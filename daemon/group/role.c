// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/group/role.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/settings.h"

#define NS_PER_MS 1000000
/* Of partial loads that wait for those of other members. */
#define PARTIALS_BYTES ((size_t)64 << 20)

bool ft_group_is_range(const char *text, uint64_t all, uint32_t *first, uint32_t *last)
{
    unsigned long from, to;
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    from = to = strtoul(text, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        to = strtoul(end + 1, &end, 10);
    if (*end || from > to || to >= all)
        return false;
    *first = (uint32_t)from;
    *last = (uint32_t)to;
    return true;
}

/* A member publishes what is known of its flows. What is of hosts, jobs and the fabric the
 * aggregator says, which has all of it. */
static bool is_ours(const struct ft_group_role *role, const Fabrictrace__Record *record)
{
    switch (record->kind_case) {
    case FABRICTRACE__RECORD__KIND_PATH:
    case FABRICTRACE__RECORD__KIND_PARTIAL:
        return true;
    case FABRICTRACE__RECORD__KIND_EVENT:
        return record->event->kind == FABRICTRACE__KIND__KIND_PATH_CHANGE;
    case FABRICTRACE__RECORD__KIND_LOSS:
        return record->loss->source && strcmp(record->loss->source, role->source_id) == 0;
    default:
        return false;
    }
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    struct ft_group_role *role = arg;

    if (!role->origin.source || is_ours(role, record))
        role->emitter.record(role->emitter.arg, record);
}

/* Each once, ascending. */
static int list_partitions(struct ft_group_role *role, const struct ft_settings *s)
{
    bool *mine = calloc(s->kafka_partitions, sizeof(*mine));
    uint32_t first, last;
    size_t n = 0;

    role->partitions = calloc(s->kafka_partitions, sizeof(*role->partitions));
    if (!mine || !role->partitions) {
        free(mine);
        return -ENOMEM;
    }
    for (size_t i = 0; i < s->group_partitions.count; i++)
        if (ft_group_is_range(s->group_partitions.items[i], s->kafka_partitions, &first, &last))
            for (uint32_t k = first; k <= last; k++)
                mine[k] = true;
    for (uint32_t i = 0; i < s->kafka_partitions; i++)
        if (mine[i])
            role->partitions[n++] = i;
    free(mine);
    if (s->group_name)
        role->since_ms = calloc(s->kafka_partitions, sizeof(*role->since_ms));
    if (s->group_name && !role->since_ms)
        return -ENOMEM;
    role->origin = (struct ft_partial_origin){
        .source = role->source_id,
        .partitions = role->partitions,
        .since_ms = role->since_ms,
        .grace_ms = s->grace_ns / NS_PER_MS,
        .partition_count = n,
        .partitions_all = (uint32_t)s->kafka_partitions,
    };
    return 0;
}

int ft_group_role_open(struct ft_group_role *role, const struct ft_settings *settings,
                       const char *source_id, struct ft_pipeline_config *config,
                       struct ft_emitter *emitter)
{
    int rc = 0;

    ft_group_role_close(role);
    role->source_id = source_id;
    role->emitter = *emitter;
    *emitter = (struct ft_emitter){on_record, role};
    if (settings->group_role == FT_GROUP_MEMBER) {
        rc = list_partitions(role, settings);
        config->window.origin = &role->origin;
    } else if (settings->group_role == FT_GROUP_AGGREGATOR) {
        role->partials = ft_partials_new((uint32_t)settings->kafka_partitions, PARTIALS_BYTES);
        config->window.partials = role->partials;
        rc = role->partials ? 0 : -ENOMEM;
    }
    return rc;
}

/* Where a partition is in the list, or would be. */
static size_t index_of(const struct ft_group_role *role, uint32_t partition)
{
    size_t i = 0;

    while (i < role->origin.partition_count && role->partitions[i] < partition)
        i++;
    return i;
}

void ft_group_role_gain(struct ft_group_role *role, uint32_t partition, int64_t since_ms)
{
    size_t i = index_of(role, partition), n = role->origin.partition_count;

    if (!role->since_ms || partition >= role->origin.partitions_all ||
        (i < n && role->partitions[i] == partition))
        return;
    memmove(&role->partitions[i + 1], &role->partitions[i], (n - i) * sizeof(*role->partitions));
    memmove(&role->since_ms[i + 1], &role->since_ms[i], (n - i) * sizeof(*role->since_ms));
    role->partitions[i] = partition;
    role->since_ms[i] = since_ms;
    role->origin.partition_count++;
}

void ft_group_role_behind(struct ft_group_role *role, bool behind)
{
    role->origin.behind = behind;
}

void ft_group_role_lose(struct ft_group_role *role, uint32_t partition)
{
    size_t i = index_of(role, partition), n = role->origin.partition_count;

    if (!role->since_ms || i >= n || role->partitions[i] != partition)
        return;
    n = --role->origin.partition_count - i;
    memmove(&role->partitions[i], &role->partitions[i + 1], n * sizeof(*role->partitions));
    memmove(&role->since_ms[i], &role->since_ms[i + 1], n * sizeof(*role->since_ms));
}

void ft_group_role_close(struct ft_group_role *role)
{
    ft_partials_free(role->partials);
    free(role->partitions);
    free(role->since_ms);
    *role = (struct ft_group_role){.partitions = NULL};
}

void ft_group_role_account(const struct ft_group_role *role, struct ft_account *account)
{
    const struct ft_partials_stats *s;
    struct ft_account_stage *stage;

    if (!role->partials)
        return;
    s = ft_partials_stats(role->partials);
    stage = ft_account_stage(account, "partials", "records");
    stage->processed = s->taken;
    stage->received = s->taken + s->duplicates + s->overlapping + s->late + s->invalid + s->no_room;
    ft_account_drop(stage, "duplicate", s->duplicates);
    ft_account_drop(stage, "of_two_members", s->overlapping);
    ft_account_drop(stage, "late", s->late);
    ft_account_drop(stage, "invalid", s->invalid);
    ft_account_drop(stage, "no_room", s->no_room);
}

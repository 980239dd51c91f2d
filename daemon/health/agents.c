// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/agents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"
#include "proto/bounds.h"

#define SOURCE_BYTES 128
#define TEXT_MAX     255 /* a longer one is not an agent's */
#define LIST_MAX     1024
#define MISSED       3
#define LOOKS        32 /* at a full table, for each that is new */
/* A fabric whose hosts are all alike needs not all of them named. */
#define MISSING_SHOWN 200

struct agent {
    char source[SOURCE_BYTES];
    int64_t until_ms;
    uint8_t *packed;
    size_t packed_bytes;
};

struct ft_agents {
    struct ft_table *table;
    int64_t now_ms;
    uint32_t hand;           /* where a full table is looked at next */
    size_t bytes, bytes_max; /* of all that is kept packed */
};

struct ft_agents *ft_agents_new(size_t cap, size_t bytes_max)
{
    struct ft_agents *a = calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    a->bytes_max = bytes_max;
    a->table = ft_table_new(sizeof(struct agent), SOURCE_BYTES, cap, 0);
    if (!a->table) {
        free(a);
        return NULL;
    }
    return a;
}

void ft_agents_free(struct ft_agents *a)
{
    struct agent *agent;
    uint32_t index = 0;

    if (!a)
        return;
    while ((agent = ft_table_next(a->table, &index)))
        free(agent->packed);
    ft_table_free(a->table);
    free(a);
}

static bool is_gone(void *arg, void *entry)
{
    struct ft_agents *a = arg;
    struct agent *agent = entry;

    if (agent->until_ms >= a->now_ms)
        return false;
    a->bytes -= agent->packed_bytes;
    free(agent->packed);
    return true;
}

int ft_agents_take(struct ft_agents *a, const Fabrictrace__HostStatus *status, int64_t now_ms)
{
    char source[SOURCE_BYTES] = {0};
    struct agent *agent;
    uint8_t *packed;
    size_t len;
    bool fresh;

    if (!status->source || !status->host || !status->has_interval_ms ||
        !ft_message_within(&status->base, TEXT_MAX, LIST_MAX))
        return -EINVAL;
    snprintf(source, sizeof(source), "%s", status->source);
    agent = ft_table_insert(a->table, source, &fresh);
    a->now_ms = now_ms;
    if (!agent && ft_table_make_room(a->table, &a->hand, LOOKS, is_gone, a))
        agent = ft_table_insert(a->table, source, &fresh);
    if (!agent)
        return -ENOSPC;
    agent->until_ms = now_ms + MISSED * (int64_t)status->interval_ms;
    len = fabrictrace__host_status__get_packed_size(status);
    if (a->bytes - agent->packed_bytes + len > a->bytes_max)
        return -ENOSPC;
    packed = malloc(len ? len : 1);
    /* Without memory what it said before stays. */
    if (!packed)
        return 0;
    fabrictrace__host_status__pack(status, packed);
    free(agent->packed);
    a->bytes += len - agent->packed_bytes;
    agent->packed = packed;
    agent->packed_bytes = len;
    return 0;
}

static void find_capability(const Fabrictrace__HostStatus *status,
                            const Fabrictrace__MissingCapability *missing,
                            struct ft_findings *findings)
{
    bool both = missing->capability && missing->setting;
    struct ft_finding *f = ft_findings_add(
        findings, FT_FINDING_NOTE, status->host, NULL,
        missing->capability ? "give its agent the capability (see fabrictrace-agent(8))"
        : missing->setting  ? "set that key in the configuration of its agent"
                            : NULL,
        "its agent does not see%s%.40s%s%.60s: %.200s",
        missing->capability || missing->setting ? " without " : "",
        missing->capability ? missing->capability : "", both ? " and " : "",
        missing->setting ? missing->setting : "", missing->adds ? missing->adds : missing->what);

    if (f)
        f->of_host = true;
}

static void find_missing(struct ft_agents_position *at, const Fabrictrace__HostStatus *status,
                         struct ft_findings *findings)
{
    if (at->shown + status->n_missing_capabilities > MISSING_SHOWN) {
        at->hosts += status->n_missing_capabilities > 0;
        at->shown += status->n_missing_capabilities;
        return;
    }
    for (size_t i = 0; i < status->n_missing_capabilities; i++)
        if (status->missing_capabilities[i]->what)
            find_capability(status, status->missing_capabilities[i], findings);
    at->shown += status->n_missing_capabilities;
}

bool ft_agents_find(const struct ft_agents *a, int64_t now_ms, struct ft_agents_position *at,
                    struct ft_findings *findings)
{
    struct agent *agent = ft_table_next(a->table, &at->index);
    Fabrictrace__HostStatus *status;

    if (!agent && at->hosts)
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "check the logs of their agents for missing capabilities",
                        "agents of %zu more hosts have missing capabilities", at->hosts);
    if (!agent)
        return false;
    status = agent->packed && agent->until_ms >= now_ms
                 ? fabrictrace__host_status__unpack(NULL, agent->packed_bytes, agent->packed)
                 : NULL;
    if (status) {
        find_missing(at, status, findings);
        fabrictrace__host_status__free_unpacked(status, NULL);
    }
    return true;
}

bool ft_agents_next(const struct ft_agents *a, int64_t now_ms, uint32_t *index,
                    void (*each)(void *arg, const Fabrictrace__HostStatus *status), void *arg)
{
    const struct agent *agent = ft_table_next(a->table, index);
    Fabrictrace__HostStatus *status;

    if (!agent)
        return false;
    if (agent->until_ms < now_ms || !agent->packed)
        return true;
    status = fabrictrace__host_status__unpack(NULL, agent->packed_bytes, agent->packed);
    if (!status)
        return true;
    each(arg, status);
    fabrictrace__host_status__free_unpacked(status, NULL);
    return true;
}

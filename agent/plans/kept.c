// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/plans/kept.h"

#include <string.h>

struct ft_kept *ft_kept_find(struct ft_kept_plans *plans, uid_t uid, const char *job)
{
    for (size_t i = 0; i < FT_KEPT_MAX; i++) {
        struct ft_kept *k = &plans->list[i];

        if (k->used && k->uid == uid && strcmp(k->job, job) == 0)
            return k;
    }
    return NULL;
}

static size_t count_of(const struct ft_kept_plans *plans, uint64_t user)
{
    size_t count = 0;

    for (size_t i = 0; i < FT_KEPT_MAX; i++)
        count += plans->list[i].used && plans->list[i].user == user;
    return count;
}

struct ft_kept *ft_kept_slot(struct ft_kept_plans *plans, uint64_t user)
{
    bool full = count_of(plans, user) >= FT_KEPT_USER;
    struct ft_kept *best = NULL;
    size_t most = 0;

    for (size_t i = 0; i < FT_KEPT_MAX; i++) {
        struct ft_kept *k = &plans->list[i];
        size_t count;

        if (!k->used && !full)
            return k;
        if (!k->used || (full && k->user != user))
            continue;
        count = count_of(plans, k->user);
        if (!best || count > most || (count == most && k->asked.ns < best->asked.ns)) {
            best = k;
            most = count;
        }
    }
    return best;
}

void ft_kept_forget(struct ft_kept *kept)
{
    ft_plan_file_clear(&kept->file);
    *kept = (struct ft_kept){0};
}

bool ft_kept_may_read(struct ft_kept_plans *plans, uint64_t user, uint64_t bytes,
                      struct ft_mono now)
{
    uint64_t cost = bytes > FT_KEPT_READ_LEAST ? bytes : FT_KEPT_READ_LEAST;
    size_t at = FT_KEPT_MAX;

    for (size_t i = 0; i < FT_KEPT_MAX; i++) {
        if (plans->reads[i].bytes &&
            ft_mono_since_ns(now, plans->reads[i].since) >= FT_KEPT_READ_NS)
            plans->reads[i].bytes = 0;
        if (plans->reads[i].bytes && plans->reads[i].user == user) {
            at = i;
            break;
        }
        if (!plans->reads[i].bytes && at == FT_KEPT_MAX)
            at = i;
    }
    if (at == FT_KEPT_MAX || plans->reads[at].bytes + cost > FT_KEPT_READ_MAX)
        return false;
    if (!plans->reads[at].bytes) {
        plans->reads[at].user = user;
        plans->reads[at].since = now;
    }
    plans->reads[at].bytes += cost;
    return true;
}

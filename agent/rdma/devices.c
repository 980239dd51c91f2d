// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/devices.h"

#include <string.h>

void ft_rdma_devices_begin(struct ft_rdma_devices *d)
{
    d->round++;
    d->refused = 0;
}

static bool is_named(const struct ft_rdma_devices *d, const char *name)
{
    for (size_t i = 0; i < d->name_count; i++)
        if (strcmp(d->names[i], name) == 0)
            return true;
    return d->name_count == 0;
}

/* An index is given away anew, and a device may be renamed: then it is another one. */
static struct ft_rdma_known *find_same(struct ft_rdma_devices *d, const struct ft_rdma_device *info)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->list[i].info.index == info->index && strcmp(d->list[i].info.name, info->name) == 0)
            return &d->list[i];
    return NULL;
}

bool ft_rdma_devices_take(struct ft_rdma_devices *d, const struct ft_rdma_device *info)
{
    struct ft_rdma_known *known = find_same(d, info);
    bool fresh = !known;

    if (!is_named(d, info->name))
        return false;
    if (fresh) {
        if (d->count == FT_RDMA_DEVICES_MAX) {
            d->refused++;
            return false;
        }
        known = &d->list[d->count++];
        *known = (struct ft_rdma_known){.rdev = 0};
    }
    known->info = *info;
    known->round = d->round;
    return fresh;
}

bool ft_rdma_devices_end(struct ft_rdma_devices *d)
{
    size_t before = d->count, kept = 0;

    for (size_t i = 0; i < before; i++)
        if (d->list[i].round == d->round)
            d->list[kept++] = d->list[i];
    d->count = kept;
    return kept != before;
}

const struct ft_rdma_known *ft_rdma_devices_find(const struct ft_rdma_devices *d, uint32_t index)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->list[i].info.index == index)
            return &d->list[i];
    return NULL;
}

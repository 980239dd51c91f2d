// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

/* Entries of all ports together: tables have up to 256 a port, and an answer is below 64 KiB. */
#define ENTRIES_MAX 2000

static struct ibv_context *open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;
    int err = list ? ENODEV : errno;

    for (struct ibv_device **at = list; at && *at && !context; at++) {
        if (strcmp(ibv_get_device_name(*at), name) != 0)
            continue;
        errno = 0;
        context = ibv_open_device(*at);
        err = errno ? errno : ENODEV;
    }
    if (list)
        ibv_free_device_list(list);
    errno = err;
    return context;
}

static size_t pick(const struct ibv_gid_entry *entries, size_t entry_count, uint32_t port,
                   struct ft_verbs_gid *gids, size_t max)
{
    static const struct ft_ip none;
    size_t count = 0;

    for (size_t i = 0; i < entry_count; i++) {
        struct ft_verbs_gid gid = {.index = entries[i].gid_index};

        if (entries[i].port_num != port || entries[i].gid_type != IBV_GID_TYPE_ROCE_V2)
            continue;
        gid.ip = ft_ip6(entries[i].gid.raw);
        if (ft_ip_equal(&gid.ip, &none))
            continue;
        if (count < max)
            gids[count] = gid;
        count++;
    }
    return count;
}

static int by_index(const void *a, const void *b)
{
    const struct ft_verbs_gid *x = a, *y = b;

    return (x->index > y->index) - (x->index < y->index);
}

int ft_verbs_gids(const char *device, uint32_t port, struct ft_verbs_gid *gids, size_t max,
                  size_t *count)
{
    struct ibv_context *context = open_device(device);
    struct ibv_gid_entry *entries;
    ssize_t found;

    if (!context)
        return -errno;
    entries = calloc(ENTRIES_MAX, sizeof(*entries));
    found = entries ? ibv_query_gid_table(context, entries, ENTRIES_MAX, 0) : -ENOMEM;
    if (found >= 0) {
        *count = pick(entries, (size_t)found, port, gids, max);
        qsort(gids, *count < max ? *count : max, sizeof(*gids), by_index);
    }
    free(entries);
    ibv_close_device(context);
    return found < 0 ? (int)found : 0;
}

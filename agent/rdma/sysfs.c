// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/sysfs.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES  512
#define VALUE_BYTES 128
#define ROCE_V2     "RoCE v2"
#define BPS_PER_G   1000000000.0

/* The first line of a file, without its newline. */
static int read_line(const char *path, char line[VALUE_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len;

    if (fd < 0)
        return -errno;
    len = read(fd, line, VALUE_BYTES - 1);
    close(fd);
    /* An empty slot of a GID table can be opened, and not read. */
    if (len < 0)
        return -EIO;
    line[len] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return 0;
}

static void read_netdev(const char *port, uint32_t index, char netdev[FT_RDMA_NAME_BYTES])
{
    char path[PATH_BYTES], line[VALUE_BYTES];

    netdev[0] = '\0';
    snprintf(path, sizeof(path), "%s/gid_attrs/ndevs/%u", port, index);
    if (read_line(path, line) == 0)
        snprintf(netdev, FT_RDMA_NAME_BYTES, "%.*s", FT_RDMA_NAME_BYTES - 1, line);
}

void ft_rdma_gid_netdev(const char *root, const char *device, uint32_t port, uint32_t index,
                        char netdev[FT_RDMA_NAME_BYTES])
{
    char folder[PATH_BYTES / 2];

    snprintf(folder, sizeof(folder), "%s/%s/ports/%u", root, device, port);
    read_netdev(folder, index, netdev);
}

static void read_gid(const char *port, const char *slot, struct ft_rdma_gid *gids, size_t max,
                     size_t *count)
{
    static const struct ft_ip none;
    char path[PATH_BYTES], line[VALUE_BYTES];
    struct ft_rdma_gid gid = {.index = (uint32_t)strtoul(slot, NULL, 10)};
    uint8_t bytes[16];

    snprintf(path, sizeof(path), "%s/gid_attrs/types/%s", port, slot);
    if (read_line(path, line) || strcmp(line, ROCE_V2) != 0)
        return;
    snprintf(path, sizeof(path), "%s/gids/%s", port, slot);
    if (read_line(path, line) || inet_pton(AF_INET6, line, bytes) != 1)
        return;
    gid.ip = ft_ip6(bytes);
    if (ft_ip_equal(&gid.ip, &none))
        return;
    if (*count < max) {
        read_netdev(port, gid.index, gid.netdev);
        gids[*count] = gid;
    }
    (*count)++;
}

static int by_index(const void *a, const void *b)
{
    const struct ft_rdma_gid *x = a, *y = b;

    return (x->index > y->index) - (x->index < y->index);
}

size_t ft_rdma_gids(const char *root, const char *device, uint32_t port, struct ft_rdma_gid *gids,
                    size_t max)
{
    char folder[PATH_BYTES / 2], types[PATH_BYTES];
    const struct dirent *entry;
    size_t count = 0;
    DIR *dir;

    snprintf(folder, sizeof(folder), "%s/%s/ports/%u", root, device, port);
    snprintf(types, sizeof(types), "%s/gid_attrs/types", folder);
    dir = opendir(types);
    if (!dir)
        return 0;
    while ((entry = readdir(dir)))
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && strlen(entry->d_name) < 8)
            read_gid(folder, entry->d_name, gids, max, &count);
    closedir(dir);
    qsort(gids, count < max ? count : max, sizeof(*gids), by_index);
    return count;
}

static int by_name(const void *a, const void *b)
{
    const struct ft_rdma_counter *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static void read_counters(const char *folder, struct ft_rdma_counter *counters, size_t max,
                          size_t *count)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    if (!dir)
        return;
    while (*count < max && (entry = readdir(dir))) {
        struct ft_rdma_counter *c = &counters[*count];
        char path[PATH_BYTES + sizeof(entry->d_name)], line[VALUE_BYTES];
        char *end;

        /* The file says how long the driver keeps its values; it is not a counter. */
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "lifespan") == 0 ||
            strlen(entry->d_name) >= sizeof(c->name))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (read_line(path, line))
            continue;
        errno = 0;
        c->value = strtoull(line, &end, 10);
        if (end == line || *end || errno)
            continue;
        snprintf(c->name, sizeof(c->name), "%s", entry->d_name);
        (*count)++;
    }
    closedir(dir);
}

size_t ft_rdma_counters(const char *root, const char *device, uint32_t port,
                        struct ft_rdma_counter *counters, size_t max)
{
    char folder[PATH_BYTES];
    size_t count = 0;

    snprintf(folder, sizeof(folder), "%s/%s/ports/%u/hw_counters", root, device, port);
    read_counters(folder, counters, max, &count);
    snprintf(folder, sizeof(folder), "%s/%s/ports/%u/counters", root, device, port);
    read_counters(folder, counters, max, &count);
    qsort(counters, count, sizeof(*counters), by_name);
    return count;
}

uint64_t ft_rdma_speed_bps(const char *root, const char *device, uint32_t port)
{
    char path[PATH_BYTES], line[VALUE_BYTES];
    double gigabits;

    snprintf(path, sizeof(path), "%s/%s/ports/%u/rate", root, device, port);
    /* "100 Gb/sec (4X EDR)" */
    if (read_line(path, line) || sscanf(line, "%lf Gb/sec", &gigabits) != 1 || !(gigabits > 0) ||
        gigabits > 1e6)
        return 0;
    return (uint64_t)(gigabits * BPS_PER_G);
}

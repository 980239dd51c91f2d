// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/capture/aggregates.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INTERFACES_MAX 64
#define PATH_BYTES     512
#define LINE_BYTES     1024
/* A VLAN on a VLAN on an aggregate is as deep as it gets. */
#define DEPTH_MAX 4
#define BPS_PER_M 1000000

/* What was asked for, aggregate or not. */
struct interface {
    char name[FT_AGGREGATE_NAME_BYTES];
    bool asked, is_aggregate;
    struct ft_aggregate aggregate;
};

struct ft_aggregates {
    const char *root;
    size_t count;
    struct interface *interfaces[INTERFACES_MAX];
};

struct ft_aggregates *ft_aggregates_new(const char *root)
{
    struct ft_aggregates *a = calloc(1, sizeof(*a));

    if (a)
        a->root = root;
    return a;
}

void ft_aggregates_free(struct ft_aggregates *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->count; i++)
        free(a->interfaces[i]);
    free(a);
}

/* The first line of a file of an interface, "" when there is none or it cannot be read (the speed
 * of a port that is down, say). */
static void read_line(const char *root, const char *interface, const char *file,
                      char line[LINE_BYTES])
{
    char path[PATH_BYTES];
    ssize_t len;
    int fd;

    line[0] = '\0';
    snprintf(path, sizeof(path), "%s/%s/%s", root, interface, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    len = read(fd, line, LINE_BYTES - 1);
    close(fd);
    line[len > 0 ? len : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
}

static bool has(const char *root, const char *interface, const char *file)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "%s/%s/%s", root, interface, file);
    return access(path, F_OK) == 0;
}

static bool is_name(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/') &&
           strlen(name) < FT_AGGREGATE_NAME_BYTES;
}

/* A port outside a bond reports its state as its operational state (RFC 2863); a driver that does
 * not know leaves it at "unknown". */
static bool is_up(const char *root, const char *member)
{
    char line[LINE_BYTES];

    read_line(root, member, "bonding_slave/mii_status", line);
    if (line[0])
        return strcmp(line, "up") == 0;
    read_line(root, member, "operstate", line);
    return strcmp(line, "up") == 0 || strcmp(line, "unknown") == 0;
}

static void add_member(const char *root, struct ft_aggregate *a, const char *name)
{
    struct ft_aggregate_member *m = &a->members[a->count];
    char line[LINE_BYTES];
    long mbps;

    if (a->count == FT_AGGREGATE_MEMBERS || !is_name(name))
        return;
    a->count++;
    snprintf(m->name, sizeof(m->name), "%s", name);
    m->up = is_up(root, name);
    read_line(root, name, "speed", line);
    mbps = strtol(line, NULL, 10);
    m->speed_bps = mbps > 0 && mbps < 100000000 ? (uint64_t)mbps * BPS_PER_M : 0;
}

/* Of a bond's members one alone sends in active-backup; in 802.3ad those of the aggregator in use;
 * else those in state "active". */
static void judge_bond_member(const char *root, const struct ft_aggregate *a,
                              struct ft_aggregate_member *m)
{
    char line[LINE_BYTES], other[LINE_BYTES];

    m->has_used = true;
    if (strcmp(a->mode, "active-backup") == 0) {
        read_line(root, a->name, "bonding/active_slave", line);
        m->used = strcmp(line, m->name) == 0;
        return;
    }
    if (strcmp(a->mode, "802.3ad") == 0) {
        read_line(root, m->name, "bonding_slave/ad_aggregator_id", line);
        read_line(root, a->name, "bonding/ad_aggregator", other);
        m->used = line[0] && strcmp(line, other) == 0;
        m->has_used = line[0] && other[0];
        return;
    }
    read_line(root, m->name, "bonding_slave/state", line);
    m->used = strcmp(line, "active") == 0;
    m->has_used = line[0] != '\0';
}

static void read_bond(const char *root, struct ft_aggregate *a)
{
    char line[LINE_BYTES], *rest = line;
    const char *name;

    /* "802.3ad 4" */
    read_line(root, a->name, "bonding/mode", line);
    snprintf(a->mode, sizeof(a->mode), "%.*s", (int)strcspn(line, " "), line);
    read_line(root, a->name, "bonding/slaves", line);
    while ((name = strsep(&rest, " ")))
        add_member(root, a, name);
    for (size_t i = 0; i < a->count; i++)
        judge_bond_member(root, a, &a->members[i]);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct ft_aggregate_member *)a)->name,
                  ((const struct ft_aggregate_member *)b)->name);
}

/* The links lower_NAME of a folder are the interfaces below; read in the order of their names. */
static void read_lower(const char *root, struct ft_aggregate *a)
{
    const struct dirent *entry;
    char path[PATH_BYTES];
    DIR *dir;

    snprintf(path, sizeof(path), "%s/%s", root, a->name);
    dir = opendir(path);
    if (!dir)
        return;
    while ((entry = readdir(dir)))
        if (strncmp(entry->d_name, "lower_", 6) == 0)
            add_member(root, a, entry->d_name + 6);
    closedir(dir);
    qsort(a->members, a->count, sizeof(a->members[0]), by_name);
}

/* What stands on several is not an aggregate by that: a bridge forwards by addresses, a VRF device
 * routes. Those name their kind in their events, a team does not. */
static bool names_other_kind(const char *root, const char *name)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    bool other = false;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s/uevent", root, name);
    file = fopen(path, "re");
    if (!file)
        return false;
    while (fgets(line, sizeof(line), file))
        if (strncmp(line, "DEVTYPE=", 8) == 0)
            other = strncmp(line + 8, "team", 4) != 0;
    fclose(file);
    return other;
}

static void pick(struct ft_aggregate *a)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct ft_aggregate_member *m = &a->members[i];

        if (!m->up)
            continue;
        /* Frames may come in by a member that sends none. */
        a->receiving[a->receiving_count++] = m->name;
        if (!m->has_used || m->used)
            a->sending[a->sending_count++] = m->name;
    }
}

/* Follows what stands on one interface down to the aggregate; false when there is none. */
static bool read_aggregate(const char *root, const char *interface, struct ft_aggregate *a)
{
    char name[FT_AGGREGATE_NAME_BYTES];

    snprintf(name, sizeof(name), "%s", interface);
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        *a = (struct ft_aggregate){0};
        memcpy(a->name, name, sizeof(name));
        if (has(root, name, "bonding/slaves")) {
            read_bond(root, a);
            pick(a);
            return true;
        }
        read_lower(root, a);
        if (a->count > 1) {
            pick(a);
            return !names_other_kind(root, name);
        }
        if (a->count == 0)
            return false;
        memcpy(name, a->members[0].name, sizeof(name));
    }
    return false;
}

static void read_interface(const struct ft_aggregates *a, struct interface *interface)
{
    interface->is_aggregate = read_aggregate(a->root, interface->name, &interface->aggregate);
}

void ft_aggregates_look(struct ft_aggregates *a)
{
    size_t kept = 0;

    for (size_t i = 0; i < a->count; i++) {
        struct interface *interface = a->interfaces[i];

        if (!interface->asked) {
            free(interface);
            continue;
        }
        interface->asked = false;
        read_interface(a, interface);
        a->interfaces[kept++] = interface;
    }
    a->count = kept;
}

const struct ft_aggregate *ft_aggregates_get(struct ft_aggregates *a, const char *name)
{
    struct interface *interface = NULL;

    for (size_t i = 0; i < a->count && !interface; i++)
        if (strcmp(a->interfaces[i]->name, name) == 0)
            interface = a->interfaces[i];
    if (!interface) {
        if (a->count == INTERFACES_MAX || !is_name(name))
            return NULL;
        interface = calloc(1, sizeof(*interface));
        if (!interface)
            return NULL;
        snprintf(interface->name, sizeof(interface->name), "%s", name);
        read_interface(a, interface);
        a->interfaces[a->count++] = interface;
    }
    interface->asked = true;
    return interface->is_aggregate ? &interface->aggregate : NULL;
}

const struct ft_aggregate *ft_aggregates_at(const struct ft_aggregates *a, size_t i)
{
    for (size_t at = 0; at < a->count; at++)
        if (a->interfaces[at]->is_aggregate && i-- == 0)
            return &a->interfaces[at]->aggregate;
    return NULL;
}

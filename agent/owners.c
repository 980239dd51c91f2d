// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/owners.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/table.h"

#define PATH_BYTES        256
#define STAT_BYTES        1024
#define CGROUP_BYTES      4096
#define ENVIRONMENT_BYTES (256u << 10)
#define UUID_CHARACTERS   36
/* Longer than between two reports of a flow: what is known of a process outlasts its last moments,
 * when its number is still listed, but its environment is gone. */
#define ROUNDS_KEPT 256

struct ft_owners {
    struct ft_owners_config config;
    struct ft_table *table;
    uint32_t round;
};

struct ft_owners *ft_owners_new(const struct ft_owners_config *config)
{
    struct ft_owners *o = calloc(1, sizeof(*o));

    if (!o)
        return NULL;
    o->config = *config;
    o->table = ft_table_new(sizeof(struct ft_owner), sizeof(uint32_t), config->owners_max, 0);
    if (!o->table) {
        free(o);
        return NULL;
    }
    return o;
}

void ft_owners_free(struct ft_owners *o)
{
    if (!o)
        return;
    ft_table_free(o->table);
    free(o);
}

void ft_owners_job_variable(struct ft_owners *o, const char *name)
{
    o->config.job_variable = name;
}

void ft_owners_round(struct ft_owners *o)
{
    struct ft_owner *owner;
    uint32_t index = 0;

    while ((owner = ft_table_next(o->table, &index)))
        if (o->round - owner->round > ROUNDS_KEPT)
            ft_table_remove(o->table, owner);
    o->round++;
}

/* Files of /proc tell no size: reads up to the room, terminates. */
static ssize_t read_file(const struct ft_owners *o, uint32_t pid, const char *name, char *text,
                         size_t text_bytes)
{
    char path[PATH_BYTES];
    size_t len = 0;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "%s/%" PRIu32 "/%s", o->config.root, pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while (len < text_bytes - 1 && (n = read(fd, text + len, text_bytes - 1 - len)) > 0)
        len += (size_t)n;
    close(fd);
    text[len] = '\0';
    return (ssize_t)len;
}

/* proc(5): "pid (comm) state ppid ...", the start time is field 22. A command may hold anything,
 * parentheses too, so it ends at the last one. */
static int parse_stat(const char *stat, char comm[FT_OWNER_TEXT_BYTES], uint64_t *start_ticks)
{
    const char *open = strchr(stat, '('), *close = strrchr(stat, ')');
    const char *at = close;
    char *end;

    if (!open || !close || close < open)
        return -EINVAL;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return -EINVAL;
    *start_ticks = strtoull(at + 1, &end, 10);
    if (end == at + 1)
        return -EINVAL;
    snprintf(comm, FT_OWNER_TEXT_BYTES, "%.*s", (int)(close - open - 1), open + 1);
    return 0;
}

static const char *find_variable(const char *environment, size_t len, const char *name)
{
    size_t name_len = strlen(name);

    for (const char *at = environment; at < environment + len; at += strlen(at) + 1)
        if (strncmp(at, name, name_len) == 0 && at[name_len] == '=')
            return at + name_len + 1;
    return NULL;
}

static bool from_environment(const struct ft_owners *o, uint32_t pid, char *job)
{
    char *environment = malloc(ENVIRONMENT_BYTES);
    const char *value = NULL;
    ssize_t len;

    if (!environment)
        return false;
    len = read_file(o, pid, "environ", environment, ENVIRONMENT_BYTES);
    if (len > 0) {
        if (o->config.job_variable)
            value = find_variable(environment, (size_t)len, o->config.job_variable);
        if (!value)
            value = find_variable(environment, (size_t)len, "SLURM_JOB_ID");
    }
    if (value && value[0])
        snprintf(job, FT_OWNER_TEXT_BYTES, "%s", value);
    free(environment);
    return job[0] != '\0';
}

/* 8-4-4-4-12 hexadecimal digits; systemd's slices write "_" for "-". */
static bool copy_uuid(const char *from, char *to)
{
    for (int i = 0; i < UUID_CHARACTERS; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? from[i] != '-' && from[i] != '_' : !isxdigit((unsigned char)from[i]))
            return false;
        to[i] = dash ? '-' : from[i];
    }
    to[UUID_CHARACTERS] = '\0';
    return true;
}

void ft_owner_job_of_cgroup(const char *path, char job[FT_OWNER_TEXT_BYTES])
{
    char uuid[UUID_CHARACTERS + 1];
    const char *at;

    job[0] = '\0';
    for (at = strstr(path, "slurm") ? path : NULL; at && (at = strstr(at, "/job_")); at++) {
        size_t digits = strspn(at + 5, "0123456789");

        if (digits == 0 || digits >= FT_OWNER_TEXT_BYTES)
            continue;
        memcpy(job, at + 5, digits);
        job[digits] = '\0';
        return;
    }
    for (at = strstr(path, "kubepods") ? path : NULL; at && (at = strstr(at, "pod")); at++) {
        if (!copy_uuid(at + 3, uuid))
            continue;
        snprintf(job, FT_OWNER_TEXT_BYTES, "%s", uuid);
        return;
    }
}

static void find_job(const struct ft_owners *o, uint32_t pid, char *job)
{
    char cgroup[CGROUP_BYTES];

    job[0] = '\0';
    if (from_environment(o, pid, job))
        return;
    if (read_file(o, pid, "cgroup", cgroup, sizeof(cgroup)) > 0)
        ft_owner_job_of_cgroup(cgroup, job);
}

const struct ft_owner *ft_owners_get(struct ft_owners *o, uint32_t pid)
{
    struct ft_owner *owner = ft_table_find(o->table, &pid);
    char stat[STAT_BYTES], comm[FT_OWNER_TEXT_BYTES];
    uint64_t start_ticks;
    bool fresh;

    if (owner && owner->round == o->round)
        return owner;
    if (read_file(o, pid, "stat", stat, sizeof(stat)) <= 0 ||
        parse_stat(stat, comm, &start_ticks)) {
        if (owner)
            ft_table_remove(o->table, owner);
        return NULL;
    }
    if (!owner)
        owner = ft_table_insert(o->table, &pid, &fresh);
    if (!owner)
        return NULL;
    /* The environment is the one of the last execve(2), which also sets the command. */
    if (owner->start_ticks != start_ticks || strcmp(owner->comm, comm) != 0) {
        owner->start_ticks = start_ticks;
        memcpy(owner->comm, comm, sizeof(comm));
        find_job(o, pid, owner->job);
    }
    owner->round = o->round;
    return owner;
}

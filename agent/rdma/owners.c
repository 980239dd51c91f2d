// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/owners.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/base/table.h"

#define PATH_BYTES        256
#define STAT_BYTES        1024
#define STATUS_BYTES      1024 /* of it: the head */
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
    uint64_t round_ticks;
    size_t hidden; /* in this round */
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

void ft_owners_round(struct ft_owners *o, uint64_t boot_ticks)
{
    struct ft_owner *owner;
    uint32_t index = 0;

    while ((owner = ft_table_next(o->table, &index)))
        if (o->round - owner->round > ROUNDS_KEPT)
            ft_table_remove(o->table, owner);
    o->round++;
    o->round_ticks = boot_ticks;
    o->hidden = 0;
}

/* Files of /proc have no size: reads up to the room, terminates. */
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

/* Field number `field` of a stat, from 3 on; 0: none. */
static uint64_t stat_field(const char *stat, int field)
{
    const char *at = strrchr(stat, ')');

    for (int f = 2; at && f < field; f++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* /proc/PID/environ is for the process's own user, and for who may read any file. Whoever may trace
 * reads the same bytes from the process, between env_start and env_end (proc(5), fields 50 and 51).
 */
static ssize_t copy_environment(const struct ft_owners *o, uint32_t pid, char *text,
                                size_t text_bytes)
{
    char stat[STAT_BYTES];
    struct iovec local = {.iov_base = text}, remote;
    uint64_t start, end;
    ssize_t len;

    if (read_file(o, pid, "stat", stat, sizeof(stat)) <= 0)
        return -ESRCH;
    start = stat_field(stat, 50);
    end = stat_field(stat, 51);
    if (start == 0 || end <= start)
        return -EACCES;
    local.iov_len = end - start < text_bytes - 1 ? (size_t)(end - start) : text_bytes - 1;
    remote = (struct iovec){.iov_base = (void *)(uintptr_t)start, .iov_len = local.iov_len};
    len = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);
    if (len < 0)
        return errno == EPERM ? -EACCES : -errno;
    text[len] = '\0';
    return len;
}

static const char *find_variable(const char *environment, size_t len, const char *name)
{
    size_t name_len = strlen(name);

    for (const char *at = environment; at < environment + len; at += strlen(at) + 1)
        if (strncmp(at, name, name_len) == 0 && at[name_len] == '=')
            return at + name_len + 1;
    return NULL;
}

static bool from_environment(const struct ft_owners *o, uint32_t pid, char *job, bool *denied)
{
    char *environment = malloc(ENVIRONMENT_BYTES);
    const char *value = NULL;
    ssize_t len;

    if (!environment)
        return false;
    len = read_file(o, pid, "environ", environment, ENVIRONMENT_BYTES);
    if (len == -EACCES)
        len = copy_environment(o, pid, environment, ENVIRONMENT_BYTES);
    *denied = len == -EACCES;
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

static void find_job(const struct ft_owners *o, struct ft_owner *owner)
{
    char cgroup[CGROUP_BYTES];

    owner->job[0] = '\0';
    if (from_environment(o, owner->process, owner->job, &owner->denied))
        return;
    if (read_file(o, owner->process, "cgroup", cgroup, sizeof(cgroup)) > 0)
        ft_owner_job_of_cgroup(cgroup, owner->job);
    owner->denied = owner->denied && !owner->job[0];
}

struct found {
    uint32_t process;
    uint64_t start_ticks;
    char comm[FT_OWNER_TEXT_BYTES];
};

static int read_stat(const struct ft_owners *o, uint32_t pid, struct found *found)
{
    char stat[STAT_BYTES];
    ssize_t len = read_file(o, pid, "stat", stat, sizeof(stat));

    if (len <= 0)
        return len < 0 ? (int)len : -ESRCH;
    found->process = pid;
    return parse_stat(stat, found->comm, &found->start_ticks);
}

/* The process that a thread is of: "Tgid:" of its status. A reader that shows no such file knows of
 * no threads. Of one that is there and cannot be read the process is not known. */
static int process_of(const struct ft_owners *o, uint32_t pid, uint32_t *process)
{
    char status[STATUS_BYTES];
    ssize_t len = read_file(o, pid, "status", status, sizeof(status));
    const char *line = len > 0 ? strstr(status, "\nTgid:") : NULL;

    if (len <= 0 && len != -ENOENT)
        return -ESRCH;
    *process = line ? (uint32_t)strtoul(line + 6, NULL, 10) : pid;
    return 0;
}

/* Whoever has a number now had it when the round began, if he started before. The thread is read
 * after its process's number, and the process after that: each was there all the time then. */
static int find_process(const struct ft_owners *o, uint32_t pid, struct found *found)
{
    uint32_t process;
    int rc = process_of(o, pid, &process);

    if (rc == 0)
        rc = read_stat(o, pid, found);
    if (rc == 0 && found->start_ticks >= o->round_ticks)
        return -ESRCH;
    if (rc || process == pid)
        return rc;
    rc = read_stat(o, process, found);
    return rc == 0 && found->start_ticks >= o->round_ticks ? -ESRCH : rc;
}

const struct ft_owner *ft_owners_get(struct ft_owners *o, uint32_t pid)
{
    struct ft_owner *owner = ft_table_find(o->table, &pid);
    struct found found;
    bool fresh;
    int rc;

    if (owner && owner->round == o->round)
        return owner;
    rc = find_process(o, pid, &found);
    if (rc) {
        /* There, but not for us to see. */
        if (rc == -ENOENT && pid <= INT_MAX && kill((pid_t)pid, 0) && errno == EPERM)
            o->hidden++;
        if (owner)
            ft_table_remove(o->table, owner);
        return NULL;
    }
    if (!owner)
        owner = ft_table_insert(o->table, &pid, &fresh);
    if (!owner)
        return NULL;
    /* The environment is the one of the last execve(2), which also sets the command. */
    if (owner->process != found.process || owner->start_ticks != found.start_ticks ||
        strcmp(owner->comm, found.comm) != 0) {
        owner->process = found.process;
        owner->start_ticks = found.start_ticks;
        memcpy(owner->comm, found.comm, sizeof(found.comm));
        find_job(o, owner);
        /* Its number may have been given away while its job was read. */
        if (!ft_owners_alive(o, owner)) {
            ft_table_remove(o->table, owner);
            return NULL;
        }
    }
    owner->round = o->round;
    return owner;
}

const struct ft_owner *ft_owners_last(const struct ft_owners *o, uint32_t pid)
{
    const struct ft_owner *owner = ft_table_find(o->table, &pid);

    return owner && owner->round != o->round ? owner : NULL;
}

bool ft_owners_alive(const struct ft_owners *o, const struct ft_owner *owner)
{
    struct found now;

    return read_stat(o, owner->process, &now) == 0 && now.start_ticks == owner->start_ticks;
}

void ft_owners_stats(const struct ft_owners *o, struct ft_owners_stats *stats)
{
    struct ft_owners_stats s = {.hidden = o->hidden};
    const struct ft_owner *owner;
    uint32_t index = 0;

    while ((owner = ft_table_next(o->table, &index))) {
        s.known++;
        s.denied += owner->denied;
    }
    *stats = s;
}

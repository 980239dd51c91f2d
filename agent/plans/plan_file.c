// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/plans/plan_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/plan_name.h"
#include "proto/record.h"

#define HOPS_MAX  16
#define TEXT_MAX  128
#define PORT_BASE 0xc000u
#define PORT_MOST 0xffffu

static int judge(const struct stat *s, uid_t uid)
{
    if (!S_ISREG(s->st_mode) || s->st_uid != uid || (s->st_mode & (S_IWGRP | S_IWOTH)))
        return -EPERM;
    return s->st_size > FT_PLAN_FILE_MAX ? -EFBIG : 0;
}

int ft_plan_file_open(const char *folder, const char *name, uid_t uid,
                      struct ft_plan_identity *identity)
{
    int folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC), fd, rc;
    struct stat s;

    if (folder_fd < 0)
        return -errno;
    /* A pipe must not make the agent wait, nor a link lead it anywhere. */
    fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    rc = fd < 0 ? -errno : 0;
    close(folder_fd);
    if (rc)
        return rc == -ELOOP ? -EPERM : rc;
    rc = fstat(fd, &s) ? -errno : judge(&s, uid);
    if (rc) {
        close(fd);
        return rc;
    }
    *identity = (struct ft_plan_identity){
        .device = s.st_dev,
        .inode = s.st_ino,
        .bytes = s.st_size,
        .changed_ns = (int64_t)s.st_ctim.tv_sec * 1000000000 + s.st_ctim.tv_nsec,
    };
    return fd;
}

int ft_plan_file_read(int fd, const char *job, struct ft_plan_file *file, char *error,
                      size_t error_bytes)
{
    char *text = malloc(FT_PLAN_FILE_MAX + 1);
    size_t len = 0;
    ssize_t n = 1;
    int rc = text ? 0 : -ENOMEM;

    while (rc == 0 && n > 0 && len <= FT_PLAN_FILE_MAX) {
        n = read(fd, text + len, FT_PLAN_FILE_MAX + 1 - len);
        if (n < 0 && errno != EINTR)
            rc = -errno;
        else if (n < 0)
            n = 1;
        else
            len += (size_t)n;
    }
    close(fd);
    if (rc)
        snprintf(error, error_bytes, "%s", strerror(-rc));
    else if (len > FT_PLAN_FILE_MAX)
        rc = -EFBIG;
    else
        rc = ft_plan_file_parse(text, len, job, file, error, error_bytes);
    if (rc == -EFBIG)
        snprintf(error, error_bytes, "more than %u bytes", FT_PLAN_FILE_MAX);
    free(text);
    return rc;
}

static bool is_short(const char *text)
{
    return text && strlen(text) < TEXT_MAX;
}

static bool are_hops(Fabrictrace__Hop *const *hops, size_t count)
{
    if (count > HOPS_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!is_short(hops[i]->switch_) || !is_short(hops[i]->out))
            return false;
    return true;
}

static int take_move(const Fabrictrace__PlanMove *move, struct ft_plan_entry *entry)
{
    struct ft_tuple tuple;

    if (!move->flow || ft_flow_to_tuple(move->flow, &tuple) || !move->has_sport ||
        move->sport < PORT_BASE || move->sport > PORT_MOST || !are_hops(move->hops, move->n_hops) ||
        !are_hops(move->hops_before, move->n_hops_before))
        return -EINVAL;
    *entry = (struct ft_plan_entry){
        .src = tuple.src, .dst = tuple.dst, .sport = (uint16_t)move->sport, .move = move};
    return 0;
}

static int take_moves(struct ft_plan_file *file, Fabrictrace__PlanMove **moves, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (take_move(moves[i], &file->entries[file->count++]))
            return -EINVAL;
    return 0;
}

static int take_plan(const Fabrictrace__Plan *plan, const char *job, struct ft_plan_file *file,
                     char *error, size_t error_bytes)
{
    int rc = -EINVAL;

    file->count = 0;
    file->entries = NULL;
    if (!plan->job || strcmp(plan->job, job) != 0) {
        snprintf(error, error_bytes, "it is of another job");
        return -EINVAL;
    }
    if (plan->n_refused || !plan->has_time_ms || plan->n_moves + plan->n_keeps == 0) {
        snprintf(error, error_bytes, "it has no ports");
        return -EINVAL;
    }
    file->entries = calloc(plan->n_moves + plan->n_keeps, sizeof(*file->entries));
    if (!file->entries)
        rc = -ENOMEM;
    else if (take_moves(file, plan->moves, plan->n_moves) == 0)
        rc = take_moves(file, plan->keeps, plan->n_keeps);
    if (rc)
        snprintf(error, error_bytes, "queue pair %zu is not one, or its port is none", file->count);
    return rc;
}

int ft_plan_file_parse(const char *text, size_t len, const char *job, struct ft_plan_file *file,
                       char *error, size_t error_bytes)
{
    struct ft_plan_file found = {0};
    int rc;

    while (len && text[len - 1] == '\n')
        len--;
    rc = ft_record_from_json(text, len, &found.record, error, error_bytes);
    if (rc)
        return rc;
    if (found.record->kind_case != FABRICTRACE__RECORD__KIND_PLAN) {
        snprintf(error, error_bytes, "it is not a fabrictrace.plan.v1");
        rc = -EINVAL;
    } else {
        rc = take_plan(found.record->plan, job, &found, error, error_bytes);
    }
    if (rc)
        ft_plan_file_clear(&found);
    else
        *file = found;
    return rc;
}

void ft_plan_file_clear(struct ft_plan_file *file)
{
    free(file->entries);
    ft_record_free(file->record);
    *file = (struct ft_plan_file){0};
}

struct ft_plan_entry *ft_plan_file_find(struct ft_plan_file *file, const struct ft_ip *src,
                                        const struct ft_ip *dst)
{
    struct ft_plan_entry *best = NULL;

    for (size_t i = 0; i < file->count; i++) {
        struct ft_plan_entry *e = &file->entries[i];

        if (ft_ip_equal(&e->src, src) && ft_ip_equal(&e->dst, dst) &&
            (!best || e->given < best->given))
            best = e;
    }
    return best;
}

struct ft_plan_entry *ft_plan_file_port(struct ft_plan_file *file, const struct ft_ip *src,
                                        const struct ft_ip *dst, uint16_t sport)
{
    for (size_t i = 0; i < file->count; i++) {
        struct ft_plan_entry *e = &file->entries[i];

        if (e->sport == sport && ft_ip_equal(&e->src, src) && ft_ip_equal(&e->dst, dst))
            return e;
    }
    return NULL;
}

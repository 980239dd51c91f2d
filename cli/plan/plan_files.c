// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/plan/plan_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/fetch/fetch.h"
#include "proto/plan_name.h"

#define SUFFIX ".plan"

static int complain(const char *what, const char *name, int err)
{
    fprintf(stderr, "fabrictrace plan: %s '%s': %s\n", what, name, strerror(err));
    return EX_CANTCREAT;
}

static int open_folder(const char *folder)
{
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int write_all(int fd, const struct ft_writer *w)
{
    size_t at = 0;

    while (at < w->len) {
        ssize_t n = write(fd, w->bytes + at, w->len - at);

        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return fsync(fd) ? -errno : 0;
}

/* In one piece: an agent reads the old one or the new one. */
static int replace(int folder_fd, const char *name, const struct ft_writer *w)
{
    char temporary[FT_PLAN_NAME_BYTES + 8];
    int fd, rc;

    snprintf(temporary, sizeof(temporary), "%s.new", name);
    unlinkat(folder_fd, temporary, 0);
    fd = openat(folder_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    rc = write_all(fd, w);
    /* Agents run as a user of their own; nobody else's umask is to matter. */
    if (rc == 0 && fchmod(fd, 0644))
        rc = -errno;
    close(fd);
    if (rc == 0 && renameat(folder_fd, temporary, folder_fd, name))
        rc = -errno;
    if (rc)
        unlinkat(folder_fd, temporary, 0);
    return rc;
}

/* The host that begins with this flow: the first flow of the job from there. NULL: another did. */
static const char *host_of(const struct ft_plan_job *p, uint32_t flow)
{
    const Fabrictrace__Path *r = p->captured.flows[flow].record;

    if (!r->job || strcmp(r->job, p->job) != 0 || !r->src_host)
        return NULL;
    for (uint32_t i = 0; i < flow; i++) {
        const Fabrictrace__Path *other = p->captured.flows[i].record;

        if (other->job && strcmp(other->job, p->job) == 0 && other->src_host &&
            strcmp(other->src_host, r->src_host) == 0)
            return NULL;
    }
    return r->src_host;
}

/* All hosts before the first file is written. */
static int check_names(const struct ft_plan_job *p)
{
    char name[FT_PLAN_NAME_BYTES];

    for (uint32_t i = 0; i < p->captured.inputs.flows.count; i++) {
        const char *host = host_of(p, i);

        if (host && ft_plan_name(name, getuid(), p->job, host)) {
            fprintf(stderr,
                    "fabrictrace plan: job '%s' or host '%s' has a name that no file can have: "
                    "nothing was applied\n",
                    p->job, host);
            return EX_DATAERR;
        }
    }
    return EX_OK;
}

static int lay_down(const struct ft_plan_job *p, int folder_fd, const char *host,
                    const struct ft_args *args)
{
    FILE *out = args->json ? stderr : stdout;
    char name[FT_PLAN_NAME_BYTES];
    struct ft_writer w;
    int pairs, rc = EX_OK;

    ft_writer_init(&w, FT_PLAN_FILE_MAX);
    pairs = ft_plan_job_of_host(p, host, &w);
    if (pairs < 0) {
        fprintf(stderr, "fabrictrace plan: host '%s': its part has more than %u bytes\n", host,
                FT_PLAN_FILE_MAX);
        rc = EX_DATAERR;
    } else if (pairs > 0) {
        int err;

        ft_plan_name(name, getuid(), p->job, host);
        err = args->dry_run ? 0 : replace(folder_fd, name, &w);
        if (err)
            rc = complain("file", name, -err);
        else
            fprintf(out, "%s%s: ports of %d queue pairs\n", args->dry_run ? "would write " : "",
                    name, pairs);
    }
    ft_writer_free(&w);
    return rc;
}

static bool is_of(const char *name, const char *begin)
{
    size_t len = strlen(name), suffix = strlen(SUFFIX);

    return strncmp(name, begin, strlen(begin)) == 0 && len > strlen(begin) + suffix &&
           strcmp(name + len - suffix, SUFFIX) == 0;
}

/* Whether the file is of one of the plan's hosts; NULL: of none. */
static bool is_of_host(const char *rest, const struct ft_plan_job *p)
{
    for (uint32_t i = 0; p && i < p->captured.inputs.flows.count; i++) {
        const char *host = host_of(p, i);

        if (host && strncmp(rest, host, strlen(host)) == 0 &&
            strcmp(rest + strlen(host), SUFFIX) == 0)
            return true;
    }
    return false;
}

/* Removes the files of the user's plan of a job but those of keep's hosts; *count: how many. */
static int take_away(const struct ft_args *args, const char *folder, const struct ft_plan_job *keep,
                     unsigned *count)
{
    char begin[FT_PLAN_NAME_BYTES];
    DIR *list = opendir(folder);
    struct dirent *entry;
    int rc = EX_OK;

    *count = 0;
    if (!list)
        return complain("folder", folder, errno);
    snprintf(begin, sizeof(begin), "%u@%s@", (unsigned)getuid(), args->job);
    while (rc == EX_OK && (entry = readdir(list))) {
        if (!is_of(entry->d_name, begin) || is_of_host(entry->d_name + strlen(begin), keep))
            continue;
        if (!args->dry_run && unlinkat(dirfd(list), entry->d_name, 0) && errno != ENOENT)
            rc = complain("file", entry->d_name, errno);
        else
            fprintf(args->json ? stderr : stdout, "%s%s\n",
                    args->dry_run ? "would remove " : "removed ", entry->d_name);
        (*count)++;
    }
    closedir(list);
    return rc;
}

int ft_plan_files_apply(const struct ft_plan_job *p, const struct ft_args *args)
{
    unsigned removed;
    int folder_fd, rc;

    if (!args->apply || p->result.moved == 0 || p->result.after > p->result.before) {
        if (!args->json)
            puts("Nothing was applied.");
        return EX_OK;
    }
    rc = check_names(p);
    if (rc)
        return rc;
    folder_fd = open_folder(args->apply);
    if (folder_fd < 0)
        return complain("folder", args->apply, errno);
    for (uint32_t i = 0; rc == EX_OK && i < p->captured.inputs.flows.count; i++) {
        const char *host = host_of(p, i);

        if (host)
            rc = lay_down(p, folder_fd, host, args);
    }
    close(folder_fd);
    if (rc == EX_OK)
        rc = take_away(args, args->apply, p, &removed);
    if (rc == EX_OK && args->dry_run && !args->json)
        puts("Nothing was applied.");
    return rc;
}

int ft_plan_files_withdraw(const struct ft_args *args)
{
    unsigned count;
    int rc;

    if (!ft_plan_name_is_good(args->job)) {
        fprintf(stderr, "fabrictrace plan: job '%s' has a name that no file can have\n", args->job);
        return FT_EXIT_NOT_FOUND;
    }
    rc = take_away(args, args->withdraw, NULL, &count);
    if (rc == EX_OK && count == 0) {
        fprintf(stderr, "fabrictrace plan: folder '%s' has no plan of job '%s' and user %u\n",
                args->withdraw, args->job, (unsigned)getuid());
        rc = FT_EXIT_NOT_FOUND;
    }
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/states/dumps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 128
#define STILL_MS   2000
#define OLD_MS     600000
/* Entries of a folder that are looked at in one go, whatever they are. */
#define ENTRIES_MAX 8192

struct seen {
    char name[NAME_BYTES];
    int64_t written_ns, bytes;
};

struct ft_dumps {
    char *folder;
    struct seen seen[FT_DUMPS_MAX];
    size_t count;
    uint64_t refused;
};

struct ft_dumps *ft_dumps_new(const char *folder)
{
    struct ft_dumps *dumps = calloc(1, sizeof(*dumps));

    if (dumps && !(dumps->folder = strdup(folder))) {
        free(dumps);
        return NULL;
    }
    return dumps;
}

void ft_dumps_free(struct ft_dumps *dumps)
{
    if (!dumps)
        return;
    free(dumps->folder);
    free(dumps);
}

static bool rank_of(const char *name, uint32_t *rank)
{
    size_t len = strlen(name), at;

    if (len >= NAME_BYTES || name[0] == '.')
        return false;
    if (len > 5 && strcmp(name + len - 5, ".json") == 0)
        len -= 5;
    for (at = len; at > 0 && isdigit((unsigned char)name[at - 1]);)
        at--;
    if (at == len || len - at > 7)
        return false;
    *rank = (uint32_t)strtoul(name + at, NULL, 10);
    return true;
}

static int64_t written_ns(const struct stat *s)
{
    return (int64_t)s->st_mtim.tv_sec * 1000000000 + s->st_mtim.tv_nsec;
}

static struct seen *find(struct ft_dumps *dumps, const char *name)
{
    for (size_t i = 0; i < dumps->count; i++)
        if (strcmp(dumps->seen[i].name, name) == 0)
            return &dumps->seen[i];
    return NULL;
}

/* What is gone, or too old to be read again, makes room. */
static void forget(struct ft_dumps *dumps, int64_t now_ms)
{
    size_t kept = 0;

    for (size_t i = 0; i < dumps->count; i++)
        if (dumps->seen[i].written_ns / 1000000 + OLD_MS > now_ms)
            dumps->seen[kept++] = dumps->seen[i];
    dumps->count = kept;
}

static bool is_new(struct ft_dumps *dumps, const char *name, const struct stat *s, int64_t now_ms)
{
    int64_t written_ms = written_ns(s) / 1000000;
    const struct seen *known = find(dumps, name);

    return S_ISREG(s->st_mode) && written_ms + STILL_MS <= now_ms && written_ms + OLD_MS > now_ms &&
           !(known && known->written_ns == written_ns(s) && known->bytes == s->st_size);
}

/* False: no room. */
static bool remember(struct ft_dumps *dumps, const char *name, const struct stat *s)
{
    struct seen *known = find(dumps, name);

    if (!known && dumps->count == FT_DUMPS_MAX) {
        dumps->refused++;
        return false;
    }
    if (!known)
        known = &dumps->seen[dumps->count++];
    snprintf(known->name, sizeof(known->name), "%s", name);
    known->written_ns = written_ns(s);
    known->bytes = s->st_size;
    return true;
}

static int read_all(int fd, const struct stat *s, struct ft_dump *out)
{
    size_t size = (size_t)s->st_size, len = 0;
    char *bytes;

    if (s->st_size > (off_t)FT_DUMP_BYTES)
        return -EFBIG;
    bytes = malloc(size ? size : 1);
    if (!bytes)
        return -ENOMEM;
    while (len < size) {
        ssize_t n = read(fd, bytes + len, size - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            free(bytes);
            return n < 0 ? -errno : -ESTALE;
        }
        len += (size_t)n;
    }
    out->bytes = bytes;
    out->len = len;
    out->written_ms = written_ns(s) / 1000000;
    return 0;
}

static int take(struct ft_dumps *dumps, int folder, const char *name, int64_t now_ms,
                struct ft_dump *out)
{
    /* A pipe must not make the agent wait, nor a link lead it anywhere. */
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), rc;
    struct stat s;

    if (fd < 0)
        return -errno;
    rc = fstat(fd, &s) ? -errno : is_new(dumps, name, &s, now_ms) ? 0 : -ENOENT;
    if (rc == 0 && !remember(dumps, name, &s))
        rc = -ENOENT;
    if (rc == 0)
        rc = read_all(fd, &s, out);
    close(fd);
    return rc;
}

int ft_dumps_next(struct ft_dumps *dumps, int64_t now_ms, struct ft_dump *out)
{
    DIR *dir = opendir(dumps->folder);
    const struct dirent *entry;
    int rc = -ENOENT;

    if (!dir)
        return -errno;
    forget(dumps, now_ms);
    for (size_t i = 0; rc == -ENOENT && i < ENTRIES_MAX && (entry = readdir(dir)); i++) {
        struct stat s;

        if (!rank_of(entry->d_name, &out->rank) ||
            fstatat(dirfd(dir), entry->d_name, &s, AT_SYMLINK_NOFOLLOW) ||
            !is_new(dumps, entry->d_name, &s, now_ms))
            continue;
        rc = take(dumps, dirfd(dir), entry->d_name, now_ms, out);
        /* One that may not be read does not keep the others from it. */
        if (rc == -EACCES || rc == -ELOOP) {
            remember(dumps, entry->d_name, &s);
            dumps->refused++;
            rc = -ENOENT;
        }
    }
    closedir(dir);
    return rc;
}

uint64_t ft_dumps_refused(const struct ft_dumps *dumps)
{
    return dumps->refused;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/local_users.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RANGES_MAX 8192
#define LINE_BYTES 512
#define NAME_BYTES 64
#define PERSON_MIN 1000 /* UID_MIN of login.defs */
#define A_POD      65536
#define OF_NOBODY  (UINT64_C(1) << 32) /* above all IDs */
#define UNKNOWN    UINT32_MAX

struct range {
    char name[NAME_BYTES];
    uint32_t first, count;
    uint32_t owner; /* UNKNOWN: none is known */
};

struct ft_local_users {
    const char *subuid, *passwd;
    struct stat seen; /* of subuid */
    struct range *ranges;
    size_t count;
};

static bool number(const char *text, uint32_t *out)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (end == text || (*end && *end != '\n') || value >= UINT32_MAX)
        return false;
    *out = (uint32_t)value;
    return true;
}

/* name:first:count */
static bool parse(char *line, struct range *r)
{
    char *first = strchr(line, ':'), *count = first ? strchr(first + 1, ':') : NULL;

    if (!count)
        return false;
    *first++ = *count++ = '\0';
    if (!*line || *line == '#' || strlen(line) >= NAME_BYTES || !number(first, &r->first) ||
        !number(count, &r->count) || r->count == 0)
        return false;
    memcpy(r->name, line, strlen(line) + 1);
    if (!number(line, &r->owner))
        r->owner = UNKNOWN;
    return true;
}

static void read_ranges(struct ft_local_users *u)
{
    FILE *f = fopen(u->subuid, "re");
    char line[LINE_BYTES];
    struct range r, *grown;

    u->count = 0;
    while (f && u->count < RANGES_MAX && fgets(line, sizeof(line), f)) {
        if (!parse(line, &r))
            continue;
        if ((u->count & (u->count - 1)) == 0) {
            grown = realloc(u->ranges, (u->count ? 2 * u->count : 1) * sizeof(*grown));
            if (!grown)
                break;
            u->ranges = grown;
        }
        u->ranges[u->count++] = r;
    }
    if (f)
        fclose(f);
}

static void read_names(struct ft_local_users *u)
{
    FILE *f = fopen(u->passwd, "re");
    const struct passwd *p;

    while (f && (p = fgetpwent(f)))
        for (size_t i = 0; i < u->count; i++)
            if (u->ranges[i].owner == UNKNOWN && strcmp(u->ranges[i].name, p->pw_name) == 0)
                u->ranges[i].owner = p->pw_uid;
    if (f)
        fclose(f);
}

static void look(struct ft_local_users *u)
{
    struct stat now = {0};

    if (stat(u->subuid, &now))
        now = (struct stat){0};
    if (now.st_ino == u->seen.st_ino && now.st_size == u->seen.st_size &&
        now.st_mtim.tv_sec == u->seen.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == u->seen.st_mtim.tv_nsec)
        return;
    u->seen = now;
    read_ranges(u);
    read_names(u);
}

struct ft_local_users *ft_local_users_new(const char *subuid, const char *passwd)
{
    struct ft_local_users *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->subuid = subuid;
    u->passwd = passwd;
    look(u);
    return u;
}

void ft_local_users_free(struct ft_local_users *u)
{
    if (!u)
        return;
    free(u->ranges);
    free(u);
}

uint64_t ft_local_users_of(struct ft_local_users *u, uid_t uid)
{
    if (u)
        look(u);
    for (size_t i = 0; u && i < u->count; i++) {
        const struct range *r = &u->ranges[i];

        if (uid < r->first || uid - r->first >= r->count)
            continue;
        if (r->owner != UNKNOWN && r->owner >= PERSON_MIN)
            return r->owner;
        return OF_NOBODY + r->first + (uid - r->first) / A_POD * A_POD;
    }
    return uid;
}

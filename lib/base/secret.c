// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/secret.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

int ft_secret_check(const char *path, char *error, size_t error_bytes)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        int err = errno;

        snprintf(error, error_bytes, "%s", strerror(err));
        return -err;
    }
    /* A device such as /dev/null keeps nothing. */
    if (S_ISREG(st.st_mode) && (st.st_mode & (S_IROTH | S_IWOTH))) {
        snprintf(error, error_bytes, "everybody may read or write it (mode %04o): chmod o= it",
                 (unsigned)(st.st_mode & 07777));
        return -EACCES;
    }
    return 0;
}

#define SECRET_MIN 16
#define SECRET_MAX 1024

int ft_secret_file(const char *path, char *file)
{
    static const char scheme[] = "credential:";
    const char *folder = getenv("CREDENTIALS_DIRECTORY"), *name = path + sizeof(scheme) - 1;
    bool credential = strncmp(path, scheme, sizeof(scheme) - 1) == 0;
    int n;

    if (credential && (!folder || !*name || strchr(name, '/')))
        return -ENOENT;
    n = credential ? snprintf(file, PATH_MAX, "%s/%s", folder, name)
                   : snprintf(file, PATH_MAX, "%s", path);
    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int read_line(const char *file, size_t least, char line[SECRET_MAX + 2])
{
    FILE *in = fopen(file, "re");
    size_t n;

    if (!in)
        return -errno;
    n = fread(line, 1, SECRET_MAX + 1, in);
    fclose(in);
    if (n && line[n - 1] == '\n')
        n--;
    line[n] = '\0';
    if (n < least || n > SECRET_MAX)
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (line[i] < (least == 1 ? ' ' : '!') || line[i] > '~')
            return -EINVAL;
    return 0;
}

static int read_secret(const char *path, size_t least, char **text, char *error, size_t error_bytes)
{
    char file[PATH_MAX], line[SECRET_MAX + 2], reason[128], *copy;
    int rc = ft_secret_file(path, file);

    if (rc == 0 && (rc = ft_secret_check(file, reason, sizeof(reason))) < 0) {
        snprintf(error, error_bytes, "%s: %s", path, reason);
        return rc;
    }
    if (rc == 0)
        rc = read_line(file, least, line);
    copy = rc == 0 ? strdup(line) : NULL;
    if (rc == 0 && !copy)
        rc = -ENOMEM;
    if (rc == -EINVAL)
        snprintf(error, error_bytes, "%s: holds no %zu to %d printable characters in one line",
                 path, least, SECRET_MAX);
    else if (rc < 0)
        snprintf(error, error_bytes, "%s: %s", path, strerror(-rc));
    else
        *text = copy;
    return rc;
}

int ft_secret_read(const char *path, char **text, char *error, size_t error_bytes)
{
    return read_secret(path, SECRET_MIN, text, error, error_bytes);
}

int ft_secret_password(const char *path, char **text, char *error, size_t error_bytes)
{
    return read_secret(path, 1, text, error, error_bytes);
}

bool ft_secret_setting(const char *setting)
{
    /* Those of librdkafka that are marked sensitive, or may hold what is. */
    static const char *const words[] = {"password", "secret", "key.pem", "oauthbearer.config",
                                        "jaas"};
    size_t name = strcspn(setting, "=");

    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
        for (size_t i = 0; i + strlen(words[w]) <= name; i++)
            if (strncasecmp(setting + i, words[w], strlen(words[w])) == 0)
                return true;
    return false;
}

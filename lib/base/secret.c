// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/secret.h"

#include <errno.h>
#include <stdio.h>
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

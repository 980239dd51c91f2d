// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/files/slurp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_BYTES 65536

static int read_all(int fd, size_t max, char **bytes, size_t *len)
{
    size_t size = FIRST_BYTES, n = 0;
    char *text = malloc(size + 1);

    while (text) {
        ssize_t got = read(fd, text + n, size - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || n + (size_t)got > max) {
            int rc = got < 0 ? -errno : -EFBIG;

            free(text);
            return rc;
        }
        n += (size_t)got;
        if (got == 0) {
            text[n] = '\0';
            *bytes = text;
            *len = n;
            return 0;
        }
        if (n == size) {
            char *more = realloc(text, 2 * size + 1);

            if (!more)
                break;
            text = more;
            size *= 2;
        }
    }
    free(text);
    return -ENOMEM;
}

int ft_slurp(const char *file, size_t max, char **bytes, size_t *len)
{
    bool in = strcmp(file, "-") == 0;
    int fd = in ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
    int rc;

    if (fd < 0)
        return -errno;
    rc = read_all(fd, max, bytes, len);
    if (!in)
        close(fd);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static int write_all(int fd, const uint8_t *bytes, size_t len, size_t *done)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};

    for (*done = 0; *done < len;) {
        ssize_t n = write(fd, bytes + *done, len - *done);

        if (n >= 0)
            *done += (size_t)n;
        else if (errno == EAGAIN)
            /* Whoever started us may have made its end of the pipe so; errors show at the write. */
            poll(&room, 1, -1);
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

static uint64_t count_lines(const uint8_t *bytes, size_t len)
{
    const uint8_t *at = bytes, *end = bytes + len;
    uint64_t lines = 0;

    /* Lines are long: memchr(3) looks at many bytes at a time. */
    for (; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
        lines++;
    return lines;
}

int ft_lines_write(struct ft_lines *lines, const uint8_t *bytes, size_t len, uint64_t *written)
{
    size_t done;
    int rc;

    *written = 0;
    if (lines->fd < 0)
        return -EBADF;
    if (lines->broken) {
        rc = write_all(lines->fd, (const uint8_t *)"\n", 1, &done);
        if (rc)
            return rc;
        lines->broken = false;
    }
    rc = write_all(lines->fd, bytes, len, &done);
    *written = count_lines(bytes, done);
    lines->broken = done > 0 && bytes[done - 1] != '\n';
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
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

/* What became of some bytes, of which so many went. What -EAGAIN leaves comes later. */
static void take_note(struct ft_lines *lines, const uint8_t *bytes, size_t done, int rc)
{
    if (done > 0)
        lines->within = bytes[done - 1] != '\n';
    lines->broken = lines->within && rc && rc != -EAGAIN;
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
        lines->within = lines->broken = false;
    }
    rc = write_all(lines->fd, bytes, len, &done);
    *written = count_lines(bytes, done);
    take_note(lines, bytes, done, rc);
    return rc;
}

/* What poll(2) says a pipe has room for, at least (pipe(7)). */
#define NO_WAIT_BYTES 4096

static bool is_file(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* As much as does not block, also where the descriptor would: it may be shared with others, and
 * stays as it is. */
static int write_some(int fd, const uint8_t *bytes, size_t len, int timeout_ms, size_t *done)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};

    for (*done = 0; *done < len;) {
        size_t part = len - *done < NO_WAIT_BYTES ? len - *done : NO_WAIT_BYTES;
        int ready = poll(&room, 1, timeout_ms);
        ssize_t n;

        if (ready == 0)
            return -EAGAIN;
        n = ready < 0 ? -1 : write(fd, bytes + *done, part);
        if (n >= 0)
            *done += (size_t)n;
        else if (errno == EAGAIN)
            return -EAGAIN;
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

int ft_lines_try(struct ft_lines *lines, const uint8_t *bytes, size_t len, int timeout_ms,
                 size_t *done, uint64_t *written)
{
    size_t newline;
    int rc;

    *done = 0;
    *written = 0;
    if (lines->fd < 0 || is_file(lines->fd)) {
        rc = ft_lines_write(lines, bytes, len, written);
        *done = rc ? 0 : len;
        return rc;
    }
    if (lines->broken) {
        rc = write_some(lines->fd, (const uint8_t *)"\n", 1, timeout_ms, &newline);
        if (rc)
            return rc;
        lines->within = lines->broken = false;
    }
    rc = write_some(lines->fd, bytes, len, timeout_ms, done);
    *written = count_lines(bytes, *done);
    take_note(lines, bytes, *done, rc);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/hello.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/nccl/segment.h"
#include "lib/base/reader.h"

#define HELLO_BYTES 64
#define HELLO_FDS   4

/* Every descriptor that came is closed but the one returned. */
int ft_hello_take(int fd, uint32_t *version)
{
    uint8_t bytes[HELLO_BYTES];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * HELLO_FDS)];
    } control;
    struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct ft_reader r;
    int memory = -EBADMSG;
    bool good, other;

    if (n < 0)
        return -EBADMSG;
    ft_reader_init(&r, bytes, (size_t)n);
    good = ft_read_be64(&r) == FT_SEGMENT_MAGIC;
    *version = ft_read_be32(&r);
    good = good && ft_reader_ok(&r) && ft_reader_left(&r) == 0;
    other = good && *version != FT_SEGMENT_VERSION;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
            int one;

            memcpy(&one, CMSG_DATA(c) + at, sizeof(one));
            if (good && !other && memory < 0)
                memory = one;
            else
                close(one);
        }
    }
    return other ? -EPROTONOSUPPORT : memory;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/hello.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/nccl/segment.h"
#include "lib/base/reader.h"

#define HELLO_BYTES 64

/* Of the first message, which stays in the queue: nothing is closed by looking. -1: none. */
static int first_descriptor(struct msghdr *message)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(message);
    int fd;

    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
        c->cmsg_len != CMSG_LEN(sizeof(fd)))
        return -1;
    memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    return fd;
}

static int check(const uint8_t *bytes, size_t len, uint32_t *version)
{
    struct ft_reader r;
    uint64_t magic;

    ft_reader_init(&r, bytes, len);
    magic = ft_read_be64(&r);
    *version = ft_read_be32(&r);
    if (magic != FT_SEGMENT_MAGIC || !ft_reader_ok(&r) || ft_reader_left(&r))
        return -EBADMSG;
    return *version == FT_SEGMENT_VERSION ? 0 : -EPROTONOSUPPORT;
}

int ft_hello_take(int fd, uint32_t *version, int *foreign)
{
    uint8_t bytes[HELLO_BYTES];
    union {
        struct cmsghdr align;
        char bytes[CMSG_LEN(sizeof(int))]; /* for one */
    } control;
    struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t n = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int memory, rc;

    *foreign = -1;
    if (n < 0)
        return -EBADMSG;
    memory = first_descriptor(&message);
    rc = check(bytes, (size_t)n, version);
    if (rc == 0 && message.msg_flags & MSG_CTRUNC)
        rc = memory < 0 ? -EMFILE : -EBADMSG;
    if (memory < 0)
        return rc ? rc : -EBADMSG;
    /* Of anything but memory, asking for more may take as long as closing. */
    if (fcntl(memory, F_GET_SEALS) < 0) {
        *foreign = memory;
        return rc ? rc : -EBADMSG;
    }
    if (rc) {
        close(memory);
        return rc;
    }
    (void)!recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    return memory;
}

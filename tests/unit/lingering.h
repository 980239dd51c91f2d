// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_UNIT_LINGERING_H
#define FT_TESTS_UNIT_LINGERING_H
/* A descriptor whose closing takes long, and how it is sent over a Unix socket. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define LINGER_S 4

/* A TCP connection that lingers for LINGER_S with much to send; its peer reads nothing. */
static inline int lingering(int *peer)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    static const char bytes[1 << 16];
    socklen_t len = sizeof(to);

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&to, sizeof(to)), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&to, &len), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    *peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(*peer, 0);
    close(listener);
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    return fd;
}

/* Sends a message with descriptors, and closes them here. */
static inline void send_descriptors(int to, const void *bytes, size_t len, const int *fds,
                                    size_t count)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(8 * sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = (void *)bytes, .iov_len = len};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

    *rights = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                               .cmsg_type = SCM_RIGHTS,
                               .cmsg_len = CMSG_LEN(count * sizeof(int))};
    memcpy(CMSG_DATA(rights), fds, count * sizeof(int));
    ck_assert_int_eq(sendmsg(to, &message, 0), (ssize_t)len);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static inline int connect_local(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    strncpy(to.sun_path, path, sizeof(to.sun_path) - 1);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

#endif

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/nccl/link.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/nccl/segment.h"

#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 3000
#define STACK_BYTES  (128u << 10)

struct ft_link {
    pthread_t thread;
    struct sockaddr_un address;
    int memory_fd;
    int wake_fd;
    _Atomic int socket_fd; /* -1: not connected */
};

static int offer(int fd, int memory_fd)
{
    uint8_t hello[FT_SEGMENT_HELLO_BYTES];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = hello, .iov_len = sizeof(hello)};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

    for (int i = 0; i < 8; i++)
        hello[i] = (uint8_t)(FT_SEGMENT_MAGIC >> (56 - 8 * i));
    for (int i = 0; i < 4; i++)
        hello[8 + i] = (uint8_t)((uint32_t)FT_SEGMENT_VERSION >> (24 - 8 * i));
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &memory_fd, sizeof(int));
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(hello) ? 0 : -errno;
}

static int connect_agent(const struct ft_link *link)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&link->address, sizeof(link->address)) ||
        offer(fd, link->memory_fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The agent says nothing: what can be read is the end. */
static int still_there(int fd)
{
    char unused[64];
    ssize_t n = recv(fd, unused, sizeof(unused), MSG_DONTWAIT);

    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void *run(void *arg)
{
    struct ft_link *link = arg;
    int retry_ms = RETRY_MIN_MS;
    bool rest = false;

    for (;;) {
        struct pollfd fds[2] = {{.fd = link->wake_fd, .events = POLLIN}, {.fd = -1}};
        int fd = link->socket_fd;

        if (fd < 0 && !rest) {
            fd = connect_agent(link);
            link->socket_fd = fd;
            retry_ms = fd >= 0 ? RETRY_MIN_MS : retry_ms;
        }
        if (fd >= 0)
            fds[1] = (struct pollfd){.fd = fd, .events = POLLIN};
        if (poll(fds, 2, fd >= 0 ? -1 : retry_ms) < 0 && errno != EINTR)
            return NULL;
        if (fds[0].revents)
            return NULL;
        if (fd < 0 && !rest)
            retry_ms = retry_ms < RETRY_MAX_MS / 2 ? 2 * retry_ms : RETRY_MAX_MS;
        /* An agent that takes the call and hangs up must not make this spin. */
        rest = fds[1].revents && !still_there(fd);
        if (rest) {
            link->socket_fd = -1;
            close(fd);
        }
    }
}

static int start(struct ft_link *link)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int err;

    if (pthread_attr_init(&attr))
        return -1;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = pthread_create(&link->thread, &attr, run, link);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (!err)
        pthread_setname_np(link->thread, "fabrictrace");
    return err ? -1 : 0;
}

struct ft_link *ft_link_new(int memory_fd, const char *socket)
{
    struct ft_link *link = calloc(1, sizeof(*link));

    if (!link)
        return NULL;
    link->memory_fd = memory_fd;
    link->socket_fd = -1;
    link->wake_fd = -1;
    link->address.sun_family = AF_UNIX;
    if (strlen(socket) < sizeof(link->address.sun_path)) {
        memcpy(link->address.sun_path, socket, strlen(socket) + 1);
        link->wake_fd = eventfd(0, EFD_CLOEXEC);
    }
    if (link->wake_fd < 0 || start(link)) {
        ft_link_forget(link);
        return NULL;
    }
    return link;
}

void ft_link_free(struct ft_link *link)
{
    uint64_t one = 1;

    if (!link)
        return;
    /* A counter of 1 always has room. */
    if (write(link->wake_fd, &one, sizeof(one)) == sizeof(one))
        pthread_join(link->thread, NULL);
    ft_link_forget(link);
}

void ft_link_forget(struct ft_link *link)
{
    if (!link)
        return;
    if (link->socket_fd >= 0)
        close(link->socket_fd);
    if (link->wake_fd >= 0)
        close(link->wake_fd);
    free(link);
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/shim/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS INT64_C(1000000)
#define WAIT_MS   20
#define WAIT_MOST 1000
#define REST_MS   10000
#define MISSES    2

static _Atomic int misses;
static _Atomic int64_t rest_until_ms;

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
}

static uint8_t *put_be32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        *to++ = (uint8_t)(v >> (24 - 8 * i));
    return to;
}

static uint8_t *put(uint8_t *to, const void *bytes, size_t len)
{
    memcpy(to, bytes, len);
    return to + len;
}

static uint8_t *put_question(uint8_t *to, const struct ft_shim_question *q, enum ft_shim_kind kind)
{
    const char *job = secure_getenv("FABRICTRACE_JOB");

    if (!job)
        job = secure_getenv("SLURM_JOB_ID");
    to = put_be32(to, (uint32_t)(FT_SHIM_MAGIC >> 32));
    to = put_be32(to, (uint32_t)FT_SHIM_MAGIC);
    to = put_be32(to, kind);
    to = put_be32(to, q->qp);
    to = put_be32(to, q->peer);
    to = put(to, q->src, sizeof(q->src));
    to = put(to, q->dst, sizeof(q->dst));
    memset(to, 0, FT_SHIM_JOB);
    /* No plan has a job of a longer name. */
    if (job && strlen(job) < FT_SHIM_JOB)
        put(to, job, strlen(job));
    return to + FT_SHIM_JOB;
}

/* -1: there is nobody. */
static int open_socket(void)
{
    const char *path = secure_getenv("FABRICTRACE_PLAN_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (!path)
        path = FT_RUNSTATEDIR FT_SHIM_SOCKET;
    if (strlen(path) >= sizeof(address.sun_path))
        return -1;
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    /* An agent that does not get on has a full queue. */
    if (errno == EAGAIN)
        rest_until_ms = now_ms() + REST_MS;
    close(fd);
    return -1;
}

/* FABRICTRACE_PLAN_WAIT_MS, within bounds. */
static int64_t wait_ms(void)
{
    const char *text = secure_getenv("FABRICTRACE_PLAN_WAIT_MS");
    long ms = text ? strtol(text, NULL, 10) : WAIT_MS;

    return ms < 1 ? 1 : ms > WAIT_MOST ? WAIT_MOST : ms;
}

/* Bytes of the answer, 0: none came in time. */
static size_t await(int fd, uint8_t *bytes, size_t room)
{
    int64_t deadline = now_ms() + wait_ms(), left;

    while ((left = deadline - now_ms()) >= 0) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int n = poll(&ready, 1, (int)left);

        if (n > 0) {
            ssize_t got = recv(fd, bytes, room, MSG_DONTWAIT);

            if (got >= 0)
                return (size_t)got;
            if (errno != EAGAIN && errno != EINTR)
                return 0;
        } else if (n < 0 && errno != EINTR) {
            return 0;
        }
    }
    if (atomic_fetch_add(&misses, 1) + 1 >= MISSES) {
        misses = 0;
        rest_until_ms = now_ms() + REST_MS;
    }
    return 0;
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* 0 where the answer is not one to this question. */
static uint16_t port_of(const uint8_t *answer, const struct ft_shim_question *q)
{
    uint32_t port = be32(answer + 16);

    if (be32(answer) != (uint32_t)(FT_SHIM_MAGIC >> 32) ||
        be32(answer + 4) != (uint32_t)FT_SHIM_MAGIC || be32(answer + 8) != FT_SHIM_ANSWER ||
        be32(answer + 12) != q->qp)
        return 0;
    /* What a flow label can give. */
    return port >= 0xc000 && port <= 0xffff ? (uint16_t)port : 0;
}

uint16_t ft_shim_ask(const struct ft_shim_question *question, int *fd)
{
    uint8_t ask[FT_SHIM_ASK_BYTES], answer[FT_SHIM_ANSWER_BYTES];
    uint16_t port = 0;
    int socket_fd;

    *fd = -1;
    if (now_ms() < rest_until_ms)
        return 0;
    socket_fd = open_socket();
    if (socket_fd < 0)
        return 0;
    put_question(ask, question, FT_SHIM_ASK);
    if (send(socket_fd, ask, sizeof(ask), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(ask) &&
        await(socket_fd, answer, sizeof(answer)) == sizeof(answer)) {
        misses = 0;
        port = port_of(answer, question);
    }
    if (port)
        *fd = socket_fd;
    else
        close(socket_fd);
    return port;
}

void ft_shim_done(int fd, const struct ft_shim_question *question, uint16_t sport,
                  enum ft_shim_outcome outcome)
{
    uint8_t done[FT_SHIM_DONE_BYTES];
    uint8_t *to = put_question(done, question, FT_SHIM_DONE);

    put_be32(put_be32(to, sport), outcome);
    /* The agent may be gone by now; nobody here can help that. */
    (void)!send(fd, done, sizeof(done), MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

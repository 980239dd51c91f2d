// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/udp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH           32 /* datagrams of a system call, few enough for the first cache */
#define BATCHES_MAX     32 /* a wake-up */
#define DRAIN_MAX       65536
#define NS_PER_MS       INT64_C(1000000)
#define PAUSE_MS        2
#define PAUSE_LEAST     8     /* datagrams that have to be expected in a pause */
#define PIECE_BYTES     4096  /* of the receive buffer, for a datagram and what the kernel adds */
#define BURST           8     /* so many times what is expected has to fit */
#define DATAGRAM_BYTES  65536 /* more than a UDP datagram can hold: none is cut off */
#define BUFFER_STRIDE   (DATAGRAM_BYTES + 192) /* buffers must not all start in one cache set */
#define HOST_TEXT_BYTES 256

struct ft_udp {
    struct ft_udp_config config;
    struct ft_watch *watch; /* of the descriptor; in a pause that of its end counts alone */
    struct ft_watch *pause_end;
    bool paused;
    struct ft_mono taken_at; /* last */
    int fd;
    uint32_t drops_seen; /* the kernel's counter wraps at 2^32 */
    struct ft_udp_stats stats;
    uint8_t *buffers;
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
};

/* Splits "host:port"; brackets around an IPv6 host are taken off. -EINVAL. */
static int split(const char *endpoint, char host[HOST_TEXT_BYTES], const char **port)
{
    const char *colon = strrchr(endpoint, ':');
    size_t len;

    if (!colon || !colon[1])
        return -EINVAL;
    len = (size_t)(colon - endpoint);
    if (len >= 2 && endpoint[0] == '[' && endpoint[len - 1] == ']') {
        endpoint++;
        len -= 2;
    }
    if (len >= HOST_TEXT_BYTES)
        return -EINVAL;
    memcpy(host, endpoint, len);
    host[len] = 0;
    *port = colon + 1;
    return 0;
}

/* A bound socket, or -errno. */
static int bind_to(int family, const struct sockaddr *address, socklen_t len, bool shared)
{
    int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int both = 0, share = 1;
    int rc;

    if (fd < 0)
        return -errno;
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both));
    if (shared)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &share, sizeof(share));
    if (bind(fd, address, len) == 0)
        return fd;
    rc = -errno;
    close(fd);
    return rc;
}

/* All addresses: IPv6's any takes IPv4 as well; a host without IPv6 has IPv4 only. */
static int bind_any(const char *port, bool shared)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    char *end;
    unsigned long number = strtoul(port, &end, 10);
    int fd;

    if (*end || number > UINT16_MAX)
        return -EINVAL;
    v6.sin6_port = v4.sin_port = htons((uint16_t)number);
    fd = bind_to(AF_INET6, (struct sockaddr *)&v6, sizeof(v6), shared);
    if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
        fd = bind_to(AF_INET, (struct sockaddr *)&v4, sizeof(v4), shared);
    return fd;
}

static int open_socket(const char *endpoint, bool shared, char *error, size_t error_bytes)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_PASSIVE};
    char host[HOST_TEXT_BYTES];
    struct addrinfo *list;
    const char *port;
    int fd = -EINVAL;
    int rc;

    if (split(endpoint, host, &port) < 0) {
        snprintf(error, error_bytes, "listen '%s': is not host:port", endpoint);
        return -EINVAL;
    }
    if (!*host) {
        fd = bind_any(port, shared);
    } else {
        rc = getaddrinfo(host, port, &hints, &list);
        if (rc) {
            snprintf(error, error_bytes, "listen '%s': %s", endpoint, gai_strerror(rc));
            return -EINVAL;
        }
        for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
            fd = bind_to(a->ai_family, a->ai_addr, a->ai_addrlen, shared);
        freeaddrinfo(list);
    }
    if (fd < 0)
        snprintf(error, error_bytes, "listen '%s': %s", endpoint, strerror(-fd));
    return fd;
}

/* A socket that somebody else bound. What it dropped by now, with nobody to read it, shows in the
 * numbers of the exporters. */
static int take_over(struct ft_udp *udp, int fd, char *error, size_t error_bytes)
{
    int type = 0, family = 0, flags = fcntl(fd, F_GETFL);
    struct ft_udp_stats stats;
    socklen_t len = sizeof(type);

    if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) ||
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) || type != SOCK_DGRAM ||
        (family != AF_INET && family != AF_INET6) || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ||
        fcntl(fd, F_SETFD, FD_CLOEXEC)) {
        snprintf(error, error_bytes, "descriptor %d of the service manager is no UDP socket", fd);
        return -EINVAL;
    }
    udp->fd = fd;
    ft_udp_stats(udp, &stats);
    udp->stats = (struct ft_udp_stats){0};
    return 0;
}

static void on_ready(void *arg);

struct ft_udp *ft_udp_new(struct ft_loop *loop, const struct ft_udp_config *config, char *error,
                          size_t error_bytes)
{
    struct ft_udp *udp = calloc(1, sizeof(*udp));

    if (!udp || !(udp->buffers = malloc((size_t)BATCH * BUFFER_STRIDE))) {
        free(udp);
        snprintf(error, error_bytes, "listen '%s': out of memory", config->listen);
        return NULL;
    }
    udp->config = *config;
    udp->config.listen = NULL;
    udp->fd = -1;
    if (!config->given)
        udp->fd = open_socket(config->listen, config->shared, error, error_bytes);
    else if (take_over(udp, config->given, error, error_bytes))
        goto fail;
    if (udp->fd < 0)
        goto fail;
    ft_udp_set_buffer(udp, config->buffer_bytes);
    for (int i = 0; i < BATCH; i++) {
        udp->vectors[i].iov_base = udp->buffers + (size_t)i * BUFFER_STRIDE;
        udp->vectors[i].iov_len = DATAGRAM_BYTES;
        udp->messages[i].msg_hdr = (struct msghdr){.msg_iov = &udp->vectors[i], .msg_iovlen = 1};
    }
    if (loop) {
        udp->watch = ft_watch_stage(ft_watch_fd(loop, udp->fd, on_ready, udp), "datagrams");
        udp->pause_end = ft_watch_stage(ft_watch_once(loop, on_ready, udp), "datagrams");
    }
    if (loop && (!udp->watch || !udp->pause_end)) {
        snprintf(error, error_bytes, "listen '%s': out of memory", config->listen);
        goto fail;
    }
    return udp;
fail:
    ft_udp_free(udp);
    return NULL;
}

void ft_udp_free(struct ft_udp *udp)
{
    if (!udp)
        return;
    ft_watch_free(udp->watch);
    ft_watch_free(udp->pause_end);
    if (udp->fd >= 0)
        close(udp->fd);
    free(udp->buffers);
    free(udp);
}

/* One system call. Returns the datagrams it took. */
static int take_batch(struct ft_udp *udp)
{
    struct ft_wall now;
    int n;

    n = recvmmsg(udp->fd, udp->messages, BATCH, MSG_DONTWAIT, NULL);
    if (n <= 0)
        return 0;
    now = ft_wall_now();
    udp->stats.datagrams += (uint64_t)n;
    for (int i = 0; i < n; i++)
        udp->config.on_datagram(udp->config.arg, udp->vectors[i].iov_base, udp->messages[i].msg_len,
                                now);
    return n;
}

/* A wake-up for each datagram costs as much as its samples do, so where many come some are waited
 * for. Not where the buffer would have to hold much of itself meanwhile. */
static int pause_after(uint64_t taken, int64_t elapsed_ns, uint64_t buffer_bytes)
{
    uint64_t expected =
        taken * (uint64_t)(PAUSE_MS * NS_PER_MS) / (uint64_t)(elapsed_ns > 0 ? elapsed_ns : 1);

    if (expected < PAUSE_LEAST || expected > buffer_bytes / (BURST * PIECE_BYTES))
        return 0;
    return PAUSE_MS;
}

int ft_udp_take(struct ft_udp *udp)
{
    struct ft_mono before = udp->taken_at;
    uint64_t taken = 0;
    int n;

    for (int i = 0; i < BATCHES_MAX; i++) {
        taken += (uint64_t)(n = take_batch(udp));
        if (n < BATCH) {
            udp->taken_at = ft_mono_now();
            return pause_after(taken, ft_mono_since_ns(udp->taken_at, before),
                               udp->stats.buffer_bytes);
        }
    }
    udp->taken_at = ft_mono_now();
    return 0;
}

static void on_ready(void *arg)
{
    struct ft_udp *udp = arg;
    int pause_ms = ft_udp_take(udp);

    if (pause_ms && !udp->paused)
        ft_watch_pause(udp->watch);
    if (!pause_ms && udp->paused)
        ft_watch_resume(udp->watch);
    if (pause_ms)
        ft_watch_once_arm(udp->pause_end, pause_ms * NS_PER_MS);
    udp->paused = pause_ms != 0;
}

int ft_udp_fd(const struct ft_udp *udp)
{
    return udp->fd;
}

void ft_udp_drain(struct ft_udp *udp)
{
    /* Bounded: a sender that never stops must not keep us from ending. */
    for (int taken = 0, n = 1; n > 0 && taken < DRAIN_MAX; taken += n)
        n = take_batch(udp);
}

uint64_t ft_udp_set_buffer(struct ft_udp *udp, uint64_t bytes)
{
    int needed = bytes > INT32_MAX / 2 ? INT32_MAX / 2 : (int)bytes;
    int got = 0;
    socklen_t len = sizeof(got);

    /* FORCE needs CAP_NET_ADMIN; without it the kernel's limit rules. */
    if (setsockopt(udp->fd, SOL_SOCKET, SO_RCVBUFFORCE, &needed, sizeof(needed)) < 0 &&
        !udp->config.given)
        setsockopt(udp->fd, SOL_SOCKET, SO_RCVBUF, &needed, sizeof(needed));
    /* The kernel doubles the size for its own bookkeeping (socket(7)). */
    if (getsockopt(udp->fd, SOL_SOCKET, SO_RCVBUF, &got, &len) == 0)
        udp->stats.buffer_bytes = (uint64_t)got / 2;
    return udp->stats.buffer_bytes;
}

uint16_t ft_udp_port(const struct ft_udp *udp)
{
    struct sockaddr_storage name = {0};
    socklen_t len = sizeof(name);

    if (getsockname(udp->fd, (struct sockaddr *)&name, &len) < 0)
        return 0;
    if (name.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&name)->sin_port);
    return ntohs(((struct sockaddr_in6 *)&name)->sin6_port);
}

void ft_udp_stats(struct ft_udp *udp, struct ft_udp_stats *stats)
{
    uint32_t memory[SK_MEMINFO_VARS];
    socklen_t len = sizeof(memory);

    /* The count that SO_RXQ_OVFL would put on each datagram, also of drops after the last one. */
    if (getsockopt(udp->fd, SOL_SOCKET, SO_MEMINFO, memory, &len) == 0 &&
        len > SK_MEMINFO_DROPS * sizeof(memory[0])) {
        udp->stats.kernel_drops += memory[SK_MEMINFO_DROPS] - udp->drops_seen;
        udp->drops_seen = memory[SK_MEMINFO_DROPS];
    }
    *stats = udp->stats;
}

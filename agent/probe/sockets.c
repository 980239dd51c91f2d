// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/probe/sockets.h"

#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of linux/icmp.h, which cannot be included beside netinet/in.h. */
#ifndef ICMP_FILTER
#define ICMP_FILTER 1
#endif
struct filter4 {
    uint32_t blocked; /* a bit for each type */
};

static int open_raw(int family, int protocol)
{
    int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

    return fd < 0 ? -errno : fd;
}

/* What a socket receives before its filter is set comes from before that, and is thrown away. */
static int filter(int fd, int level, int name, const void *value, socklen_t len)
{
    uint8_t byte;

    if (setsockopt(fd, level, name, value, len))
        return -errno;
    while (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC) >= 0)
        ;
    return 0;
}

static int open4(struct ft_probe_sockets *s)
{
    const struct filter4 only = {~(UINT32_C(1) << ICMP_TIME_EXCEEDED)};

    s->send4 = open_raw(AF_INET, IPPROTO_RAW);
    s->receive4 = s->send4 < 0 ? s->send4 : open_raw(AF_INET, IPPROTO_ICMP);
    if (s->receive4 < 0)
        return s->receive4;
    return filter(s->receive4, SOL_RAW, ICMP_FILTER, &only, sizeof(only));
}

static int open6(struct ft_probe_sockets *s)
{
    struct icmp6_filter only;

    s->send6 = open_raw(AF_INET6, IPPROTO_RAW);
    if (s->send6 == -EAFNOSUPPORT)
        return 0;
    s->receive6 = s->send6 < 0 ? s->send6 : open_raw(AF_INET6, IPPROTO_ICMPV6);
    if (s->receive6 < 0)
        return s->receive6;
    ICMP6_FILTER_SETBLOCKALL(&only);
    ICMP6_FILTER_SETPASS(ICMP6_TIME_EXCEEDED, &only);
    return filter(s->receive6, IPPROTO_ICMPV6, ICMP6_FILTER, &only, sizeof(only));
}

int ft_probe_sockets_open(struct ft_probe_sockets *s)
{
    int rc;

    *s = (struct ft_probe_sockets){-1, -1, -1, -1};
    rc = open4(s);
    if (rc == 0)
        rc = open6(s);
    if (rc)
        ft_probe_sockets_close(s);
    return rc;
}

void ft_probe_sockets_close(struct ft_probe_sockets *s)
{
    const int all[] = {s->send4, s->send6, s->receive4, s->receive6};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i] >= 0)
            close(all[i]);
    *s = (struct ft_probe_sockets){-1, -1, -1, -1};
}

static int send4(int fd, const uint8_t src[4], const uint8_t dst[4], struct iovec *part)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
        struct cmsghdr aligned;
    } control = {{0}};
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct in_pktinfo info = {.ipi_ifindex = 0};
    struct msghdr m = {.msg_name = &to,
                       .msg_namelen = sizeof(to),
                       .msg_iov = part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c;

    memcpy(&to.sin_addr, dst, 4);
    memcpy(&info.ipi_spec_dst, src, 4);
    c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){CMSG_LEN(sizeof(info)), IPPROTO_IP, IP_PKTINFO};
    memcpy(CMSG_DATA(c), &info, sizeof(info));
    return sendmsg(fd, &m, MSG_DONTWAIT) < 0 ? -errno : 0;
}

static int send6(int fd, const uint8_t src[16], const uint8_t dst[16], struct iovec *part)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
        struct cmsghdr aligned;
    } control = {{0}};
    struct sockaddr_in6 to = {.sin6_family = AF_INET6};
    struct in6_pktinfo info = {.ipi6_ifindex = 0};
    struct msghdr m = {.msg_name = &to,
                       .msg_namelen = sizeof(to),
                       .msg_iov = part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c;

    memcpy(&to.sin6_addr, dst, 16);
    memcpy(&info.ipi6_addr, src, 16);
    c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){CMSG_LEN(sizeof(info)), IPPROTO_IPV6, IPV6_PKTINFO};
    memcpy(CMSG_DATA(c), &info, sizeof(info));
    return sendmsg(fd, &m, MSG_DONTWAIT) < 0 ? -errno : 0;
}

int ft_probe_sockets_send(const struct ft_probe_sockets *s, const struct ft_ip *src,
                          const struct ft_ip *dst, const uint8_t *bytes, size_t len)
{
    struct iovec part = {(void *)(uintptr_t)bytes, len};
    size_t src_len, dst_len;
    const uint8_t *from = ft_ip_bytes(src, &src_len), *to = ft_ip_bytes(dst, &dst_len);

    if (src_len == 4)
        return send4(s->send4, from, to, &part);
    return s->send6 < 0 ? -EAFNOSUPPORT : send6(s->send6, from, to, &part);
}

long ft_probe_sockets_receive(int fd, uint8_t *bytes, size_t size, struct ft_ip *from)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } sender = {.any.sa_family = AF_UNSPEC};
    socklen_t sender_len = sizeof(sender);
    ssize_t n = recvfrom(fd, bytes, size, MSG_DONTWAIT, &sender.any, &sender_len);

    if (n < 0)
        return -errno;
    if (sender.any.sa_family == AF_INET)
        return ft_ip_from_bytes((const uint8_t *)&sender.v4.sin_addr, 4, from) ? -EINVAL : n;
    if (sender.any.sa_family == AF_INET6)
        return ft_ip_from_bytes((const uint8_t *)&sender.v6.sin6_addr, 16, from) ? -EINVAL : n;
    return -EINVAL;
}

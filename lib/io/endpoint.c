// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 128

static int parse_port(const char *text, uint16_t *port)
{
    unsigned long value = 0;
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 5 || text[digits])
        return -EINVAL;
    value = strtoul(text, NULL, 10);
    if (value > UINT16_MAX)
        return -EINVAL;
    *port = (uint16_t)value;
    return 0;
}

int ft_endpoint_split(const char *text, char host[FT_HOST_BYTES], uint16_t *port)
{
    const char *begin = text, *end = strrchr(text, ':');
    uint16_t value;

    if (!end || parse_port(end + 1, &value) < 0)
        return -EINVAL;
    if (text[0] == '[') {
        if (end == text || end[-1] != ']')
            return -EINVAL;
        begin++;
        end--;
    } else if (memchr(text, ':', (size_t)(end - text))) {
        /* An IPv6 address without brackets could end anywhere. */
        return -EINVAL;
    }
    if (end - begin >= FT_HOST_BYTES)
        return -EINVAL;
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    *port = value;
    return 0;
}

bool ft_endpoint_is_local(const char *text)
{
    char host[FT_HOST_BYTES];
    struct in6_addr v6;
    struct in_addr v4;
    uint16_t port;

    if (ft_endpoint_split(text, host, &port) < 0)
        return false;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
    return strcasecmp(host, "localhost") == 0;
}

static socklen_t address_len(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

void ft_endpoint_format(const struct sockaddr *address, char text[FT_ENDPOINT_BYTES])
{
    char host[INET6_ADDRSTRLEN + 32], port[8];
    const char *name = host;
    int ret = getnameinfo(address, address_len(address), host, sizeof(host), port, sizeof(port),
                          NI_NUMERICHOST | NI_NUMERICSERV);

    if (ret) {
        snprintf(text, FT_ENDPOINT_BYTES, "?");
        return;
    }
    /* A socket for both families shows IPv4 peers as mapped addresses: RFC 4291 section 2.5.5.2. */
    if (strncmp(host, "::ffff:", 7) == 0 && strchr(host, '.'))
        name += 7;
    snprintf(text, FT_ENDPOINT_BYTES, strchr(name, ':') ? "[%s]:%s" : "%s:%s", name, port);
}

static int listen_on(const struct addrinfo *info)
{
    int yes = 1, no = 0, err;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (info->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    err = errno;
    close(fd);
    return -err;
}

static int try_families(const char *host, const char *port)
{
    /* Without a host: both families by one IPv6 socket, or IPv4 where there is no IPv6. */
    static const int families[] = {AF_INET6, AF_INET};
    int fd = -EADDRNOTAVAIL;

    for (int i = 0; i < 2; i++) {
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
        struct addrinfo *list;

        hints.ai_family = host[0] ? AF_UNSPEC : families[i];
        if (getaddrinfo(host[0] ? host : NULL, port, &hints, &list) == 0) {
            fd = listen_on(list);
            freeaddrinfo(list);
        }
        if (fd >= 0 || host[0] || (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL))
            break;
    }
    return fd;
}

int ft_endpoint_listen(const char *text, uint16_t *bound, char *error, size_t error_bytes)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    char host[FT_HOST_BYTES], service[8];
    uint16_t port;
    int fd;

    if (ft_endpoint_split(text, host, &port) < 0) {
        snprintf(error, error_bytes, "'%s' is not HOST:PORT", text);
        return -EINVAL;
    }
    snprintf(service, sizeof(service), "%u", port);
    fd = try_families(host, service);
    if (fd < 0) {
        snprintf(error, error_bytes, "cannot listen on '%s': %s", text, strerror(-fd));
        return fd;
    }
    if (getsockname(fd, (struct sockaddr *)&address, &len) == 0)
        /* The port is at the same offset in both families. */
        port = ntohs(((const struct sockaddr_in *)&address)->sin_port);
    *bound = port;
    return fd;
}

void ft_endpoint_tune(int fd, int64_t timeout_ns)
{
    int yes = 1, idle_s = 30, interval_s = 10, probes = 3;
    unsigned timeout_ms = (unsigned)(timeout_ns / 1000000);

    /* Each is an improvement that a socket can do without. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
}

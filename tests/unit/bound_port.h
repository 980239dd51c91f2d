// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_BOUND_PORT_H
#define FT_TESTS_BOUND_PORT_H
/*
 * Which port the kernel chose for a server that was started on port 0: right after its start, when
 * its socket is the newest one.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define BOUND_PORT_FDS 256

/* The port of the newest descriptor that takes connections (SOCK_STREAM) or datagrams. 0: none. */
static inline uint16_t bound_port(int type)
{
    for (int fd = BOUND_PORT_FDS; fd >= 0; fd--) {
        struct sockaddr_storage name = {0};
        socklen_t len = sizeof(name), int_len = sizeof(int);
        int its_type = 0, accepts = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &its_type, &int_len) < 0 || its_type != type ||
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &int_len) < 0 ||
            (type == SOCK_STREAM && !accepts) ||
            getsockname(fd, (struct sockaddr *)&name, &len) < 0)
            continue;
        if (name.ss_family == AF_INET)
            return ntohs(((const struct sockaddr_in *)&name)->sin_port);
        if (name.ss_family == AF_INET6)
            return ntohs(((const struct sockaddr_in6 *)&name)->sin6_port);
    }
    return 0;
}

#endif

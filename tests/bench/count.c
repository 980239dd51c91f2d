// SPDX-License-Identifier: Apache-2.0
/*
 * A receiver that only counts datagrams: the bound that no collector passes. The same receive
 * buffer, batches and kernel figures as the poller's.
 *
 * usage: count PORT BUFFER_BYTES [BATCH [BUSY_US [gro]]]; ends at SIGTERM with "received drops
 * CPU-seconds messages". BATCH: datagrams of a system call; BUSY_US: SO_BUSY_POLL; gro: UDP_GRO,
 * whose merged datagrams count as those that they were made of (udp(7)).
 */
#include "config.h"

#include <inttypes.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#define BATCH          64
#define BATCH_MAX      1024
#define CONTROL_BYTES  CMSG_SPACE(sizeof(int))
#define DATAGRAM_BYTES 65536
#define STRIDE         (DATAGRAM_BYTES + 192)

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static int open_socket(uint16_t port, int buffer_bytes)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
        perror("count");
        exit(EX_UNAVAILABLE);
    }
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof(buffer_bytes)) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
    return fd;
}

/* Of how many datagrams the kernel made this one. */
static uint64_t merged(struct mmsghdr *m)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(&m->msg_hdr);
    int size = 0;

    if (c && c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
        memcpy(&size, CMSG_DATA(c), sizeof(size));
    return size > 0 ? (m->msg_len + (unsigned)size - 1) / (unsigned)size : 1;
}

static double cpu_seconds(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    static struct mmsghdr messages[BATCH_MAX];
    static struct iovec vectors[BATCH_MAX];
    static char control[BATCH_MAX][CONTROL_BYTES];
    int batch = argc > 3 ? atoi(argv[3]) : BATCH, busy_us = argc > 4 ? atoi(argv[4]) : 0, on = 1;
    bool gro = argc > 5;
    const struct sigaction action = {.sa_handler = on_signal};
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    socklen_t len = sizeof(memory);
    uint64_t received = 0, taken = 0;
    uint8_t *buffers;
    struct pollfd fd = {.events = POLLIN};

    if (argc < 3 || batch < 1 || batch > BATCH_MAX || !(buffers = malloc((size_t)batch * STRIDE)))
        return EX_USAGE;
    fd.fd = open_socket((uint16_t)atoi(argv[1]), atoi(argv[2]));
    if ((busy_us && setsockopt(fd.fd, SOL_SOCKET, SO_BUSY_POLL, &busy_us, sizeof(busy_us))) ||
        (gro && setsockopt(fd.fd, SOL_UDP, UDP_GRO, &on, sizeof(on)))) {
        perror("count");
        return EX_UNAVAILABLE;
    }
    sigaction(SIGTERM, &action, NULL);
    for (int i = 0; i < batch; i++) {
        vectors[i] = (struct iovec){buffers + (size_t)i * STRIDE, DATAGRAM_BYTES};
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        int n;

        for (int i = 0; gro && i < batch; i++) {
            messages[i].msg_hdr.msg_control = control[i];
            messages[i].msg_hdr.msg_controllen = CONTROL_BYTES;
        }
        n = recvmmsg(fd.fd, messages, (unsigned)batch, MSG_DONTWAIT, NULL);
        for (int i = 0; gro && i < n; i++)
            received += merged(&messages[i]);
        if (n > 0) {
            taken += (uint64_t)n;
            received += gro ? 0 : (uint64_t)n;
        } else if (stop) {
            break;
        } else {
            poll(&fd, 1, 100);
        }
    }
    getsockopt(fd.fd, SOL_SOCKET, SO_MEMINFO, memory, &len);
    printf("%" PRIu64 " %" PRIu32 " %.3f %" PRIu64 "\n", received, memory[SK_MEMINFO_DROPS],
           cpu_seconds(), taken);
    free(buffers);
    return 0;
}

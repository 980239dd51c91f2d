// SPDX-License-Identifier: Apache-2.0
/*
 * A receiver that only counts datagrams: the bound that no collector passes. The same receive
 * buffer, batches and kernel figures as the poller's.
 *
 * usage: count PORT BUFFER_BYTES; ends at SIGTERM with "received drops".
 */
#include "config.h"

#include <inttypes.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#define BATCH          64
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

int main(int argc, char **argv)
{
    static struct mmsghdr messages[BATCH];
    static struct iovec vectors[BATCH];
    const struct sigaction action = {.sa_handler = on_signal};
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    socklen_t len = sizeof(memory);
    uint64_t received = 0;
    uint8_t *buffers;
    struct pollfd fd = {.events = POLLIN};

    if (argc != 3 || !(buffers = malloc((size_t)BATCH * STRIDE)))
        return EX_USAGE;
    fd.fd = open_socket((uint16_t)atoi(argv[1]), atoi(argv[2]));
    sigaction(SIGTERM, &action, NULL);
    for (int i = 0; i < BATCH; i++) {
        vectors[i] = (struct iovec){buffers + (size_t)i * STRIDE, DATAGRAM_BYTES};
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        int n = recvmmsg(fd.fd, messages, BATCH, MSG_DONTWAIT, NULL);

        if (n > 0)
            received += (uint64_t)n;
        else if (stop)
            break;
        else
            poll(&fd, 1, 100);
    }
    getsockopt(fd.fd, SOL_SOCKET, SO_MEMINFO, memory, &len);
    printf("%" PRIu64 " %" PRIu32 "\n", received, memory[SK_MEMINFO_DROPS]);
    free(buffers);
    return 0;
}

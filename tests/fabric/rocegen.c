// SPDX-License-Identifier: Apache-2.0
/*
 * Both ends of RoCEv2 traffic in the lab, one process each in a host's namespace.
 *
 *   rocegen send FILE SECONDS      sends the flows of FILE ("-": standard input), one a line:
 *                                  SRC SPORT DST QP PPS PAYLOAD_BYTES MESSAGE_PACKETS
 *                                  for SECONDS, or until SIGTERM with 0
 *   rocegen respond ADDRESS...     acknowledges what arrives at ADDRESS until SIGTERM
 *
 * Both print "ready" once they can be relied on, and one line of JSON at their end. Queue pairs
 * have the same number at both ends, as the sender's number is not in the packets.
 *
 * Packets go out through raw sockets: the ICRC covers the IP header, and a connected UDP socket
 * would carry a random hash to every hop, so that the path were no function of the 5-tuple.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/table.h"
#include "lib/base/tuple.h"
#include "tests/fabric/roce.h"

#define BATCH          64
#define TICK_NS        5000000
#define FLOWS_MAX      4096
#define PEERS_MAX      65536
#define ADDRESSES_MAX  8
#define RECEIVE_BUFFER (4 << 20)

static volatile sig_atomic_t stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

/* One raw socket per family and the packets on their way to it. */
struct outbox {
    int fd[2]; /* IPv4, IPv6 */
    uint16_t ip_id;
    uint64_t sent, failed;
    struct out_batch {
        unsigned int count;
        struct mmsghdr messages[BATCH];
        struct iovec parts[BATCH];
        struct sockaddr_storage to[BATCH];
        uint8_t bytes[BATCH][FT_ROCE_PACKET_BYTES_MAX];
    } batch[2];
};

static struct outbox outbox;

static socklen_t sockaddr_of(const struct ft_ip *ip, uint16_t port, struct sockaddr_storage *to)
{
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
    struct sockaddr_in *four = (struct sockaddr_in *)to;
    size_t len;

    memset(to, 0, sizeof(*to));
    if (ft_ip_is4(ip)) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        memcpy(&four->sin_addr, ft_ip_bytes(ip, &len), 4);
        return sizeof(*four);
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    memcpy(&six->sin6_addr, ip->b, 16);
    return sizeof(*six);
}

static int outbox_open(struct outbox *out)
{
    int bytes = RECEIVE_BUFFER;

    out->fd[0] = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    out->fd[1] = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    if (out->fd[0] < 0 || out->fd[1] < 0)
        return -errno;
    for (int i = 0; i < 2; i++)
        setsockopt(out->fd[i], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
    return 0;
}

static void outbox_flush(struct outbox *out, int family)
{
    struct out_batch *batch = &out->batch[family];
    unsigned int done = 0;

    while (done < batch->count) {
        int n = sendmmsg(out->fd[family], batch->messages + done, batch->count - done, 0);

        if (n < 0 && errno == EINTR)
            continue;
        /* The first one left has failed: it is counted, and the rest gets its turn. */
        if (n <= 0) {
            out->failed++;
            done++;
            continue;
        }
        out->sent += (unsigned int)n;
        done += (unsigned int)n;
    }
    batch->count = 0;
}

static void outbox_add(struct outbox *out, struct ft_roce_packet *packet)
{
    int family = ft_ip_is4(&packet->src) ? 0 : 1;
    struct out_batch *batch = &out->batch[family];
    unsigned int i = batch->count;
    struct msghdr *header = &batch->messages[i].msg_hdr;
    size_t len;

    out->ip_id = out->ip_id == UINT16_MAX ? 1 : (uint16_t)(out->ip_id + 1);
    packet->ip_id = out->ip_id;
    if (ft_roce_build(packet, batch->bytes[i], sizeof(batch->bytes[i]), &len) < 0) {
        out->failed++;
        return;
    }
    batch->parts[i].iov_base = batch->bytes[i];
    batch->parts[i].iov_len = len;
    memset(header, 0, sizeof(*header));
    header->msg_iov = &batch->parts[i];
    header->msg_iovlen = 1;
    header->msg_name = &batch->to[i];
    header->msg_namelen = sockaddr_of(&packet->dst, 0, &batch->to[i]);
    if (++batch->count == BATCH)
        outbox_flush(out, family);
}

struct flow {
    struct ft_ip src, dst;
    uint16_t sport;
    uint32_t qp;
    double pps;
    uint16_t payload_bytes;
    uint32_t message_packets;
    uint64_t sent;
};

static int parse_flow(const char *line, struct flow *flow)
{
    char src[FT_IP_TEXT_BYTES], dst[FT_IP_TEXT_BYTES];
    unsigned int sport, payload;
    struct flow read = {0};

    if (sscanf(line, "%45s %u %45s %u %lf %u %u", src, &sport, dst, &read.qp, &read.pps, &payload,
               &read.message_packets) != 7)
        return -EINVAL;
    if (ft_ip_parse(src, &read.src) < 0 || ft_ip_parse(dst, &read.dst) < 0 ||
        ft_ip_is4(&read.src) != ft_ip_is4(&read.dst) || sport > UINT16_MAX || payload > 4096 ||
        !(read.pps > 0 && read.pps <= 1e6) || !read.message_packets)
        return -EINVAL;
    read.sport = (uint16_t)sport;
    read.payload_bytes = (uint16_t)payload;
    *flow = read;
    return 0;
}

static int read_flows(const char *path, struct flow *flows, size_t *count)
{
    FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
    char line[256];
    int line_number = 0, rc = 0;

    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -errno;
    }
    *count = 0;
    while (!rc && fgets(line, sizeof(line), file)) {
        line_number++;
        if (line[0] == '#' || line[0] == '\n')
            continue;
        rc = *count == FLOWS_MAX ? -E2BIG : parse_flow(line, &flows[*count]);
        if (rc)
            fprintf(stderr, "%s:%d: %s\n", path, line_number,
                    rc == -E2BIG ? "too many flows" : "not a flow");
        else
            ++*count;
    }
    if (file != stdin)
        fclose(file);
    return rc;
}

/* The next packet of a flow: message after message, acknowledged at each one's end. */
static void send_next(struct outbox *out, struct flow *flow)
{
    uint64_t place = flow->sent % flow->message_packets;
    bool first = place == 0, last = place == flow->message_packets - 1;
    struct ft_roce_packet packet = {
        .src = flow->src,
        .dst = flow->dst,
        .sport = flow->sport,
        .opcode = first && last ? FT_ROCE_WRITE_ONLY
                  : first       ? FT_ROCE_WRITE_FIRST
                  : last        ? FT_ROCE_WRITE_LAST
                                : FT_ROCE_WRITE_MIDDLE,
        .ack_request = last,
        .dst_qp = flow->qp,
        .psn = (uint32_t)(flow->sent & 0xffffff),
        .dma_bytes = flow->message_packets * flow->payload_bytes,
        .payload_bytes = flow->payload_bytes,
    };

    outbox_add(out, &packet);
    flow->sent++;
}

static void report_sent(const struct flow *flows, size_t count)
{
    char src[FT_IP_TEXT_BYTES], dst[FT_IP_TEXT_BYTES];

    printf("{\"sent\":%llu,\"failed\":%llu,\"flows\":[", (unsigned long long)outbox.sent,
           (unsigned long long)outbox.failed);
    for (size_t i = 0; i < count; i++) {
        ft_ip_format(&flows[i].src, src);
        ft_ip_format(&flows[i].dst, dst);
        printf("%s{\"src\":\"%s\",\"dst\":\"%s\",\"sport\":%u,\"packets\":%llu}", i ? "," : "", src,
               dst, flows[i].sport, (unsigned long long)flows[i].sent);
    }
    printf("]}\n");
}

static int run_send(const char *path, double seconds)
{
    static struct flow flows[FLOWS_MAX];
    struct timespec tick = {.tv_nsec = TICK_NS};
    struct ft_mono start;
    size_t count;

    if (read_flows(path, flows, &count) < 0)
        return 65;
    printf("ready\n");
    fflush(stdout);
    start = ft_mono_now();
    while (!stopped) {
        double elapsed = (double)ft_mono_since_ns(ft_mono_now(), start) / 1e9;

        if (seconds > 0 && elapsed >= seconds)
            break;
        for (size_t i = 0; i < count; i++) {
            /* Flows of one rate start at different phases, so they do not pulse together. */
            double due = elapsed * flows[i].pps + (double)i / (double)count;

            for (int burst = 0; burst < BATCH && (double)flows[i].sent + 1 <= due; burst++)
                send_next(&outbox, &flows[i]);
        }
        outbox_flush(&outbox, 0);
        outbox_flush(&outbox, 1);
        nanosleep(&tick, NULL);
    }
    report_sent(flows, count);
    return outbox.failed ? 1 : 0;
}

/* A flow as its receiver knows it; the tuple is the request's. */
struct peer {
    struct ft_tuple tuple;
    uint32_t messages;
};

struct responder {
    struct ft_table *peers;
    uint64_t requests, acks, malformed;
};

static void answer(struct responder *responder, const struct ft_ip *local,
                   const struct sockaddr_storage *from, const uint8_t *bytes, size_t len)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
    struct ft_tuple tuple = {.dst = *local, .dport = FT_ROCE_PORT, .proto = FT_PROTO_UDP};
    struct ft_roce_packet packet;
    struct ft_roce_bth bth;
    struct peer *peer;
    bool fresh;

    if (from->ss_family == AF_INET) {
        ft_ip_from_bytes((const uint8_t *)&four->sin_addr, 4, &tuple.src);
        tuple.sport = ntohs(four->sin_port);
    } else {
        ft_ip_from_bytes((const uint8_t *)&six->sin6_addr, 16, &tuple.src);
        tuple.sport = ntohs(six->sin6_port);
    }
    if (ft_roce_read_bth(bytes, len, &bth) < 0) {
        responder->malformed++;
        return;
    }
    if (!ft_roce_is_write(bth.opcode)) {
        responder->acks += bth.opcode == FT_ROCE_ACKNOWLEDGE;
        return;
    }
    responder->requests++;
    peer = ft_table_insert(responder->peers, &tuple, &fresh);
    if (!peer)
        return;
    if (ft_roce_ends_message(bth.opcode))
        peer->messages++;
    if (!bth.ack_request)
        return;
    packet = (struct ft_roce_packet){
        .src = *local,
        .dst = tuple.src,
        .sport = tuple.sport,
        .opcode = FT_ROCE_ACKNOWLEDGE,
        .dst_qp = bth.dst_qp,
        .psn = bth.psn,
        .msn = peer->messages & 0xffffff,
    };
    outbox_add(&outbox, &packet);
}

static void receive(struct responder *responder, int fd, const struct ft_ip *local)
{
    static uint8_t bytes[BATCH][32]; /* the BTH is all that is looked at */
    static struct sockaddr_storage from[BATCH];
    static struct mmsghdr messages[BATCH];
    static struct iovec parts[BATCH];
    int n;

    for (int i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){.iov_base = bytes[i], .iov_len = sizeof(bytes[i])};
        messages[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
                                              .msg_namelen = sizeof(from[i]),
                                              .msg_iov = &parts[i],
                                              .msg_iovlen = 1};
    }
    n = recvmmsg(fd, messages, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < n; i++)
        answer(responder, local, &from[i], bytes[i], messages[i].msg_len);
    outbox_flush(&outbox, 0);
    outbox_flush(&outbox, 1);
}

static int listen_on(const char *address, struct ft_ip *local)
{
    struct sockaddr_storage to;
    int bytes = RECEIVE_BUFFER;
    socklen_t len;
    int fd;

    if (ft_ip_parse(address, local) < 0) {
        fprintf(stderr, "%s: not an address\n", address);
        return -EINVAL;
    }
    len = sockaddr_of(local, FT_ROCE_PORT, &to);
    fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&to, len) < 0) {
        fprintf(stderr, "%s: %s\n", address, strerror(errno));
        return -errno;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
    return fd;
}

static int run_respond(int count, char **addresses)
{
    struct pollfd polls[ADDRESSES_MAX];
    struct ft_ip locals[ADDRESSES_MAX];
    struct responder responder = {0};

    if (count > ADDRESSES_MAX)
        return 64;
    for (int i = 0; i < count; i++) {
        int fd = listen_on(addresses[i], &locals[i]);

        if (fd < 0)
            return 71;
        polls[i] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    responder.peers = ft_table_new(sizeof(struct peer), sizeof(struct ft_tuple), PEERS_MAX, 1);
    if (!responder.peers)
        return 71;
    printf("ready\n");
    fflush(stdout);
    while (!stopped) {
        if (poll(polls, (nfds_t)count, 1000) <= 0)
            continue;
        for (int i = 0; i < count; i++)
            if (polls[i].revents & POLLIN)
                receive(&responder, polls[i].fd, &locals[i]);
    }
    printf("{\"requests\":%llu,\"acks_sent\":%llu,\"acks_received\":%llu,\"malformed\":%llu,"
           "\"flows\":%zu,\"flows_refused\":%llu,\"failed\":%llu}\n",
           (unsigned long long)responder.requests, (unsigned long long)outbox.sent,
           (unsigned long long)responder.acks, (unsigned long long)responder.malformed,
           ft_table_count(responder.peers), (unsigned long long)ft_table_refused(responder.peers),
           (unsigned long long)outbox.failed);
    ft_table_free(responder.peers);
    return 0;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = stop};
    bool sends = argc == 4 && !strcmp(argv[1], "send");
    bool responds = argc > 2 && !strcmp(argv[1], "respond");

    if (!sends && !responds) {
        fprintf(stderr, "usage: rocegen send FILE SECONDS | rocegen respond ADDRESS...\n");
        return 64;
    }
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (outbox_open(&outbox) < 0) {
        perror("rocegen: raw socket");
        return 71;
    }
    return sends ? run_send(argv[2], atof(argv[3])) : run_respond(argc - 2, argv + 2);
}

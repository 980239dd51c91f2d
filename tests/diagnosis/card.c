// SPDX-License-Identifier: Apache-2.0
/*
 * card FILE HOST ADDRESS...: the network cards of a host of the lab's job, one for each of its
 * ranks, with the addresses of all hosts. Sends what the ranks post (trainer.h) as RoCEv2 messages,
 * paced, resends what is not acknowledged in time, and acknowledges what arrives: as hardware
 * does, whatever becomes of the rank's process. Ends with SIGTERM.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/tuple.h"
#include "tests/diagnosis/trainer.h"
#include "tests/fabric/roce.h"

#define RESEND_NS   400000000
#define TICK_NS     1000000
#define MESSAGE_MAX 64 /* packets */

/* A queue pair as its sender's card knows it, and as its receiver's. */
struct sending {
    uint32_t message; /* that is sent, from 1 */
    uint32_t packets, sent;
    int64_t resend_ns;
};

struct receiving {
    uint32_t message, packet; /* that are expected next */
    int64_t done_ns;          /* when the card has taken all of it; 0: it is not complete */
    uint32_t packets;
    uint32_t psn;
};

static struct shared *s;
static int host, raw, udp, door;
static struct ft_ip address[HOSTS];
static struct sending sending[GPUS][SLOTS];
static struct receiving receiving[RANKS][SLOTS];
static int64_t next_ns[GPUS];
static unsigned int turn[GPUS];
static uint16_t ip_id;
static volatile sig_atomic_t over;

static void on_term(int number)
{
    (void)number;
    over = 1;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint32_t number_of(int rank, int slot)
{
    return (uint32_t)(rank * SLOTS + slot);
}

static void send_packet(struct ft_roce_packet *p, int to)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    uint8_t bytes[FT_ROCE_PACKET_BYTES_MAX];
    size_t len;

    ip_id = ip_id == UINT16_MAX ? 1 : (uint16_t)(ip_id + 1);
    p->ip_id = ip_id;
    p->src = address[host];
    p->dst = address[to];
    if (ft_roce_build(p, bytes, sizeof(bytes), &len) < 0)
        abort();
    memcpy(&at.sin_addr, ft_ip_bytes(&p->dst, &(size_t){0}), 4);
    /* What does not go out is as good as lost in the network. */
    if (sendto(raw, bytes, len, 0, (struct sockaddr *)&at, sizeof(at)) < 0 && errno == EBADF)
        abort();
}

/* The next packet of a queue pair's message, if it has one to send. */
static bool send_next(int gpu, int slot, int64_t now)
{
    struct sending *q = &sending[gpu][slot];
    int rank = host * GPUS + gpu;
    struct pair *pair = &s->pairs[rank][slot];
    struct ft_roce_packet p = {.sport = (uint16_t)(SPORT_FIRST + number_of(rank, slot)),
                               .dst_qp = QP_FIRST + number_of(rank, slot),
                               .payload_bytes = PACKET_BYTES};
    bool first, last;

    if (atomic_load(&pair->done) == q->message) {
        if (atomic_load(&pair->posted) == q->message)
            return false;
        q->message++;
        q->packets = (atomic_load(&pair->bytes) + PACKET_BYTES - 1) / PACKET_BYTES;
        q->sent = 0;
    }
    if (q->sent == q->packets) {
        if (now < q->resend_ns)
            return false;
        q->sent = 0;
    }
    first = q->sent == 0;
    last = q->sent + 1 == q->packets;
    p.opcode = first && last ? FT_ROCE_WRITE_ONLY
               : first       ? FT_ROCE_WRITE_FIRST
               : last        ? FT_ROCE_WRITE_LAST
                             : FT_ROCE_WRITE_MIDDLE;
    p.ack_request = last;
    p.psn = ((q->message - 1) * MESSAGE_MAX + q->sent) & 0xffffff;
    p.dma_bytes = q->packets * PACKET_BYTES;
    send_packet(&p, host_of(pair_peer(rank, slot)));
    if (++q->sent == q->packets)
        q->resend_ns = now + RESEND_NS;
    return true;
}

static int64_t slowed(int rank, int word)
{
    int32_t percent = atomic_load(&s->fault[rank][word]);

    return percent > 0 ? PACKET_NS * 100LL / percent : PACKET_NS;
}

/* Sends what is due. When something will be next. */
static int64_t send_due(int64_t now)
{
    int64_t next = INT64_MAX;

    for (int gpu = 0; gpu < GPUS; gpu++) {
        bool any = true;

        /* Late by no more than a tick: a card has no credit for the time that it was idle. */
        if (next_ns[gpu] < now - TICK_NS)
            next_ns[gpu] = now - TICK_NS;
        while (any && next_ns[gpu] <= now) {
            any = false;
            for (int i = 0; i < SLOTS && !any; i++)
                any = send_next(gpu, (int)((turn[gpu] + (unsigned int)i) % SLOTS), now);
            turn[gpu]++;
            if (any)
                next_ns[gpu] += slowed(host * GPUS + gpu, FAULT_SEND);
        }
        if (any && next_ns[gpu] < next)
            next = next_ns[gpu];
        for (int slot = 0; slot < SLOTS; slot++) {
            const struct sending *q = &sending[gpu][slot];

            if (atomic_load(&s->pairs[host * GPUS + gpu][slot].done) != q->message &&
                q->sent == q->packets && q->resend_ns < next)
                next = q->resend_ns;
        }
    }
    return next;
}

static void acknowledge(int rank, int slot, uint32_t psn, uint32_t message)
{
    struct ft_roce_packet p = {.sport = (uint16_t)(SPORT_FIRST + number_of(rank, slot)),
                               .opcode = FT_ROCE_ACKNOWLEDGE,
                               .dst_qp = QP_FIRST + number_of(rank, slot),
                               .psn = psn,
                               .msn = message & 0xffffff};

    send_packet(&p, host_of(rank));
}

static void complete(int rank, int slot, struct receiving *r)
{
    r->done_ns = 0;
    r->message++;
    r->packet = 0;
    atomic_store(&s->pairs[rank][slot].arrived, r->message);
    acknowledge(rank, slot, r->psn, r->message);
    ring_bell(s, pair_peer(rank, slot));
}

/* What a slow card has by now taken. When the next will be. */
static int64_t complete_due(int64_t now)
{
    int64_t next = INT64_MAX;

    for (int rank = 0; rank < RANKS; rank++) {
        for (int slot = 0; slot < SLOTS; slot++) {
            struct receiving *r = &receiving[rank][slot];

            if (r->done_ns && r->done_ns <= now)
                complete(rank, slot, r);
            else if (r->done_ns && r->done_ns < next)
                next = r->done_ns;
        }
    }
    return next;
}

static void take_write(int rank, int slot, const struct ft_roce_bth *bth, int64_t now)
{
    struct receiving *r = &receiving[rank][slot];
    uint32_t message = bth->psn / MESSAGE_MAX, packet = bth->psn % MESSAGE_MAX;
    int64_t each = slowed(pair_peer(rank, slot), FAULT_RECEIVE);

    if (message + 1 == r->message && bth->ack_request) {
        acknowledge(rank, slot, bth->psn, r->message);
        return;
    }
    if (message != r->message || r->done_ns)
        return;
    if (packet == 0)
        r->packet = 0;
    if (packet != r->packet)
        return;
    r->packet++;
    if (!ft_roce_ends_message(bth->opcode))
        return;
    r->psn = bth->psn;
    r->done_ns = now + (each - PACKET_NS) * r->packet;
    if (r->done_ns <= now)
        complete(rank, slot, r);
}

static void take(const struct ft_roce_bth *bth, int64_t now)
{
    uint32_t number = bth->dst_qp - QP_FIRST;
    int rank, slot;

    if (number >= RANKS * SLOTS)
        return;
    rank = (int)(number / SLOTS);
    slot = (int)(number % SLOTS);
    if (ft_roce_is_write(bth->opcode) && host_of(pair_peer(rank, slot)) == host) {
        take_write(rank, slot, bth, now);
    } else if (bth->opcode == FT_ROCE_ACKNOWLEDGE && host_of(rank) == host) {
        struct sending *q = &sending[rank % GPUS][slot];
        struct pair *pair = &s->pairs[rank][slot];

        if (bth->psn / MESSAGE_MAX + 1 == q->message &&
            atomic_load(&pair->done) + 1 == q->message) {
            atomic_store(&pair->done, q->message);
            ring_bell(s, rank);
        }
    }
}

static void receive(int64_t now)
{
    uint8_t bytes[64];
    struct ft_roce_bth bth;
    ssize_t n;

    while ((n = recv(udp, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        if (ft_roce_read_bth(bytes, (size_t)n, &bth) == 0)
            take(&bth, now);
    while (recv(door, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
}

static void open_sockets(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "\0card"};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(FT_ROCE_PORT)};
    int bytes = 4 << 20;

    raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    door = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(&in.sin_addr, ft_ip_bytes(&address[host], &(size_t){0}), 4);
    if (raw < 0 || bind(udp, (struct sockaddr *)&in, sizeof(in)) < 0 ||
        bind(door, (struct sockaddr *)&at,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 5)) < 0) {
        perror("card");
        exit(1);
    }
    setsockopt(udp, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
    setsockopt(raw, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
}

int main(int argc, char **argv)
{
    struct sigaction on = {.sa_handler = on_term};
    struct pollfd polls[2];

    if (argc != 3 + HOSTS) {
        fprintf(stderr, "usage: card FILE HOST ADDRESS...\n");
        return 2;
    }
    s = map_shared(argv[1]);
    host = atoi(argv[2]);
    for (int i = 0; i < HOSTS; i++)
        if (ft_ip_parse(argv[3 + i], &address[i]) < 0)
            return 2;
    sigaction(SIGTERM, &on, NULL);
    open_sockets();
    polls[0] = (struct pollfd){.fd = udp, .events = POLLIN};
    polls[1] = (struct pollfd){.fd = door, .events = POLLIN};
    puts("ready");
    fflush(stdout);
    while (!over) {
        int64_t now = now_ns(), a, b;
        struct timespec t = {1, 0};

        receive(now);
        a = send_due(now);
        b = complete_due(now);
        a = (a < b ? a : b) - now;
        if (a < 1000000000) {
            a = a > TICK_NS ? a : TICK_NS;
            t = (struct timespec){0, (long)a};
        }
        if (ppoll(polls, 2, &t, NULL) < 0 && errno != EINTR)
            return 1;
    }
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A source of sFlow datagrams for tests/bench/e2e.py: the switches of a 512-leaf, 32-spine fabric,
 * each of which samples its flows where they enter it. The path of a flow follows from its number,
 * and tests/bench/e2e.py knows how.
 *
 * usage: fabric_flood -r SAMPLES_PER_SECOND -t SECONDS -k FLOWS -p PORT[,PORT]...
 * A switch sends to the port that its number falls to. Prints the samples and datagrams sent and
 * the seconds it took.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/writer.h"
#include "tests/put.h"

#define LEAVES       512
#define SPINES       32
#define HOSTS        16
#define SWITCHES     (LEAVES + SPINES)
#define SAMPLES      6 /* in a datagram */
#define HEADER_BYTES 128
#define FRAME_BYTES  4170
#define RATE         2048
#define UPLINK       100 /* ifIndex of a leaf's port to spine 0 */
#define PORTS        (LEAVES + UPLINK + SPINES)
#define PORTS_MAX    8
#define NS_PER_S     INT64_C(1000000000)
#define DATAGRAM_MAX 2048
#define STALE_NS     (NS_PER_S / 5) /* a datagram that is not full goes out then */

struct agent {
    uint32_t sequence, count;
    int64_t begun_ns;
    uint32_t numbers[PORTS]; /* of its data sources */
    struct ft_writer w;
};

static struct agent agents[SWITCHES];
static int sockets[PORTS_MAX];
static uint32_t socket_count;
static uint64_t sent_datagrams;

struct plan {
    uint32_t src, dst, spine; /* hosts, and the spine between their leaves */
};

/* As plan_of() in tests/bench/e2e.py. */
static struct plan plan_of(uint32_t flow)
{
    uint64_t h = (flow + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    struct plan p;
    uint32_t leaf;

    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    h ^= h >> 32;
    leaf = (uint32_t)(h % LEAVES);
    p.src = leaf * HOSTS + (uint32_t)((h >> 20) % HOSTS);
    leaf = (leaf + 1 + (uint32_t)((h >> 10) % (LEAVES - 1))) % LEAVES;
    p.dst = leaf * HOSTS + (uint32_t)((h >> 24) % HOSTS);
    p.spine = (uint32_t)((h >> 28) % SPINES);
    return p;
}

static uint32_t host_address(uint32_t host)
{
    return 0x0a000000 + (host / HOSTS << 8) + host % HOSTS + 1;
}

static void write_frame(struct ft_writer *w, uint32_t flow, const struct plan *p, uint32_t hop)
{
    size_t end = w->len + HEADER_BYTES;

    for (int n = 0; n < 12; n++)
        ft_write_u8(w, 2);
    put_be16(w, 0x0800);
    ft_write_be32(w, 0x45020000 | (FRAME_BYTES - 18));
    ft_write_be32(w, 0x00014000);
    ft_write_be32(w, (64 - hop) << 24 | 17 << 16);
    ft_write_be32(w, host_address(p->src));
    ft_write_be32(w, host_address(p->dst));
    /* The two ports together tell all flows apart. */
    put_be16(w, (uint16_t)flow);
    put_be16(w, (uint16_t)(4791 + (flow >> 16)));
    ft_write_be32(w, (uint32_t)(FRAME_BYTES - 38) << 16);
    ft_write_be32(w, 0x0700ffff);
    ft_write_be32(w, flow * 7919 & 0xffffff);
    ft_write_be32(w, 0xb7c540);
    while (w->len < end)
        ft_write_u8(w, 0);
}

static void send_datagram(uint32_t id)
{
    struct agent *a = &agents[id];
    uint32_t count = htonl(a->count);

    if (a->count == 0)
        return;
    memcpy(a->w.bytes + 24, &count, sizeof(count));
    while (send(sockets[id % socket_count], a->w.bytes, a->w.len, 0) < 0)
        if (errno != ECONNREFUSED && errno != ENOBUFS && errno != EINTR) {
            perror("fabric_flood: send");
            exit(EX_OSERR);
        }
    sent_datagrams++;
    a->count = 0;
    ft_writer_reset(&a->w);
}

static void begin_datagram(uint32_t id, int64_t now_ns)
{
    struct agent *a = &agents[id];

    a->begun_ns = now_ns;
    ft_write_be32(&a->w, 5);
    ft_write_be32(&a->w, 1);
    ft_write_be32(&a->w, 0xc0000000 + id + 1);
    ft_write_be32(&a->w, 0);
    ft_write_be32(&a->w, ++a->sequence);
    ft_write_be32(&a->w, (uint32_t)(now_ns / 1000000));
    ft_write_be32(&a->w, 0);
}

static void sample(uint32_t flow, uint32_t hop, int64_t now_ns)
{
    const struct plan p = plan_of(flow);
    uint32_t src_leaf = p.src / HOSTS, dst_leaf = p.dst / HOSTS;
    uint32_t id = hop == 0 ? src_leaf : hop == 1 ? LEAVES + p.spine : dst_leaf;
    uint32_t in = hop == 0 ? 1 + p.src % HOSTS : hop == 1 ? 1 + src_leaf : UPLINK + p.spine;
    uint32_t out = hop == 0 ? UPLINK + p.spine : 1 + (hop == 1 ? dst_leaf : p.dst % HOSTS);
    struct ft_writer *w = &agents[id].w;

    if (agents[id].count == 0)
        begin_datagram(id, now_ns);
    ft_write_be32(w, 1);
    ft_write_be32(w, 32 + 8 + 16 + HEADER_BYTES);
    ft_write_be32(w, ++agents[id].numbers[in]);
    ft_write_be32(w, in);
    ft_write_be32(w, RATE);
    ft_write_be32(w, RATE * agents[id].numbers[in]);
    ft_write_be32(w, 0);
    ft_write_be32(w, in);
    ft_write_be32(w, out);
    ft_write_be32(w, 1);
    ft_write_be32(w, 1);
    ft_write_be32(w, 16 + HEADER_BYTES);
    ft_write_be32(w, 1);
    ft_write_be32(w, FRAME_BYTES);
    ft_write_be32(w, 4);
    ft_write_be32(w, HEADER_BYTES);
    write_frame(w, flow, &p, hop);
    if (++agents[id].count == SAMPLES)
        send_datagram(id);
}

static void send_stale(int64_t now_ns, bool all)
{
    for (uint32_t id = 0; id < SWITCHES; id++)
        if (agents[id].count && (all || now_ns - agents[id].begun_ns > STALE_NS))
            send_datagram(id);
}

static void run(uint64_t per_second, uint64_t seconds, uint32_t flows)
{
    const uint64_t total = per_second * seconds;
    struct ft_mono start = ft_mono_now();
    int64_t spent = 0, stale_ns = 0;

    for (uint64_t sent = 0; sent < total;) {
        uint64_t due;

        spent = ft_mono_since_ns(ft_mono_now(), start);
        due = (uint64_t)((double)spent / (double)NS_PER_S * (double)per_second);
        if (due <= sent) {
            const struct timespec nap = {.tv_nsec = 50000};

            nanosleep(&nap, NULL);
            continue;
        }
        /* A flow is sampled at each of its three switches, one after the other. */
        for (; sent < due && sent < total; sent++)
            sample((uint32_t)(sent / 3 * 7919 % flows), (uint32_t)(sent % 3), spent);
        if (spent - stale_ns > STALE_NS) {
            send_stale(spent, false);
            stale_ns = spent;
        }
    }
    send_stale(spent, true);
    printf("%" PRIu64 " %" PRIu64 " %.6f\n", total, sent_datagrams,
           (double)ft_mono_since_ns(ft_mono_now(), start) / (double)NS_PER_S);
}

static void open_sockets(char *ports)
{
    for (char *p = strtok(ports, ","); p && socket_count < PORTS_MAX; p = strtok(NULL, ",")) {
        const struct sockaddr_in to = {.sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)strtoul(p, NULL, 10)),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
            perror("fabric_flood: socket");
            exit(EX_OSERR);
        }
        sockets[socket_count++] = fd;
    }
}

int main(int argc, char **argv)
{
    uint64_t per_second = 0, seconds = 0, flows = 0;
    int option;

    while ((option = getopt(argc, argv, "r:t:k:p:")) != -1) {
        unsigned long long v = option == 'p' ? 0 : strtoull(optarg ? optarg : "", NULL, 10);

        if (option == 'r')
            per_second = v;
        else if (option == 't')
            seconds = v;
        else if (option == 'k')
            flows = v;
        else if (option == 'p')
            open_sockets(optarg);
        else
            break;
    }
    if (!per_second || !seconds || !flows || flows > UINT32_MAX || !socket_count) {
        fputs("usage: fabric_flood -r SAMPLES_PER_SECOND -t SECONDS -k FLOWS -p PORT[,PORT]...\n",
              stderr);
        return EX_USAGE;
    }
    for (uint32_t id = 0; id < SWITCHES; id++)
        ft_writer_init(&agents[id].w, DATAGRAM_MAX);
    run(per_second, seconds, (uint32_t)flows);
    for (uint32_t id = 0; id < SWITCHES; id++)
        ft_writer_free(&agents[id].w);
    return 0;
}

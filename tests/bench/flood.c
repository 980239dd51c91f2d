// SPDX-License-Identifier: Apache-2.0
/*
 * A source of sFlow datagrams for tests/bench/sflow.py: many exporters, each with a socket and
 * right sequence numbers, that sample RoCEv2 flows. Sends a bounded count at an even rate, or
 * writes the same datagrams into a capture file.
 *
 * usage: flood -n DATAGRAMS [-r PER_SECOND] [-s SAMPLES] [-k FLOWS] [-e EXPORTERS]
 *              (-p PORT | -w FILE.pcap)
 * Prints the datagrams sent and the seconds it took.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/udp.h>
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

#define HEADER_BYTES   128
#define FRAME_BYTES    1082
#define RATE           2048
#define PREPARED       4096 /* different datagrams */
#define SAMPLES_MAX    64
#define EXPORTERS_MAX  256
#define BURST          16
#define RUN            8 /* divides PREPARED, as exporters should */
#define DATAGRAM_MAX   65507
#define PORTS          32
#define NS_PER_S       INT64_C(1000000000)
#define CAPTURE_START  1700000000
#define SEQUENCE_AT    16 /* in a datagram with an IPv4 agent */
#define UPTIME_AT      20
#define UDP_HEAD_BYTES 42 /* Ethernet, IPv4 and UDP */
#define SOURCE_IP_AT   26 /* in a sampled frame */

struct prepared {
    struct ft_writer w;
    uint32_t exporter;
    size_t number_at[SAMPLES_MAX]; /* where each sample's number stands */
    size_t frame_at[SAMPLES_MAX];
    uint32_t source[SAMPLES_MAX];
};

struct exporter {
    int fd;
    uint32_t sequence;
    uint32_t samples[PORTS + 1]; /* numbers of its data sources */
};

struct flood {
    uint64_t datagrams;
    uint64_t per_second; /* 0: as fast as it goes */
    uint32_t samples;
    uint32_t flows;
    uint32_t exporter_count;
    uint16_t port;
    const char *file;
    uint32_t next_flow;
    struct exporter exporters[EXPORTERS_MAX];
    struct prepared prepared[PREPARED];
};

static struct flood flood = {.samples = 6, .flows = 1126, .exporter_count = 16};

/* Flow number i: hosts and a queue pair's source port follow from it. */
static void write_frame(struct ft_writer *w, uint32_t i)
{
    size_t end = w->len + HEADER_BYTES;

    for (int n = 0; n < 12; n++)
        ft_write_u8(w, 2);
    put_be16(w, 0x0800);
    ft_write_be32(w, 0x45020000 | (FRAME_BYTES - 18));
    ft_write_be32(w, 0x00014000);
    ft_write_be32(w, 64u << 24 | 17 << 16);
    ft_write_be32(w, 0x0a000001 + i / 64 % 0x10000);
    ft_write_be32(w, 0x0a800001 + i / 16 % 0x10000);
    put_be16(w, (uint16_t)(49152 + i % 16384));
    put_be16(w, 4791);
    ft_write_be32(w, (uint32_t)(FRAME_BYTES - 38) << 16);
    ft_write_be32(w, 0x0700ffff);
    ft_write_be32(w, 17 + i);
    ft_write_be32(w, 0xb7c540);
    while (w->len < end)
        ft_write_u8(w, 0);
}

/* Compact, with extended switch data, as most send along: 192 bytes with its framing. */
static void write_sample(struct prepared *p, uint32_t s, uint32_t flow)
{
    uint32_t in = 1 + flow / flood.exporter_count % PORTS, out = 49 + flow / PORTS % 16;
    struct ft_writer *w = &p->w;

    p->source[s] = in;
    p->number_at[s] = w->len + 8;
    ft_write_be32(w, 1);
    ft_write_be32(w, 32 + 8 + 16 + HEADER_BYTES + 8 + 16);
    ft_write_be32(w, 0);
    ft_write_be32(w, in);
    ft_write_be32(w, RATE);
    ft_write_be32(w, 0);
    ft_write_be32(w, 0);
    ft_write_be32(w, in);
    ft_write_be32(w, out);
    ft_write_be32(w, 2);
    ft_write_be32(w, 1);
    ft_write_be32(w, 16 + HEADER_BYTES);
    ft_write_be32(w, 1);
    ft_write_be32(w, FRAME_BYTES);
    ft_write_be32(w, 4);
    ft_write_be32(w, HEADER_BYTES);
    p->frame_at[s] = w->len;
    write_frame(w, flow);
    ft_write_be32(w, 1001);
    ft_write_be32(w, 16);
    ft_write_be64(w, 0);
    ft_write_be64(w, 0);
}

static void prepare(void)
{
    uint32_t state = 1;

    for (uint32_t i = 0; i < PREPARED; i++) {
        struct prepared *p = &flood.prepared[i];

        p->exporter = i % flood.exporter_count;
        ft_writer_init(&p->w, 65536);
        ft_write_be32(&p->w, 5);
        ft_write_be32(&p->w, 1);
        ft_write_be32(&p->w, 0xc0000200 + p->exporter);
        ft_write_be32(&p->w, 0);
        ft_write_be32(&p->w, 0);
        ft_write_be32(&p->w, 0);
        ft_write_be32(&p->w, flood.samples);
        for (uint32_t s = 0; s < flood.samples; s++) {
            /* An exporter sees its share of the flows, in no order. */
            uint32_t share = (flood.flows + flood.exporter_count - 1) / flood.exporter_count;
            uint32_t flow;

            state = state * 1664525 + 1013904223;
            flow = (state >> 8) % share * flood.exporter_count + p->exporter;
            write_sample(p, s, flow < flood.flows ? flow : p->exporter);
        }
    }
}

static void patch(uint8_t *bytes, uint32_t v)
{
    v = htonl(v);
    memcpy(bytes, &v, sizeof(v));
}

/* The next datagram of the stream. When there are more flows than the prepared ones hold, each
 * sample is of the flow whose turn it is. */
static struct prepared *next_datagram(uint64_t number, uint32_t uptime_ms)
{
    struct prepared *p = &flood.prepared[number % PREPARED];
    struct exporter *e = &flood.exporters[p->exporter];
    bool many = flood.flows > PREPARED;

    patch(p->w.bytes + SEQUENCE_AT, ++e->sequence);
    patch(p->w.bytes + UPTIME_AT, uptime_ms);
    for (uint32_t s = 0; s < flood.samples; s++) {
        patch(p->w.bytes + p->number_at[s], ++e->samples[p->source[s]]);
        if (many) {
            patch(p->w.bytes + p->frame_at[s] + SOURCE_IP_AT, 0x0a000000 + flood.next_flow);
            flood.next_flow = (flood.next_flow + 1) % flood.flows;
        }
    }
    return p;
}

static void open_sockets(void)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(flood.port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    for (uint32_t i = 0; i < flood.exporter_count; i++) {
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
            perror("flood: socket");
            exit(EX_OSERR);
        }
        flood.exporters[i].fd = fd;
    }
}

/* The place in the stream of the n-th datagram sent: RUN of an exporter, then RUN of the next. */
static uint64_t place_of(uint64_t n)
{
    uint64_t block = (uint64_t)RUN * flood.exporter_count;

    return n - n % block + n % RUN * flood.exporter_count + n % block / RUN;
}

/* Some datagrams of one exporter in one call, which the kernel parts on the way (UDP_SEGMENT, see
 * udp(7)): the source must not be what limits the receiver. Returns how many. Nobody listening is
 * the receiver's trouble; it must not stop the source. */
static uint64_t send_run(uint64_t number, uint32_t uptime_ms)
{
    struct prepared *first = next_datagram(place_of(number), uptime_ms);
    union {
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec vectors[RUN] = {{first->w.bytes, first->w.len}};
    struct msghdr message = {.msg_iov = vectors,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    const uint16_t segment = (uint16_t)first->w.len;

    c->cmsg_level = SOL_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof(segment));
    memcpy(CMSG_DATA(c), &segment, sizeof(segment));
    for (uint64_t n = number + 1;
         n % RUN && n < flood.datagrams && (message.msg_iovlen + 1) * first->w.len <= DATAGRAM_MAX;
         n++) {
        struct prepared *p = next_datagram(place_of(n), uptime_ms);

        vectors[message.msg_iovlen++] = (struct iovec){p->w.bytes, p->w.len};
    }
    while (sendmsg(flood.exporters[first->exporter].fd, &message, 0) < 0)
        if (errno != ECONNREFUSED && errno != ENOBUFS && errno != EINTR) {
            perror("flood: send");
            exit(EX_OSERR);
        }
    return message.msg_iovlen;
}

static void send_all(void)
{
    struct ft_mono start = ft_mono_now();
    int64_t spent = 0;
    uint64_t sent = 0;

    while (sent < flood.datagrams) {
        uint64_t due = flood.datagrams;

        spent = ft_mono_since_ns(ft_mono_now(), start);
        if (flood.per_second)
            due = (uint64_t)((double)spent / (double)NS_PER_S * (double)flood.per_second) + BURST;
        if (due < sent + BURST) {
            const struct timespec nap = {.tv_nsec = 20000};

            nanosleep(&nap, NULL);
            continue;
        }
        for (uint64_t end = sent + BURST; sent < end && sent < flood.datagrams;)
            sent += send_run(sent, (uint32_t)(spent / 1000000));
    }
    printf("%" PRIu64 " %.6f\n", sent,
           (double)ft_mono_since_ns(ft_mono_now(), start) / (double)NS_PER_S);
}

/* A UDP datagram to the sFlow port in an Ethernet frame; the checksum is left out (RFC 768). */
static void write_head(struct ft_writer *w, const struct prepared *p)
{
    ft_write_be64(w, 0x0202020202020202);
    ft_write_be32(w, 0x02020202);
    put_be16(w, 0x0800);
    ft_write_be32(w, 0x45000000 | (uint32_t)(p->w.len + 28));
    ft_write_be32(w, 0);
    ft_write_be32(w, 64u << 24 | 17 << 16);
    ft_write_be32(w, 0xc0000200 + p->exporter);
    ft_write_be32(w, 0xc0000264);
    put_be16(w, (uint16_t)(40000 + p->exporter));
    put_be16(w, 6343);
    put_be16(w, (uint16_t)(p->w.len + 8));
    put_be16(w, 0);
}

static void write_all(void)
{
    static char buffer[1 << 20];
    const uint32_t file_head[] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, 1};
    uint64_t per_second = flood.per_second ? flood.per_second : 10000;
    FILE *f = fopen(flood.file, "wbe");
    struct ft_writer head;

    if (!f) {
        perror(flood.file);
        exit(EX_CANTCREAT);
    }
    /* In large pieces, so that the page cache holds it as it does a file that comes from a disk. */
    setvbuf(f, buffer, _IOFBF, sizeof(buffer));
    ft_writer_init(&head, 4096);
    fwrite(file_head, sizeof(file_head), 1, f);
    for (uint64_t i = 0; i < flood.datagrams; i++) {
        uint64_t micros = i * 1000000 / per_second;
        const struct prepared *p = next_datagram(i, (uint32_t)(micros / 1000));
        uint32_t bytes = (uint32_t)p->w.len + UDP_HEAD_BYTES;
        const uint32_t packet_head[] = {(uint32_t)(CAPTURE_START + micros / 1000000),
                                        (uint32_t)(micros % 1000000), bytes, bytes};

        ft_writer_reset(&head);
        write_head(&head, p);
        fwrite(packet_head, sizeof(packet_head), 1, f);
        fwrite(head.bytes, head.len, 1, f);
        fwrite(p->w.bytes, p->w.len, 1, f);
    }
    if (fclose(f) != 0) {
        perror(flood.file);
        exit(EX_IOERR);
    }
    ft_writer_free(&head);
    printf("%" PRIu64 " 0\n", flood.datagrams);
}

static void usage(void)
{
    fputs("usage: flood -n DATAGRAMS [-r PER_SECOND] [-s SAMPLES] [-k FLOWS] [-e EXPORTERS]\n"
          "             (-p PORT | -w FILE.pcap)\n",
          stderr);
    exit(EX_USAGE);
}

int main(int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "n:r:s:k:e:p:w:")) != -1) {
        unsigned long long v = option == 'w' ? 0 : strtoull(optarg ? optarg : "", NULL, 10);

        switch (option) {
        case 'n':
            flood.datagrams = v;
            break;
        case 'r':
            flood.per_second = v;
            break;
        case 's':
            flood.samples = (uint32_t)v;
            break;
        case 'k':
            flood.flows = (uint32_t)v;
            break;
        case 'e':
            flood.exporter_count = (uint32_t)v;
            break;
        case 'p':
            flood.port = (uint16_t)v;
            break;
        case 'w':
            flood.file = optarg;
            break;
        default:
            usage();
        }
    }
    if (!flood.datagrams || !flood.port == !flood.file || !flood.flows || !flood.exporter_count ||
        flood.exporter_count > EXPORTERS_MAX || flood.samples > SAMPLES_MAX)
        usage();
    prepare();
    if (flood.file) {
        write_all();
    } else {
        open_sockets();
        send_all();
    }
    for (int i = 0; i < PREPARED; i++)
        ft_writer_free(&flood.prepared[i].w);
    return 0;
}

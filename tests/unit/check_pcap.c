// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/capture/pcap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define DLT_ETHERNET 1
#define DLT_COOKED   113
#define DLT_USB      189
#define DLT_COOKED2  276

static char file[64];
static char error[512];
static uint8_t image[4096];
static size_t image_len;

struct seen {
    unsigned count;
    unsigned stop_at;
    enum ft_pcap_link link;
    int64_t last_ms;
    uint32_t captured, wire;
};

static void put32(uint32_t v)
{
    memcpy(image + image_len, &v, sizeof(v));
    image_len += sizeof(v);
}

/* The classic format, in this machine's byte order: draft-ietf-opsawg-pcap section 4. */
static void begin(uint32_t link)
{
    image_len = 0;
    put32(0xa1b2c3d4);
    put32(4u << 16 | 2);
    put32(0);
    put32(0);
    put32(65535);
    put32(link);
}

static void packet(uint32_t seconds, uint32_t microseconds, uint32_t captured, uint32_t wire)
{
    put32(seconds);
    put32(microseconds);
    put32(captured);
    put32(wire);
    memset(image + image_len, 0x5a, captured);
    image_len += captured;
}

static void save(size_t len)
{
    FILE *f;

    snprintf(file, sizeof(file), "check_pcap.%d.pcap", (int)getpid());
    f = fopen(file, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(image, 1, len, f), len);
    fclose(f);
}

static int look(void *arg, const struct ft_pcap_packet *p)
{
    struct seen *seen = arg;

    seen->count++;
    seen->link = p->link;
    seen->last_ms = p->when.ms;
    seen->captured = p->captured;
    seen->wire = p->wire;
    for (uint32_t i = 0; i < p->captured; i++)
        ck_assert_uint_eq(p->bytes[i], 0x5a);
    return seen->count == seen->stop_at ? 42 : 0;
}

static int run(struct seen *seen)
{
    int ret;

    error[0] = '\0';
    ret = ft_pcap_read(file, look, seen, error, sizeof(error));
    unlink(file);
    return ret;
}

START_TEST(reads_what_was_captured)
{
    static const struct {
        uint32_t dlt;
        enum ft_pcap_link link;
    } links[] = {{DLT_ETHERNET, FT_PCAP_ETHERNET},
                 {DLT_COOKED, FT_PCAP_COOKED},
                 {DLT_COOKED2, FT_PCAP_COOKED2}};

    for (size_t i = 0; i < 3; i++) {
        struct seen seen = {0};

        begin(links[i].dlt);
        packet(1700000000, 1, 60, 60);
        packet(1700000001, 999999, 100, 1500);
        save(image_len);
        ck_assert_int_eq(run(&seen), 0);
        ck_assert_uint_eq(seen.count, 2);
        ck_assert_int_eq(seen.link, links[i].link);
        ck_assert_int_eq(seen.last_ms, INT64_C(1700000001999));
        ck_assert_uint_eq(seen.captured, 100);
        ck_assert_uint_eq(seen.wire, 1500);
    }
}
END_TEST

START_TEST(reads_pcapng)
{
    struct seen seen = {0};

    image_len = 0;
    put32(0x0a0d0d0a); /* section header: draft-ietf-opsawg-pcapng section 4.1 */
    put32(28);
    put32(0x1a2b3c4d);
    put32(1);
    put32(0xffffffff);
    put32(0xffffffff);
    put32(28);
    put32(1); /* interface description */
    put32(20);
    put32(DLT_COOKED);
    put32(0);
    put32(20);
    put32(6); /* enhanced packet; the time is in microseconds */
    put32(36);
    put32(0);
    put32(0);
    put32(5000);
    put32(4);
    put32(80);
    put32(0x5a5a5a5a);
    put32(36);
    save(image_len);
    ck_assert_msg(run(&seen) == 0, "%s", error);
    ck_assert_uint_eq(seen.count, 1);
    ck_assert_int_eq(seen.link, FT_PCAP_COOKED);
    ck_assert_int_eq(seen.last_ms, 5);
    ck_assert_uint_eq(seen.wire, 80);
}
END_TEST

START_TEST(stops_when_asked)
{
    struct seen seen = {.stop_at = 2};

    begin(DLT_ETHERNET);
    for (int i = 0; i < 5; i++)
        packet(1, 0, 20, 20);
    save(image_len);
    ck_assert_int_eq(run(&seen), 42);
    ck_assert_uint_eq(seen.count, 2);
}
END_TEST

START_TEST(cut_off_anywhere_it_complains)
{
    size_t head, first;

    begin(DLT_ETHERNET);
    head = image_len;
    packet(1, 0, 20, 20);
    first = image_len;
    packet(2, 0, 20, 20);
    for (size_t len = 0; len < image_len; len++) {
        struct seen seen = {0};
        int whole = len == head || len == first;

        save(len);
        ck_assert_int_eq(run(&seen), whole ? 0 : -EINVAL);
        ck_assert_uint_eq(seen.count, len >= first);
        ck_assert_msg(whole || strncmp(error, file, strlen(file)) == 0, "%zu: '%s'", len, error);
    }
}
END_TEST

/* What libpcap says of the same file, which it always reads where it comes by standard input. */
static void as_libpcap(unsigned packets)
{
    struct seen seen = {0}, other = {0};

    ck_assert_ptr_nonnull(freopen(file, "rb", stdin));
    ck_assert_msg(ft_pcap_read("-", look, &other, error, sizeof(error)) == 0, "%s", error);
    ck_assert_msg(run(&seen) == 0, "%s", error);
    ck_assert_uint_eq(seen.count, packets);
    ck_assert_uint_eq(other.count, packets);
    ck_assert_int_eq(seen.link, other.link);
    ck_assert_int_eq(seen.last_ms, other.last_ms);
    ck_assert_uint_eq(seen.captured, other.captured);
    ck_assert_uint_eq(seen.wire, other.wire);
}

START_TEST(reads_variants_as_libpcap_does)
{
    static const uint32_t links[] = {DLT_ETHERNET, 101, DLT_COOKED, DLT_COOKED2};

    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        begin(links[i]);
        packet(1700000000, 999999, 60, 1500);
        save(image_len);
        as_libpcap(1);
    }
    begin(DLT_ETHERNET); /* nanoseconds */
    memcpy(image, &(uint32_t){0xa1b23c4d}, 4);
    packet(1700000000, 999999999, 60, 60);
    save(image_len);
    as_libpcap(1);
    begin(DLT_ETHERNET); /* a packet longer than the file says they are */
    memcpy(image + 16, &(uint32_t){40}, 4);
    packet(1700000000, 1, 60, 1500);
    packet(1700000000, 1, 60, 1500);
    save(image_len);
    as_libpcap(2);
    begin(DLT_ETHERNET); /* the other byte order */
    packet(1700000000, 1, 60, 1500);
    for (size_t at = 0; at < 40; at += 4) {
        uint32_t v;

        memcpy(&v, image + at, sizeof(v));
        v = __builtin_bswap32(v);
        memcpy(image + at, &v, sizeof(v));
    }
    memcpy(image + 4, (uint8_t[]){0, 2, 0, 4}, 4);
    save(image_len);
    as_libpcap(1);
}
END_TEST

/* Each packet's bytes are its number. */
static int look_numbered(void *arg, const struct ft_pcap_packet *p)
{
    struct seen *seen = arg;

    for (uint32_t i = 0; i < p->captured; i++)
        if (p->bytes[i] != (uint8_t)seen->count)
            return 99;
    seen->count++;
    return 0;
}

START_TEST(reads_more_than_is_mapped_at_once)
{
    enum { PACKETS = 300, BYTES = 60001 };
    static uint8_t bytes[BYTES];
    struct seen seen = {0};
    FILE *f;

    begin(DLT_ETHERNET);
    save(image_len);
    f = fopen(file, "ab");
    for (int i = 0; i < PACKETS; i++) {
        const uint32_t head[] = {1, 0, BYTES, BYTES};

        memset(bytes, i, sizeof(bytes));
        fwrite(head, sizeof(head), 1, f);
        fwrite(bytes, sizeof(bytes), 1, f);
    }
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(ft_pcap_read(file, look_numbered, &seen, error, sizeof(error)), 0);
    ck_assert_uint_eq(seen.count, PACKETS);
    /* Cut off behind the first part. */
    ck_assert_int_eq(truncate(file, (off_t)PACKETS * (BYTES + 16) - 100), 0);
    seen.count = 0;
    ck_assert_int_eq(ft_pcap_read(file, look_numbered, &seen, error, sizeof(error)), -EINVAL);
    ck_assert_uint_eq(seen.count, PACKETS - 1);
    ck_assert_ptr_nonnull(strstr(error, "packet 300"));
    unlink(file);
}
END_TEST

START_TEST(a_length_out_of_range_is_refused)
{
    struct seen seen = {0};

    begin(DLT_ETHERNET);
    packet(1, 0, 60, 60);
    put32(1);
    put32(0);
    put32(0x10000000);
    put32(60);
    save(image_len);
    ck_assert_int_eq(run(&seen), -EINVAL);
    ck_assert_uint_eq(seen.count, 1);
    ck_assert_msg(strstr(error, "packet 2: its length"), "%s", error);
}
END_TEST

static void complains(const char *expected)
{
    struct seen seen = {0};

    ck_assert_int_eq(run(&seen), -EINVAL);
    ck_assert_msg(strncmp(error, file, strlen(file)) == 0 && strstr(error, expected), "'%s'",
                  error);
}

START_TEST(complaints_name_the_file)
{
    snprintf(file, sizeof(file), "there-is-no-such.pcap");
    complains("No such file");
    snprintf(file, sizeof(file), ".");
    complains("irectory");
    memset(image, 'x', 200);
    save(200);
    complains("no capture file");
    begin(DLT_USB);
    save(image_len);
    complains("link type");
}
END_TEST

START_TEST(an_empty_file_is_called_empty)
{
    save(0);
    complains("it is empty");
}
END_TEST

static void pack(const char *with)
{
    char command[300], packed[80];

    snprintf(packed, sizeof(packed), "%s.packed", file);
    snprintf(command, sizeof(command), "%s <%s >%s && mv %s %s", with, file, packed, packed, file);
    ck_assert_int_eq(system(command), 0);
}

/* Told by its bytes: the file's name ends in pcap. Cut off anywhere it is no shorter capture. */
START_TEST(packed_captures_are_read)
{
    static const char *const with[] = {"gzip -c", "zstd -qc",
                                       "sh -c 'head -c 500 | gzip -c; cat "
                                       "check_pcap.rest | gzip -c'"};

    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
        struct seen seen = {0};
        uint8_t packed[sizeof(image)];
        size_t len;
        FILE *f;

        begin(DLT_ETHERNET);
        for (uint32_t n = 0; n < 20; n++)
            packet(1700000000 + n, 0, 60, 60);
        f = fopen("check_pcap.rest", "wb");
        fwrite(image + 500, 1, image_len - 500, f);
        fclose(f);
        save(image_len);
        pack(with[i]);
        f = fopen(file, "rb");
        len = fread(packed, 1, sizeof(packed), f);
        fclose(f);
        ck_assert_uint_lt(len, image_len);
        ck_assert_int_eq(run(&seen), 0);
        ck_assert_uint_eq(seen.count, 20);
        ck_assert_int_eq(seen.last_ms, INT64_C(1700000019000));
        if (i == 2) /* of two members the first alone is a whole file, of a cut capture */
            continue;
        for (size_t n = 1; n < len; n++) {
            memcpy(image, packed, n);
            save(n);
            memset(&seen, 0, sizeof(seen));
            ck_assert_int_eq(run(&seen), -EINVAL);
            ck_assert_uint_le(seen.count, 20);
        }
        packed[len / 2] ^= 0x55;
        packed[len / 2 + 1] ^= 0x55;
        memcpy(image, packed, len);
        save(len);
        complains("");
    }
    unlink("check_pcap.rest");
}
END_TEST

/* A pipe is opened once: its writer must not lose what it wrote to somebody who only looked. */
START_TEST(a_named_pipe_is_read_completely)
{
    for (int round = 0; round < 100; round++) {
        struct seen seen = {0};
        pid_t child;
        int status;

        begin(DLT_ETHERNET);
        packet(1700000000, 1, 60, 60);
        packet(1700000001, 1, 60, 60);
        snprintf(file, sizeof(file), "check_pcap.%d.pipe", (int)getpid());
        ck_assert_int_eq(mkfifo(file, 0600), 0);
        child = fork();
        if (child == 0) {
            int fd = open(file, O_WRONLY);

            _exit(write(fd, image, image_len) != (ssize_t)image_len);
        }
        ck_assert_int_eq(run(&seen), 0);
        ck_assert_uint_eq(seen.count, 2);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

START_TEST(time_out_of_range_is_refused)
{
    begin(DLT_ETHERNET);
    image_len = 0;
    put32(0x0a0d0d0a);
    put32(28);
    put32(0x1a2b3c4d);
    put32(1);
    put32(0xffffffff);
    put32(0xffffffff);
    put32(28);
    put32(1);
    put32(32);
    put32(DLT_ETHERNET);
    put32(0);
    put32(1u << 16 | 9); /* if_tsresol, 1 byte: seconds */
    put32(0);
    put32(0);
    put32(32);
    put32(6);
    put32(36);
    put32(0);
    put32(0x7fffffff);
    put32(0xffffffff);
    put32(4);
    put32(4);
    put32(0x5a5a5a5a);
    put32(36);
    save(image_len);
    complains("out of range");
}
END_TEST

START_TEST(live_complaints_name_the_interface)
{
    struct ft_loop *loop = ft_loop_new();
    struct ft_pcap_config config = {.interface = "ft-none0", .snap_bytes = 128};

    ck_assert_ptr_null(ft_pcap_open(loop, &config, error, sizeof(error)));
    ck_assert_msg(strstr(error, "'ft-none0'"), "'%s'", error);
    ft_loop_free(loop);
}
END_TEST

static struct ft_loop *loop;
static struct ft_pcap *live;
static struct seen live_seen;
static char live_text[512];

/* A network of our own, where even a user without rights may capture; false where that is barred.
 */
static bool own_network(void)
{
    uid_t uid = geteuid();
    int fd;

    if (uid != 0 && unshare(CLONE_NEWUSER) == 0) {
        fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
        dprintf(fd, "0 %u 1", uid);
        close(fd);
    }
    if (unshare(CLONE_NEWNET) == 0 &&
        system("ip link add ft0 type veth peer name ft1 && ip link set ft0 up && "
               "ip link set ft1 up && ip addr add 10.9.9.1/24 dev ft0 && "
               "ip neigh add 10.9.9.2 lladdr 02:00:00:00:00:02 dev ft0") == 0)
        return true;
    fputs("SKIP: pcap: live capture: no network namespace of our own can be made here\n", stderr);
    return false;
}

static void count_live(void *arg, const struct ft_pcap_packet *p)
{
    struct seen *seen = arg;

    seen->link = p->link;
    seen->captured = p->captured;
    seen->wire = p->wire;
    if (++seen->count == seen->stop_at)
        ft_loop_exit(loop, 0);
}

static void ended(void *arg, const char *text)
{
    (void)arg;
    snprintf(live_text, sizeof(live_text), "%s", text);
    ft_loop_exit(loop, 2);
}

static void too_late(void *arg)
{
    (void)arg;
    ft_loop_exit(loop, 1);
}

static void send_datagrams(int count, uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr = {htonl(0x0a090902)},
    };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint8_t bytes[500] = {0};

    for (int i = 0; i < count; i++)
        ck_assert_int_eq(sendto(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&to, sizeof(to)),
                         sizeof(bytes));
    close(fd);
}

START_TEST(captures_what_the_filter_takes)
{
    struct ft_pcap_config config = {
        .interface = "ft1",
        .filter = "udp dst port 4791",
        .snap_bytes = 96,
        .buffer_bytes = 8 << 20,
        .on_packet = count_live,
        .on_error = ended,
        .arg = &live_seen,
    };
    struct ft_pcap_stats stats;
    struct ft_watch *patience;

    if (!own_network())
        return;
    loop = ft_loop_new();
    patience = ft_watch_once(loop, too_late, NULL);
    ft_watch_once_arm(patience, INT64_C(10000000000));
    live = ft_pcap_open(loop, &config, error, sizeof(error));
    ck_assert_msg(live != NULL, "%s", error);
    live_seen.stop_at = 5000;
    send_datagrams(100, 4790);
    send_datagrams(5000, 4791);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ck_assert_int_eq(live_seen.link, FT_PCAP_ETHERNET);
    ck_assert_uint_eq(live_seen.captured, 96);
    ck_assert_uint_eq(live_seen.wire, 500 + 42);
    ft_pcap_stats(live, &stats);
    ck_assert_uint_eq(stats.received, 5000);
    ck_assert_uint_eq(stats.dropped, 0);
    ft_pcap_free(live);

    config.filter = "udp dst prt 4791";
    ck_assert_ptr_null(ft_pcap_open(loop, &config, error, sizeof(error)));
    ck_assert_msg(strstr(error, "'ft1': filter 'udp dst prt 4791': "), "%s", error);

    config.filter = NULL;
    live = ft_pcap_open(loop, &config, error, sizeof(error));
    ck_assert_msg(live != NULL, "%s", error);
    ck_assert_int_eq(system("ip link del ft0"), 0);
    ck_assert_int_eq(ft_loop_run(loop), 2);
    ck_assert_msg(strstr(live_text, "'ft1'"), "%s", live_text);
    ft_pcap_free(live);
    ft_watch_free(patience);
    ft_loop_free(loop);
}
END_TEST

FT_UNIT_MAIN("pcap", an_empty_file_is_called_empty, packed_captures_are_read,
             a_named_pipe_is_read_completely, reads_what_was_captured, reads_pcapng,
             reads_variants_as_libpcap_does, reads_more_than_is_mapped_at_once,
             a_length_out_of_range_is_refused, stops_when_asked, cut_off_anywhere_it_complains,
             complaints_name_the_file, time_out_of_range_is_refused,
             live_complaints_name_the_interface, captures_what_the_filter_takes)

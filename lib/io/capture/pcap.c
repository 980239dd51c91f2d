// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/capture/pcap.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/io/capture/pcap_file.h"
#include "lib/io/disk/unpack.h"

/* Packets read before the loop looks at other work. */
#define BATCH_PACKETS 4096
/* How long the kernel may gather packets before it wakes us. */
#define GATHER_MS 100
/* Read ahead of a file: a system call each for many packets, and small enough for the cache. */
#define FILE_BUFFER_BYTES (256u << 10)
/* 9999-12-31, the last day that a Unix time in a record may name. */
#define WALL_MAX_S 253402300799

struct ft_pcap {
    pcap_t *handle;
    struct ft_watch *ready;
    struct ft_watch *again;
    struct ft_pcap_config config;
    char *interface;
    enum ft_pcap_link link;
    struct ft_pcap_stats stats;
    u_int last_received, last_dropped;
};

static int map_link(int dlt, enum ft_pcap_link *link)
{
    switch (dlt) {
    case DLT_EN10MB:
        *link = FT_PCAP_ETHERNET;
        return 0;
    case DLT_LINUX_SLL:
        *link = FT_PCAP_COOKED;
        return 0;
    case DLT_LINUX_SLL2:
        *link = FT_PCAP_COOKED2;
        return 0;
    case DLT_RAW:
        *link = FT_PCAP_RAW;
        return 0;
    default:
        return -EINVAL;
    }
}

static const char *link_name(int dlt)
{
    const char *name = pcap_datalink_val_to_name(dlt);

    return name ? name : "unknown";
}

/* A file may hold any time; one out of range would overflow the sums that are made of it. */
static int to_packet(const struct pcap_pkthdr *header, const u_char *bytes, enum ft_pcap_link link,
                     struct ft_pcap_packet *packet)
{
    int64_t seconds = header->ts.tv_sec;

    if (seconds < 0 || seconds > WALL_MAX_S)
        return -EINVAL;
    *packet = (struct ft_pcap_packet){
        .when = {seconds * 1000 + header->ts.tv_usec / 1000},
        .link = link,
        .bytes = bytes,
        .captured = header->caplen,
        .wire = header->len,
    };
    return 0;
}

/* The next packet of a file: 1, 0 at its end, -EINVAL with a reason. */
static int next_packet(pcap_t *handle, enum ft_pcap_link link, struct ft_pcap_packet *packet,
                       const char **reason)
{
    struct pcap_pkthdr *header;
    const u_char *bytes;
    int ret = pcap_next_ex(handle, &header, &bytes);

    if (ret == PCAP_ERROR_BREAK)
        return 0;
    *reason = pcap_geterr(handle);
    if (ret != 1)
        return -EINVAL;
    *reason = "its time is out of range";
    return to_packet(header, bytes, link, packet) < 0 ? -EINVAL : 1;
}

static int next_in_file(struct ft_pcap_file *own, struct ft_pcap_packet *packet,
                        const char **reason)
{
    int ret = ft_pcap_file_next(own, packet);

    if (ret >= 0)
        return ret;
    *reason = ret == -ENODATA    ? "the file is truncated inside it"
              : ret == -ESTALE   ? "the file was cut short while it was read"
              : ret == -EMSGSIZE ? "its length is out of range"
                                 : strerror(-ret);
    return -EINVAL;
}

/* From the one or the other. */
static int read_packets(struct ft_pcap_file *own, pcap_t *handle, enum ft_pcap_link link,
                        const char *name,
                        int (*on_packet)(void *arg, const struct ft_pcap_packet *packet), void *arg,
                        char *error, size_t error_bytes)
{
    for (uint64_t number = 1;; number++) {
        struct ft_pcap_packet packet;
        const char *reason;
        int ret =
            own ? next_in_file(own, &packet, &reason) : next_packet(handle, link, &packet, &reason);

        if (ret < 0)
            snprintf(error, error_bytes, "%s: packet %llu: %s", name, (unsigned long long)number,
                     reason);
        if (ret <= 0)
            return ret;
        ret = on_packet(arg, &packet);
        if (ret)
            return ret;
    }
}

/* By libpcap, in whatever format; the stream is closed. */
static int read_stream(FILE *stream, const char *name,
                       int (*on_packet)(void *arg, const struct ft_pcap_packet *packet), void *arg,
                       char *error, size_t error_bytes)
{
    char reason[PCAP_ERRBUF_SIZE] = "";
    enum ft_pcap_link link;
    pcap_t *handle = pcap_fopen_offline(stream, reason);
    int ret;

    if (!handle) {
        snprintf(error, error_bytes, "%s: no capture file: %s", name, reason);
        fclose(stream);
        return -EINVAL;
    }
    if (map_link(pcap_datalink(handle), &link) < 0) {
        snprintf(error, error_bytes, "%s: link type %s (%d) is not supported", name,
                 link_name(pcap_datalink(handle)), pcap_datalink(handle));
        ret = -EINVAL;
    } else {
        ret = read_packets(NULL, handle, link, name, on_packet, arg, error, error_bytes);
    }
    pcap_close(handle); /* and the stream */
    return ret;
}

static int read_descriptor(int fd, const char *name,
                           int (*on_packet)(void *arg, const struct ft_pcap_packet *packet),
                           void *arg, char *error, size_t error_bytes)
{
    FILE *stream;
    struct ft_unpack *unpack = ft_unpack_new(fd, &stream);
    char *buffer = malloc(FILE_BUFFER_BYTES);
    int ret = -EINVAL;

    if (!unpack || !buffer) {
        snprintf(error, error_bytes, "%s: no memory", name);
        if (unpack)
            fclose(stream);
        goto out;
    }
    /* glibc takes no heed of a size without a buffer. */
    setvbuf(stream, buffer, _IOFBF, FILE_BUFFER_BYTES);
    ret = read_stream(stream, name, on_packet, arg, error, error_bytes);
    if (ret == -EINVAL && ft_unpack_problem(unpack))
        snprintf(error, error_bytes, "%s: %s", name, ft_unpack_problem(unpack));
    else if (ret == -EINVAL && ft_unpack_empty(unpack))
        snprintf(error, error_bytes, "%s: no capture file: it is empty", name);
out:
    ft_unpack_free(unpack);
    free(buffer);
    return ret;
}

int ft_pcap_read(const char *file, int (*on_packet)(void *arg, const struct ft_pcap_packet *packet),
                 void *arg, char *error, size_t error_bytes)
{
    bool standard = strcmp(file, "-") == 0;
    struct ft_pcap_file *own = standard ? NULL : ft_pcap_file_new(file);
    int ret, fd;

    if (own) {
        ret = read_packets(own, NULL, 0, file, on_packet, arg, error, error_bytes);
        ft_pcap_file_free(own);
        return ret;
    }
    if (standard)
        return read_descriptor(STDIN_FILENO, "standard input", on_packet, arg, error, error_bytes);
    fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(error, error_bytes, "%s: %s", file, strerror(errno));
        return -EINVAL;
    }
    ret = read_descriptor(fd, file, on_packet, arg, error, error_bytes);
    close(fd);
    return ret;
}

bool ft_pcap_lists(const char *device)
{
    char reason[PCAP_ERRBUF_SIZE] = "";
    pcap_if_t *all = NULL;
    bool found = false;

    if (pcap_findalldevs(&all, reason))
        return false;
    for (const pcap_if_t *i = all; i; i = i->next)
        found = found || strcmp(i->name, device) == 0;
    pcap_freealldevs(all);
    return found;
}

static void take_packet(u_char *user, const struct pcap_pkthdr *header, const u_char *bytes)
{
    struct ft_pcap *pcap = (struct ft_pcap *)user;
    struct ft_pcap_packet packet;

    if (to_packet(header, bytes, pcap->link, &packet) == 0)
        pcap->config.on_packet(pcap->config.arg, &packet);
}

static void take_packets(void *arg)
{
    struct ft_pcap *pcap = arg;
    int count;
    char text[PCAP_ERRBUF_SIZE + 64];

    errno = 0;
    count = pcap_dispatch(pcap->handle, BATCH_PACKETS, take_packet, (u_char *)pcap);
    /* The RDMA sniffer fails when it finds nothing to wait for, others return 0. */
    if (count == PCAP_ERROR && errno == EAGAIN)
        return;
    if (count == BATCH_PACKETS)
        /* The ring may be readable only at its next block, so the rest is not left to poll(). */
        ft_watch_once_arm(pcap->again, 0);
    if (count >= 0 || count == PCAP_ERROR_BREAK)
        return;
    /* The descriptor stays readable with its error: watching on would spin. */
    ft_watch_free(pcap->ready);
    pcap->ready = NULL;
    ft_watch_once_disarm(pcap->again);
    snprintf(text, sizeof(text), "interface '%s': %s", pcap->interface, pcap_geterr(pcap->handle));
    if (pcap->config.on_error)
        pcap->config.on_error(pcap->config.arg, text);
}

int ft_pcap_check_filter(const char *filter, char *error, size_t error_bytes)
{
    pcap_t *handle = pcap_open_dead(DLT_EN10MB, UINT16_MAX);
    struct bpf_program program;
    int rc = handle ? pcap_compile(handle, &program, filter, 1, PCAP_NETMASK_UNKNOWN) : -1;

    if (rc < 0)
        snprintf(error, error_bytes, "'%s': %s", filter,
                 handle ? pcap_geterr(handle) : "no memory");
    else
        pcap_freecode(&program);
    if (handle)
        pcap_close(handle);
    return rc < 0 ? -EINVAL : 0;
}

static int set_filter(struct ft_pcap *pcap, char *error, size_t error_bytes)
{
    struct bpf_program program;

    if (!pcap->config.filter || !pcap->config.filter[0])
        return 0;
    if (pcap_compile(pcap->handle, &program, pcap->config.filter, 1, PCAP_NETMASK_UNKNOWN) < 0) {
        snprintf(error, error_bytes, "interface '%s': filter '%s': %s", pcap->interface,
                 pcap->config.filter, pcap_geterr(pcap->handle));
        return -EINVAL;
    }
    if (pcap_setfilter(pcap->handle, &program) < 0) {
        snprintf(error, error_bytes, "interface '%s': %s", pcap->interface,
                 pcap_geterr(pcap->handle));
        pcap_freecode(&program);
        return -EINVAL;
    }
    pcap_freecode(&program);
    return 0;
}

/* libpcap looks at its own descriptor, and the RDMA sniffer (up to 1.10.3 at least) has but the one
 * that can be waited for. */
static int set_nonblocking(pcap_t *handle, char reason[PCAP_ERRBUF_SIZE])
{
    int fd, flags;

    if (pcap_setnonblock(handle, 1, reason) == 0)
        return 0;
    fd = pcap_get_selectable_fd(handle);
    flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -EINVAL : 0;
}

static int activate(struct ft_pcap *pcap, char *error, size_t error_bytes)
{
    char reason[PCAP_ERRBUF_SIZE] = "";
    int ret;

    pcap->handle = pcap_create(pcap->interface, reason);
    if (!pcap->handle) {
        snprintf(error, error_bytes, "interface '%s': %s", pcap->interface, reason);
        return -EINVAL;
    }
    pcap_set_snaplen(pcap->handle, (int)pcap->config.snap_bytes);
    pcap_set_promisc(pcap->handle, 0);
    pcap_set_timeout(pcap->handle, GATHER_MS);
    if (pcap->config.buffer_bytes)
        pcap_set_buffer_size(pcap->handle, (int)pcap->config.buffer_bytes);
    ret = pcap_activate(pcap->handle);
    if (ret < 0) {
        const char *more = pcap_geterr(pcap->handle);

        snprintf(error, error_bytes, "interface '%s': %s%s%s", pcap->interface,
                 pcap_statustostr(ret), more[0] ? ": " : "", more);
        return -EINVAL;
    }
    if (map_link(pcap_datalink(pcap->handle), &pcap->link) < 0) {
        snprintf(error, error_bytes, "interface '%s': link type %s is not supported",
                 pcap->interface, link_name(pcap_datalink(pcap->handle)));
        return -EINVAL;
    }
    if (set_filter(pcap, error, error_bytes) < 0)
        return -EINVAL;
    if (set_nonblocking(pcap->handle, reason) < 0) {
        snprintf(error, error_bytes, "interface '%s': %s", pcap->interface, reason);
        return -EINVAL;
    }
    return 0;
}

static int watch(struct ft_pcap *pcap, struct ft_loop *loop, char *error, size_t error_bytes)
{
    int fd = pcap_get_selectable_fd(pcap->handle);

    if (fd < 0) {
        snprintf(error, error_bytes, "interface '%s': it cannot be polled", pcap->interface);
        return -EINVAL;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    pcap->ready = ft_watch_stage(ft_watch_fd(loop, fd, take_packets, pcap), "capture");
    pcap->again = ft_watch_stage(ft_watch_once(loop, take_packets, pcap), "capture");
    if (!pcap->ready || !pcap->again) {
        snprintf(error, error_bytes, "interface '%s': no memory", pcap->interface);
        return -ENOMEM;
    }
    return 0;
}

struct ft_pcap *ft_pcap_open(struct ft_loop *loop, const struct ft_pcap_config *config, char *error,
                             size_t error_bytes)
{
    struct ft_pcap *pcap = calloc(1, sizeof(*pcap));

    if (!pcap || !(pcap->interface = strdup(config->interface))) {
        snprintf(error, error_bytes, "interface '%s': no memory", config->interface);
        free(pcap);
        return NULL;
    }
    pcap->config = *config;
    if (activate(pcap, error, error_bytes) < 0 || watch(pcap, loop, error, error_bytes) < 0) {
        ft_pcap_free(pcap);
        return NULL;
    }
    /* The kernel has counted what came before the filter was in place. */
    ft_pcap_stats(pcap, &pcap->stats);
    pcap->stats = (struct ft_pcap_stats){0};
    /* Both were the caller's to lend only until now. */
    pcap->config.interface = NULL;
    pcap->config.filter = NULL;
    return pcap;
}

void ft_pcap_free(struct ft_pcap *pcap)
{
    if (!pcap)
        return;
    ft_watch_free(pcap->ready);
    ft_watch_free(pcap->again);
    if (pcap->handle)
        pcap_close(pcap->handle);
    free(pcap->interface);
    free(pcap);
}

void ft_pcap_stats(struct ft_pcap *pcap, struct ft_pcap_stats *stats)
{
    struct pcap_stat now;

    /* libpcap's counters wrap at 32 bits. */
    if (pcap_stats(pcap->handle, &now) == 0) {
        pcap->stats.received += (u_int)(now.ps_recv - pcap->last_received);
        pcap->stats.dropped += (u_int)(now.ps_drop - pcap->last_dropped);
        pcap->last_received = now.ps_recv;
        pcap->last_dropped = now.ps_drop;
    }
    *stats = pcap->stats;
}

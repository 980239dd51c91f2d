// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_CAPTURE_PCAP_H
#define FT_IO_CAPTURE_PCAP_H
/*
 * Packets from libpcap: a capture file (pcap or pcapng), or a live interface inside the loop.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/io/loop.h"

/* libpcap's link-layer header types that we read; the caller maps them to a decoder. */
enum ft_pcap_link {
    FT_PCAP_ETHERNET,
    FT_PCAP_COOKED,
    FT_PCAP_COOKED2,
    FT_PCAP_RAW,
};

struct ft_pcap_packet {
    struct ft_wall when;
    enum ft_pcap_link link;
    const uint8_t *bytes;
    uint32_t captured;
    uint32_t wire; /* length on the wire */
};

/* Reads a complete file ("-": standard input; a pipe; packed by gzip or zstd), calling on_packet
 * for each packet, until its end or until on_packet returns non-zero, which is returned. -EINVAL
 * with a complaint in error that names the file, when it cannot be read, is not a capture, is cut
 * off, or has another link type. */
int ft_pcap_read(const char *file, int (*on_packet)(void *arg, const struct ft_pcap_packet *packet),
                 void *arg, char *error, size_t error_bytes);

/* Whether libpcap lists a capture device of this name. */
bool ft_pcap_lists(const char *device);

struct ft_pcap;

struct ft_pcap_config {
    const char *interface;
    const char *filter; /* pcap-filter(7); NULL or empty takes every packet */
    uint32_t snap_bytes;
    uint32_t buffer_bytes; /* of the kernel's ring; 0: libpcap's own choice */
    void (*on_packet)(void *arg, const struct ft_pcap_packet *packet);
    /* The capture ended (the interface is gone): free it, not from here, and open it anew later. */
    void (*on_error)(void *arg, const char *text);
    void *arg;
};

/* received: what the kernel's filter accepted; dropped: the part of it that was lost because the
 * buffer was full. */
struct ft_pcap_stats {
    uint64_t received;
    uint64_t dropped;
};

/* Opens an interface (not promiscuous) and watches it in the loop. Needs CAP_NET_RAW until it
 * returns. NULL with a complaint that names the interface. */
struct ft_pcap *ft_pcap_open(struct ft_loop *loop, const struct ft_pcap_config *config, char *error,
                             size_t error_bytes);
void ft_pcap_free(struct ft_pcap *pcap);
void ft_pcap_stats(struct ft_pcap *pcap, struct ft_pcap_stats *stats);

/* 0 when a filter is one, for Ethernet; -EINVAL with a complaint. Needs no interface. */
int ft_pcap_check_filter(const char *filter, char *error, size_t error_bytes);

#endif

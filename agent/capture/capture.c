// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/capture/capture.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/reader.h"
#include "proto/packet.h"

#define PLAIN_FILTER  "udp dst port 4791"
#define TAGGED_FILTER "udp dst port 4791 or (vlan and udp dst port 4791)"

/* linux/if_packet.h */
#define PACKET_TYPE_TO_US    0
#define PACKET_TYPE_OUTGOING 4

/* Link header lengths by enum ft_pcap_link. */
#define ETHERNET_BYTES 14
#define COOKED_BYTES   16
#define COOKED2_BYTES  20

struct tap {
    struct ft_capture *capture;
    struct ft_pcap *pcap; /* NULL: opened once, not any more */
    bool lost;            /* ended by itself: to be opened again */
    unsigned ifindex;     /* when it was opened; 0: unknown, or "any" */
    uint32_t number;
    uint64_t packets;
    uint64_t kernel_drops; /* of captures closed since */
};

struct ft_capture {
    struct ft_interfaces *interfaces;
    struct ft_flows *flows;
    struct ft_loop *loop;
    char *filter;
    uint32_t snap_bytes, buffer_bytes;
    struct tap *taps[FT_INTERFACES_MAX]; /* by interface number */
    struct ft_usid_blocks blocks;
    struct ft_capture_usids usids;
    uint64_t received, processed;
    uint64_t not_ip, cut_off, malformed, other_port, table_full;
};

struct ft_capture *ft_capture_new(struct ft_interfaces *interfaces, struct ft_flows *flows)
{
    struct ft_capture *capture = calloc(1, sizeof(*capture));

    if (!capture)
        return NULL;
    capture->interfaces = interfaces;
    capture->flows = flows;
    return capture;
}

static uint64_t kernel_drops(const struct tap *tap)
{
    struct ft_pcap_stats stats = {0};

    if (tap->pcap)
        ft_pcap_stats(tap->pcap, &stats);
    return tap->kernel_drops + stats.dropped;
}

static void close_tap(struct tap *tap)
{
    tap->kernel_drops = kernel_drops(tap);
    ft_pcap_free(tap->pcap);
    tap->pcap = NULL;
    tap->lost = false;
}

void ft_capture_free(struct ft_capture *capture)
{
    if (!capture)
        return;
    for (size_t i = 0; i < FT_INTERFACES_MAX; i++) {
        if (capture->taps[i])
            ft_pcap_free(capture->taps[i]->pcap);
        free(capture->taps[i]);
    }
    free(capture->filter);
    free(capture);
}

static void on_packet(void *arg, const struct ft_pcap_packet *packet)
{
    struct tap *tap = arg;

    tap->packets++;
    ft_capture_packet(tap->capture, tap->number, packet, false, ft_mono_now());
}

static struct ft_log_subject subject_of(const struct tap *tap)
{
    return (struct ft_log_subject){FT_LOG_ID_INTERFACE, FT_LOG_INTERFACE_FIELD,
                                   ft_interfaces_name(tap->capture->interfaces, tap->number)};
}

static void lose(struct tap *tap, const char *text)
{
    const struct ft_log_subject subject = subject_of(tap);

    ft_log_about(FT_LOG_WARNING, &subject, "%s; it is opened again when it is back", text);
    tap->lost = true;
}

static void log_again(const struct tap *tap)
{
    const struct ft_log_subject subject = subject_of(tap);

    ft_log_about(FT_LOG_NOTICE, &subject, "interface '%s': capturing again", subject.name);
}

static void on_error(void *arg, const char *text)
{
    lose(arg, text);
}

static unsigned ifindex_of(const struct tap *tap)
{
    return if_nametoindex(ft_interfaces_name(tap->capture->interfaces, tap->number));
}

/* libpcap looks whether an interface that went down is still there only once, and too early when it
 * is on its way out: so its index is watched too. */
static void look_after(struct tap *tap)
{
    char text[128];

    if (!tap->pcap || tap->lost || tap->ifindex == ifindex_of(tap))
        return;
    snprintf(text, sizeof(text), "interface '%s': it is gone",
             ft_interfaces_name(tap->capture->interfaces, tap->number));
    lose(tap, text);
}

/* libpcap refuses the keyword "vlan" where the link header has no room for a tag: on "any", say. */
static struct ft_pcap *open_tap(struct tap *tap, struct ft_loop *loop,
                                const struct ft_capture_config *config, char *error,
                                size_t error_bytes)
{
    struct ft_pcap_config pcap = {
        .interface = ft_interfaces_name(tap->capture->interfaces, tap->number),
        .filter = config->filter ? config->filter : TAGGED_FILTER,
        .snap_bytes = config->snap_bytes,
        .buffer_bytes = config->buffer_bytes,
        .on_packet = on_packet,
        .on_error = on_error,
        .arg = tap,
    };
    struct ft_pcap *opened;

    tap->ifindex = ifindex_of(tap);
    opened = ft_pcap_open(loop, &pcap, error, error_bytes);
    if (!opened && !config->filter) {
        pcap.filter = PLAIN_FILTER;
        opened = ft_pcap_open(loop, &pcap, error, error_bytes);
    }
    return opened;
}

/* The index of an interface; its counts are kept over a reload. */
static struct tap *tap_of(struct ft_capture *capture, const char *name, char *error,
                          size_t error_bytes)
{
    uint32_t number;
    int err = ft_interfaces_intern(capture->interfaces, name, &number);

    if (!err && !capture->taps[number]) {
        capture->taps[number] = calloc(1, sizeof(struct tap));
        if (!capture->taps[number])
            err = -ENOMEM;
        else
            *capture->taps[number] = (struct tap){.capture = capture, .number = number};
    }
    if (err) {
        snprintf(error, error_bytes, "interface '%s': %s", name,
                 err == -ENOSPC ? "more than 64 interfaces" : strerror(-err));
        return NULL;
    }
    return capture->taps[number];
}

int ft_capture_open(struct ft_capture *capture, struct ft_loop *loop,
                    const struct ft_capture_config *config, char *error, size_t error_bytes)
{
    struct ft_pcap *opened[FT_INTERFACES_MAX] = {0};
    char *filter = config->filter ? strdup(config->filter) : NULL;

    if (config->filter && !filter) {
        snprintf(error, error_bytes, "no memory");
        goto fail;
    }
    for (size_t i = 0; i < config->interface_count; i++) {
        struct tap *tap = tap_of(capture, config->interfaces[i], error, error_bytes);

        if (!tap)
            goto fail;
        if (!opened[tap->number])
            opened[tap->number] = open_tap(tap, loop, config, error, error_bytes);
        if (!opened[tap->number])
            goto fail;
    }
    for (size_t i = 0; i < FT_INTERFACES_MAX; i++) {
        if (!capture->taps[i])
            continue;
        close_tap(capture->taps[i]);
        capture->taps[i]->pcap = opened[i];
    }
    free(capture->filter);
    capture->filter = filter;
    capture->loop = loop;
    capture->snap_bytes = config->snap_bytes;
    capture->buffer_bytes = config->buffer_bytes;
    return 0;
fail:
    for (size_t i = 0; i < FT_INTERFACES_MAX; i++)
        ft_pcap_free(opened[i]);
    free(filter);
    return -EINVAL;
}

void ft_capture_retry(struct ft_capture *capture)
{
    const struct ft_capture_config config = {
        .filter = capture->filter,
        .snap_bytes = capture->snap_bytes,
        .buffer_bytes = capture->buffer_bytes,
    };

    for (size_t i = 0; i < FT_INTERFACES_MAX; i++) {
        struct tap *tap = capture->taps[i];
        char error[512];

        if (!tap)
            continue;
        look_after(tap);
        if (!tap->lost)
            continue;
        if (tap->pcap)
            close_tap(tap);
        tap->pcap = open_tap(tap, capture->loop, &config, error, sizeof(error));
        tap->lost = !tap->pcap;
        if (tap->pcap)
            log_again(tap);
    }
}

static enum ft_link_type link_type(enum ft_pcap_link link)
{
    switch (link) {
    case FT_PCAP_COOKED:
        return FT_LINK_COOKED;
    case FT_PCAP_COOKED2:
        return FT_LINK_COOKED2;
    case FT_PCAP_RAW:
        return FT_LINK_RAW;
    case FT_PCAP_ETHERNET:
        break;
    }
    return FT_LINK_ETHERNET;
}

/* A cooked or missing link header stands for the Ethernet header that was on the wire. */
static uint32_t frame_bytes(const struct ft_pcap_packet *packet)
{
    uint32_t header = ETHERNET_BYTES;

    if (packet->link == FT_PCAP_COOKED)
        header = COOKED_BYTES;
    else if (packet->link == FT_PCAP_COOKED2)
        header = COOKED2_BYTES;
    else if (packet->link == FT_PCAP_RAW)
        header = 0;
    return packet->wire < header ? packet->wire : packet->wire - header + ETHERNET_BYTES;
}

/* The packet type of a cooked header (LINKTYPE_LINUX_SLL: its first two bytes;
 * LINKTYPE_LINUX_SLL2: byte 10). */
static enum ft_flow_direction packet_type(const struct ft_pcap_packet *packet)
{
    struct ft_reader r;
    uint16_t type;

    ft_reader_init(&r, packet->bytes, packet->captured);
    if (packet->link == FT_PCAP_COOKED) {
        type = ft_read_be16(&r);
    } else if (packet->link == FT_PCAP_COOKED2) {
        ft_read_skip(&r, 10);
        type = ft_read_u8(&r);
    } else {
        return FT_FLOW_UNKNOWN;
    }
    if (!ft_reader_ok(&r))
        return FT_FLOW_UNKNOWN;
    if (type == PACKET_TYPE_OUTGOING)
        return FT_FLOW_TX;
    return type == PACKET_TYPE_TO_US ? FT_FLOW_RX : FT_FLOW_UNKNOWN;
}

void ft_capture_take_blocks(struct ft_capture *capture, const struct ft_usid_blocks *blocks)
{
    capture->blocks = *blocks;
}

struct ft_capture_usids ft_capture_usids(const struct ft_capture *capture)
{
    return capture->usids;
}

static void name(struct ft_capture *capture, struct ft_packet *packet)
{
    enum ft_usid usid = ft_packet_name(&capture->blocks, packet);

    capture->usids.known += usid == FT_USID_KNOWN;
    capture->usids.unknown += usid == FT_USID_UNKNOWN;
}

void ft_capture_packet(struct ft_capture *capture, uint32_t interface,
                       const struct ft_pcap_packet *packet, bool only_roce, struct ft_mono now)
{
    enum ft_flow_direction direction;
    struct ft_packet decoded;
    struct ft_reader r;

    capture->received++;
    ft_reader_init(&r, packet->bytes, packet->captured);
    switch (ft_packet_decode(link_type(packet->link), &r, &decoded)) {
    case FT_PACKET_OK:
        break;
    case FT_PACKET_SHORT:
        capture->cut_off++;
        return;
    case FT_PACKET_BAD:
        capture->malformed++;
        return;
    case FT_PACKET_UNKNOWN:
        capture->not_ip++;
        return;
    }
    if (only_roce && (decoded.tuple.proto != FT_PROTO_UDP || decoded.tuple.dport != FT_ROCE_PORT)) {
        capture->other_port++;
        return;
    }
    name(capture, &decoded);
    direction = packet_type(packet);
    if (direction == FT_FLOW_UNKNOWN)
        direction = ft_interfaces_direction(capture->interfaces, interface, &decoded.tuple.src,
                                            &decoded.tuple.dst);
    if (ft_flows_packet(capture->flows, interface, direction, &decoded, frame_bytes(packet), now,
                        packet->when))
        capture->table_full++;
    else
        capture->processed++;
}

void ft_capture_account(struct ft_capture *capture, struct ft_account *account)
{
    struct ft_account_stage *stage = ft_account_stage(account, "packets", "packets");
    uint64_t lost = 0;

    for (size_t i = 0; i < FT_INTERFACES_MAX; i++)
        if (capture->taps[i])
            lost += kernel_drops(capture->taps[i]);
    stage->received = capture->received + lost;
    stage->processed = capture->processed;
    ft_account_drop(stage, "kernel", lost);
    ft_account_drop(stage, "no_tuple", capture->not_ip);
    ft_account_drop(stage, "cut_off", capture->cut_off);
    ft_account_drop(stage, "malformed", capture->malformed);
    ft_account_drop(stage, "not_roce", capture->other_port);
    ft_account_drop(stage, "table_full", capture->table_full);
}

bool ft_capture_stats(struct ft_capture *capture, size_t i, struct ft_capture_stats *stats)
{
    for (size_t at = 0; at < FT_INTERFACES_MAX; at++) {
        const struct tap *tap = capture->taps[at];

        if (!tap || i-- > 0)
            continue;
        stats->interface = ft_interfaces_name(capture->interfaces, tap->number);
        stats->configured = tap->pcap || tap->lost;
        stats->open = tap->pcap && !tap->lost;
        stats->packets = tap->packets;
        stats->kernel_drops = kernel_drops(tap);
        return true;
    }
    return false;
}

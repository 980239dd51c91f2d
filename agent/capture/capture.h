// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_CAPTURE_CAPTURE_H
#define FT_AGENT_CAPTURE_CAPTURE_H
/*
 * The capture source: RoCEv2 packets from interfaces (libpcap) or from a capture file into the flow
 * table, every packet accounted.
 *
 * The direction is the packet type where the link header has one (Linux cooked, interface "any"),
 * else it follows from the local addresses. Bytes are those of the Ethernet frame; where the
 * kernel shows a packet before segmentation (veth, offloads) that is one large frame.
 * Owner: the caller, who keeps interfaces and flows alive. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/capture/flows.h"
#include "agent/capture/interfaces.h"
#include "lib/base/account.h"
#include "lib/io/capture/pcap.h"
#include "lib/io/loop.h"
#include "proto/usid.h"

struct ft_capture;

/* Borrowed until ft_capture_open() returns. */
struct ft_capture_config {
    char *const *interfaces;
    size_t interface_count;
    const char *filter; /* pcap-filter(7); NULL: RoCEv2, also inside one VLAN tag */
    uint32_t snap_bytes;
    uint32_t buffer_bytes; /* of the kernel, for each interface */
};

/* What micro-SIDs were seen, in packets that are sent or arrive. */
struct ft_capture_usids {
    uint64_t known, unknown; /* which destination stays */
};

/* What one interface saw since it was first opened. */
struct ft_capture_stats {
    const char *interface;
    bool configured; /* by the configuration now */
    bool open;
    uint64_t packets;
    uint64_t kernel_drops;
};

/* NULL without memory. */
struct ft_capture *ft_capture_new(struct ft_interfaces *interfaces, struct ft_flows *flows);
void ft_capture_free(struct ft_capture *capture);

/* Opens every interface, then closes those that were open before; so a reload that fails leaves the
 * old ones at work. -EINVAL with a complaint. Needs CAP_NET_RAW. */
int ft_capture_open(struct ft_capture *capture, struct ft_loop *loop,
                    const struct ft_capture_config *config, char *error, size_t error_bytes);

/* Opens again what went away (a link that went down ends its capture). Call about every second. */
void ft_capture_retry(struct ft_capture *capture);

/* One packet. only_roce: packets to another UDP port count as dropped, for sources that no kernel
 * filter stands before. */
void ft_capture_packet(struct ft_capture *capture, uint32_t interface,
                       const struct ft_pcap_packet *packet, bool only_roce, struct ft_mono now);

/* From now on destinations in these blocks are named by what stays of them (proto/usid.h), as
 * pollers name them. Copied. */
void ft_capture_take_blocks(struct ft_capture *capture, const struct ft_usid_blocks *blocks);
struct ft_capture_usids ft_capture_usids(const struct ft_capture *capture);

/* Adds the stage "packets". */
void ft_capture_account(struct ft_capture *capture, struct ft_account *account);

/* The i-th interface that was ever opened; false past the last. */
bool ft_capture_stats(struct ft_capture *capture, size_t i, struct ft_capture_stats *stats);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/replay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "lib/base/reader.h"
#include "lib/io/capture/pcap.h"
#include "proto/packet.h"

struct replay {
    struct ft_sflow_pipeline *pipeline;
    const struct ft_output *output;
    uint16_t port;
    struct ft_wall last;
    struct ft_sflow_replay_stats stats;
    char *error;
    size_t error_bytes;
};

static enum ft_link_type link_of(enum ft_pcap_link link)
{
    switch (link) {
    case FT_PCAP_ETHERNET:
        return FT_LINK_ETHERNET;
    case FT_PCAP_COOKED:
        return FT_LINK_COOKED;
    case FT_PCAP_COOKED2:
        return FT_LINK_COOKED2;
    case FT_PCAP_RAW:
        break;
    }
    return FT_LINK_RAW;
}

static int on_packet(void *arg, const struct ft_pcap_packet *p)
{
    struct replay *replay = arg;
    struct ft_packet packet;
    struct ft_reader payload;
    struct ft_reader r;

    replay->stats.packets++;
    replay->last = p->when;
    ft_reader_init(&r, p->bytes, p->captured);
    if (ft_packet_udp_payload(link_of(p->link), &r, &packet, &payload) != FT_PACKET_OK ||
        packet.tuple.dport != replay->port)
        return 0;
    replay->stats.sflow++;
    replay->stats.cut += p->captured < p->wire;
    ft_sflow_pipeline_datagram(replay->pipeline, payload.pos, ft_reader_left(&payload), p->when);
    /* Reading stops when nobody takes the records. */
    return ft_output_error(replay->output, replay->error, replay->error_bytes) ? EX_IOERR : 0;
}

int ft_sflow_replay(const char *file, uint16_t port, struct ft_sflow_pipeline *pipeline,
                    const struct ft_output *output, struct ft_sflow_replay_stats *stats,
                    char *error, size_t error_bytes)
{
    struct replay replay = {.pipeline = pipeline,
                            .output = output,
                            .port = port,
                            .error = error,
                            .error_bytes = error_bytes};
    int rc;

    if (strcmp(file, "-") != 0 && access(file, R_OK) < 0) {
        snprintf(error, error_bytes, "%s: %s", file, strerror(errno));
        return EX_NOINPUT;
    }
    rc = ft_pcap_read(file, on_packet, &replay, error, error_bytes);
    if (rc == 0 || rc == -EINVAL)
        ft_sflow_pipeline_end(pipeline, replay.last);
    *stats = replay.stats;
    if (rc == -EINVAL)
        return EX_DATAERR;
    if (rc == 0 && ft_output_error(output, error, error_bytes))
        return EX_IOERR;
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/sflow_record.h"

enum flow_format {
    HEADER = 1,
    ETHERNET = 2,
    IPV4 = 3,
    IPV6 = 4,
    EXTENDED_SWITCH = FT_SFLOW_EXTENDED_SWITCH,
    EXTENDED_ROUTER = 1002,
    EXTENDED_GATEWAY = 1003,
    EXTENDED_MPLS = 1006,
    EXTENDED_NAT = 1007,
    EXTENDED_MPLS_TUNNEL = 1008,
    EXTENDED_MPLS_LDP_FEC = 1011,
    EXTENDED_VLAN_TUNNEL = 1012,
    EXTENDED_NAT_PORT = 1020,
    EXTENDED_L2_TUNNEL_EGRESS = 1021,
    EXTENDED_VNI_EGRESS = 1029,
    EXTENDED_VNI_INGRESS = 1030,
    EXTENDED_EGRESS_QUEUE = 1036,
    EXTENDED_ACL = 1037,
    EXTENDED_FUNCTION = 1038,
    EXTENDED_TRANSIT = 1039,
    EXTENDED_QUEUE = 1040,
    EXTENDED_HW_TRAP = 1041,
    EXTENDED_LINUX_DROP_REASON = 1042,
    EXTENDED_TIMESTAMP = 1043,
};

enum counter_format {
    IF_COUNTERS = 1,
    ETHERNET_COUNTERS = 2,
    VLAN_COUNTERS = 5,
    LAG_PORT_STATS = 7,
    OPTICS = 10,
    PFC_COUNTERS = 11,
    PROCESSOR = 1001,
    PORT_NAME = 1005,
};

const char *ft_sflow_record_name(enum ft_sflow_record kind)
{
    static const char *const names[] = {
        [FT_SFLOW_RECORD_UNKNOWN] = "unknown",
        [FT_SFLOW_RECORD_HEADER] = "header",
        [FT_SFLOW_RECORD_ETHERNET] = "ethernet",
        [FT_SFLOW_RECORD_IPV4] = "ipv4",
        [FT_SFLOW_RECORD_IPV6] = "ipv6",
        [FT_SFLOW_RECORD_SWITCH] = "switch",
        [FT_SFLOW_RECORD_ROUTER] = "router",
        [FT_SFLOW_RECORD_GATEWAY] = "gateway",
        [FT_SFLOW_RECORD_MPLS] = "mpls",
        [FT_SFLOW_RECORD_NAT] = "nat",
        [FT_SFLOW_RECORD_VLAN_TUNNEL] = "vlan_tunnel",
        [FT_SFLOW_RECORD_TUNNEL] = "tunnel",
        [FT_SFLOW_RECORD_QUEUE] = "queue",
        [FT_SFLOW_RECORD_TRANSIT] = "transit",
        [FT_SFLOW_RECORD_ACL] = "acl",
        [FT_SFLOW_RECORD_IF_COUNTERS] = "if_counters",
        [FT_SFLOW_RECORD_ETHERNET_COUNTERS] = "ethernet_counters",
        [FT_SFLOW_RECORD_VLAN_COUNTERS] = "vlan_counters",
        [FT_SFLOW_RECORD_LAG_COUNTERS] = "lag_counters",
        [FT_SFLOW_RECORD_PROCESSOR] = "processor",
        [FT_SFLOW_RECORD_TIMESTAMP] = "timestamp",
        [FT_SFLOW_RECORD_OPTICS] = "optics",
        [FT_SFLOW_RECORD_PFC_COUNTERS] = "pfc_counters",
        [FT_SFLOW_RECORD_PORT_NAME] = "port_name",
    };

    return kind < FT_SFLOW_RECORD_KINDS ? names[kind] : names[FT_SFLOW_RECORD_UNKNOWN];
}

#define AT(format) ((format)-EXTENDED_SWITCH)

enum ft_sflow_record ft_sflow_flow_record(uint32_t format)
{
    static const uint8_t data[] = {
        [HEADER] = FT_SFLOW_RECORD_HEADER,
        [ETHERNET] = FT_SFLOW_RECORD_ETHERNET,
        [IPV4] = FT_SFLOW_RECORD_IPV4,
        [IPV6] = FT_SFLOW_RECORD_IPV6,
    };
    static const uint8_t extended[] = {
        [AT(EXTENDED_SWITCH)] = FT_SFLOW_RECORD_SWITCH,
        [AT(EXTENDED_ROUTER)] = FT_SFLOW_RECORD_ROUTER,
        [AT(EXTENDED_GATEWAY)] = FT_SFLOW_RECORD_GATEWAY,
        [AT(EXTENDED_MPLS)] = FT_SFLOW_RECORD_MPLS,
        [AT(EXTENDED_NAT)] = FT_SFLOW_RECORD_NAT,
        [AT(EXTENDED_VLAN_TUNNEL)] = FT_SFLOW_RECORD_VLAN_TUNNEL,
        [AT(EXTENDED_NAT_PORT)] = FT_SFLOW_RECORD_NAT,
        [AT(EXTENDED_EGRESS_QUEUE)] = FT_SFLOW_RECORD_QUEUE,
        [AT(EXTENDED_ACL)] = FT_SFLOW_RECORD_ACL,
        [AT(EXTENDED_FUNCTION)] = FT_SFLOW_RECORD_ACL,
        [AT(EXTENDED_TRANSIT)] = FT_SFLOW_RECORD_TRANSIT,
        [AT(EXTENDED_QUEUE)] = FT_SFLOW_RECORD_QUEUE,
        [AT(EXTENDED_HW_TRAP)] = FT_SFLOW_RECORD_ACL,
        [AT(EXTENDED_LINUX_DROP_REASON)] = FT_SFLOW_RECORD_ACL,
        [AT(EXTENDED_TIMESTAMP)] = FT_SFLOW_RECORD_TIMESTAMP,
    };

    _Static_assert(FT_SFLOW_RECORD_UNKNOWN == 0, "what is not listed");
    if (format < sizeof(data))
        return (enum ft_sflow_record)data[format];
    if (AT(format) < sizeof(extended) && extended[AT(format)])
        return (enum ft_sflow_record)extended[AT(format)];
    if (format >= EXTENDED_MPLS_TUNNEL && format <= EXTENDED_MPLS_LDP_FEC)
        return FT_SFLOW_RECORD_MPLS;
    if (format >= EXTENDED_L2_TUNNEL_EGRESS && format <= EXTENDED_VNI_INGRESS)
        return FT_SFLOW_RECORD_TUNNEL;
    return FT_SFLOW_RECORD_UNKNOWN;
}

enum ft_sflow_record ft_sflow_counter_record(uint32_t format)
{
    switch ((enum counter_format)format) {
    case IF_COUNTERS:
        return FT_SFLOW_RECORD_IF_COUNTERS;
    case ETHERNET_COUNTERS:
        return FT_SFLOW_RECORD_ETHERNET_COUNTERS;
    case VLAN_COUNTERS:
        return FT_SFLOW_RECORD_VLAN_COUNTERS;
    case LAG_PORT_STATS:
        return FT_SFLOW_RECORD_LAG_COUNTERS;
    case PROCESSOR:
        return FT_SFLOW_RECORD_PROCESSOR;
    case OPTICS:
        return FT_SFLOW_RECORD_OPTICS;
    case PFC_COUNTERS:
        return FT_SFLOW_RECORD_PFC_COUNTERS;
    case PORT_NAME:
        return FT_SFLOW_RECORD_PORT_NAME;
    default:
        return FT_SFLOW_RECORD_UNKNOWN;
    }
}

/* An sFlow address; returns whether there is one. An unknown type has no bytes. */
static bool read_address(struct ft_reader *r, struct ft_ip *ip)
{
    uint32_t type = ft_read_be32(r);
    const uint8_t *bytes;

    if (type != 1 && type != 2)
        return false;
    bytes = ft_read_bytes(r, type == 1 ? 4 : 16);
    if (!bytes)
        return false;
    *ip = type == 1 ? ft_ip4(bytes) : ft_ip6(bytes);
    return true;
}

/* A counted list of 32-bit words. */
static void skip_words(struct ft_reader *r)
{
    ft_read_skip(r, (size_t)ft_read_be32(r) * 4);
}

/* Section 5.5: the AS path is counted segments of counted numbers. */
static void skip_gateway(struct ft_reader *r)
{
    uint32_t segments;

    ft_read_skip(r, 12);
    segments = ft_read_be32(r);
    for (uint32_t i = 0; i < segments && ft_reader_ok(r); i++) {
        ft_read_skip(r, 4);
        skip_words(r);
    }
    skip_words(r); /* communities */
    ft_read_skip(r, 4);
}

static bool read_next_hop(uint32_t format, struct ft_reader *r, struct ft_sflow_extended *e)
{
    struct ft_ip hop = {.b = {0}};
    bool known = read_address(r, &hop);

    if (format == EXTENDED_ROUTER) {
        ft_read_skip(r, 8); /* masks */
    } else if (format == EXTENDED_GATEWAY) {
        skip_gateway(r);
    } else {
        skip_words(r); /* label stacks in and out */
        skip_words(r);
    }
    if (!ft_reader_ok(r))
        return false;
    /* The router's own next hop is more precise than the border's or the label path's. */
    if (known && (format == EXTENDED_ROUTER || !(e->has & FT_SFLOW_HAS_NEXT_HOP))) {
        e->next_hop = hop;
        e->has |= FT_SFLOW_HAS_NEXT_HOP;
    }
    return true;
}

/* A record of one word. */
static bool read_word(struct ft_reader *r, struct ft_sflow_extended *e, uint32_t *field,
                      enum ft_sflow_has bit)
{
    const uint8_t *h = ft_read_bytes(r, 4);

    if (!h)
        return false;
    *field = ft_be32_at(h);
    e->has |= bit;
    return true;
}

bool ft_sflow_read_extended(uint32_t format, struct ft_reader *r, struct ft_sflow_extended *e)
{
    switch ((enum flow_format)format) {
    case EXTENDED_SWITCH:
        return ft_sflow_read_switch(r, e);
    case EXTENDED_ROUTER:
    case EXTENDED_GATEWAY:
    case EXTENDED_MPLS:
        return read_next_hop(format, r, e);
    case EXTENDED_EGRESS_QUEUE:
        return read_word(r, e, &e->queue, FT_SFLOW_HAS_QUEUE);
    case EXTENDED_QUEUE:
        return read_word(r, e, &e->queue_bytes, FT_SFLOW_HAS_QUEUE_DEPTH);
    case EXTENDED_TIMESTAMP:
        if (ft_reader_left(r) < 8)
            return false;
        e->timestamp_ns = ft_read_be64(r);
        e->has |= FT_SFLOW_HAS_TIMESTAMP;
        return true;
    case EXTENDED_TRANSIT:
        return read_word(r, e, &e->transit_ns, FT_SFLOW_HAS_TRANSIT);
    case EXTENDED_VNI_EGRESS:
    case EXTENDED_VNI_INGRESS:
        return read_word(r, e, &e->vni, FT_SFLOW_HAS_VNI);
    default:
        return true;
    }
}

uint64_t ft_sflow_read_count32(struct ft_reader *r)
{
    uint32_t v = ft_read_be32(r);

    return v == UINT32_MAX ? FT_SFLOW_NO_COUNT : v;
}

static void read_ethernet(struct ft_reader *r, struct ft_sflow_ethernet *e)
{
    e->alignment_errors = ft_sflow_read_count32(r);
    e->fcs_errors = ft_sflow_read_count32(r);
    ft_read_skip(r, 12); /* collisions, single and multiple, and of the SQE test */
    e->deferred = ft_sflow_read_count32(r);
    ft_read_skip(r, 8); /* late and excessive collisions */
    e->out_mac_errors = ft_sflow_read_count32(r);
    e->carrier_errors = ft_sflow_read_count32(r);
    e->too_long = ft_sflow_read_count32(r);
    e->in_mac_errors = ft_sflow_read_count32(r);
    e->symbol_errors = ft_sflow_read_count32(r);
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a == FT_SFLOW_NO_COUNT ? b : b == FT_SFLOW_NO_COUNT ? a : a + b;
}

static void read_lag(struct ft_reader *r, struct ft_sflow_lag *lag)
{
    uint64_t unknown;

    ft_read_skip(r, 16); /* system ids of both ends, each with its padding */
    lag->ifindex = ft_read_be32(r);
    ft_read_u8(r); /* administrative states are what is configured, not what is */
    lag->actor_state = ft_read_u8(r);
    ft_read_u8(r);
    lag->partner_state = ft_read_u8(r);
    lag->lacp_in = ft_sflow_read_count32(r);
    ft_read_skip(r, 8); /* markers and their responses */
    unknown = ft_sflow_read_count32(r);
    lag->lacp_bad = sum_of(unknown, ft_sflow_read_count32(r));
    lag->lacp_out = ft_sflow_read_count32(r);
}

static void read_processor(struct ft_reader *r, struct ft_sflow_processor *p)
{
    p->cpu_5s = ft_read_be32(r);
    p->cpu_1m = ft_read_be32(r);
    p->cpu_5m = ft_read_be32(r);
    p->memory_bytes = ft_read_be64(r);
    p->memory_free_bytes = ft_read_be64(r);
}

static void read_pfc(struct ft_reader *r, struct ft_sflow_counters *c)
{
    bool bare = true;

    c->pfc.requests = ft_sflow_read_count32(r);
    c->pfc.indications = ft_sflow_read_count32(r);
    /* Time paused, storms found and ended: hsflowd leaves all three out. */
    for (int i = 0; i < 3; i++)
        bare &= ft_read_be32(r) == UINT32_MAX;
    c->pfc_is_bare = bare;
    c->has_pfc = true;
}

#define LANE_BYTES 40

/* Each lane: its number; of its light sent the bias, power, least and most power, wavelength; of
 * the light received power, least and most power, wavelength. A limit of 0 is none. */
static bool read_optics(struct ft_reader *r, struct ft_sflow_counters *c)
{
    struct ft_sflow_optics o = {.rx_power_least_uw = UINT32_MAX};

    ft_read_skip(r, 8); /* number of the module, and of its lanes all in all */
    o.supply_mv = ft_read_be32(r);
    o.temperature_mc = (int32_t)ft_read_be32(r);
    o.lanes = ft_read_be32(r);
    if (!ft_reader_ok(r) || o.lanes > ft_reader_left(r) / LANE_BYTES)
        return false;
    for (uint32_t i = 0; i < o.lanes; i++) {
        uint32_t power, least, most;

        ft_read_skip(r, 24);
        power = ft_read_be32(r);
        least = ft_read_be32(r);
        most = ft_read_be32(r);
        ft_read_skip(r, 4);
        if (power == UINT32_MAX)
            continue;
        o.lanes_low += least != 0 && least != UINT32_MAX && power < least;
        o.lanes_high += most != 0 && power > most;
        if (power < o.rx_power_least_uw)
            o.rx_power_least_uw = power;
    }
    c->optics = o;
    c->has_optics = true;
    return true;
}

static bool read_port_name(struct ft_reader *r, struct ft_sflow_counters *c)
{
    uint32_t bytes = ft_read_be32(r);
    const uint8_t *name = ft_read_bytes(r, bytes);
    size_t n = 0;

    if (!name)
        return false;
    for (; n < bytes && n + 1 < sizeof(c->port) && name[n]; n++)
        c->port[n] = name[n] < 0x20 || name[n] == 0x7f ? '?' : (char)name[n];
    c->port[n] = '\0';
    return true;
}

bool ft_sflow_read_counters(enum ft_sflow_record kind, struct ft_reader *r,
                            struct ft_sflow_counters *c, struct ft_sflow_processor *p)
{
    static const size_t bytes[FT_SFLOW_RECORD_KINDS] = {
        [FT_SFLOW_RECORD_ETHERNET_COUNTERS] = 52,
        [FT_SFLOW_RECORD_VLAN_COUNTERS] = 28,
        [FT_SFLOW_RECORD_LAG_COUNTERS] = 56,
        [FT_SFLOW_RECORD_PROCESSOR] = 28,
        [FT_SFLOW_RECORD_OPTICS] = 20,
        [FT_SFLOW_RECORD_PFC_COUNTERS] = 20,
        [FT_SFLOW_RECORD_PORT_NAME] = 4,
    };

    if (ft_reader_left(r) < bytes[kind])
        return false;
    if (kind == FT_SFLOW_RECORD_ETHERNET_COUNTERS) {
        read_ethernet(r, &c->ethernet);
        c->has_ethernet = true;
    } else if (kind == FT_SFLOW_RECORD_LAG_COUNTERS) {
        read_lag(r, &c->lag);
        c->has_lag = true;
    } else if (kind == FT_SFLOW_RECORD_PROCESSOR) {
        read_processor(r, p);
    } else if (kind == FT_SFLOW_RECORD_PFC_COUNTERS) {
        read_pfc(r, c);
    } else if (kind == FT_SFLOW_RECORD_OPTICS) {
        return read_optics(r, c);
    } else if (kind == FT_SFLOW_RECORD_PORT_NAME) {
        return read_port_name(r, c);
    }
    return true;
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/hashed.h"

#include <errno.h>
#include <string.h>

/* Both addresses, both ports, the protocol. */
#define KEY_BYTES (16 + 16 + 2 + 2 + 1)

static bool is_dead(const struct ft_topology *t, const bool *dead, uint32_t port)
{
    uint32_t peer = ft_topology_port(t, port)->peer;

    return dead && (dead[port] || (peer != FT_NONE && dead[peer]));
}

/* The ports of the switch on which the NIC hangs. False: there is none. */
static bool find_last(struct ft_choice *c, const struct ft_topology *t, const bool *dead,
                      uint32_t switch_id, uint32_t nic)
{
    const struct ft_nic *n = ft_topology_nic(t, nic);

    c->t = t;
    c->at = ft_topology_switch(t, switch_id);
    c->nic = FT_NONE;
    c->count = 0;
    for (uint32_t i = 0; i < n->attach_count && c->count < FT_HASH_MEMBERS_MAX; i++)
        if (ft_topology_port(t, n->attach[i])->switch_id == switch_id &&
            !is_dead(t, dead, n->attach[i]))
            c->links[c->count++] = n->attach[i];
    return c->count > 0;
}

/* Whether so many links that are not down lead from a switch to one of the NIC's: routing takes a
 * link that is dead further on out of the choice as well. */
static bool is_reached(const struct ft_topology *t, const bool *dead, uint32_t switch_id,
                       uint32_t dst_nic, uint32_t left)
{
    const struct ft_switch *at = ft_topology_switch(t, switch_id);
    struct ft_choice choice;

    if (left == 0)
        return find_last(&choice, t, dead, switch_id, dst_nic);
    for (uint32_t i = 0; i < at->port_count; i++) {
        uint32_t peer = ft_topology_port(t, at->ports[i])->peer, next;

        if (peer == FT_NONE || is_dead(t, dead, at->ports[i]))
            continue;
        next = ft_topology_port(t, peer)->switch_id;
        if (ft_choice_distance(t, next, dst_nic) == left - 1 &&
            is_reached(t, dead, next, dst_nic, left - 1))
            return true;
    }
    return false;
}

static bool leads_on(const struct ft_topology *t, const bool *dead, uint32_t link, uint32_t dst_nic,
                     uint32_t left)
{
    uint32_t peer = ft_topology_port(t, link)->peer;

    return !dead || (!is_dead(t, dead, link) &&
                     is_reached(t, dead, ft_topology_port(t, peer)->switch_id, dst_nic, left));
}

/* The chosen link, where there is one to choose; FT_NONE with the reason in *rc. */
static uint32_t choose(const struct ft_choice *choice, const struct ft_tuple *tuple, uint32_t in,
                       ft_hashed_fn fn, void *arg, int *rc)
{
    uint32_t chosen;

    if (choice->count <= 1)
        return choice->count ? choice->links[0] : FT_NONE;
    *rc = -ENODATA;
    chosen = fn(arg, choice, in, tuple);
    return chosen < choice->count ? choice->links[chosen] : FT_NONE;
}

/* The link that the switch takes; FT_NONE with the reason in *rc. */
static uint32_t next_link(const struct ft_topology *t, const bool *dead,
                          const struct ft_tuple *tuple, uint32_t in, uint32_t dst_nic, bool routed,
                          ft_hashed_fn fn, void *arg, int *rc)
{
    uint32_t at = ft_topology_port(t, in)->switch_id, alive = 0;
    uint32_t distance = ft_choice_distance(t, at, dst_nic);
    struct ft_choice choice;

    *rc = -EHOSTUNREACH;
    if (distance == FT_NONE || distance == 0)
        return FT_NONE;
    if (!ft_choice_find(&choice, t, at, dst_nic, distance - 1)) {
        *rc = -ENODATA; /* of so many links no choice is known */
        return FT_NONE;
    }
    for (uint32_t i = 0; i < choice.count; i++)
        if (routed ? leads_on(t, dead, choice.links[i], dst_nic, distance - 1)
                   : !is_dead(t, dead, choice.links[i]))
            choice.links[alive++] = choice.links[i];
    choice.count = alive;
    return choose(&choice, tuple, in, fn, arg, rc);
}

int ft_hashed_path(const struct ft_topology *t, const bool *dead, const struct ft_tuple *tuple,
                   uint32_t from, uint32_t dst_nic, bool routed, ft_hashed_fn fn, void *arg,
                   struct ft_path *path)
{
    struct ft_path p = {0};
    uint32_t in = from;
    int rc = -EHOSTUNREACH;

    if (is_dead(t, dead, from))
        return rc;
    while (p.hop_count < FT_PATH_HOPS_MAX) {
        struct ft_choice choice;
        bool last = find_last(&choice, t, dead, ft_topology_port(t, in)->switch_id, dst_nic);
        uint32_t out;

        if (!last)
            out = next_link(t, dead, tuple, in, dst_nic, routed, fn, arg, &rc);
        else
            out = routed ? choose(&choice, tuple, in, fn, arg, &rc) : choice.links[0];
        if (out == FT_NONE)
            return rc;
        p.hops[p.hop_count++] = (struct ft_hop){in, out};
        if (last) {
            *path = p;
            return 0;
        }
        in = ft_topology_port(t, out)->peer;
    }
    return -EHOSTUNREACH;
}

static uint32_t crc16(const uint8_t *bytes, size_t len)
{
    uint32_t crc = 0xffff;

    for (size_t i = 0; i < len; i++) {
        crc ^= (uint32_t)bytes[i] << 8;
        for (int k = 0; k < 8; k++)
            crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
    }
    return crc;
}

static uint32_t crc32(const uint8_t *bytes, size_t len)
{
    uint32_t crc = 0xffffffff;

    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    return ~crc;
}

static uint32_t fold(const uint8_t *bytes, size_t len)
{
    uint32_t x = 0;

    for (size_t i = 0; i < len; i++)
        x ^= (uint32_t)bytes[i] << (i % 2 ? 0 : 8);
    return (x ^ x >> 8) & 0xff;
}

uint32_t ft_named_hash(enum ft_named_hash hash, const struct ft_tuple *tuple)
{
    uint8_t key[KEY_BYTES];
    size_t len, n = 0;
    const uint8_t *address = ft_ip_bytes(&tuple->src, &len);

    memcpy(key, address, len);
    n += len;
    address = ft_ip_bytes(&tuple->dst, &len);
    memcpy(key + n, address, len);
    n += len;
    key[n++] = (uint8_t)(tuple->sport >> 8);
    key[n++] = (uint8_t)tuple->sport;
    key[n++] = (uint8_t)(tuple->dport >> 8);
    key[n++] = (uint8_t)tuple->dport;
    key[n++] = tuple->proto;
    return hash == FT_HASHED_CRC16   ? crc16(key, n)
           : hash == FT_HASHED_CRC32 ? crc32(key, n)
                                     : fold(key, n);
}

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/hashed.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define LEAVES 3
#define SPINES 4

static struct ft_topology *t;
static struct ft_tuple tuple;
static uint32_t asked, seen_in, answer;

static uint32_t choose(void *arg, const struct ft_choice *choice, uint32_t in,
                       const struct ft_tuple *of)
{
    ck_assert_ptr_eq(arg, &answer);
    ck_assert_ptr_eq(of, &tuple);
    asked = choice->count;
    seen_in = in;
    return answer;
}

static int path(const bool *dead, uint32_t from, uint32_t nic, struct ft_path *out)
{
    asked = 0;
    return ft_hashed_path(t, dead, &tuple, from, nic, true, choose, &answer, out);
}

static uint32_t port(uint32_t switch_id, uint32_t ifindex)
{
    uint32_t id = ft_topology_port_at(t, switch_id, ifindex);

    ck_assert_uint_ne(id, FT_NONE);
    return id;
}

static uint32_t nic(uint32_t leaf, uint32_t host)
{
    const struct ft_ip ip = leafspine_host_ip(leaf, host);

    return ft_topology_nic_at(t, &ip);
}

static void set(const char *src, const char *dst)
{
    memset(&tuple, 0, sizeof(tuple));
    ck_assert_int_eq(ft_ip_parse(src, &tuple.src), 0);
    ck_assert_int_eq(ft_ip_parse(dst, &tuple.dst), 0);
    tuple.sport = 49441;
    tuple.dport = FT_ROCE_PORT;
    tuple.proto = FT_PROTO_UDP;
}

/* Python's binascii.crc_hqx(key, 0xffff) and zlib.crc32(key); the XOR of 16-bit words by hand. */
START_TEST(named_hashes_are_those_of_others)
{
    set("10.0.1.1", "10.0.3.1");
    ck_assert_uint_eq(ft_named_hash(FT_HASHED_CRC16, &tuple), 0x1cbc);
    ck_assert_uint_eq(ft_named_hash(FT_HASHED_CRC32, &tuple), 0x6690b15f);
    ck_assert_uint_eq(ft_named_hash(FT_HASHED_XOR, &tuple), 0x56);
    set("fd00:1::1", "fd00:3::1");
    ck_assert_uint_eq(ft_named_hash(FT_HASHED_CRC16, &tuple), 0xa4d3);
    ck_assert_uint_eq(ft_named_hash(FT_HASHED_CRC32, &tuple), 0xf6a2df05);
    ck_assert_uint_eq(ft_named_hash(FT_HASHED_XOR, &tuple), 0x56);
}
END_TEST

START_TEST(a_path_follows_the_choices)
{
    struct ft_path p;

    t = leafspine(LEAVES, SPINES, 2);
    for (answer = 0; answer < SPINES; answer++) {
        ck_assert_int_eq(path(NULL, port(0, 1), nic(2, 1), &p), 0);
        ck_assert_uint_eq(asked, SPINES);
        ck_assert_uint_eq(seen_in, port(0, 1));
        ck_assert_uint_eq(p.hop_count, 3);
        ck_assert_uint_eq(p.hops[0].out, port(0, 100 + answer));
        ck_assert_uint_eq(p.hops[1].out, port(LEAVES + answer, 3));
        ck_assert_uint_eq(p.hops[2].out, port(2, 2));
    }
    /* Under one leaf nothing is chosen. */
    ck_assert_int_eq(path(NULL, port(0, 1), nic(0, 1), &p), 0);
    ck_assert_uint_eq(asked, 0);
    ck_assert_uint_eq(p.hop_count, 1);
    ft_topology_free(t);
}
END_TEST

/* A choice that is not known, or of a link that there is not, is no path; the path stays as it was.
 */
START_TEST(an_unknown_choice_is_no_path)
{
    struct ft_path p, before;

    t = leafspine(LEAVES, SPINES, 1);
    memset(&p, 0x5a, sizeof(p));
    before = p;
    for (int i = 0; i < 2; i++) {
        answer = i ? FT_NONE : SPINES;
        ck_assert_int_eq(path(NULL, port(0, 1), nic(1, 0), &p), -ENODATA);
        ck_assert_int_eq(memcmp(&p, &before, sizeof(p)), 0);
    }
    ft_topology_free(t);
}
END_TEST

/* Of more links than are chosen from it is not known which is taken, which is not to have none. */
START_TEST(of_too_many_links_none_is_known)
{
    struct ft_path p;
    bool *dead;

    t = leafspine(2, FT_HASH_MEMBERS_MAX + 1, 1);
    answer = 0;
    ck_assert_int_eq(path(NULL, port(0, 1), nic(1, 0), &p), -ENODATA);
    dead = calloc(ft_topology_ports(t), sizeof(*dead));
    ck_assert_int_eq(path(dead, port(0, 1), nic(1, 0), &p), -ENODATA);
    free(dead);
    ft_topology_free(t);
}
END_TEST

/* Links that are down, at either end, are not among those to choose from. */
START_TEST(dead_links_are_not_chosen)
{
    struct ft_path p;
    bool *dead;

    t = leafspine(LEAVES, SPINES, 1);
    dead = calloc(ft_topology_ports(t), sizeof(*dead));
    dead[port(0, 100)] = true;
    dead[port(LEAVES + 1, 1)] = true; /* of spine1 to leaf0 */
    answer = 0;
    ck_assert_int_eq(path(dead, port(0, 1), nic(1, 0), &p), 0);
    ck_assert_uint_eq(asked, 2);
    ck_assert_uint_eq(p.hops[0].out, port(0, 102));
    /* The last one is taken without a choice. */
    dead[port(0, 102)] = true;
    answer = FT_NONE;
    ck_assert_int_eq(path(dead, port(0, 1), nic(1, 0), &p), 0);
    ck_assert_uint_eq(asked, 0);
    ck_assert_uint_eq(p.hops[0].out, port(0, 103));
    dead[port(0, 103)] = true;
    ck_assert_int_eq(path(dead, port(0, 1), nic(1, 0), &p), -EHOSTUNREACH);
    /* Where the source or the destination hangs on a dead port. */
    memset(dead, 0, ft_topology_ports(t) * sizeof(*dead));
    dead[port(0, 1)] = true;
    answer = 0;
    ck_assert_int_eq(path(dead, port(0, 1), nic(1, 0), &p), -EHOSTUNREACH);
    dead[port(0, 1)] = false;
    dead[port(1, 1)] = true;
    ck_assert_int_eq(path(dead, port(0, 1), nic(1, 0), &p), -EHOSTUNREACH);
    free(dead);
    ft_topology_free(t);
}
END_TEST

FT_UNIT_MAIN("hashed", named_hashes_are_those_of_others, a_path_follows_the_choices,
             an_unknown_choice_is_no_path, of_too_many_links_none_is_known,
             dead_links_are_not_chosen)

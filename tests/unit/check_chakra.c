// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/chakra.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

/* An AllReduce of 1 MiB with id 3, named "ar", as ASTRA-sim's users publish it. */
static const uint8_t vector[] = {
    0x07, 0x0a, 0x05, 0x30, 0x2e, 0x30, 0x2e, 0x34, 0x38, 0x08, 0x03, 0x12, 0x02,
    0x61, 0x72, 0x18, 0x07, 0x52, 0x0e, 0x0a, 0x09, 0x69, 0x73, 0x5f, 0x63, 0x70,
    0x75, 0x5f, 0x6f, 0x70, 0xd8, 0x01, 0x00, 0x52, 0x0d, 0x0a, 0x09, 0x63, 0x6f,
    0x6d, 0x6d, 0x5f, 0x74, 0x79, 0x70, 0x65, 0x48, 0x00, 0x52, 0x0f, 0x0a, 0x09,
    0x63, 0x6f, 0x6d, 0x6d, 0x5f, 0x73, 0x69, 0x7a, 0x65, 0x48, 0x80, 0x80, 0x40,
};

START_TEST(writes_the_published_vector)
{
    struct ft_chakra_node node = {
        .id = 3, .name = "ar", .type = FT_CHAKRA_COLL, .comm_size = 1 << 20};
    struct ft_writer w;

    ft_writer_init(&w, 1000);
    ft_chakra_write_head(&w);
    ft_chakra_write_node(&w, &node, NULL);
    ck_assert(ft_writer_ok(&w));
    ck_assert_uint_eq(w.len, 65);
    ck_assert_mem_eq(w.bytes, vector, sizeof(vector));
    ft_writer_free(&w);
}
END_TEST

START_TEST(reads_it_cut_at_every_byte)
{
    struct ft_chakra_trace t;
    char error[200];

    for (size_t len = 0; len < sizeof(vector); len++) {
        int rc = ft_chakra_read(vector, len, &t, error, sizeof(error));

        /* Behind the metadata a trace of no nodes is complete. */
        ck_assert_int_eq(rc, len == 8 ? 0 : -EINVAL);
        ck_assert((rc == 0) == (error[0] == '\0'));
        ft_chakra_free(&t);
    }
    ck_assert_int_eq(ft_chakra_read(vector, sizeof(vector), &t, error, sizeof(error)), 0);
    ck_assert_uint_eq(t.count, 1);
    ck_assert_uint_eq(t.nodes[0].id, 3);
    ck_assert_uint_eq(t.nodes[0].type, FT_CHAKRA_COLL);
    ck_assert_int_eq(t.nodes[0].comm_size, 1 << 20);
    ck_assert_int_eq(t.nodes[0].comm_type, FT_CHAKRA_ALL_REDUCE);
    ck_assert_uint_eq(t.blind, 0);
    ft_chakra_free(&t);
}
END_TEST

START_TEST(what_is_written_reads_back)
{
    static const uint64_t deps[] = {1, 300};
    struct ft_chakra_node nodes[] = {
        {.id = 1, .name = "c", .type = FT_CHAKRA_COMP, .duration_us = 77, .cpu = true},
        {.id = 300,
         .name = "s",
         .type = FT_CHAKRA_SEND,
         .comm_size = 5,
         .has_src = true,
         .has_dst = true,
         .src = 0,
         .dst = 3,
         .tag = 9,
         .dep_count = 1},
        {.id = 1u << 20,
         .name = "g",
         .type = FT_CHAKRA_COLL,
         .comm_type = FT_CHAKRA_ALL_TO_ALL,
         .comm_size = INT64_MAX,
         .group = 12,
         .dep_count = 2},
    };
    struct ft_chakra_trace t;
    struct ft_writer w;
    char error[200];

    ft_writer_init(&w, 10000);
    ft_chakra_write_head(&w);
    for (size_t i = 0; i < 3; i++)
        ft_chakra_write_node(&w, &nodes[i], deps);
    ck_assert_int_eq(ft_chakra_read(w.bytes, w.len, &t, error, sizeof(error)), 0);
    ck_assert_uint_eq(t.count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(t.nodes[i].id, nodes[i].id);
        ck_assert_uint_eq(t.nodes[i].type, nodes[i].type);
        ck_assert_uint_eq(t.nodes[i].duration_us, nodes[i].duration_us);
        ck_assert_int_eq(t.nodes[i].cpu, nodes[i].cpu);
        ck_assert_int_eq(t.nodes[i].comm_size, nodes[i].comm_size);
        ck_assert_int_eq(t.nodes[i].comm_type, nodes[i].comm_type);
        ck_assert_int_eq(t.nodes[i].dst, nodes[i].dst);
        ck_assert_int_eq(t.nodes[i].tag, nodes[i].tag);
        ck_assert_uint_eq(t.nodes[i].group, nodes[i].group);
        ck_assert_uint_eq(t.nodes[i].dep_count, nodes[i].dep_count);
        for (uint32_t k = 0; k < nodes[i].dep_count; k++)
            ck_assert_uint_eq(t.deps[t.nodes[i].first_dep + k], deps[k]);
    }
    ft_chakra_free(&t);
    ft_writer_free(&w);
}
END_TEST

FT_UNIT_MAIN("chakra", writes_the_published_vector, reads_it_cut_at_every_byte,
             what_is_written_reads_back)

// SPDX-License-Identifier: Apache-2.0
/*
 * Flows of one 5-tuple in several networks (VNI): their samples are not one sum.
 */
#include "config.h"

#include "switchpoll/sflow/fold.h"

#include <string.h>

#include "proto/record.h"
#include "tests/unit/unit.h"

#define WRITE_MIDDLE 0x07
#define VNI_MAX      0xffffffu
#define RECORDS_MAX  8

struct kept {
    bool has_vni;
    uint32_t vni, samples, psn, psn_back;
};

static struct kept kept[RECORDS_MAX];
static size_t count;

static void keep(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Observation *o = record->observation;

    (void)arg;
    ck_assert_uint_lt(count, RECORDS_MAX);
    ck_assert(o->has_psn);
    kept[count++] = (struct kept){o->has_vni, o->vni, o->samples, o->psn, o->psn_back_samples};
}

static struct ft_sflow_flow flow_of(uint16_t sport, uint32_t psn)
{
    struct ft_sflow_flow flow = {
        .source_index = 1,
        .sampling_rate = 1000,
        .in = {FT_SFLOW_IF_INDEX, 1},
        .out = {FT_SFLOW_IF_INDEX, 49},
        .frame_bytes = 1086,
        .has_packet = true,
        .packet = {.bth = FT_BTH_DATA, .opcode = WRITE_MIDDLE, .dst_qp = 17, .psn = psn},
    };

    flow.packet.tuple = (struct ft_tuple){.src = ft_ip4((const uint8_t[]){10, 0, 1, 1}),
                                          .dst = ft_ip4((const uint8_t[]){10, 0, 3, 1}),
                                          .sport = sport,
                                          .dport = FT_ROCE_PORT,
                                          .proto = FT_PROTO_UDP};
    return flow;
}

/* vni: FT_NONE, in no network. */
static void add(struct ft_fold *fold, uint16_t sport, uint32_t vni, uint32_t psn, int64_t ms)
{
    const struct ft_ip agent = ft_ip4((const uint8_t[]){192, 0, 2, 1});
    struct ft_sflow_flow flow = flow_of(sport, psn);

    flow.packet.has_vni = vni != UINT32_MAX;
    flow.packet.vni = flow.packet.has_vni ? vni : 0;
    ft_fold_add(fold, &agent, 0, &flow, (struct ft_wall){ms});
}

static void flush(struct ft_fold *fold, int64_t start_ms)
{
    count = 0;
    ft_fold_flush(fold, (struct ft_wall){start_ms}, 1000, &(struct ft_record_sink){.emit = keep});
}

START_TEST(each_network_has_its_own_sum)
{
    static const uint32_t vnis[] = {UINT32_MAX, 0, 1, 5001, VNI_MAX};
    const size_t n = sizeof(vnis) / sizeof(*vnis);
    struct ft_fold *fold = ft_fold_new(16, 0);

    for (uint32_t round = 0; round < 3; round++)
        for (size_t i = 0; i < n; i++)
            add(fold, 49441, vnis[i], (uint32_t)(1000 * (n - i)) + round, 10 * round);
    flush(fold, 0);
    ck_assert_uint_eq(count, n);
    for (size_t i = 0; i < n; i++) {
        ck_assert(kept[i].has_vni == (vnis[i] != UINT32_MAX));
        ck_assert_uint_eq(kept[i].vni, kept[i].has_vni ? vnis[i] : 0);
        ck_assert_uint_eq(kept[i].samples, 3);
        ck_assert_uint_eq(kept[i].psn, 1000 * (n - i));
        ck_assert_uint_eq(kept[i].psn_back, 0);
    }
    ft_fold_free(fold);
}
END_TEST

/* The numbers of the one are not those of the other, from interval to interval either. */
START_TEST(packet_numbers_of_another_network_did_not_go_back)
{
    struct ft_fold *fold = ft_fold_new(16, 0);

    for (uint32_t second = 0; second < 4; second++) {
        for (uint32_t i = 0; i < 3; i++)
            add(fold, 49441, 5001 + second % 2, (second % 2 ? 100 : 1000) + 10 * second + i,
                1000 * second + 10 * i);
        flush(fold, 1000 * second);
        ck_assert_uint_eq(count, 1);
        ck_assert_uint_eq(kept[0].vni, 5001 + second % 2);
        ck_assert_uint_eq(kept[0].psn_back, 0);
    }
    /* Of one network they do. */
    add(fold, 49441, 5001, 900, 4000);
    flush(fold, 4000);
    ck_assert_uint_eq(kept[0].psn_back, 1);
    ft_fold_free(fold);
}
END_TEST

/* Where not all can be sent, a flow is sent in all of its networks or in none: who has it finds
 * that it is several. */
START_TEST(what_is_left_out_is_a_flow_in_all_its_networks)
{
    struct ft_fold *fold = ft_fold_new(16, 0);
    unsigned sent = 0;

    ft_fold_thin(fold, 4);
    for (uint32_t second = 0; second < 16; second++) {
        add(fold, 49441, 5001, 100 + second, 1000 * second);
        add(fold, 49441, 5002, 100 + second, 1000 * second);
        add(fold, 49441, UINT32_MAX, 100 + second, 1000 * second);
        flush(fold, 1000 * second);
        ck_assert(count == 0 || count == 3);
        sent += count == 3;
    }
    ck_assert_uint_eq(sent, 4);
    ft_fold_free(fold);
}
END_TEST

FT_UNIT_MAIN("fold_networks", each_network_has_its_own_sum,
             packet_numbers_of_another_network_did_not_go_back,
             what_is_left_out_is_a_flow_in_all_its_networks)

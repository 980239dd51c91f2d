// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/before.h"

#include "proto/packet.h"
#include "switchpoll/sflow/fold.h"
#include "tests/unit/unit.h"

#define MAX 1024

#define WRITE_MIDDLE  0x07
#define READ_RESPONSE 0x0e

/* That many sums that are as good as any. */
static uint64_t hash_of(uint64_t n)
{
    return n * UINT64_C(0x9E3779B97F4A7C15);
}

static void note(struct ft_before *b, uint64_t hash, uint32_t highest, int64_t last_ms)
{
    ft_before_note(b, hash,
                   &(struct ft_before_sum){.qp = 17,
                                           .highest = highest,
                                           .kind = FT_PSN_REQUEST,
                                           .last = {last_ms},
                                           .packets = 1000,
                                           .samples = 10,
                                           .interval_ms = 1000});
}

static bool find(const struct ft_before *b, uint64_t hash, int64_t now_ms, uint32_t *highest)
{
    return ft_before_find(b, hash, 17, FT_PSN_REQUEST, (struct ft_wall){now_ms}, highest);
}

START_TEST(a_sum_is_known_for_a_while)
{
    const int64_t at_ms = 1700000000000;
    struct ft_before *b = ft_before_new(MAX);
    uint32_t highest = 0;

    ck_assert(!find(b, hash_of(1), at_ms, &highest));
    note(b, hash_of(1), 100, at_ms);
    note(b, hash_of(2), 200, at_ms);
    note(b, hash_of(1), 300, at_ms + 1);
    ck_assert(find(b, hash_of(1), at_ms + 5000, &highest) && highest == 300);
    ck_assert(find(b, hash_of(2), at_ms + 5000, &highest) && highest == 200);
    ck_assert(!find(b, hash_of(2), at_ms + 5001, &highest));
    /* A clock that was set back. */
    ck_assert(!find(b, hash_of(2), at_ms - 1, &highest));
    ck_assert(
        !ft_before_find(b, hash_of(1), 18, FT_PSN_REQUEST, (struct ft_wall){at_ms + 1}, &highest));
    ck_assert(
        !ft_before_find(b, hash_of(1), 17, FT_PSN_RESPONSE, (struct ft_wall){at_ms + 1}, &highest));
    ck_assert_uint_eq(highest, 200);
    ft_before_free(b);
}
END_TEST

/* 4,194,304 packets: 18 samples' worth a second. */
START_TEST(a_fast_sum_is_known_as_long_as_its_numbers_last)
{
    struct ft_before *b = ft_before_new(MAX);
    struct ft_before_sum sum = {.qp = 17,
                                .highest = 100,
                                .kind = FT_PSN_REQUEST,
                                .packets = 10 << 20,
                                .samples = 10,
                                .interval_ms = 1000};
    uint32_t highest;

    ft_before_note(b, hash_of(1), &sum);
    ck_assert(find(b, hash_of(1), 220, &highest));
    ck_assert(!find(b, hash_of(1), 223, &highest));
    ft_before_free(b);
}
END_TEST

static size_t known(const struct ft_before *b, uint64_t from, uint64_t to)
{
    size_t count = 0;

    for (uint64_t n = from; n < to; n++) {
        uint32_t highest;

        if (find(b, hash_of(n), 1000, &highest)) {
            ck_assert_uint_eq(highest, n);
            count++;
        }
    }
    return count;
}

/* As many as it has room for are known but for what shares a place by chance, and of too many the
 * newest are. */
START_TEST(the_oldest_are_forgotten)
{
    struct ft_before *b = ft_before_new(MAX);

    ck_assert_uint_lt(ft_before_bytes(b), MAX * 16);
    ft_before_expect(b, 10 * (size_t)MAX);
    ck_assert_uint_eq(ft_before_bytes(b), MAX * 16);
    for (uint64_t n = 1; n <= MAX / 2; n++)
        note(b, hash_of(n), (uint32_t)n, 1);
    ck_assert_uint_ge(known(b, 1, MAX / 2 + 1), MAX / 2 * 9 / 10);
    for (uint64_t n = MAX; n < 3 * (uint64_t)MAX; n++)
        note(b, hash_of(n), (uint32_t)n, 2 + (int64_t)(n / MAX));
    ck_assert_uint_eq(known(b, 1, MAX / 2 + 1), 0);
    ck_assert_uint_ge(known(b, 2 * (uint64_t)MAX, 3 * (uint64_t)MAX), MAX * 7 / 10);
    ft_before_free(b);
}
END_TEST

static struct {
    uint32_t low, back;
} said;
static size_t emitted;

static void take(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Observation *o = record->observation;

    (void)arg;
    ck_assert(o->has_psn && o->has_psn_back_samples);
    said.low = o->psn;
    said.back = o->psn_back_samples;
    emitted++;
}

static const struct ft_record_sink sink = {.emit = take};

static struct ft_sflow_flow flow_of(uint16_t sport)
{
    struct ft_sflow_flow flow = {
        .source_index = 1,
        .sampling_rate = 10,
        .in = {FT_SFLOW_IF_INDEX, 1},
        .out = {FT_SFLOW_IF_INDEX, 49},
        .frame_bytes = 1086,
        .has_packet = true,
        .packet = {.bth = FT_BTH_DATA, .opcode = WRITE_MIDDLE, .dst_qp = 17},
    };

    flow.packet.tuple.src = ft_ip4((const uint8_t[]){10, 0, 1, 1});
    flow.packet.tuple.dst = ft_ip4((const uint8_t[]){10, 0, 3, 1});
    flow.packet.tuple.sport = sport;
    flow.packet.tuple.dport = FT_ROCE_PORT;
    flow.packet.tuple.proto = FT_PROTO_UDP;
    return flow;
}

#define SECOND_MS 1000

/* Samples of one second each, the numbers of a queue pair in them, and how many of these went back.
 */
static void expect_back(struct ft_fold *fold, int64_t second, struct ft_sflow_flow flow,
                        const uint32_t *numbers, size_t count, uint32_t back)
{
    const struct ft_ip agent = ft_ip4((const uint8_t[]){192, 0, 2, 1});
    int64_t start_ms = 1700000000000 + second * SECOND_MS;

    for (size_t i = 0; i < count; i++) {
        flow.packet.psn = numbers[i];
        ft_fold_add(fold, &agent, 0, &flow, (struct ft_wall){start_ms + 100 * (int64_t)i});
    }
    emitted = 0;
    ft_fold_flush(fold, (struct ft_wall){start_ms}, SECOND_MS, &sink);
    ck_assert_uint_eq(emitted, 1);
    ck_assert_uint_eq(said.low, numbers[0]);
    ck_assert_uint_eq(said.back, back);
}

#define EXPECT_BACK(second, flow, back, ...)                                                       \
    expect_back(fold, second, flow, (const uint32_t[]){__VA_ARGS__},                               \
                sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), back)

/* As if the second had not ended between them; for as long as a sender waits for its timer. */
START_TEST(numbers_go_back_from_one_interval_to_the_next)
{
    struct ft_fold *fold = ft_fold_new(16, 0);
    struct ft_sflow_flow flow = flow_of(49441), other = flow;

    EXPECT_BACK(0, flow, 0, 0xfffff0, 0xfffff8, 0x10);
    /* Each until one is ahead of what was sampled before. */
    EXPECT_BACK(1, flow, 3, 0xfffff9, 0x2, 0xf, 0x10, 0x20);
    EXPECT_BACK(2, flow, 0, 0x21, 0x30);
    /* Nothing is sampled in between. */
    EXPECT_BACK(5, flow, 1, 0x22, 0x31);
    EXPECT_BACK(12, flow, 0, 0x22, 0x31);
    /* One that is gone for long may have another's numbers; another queue pair has its own, and so
     * have the answers of this one. */
    other.packet.dst_qp++;
    EXPECT_BACK(13, other, 0, 0x10);
    EXPECT_BACK(14, other, 1, 0xf);
    other.packet.opcode = READ_RESPONSE;
    EXPECT_BACK(15, other, 0, 0x8);
    EXPECT_BACK(16, flow, 0, 0x22);
    /* At another port it was sampled for itself. */
    other = flow;
    other.out.value++;
    EXPECT_BACK(17, other, 0, 0x20);
    EXPECT_BACK(18, flow, 1, 0x21);
    ft_fold_free(fold);
}
END_TEST

/* Where so many packets may have followed that their numbers are lower again, nothing is said. */
START_TEST(numbers_that_may_have_begun_anew_are_not_back)
{
    struct ft_fold *fold = ft_fold_new(16, 0);
    struct ft_sflow_flow flow = flow_of(49441);

    flow.sampling_rate = 1 << 20;
    EXPECT_BACK(0, flow, 0, 0x800000, 0x900000);
    EXPECT_BACK(1, flow, 0, 0x700000);
    flow.sampling_rate = 1 << 10;
    flow.packet.tuple.sport++;
    EXPECT_BACK(2, flow, 0, 0x800000, 0x900000);
    EXPECT_BACK(3, flow, 1, 0x700000);
    ft_fold_free(fold);
}
END_TEST

FT_UNIT_MAIN("before", numbers_go_back_from_one_interval_to_the_next,
             numbers_that_may_have_begun_anew_are_not_back, a_sum_is_known_for_a_while,
             a_fast_sum_is_known_as_long_as_its_numbers_last, the_oldest_are_forgotten)

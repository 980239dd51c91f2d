// SPDX-License-Identifier: Apache-2.0
/* A receiver at its limits: payloads in slices, too many frames under way, a loop that stood still.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/unit/transport_rig.h"

static struct ft_receiver_stats receiver_stats(void)
{
    struct ft_receiver_stats stats;

    ft_receiver_stats(rig.receiver, &stats);
    return stats;
}

static int raw_peer(const char *name)
{
    struct ft_frame frame;
    int fd = rig_raw_connect();

    rig_raw_hello(fd, name, 1);
    ck_assert(rig_raw_read(fd, &frame));
    ck_assert_int_eq(frame.type, FT_FRAME_WELCOME);
    return fd;
}

/* The head of a frame of len bytes of payload, and all of it but `less` bytes. */
static void write_frame(int fd, uint64_t sequence, uint32_t value, size_t len, size_t less)
{
    uint8_t *bytes = malloc(FT_FRAME_DATA_HEAD_BYTES + len);

    ft_frame_data_head(bytes, sequence, len);
    for (size_t i = 0; i < len; i++)
        bytes[FT_FRAME_DATA_HEAD_BYTES + i] = (uint8_t)(value + i);
    memcpy(bytes + FT_FRAME_DATA_HEAD_BYTES, &value, sizeof(value));
    rig_raw_write(fd, bytes, FT_FRAME_DATA_HEAD_BYTES + len - less);
    free(bytes);
}

static void expect_ack(int fd, uint64_t sequence)
{
    struct ft_frame frame;

    do
        ck_assert(rig_raw_read(fd, &frame));
    while (frame.type == FT_FRAME_ACK && frame.sequence < sequence);
    ck_assert_int_eq(frame.type, FT_FRAME_ACK);
    ck_assert_uint_eq(frame.sequence, sequence);
}

static bool first_slice(void)
{
    return rig.begun > 0;
}

static bool two_seen(void)
{
    return rig.seen_count == 2;
}

/* Nobody's payload comes between the slices of another's. */
START_TEST(payload_in_slices)
{
    int a, b;

    rig_start();
    a = raw_peer("a");
    b = raw_peer("b");
    rig.hold = true;
    rig_raw_data(a, 1, 100);
    rig_run(first_slice, "the first slice");
    rig_raw_data(b, 1, 200);
    rig_run_for(20 * RIG_MS);
    ck_assert_uint_eq(rig.seen_count, 0);
    rig.hold = false;
    expect_ack(b, 1);
    ck_assert_uint_eq(rig.seen_count, 2);
    ck_assert_uint_eq(rig.seen[0], 100);
    ck_assert_uint_eq(rig.seen[1], 200);
    expect_ack(a, 1);
    ck_assert_uint_eq(receiver_stats().payloads, 2);
    ck_assert_uint_eq(receiver_stats().applied, 2);
    close(a);
    close(b);
    rig_stop();
}
END_TEST

/* Whoever goes within a payload has it applied whole and once, and hears so when it is back. */
START_TEST(peer_that_leaves_within_a_payload)
{
    struct ft_frame frame;
    int a;

    rig_start();
    a = raw_peer("a");
    rig.hold = true;
    rig_raw_data(a, 1, 100);
    rig_run(first_slice, "the first slice");
    close(a);
    a = rig_raw_connect();
    rig_raw_hello(a, "a", 1);
    rig_run_for(20 * RIG_MS);
    rig.hold = false;
    ck_assert(rig_raw_read(a, &frame));
    ck_assert_int_eq(frame.type, FT_FRAME_WELCOME);
    ck_assert_uint_eq(frame.sequence, 1);
    rig_raw_data(a, 1, 100);
    rig_raw_data(a, 2, 200);
    rig_run(two_seen, "the next payload");
    expect_ack(a, 2);
    ck_assert_uint_eq(rig.seen_count, 2);
    ck_assert_uint_eq(receiver_stats().duplicates, 1);
    close(a);
    rig_stop();
}
END_TEST

START_TEST(stop_within_a_payload)
{
    int a;

    rig_start();
    a = raw_peer("a");
    rig.hold = true;
    rig_raw_data(a, 1, 100);
    rig_run(first_slice, "the first slice");
    rig.hold = false;
    rig_receiver_down();
    ck_assert_uint_eq(rig.seen_count, 1);
    expect_ack(a, 1);
    close(a);
    rig_stop();
}
END_TEST

static bool two_crowded_out(void)
{
    return receiver_stats().crowded_out == 2;
}

START_TEST(halves_of_frames_over_the_cap)
{
    const size_t len = 400 << 10;
    int halves[4], honest;

    rig.receiver_config.input_bytes_max = 1 << 20;
    rig_start();
    honest = raw_peer("honest");
    for (int i = 0; i < 4; i++) {
        char name[] = {'h', (char)('0' + i), '\0'};

        halves[i] = raw_peer(name);
        write_frame(halves[i], 1, 1, len, 1);
    }
    /* At once or one after the other, by how much is read a turn: two of four have room. */
    rig_run(two_crowded_out, "two to be cut off");
    write_frame(honest, 1, 500, len, 0);
    expect_ack(honest, 1);
    rig_raw_write(halves[3], &(uint8_t){(uint8_t)(1 + len - 1)}, 1);
    expect_ack(halves[3], 1);
    ck_assert_uint_eq(rig.seen_count, 2);
    for (int i = 0; i < 4; i++)
        close(halves[i]);
    close(honest);
    rig_stop();
}
END_TEST

static void stand_still(void *arg)
{
    struct ft_mono start = ft_mono_now();

    rig_raw_write(*(int *)arg, &(uint8_t){0}, 1);
    while (ft_mono_since_ns(ft_mono_now(), start) < 3000 * RIG_MS)
        ;
}

static bool one_seen(void)
{
    return rig.seen_count == 1;
}

/* Its last byte was there in time: it was us who did not read it. */
START_TEST(own_stalls_are_nobodys_fault)
{
    struct ft_watch *stall;
    int a;

    rig.receiver_config.timeout_ns = 1500 * RIG_MS;
    rig_start();
    a = raw_peer("a");
    write_frame(a, 1, 1, 256, 1);
    rig_run_for(20 * RIG_MS);
    stall = ft_watch_once(rig.loop, stand_still, &a);
    ft_watch_once_arm(stall, 0);
    rig_run(one_seen, "the frame");
    ck_assert_int_eq(rig.downs, 0);
    ft_watch_free(stall);
    close(a);
    rig_stop();
}
END_TEST

FT_UNIT_MAIN("turns", payload_in_slices, peer_that_leaves_within_a_payload, stop_within_a_payload,
             halves_of_frames_over_the_cap, own_stalls_are_nobodys_fault)

// SPDX-License-Identifier: Apache-2.0
/*
 * What a window says of a flow does not depend on when the window is closed: the same samples,
 * which come up to half of the grace late, give the same volumes to who closes it at once and to
 * who closes it later, after more samples of the next one. So members of a group find what one
 * daemon finds.
 */
#include "config.h"

#include <string.h>

#include "daemon/join/join.h"
#include "lib/fabric/chance.h"
#include "tests/unit/join_rig.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define FLOWS     300
#define WINDOWS   12
#define WINDOW_MS 10000
#define GRACE_MS  5000
#define START_MS  (100 * (int64_t)WINDOW_MS)
#define END_MS    (START_MS + WINDOWS * (int64_t)WINDOW_MS)
#define SECOND_MS 1000
#define LEAF      0
#define SPINE     2
#define LAST_LEAF 1

static struct ft_topology *t;
static struct ft_join *join;
static struct ft_random dice;

static void open_join(void)
{
    const struct ft_join_config config = {.flows_max = FLOWS,
                                          .window_ms = WINDOW_MS,
                                          .grace_ms = GRACE_MS,
                                          .evidence_ms = 30000,
                                          .idle_ms = 60000,
                                          .trust_topology = true,
                                          .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}};

    t = leafspine(2, 2, 2);
    join = ft_join_new(&config, t, &(struct ft_join_hooks){.arg = NULL});
    ck_assert_ptr_nonnull(join);
    ft_join_open(join, 100);
}

static void close_join(void)
{
    ft_join_free(join);
    ft_topology_free(t);
}

/* Closes windows that are due `late_ms` after their grace by now, and notes the volumes in them;
 * bytes: NULL, or of each window and flow. */
static void close_windows(int64_t now_ms, int64_t late_ms, uint64_t (*bytes)[FLOWS])
{
    for (;;) {
        uint32_t window = ft_join_window(join);
        int64_t at_ms = ((int64_t)window + 1) * WINDOW_MS + GRACE_MS + late_ms;

        if (at_ms > now_ms || window >= 100 + WINDOWS)
            return;
        ft_join_seal(join);
        for (uint32_t i = 0; i < ft_join_limit(join); i++) {
            struct ft_flow *flow = ft_join_at(join, i);

            if (flow && ft_join_age(join, flow, window, at_ms) && flow->bytes_window == window)
                bytes[window - 100][flow->tuple.sport] = flow->bytes;
        }
        ft_join_close(join);
    }
}

/* A sample of a flow at a switch of its path. */
static struct ft_observation seen_at(uint16_t sport, uint32_t id, int64_t ms)
{
    return (struct ft_observation){.tuple = join_rig_tuple(sport),
                                   .agent = leafspine_switch_ip(id),
                                   .in_ifindex = id == LAST_LEAF ? 100 : 1,
                                   .out_ifindex = id == LEAF    ? 100
                                                  : id == SPINE ? 2
                                                                : 1,
                                   .source = id,
                                   .first_ms = ms,
                                   .last_ms = ms,
                                   .samples = 1,
                                   .data_samples = 1,
                                   .packets = 1000,
                                   .bytes = 1000000};
}

/* Each switch takes a sample of a flow in one second of 2 to 31, by the flow. */
static void take_second(int64_t second_ms)
{
    for (uint16_t sport = 0; sport < FLOWS; sport++)
        for (uint32_t id = 0; id < 3; id++) {
            uint64_t drawn = ft_random_next(&dice);
            struct ft_observation o = seen_at(sport, id, second_ms + (int64_t)(drawn % SECOND_MS));

            if ((drawn >> 32) % (2 + sport % 30) == 0)
                ck_assert_int_eq(join_observe(join, &o), FT_JOIN_OK);
        }
}

/* Samples come `delay_ms` after the end of their second, and windows are closed `late_ms` after
 * their grace. */
static void run(int64_t delay_ms, int64_t late_ms, uint64_t (*bytes)[FLOWS])
{
    dice.state = 7;
    open_join();
    for (int64_t ms = START_MS; ms < END_MS; ms += SECOND_MS) {
        close_windows(ms + SECOND_MS + delay_ms - 1, late_ms, bytes);
        take_second(ms);
    }
    close_windows(INT64_MAX, late_ms, bytes);
    close_join();
}

START_TEST(when_a_window_is_closed_changes_no_volume)
{
    static const struct {
        int64_t delay_ms, late_ms;
    } runs[] = {{0, 0}, {0, 400}, {1000, 0}, {1900, 0}, {1900, 900}};
    static uint64_t bytes[2][WINDOWS][FLOWS];
    unsigned other = 0, with = 0;

    run(0, 900, bytes[0]);
    for (unsigned window = 0; window < WINDOWS; window++)
        for (unsigned flow = 0; flow < FLOWS; flow++)
            with += bytes[0][window][flow] != 0;
    ck_assert_uint_gt(with, WINDOWS * FLOWS / 2);
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
        memset(bytes[1], 0, sizeof(bytes[1]));
        run(runs[i].delay_ms, runs[i].late_ms, bytes[1]);
        other = 0;
        for (unsigned window = 0; window < WINDOWS; window++)
            for (unsigned flow = 0; flow < FLOWS; flow++)
                other += bytes[1][window][flow] != bytes[0][window][flow];
        ck_assert_msg(other == 0, "run %zu: %u of %u volumes are others", i, other, with);
    }
}
END_TEST

/* The volume of the first window of a flow that the leaf samples at its end, and the spine after.
 */
static uint64_t volume_with(int64_t after_ms)
{
    uint64_t bytes[WINDOWS][FLOWS] = {0};
    struct ft_observation leaf = seen_at(0, LEAF, START_MS + WINDOW_MS - 1);
    struct ft_observation spine = seen_at(0, SPINE, START_MS + WINDOW_MS + after_ms);

    open_join();
    ck_assert_int_eq(join_observe(join, &leaf), FT_JOIN_OK);
    ck_assert_int_eq(join_observe(join, &spine), FT_JOIN_OK);
    close_windows(START_MS + WINDOW_MS + GRACE_MS, 0, bytes);
    close_join();
    return bytes[0][0];
}

/* Half of the grace is there for what comes late. */
START_TEST(a_switch_counts_by_when_it_saw_the_flow)
{
    ck_assert_uint_eq(volume_with(GRACE_MS / 2 - 1), 500000);
    ck_assert_uint_eq(volume_with(GRACE_MS / 2), 1000000);
    ck_assert_uint_eq(volume_with(GRACE_MS - 1), 1000000);
}
END_TEST

/* It stays away for longer than a stretch of samples, but not for as long as it is remembered. */
START_TEST(a_switch_that_saw_the_flow_before_counts)
{
    uint64_t bytes[WINDOWS][FLOWS] = {0};
    const struct ft_observation seen[] = {
        seen_at(0, SPINE, START_MS + 1000),
        seen_at(0, LEAF, START_MS + 2000),
        seen_at(0, LEAF, START_MS + WINDOW_MS + 2000),
        seen_at(0, SPINE, START_MS + 2 * WINDOW_MS + GRACE_MS - 1),
    };

    open_join();
    ck_assert_int_eq(join_observe(join, &seen[0]), FT_JOIN_OK);
    ck_assert_int_eq(join_observe(join, &seen[1]), FT_JOIN_OK);
    close_windows(START_MS + WINDOW_MS + GRACE_MS, 0, bytes);
    ck_assert_int_eq(join_observe(join, &seen[2]), FT_JOIN_OK);
    ck_assert_int_eq(join_observe(join, &seen[3]), FT_JOIN_OK);
    close_windows(START_MS + 2 * WINDOW_MS + GRACE_MS, 0, bytes);
    ck_assert_uint_eq(bytes[0][0], 1000000);
    ck_assert_uint_eq(bytes[1][0], 500000);
    close_join();
}
END_TEST

FT_UNIT_MAIN("closing", when_a_window_is_closed_changes_no_volume,
             a_switch_counts_by_when_it_saw_the_flow, a_switch_that_saw_the_flow_before_counts)

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/unit/window_rig.h"

/* Groups whose links differ in speed, used evenly or by speed: neither is a fault. */

enum { SPINES = 4, FLOWS = 600, WINDOWS = FT_SANITIZED ? 3 : 12 };

static const double even[SPINES] = {0.25, 0.25, 0.25, 0.25};
static const double by_speed[SPINES] = {0.4, 0.4, 0.1, 0.1};

static uint64_t all_differ(uint32_t leaf, uint32_t spine)
{
    (void)leaf;
    return spine < 2 ? 4 * (uint64_t)LINK_BPS : LINK_BPS;
}

static uint64_t first_leaf_differs(uint32_t leaf, uint32_t spine)
{
    return leaf == 0 ? all_differ(leaf, spine) : LINK_BPS;
}

static uint32_t draw(const double *share)
{
    double at = (double)random() / ((double)RAND_MAX + 1);
    uint32_t spine = 0;

    while (spine + 1 < SPINES && at >= share[spine])
        at -= share[spine++];
    return spine;
}

/* In each window other flows, from leaf0 by these shares and from leaf1 by those; none by a dead
 * spine from leaf0. */
static void run(uint64_t (*bps)(uint32_t, uint32_t), const double *shares, const double *others,
                uint32_t dead)
{
    leafspine_bps = bps;
    open_pipeline(2, SPINES, 1);
    srandom(7);
    for (int w = 0; w < WINDOWS; w++) {
        int64_t ms = START_MS + (int64_t)w * WINDOW_MS;

        for (int i = 0; i < FLOWS; i++) {
            uint16_t sport = (uint16_t)(1000 + w * FLOWS + i);
            uint32_t leaf = (uint32_t)(i % 2 && others != NULL), spine;

            do
                spine = draw(leaf ? others : shares);
            while (leaf == 0 && spine == dead);
            observe(sport, leaf, spine, 8000000, 100, ms + 10, 0);
        }
        close_window(ms);
    }
}

static unsigned count_lines(const char *a, const char *b)
{
    unsigned count = 0;

    ft_write_u8(&out, 0);
    out.len--;
    for (const char *at = (const char *)out.bytes, *end; (end = strchr(at, '\n')); at = end + 1) {
        const char *of_a = strstr(at, a), *of_b = strstr(at, b);

        count += of_a && of_a < end && of_b && of_b < end;
    }
    return count;
}

/* Of all windows and four groups none but by luck. */
static void expect_no_alarm(void)
{
    ck_assert_ptr_null(line_with("\"polarization\"", ""));
    ck_assert_ptr_null(line_with("\"underused\"", ""));
    ck_assert_uint_eq(count_lines("imbalance.v1", "\"verdict\":\"fault\""), 0);
    ck_assert_uint_le(count_lines("imbalance.v1", "\"verdict\":\"uneven\""), 3);
}

START_TEST(links_that_are_weighed_by_speed_are_even)
{
    const char *line;

    run(all_differ, by_speed, by_speed, SPINES);
    expect_no_alarm();
    line = line_with("imbalance.v1", "\"leaf0/up\"");
    /* As much as comes by chance, both over the speeds. */
    ck_assert_double_le(number(line, "fim"), 2 * number(line, "fim_expected"));
    ck_assert_double_le(number(line, "fim_expected"), 20);
    close_pipeline();
}
END_TEST

START_TEST(links_that_are_chosen_alike_are_even)
{
    const char *line;

    run(all_differ, even, even, SPINES);
    expect_no_alarm();
    /* A quarter each over speeds of 1.6 and 0.4 of their mean: 0.4 and 1.6 of the mean load. */
    line = line_with("imbalance.v1", "\"leaf0/up\"");
    ck_assert_double_eq_tol(number(line, "fim_expected"), 60, 1);
    ck_assert_double_eq_tol(number(line, "fim"), 60, 10);
    close_pipeline();
}
END_TEST

START_TEST(a_dead_link_of_other_speed_is_named)
{
    const double *shares[] = {even, by_speed};

    for (int by = 0; by < 2; by++)
        for (uint32_t dead = 0; dead < SPINES; dead += 2) {
            char idle[32];
            const char *line;

            run(all_differ, shares[by], shares[by], dead);
            line = line_with("\"polarization\"", "\"leaf0/up\"");
            ck_assert_msg(line != NULL, "by %d, link %u", by, dead);
            snprintf(idle, sizeof(idle), "\"idle_ports\":[\"up%u\"]", dead);
            ck_assert_msg(strstr(line, idle) != NULL, "%s is not in %s", idle, line);
            ck_assert_ptr_null(line_with("\"polarization\"", "\"leaf1/up\""));
            close_pipeline();
        }
}
END_TEST

/* leaf0 sends by weights of its own; the links down to leaf1 are of one speed, and used as it
 * chose. */
START_TEST(weights_of_a_sender_accuse_no_link_down)
{
    run(first_leaf_differs, by_speed, NULL, SPINES);
    expect_no_alarm();
    close_pipeline();
}
END_TEST

/* Where no speed says so, weights are what they are. */
START_TEST(weights_by_hand_are_no_chance)
{
    run(NULL, by_speed, even, SPINES);
    ck_assert_ptr_nonnull(line_with("\"polarization\"", "\"leaf0/up\""));
    ck_assert_ptr_nonnull(line_with("\"polarization\"", "\"leaf1/down\""));
    ck_assert_ptr_null(line_with("\"polarization\"", "\"leaf1/up\""));
    close_pipeline();
}
END_TEST

FT_UNIT_MAIN("window_weights", links_that_are_weighed_by_speed_are_even,
             links_that_are_chosen_alike_are_even, a_dead_link_of_other_speed_is_named,
             weights_of_a_sender_accuse_no_link_down, weights_by_hand_are_no_chance)

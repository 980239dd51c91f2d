// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/sampled.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define WINDOW 100

static struct ft_topology *t;
static struct ft_sampled *sampled;

static void begin(void)
{
    t = leafspine(2, 4, 4);
    sampled = ft_sampled_new(t);
    ck_assert_ptr_nonnull(sampled);
}

static void end(void)
{
    ft_sampled_free(sampled);
    ft_topology_free(t);
}

static uint32_t port(const char *name)
{
    return name ? ft_topology_find_port(t, 0, name) : FT_NONE;
}

static void add(uint32_t window, uint32_t source, const char *in, const char *out, uint64_t samples)
{
    ft_sampled_add(sampled, 0, port(in), port(out), source, window, samples, samples * 1000);
}

static uint64_t total(uint32_t window)
{
    uint64_t samples;
    double bytes;

    ft_sampled_window(sampled, 0, window, &samples, &bytes);
    ck_assert_double_eq_tol(bytes, (double)samples * 1000, 1e-6);
    return samples;
}

/* The first sample of another source is what makes ports be told apart. */
static void wake(void)
{
    add(WINDOW - 1, 1, "host0", "up0", 0);
    add(WINDOW - 1, 2, "host0", "up0", 0);
}

START_TEST(one_source_adds_up)
{
    begin();
    add(WINDOW, 1, "host0", "up0", 5);
    add(WINDOW, 1, NULL, "up1", 3);
    add(WINDOW + 1, 1, "host0", NULL, 2);
    ck_assert_uint_eq(total(WINDOW), 8);
    ck_assert_uint_eq(total(WINDOW + 1), 2);
    ck_assert_uint_eq(total(WINDOW - 1), 0);
    add(WINDOW + 2, 1, "host0", NULL, 1);
    ck_assert_uint_eq(total(WINDOW + 1), 2);
    ck_assert_uint_eq(total(WINDOW), 0);
    end();
}
END_TEST

/* What comes in by ports that lead nowhere, in its window and the next. */
START_TEST(strays_are_reported)
{
    begin();
    ft_sampled_free(sampled);
    ft_topology_free(t);
    t = leafspine_without(2, 4, 4, 0, 3);
    sampled = ft_sampled_new(t);
    add(WINDOW, 1, "host0", "up3", 5);
    add(WINDOW, 1, "up0", "host0", 3);
    ck_assert_uint_eq(ft_sampled_strays(sampled, 0, WINDOW), 0);
    add(WINDOW, 1, "up3", "host0", 2);
    add(WINDOW + 1, 1, "up3", "host0", 4);
    ck_assert_uint_eq(ft_sampled_strays(sampled, 0, WINDOW), 2);
    ck_assert_uint_eq(ft_sampled_strays(sampled, 0, WINDOW + 1), 4);
    add(WINDOW + 2, 1, "up0", "host0", 1);
    ck_assert_uint_eq(ft_sampled_strays(sampled, 0, WINDOW + 2), 0);
    ck_assert_uint_eq(ft_sampled_strays(sampled, 0, WINDOW + 1), 4);
    ck_assert_uint_eq(ft_sampled_strays(sampled, 0, WINDOW), 0);
    end();
}
END_TEST

START_TEST(both_ends_count_once)
{
    begin();
    wake();
    for (uint32_t source = 1; source <= 2; source++) {
        add(WINDOW, source, "host0", "up0", 40 + source);
        add(WINDOW, source, "host0", "up1", 20 + source);
        add(WINDOW, source, "host1", "up0", 10 + source);
    }
    ck_assert_uint_eq(total(WINDOW), 42 + 22 + 12);
    /* Where each end names its own port alone. */
    add(WINDOW + 1, 1, "host0", NULL, 50);
    add(WINDOW + 1, 2, NULL, "up0", 48);
    ck_assert_uint_eq(total(WINDOW + 1), 50);
    end();
}
END_TEST

START_TEST(line_cards_add_up)
{
    begin();
    wake();
    /* Each samples what enters by its ports. */
    add(WINDOW, 1, "host0", "up0", 40);
    add(WINDOW, 1, "host1", "up2", 30);
    add(WINDOW, 2, "host2", "up0", 20);
    add(WINDOW, 2, "host3", "up2", 10);
    ck_assert_uint_eq(total(WINDOW), 100);
    /* Or what leaves by them. */
    add(WINDOW + 1, 1, "host0", "up0", 40);
    add(WINDOW + 1, 1, "host0", "up1", 30);
    add(WINDOW + 1, 2, "host0", "up2", 20);
    add(WINDOW + 1, 2, "host0", "up3", 10);
    ck_assert_uint_eq(total(WINDOW + 1), 100);
    end();
}
END_TEST

START_TEST(chance_does_not_choose)
{
    uint64_t sum = 0;

    begin();
    wake();
    /* Two ends that each see 100 of the same packets on the average, now one more, now the other;
     * the first had more before. */
    add(WINDOW - 1, 1, "host0", "up0", 1000);
    add(WINDOW - 1, 2, "host0", "up0", 900);
    for (uint32_t w = WINDOW; w < WINDOW + 10; w++) {
        add(w, 1, "host0", "up0", w % 2 ? 90 : 110);
        add(w, 2, "host0", "up0", w % 2 ? 110 : 90);
        sum += total(w);
    }
    ck_assert_uint_eq(sum, 1000);
    /* One that is mute now is not the best, whatever it was. */
    add(WINDOW + 10, 2, "host0", "up0", 7);
    ck_assert_uint_eq(total(WINDOW + 10), 7);
    end();
}
END_TEST

START_TEST(sources_over_the_cap_are_not_added)
{
    begin();
    for (uint32_t source = 1; source <= FT_SAMPLED_SOURCES + 3; source++)
        add(WINDOW, source, "host0", "up0", 10);
    ck_assert_uint_eq(total(WINDOW), 10);
    /* Those that fell silent long ago make room. */
    for (uint32_t w = WINDOW + 1; w < WINDOW + 80; w++)
        add(w, 1, "host0", "up0", 10);
    add(WINDOW + 80, 99, "host0", "up0", 25);
    ck_assert_uint_eq(total(WINDOW + 80), 25);
    end();
}
END_TEST

START_TEST(follows_the_topology_by_name)
{
    struct ft_topology *other = leafspine(3, 2, 4);

    begin();
    add(WINDOW, 1, "host0", "up0", 5);
    ck_assert_int_eq(ft_sampled_follow(sampled, other), 0);
    ft_topology_free(t);
    t = other;
    ck_assert_uint_eq(total(WINDOW), 5);
    add(WINDOW, 1, "host0", "up0", 1);
    ck_assert_uint_eq(total(WINDOW), 6);
    end();
}
END_TEST

FT_UNIT_MAIN("sampled", one_source_adds_up, strays_are_reported, both_ends_count_once,
             line_cards_add_up, chance_does_not_choose, sources_over_the_cap_are_not_added,
             follows_the_topology_by_name)

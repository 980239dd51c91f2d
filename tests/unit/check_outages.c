// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/outages.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define WINDOW    100
#define WINDOW_MS 10000
#define SECONDS   (WINDOW_MS / 1000)

static struct ft_topology *t;
static struct ft_outages *outages;

static void begin(void)
{
    t = leafspine(2, 4, 4);
    outages = ft_outages_new(t, WINDOW_MS);
    ck_assert_ptr_nonnull(outages);
}

static void end(void)
{
    ft_outages_free(outages);
    ft_topology_free(t);
}

/* Samples in one second of a window. */
static void add(uint32_t switch_id, uint32_t window, uint32_t second, uint32_t samples)
{
    int64_t ms = (int64_t)window * WINDOW_MS + second * 1000;

    ft_outages_add(outages, switch_id, window, ms + 100, ms + 900, samples);
}

/* All switches have so many in each second of a window, but for some of one switch. */
static void sample(uint32_t window, uint32_t samples, uint32_t but, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < ft_topology_switches(t); i++)
        for (uint32_t second = 0; second < SECONDS; second++)
            if (i != but || second < from || second >= to)
                add(i, window, second, samples);
}

/* That had one in a window; FT_NONE: none had. All others had none. */
static uint32_t who(uint32_t window)
{
    uint32_t who = FT_NONE;

    ft_outages_close(outages, window);
    for (uint32_t i = 0; i < ft_topology_switches(t); i++)
        if (ft_outages_had(outages)[i]) {
            ck_assert_uint_eq(who, FT_NONE);
            who = i;
        }
    return who;
}

START_TEST(a_second_without_samples_is_an_outage)
{
    begin();
    ck_assert(!ft_outages_had(outages)[0]);
    sample(WINDOW, 40, FT_NONE, 0, 0);
    ck_assert_uint_eq(who(WINDOW), FT_NONE);
    for (uint32_t second = 0; second < SECONDS; second++) {
        sample(WINDOW + 1 + second, 40, 2, second, second + 1);
        ck_assert_uint_eq(who(WINDOW + 1 + second), 2);
    }
    sample(WINDOW + 20, 40, FT_NONE, 0, 0);
    ck_assert_uint_eq(who(WINDOW + 20), FT_NONE);
    end();
}
END_TEST

/* Two windows are open at once. */
START_TEST(a_whole_window_is_one_by_what_was_usual)
{
    begin();
    sample(WINDOW, 40, FT_NONE, 0, 0);
    sample(WINDOW + 1, 40, 2, 0, SECONDS);
    ck_assert_uint_eq(who(WINDOW), FT_NONE);
    sample(WINDOW + 2, 40, 2, 0, SECONDS);
    ck_assert_uint_eq(who(WINDOW + 1), 2);
    ck_assert_uint_eq(who(WINDOW + 2), 2);
    ft_outages_restart(outages);
    ck_assert(!ft_outages_had(outages)[2]);
    sample(WINDOW, 40, 2, 0, SECONDS);
    ck_assert_uint_eq(who(WINDOW), FT_NONE);
    end();
}
END_TEST

START_TEST(few_samples_may_be_chance)
{
    begin();
    sample(WINDOW, FT_OUTAGE_USUAL - 1, 2, 3, 5);
    ck_assert_uint_eq(who(WINDOW), FT_NONE);
    sample(WINDOW + 1, FT_OUTAGE_USUAL, 2, 3, 5);
    ck_assert_uint_eq(who(WINDOW + 1), 2);
    sample(WINDOW + 2, 60, 2, 3, 5);
    add(2, WINDOW + 2, 3, 1);
    add(2, WINDOW + 2, 4, 1);
    ck_assert_uint_eq(who(WINDOW + 2), FT_NONE);
    end();
}
END_TEST

START_TEST(a_fabric_that_pauses_has_none)
{
    begin();
    for (uint32_t i = 0; i < ft_topology_switches(t); i++)
        for (uint32_t second = 0; second < SECONDS; second += 2)
            add(i, WINDOW, second, 40);
    ck_assert_uint_eq(who(WINDOW), FT_NONE);
    ck_assert_uint_eq(who(WINDOW + 1), FT_NONE);
    end();
}
END_TEST

/* Of what came in its last part some switches have nothing. */
START_TEST(a_fabric_that_falls_silent_has_none)
{
    begin();
    sample(WINDOW, 40, FT_NONE, 0, 0);
    ck_assert_uint_eq(who(WINDOW), FT_NONE);
    for (uint32_t i = 0; i < ft_topology_switches(t); i++)
        if (i != 2)
            add(i, WINDOW + 1, 0, 10);
    ck_assert_uint_eq(who(WINDOW + 1), FT_NONE);
    ck_assert_uint_eq(who(WINDOW + 2), FT_NONE);
    /* With less than before, for long. */
    sample(WINDOW + 3, 30, FT_NONE, 0, 0);
    ck_assert_uint_eq(who(WINDOW + 3), FT_NONE);
    sample(WINDOW + 4, 30, 2, 3, 4);
    ck_assert_uint_eq(who(WINDOW + 4), 2);
    end();
}
END_TEST

/* A poller that folds longer intervals. */
START_TEST(samples_of_an_interval_are_in_each_of_its_seconds)
{
    begin();
    for (uint32_t i = 0; i < ft_topology_switches(t); i++)
        for (uint32_t second = 0; second < SECONDS; second += 5)
            ft_outages_add(outages, i, WINDOW, (int64_t)WINDOW * WINDOW_MS + second * 1000,
                           (int64_t)WINDOW * WINDOW_MS + second * 1000 + 4900, i == 2 ? 0 : 203);
    add(2, WINDOW, 0, 40);
    ck_assert_uint_eq(who(WINDOW), 2);
    end();
}
END_TEST

START_TEST(another_topology_keeps_what_is_known)
{
    struct ft_topology *other = leafspine(2, 6, 4);
    struct ft_outages *now;
    uint32_t id;

    begin();
    sample(WINDOW, 40, 2, 3, 5);
    ck_assert_uint_eq(who(WINDOW), 2);
    id = ft_topology_find_switch(other, ft_topology_switch(t, 2)->name);
    now = ft_outages_followed(outages, other);
    ck_assert_ptr_nonnull(now);
    end();
    outages = now;
    t = other;
    ck_assert(ft_outages_had(outages)[id]);
    ck_assert_uint_eq(who(WINDOW), id);
    end();
}
END_TEST

START_TEST(short_windows_have_none)
{
    begin();
    ft_outages_free(outages);
    outages = ft_outages_new(t, 1500);
    for (uint32_t i = 0; i < ft_topology_switches(t); i++)
        ft_outages_add(outages, i, WINDOW, WINDOW * 1500, WINDOW * 1500, 40);
    ck_assert_uint_eq(who(WINDOW), FT_NONE);
    for (uint32_t i = 1; i < ft_topology_switches(t); i++)
        ft_outages_add(outages, i, WINDOW + 1, (WINDOW + 1) * 1500, (WINDOW + 1) * 1500, 40);
    ck_assert_uint_eq(who(WINDOW + 1), FT_NONE);
    end();
}
END_TEST

FT_UNIT_MAIN("outages", a_second_without_samples_is_an_outage,
             a_whole_window_is_one_by_what_was_usual, few_samples_may_be_chance,
             a_fabric_that_pauses_has_none, a_fabric_that_falls_silent_has_none,
             samples_of_an_interval_are_in_each_of_its_seconds,
             another_topology_keeps_what_is_known, short_windows_have_none)

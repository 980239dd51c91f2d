// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "cli/args/moment.h"
#include "tests/unit/unit.h"

/* 2026-11-20 10:41:20.500 in Berlin, which is an hour ahead of UTC then. */
#define NOW_MS INT64_C(1795167680500)

static const struct ft_wall now = {.ms = NOW_MS};

static int64_t parsed(const char *text)
{
    struct ft_wall moment = {.ms = -1};

    ck_assert_msg(ft_moment_parse(text, now, &moment) == 0, "'%s' is a time", text);
    return moment.ms;
}

START_TEST(before_now)
{
    ck_assert_int_eq(parsed("-90s"), NOW_MS - 90000);
    ck_assert_int_eq(parsed("-5m"), NOW_MS - 300000);
    ck_assert_int_eq(parsed("-2h"), NOW_MS - 7200000);
    ck_assert_int_eq(parsed("-1d"), NOW_MS - 86400000);
    ck_assert_int_eq(parsed("-0s"), NOW_MS);
    ck_assert_int_eq(parsed("5m"), NOW_MS - 300000);
    ck_assert_int_eq(parsed("36h"), NOW_MS - 129600000);
    ck_assert_int_eq(parsed("@1700000000"), INT64_C(1700000000000));
}
END_TEST

START_TEST(times_of_day_are_the_last_ones)
{
    setenv("TZ", "Europe/Berlin", 1);
    tzset();
    ck_assert_int_eq(parsed("10:41:20"), NOW_MS - 500);
    ck_assert_int_eq(parsed("10:41"), NOW_MS - 20500);
    ck_assert_int_eq(parsed("9:00"), INT64_C(1795161600000));
    /* A second later it was yesterday's. */
    ck_assert_int_eq(parsed("10:41:21"), NOW_MS + 500 - 86400000);
    ck_assert_int_eq(parsed("23:59"), INT64_C(1795129140000));
}
END_TEST

START_TEST(dates_are_of_the_time_zone_or_utc)
{
    setenv("TZ", "Europe/Berlin", 1);
    tzset();
    ck_assert_int_eq(parsed("2026-11-20 10:41:20"), INT64_C(1795167680000));
    ck_assert_int_eq(parsed("2026-11-20T10:41"), INT64_C(1795167660000));
    ck_assert_int_eq(parsed("2026-11-20T09:41:20Z"), INT64_C(1795167680000));
    ck_assert_int_eq(parsed("2024-02-29T00:00:00Z"), INT64_C(1709164800000));
    /* Summer time. */
    ck_assert_int_eq(parsed("2026-07-01 12:00"), INT64_C(1782900000000));
}
END_TEST

START_TEST(everything_else_is_refused)
{
    static const char *const wrong[] = {
        "", "-", "-5", "5", "--5m", "5m ", "-5w", "-m", "-5mm", "-9999999s", "- 5m", "@", "@x",
        "@-1", "@1 ", "@9999999999999", "10", "10:4", "10:60", "24:00", "10:41:60",
        "10:41:", "10:41:20 ", "10:41:20Z", "2026-11-20", "2026-11-20 ", "2026-13-01 00:00",
        "2026-00-10 00:00", "2026-11-32 00:00", "2026-02-29 00:00", "2026-04-31 10:00",
        "2100-02-29 00:00", "26-11-20 10:41", "2026-11-20  10:41", "2026-11-20 10:41z",
        "1969-12-31 10:00", "2026-11-20 10:41:20 Z", "now",
        /* It is not over. */
        "@1795167681", "2026-11-20 10:41:21", "2027-01-01 00:00"};

    setenv("TZ", "Europe/Berlin", 1);
    tzset();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct ft_wall moment = {.ms = 7};

        ck_assert_msg(ft_moment_parse(wrong[i], now, &moment) == -EINVAL, "'%s' is none", wrong[i]);
        ck_assert_int_eq(moment.ms, 7);
    }
}
END_TEST

FT_UNIT_MAIN("moment", before_now, times_of_day_are_the_last_ones,
             dates_are_of_the_time_zone_or_utc, everything_else_is_refused)

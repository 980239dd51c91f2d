// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/clocks.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define WINDOW_MS 10000

static struct {
    int raised, cleared;
    char subject[300], message[600];
    int64_t offset_ms;
} got;

static void on_event(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Event *e = record->event;

    (void)arg;
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_EVENT);
    ck_assert_int_eq(e->kind, FABRICTRACE__KIND__KIND_CLOCK_SKEW);
    got.cleared += e->cleared;
    got.raised += !e->cleared;
    snprintf(got.subject, sizeof(got.subject), "%s", e->subject);
    snprintf(got.message, sizeof(got.message), "%s", e->message);
    got.offset_ms = e->evidence->offset_ms;
}

static struct ft_clocks *clocks;
static struct ft_events *events;
static const struct ft_emitter emitter = {.record = on_event};

static void setup(void)
{
    memset(&got, 0, sizeof(got));
    clocks = ft_clocks_new(16, "main");
    events = ft_events_new(8, &emitter);
    ck_assert(clocks && events);
}

static void teardown(void)
{
    ft_clocks_free(clocks);
    ft_events_free(events);
}

static void tell(const char *host, uint32_t window, int64_t offset_ms)
{
    int64_t now_ms = window * (int64_t)WINDOW_MS;

    ft_clocks_take(clocks, "fabrictrace-agent", host, now_ms + offset_ms, now_ms, false);
}

static void close_window(uint32_t window)
{
    ft_clocks_raise(clocks, events, window, window * (int64_t)WINDOW_MS, "lab");
    ft_events_sweep(events, window, window * (int64_t)WINDOW_MS);
}

static void run(uint32_t from, uint32_t to, int64_t offset_ms)
{
    for (uint32_t w = from; w <= to; w++) {
        tell("gpu01", w, offset_ms);
        tell("gpu02", w, -20);
        close_window(w);
    }
}

START_TEST(a_clock_that_is_ahead_is_named_until_it_is_right)
{
    setup();
    run(1, 2, 4000);
    ck_assert_int_eq(got.raised, 0);
    run(3, 9, 4000);
    ck_assert_int_eq(got.raised, 1);
    ck_assert_str_eq(got.subject, "fabrictrace-agent/gpu01");
    ck_assert_int_eq(got.offset_ms, 4000);
    ck_assert_str_eq(got.message, "the clock of fabrictrace-agent 'gpu01' is 4.0 s ahead: "
                                  "synchronise all hosts with one NTP or PTP server");
    /* Half way back is not enough. */
    run(10, 20, 1500);
    run(21, 22, 0);
    ck_assert_int_eq(got.cleared, 0);
    run(23, 23, 0);
    ck_assert_int_eq(got.cleared, 1);
    ck_assert_int_eq(got.raised, 1);
    teardown();
}
END_TEST

START_TEST(a_clock_that_is_behind_is_as_late_each_time)
{
    setup();
    run(1, 5, -12000);
    ck_assert_int_eq(got.raised, 1);
    ck_assert_int_eq(got.offset_ms, -12000);
    ck_assert_str_eq(got.message,
                     "the clock of fabrictrace-agent 'gpu01' is 12.0 s behind, or its records are "
                     "delayed by that time: synchronise all hosts with one NTP or PTP server");
    teardown();
}
END_TEST

START_TEST(delay_is_no_clock)
{
    setup();
    /* Jitter, a pause, and a backlog that is worked off at once. */
    for (uint32_t w = 1; w <= 40; w++) {
        tell("gpu01", w, w % 7 == 0 ? -30000 : -(int64_t)(w * 37 % 900));
        tell("gpu02", w, w % 3 ? 1900 : 0);
        if (w == 20)
            for (int64_t late = 8; late > 0; late--)
                tell("gpu03", w, -10000 * late);
        close_window(w);
    }
    ck_assert_int_eq(got.raised, 0);
    teardown();
}
END_TEST

/* Hosts that have little time to report are late by about the same. Who is on time is not ahead. */
START_TEST(delay_of_most_is_no_clock_of_the_others)
{
    setup();
    for (uint32_t w = 1; w <= 9; w++) {
        char host[8];

        for (int i = 0; i < 8; i++) {
            snprintf(host, sizeof(host), "gpu%d", i);
            tell(host, w, w < 6 ? -2400 - 10 * i : -4900 - 10 * i);
        }
        tell("poller", w, -20);
        close_window(w);
    }
    ck_assert_int_eq(got.raised, 0);
    teardown();
}
END_TEST

START_TEST(silence_clears)
{
    setup();
    run(1, 4, 9000);
    ck_assert_int_eq(got.raised, 1);
    for (uint32_t w = 5; w <= 22; w++)
        close_window(w);
    ck_assert_int_eq(got.cleared, 0);
    close_window(23);
    ck_assert_int_eq(got.cleared, 1);
    teardown();
}
END_TEST

START_TEST(where_all_are_off_it_is_this_daemon)
{
    setup();
    for (uint32_t w = 1; w <= 6; w++) {
        char host[8];

        for (int i = 0; i < 8; i++) {
            snprintf(host, sizeof(host), "gpu%d", i);
            tell(host, w, 7000 + 10 * i);
        }
        close_window(w);
    }
    ck_assert_int_eq(got.raised, 1);
    ck_assert_str_eq(got.subject, "fabrictraced/main");
    ck_assert_int_eq(got.offset_ms, -7040);
    teardown();
}
END_TEST

START_TEST(a_replay_has_no_future)
{
    setup();
    for (uint32_t w = 1; w <= 9; w++) {
        int64_t now_ms = w * (int64_t)WINDOW_MS;

        ft_clocks_take(clocks, "fabrictrace-agent", "gpu01", now_ms + 10000 * (int64_t)w, now_ms,
                       true);
        close_window(w);
    }
    ck_assert_int_eq(got.raised, 0);
    teardown();
}
END_TEST

/* Hosts come and go: those that are gone give their place. */
START_TEST(who_is_gone_makes_room)
{
    char name[8];

    setup();
    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof(name), "old%d", i);
        tell(name, 1, 0);
    }
    for (uint32_t w = 2; w < 6; w++) {
        tell("gpu01", w, 60000);
        close_window(w);
    }
    ck_assert_int_eq(got.raised, 0);
    for (uint32_t w = 100; w < 104; w++) {
        tell("gpu01", w, 60000);
        close_window(w);
    }
    ck_assert_int_eq(got.raised, 1);
    ck_assert_str_eq(got.subject, "fabrictrace-agent/gpu01");
    teardown();
}
END_TEST

/* This host's clock is set back by an hour; who ended meanwhile is not waited for until the clock
 * is where it was. */
START_TEST(this_clock_that_was_set_back)
{
    setup();
    run(401, 404, 4000);
    ck_assert_int_eq(got.raised, 1);
    ft_events_sweep(events, UINT32_MAX, 0);
    close_window(44);
    ck_assert_int_eq(got.raised, 1);
    teardown();
}
END_TEST

FT_UNIT_MAIN("clocks", this_clock_that_was_set_back, who_is_gone_makes_room,
             a_clock_that_is_ahead_is_named_until_it_is_right,
             a_clock_that_is_behind_is_as_late_each_time, delay_is_no_clock,
             delay_of_most_is_no_clock_of_the_others, silence_clears,
             where_all_are_off_it_is_this_daemon, a_replay_has_no_future)

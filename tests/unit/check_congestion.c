// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/congestion.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct {
    int raised, cleared;
    char subject[200], message[300], host[64];
    uint64_t count, since_ms;
} got;

static void take(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Event *e = record->event;

    (void)arg;
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_EVENT);
    ck_assert_int_eq(e->kind, FABRICTRACE__KIND__KIND_CONGESTION);
    snprintf(got.subject, sizeof(got.subject), "%s", e->subject);
    if (e->cleared) {
        got.cleared++;
        return;
    }
    got.raised++;
    snprintf(got.message, sizeof(got.message), "%s", e->message);
    snprintf(got.host, sizeof(got.host), "%s", e->evidence->host);
    got.count = e->evidence->count;
    got.since_ms = e->since_ms;
}

static struct ft_congestion *c;
static struct ft_events *events;
static const struct ft_emitter emitter = {.record = take};

static void setup(void)
{
    memset(&got, 0, sizeof(got));
    c = ft_congestion_new(8);
    events = ft_events_new(8, &emitter);
    ck_assert(c && events);
}

static void teardown(void)
{
    ft_congestion_free(c);
    ft_events_free(events);
}

static void tell(const char *host, uint32_t window, uint64_t timeouts, uint64_t cnps)
{
    Fabrictrace__HostCounters h = FABRICTRACE__HOST_COUNTERS__INIT;

    h.host = (char *)(uintptr_t)host;
    h.device = (char *)(uintptr_t) "mlx5_0";
    h.port = 1;
    h.has_time_ms = h.has_interval_ms = true;
    h.time_ms = window * 10000;
    h.interval_ms = 10000;
    h.has_timeouts = h.has_cnp_handled = true;
    h.timeouts = timeouts;
    h.cnp_handled = cnps;
    ft_congestion_take(c, &h, window * INT64_C(10000));
}

/* The next step of raising; false: that was all. */
static bool step(uint32_t *index, uint32_t window, uint32_t *work)
{
    return ft_congestion_raise(c, index, events, window, window * 10000, "lab", work);
}

static void close_window(uint32_t window)
{
    uint32_t index = 0, work;

    while (step(&index, window, &work))
        ;
    ft_events_sweep(events, window, window * 10000);
}

/* One record of the year 2100 must not make an event that stays until then. */
START_TEST(a_time_to_come_lasts_no_longer)
{
    Fabrictrace__HostCounters h = FABRICTRACE__HOST_COUNTERS__INIT;

    setup();
    h.host = (char *)(uintptr_t) "gpu01";
    h.device = (char *)(uintptr_t) "mlx5_0";
    h.has_time_ms = h.has_interval_ms = h.has_timeouts = true;
    h.interval_ms = 10000;
    h.timeouts = 1000;
    h.time_ms = UINT64_C(4102444800000);
    ft_congestion_take(c, &h, 10000);
    close_window(1);
    ck_assert_int_eq(got.raised, 1);
    ck_assert_uint_eq(got.since_ms, 0);
    close_window(5);
    ck_assert_int_eq(got.cleared, 1);
    h.time_ms = UINT64_C(1) << 63;
    ft_congestion_take(c, &h, 60000);
    close_window(6);
    ck_assert_int_eq(got.raised, 1);
    teardown();
}
END_TEST

START_TEST(losses_name_their_host_alone)
{
    setup();
    tell("gpu01", 1, 25, 0);
    tell("gpu02", 1, 9, 0);
    close_window(1);
    ck_assert_int_eq(got.raised, 1);
    ck_assert_str_eq(got.subject, "gpu01/mlx5_0/1");
    ck_assert_str_eq(got.host, "gpu01");
    ck_assert_uint_eq(got.count, 25);
    ck_assert_uint_eq(got.since_ms, 0);
    ck_assert_str_eq(
        got.message,
        "gpu01 mlx5_0 port 1: 25 packets out of sequence, retransmitted or timed out in 10 s");
    tell("gpu01", 2, 400, 0);
    close_window(2);
    for (uint32_t window = 3; window < 6; window++) {
        ck_assert_int_eq(got.cleared, 0);
        tell("gpu01", window, 0, 0);
        close_window(window);
    }
    ck_assert_int_eq(got.raised, 1);
    ck_assert_int_eq(got.cleared, 1);
    teardown();
}
END_TEST

/* A checkpoint every 20 or 30 seconds is one event, not one a burst. */
START_TEST(bursts_that_leave_intervals_out_are_one_event)
{
    setup();
    for (uint32_t window = 1; window < 12; window++) {
        tell("gpu01", window, window == 1 || window % 3 == 0 ? 25 : 0, 0);
        close_window(window);
    }
    ck_assert_int_eq(got.raised, 1);
    ck_assert_int_eq(got.cleared, 0);
    ck_assert_uint_eq(got.since_ms, 0);
    tell("gpu01", 12, 0, 0);
    close_window(12);
    ck_assert_int_eq(got.cleared, 1);
    tell("gpu01", 13, 25, 0);
    close_window(13);
    ck_assert_int_eq(got.raised, 2);
    ck_assert_uint_eq(got.since_ms, 120000);
    teardown();
}
END_TEST

START_TEST(what_is_usual_is_not_raised)
{
    setup();
    /* Notifications are how senders are slowed down: 1000 a second are this port's every day. */
    for (uint32_t window = 1; window < 20; window++) {
        tell("gpu01", window, 0, 10000 + window % 3 * 100);
        close_window(window);
    }
    ck_assert_int_eq(got.raised, 0);
    tell("gpu01", 20, 0, 14000);
    close_window(20);
    ck_assert_int_eq(got.raised, 1);
    ck_assert_str_eq(got.message, "gpu01 mlx5_0 port 1: 14000 congestion notifications in 10 s");
    teardown();
}
END_TEST

START_TEST(a_host_that_went_mute_is_over)
{
    setup();
    tell("gpu01", 1, 25, 0);
    close_window(1);
    close_window(3);
    ck_assert_int_eq(got.cleared, 0);
    close_window(5);
    ck_assert_int_eq(got.cleared, 1);
    teardown();
}
END_TEST

/* Hosts come and go: those that are gone give their place. */
START_TEST(who_is_gone_makes_room)
{
    char name[8];

    setup();
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "old%d", i);
        tell(name, 1, 0, 0);
    }
    tell("gpu01", 2, 1000, 0);
    close_window(2);
    ck_assert_int_eq(got.raised, 0);
    tell("gpu01", 400, 1000, 0);
    close_window(400);
    ck_assert_int_eq(got.raised, 1);
    ck_assert_str_eq(got.subject, "gpu01/mlx5_0/1");
    teardown();
}
END_TEST

/* This host's clock is set back by an hour, and the other host ended meanwhile. */
START_TEST(a_clock_that_was_set_back)
{
    setup();
    tell("gpu01", 400, 25, 0);
    close_window(400);
    ck_assert_int_eq(got.raised, 1);
    ft_events_sweep(events, UINT32_MAX, 0);
    close_window(40);
    ck_assert_int_eq(got.raised, 1);
    teardown();
}
END_TEST

static void report_port(const char *host, uint32_t port, uint64_t timeouts, int64_t now_ms)
{
    Fabrictrace__HostCounters h = FABRICTRACE__HOST_COUNTERS__INIT;

    h.host = (char *)(uintptr_t)host;
    h.device = (char *)(uintptr_t) "mlx5_0";
    h.port = port;
    h.has_time_ms = h.has_interval_ms = h.has_timeouts = true;
    h.time_ms = (uint64_t)now_ms;
    h.interval_ms = 10000;
    h.timeouts = timeouts;
    ft_congestion_take(c, &h, now_ms);
}

static void setup_large(size_t ports)
{
    memset(&got, 0, sizeof(got));
    c = ft_congestion_new(ports);
    events = ft_events_new(ports, &emitter);
    ck_assert(c && events);
}

/* However many are congested, or not, and whatever comes between two steps. */
START_TEST(a_step_raises_one_and_looks_at_few)
{
    uint32_t index = 0, work = 0, steps = 0;
    char host[16];

    setup_large(4096);
    for (uint32_t i = 0; i < 3000; i++) {
        snprintf(host, sizeof(host), "gpu%u", i / 8);
        report_port(host, i % 8, i < 1000 || i % 500 == 0 ? 1000 : 0, 10000);
    }
    for (bool more = true; more; steps++) {
        int before = got.raised;

        more = step(&index, 1, &work);
        ck_assert_int_le(got.raised, before + 1);
        ck_assert_uint_ge(work, got.raised > before ? 8 : 1);
        if (steps == 500)
            report_port("late", 1, 1000, 10000);
    }
    ck_assert_int_eq(got.raised, 1000 + 4 + 1);
    ck_assert_uint_ge(steps, 1005 + 1990 / 8);
    ck_assert_uint_le(steps, 1005 + 2000 / 8 + 1);
    teardown();
}
END_TEST

START_TEST(a_host_has_a_share_of_the_ports)
{
    struct ft_congestion_felt felt;

    setup_large(4096);
    for (uint32_t i = 0; i < 3000; i++)
        report_port("many", i, 1, 10000);
    ck_assert_uint_eq(ft_congestion_refused(c), 3000 - 1024);
    report_port("few", 1, 5, 10000);
    report_port("few", 2, 7, 10000);
    ck_assert_uint_eq(ft_congestion_refused(c), 3000 - 1024);
    ck_assert(ft_congestion_of(c, "many", 10000, &felt));
    ck_assert_uint_eq(felt.timeouts, 1024);
    ck_assert(ft_congestion_of(c, "few", 10000, &felt));
    ck_assert_uint_eq(felt.timeouts, 12);
    ck_assert(!ft_congestion_of(c, "fe", 10000, &felt));
    /* Those that are silent give their place. */
    report_port("many", 5000, 3, 200000);
    ck_assert_uint_eq(ft_congestion_refused(c), 3000 - 1024);
    ck_assert(ft_congestion_of(c, "many", 200000, &felt));
    ck_assert_uint_eq(felt.timeouts, 3);
    teardown();
}
END_TEST

/* Of a host all of whose ports went with others that needed the room, nothing is left. */
START_TEST(a_host_goes_with_its_ports)
{
    struct ft_congestion_felt felt;

    setup();
    for (uint32_t i = 0; i < 4; i++) {
        report_port("a", i, 1, 10000);
        report_port("b", i, 1, 10000);
    }
    for (uint32_t i = 0; i < 8; i++)
        report_port("c", i, 1, 400000 + i);
    ck_assert_uint_eq(ft_congestion_refused(c), 0);
    ck_assert(!ft_congestion_of(c, "a", 400000, &felt));
    ck_assert(!ft_congestion_of(c, "b", 400000, &felt));
    ck_assert(ft_congestion_of(c, "c", 400000, &felt));
    ck_assert_uint_eq(felt.timeouts, 8);
    report_port("a", 1, 1, 400010);
    ck_assert_uint_eq(ft_congestion_refused(c), 1);
    teardown();
}
END_TEST

FT_UNIT_MAIN("congestion", a_step_raises_one_and_looks_at_few, a_host_has_a_share_of_the_ports,
             a_host_goes_with_its_ports, a_clock_that_was_set_back, a_time_to_come_lasts_no_longer,
             who_is_gone_makes_room, losses_name_their_host_alone,
             bursts_that_leave_intervals_out_are_one_event, what_is_usual_is_not_raised,
             a_host_that_went_mute_is_over)

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/losses.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define WINDOW_MS 10000

static struct {
    int raised, cleared;
    char subject[300], message[600], reason[32];
    uint64_t count, since_ms;
} got;

static void on_event(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Event *e = record->event;

    (void)arg;
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_EVENT);
    ck_assert_int_eq(e->kind, FABRICTRACE__KIND__KIND_LOSS);
    got.cleared += e->cleared;
    got.raised += !e->cleared;
    snprintf(got.subject, sizeof(got.subject), "%s", e->subject);
    snprintf(got.message, sizeof(got.message), "%s", e->message);
    snprintf(got.reason, sizeof(got.reason), "%s", e->evidence->reason);
    got.count = e->evidence->count;
    got.since_ms = e->since_ms;
}

static struct ft_losses *losses;
static struct ft_events *events;
static const struct ft_emitter emitter = {.record = on_event};

static void setup(void)
{
    memset(&got, 0, sizeof(got));
    losses = ft_losses_new(8);
    events = ft_events_new(8, &emitter);
    ck_assert(losses && events);
}

static void teardown(void)
{
    ft_losses_free(losses);
    ft_events_free(events);
}

/* The running account of a poller: datagrams with the kernel's drops, and gaps by sequence. */
static struct {
    uint64_t received, kernel, network, gap, duplicate;
} total;

static void tell(const char *source, uint32_t window)
{
    Fabrictrace__Drop kernel = FABRICTRACE__DROP__INIT, gap = kernel, duplicate = kernel;
    Fabrictrace__Drop *own[] = {&kernel, &duplicate}, *way[] = {&gap};
    Fabrictrace__Stage datagrams = FABRICTRACE__STAGE__INIT, network = datagrams;
    Fabrictrace__Stage *stages[] = {&network, &datagrams};
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;

    kernel.reason = (char *)(uintptr_t) "kernel_buffer";
    kernel.count = total.kernel;
    duplicate.reason = (char *)(uintptr_t) "duplicate";
    duplicate.count = total.duplicate;
    gap.reason = (char *)(uintptr_t) "sequence_gap";
    gap.count = total.gap;
    datagrams.name = datagrams.unit = (char *)(uintptr_t) "datagrams";
    datagrams.received = total.received;
    datagrams.n_drops = 2;
    datagrams.drops = own;
    network.name = (char *)(uintptr_t) "network";
    network.unit = datagrams.unit;
    network.received = total.network;
    network.n_drops = 1;
    network.drops = way;
    loss.program = (char *)(uintptr_t) "fabrictrace-switchpoll";
    loss.source = (char *)(uintptr_t)source;
    loss.n_stages = 2;
    loss.stages = stages;
    ft_losses_take(losses, &loss, window * (int64_t)WINDOW_MS);
}

/* One interval in which so much came in and so much was lost. */
static void interval(uint32_t window, uint64_t received, uint64_t kernel, uint64_t gap)
{
    total.received += received;
    total.network += received;
    total.kernel += kernel;
    total.gap += gap;
    tell("p1", window);
}

static void close_window(uint32_t window)
{
    ft_losses_raise(losses, events, window, window * (int64_t)WINDOW_MS, "lab");
    ft_events_sweep(events, window, window * (int64_t)WINDOW_MS);
}

START_TEST(a_loss_is_raised_once_and_cleared_when_it_is_over)
{
    setup();
    total.received = total.network = 1000000;
    total.kernel = 5000; /* of before our time */
    tell("p1", 1);
    close_window(1);
    ck_assert_int_eq(got.raised, 0);
    interval(2, 10000, 300, 300);
    close_window(2);
    ck_assert_int_eq(got.raised, 1);
    ck_assert_str_eq(got.subject, "fabrictrace-switchpoll/p1");
    /* What the kernel dropped is missing by sequence as well: the cause is told. */
    ck_assert_str_eq(got.reason, "kernel_buffer");
    ck_assert_uint_eq(got.count, 300);
    ck_assert_uint_eq(got.since_ms, 10000);
    ck_assert_str_eq(
        got.message,
        "fabrictrace-switchpoll 'p1' lost 300 of 10000 datagrams in 10 s "
        "(kernel_buffer): raise receive_buffer of the poller, and net.core.rmem_max of its host");
    interval(3, 10000, 900, 900);
    close_window(3);
    for (uint32_t w = 4; w <= 5; w++) {
        interval(w, 10000, 5, 5);
        close_window(w);
    }
    ck_assert_int_eq(got.cleared, 0);
    interval(6, 10000, 0, 0);
    close_window(6);
    ck_assert_int_eq(got.raised, 1);
    ck_assert_int_eq(got.cleared, 1);
    teardown();
}
END_TEST

START_TEST(noise_raises_nothing_and_keeps_what_stands)
{
    setup();
    tell("p1", 1);
    for (uint32_t w = 2; w < 40; w++) {
        /* Nine of a few, or less than one in a hundred of many; and duplicates, which are none. */
        total.duplicate += 500;
        interval(w, w % 2 ? 20 : 100000, w % 2 ? 9 : 999, 0);
        close_window(w);
    }
    ck_assert_int_eq(got.raised, 0);
    interval(40, 1000, 10, 0);
    close_window(40);
    ck_assert_int_eq(got.raised, 1);
    /* Between half the threshold and all of it nothing changes. */
    for (uint32_t w = 41; w < 60; w++) {
        interval(w, 10000, 70, 0);
        close_window(w);
    }
    ck_assert_int_eq(got.raised, 1);
    ck_assert_int_eq(got.cleared, 0);
    teardown();
}
END_TEST

START_TEST(a_small_loss_of_one_kind_hides_no_large_one_of_another)
{
    setup();
    tell("p1", 1);
    interval(2, 10000, 70, 4000);
    close_window(2);
    ck_assert_str_eq(got.reason, "sequence_gap");
    ck_assert_uint_eq(got.count, 4000);
    teardown();
}
END_TEST

START_TEST(the_cause_stays_reported_while_its_effect_follows)
{
    setup();
    tell("p1", 1);
    interval(2, 10000, 300, 0);
    interval(3, 10000, 0, 300);
    close_window(3);
    ck_assert_int_eq(got.raised, 1);
    ck_assert_str_eq(got.reason, "kernel_buffer");
    /* What goes on by itself has a cause of its own. */
    for (uint32_t w = 4; w <= 6; w++)
        interval(w, 10000, 0, 200);
    close_window(6);
    for (uint32_t w = 7; w <= 9; w++)
        interval(w, 10000, 0, 0);
    close_window(9);
    ck_assert_int_eq(got.cleared, 1);
    ck_assert_str_eq(got.reason, "sequence_gap");
    ck_assert_uint_eq(got.count, 200);
    teardown();
}
END_TEST

START_TEST(restarts_and_silence)
{
    setup();
    tell("p1", 1);
    interval(2, 10000, 300, 0);
    close_window(2);
    ck_assert_int_eq(got.raised, 1);
    /* It starts again: what it counts from there is no difference to what it counted before. */
    memset(&total, 0, sizeof(total));
    interval(3, 100, 50, 0);
    close_window(3);
    /* And falls silent; what another says is its own. */
    tell("p2", 3);
    close_window(6);
    ck_assert_int_eq(got.cleared, 0);
    close_window(7);
    ck_assert_int_eq(got.cleared, 1);
    ck_assert_int_eq(got.raised, 1);
    teardown();
}
END_TEST

START_TEST(what_came_late_is_no_loss)
{
    setup();
    total.gap = 100;
    tell("p1", 1);
    total.gap = 20;
    interval(2, 1000, 0, 0);
    close_window(2);
    ck_assert_int_eq(got.raised, 0);
    ck_assert_ptr_null(ft_losses_advice("records", "duplicate"));
    ck_assert_ptr_null(ft_losses_advice("records", NULL));
    ck_assert_ptr_nonnull(ft_losses_advice("records", "table_full"));
    teardown();
}
END_TEST

/* Hosts come and go: those that are gone give their place. */
START_TEST(who_is_gone_makes_room)
{
    setup();
    for (char i = 0; i < 8; i++)
        tell((char[3]){'o', (char)('0' + i), 0}, 1);
    for (uint32_t w = 2; w < 4; w++)
        interval(w, 10000, 5000, 0);
    close_window(3);
    ck_assert_int_eq(got.raised, 0);
    for (uint32_t w = 400; w < 402; w++)
        interval(w, 10000, 5000, 0);
    close_window(401);
    ck_assert_int_eq(got.raised, 1);
    ck_assert_str_eq(got.subject, "fabrictrace-switchpoll/p1");
    teardown();
}
END_TEST

/* This host's clock is set back by an hour: an account says nothing of how long an interval was,
 * and who ends then is not waited for until the clock is where it was. */
START_TEST(a_clock_that_was_set_back)
{
    setup();
    tell("p1", 400);
    interval(401, 10000, 300, 0);
    close_window(401);
    ck_assert_int_eq(got.raised, 1);
    ft_events_sweep(events, UINT32_MAX, 0);
    interval(42, 10000, 300, 0);
    close_window(42);
    ck_assert_int_eq(got.raised, 2);
    ck_assert_ptr_nonnull(strstr(got.message, " in 10 s "));
    ck_assert_uint_le(got.since_ms, 42 * WINDOW_MS);
    interval(43, 10000, 400, 0);
    close_window(43);
    ck_assert_int_eq(got.cleared, 1);
    ft_events_sweep(events, UINT32_MAX, 0);
    close_window(3);
    ck_assert_int_eq(got.raised, 2);
    teardown();
}
END_TEST

FT_UNIT_MAIN("losses", a_clock_that_was_set_back, who_is_gone_makes_room,
             a_loss_is_raised_once_and_cleared_when_it_is_over,
             noise_raises_nothing_and_keeps_what_stands,
             a_small_loss_of_one_kind_hides_no_large_one_of_another,
             the_cause_stays_reported_while_its_effect_follows, restarts_and_silence,
             what_came_late_is_no_loss)

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/down_ports.h"

#include <errno.h>

#include "tests/unit/unit.h"

#define START_MS INT64_C(1700000000000)
#define EVERY_MS 20000

static struct ft_down_ports *words;
static int64_t now_ms;
static uint64_t bytes;

static void begin(size_t cap)
{
    words = ft_down_ports_new(cap);
    ck_assert_ptr_nonnull(words);
    now_ms = START_MS;
    bytes = 0;
}

static Fabrictrace__PortCounters poll_of(uint8_t agent, uint32_t ifindex, bool up)
{
    static uint8_t address[4] = {192, 0, 2, 0};
    Fabrictrace__PortCounters poll = FABRICTRACE__PORT_COUNTERS__INIT;

    address[3] = agent;
    poll.has_agent = poll.has_ifindex = poll.has_time_ms = poll.has_oper_up = true;
    poll.has_in_bytes = poll.has_out_bytes = true;
    poll.agent = (ProtobufCBinaryData){4, address};
    poll.ifindex = ifindex;
    poll.time_ms = (uint64_t)now_ms;
    poll.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
    poll.oper_up = up;
    poll.in_bytes = bytes;
    return poll;
}

/* The port says so; whether that changed what is down. */
static bool say(uint8_t agent, uint32_t ifindex, bool up)
{
    Fabrictrace__PortCounters poll = poll_of(agent, ifindex, up);
    bool changed;

    ck_assert_int_eq(ft_down_ports_take(words, &poll, now_ms, &changed), 0);
    return changed;
}

static uint32_t down(void)
{
    struct ft_down_port word;
    uint32_t index = 0, count = 0;

    while (ft_down_ports_next(words, &index, &word))
        count++;
    return count;
}

START_TEST(a_port_that_was_up_is_down_at_once)
{
    struct ft_down_port word;
    uint32_t index = 0;

    begin(10);
    ck_assert(!say(1, 7, true));
    now_ms += EVERY_MS;
    bytes = 1000;
    ck_assert(say(1, 7, false));
    ck_assert(ft_down_ports_next(words, &index, &word));
    ck_assert_uint_eq(word.ifindex, 7);
    ck_assert_int_eq(word.time_ms, now_ms);
    ck_assert(!ft_down_ports_next(words, &index, &word));
    now_ms += EVERY_MS;
    ck_assert(!say(1, 7, false));
    ck_assert_uint_eq(down(), 1);
    now_ms += EVERY_MS;
    ck_assert(say(1, 7, true));
    ck_assert_uint_eq(down(), 0);
    ft_down_ports_free(words);
}
END_TEST

/* One that is down from the start, by an agent that fills the state in. */
START_TEST(a_port_that_stands_still_is_down)
{
    begin(10);
    say(1, 7, true);
    ck_assert(!say(1, 8, false));
    ck_assert_uint_eq(down(), 0);
    now_ms += EVERY_MS;
    ck_assert(say(1, 8, false));
    ck_assert_uint_eq(down(), 1);
    ft_down_ports_free(words);
}
END_TEST

/* Zeros where the state should be: of an agent that never says otherwise, or of a port that carries
 * bytes all the same. */
START_TEST(what_is_left_out_is_not_down)
{
    begin(10);
    for (int i = 0; i < 5; i++, now_ms += EVERY_MS) {
        ck_assert(!say(1, 7, false));
        ck_assert(!say(1, 8, false));
        say(2, 7, true);
        ck_assert(!say(2, 8, false));
        bytes += 1000;
    }
    ck_assert_uint_eq(down(), 0);
    ft_down_ports_free(words);
}
END_TEST

/* Counters are left out: what was down stays so until it is said to be up. */
START_TEST(words_without_counters)
{
    Fabrictrace__PortCounters poll;
    bool changed;

    begin(10);
    for (int i = 0; i < 6; i++, now_ms += EVERY_MS) {
        poll = poll_of(1, 7, i == 0 || i == 4);
        poll.has_in_bytes = poll.has_out_bytes = false;
        ck_assert_int_eq(ft_down_ports_take(words, &poll, now_ms, &changed), 0);
        ck_assert_int_eq(changed, i == 1 || i == 4 || i == 5);
        ck_assert_uint_eq(down(), !poll.oper_up);
    }
    ft_down_ports_free(words);
}
END_TEST

START_TEST(old_words_do_not_count)
{
    begin(10);
    say(1, 7, true);
    now_ms += EVERY_MS;
    say(1, 7, false);
    /* One that was under way. */
    now_ms -= EVERY_MS / 2;
    ck_assert(!say(1, 7, true));
    ck_assert_uint_eq(down(), 1);
    ck_assert(!ft_down_ports_age(words, now_ms));
    now_ms += 700000;
    ck_assert(ft_down_ports_age(words, now_ms));
    ck_assert_uint_eq(down(), 0);
    ft_down_ports_free(words);
}
END_TEST

/* By less than what makes an old report a new one; the poller's clock is this one. */
START_TEST(a_clock_that_is_set_back_is_the_pollers_too)
{
    begin(10);
    say(1, 7, true);
    now_ms -= 5 * 60000;
    ft_down_ports_set_back(words, now_ms);
    now_ms += EVERY_MS;
    ck_assert(say(1, 7, false));
    ck_assert_uint_eq(down(), 1);
    ft_down_ports_free(words);
}
END_TEST

START_TEST(others_are_passed_over_and_the_cap_holds)
{
    Fabrictrace__PortCounters poll;
    bool changed;

    begin(2);
    say(1, 7, true);
    now_ms += EVERY_MS;
    poll = poll_of(1, 7, false);
    poll.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SNMP;
    ck_assert_int_eq(ft_down_ports_take(words, &poll, now_ms, &changed), 0);
    poll = poll_of(1, 7, false);
    poll.has_oper_up = false;
    ck_assert_int_eq(ft_down_ports_take(words, &poll, now_ms, &changed), 0);
    poll = poll_of(1, 0, false);
    ck_assert_int_eq(ft_down_ports_take(words, &poll, now_ms, &changed), 0);
    poll.has_agent = false;
    ck_assert_int_eq(ft_down_ports_take(words, &poll, now_ms, &changed), 0);
    ck_assert_uint_eq(down(), 0);
    poll = poll_of(1, 8, true);
    ck_assert_int_eq(ft_down_ports_take(words, &poll, now_ms, &changed), -ENOSPC);
    poll = poll_of(2, 1, true);
    ck_assert_int_eq(ft_down_ports_take(words, &poll, now_ms, &changed), -ENOSPC);
    ft_down_ports_free(words);
}
END_TEST

/* The port says so. */
static void say_states(uint8_t agent, uint32_t ifindex, bool admin_up, bool oper_up)
{
    Fabrictrace__PortCounters poll = poll_of(agent, ifindex, oper_up);
    bool changed;

    poll.has_admin_up = true;
    poll.admin_up = admin_up;
    ck_assert_int_eq(ft_down_ports_take(words, &poll, now_ms, &changed), 0);
}

static struct ft_down_port only_one_down(void)
{
    struct ft_down_port word;
    uint32_t index = 0;

    ck_assert(ft_down_ports_next(words, &index, &word));
    ck_assert_uint_eq(down(), 1);
    return word;
}

/* An exporter that has one state for both says of a cut cable what another says of a shut port. */
START_TEST(shut_is_believed_once_the_agent_has_both_states)
{
    struct ft_ip agent;
    bool changed;
    Fabrictrace__PortCounters poll;

    begin(10);
    ck_assert_int_eq(ft_ip_from_bytes((const uint8_t[]){192, 0, 2, 1}, 4, &agent), 0);
    say_states(1, 7, true, true);
    say_states(1, 8, true, true);
    now_ms += EVERY_MS;
    say_states(1, 7, false, false);
    ck_assert(!only_one_down().shut && !only_one_down().enabled);
    ck_assert(!ft_down_ports_has_both(words, &agent));
    /* Another port is enabled and down: the agent has both states. */
    say_states(1, 8, true, false);
    now_ms += EVERY_MS;
    say_states(1, 8, true, true);
    ck_assert(ft_down_ports_has_both(words, &agent));
    now_ms += EVERY_MS;
    poll = poll_of(1, 7, false);
    poll.has_admin_up = true;
    ck_assert_int_eq(ft_down_ports_take(words, &poll, now_ms, &changed), 0);
    ck_assert(changed);
    ck_assert(only_one_down().shut && !only_one_down().enabled);
    /* Enabled, and not up yet. */
    now_ms += EVERY_MS;
    poll.admin_up = true;
    poll.time_ms = (uint64_t)now_ms;
    ck_assert_int_eq(ft_down_ports_take(words, &poll, now_ms, &changed), 0);
    ck_assert(changed);
    ck_assert(!only_one_down().shut && only_one_down().enabled);
    now_ms += EVERY_MS;
    say_states(1, 7, true, true);
    ck_assert_uint_eq(down(), 0);
    /* Another agent has yet to show it. */
    say_states(2, 7, true, true);
    now_ms += EVERY_MS;
    say_states(2, 7, false, false);
    ck_assert(!only_one_down().shut);
    ft_down_ports_free(words);
}
END_TEST

FT_UNIT_MAIN("port_words", a_port_that_was_up_is_down_at_once, a_port_that_stands_still_is_down,
             what_is_left_out_is_not_down, words_without_counters, old_words_do_not_count,
             a_clock_that_is_set_back_is_the_pollers_too, others_are_passed_over_and_the_cap_holds,
             shut_is_believed_once_the_agent_has_both_states)
